"""Tape: what it held over time, by op, and each backward pass."""

from __future__ import annotations

from tlmem.dashboards.model.tables import ops, passes

from .curves_page import Curve, CurvesPage, Table


class TapePage(CurvesPage):
    """Two curves over two tables."""

    NAME = "tape"
    ABOUT = "autograd tapes: ops, what they hold, backward passes"
    BINDINGS = CurvesPage.BINDINGS
    CURVES = (
        Curve("saved", "saved", "#4e9fe5", lambda of, view, width: of.tapes.saved(view, width)),
        Curve(
            "gradients",
            "gradients",
            "#5aa87f",
            lambda of, view, width: of.tapes.gradients(view, width),
        ),
    )
    TABLES = (
        Table("ops", "no tape recorded anything", lambda of, view: ops(of.recording)),
        Table(
            "passes",
            "no backward pass in this stretch",
            lambda of, view: passes(of.recording, view),
        ),
    )

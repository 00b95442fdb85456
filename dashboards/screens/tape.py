"""Tape: what it held over time, by op, and each backward pass."""

from __future__ import annotations

from tlmem.dashboards.model.tables import ops, passes

from .curves_page import CurvesPage, ShownCurve, ShownTable


class TapePage(CurvesPage):
    """Two curves over two tables."""

    NAME = "tape"
    ABOUT = "autograd tapes: ops, what they hold, backward passes"
    BINDINGS = CurvesPage.BINDINGS
    CURVES = (
        ShownCurve(
            "saved", "saved", "#4e9fe5", lambda of, view, width: of.tapes.saved(view, width)
        ),
        ShownCurve(
            "gradients",
            "gradients",
            "#5aa87f",
            lambda of, view, width: of.tapes.gradients(view, width),
        ),
    )
    TABLES = (
        ShownTable("ops", "no tape recorded anything", lambda of, view: ops(of.recording)),
        ShownTable(
            "passes",
            "no backward pass in this stretch",
            lambda of, view: passes(of.recording, view),
        ),
    )

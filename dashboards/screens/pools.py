"""Pools: hit rates, what they keep, by which sizes, and how that grew; devices below them."""

from __future__ import annotations

from tlmem.dashboards.model.tables import devices

from .curves_page import CurvesPage, ShownCurve, ShownTable


class PoolsPage(CurvesPage):
    """Two curves over three tables."""

    NAME = "pools"
    ABOUT = "pools and devices: hit rate, what is kept, size classes, growth"
    BINDINGS = CurvesPage.BINDINGS
    CURVES = (
        ShownCurve(
            "pooled", "in pools", "#e5a84e", lambda of, at, width: of.pools.pooled(at, width)
        ),
        ShownCurve("unused", "unused", "#8a93a6", lambda of, at, width: of.pools.unused(at, width)),
    )
    TABLES = (
        ShownTable("pools", "no pool was used", lambda of, view: of.pools.table(view)),
        ShownTable(
            "sizes",
            "no pool keeps anything at the end of this stretch",
            lambda of, view: of.pools.size_classes(view),
        ),
        ShownTable(
            "devices", "no device handed out memory", lambda of, view: devices(of.recording)
        ),
    )

"""Modes of PyTorch that were left on: ``profiler-left-on`` and ``anomaly-left-on``.

The autograd profiler keeps an event for each operation until it is stopped, and anomaly mode keeps
a traceback for each node of a graph. The recorder looks at both at each snapshot and at the end.

Covers: a mode that was on at the last look; one that was on in most looks while memory grew.
Does not cover: profilers of other threads; histories of the CUDA allocator.
See also: docs/findings/, a page for each class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.units import format_count

_NUMBER = re.compile(r"([a-z_]+)=([0-9]{1,9})\b")
_SAMPLED = ("native", "python")
MODES = {
    "profiler": (
        "PyTorch's profiler was on",
        "it keeps an event for each operation, outside Python and tensors, until it is stopped",
    ),
    "anomaly": (
        "PyTorch's anomaly mode was on",
        "each node of a graph keeps the traceback of its forward pass for as long as the graph "
        "lives, and each step takes longer",
    ),
}
"""Modes as the note names them: that one was on, and what it keeps."""
LEFT_ON = tuple(f"{mode}-left-on" for mode in MODES)
"""The kinds of these findings."""


def seen_modes(info: Mapping[str, str]) -> dict[str, int]:
    """How often the recorder looked, and saw each mode on; empty when it never did."""
    return {name: int(text) for name, text in _NUMBER.findall(info.get("torch.modes", ""))}


def modes_left_on(
    info: Mapping[str, str], rises: Sequence[Rise], lines_grow: bool
) -> list[Finding]:
    """A finding for each mode: a warning where memory grows, else info.

    Args:
        info: the notes of the recording.
        rises: growth of memory outside arrays.
        lines_grow: whether a line keeps more and more tensors or arrays.
    """
    numbers = seen_modes(info)
    grown = [rise.bytes for rise in rises if rise.kind in _SAMPLED]
    found = []
    for mode, (was_on, keeps) in MODES.items():
        seen, looks = numbers.get(mode, 0), numbers.get("looks", 0)
        is_last = numbers.get(f"{mode}_last", 0) == 1
        grows = bool(grown) or lines_grow
        if not looks or not is_last and not (grows and seen >= max(1, RULES.majority * looks)):
            continue
        when = ", and at the last one" if is_last and looks > 1 else ""
        times = f"{format_count(seen)} of {format_count(looks)} look{'s' if looks != 1 else ''}"
        found.append(
            Finding(
                kind=f"{mode}-left-on",
                severity="warning" if grows else "info",
                count=0,
                bytes=max(grown, default=0),
                evidence=f"{was_on} in {times}{when}: {keeps}.",
            )
        )
    return found

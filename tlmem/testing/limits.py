"""What a test may take: limits from its markers, and from settings where it has none.

Covers: reading and refusing them. Does not cover: options of pytest (``pytest_plugin``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tlmem.gate.amounts import BYTES, parse_amount

PEAK, LEAKS, RSS = "limit_tensors", "limit_leaks_tensors", "limit_rss"
MISUSE = "no_misuse"
NOT_RECORDED = "no_tlmem"
AMOUNTS = (PEAK, LEAKS, RSS)


@dataclass(frozen=True)
class Limits:
    """Bytes by name of the limit; ``misuse`` says that there may be none."""

    bytes: dict[str, float]
    misuse: bool = False


def limits_of(item: pytest.Item) -> Limits:
    """The limits of a test; the marker nearest to it counts.

    Raises:
        pytest.UsageError: a marker or setting is no amount.
    """
    found = {}
    for name in AMOUNTS:
        marker = item.get_closest_marker(name)
        if marker is not None:
            found[name] = _amount(_argument(marker, item), f"{item.nodeid}: {name}")
        elif setting := str(item.config.getini(f"tlmem_{name}")):
            found[name] = _amount(setting, f"the setting tlmem_{name}")
    misuse = item.get_closest_marker(MISUSE)
    if misuse is not None and (misuse.args or misuse.kwargs):
        raise pytest.UsageError(f"{item.nodeid}: {MISUSE} takes no arguments; leave them out.")
    return Limits(found, misuse is not None or bool(item.config.getini(f"tlmem_{MISUSE}")))


def _argument(marker: pytest.Mark, item: pytest.Item) -> str:
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
        given = ", ".join(
            [*map(repr, marker.args), *(f"{k}={v!r}" for k, v in marker.kwargs.items())]
        )
        raise pytest.UsageError(
            f"{item.nodeid}: {marker.name}({given}) is not understood; write one amount, as "
            f"{marker.name}('24 MB')."
        )
    return marker.args[0]


def _amount(text: str, origin: str) -> float:
    try:
        return parse_amount(text, (BYTES,), rates=False).value
    except ValueError as error:
        raise pytest.UsageError(f"{origin} = {text!r} {error}.") from None


@dataclass(frozen=True)
class Loop:
    """How often a test function runs: ``warmup`` times before, ``runs`` times under measurement."""

    warmup: int = 0
    runs: int = 1


def parse_loop(text: str) -> Loop:
    """``5:20`` is five runs, then twenty that are measured; ``20`` is ``0:20``.

    Raises:
        pytest.UsageError: it is no such text.
    """
    if not text:
        return Loop()
    warmup, colon, runs = text.rpartition(":")
    if not runs.isdecimal() or (colon and not warmup.isdecimal()) or int(runs) == 0:
        raise pytest.UsageError(
            f"--tlmem-loop {text!r} is not understood; write WARMUP:RUNS, as 5:20."
        )
    return Loop(int(warmup or 0), int(runs))

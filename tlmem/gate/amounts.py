"""Amounts as people write them into budgets: ``5 MB``, ``100 kB/s``, ``1 object per epoch``.

Covers: the grammar of amounts and how they are written back. Does not cover: which budget takes
which amount (``budget_kinds``); sizes themselves are parsed by ``tlmem.units``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tlmem.units import format_bytes, format_count, parse_bytes

BYTES, OBJECTS, PERCENT, TIMES = "bytes", "objects", "percent", "times"
"""Kinds of amounts: memory, objects, a share, how often."""
SECOND = "s"
_SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_RATE = re.compile(r"^(?P<amount>.*?)\s*(?:/|\bper\b)\s*(?P<per>\S.*?)\s*$")
_NUMBER = re.compile(r"^\s*(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>%|[a-zA-Z]*)\s*$")
_EXAMPLES = {
    BYTES: "24 MB, 1.5 kB, 64 KiB",
    OBJECTS: "12 objects",
    PERCENT: "90%",
    TIMES: "3",
}


@dataclass(frozen=True)
class Amount:
    """``value`` of a ``kind``; ``per`` is ``s``, a label of marks, or empty for an amount in all.

    Bytes and objects may be fractions where they are rates; percent are from 0 upwards.
    """

    value: float
    kind: str
    per: str = ""

    def __str__(self) -> str:
        return write(self.value, self.kind, self.per)


@dataclass(frozen=True)
class Increase:
    """What may come on top of a baseline: a share of it, and an amount."""

    percent: float = 0.0
    amount: Amount | None = None

    def __str__(self) -> str:
        share = f"{self.percent:g}%" if self.percent or self.amount is None else ""
        return " + ".join(part for part in (share, str(self.amount or "")) if part)


def write(value: float, kind: str, per: str = "") -> str:
    """An amount for people: ``1.20 MB``, ``100 kB/s``, ``2 objects per epoch``."""
    if kind == BYTES:
        text = format_bytes(value) if abs(value) >= 10 or not per else f"{_short(value)} B"
    elif kind == PERCENT:
        text = f"{value:.3g}%"
    else:
        text = format_count(value) if abs(value) >= 10 or value == int(value) else _short(value)
        text += ("" if kind == TIMES else " object") + (
            "s" if kind == OBJECTS and value != 1 else ""
        )
    return text + (f"/{per}" if per == SECOND else f" per {per}" if per else "")


def _short(value: float) -> str:
    """A small number with the decimals that matter: ``0.5``, ``3``."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def parse_amount(text: str, kinds: tuple[str, ...], rates: bool) -> Amount:
    """An amount of one of some kinds.

    Args:
        text: such as ``100 kB/s``. ``0`` needs no unit.
        kinds: those that are allowed, the usual one first.
        rates: whether an amount per second or per mark is allowed too.

    Raises:
        ValueError: no such amount; the message says what is one.
    """
    rest, per = text, ""
    found = _RATE.match(text)
    if found:
        rest, per = found["amount"], found["per"]
        if not rates:
            raise ValueError(f"is not a rate; write for example {_EXAMPLES[kinds[0]]}")
    value, kind = _plain(rest, kinds)
    unit = per.rstrip("s") if per.endswith("s") and per != SECOND else per
    if unit in _SECONDS:
        return Amount(value / _SECONDS[unit], kind, SECOND)
    if kind not in (BYTES, OBJECTS) and per:
        raise ValueError(f"is not a rate; write for example {_EXAMPLES[kind]}")
    return Amount(value, kind, per.strip("'\""))


def parse_increase(text: str, kinds: tuple[str, ...]) -> Increase:
    """``10%``, ``1 MB``, or both with a plus between them.

    Raises:
        ValueError: it is none of these.
    """
    percent: float | None = None
    amount: Amount | None = None
    for part in text.split("+"):
        found = parse_amount(part, (*kinds, PERCENT), rates=False)
        if found.kind == PERCENT and percent is None:
            percent = found.value
        elif found.kind != PERCENT and amount is None:
            amount = found
        else:
            raise ValueError("has two shares or two amounts; write for example 10% + 1 MB")
    return Increase(percent or 0.0, amount)


def _plain(text: str, kinds: tuple[str, ...]) -> tuple[float, str]:
    """A number with its unit."""
    found = _NUMBER.match(text)
    wanted = " or ".join(_EXAMPLES[kind] for kind in kinds)
    if not found:
        raise ValueError(f"is not an amount; write for example {wanted}")
    number, unit = float(found["number"]), found["unit"]
    if unit == "%":
        return _of_kind(number, PERCENT, kinds, wanted)
    if unit in ("object", "objects"):
        return _of_kind(number, OBJECTS, kinds, wanted)
    if unit in ("time", "times") or not unit and TIMES in kinds:
        if number != int(number):
            raise ValueError("is not a whole number")
        return _of_kind(number, TIMES, kinds, wanted)
    if not unit:
        if number == 0:
            return 0.0, kinds[0]
        raise ValueError(f"has no unit; write for example {wanted}")
    try:
        # parse_bytes rounds to whole bytes, which a rate need not be.
        scale = 1_000_000
        value = parse_bytes(f"{scale} {unit}") / scale * number
    except ValueError:
        raise ValueError(f"has the unknown unit {unit!r}; write for example {wanted}") from None
    return _of_kind(value, BYTES, kinds, wanted)


def _of_kind(value: float, kind: str, kinds: tuple[str, ...], wanted: str) -> tuple[float, str]:
    if kind not in kinds:
        raise ValueError(f"is in {kind}, which says nothing here; write for example {wanted}")
    return value, kind

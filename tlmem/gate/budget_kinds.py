"""Every budget there is: its name, the amounts it takes, what it means.

Covers: the one name that a budget has on the command line, in TOML files and in outputs.
Does not cover: how it is measured (``measure``) or judged (``decision``).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.ledger.misuse import WHAT
from tlmem.analysis.model import OUTCOMES
from tlmem.analysis.peak.roles import NAMES, Role
from tlmem.gate.amounts import BYTES, OBJECTS, PERCENT, TIMES


@dataclass(frozen=True)
class BudgetKind:
    """One kind of budget.

    ``kinds`` of amounts are allowed, ``rates`` says whether also per second and per mark;
    ``at_least`` budgets are floors, all others are ceilings. ``increase`` says that there is a
    budget ``NAME-increase`` for what may come on top of a baseline.
    """

    name: str
    meaning: str
    kinds: tuple[str, ...] = (BYTES,)
    rates: bool = False
    at_least: bool = False
    increase: bool = False

    @property
    def of_growth(self) -> bool:
        """Whether it asks whether memory grows, and not only how much there was."""
        return self.name in ("verdict", "errors", "new-findings") or (
            self.rates or self.name.startswith("leaks")
        )


_GROWTH = "of {what} after warm-up: in total, per second (/s), or per mark (per LABEL)"
KINDS: dict[str, BudgetKind] = {
    kind.name: kind
    for kind in (
        BudgetKind("verdict", "outcomes that are fine, with commas between: stable,retained", ()),
        BudgetKind(
            "resident-growth", "growth " + _GROWTH.format(what="resident memory"), rates=True
        ),
        BudgetKind(
            "tracked-growth",
            "growth " + _GROWTH.format(what="live arrays and tensors"),
            (BYTES, OBJECTS),
            rates=True,
        ),
        BudgetKind("native-growth", "growth " + _GROWTH.format(what="native memory"), rates=True),
        BudgetKind("shared-growth", "growth " + _GROWTH.format(what="shared memory"), rates=True),
        BudgetKind("python-growth", "growth " + _GROWTH.format(what="Python's heap"), rates=True),
        BudgetKind(
            "device-growth",
            "growth " + _GROWTH.format(what="what devices hold beyond live objects"),
            rates=True,
        ),
        BudgetKind(
            "recorder-growth",
            "growth " + _GROWTH.format(what="the recorder's own memory"),
            rates=True,
        ),
        BudgetKind(
            "peak", "most arrays and tensors alive at once", (BYTES, OBJECTS), increase=True
        ),
        BudgetKind("resident-peak", "highest resident memory", increase=True),
        BudgetKind(
            "live-at-end",
            "arrays and tensors alive when the program's work ends",
            (BYTES, OBJECTS),
            increase=True,
        ),
        BudgetKind(
            "live-at-exit",
            "arrays and tensors alive when the recording ends",
            (BYTES, OBJECTS),
            increase=True,
        ),
        BudgetKind("allocated", "arrays and tensors allocated", (BYTES, OBJECTS), increase=True),
        BudgetKind("leaks", "what growing lines keep", (BYTES, OBJECTS), increase=True),
        BudgetKind("misuse", "misuses of objects, 0 unless said", (TIMES,), increase=True),
        BudgetKind(
            "pool-hit-rate", "requests served by pools, at least", (PERCENT,), at_least=True
        ),
        BudgetKind("new-findings", "warnings and errors that the baseline does not have", (TIMES,)),
    )
}
"""Budgets by name. ``leaks-CLASS``, ``leaks@PATTERN``, ``native-growth@PATTERN``,
``python-growth@PATTERN``, ``misuse-KIND``, ``peak.ROLE``,
``peak.module@PATTERN`` and ``NAME-increase`` are made beside these."""
AT = "@"
"""Begins the pattern of places that a budget is limited to."""
SAMPLED = {"native-growth": "native memory", "python-growth": "Python's heap"}
"""Budgets that sampled blocks can limit to lines."""
PEAK = "peak."
ROLES = {NAMES[role].lower().replace(" ", "-"): role for role in Role}
"""Roles by the name that they have in a budget: ``optimizer-state``."""
MODULE = f"{PEAK}module@"
PASSING = tuple(outcome for outcome in OUTCOMES if outcome in ("stable", "retained"))
"""Outcomes that pass when there is no budget."""
LEAK_CLASSES = ("growing-site", "growing-array", *FIXES)
INCREASE = "-increase"


def find(name: str) -> BudgetKind | None:
    """The kind of budget that a name stands for; None when there is none."""
    if name in KINDS:
        return KINDS[name]
    base = name.removesuffix(INCREASE)
    if base != name:
        kind = find(base)
        if kind is None or not kind.increase:
            return None
        return BudgetKind(name, f"more {base} than in the baseline", kind.kinds)
    metric, at, pattern = name.partition(AT)
    if at and metric in SAMPLED and pattern:
        what = f"{SAMPLED[metric]} allocated at lines that match {pattern}, by record --heap"
        return BudgetKind(name, "growth " + _GROWTH.format(what=what), rates=True)
    if name.startswith("leaks@") and name != "leaks@":
        return BudgetKind(name, f"what growing lines keep that match {name[6:]}", (BYTES, OBJECTS))
    if name.startswith(MODULE) and name != MODULE:
        of = f"of PyTorch's modules that match {name.removeprefix(MODULE)}"
        return BudgetKind(name, f"memory {of}, at the peak", (BYTES,), increase=True)
    if name.startswith(PEAK) and name.removeprefix(PEAK) in ROLES:
        role = NAMES[ROLES[name.removeprefix(PEAK)]]
        return BudgetKind(name, f"{role} at the peak", (BYTES,), increase=True)
    leak = re.fullmatch(r"leaks-(.+)", name)
    if leak and leak[1] in LEAK_CLASSES:
        return BudgetKind(name, f"leaks of the class {leak[1]}", (BYTES, OBJECTS), increase=True)
    misuse = re.fullmatch(r"misuse-(.+)", name)
    if misuse and misuse[1] in WHAT:
        return BudgetKind(name, f"misuses of the kind {misuse[1]}", (TIMES,), increase=True)
    return None


def names() -> list[str]:
    """Every name, without patterns of sites."""
    found = [*KINDS]
    found += [f"leaks-{name}" for name in LEAK_CLASSES] + [f"misuse-{name}" for name in WHAT]
    found += [f"{PEAK}{name}" for name in ROLES]
    return found + [f"{name}{INCREASE}" for name in found if (k := find(name)) and k.increase]


def suggestion(wrong: str, known: list[str]) -> str:
    """``; did you mean 'peak'?``, or what there is when nothing is alike."""
    close = difflib.get_close_matches(wrong.strip().replace("_", "-"), known, 1, 0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"there are {', '.join(known)}" if len(known) < 30 else f"there are {', '.join(KINDS)}"

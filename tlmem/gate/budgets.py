"""What a user asks of a recording: budgets and options, from the command line and from TOML.

Covers: which TOML file is read (``pyproject.toml`` or a file that is named), parsing with errors
that name key, value and what is known; who wins when both say something.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tlmem.analysis.model import OUTCOMES
from tlmem.errors import TlmemError
from tlmem.gate import budget_kinds
from tlmem.gate.amounts import PERCENT, Amount, Increase, parse_amount, parse_increase
from tlmem.gate.budget_kinds import BudgetKind, suggestion

SHORT, LOSSY, INCOMPLETE = "short", "lossy", "incomplete"
ALLOW = {
    SHORT: "too short, or with too few samples, to be judged",
    LOSSY: "events were lost or are missing",
    INCOMPLETE: "not sealed: killed, still written, cut or damaged",
}
"""Recordings that are refused unless allowed, and what is wrong with them."""
OPTIONS = ("allow", "strict", "baseline", "suppressions")
"""Keys of a TOML table that are not budgets."""

PROJECT = "pyproject.toml"
TABLE = "[tool.tlmem.check]"
TOOLS = ("check",)
"""Tables that ``[tool.tlmem]`` may have."""


class BadOptions(TlmemError):
    """What was asked for cannot be understood, or contradicts itself."""


@dataclass(frozen=True)
class Budget:
    """One budget: its kind, and the limit as a value and as it was written.

    ``origin`` is where it was written; ``implied`` ones were not.
    """

    kind: BudgetKind
    limit: Amount | Increase | tuple[str, ...]
    text: str
    origin: str = ""
    implied: bool = False

    @property
    def name(self) -> str:
        """Its name in the catalogue."""
        return self.kind.name


@dataclass(frozen=True)
class CheckOptions:
    """Everything that was asked for. Budgets are in the order in which they were written."""

    budgets: tuple[Budget, ...] = ()
    allow: frozenset[str] = frozenset()
    strict: bool = False
    baseline: Path | None = None
    suppressions: tuple[Path, ...] = ()
    origins: dict[str, str] = field(default_factory=dict)

    def over(self, below: CheckOptions) -> CheckOptions:
        """These options where they say something, else the other ones."""
        mine = {budget.name for budget in self.budgets}
        rest = tuple(budget for budget in below.budgets if budget.name not in mine)
        return replace(
            self,
            budgets=(*rest, *self.budgets),
            allow=self.allow | below.allow,
            strict=self.strict or below.strict,
            baseline=self.baseline or below.baseline,
            suppressions=(*below.suppressions, *self.suppressions),
        )

    def checked(self) -> CheckOptions:
        """The options themselves.

        Raises:
            BadOptions: a budget compares with a baseline, and there is none.
        """
        for budget in self.budgets:
            relative = isinstance(budget.limit, Increase) or budget.name == "new-findings"
            if relative and self.baseline is None:
                raise BadOptions(
                    f"{budget.origin}: {budget.name} compares with a baseline, and there is none; "
                    "give --baseline FILE."
                )
        return self


def budget(name: str, value: object, origin: str) -> Budget:
    """One budget.

    Args:
        name: such as ``peak``.
        value: a text such as ``24 MB``; in TOML also a whole number, or a list for ``verdict``.
        origin: where it was written, for messages.

    Raises:
        BadOptions: there is no such budget, or it takes no such value.
    """
    kind = budget_kinds.find(name)
    if kind is None:
        known = [*budget_kinds.names(), *OPTIONS]
        raise BadOptions(f"{origin}: there is no budget '{name}'; {suggestion(name, known)}")
    if isinstance(value, bool) or not isinstance(value, str | int | list):
        raise BadOptions(f"{origin}: {name} = {value!r} is not an amount; write it as a text.")
    if name == "verdict":
        return _verdict(kind, value, origin)
    if isinstance(value, list):
        raise BadOptions(f"{origin}: {name} = {value!r} is a list, and not an amount.")
    text = str(value)
    try:
        limit: Amount | Increase
        if name.endswith(budget_kinds.INCREASE):
            limit = parse_increase(text, kind.kinds)
        else:
            limit = parse_amount(text, kind.kinds, kind.rates)
    except ValueError as error:
        raise BadOptions(f"{origin}: {name} = {text!r} {error}.") from None
    if isinstance(limit, Amount) and limit.kind == PERCENT and limit.value > 100:
        raise BadOptions(f"{origin}: {name} = {text!r} is more than 100%.")
    return Budget(kind, limit, text, origin)


def _verdict(kind: BudgetKind, value: object, origin: str) -> Budget:
    words = value if isinstance(value, list) else str(value).split(",")
    outcomes = tuple(str(word).strip() for word in words)
    known = [outcome for outcome in OUTCOMES if outcome != "cannot-judge"]
    for outcome in outcomes:
        if outcome == "cannot-judge":
            raise BadOptions(
                f"{origin}: a verdict that cannot be given is never a pass; allow what stands in "
                "its way, as with --allow short."
            )
        if outcome not in known:
            raise BadOptions(
                f"{origin}: verdict = '{outcome}' is not an outcome; {suggestion(outcome, known)}"
            )
    return Budget(kind, outcomes, ",".join(outcomes), origin)


def from_words(
    budgets: Iterable[str],
    allow: Iterable[str] = (),
    strict: bool = False,
    baseline: str | None = None,
    suppressions: Iterable[str] = (),
) -> CheckOptions:
    """The options of a command line; budgets are written ``NAME=AMOUNT``.

    Raises:
        BadOptions: one of them cannot be understood, or is given twice with two amounts.
    """
    found: dict[str, Budget] = {}
    for word in budgets:
        name, equals, value = word.rpartition("=")
        if not equals or not name.strip() or not value.strip():
            raise BadOptions(f"--budget {word!r} has no amount; write NAME=AMOUNT, as peak=24MB.")
        new = budget(name.strip(), value.strip(), f"--budget {word!r}")
        known = found.setdefault(new.name, new)
        if known.limit != new.limit:
            raise BadOptions(
                f"--budget {new.name} is given twice, as {known.text!r} and as {new.text!r}; "
                "leave one out."
            )
    return CheckOptions(
        budgets=tuple(found.values()),
        allow=_allow([name for word in allow for name in word.split(",")], "--allow"),
        strict=strict,
        baseline=Path(baseline) if baseline else None,
        suppressions=tuple(Path(path) for path in suppressions),
    )


def from_table(table: Mapping[str, Any], origin: str, folder: Path) -> CheckOptions:
    """The options of a TOML table; paths in it are seen from ``folder``.

    Raises:
        BadOptions: a key or a value cannot be understood.
    """
    found: list[Budget] = []
    for key, value in table.items():
        if key in OPTIONS:
            continue
        if isinstance(value, dict):
            raise BadOptions(
                f"{origin}: '{key}' is a table, and budgets are keys; put a name with a dot or a "
                "pattern into quotes."
            )
        found.append(budget(key, value, origin))
    strict = table.get("strict", False)
    if not isinstance(strict, bool):
        raise BadOptions(f"{origin}: strict = {strict!r} is neither true nor false.")
    baseline = table.get("baseline")
    if baseline is not None and not isinstance(baseline, str):
        raise BadOptions(f"{origin}: baseline = {baseline!r} is not the name of a file.")
    return CheckOptions(
        budgets=tuple(found),
        allow=_allow(_texts(table, "allow", origin), f"{origin}: allow"),
        strict=strict,
        baseline=folder / baseline if baseline else None,
        suppressions=tuple(folder / path for path in _texts(table, "suppressions", origin)),
    )


def _texts(table: Mapping[str, Any], key: str, origin: str) -> list[str]:
    """A text, or a list of texts."""
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise BadOptions(f"{origin}: {key} = {value!r} is neither a text nor a list of texts.")
    return values


def _allow(names: Iterable[str], origin: str) -> frozenset[str]:
    allowed = frozenset(name.strip() for name in names)
    for name in sorted(allowed - set(ALLOW)):
        raise BadOptions(f"{origin} '{name}' is not known; {suggestion(name, list(ALLOW))}")
    return allowed


def from_file(path: str | None, start: Path | None = None) -> CheckOptions:
    """The options of a file.

    Args:
        path: a TOML file: ``pyproject.toml`` or one whose keys stand at the top. None: the
            nearest ``pyproject.toml`` in ``start`` or above it, when that has our table.
        start: None for the current directory.

    Raises:
        BadOptions: it is missing, no TOML, or says something that is not understood.
    """
    file = Path(path) if path is not None else _nearest_project(start or Path.cwd())
    if file is None:
        return CheckOptions()
    data = _read_toml(file)
    if file.name != PROJECT and "tool" not in data:
        return from_table(data, str(file), file.parent)
    table = _check_table(data, file)
    if table is None:
        if path is not None:
            raise BadOptions(f"{file} has no table {TABLE}; write the budgets there.")
        return CheckOptions()
    return from_table(table, f"{file} {TABLE}", file.parent)


def _nearest_project(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if (folder / PROJECT).is_file():
            return folder / PROJECT
    return None


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise BadOptions(f"{file} cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOptions(f"{file} is not TOML: {error}.") from None


def _check_table(data: dict[str, Any], file: Path) -> dict[str, Any] | None:
    ours = data.get("tool", {}).get("tlmem", {})
    for key in ours:
        if key not in TOOLS:
            raise BadOptions(
                f"{file} [tool.tlmem]: '{key}' is not known; {suggestion(key, list(TOOLS))}"
            )
    table = ours.get("check")
    if table is not None and not isinstance(table, dict):
        raise BadOptions(f"{file} [tool.tlmem]: check = {table!r} is not a table.")
    return table

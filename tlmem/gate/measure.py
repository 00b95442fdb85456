"""From recordings to the value of each budget, with the interval that it surely lies in.

Covers: one function for each kind of budget. Does not cover: whether a value is too much; see
``decision``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlmem.analysis.leaks.alive_at_end import alive_by_line
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.ledger.misuse import WHAT
from tlmem.analysis.model import Finding
from tlmem.gate import peak_parts
from tlmem.gate.amounts import BYTES, PERCENT, TIMES
from tlmem.gate.budget_kinds import AT, MODULE, PEAK, SAMPLED
from tlmem.gate.growth_rates import NotMeasured, growth, sampled_growth
from tlmem.gate.inputs import LEAKS, Judged, Subject, kinds_of_growth
from tlmem.gate.suppressions import matches_site

MISUSES = (*WHAT, "misuse")


@dataclass(frozen=True)
class Measured:
    """A value of a ``kind`` (``per`` second or mark), surely from ``low`` to ``high``.

    ``findings`` are those that brought it about, the worst first. ``even`` is False of a growth
    that is a step or noise. ``note`` is a sentence about where the value is from.
    """

    value: float
    low: float
    high: float
    kind: str
    per: str = ""
    findings: tuple[Finding, ...] = ()
    even: bool = True
    note: str = ""


def exact(value: float, kind: str, findings: tuple[Finding, ...] = ()) -> Measured:
    """A value that is known."""
    return Measured(value, value, value, kind, findings=findings)


def measure(name: str, kind: str, per: str, subject: Subject) -> Measured:
    """The value that a budget limits.

    Args:
        name: of the budget, without ``-increase``.
        kind, per: of its amount.

    Raises:
        NotMeasured: the recording does not show it.
    """
    if name.partition(AT)[0] in SAMPLED and AT in name:
        return _growth_of_lines(name, per, subject)
    if name.endswith("-growth"):
        return _growth(name, kind, per, subject)
    if name.startswith("leaks"):
        return _leaks(name, kind, subject)
    if name.startswith("misuse"):
        return _misuse(name, subject)
    if name.startswith(PEAK):
        return _peak_part(name, subject)
    return _PLAIN[name](subject, kind)


def _growth(name: str, kind: str, per: str, subject: Subject) -> Measured:
    """The growth of the process that grows most. One that was too short is left out if others
    were not."""
    metric = name.removesuffix("-growth")
    found, why = [], ""
    for judged in subject.processes:
        try:
            found.append(growth(judged, metric, kind, per))
        except NotMeasured as error:
            why = why or str(error)
    if not found:
        raise NotMeasured(why)
    worst = max(found, key=lambda growth: (growth.even, growth.low, growth.value))
    kinds = kinds_of_growth(metric)
    guilty = tuple(finding for finding in subject.findings if finding.kind in kinds)
    return Measured(worst.value, worst.low, worst.high, kind, per, guilty, worst.even)


def _growth_of_lines(name: str, per: str, subject: Subject) -> Measured:
    """The growth of lines that match a pattern, of the process in which they grow most."""
    metric, _, pattern = name.partition(AT)
    memory = metric.removesuffix("-growth")
    found, why = [], ""
    for judged in subject.processes:
        try:
            found.append(sampled_growth(judged, memory, pattern, per))
        except NotMeasured as error:
            why = why or str(error)
    if not found:
        raise NotMeasured(why)
    worst = max(found, key=lambda growth: (growth.even, growth.low, growth.value))
    guilty = tuple(
        each
        for each in subject.findings
        if each.kind == f"{memory}-site" and matches_site(pattern, each)
    )
    note = "Estimated from sampled blocks of the heap."
    return Measured(worst.value, worst.low, worst.high, BYTES, per, guilty, worst.even, note)


def _leaks(name: str, kind: str, subject: Subject) -> Measured:
    """What growing lines keep, those of one class, or those at places that match a pattern."""
    of, pattern = LEAKS, ""
    if name.startswith("leaks@"):
        pattern = name.removeprefix("leaks@")
    elif name != "leaks":
        of = name.removeprefix("leaks-")
    found = [f for f in subject.findings if f.kind == of]
    if name == "leaks":
        found += [f for f in subject.findings if f.kind == "tape-growth"]
    if pattern:
        found = [f for f in found if matches_site(pattern, f)]
    value = sum(f.bytes if kind == BYTES else f.count for f in found)
    classes = [f for f in subject.findings if f.kind in FIXES and f.site in {g.site for g in found}]
    # 300 views are a leak, and have no bytes of their own.
    if kind == BYTES and value == 0 and found:
        value = sum(f.count for f in found)
    return exact(value, kind, (*found, *(f for f in classes if f not in found)))


def _misuse(name: str, subject: Subject) -> Measured:
    of = (name.removeprefix("misuse-"),) if name != "misuse" else MISUSES
    found = tuple(f for f in subject.findings if f.kind in of)
    return exact(sum(f.count for f in found), TIMES, found)


def _total(which: str) -> Callable[[Subject, str], Measured]:
    """A counter of all sources; of a family the sum, at least that of the largest process."""

    def value(subject: Subject, kind: str) -> Measured:
        key = f"{which}_{'bytes' if kind == BYTES else 'count'}"
        each = [process.totals[key] for process in subject.summary.processes]
        if which == "peak":
            return Measured(sum(each), max(each), sum(each), kind, findings=_alive(subject))
        return exact(sum(each), kind, _alive(subject))

    return value


def _alive(subject: Subject) -> tuple[Finding, ...]:
    """The lines that hold most at the end."""
    found = [f for f in subject.findings if f.kind == "live-at-end"]
    return tuple(sorted(found, key=lambda f: -f.bytes)[:3])


def _live_at_end(subject: Subject, kind: str) -> Measured:
    sums = [alive_by_line(judged.lives, judged.places) for judged in subject.processes]
    value = sum(int((held if kind == BYTES else counts).sum()) for counts, held in sums)
    return exact(value, kind, _alive(subject))


def _resident_peak(subject: Subject, kind: str) -> Measured:
    """The system's own high-water mark less the recorder's memory, or the highest sample."""
    low = high = 0.0
    for judged in subject.processes:
        at_least, at_most = _resident_peak_of(judged)
        low, high = max(low, at_least), high + at_most
    return Measured(low, low, high, BYTES, findings=_alive(subject))


def _resident_peak_of(judged: Judged) -> tuple[float, float]:
    samples = judged.recording.samples
    resident = samples["anon"] + samples["file"].ffill() - samples["recorder"].ffill()
    highest = float(resident.max()) if resident.notna().any() else 0.0
    if not samples["high_water"].notna().any():
        if not highest:
            raise NotMeasured("resident memory was never sampled; leave --rss-interval as it is")
        return highest, highest
    mark = float(samples["high_water"].max())
    recorder = float(samples["recorder"].max()) if samples["recorder"].notna().any() else 0.0
    return max(highest, mark - recorder), mark


def _peak_part(name: str, subject: Subject) -> Measured:
    """A role, or modules, at the peak; of a family at least that of the largest process.

    One without PyTorch's memory is left out if others have some.
    """
    found, why = [], ""
    for judged in subject.processes:
        try:
            if name.startswith(MODULE):
                found.append(peak_parts.of_modules(judged, name.removeprefix(MODULE)))
            else:
                found.append(peak_parts.of_role(judged, name.removeprefix(PEAK)))
        except NotMeasured as error:
            why = why or str(error)
    if not found:
        raise NotMeasured(why)
    largest = max(found, key=lambda part: part.bytes)
    total = sum(part.bytes for part in found)
    return Measured(total, largest.bytes, total, BYTES, note=largest.sentence)


def _pool_hit_rate(subject: Subject, kind: str) -> Measured:
    """Hits among the requests to pools of objects; where there were none, to buffers of devices."""
    tables = [judged.recording.pools for judged in subject.processes]
    for of_objects in (True, False):
        rows = [t[(t["pool"] >= 0) == of_objects] for t in tables]
        hits = sum(int(part["hits"].sum()) for part in rows)
        asked = hits + sum(int(part["misses"].sum()) for part in rows)
        if asked:
            guilty = tuple(f for f in subject.findings if f.kind == "pool-never-hits")
            return exact(100.0 * hits / asked, PERCENT, guilty)
    raise NotMeasured("no pool was asked for anything; leave the budget out")


_PLAIN: dict[str, Callable[[Subject, str], Measured]] = {
    "peak": _total("peak"),
    "resident-peak": _resident_peak,
    "live-at-end": _live_at_end,
    "live-at-exit": _total("current"),
    "allocated": _total("total"),
    "pool-hit-rate": _pool_hit_rate,
}
"""How budgets are measured that have no variants."""

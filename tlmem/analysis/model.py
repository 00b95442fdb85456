"""What an analysis hands on: frames, findings, rates, the verdict, the attribution.

Covers: plain values, shared by every analysis and every report.
Does not cover: how they are found; each question has its own module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tlmem.units import format_bytes, format_rate

OUTCOMES = ("stable", "leak", "native", "python", "retained", "driver", "cannot-judge")
"""Every outcome of a verdict."""
SEVERITIES = ("error", "warning", "info")
"""Most important first."""
CONFIDENCE = 0.95
"""How often an interval is meant to hold the true slope."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One place in a program; ``line`` is 0 where it is not known.

    ``source`` finds the text of a line in the recording that the place is of. ``cells`` is how many
    pieces of code without a file, run there, the place stands for; 0 where it is a line.
    """

    file: str
    line: int
    function: str
    source: Callable[[str, int, str], str] | None = field(default=None, compare=False, repr=False)
    cells: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """The line itself, without its indentation; empty where it is not known."""
        if self.source is None or not self.file:
            return ""
        return self.source(self.file, self.line, self.function)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Holder:
    """Somebody who keeps objects alive: ``count`` of them, most of them taken at ``site``.

    Of Python objects that a snapshot saw after ``seen_ns``: ``site`` is the running frame that
    holds them, if one does, ``chain`` every step from there, ``held_bytes`` what they keep and
    ``used_bytes`` what the program's arrays show of it.
    """

    kind: str
    name: str
    site: StackFrame | None = None
    count: int = 1
    chain: str = ""
    seen_ns: int | None = None
    held_bytes: int | None = None
    used_bytes: int | None = None


@dataclass(frozen=True)
class MoreObjects:
    """``more`` objects of one type since ``since_s`` seconds after the begin, ``count`` in the end.

    ``type`` is ``module.Class``, of builtin types the name alone.
    """

    type: str
    more: int
    count: int
    since_s: float

    @property
    def short_name(self) -> str:
        """The type as a line names it: one of the program itself without its module."""
        return self.type.removeprefix("__main__.")


@dataclass(frozen=True)
class Cohort:
    """Objects made from ``begin_s`` to ``end_s`` seconds after the program began.

    ``alive`` and ``alive_bytes`` are those of them that live at each time of the table. What
    cannot be known, because a size limit folded the events, is None.
    """

    begin_s: float
    end_s: float
    made: int | None
    made_bytes: int | None
    alive: tuple[int | None, ...]
    alive_bytes: tuple[int | None, ...]


@dataclass(frozen=True)
class Cohorts:
    """Objects of one line by when they were made, and how many of them lived on and until when.

    ``times_s`` are seconds after the program began; the last is the moment of judging. Before
    ``known_from_s`` nobody knows what was freed. Where a size limit thinned the list of live
    objects, one of ``thinned`` is known, and counts of what was made before are estimates.
    """

    times_s: tuple[float, ...]
    rows: tuple[Cohort, ...]
    noun: str = "array"
    known_from_s: float = 0.0
    thinned: int = 1


@dataclass(frozen=True)
class Finding:
    """One thing worth telling, with the numbers that show it.

    ``count`` objects of together ``bytes``; ``object`` is the number of one of them as an example;
    ``stack`` is innermost first; ``evidence`` is one sentence. Of misuse, ``stack`` is where it was
    committed, ``allocated`` and ``freed`` are where that object was, and ``earlier`` is the other
    place of two that collide: where a value had been saved, where the pass before began. A slope is
    that from ``grew_from_ns`` to ``grew_until_ns`` after the start of the recording. ``passing``
    says that the objects are temporaries of the last moment. ``cohorts``, of a growing line, say
    when its objects were made and how long they lived. ``exit_count`` and ``exit_bytes``, of what
    was alive when judged, are what of it was alive at exit. ``fix`` is what to do about a leak.
    ``types``, of growth of Python's heap, are the types of objects that became more meanwhile.
    """

    kind: str
    severity: str
    count: int
    bytes: int
    evidence: str
    object: int | None = None
    site: StackFrame | None = None
    stack: tuple[StackFrame, ...] = ()
    holders: tuple[Holder, ...] = ()
    slope_bytes_per_s: float | None = None
    slope_low_bytes_per_s: float | None = None
    slope_high_bytes_per_s: float | None = None
    grew_from_ns: int | None = None
    grew_until_ns: int | None = None
    allocated: tuple[StackFrame, ...] = ()
    freed: tuple[StackFrame, ...] = ()
    earlier: tuple[StackFrame, ...] = ()
    passing: bool = False
    cohorts: Cohorts | None = None
    exit_count: int | None = None
    exit_bytes: int | None = None
    fix: str = ""
    types: tuple[MoreObjects, ...] = ()


@dataclass(frozen=True)
class Check:
    """One condition: what a figure was compared with, and whether that held.

    ``rule`` names it in the table of rules, ``how`` is ``at least`` or ``at most``.
    """

    rule: str
    figure: float
    threshold: float
    how: str
    held: bool


FULL = "full"
"""The manner of a line that grew for most of the run and was full before its end."""


@dataclass(frozen=True)
class Asked:
    """The conditions that one curve was asked; all of them held, or the last one did not.

    There are none of a curve with too few points, nor of a line that grows in a ``manner`` of its
    own, one of those of ``sentences``, or grew until it was ``FULL``.
    """

    subject: str
    checks: tuple[Check, ...]
    manner: str = ""

    @property
    def held(self) -> bool:
        """Whether the curve grows, by these conditions or in its manner."""
        if self.manner:
            return self.manner != FULL
        return bool(self.checks) and all(check.held for check in self.checks)


@dataclass(frozen=True)
class Question:
    """One question on the way to a verdict, its answer, and the curves that were asked for it."""

    text: str
    answer: str
    asked: tuple[Asked, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer to "does it grow?": one of ``OUTCOMES`` and the sentence that says why.

    ``slope_bytes_per_s`` and ``grown_bytes`` are 0 when nothing grows and None when that could not
    be judged. ``slope_low_bytes_per_s`` and ``slope_high_bytes_per_s`` are the ends of the slope's
    95% interval, None when nothing grows. ``resolution_bytes_per_s`` says, of ``stable``, which
    steady growth of native memory would have been seen. ``only_growth`` says, of ``cannot-judge``,
    that amounts are known all the same. ``trace`` are the questions that were asked, in order; the
    last one decided.
    """

    outcome: str
    sentence: str
    slope_bytes_per_s: float | None = None
    grown_bytes: int | None = None
    slope_low_bytes_per_s: float | None = None
    slope_high_bytes_per_s: float | None = None
    resolution_bytes_per_s: float | None = None
    only_growth: bool = False
    trace: tuple[Question, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Attribution:
    """Where resident memory is, in bytes; parts and residual add up to ``resident_bytes``.

    From ``native_bytes`` on they are parts of ``other_bytes``, and add up to it.
    """

    resident_bytes: int = 0
    tracked_bytes: int = 0
    untouched_bytes: int = 0
    pool_bytes: int = 0
    python_bytes: int = 0
    allocator_free_bytes: int = 0
    tape_bytes: int = 0
    recorder_bytes: int = 0
    other_bytes: int = 0
    residual_bytes: int = 0
    native_bytes: int = 0
    mapped_bytes: int = 0
    library_bytes: int = 0
    stack_bytes: int = 0
    file_bytes: int = 0
    shared_bytes: int = 0
    known: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Change:
    """By how much each part of resident memory grew; negative: shrank.

    ``begin_s`` and ``end_s`` are the two moments, in seconds since the program began; None for
    sums over processes, each of which has its own.
    """

    parts: Attribution
    begin_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True)
class Peak:
    """The parts of resident memory when it was highest, ``at_s`` seconds after the begin."""

    parts: Attribution
    at_s: float | None = None


@dataclass(frozen=True)
class Rate:
    """Growth per unit of x: the median slope, and the ends of its 95% interval."""

    value: float
    low: float
    high: float

    def per_second(self) -> str:
        """``4.10 MB/s (95% CI 4.02–4.20)``, of bytes over seconds.

        An interval that reaches down to nothing says nothing of what is known to grow:
        ``4.10 MB/s on average``.
        """
        if self.low <= 0:
            return f"{format_rate(self.value)} on average"
        return f"{format_rate(self.value)} ({interval(self, format_rate)})"


def interval(rate: Rate, form: Callable[[float], str]) -> str:
    """``95% CI 4.02–4.20``: units are left out where both ends have that of the value."""
    low, high = form(rate.low), form(rate.high)
    _, _, unit = form(rate.value).rpartition(" ")
    if unit and low.endswith(f" {unit}") and high.endswith(f" {unit}"):
        low, high = low.removesuffix(f" {unit}"), high.removesuffix(f" {unit}")
    return f"{CONFIDENCE:.0%} CI {low}\N{EN DASH}{high}"


@dataclass(frozen=True)
class MarkGrowth:
    """Growth per step of one label, in bytes and objects; None where it was not measured.

    ``count`` marks from ``first_index`` to ``last_index`` were judged, of ``marks``. ``resident``
    is anonymous memory less the recorder's, ``native`` what the C allocator has handed out to
    neither arrays nor Python, ``python`` Python's own heap.
    """

    label: str
    marks: int
    count: int
    first_index: int
    last_index: int
    tracked_bytes: Rate | None
    tracked_objects: Rate | None
    resident_bytes: Rate | None
    native_bytes: Rate | None
    python_bytes: Rate | None


@dataclass(frozen=True)
class ScopeGrowth:
    """Scopes of one label that were entered and left, and what was made inside them.

    Of ``made`` objects ``outlived`` were alive when their scope had been left, and of those
    ``kept``, together ``kept_bytes``, when the program was judged.
    """

    label: str
    scopes: int
    made: int
    outlived: int
    kept: int
    kept_bytes: int

    @property
    def kept_per_scope(self) -> float:
        """Objects that one scope leaves behind for good, on average."""
        return self.kept / self.scopes

    @property
    def bytes_per_scope(self) -> float:
        """Bytes that one scope leaves behind for good, on average."""
        return self.kept_bytes / self.scopes


@dataclass(frozen=True)
class Estimate:
    """So many bytes, with the ends of their 95 % interval, and so many blocks."""

    bytes: float
    low: float
    high: float
    count: float

    @property
    def sign(self) -> str:
        """What stands before its numbers; nothing where every block was recorded."""
        return "" if self.low == self.high else "\N{ALMOST EQUAL TO} "

    def __str__(self) -> str:
        return f"{format_bytes(self.bytes)} ({format_bytes(self.low)} to {format_bytes(self.high)})"


@dataclass(frozen=True)
class HeapLine:
    """What one line has of the heap, estimated from so many sampled blocks."""

    site: StackFrame
    about: Estimate
    samples: int


@dataclass(frozen=True)
class HeldHeap:
    """Sampled heap that is alive at one moment, of one ``memory``: ``native`` or ``python``.

    ``lines`` have most bytes first. ``rest`` is what ``others``, as many lines, have together; it
    is None without any.
    """

    memory: str
    whole: Estimate
    lines: tuple[HeapLine, ...]
    others: int = 0
    rest: Estimate | None = None


@dataclass(frozen=True)
class Analysis:
    """Everything found in one recording, findings most important first.

    ``judged_ns`` is the last moment at which what the program holds is still held; ``heap`` is what
    was sampled of the heap at that moment.
    """

    verdict: Verdict
    attribution: Attribution
    findings: tuple[Finding, ...]
    growth: Change | None = None
    peak: Peak | None = None
    per_mark: tuple[MarkGrowth, ...] = ()
    per_scope: tuple[ScopeGrowth, ...] = ()
    judged_ns: int = 0
    heap: tuple[HeldHeap, ...] = ()

"""Every threshold on the way to a verdict: its value, its unit and why it is what it is.

A rule is a number that knows its name. A condition compares a figure with a rule and keeps the
comparison (``Checks``), which ``tlmem report --explain`` prints. ``make ablation`` judges programs
with each rule switched off: a rule that changes nothing there has no place here.

Covers: the table, and comparisons with it. Does not cover: how finely curves are looked at (numbers
of bins and moments), which are constants where they are used.
See also: docs/reference/rules.md, written from this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tlmem.analysis.model import Check


class Rule(float):
    """A threshold.

    Attributes:
        name: what the rule is called.
        unit: of the value.
        reason: why the condition is there, in one sentence.
        off: the value with which the condition refuses nothing, or finds nothing.
    """

    name: str
    unit: str
    reason: str
    off: float

    def __new__(cls, value: float, unit: str, reason: str, off: float) -> Rule:
        rule = super().__new__(cls, value)
        rule.name, rule.unit, rule.reason, rule.off = "", unit, reason, off
        return rule

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class Rules:
    """The table: each attribute is a rule."""

    # The run
    active = Rule(
        0.985,
        "of all births",
        "the program's activity ends here: a last print or plot may follow when the work is done",
        off=1.0,
    )
    unwinding = Rule(
        0.1,
        "of the run",
        "what is freed in this last part may be freed because the program ends",
        off=0.0,
    )
    latest_begin = Rule(
        0.4,
        "of the run",
        "work has begun here even when no array was made: imports take less",
        off=1.0,
    )
    usual = Rule(
        0.99,
        "of all gaps",
        "gaps between events that are longer than nearly all are pauses",
        off=1.0,
    )
    longest_pause = Rule(
        0.02, "of the time without pauses", "the most that one pause counts", off=1e9
    )
    shortest_run_s = Rule(
        0.15,
        "s",
        "a shorter run is all warm-up, unless a line keeps `many_survivors`",
        off=0.0,
    )

    # How much
    fewest_survivors = Rule(10, "objects", "fewer are a model or a buffer, not a habit", off=2)
    few_survivors = Rule(
        20, "objects", "fewer must have `least_bytes_of_few`: large parts of a model", off=2
    )
    least_bytes_of_few = Rule(
        100_000, "bytes", "fewer bytes in fewer than `few_survivors` are small change", off=1e15
    )
    many_survivors = Rule(
        300,
        "objects",
        "so many are a habit whatever their size and however short the run",
        off=1e15,
    )
    least_bytes = Rule(2_500, "bytes", "less is small change", off=0)
    large_share = Rule(
        0.25,
        "of the survivors",
        "so many of the largest, at most nine, count as the others do: a buffer or two among small "
        "results",
        off=0.0,
    )

    # How evenly
    unevenness = Rule(
        0.27,
        "of the rise",
        "what grows with the root or the square of time differs by less from an even rise; a cache "
        "that fills, lazy loading and finitely many keys differ by more",
        off=1.0,
    )
    chance = Rule(
        0.4,
        "of the rise, over the root of the survivors",
        "what chance adds to unevenness",
        off=0.0,
    )
    late_rate = Rule(
        0.3,
        "of the even pace",
        "a cache that has just become full rises no more at the end",
        off=0.0,
    )
    backlog = Rule(
        0.1,
        "of the growth",
        "what never fell by more may have any survivors: a queue that is emptied too slowly",
        off=0.0,
    )
    generations = Rule(
        0.7, "of ten parts of the life", "have survivors: they come from everywhere", off=0.0
    )
    fair_part = Rule(0.25, "of the average part", "a part with fewer has none to speak of", off=0.0)
    own_clock = Rule(
        0.6,
        "of a clock",
        "a clock that a line drives by more does not vote: all is even on it",
        off=2.0,
    )

    # How long
    reach = Rule(
        0.8,
        "of the activity",
        "growth lasts up to here on two of three clocks: warm-up and models are early",
        off=0.0,
    )
    wall_reach = Rule(
        0.7,
        "of the run",
        "growth lasts up to here in time: data that is loaded or cached, and then used, is needed",
        off=0.0,
    )
    span = Rule(
        0.3,
        "of the activity, of a curve",
        "growth lasts so long: a list filled in a short last phase is a result",
        off=0.0,
    )

    # Growth that began in the run
    late_survivors = Rule(
        40, "objects", "a look at every line's last part finds one that chance made grow", off=1e15
    )
    slowing = Rule(
        1.25, "times the last pace", "an earlier regime was faster: the rise is ending", off=1e9
    )
    given_back = Rule(
        0.3, "of the last rise", "more had risen and fallen before: it will be freed again", off=1e9
    )

    # Growth that counts hide
    fewest_values = Rule(
        4,
        "objects alive at a time",
        "a single array that becomes larger may be a larger problem",
        off=1,
    )
    least_bytes_of_values = Rule(
        1_000_000, "bytes", "values or arrays that grow hold so much in the end", off=1e15
    )
    least_factor = Rule(4, "times", "they hold so many times what they held at first", off=1.0)
    more_values = Rule(
        1.5, "times", "with more objects than so many times, it is not values that grow", off=1e9
    )
    fewest_troughs = Rule(6, "troughs", "six values rise by chance in 1 of 720 cases", off=1e15)
    rise_of_troughs = Rule(0.5, "of the median tooth", "the troughs rise by more", off=0.0)
    fewest_lines = Rule(
        3, "lines", "growth is spread over so many lines, or it is that of one", off=1e15
    )

    # Samples
    warm_up = Rule(0.35, "of the run", "rises in every program", off=0.0)
    native_bytes = Rule(150_000, "bytes", "a healthy process drifts by less", off=1)
    resident_bytes = Rule(
        4_000_000, "bytes", "the same of what no allocator explains, by resident memory", off=1e15
    )
    heap_bytes = Rule(
        1_000_000,
        "bytes",
        "the same of Python's heap, which comes in arenas of 1 MB, of devices and of tapes",
        off=1,
    )
    relative = Rule(0.01, "of the level", "a large process drifts by more", off=0.0)
    largest_step = Rule(
        0.4, "of the rise", "a few large steps are lazy imports, or buffers made once", off=1e9
    )
    sure = Rule(
        0.4,
        "of the slope",
        "the low end of its interval: the slope of a curve that bends is unsure",
        off=-1e9,
    )
    retained_bytes = Rule(
        40_000_000,
        "bytes",
        "freed memory that stays: allocators, and pools of devices, keep less for their own use",
        off=1,
    )
    retained_share = Rule(0.5, "of resident memory", "the same", off=0.0)

    # What still rises at the end
    unsettled_bytes = Rule(8_000_000, "bytes", "less is not worth a doubt", off=1e15)
    unsettled_share = Rule(0.15, "of resident memory", "the same", off=0.0)

    # What was not seen
    unseen_bytes = Rule(
        50_000_000,
        "bytes",
        "less, beside a process with NumPy, explains no problem",
        off=1,
    )
    unseen_cpu_s = Rule(0.5, "s", "an interpreter takes less for its imports alone", off=0.0)

    # What the growth belongs to
    python_per_array = Rule(
        4_000,
        "bytes",
        "Python objects that come with a kept array are not growth of their own",
        off=1,
    )
    most_containers = Rule(
        1_000_000, "containers", "a collector that waits for more is as good as off", off=1e15
    )
    bounded = Rule(
        0.95,
        "of the survivors seen",
        "are in containers with a bound, or something else keeps some as well",
        off=0.0,
    )
    filled = Rule(0.25, "of its bound", "a container that has less is not bounded by it", off=0.0)
    most_of_an_item = Rule(
        4, "arrays for each item", "with more, what the items are may grow", off=1e9
    )
    slack = Rule(1.1, "of the room", "more survivors than fit: something else keeps them", off=1e9)
    majority = Rule(
        0.5, "of the survivors", "must have been seen in Python to say who holds them", off=0.0
    )
    nearly_all = Rule(0.8, "of the survivors", "are of one kind to say that their line is", off=0.0)


RULES = Rules()
"""The rules that hold."""


def rules() -> list[Rule]:
    """The table in its order."""
    return [rule for rule in vars(Rules).values() if isinstance(rule, Rule)]


@contextmanager
def without(rule: Rule) -> Iterator[None]:
    """Switches one rule off, for as long as the context lasts."""
    off = Rule(rule.off, rule.unit, rule.reason, rule.off)
    off.name = rule.name
    setattr(RULES, rule.name, off)
    try:
        yield
    finally:
        delattr(RULES, rule.name)


class Checks(list[Check]):
    """The conditions that one curve was asked, in order; the last one may not hold."""

    def at_least(self, rule: Rule, figure: float, threshold: float | None = None) -> bool:
        """Whether a figure reaches a rule, or a threshold that was made from it."""
        least = float(rule if threshold is None else threshold)
        return self._made(rule, figure, least, "at least", figure >= least)

    def at_most(self, rule: Rule, figure: float, threshold: float | None = None) -> bool:
        """Whether a figure stays within a rule, or a threshold that was made from it."""
        most = float(rule if threshold is None else threshold)
        return self._made(rule, figure, most, "at most", figure <= most)

    def failed(self) -> int:
        """How many did not hold."""
        return sum(not check.held for check in self)

    def _made(self, rule: Rule, figure: float, threshold: float, how: str, held: bool) -> bool:
        self.append(Check(rule.name, float(figure), threshold, how, bool(held)))
        return bool(held)

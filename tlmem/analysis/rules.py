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
    unwinding = Rule(
        0.1,
        "of the run",
        "what is freed later may be freed because the program ends",
        off=0.0,
    )
    usual = Rule(
        0.99,
        "of all",
        "longer gaps between events, and longer lives in a ring buffer, are not the usual ones",
        off=1.0,
    )
    longest_pause = Rule(
        0.02,
        "of the time without pauses",
        "a pause counts no more than this, as the machine may have made it",
        off=1e9,
    )
    shortest_run_s = Rule(
        2.0,
        "s",
        "in a shorter run what grows may be a cache that is emptied later, unless a line keeps "
        "`many_survivors`; what rises at its end leaves a doubt from `least_bytes_of_few` on",
        off=0.0,
    )

    brief = Rule(
        0.1,
        "of the whole",
        "a cell, or code without a file, that works for longer is a place of its own; more time "
        "between two imports is not that of one module",
        off=1.0,
    )

    # How much
    fewest_survivors = Rule(
        10,
        "objects",
        "fewer of anything are a model, a buffer or chance, not a habit",
        off=2,
    )
    few_survivors = Rule(
        20,
        "objects",
        "fewer must have `least_bytes_of_few`, as they may be parts of a model",
        off=2,
    )
    least_bytes_of_few = Rule(
        100_000,
        "bytes",
        "fewer bytes in fewer than `few_survivors` objects do not matter, nor does a smaller rise "
        "at the end of a short run",
        off=1e15,
    )
    many_survivors = Rule(
        300,
        "objects",
        "so many are a habit, whatever their size and however short the run",
        off=1e15,
    )
    least_bytes = Rule(
        2_500,
        "bytes",
        "less does not matter",
        off=0,
    )
    large_share = Rule(
        0.25,
        "of the survivors",
        "a few large objects among many small ones are a buffer, and count as the others do",
        off=0.0,
    )

    # How evenly
    unevenness = Rule(
        0.27,
        "of the rise",
        "a rise with the root or the square of time differs less from an even one; a cache that "
        "fills, lazy loading and finitely many keys differ more",
        off=1.0,
    )
    chance = Rule(
        0.4,
        "of the rise, over the root of the survivors",
        "chance makes few survivors more uneven",
        off=0.0,
    )
    late_rate = Rule(
        0.3,
        "of the even pace",
        "a cache that has just become full does not rise at the end",
        off=0.0,
    )
    backlog = Rule(
        0.1,
        "of the growth",
        "what fell by more on the way may have been emptied: survivors must come from everywhere",
        off=0.0,
    )
    generations = Rule(
        0.7,
        "of the parts of a line's life",
        "survivors of a list that was emptied come from its last parts alone",
        off=0.0,
    )
    fair_part = Rule(
        0.25,
        "of the average part",
        "a part of the life with fewer survivors counts as one without",
        off=0.0,
    )
    own_clock = Rule(
        0.6,
        "of a clock",
        "a line that drives more of a clock is even on it, whatever it does",
        off=2.0,
    )

    # How long
    reach = Rule(
        0.8,
        "of the activity",
        "growth that ends earlier is warm-up, or a model; two of three clocks must agree",
        off=0.0,
    )
    wall_reach = Rule(
        0.65,
        "of the run",
        "data that is loaded or cached, and then used for longer, is needed",
        off=0.0,
    )
    span = Rule(
        0.3,
        "of the run, or of a curve",
        "a list that is filled in a short last phase is a result",
        off=0.0,
    )

    ages = Rule(
        1.5,
        "times",
        "what is freed at the same age as before has expired; in a queue that grows, objects wait "
        "longer and longer",
        off=0.0,
    )

    # Growth that began in the run
    late_survivors = Rule(
        40,
        "objects",
        "a look at the last part of every line would find one that chance made grow",
        off=1e15,
    )
    slowing = Rule(
        1.25,
        "times the last pace",
        "an earlier regime that rose faster shows that the rise is ending",
        off=1e9,
    )
    given_back = Rule(
        0.3,
        "of the last rise",
        "what had risen and fallen before will be freed again",
        off=1e9,
    )

    # Growth that counts hide
    fewest_values = Rule(
        4,
        "objects alive at a time",
        "fewer arrays that become larger may be those of a larger problem",
        off=1,
    )
    least_bytes_of_values = Rule(
        1_000_000,
        "bytes",
        "values that become larger, and hold less in the end, do not matter unless new data is "
        "joined",
        off=1e15,
    )
    least_factor = Rule(
        4,
        "times",
        "values that become larger hold so many times what they held at first",
        off=1.0,
    )
    more_values = Rule(
        1.5,
        "times",
        "with more objects than before it is not the values that grow",
        off=1e9,
    )
    fewest_troughs = Rule(
        6,
        "troughs",
        "six values rise by chance in 1 of 720 cases",
        off=1e15,
    )
    fewest_lines = Rule(
        3,
        "lines",
        "growth of large objects that fewer lines share is that of each of them",
        off=1e15,
    )

    # Samples
    warm_up = Rule(
        0.35,
        "of the run",
        "memory rises in every program at first",
        off=0.0,
    )
    native_bytes = Rule(
        500_000,
        "bytes",
        "native memory of a healthy process drifts by less",
        off=1,
    )
    resident_bytes = Rule(
        4_000_000,
        "bytes",
        "resident memory that nothing explains drifts by less in a healthy process",
        off=1e15,
    )
    native_per_size = Rule(
        100_000,
        "bytes",
        "libraries below PyTorch keep as much for each size of a tensor that is new to them",
        off=0,
    )
    heap_bytes = Rule(
        1_000_000,
        "bytes",
        "Python's heap, devices and tapes of a healthy process drift by less",
        off=1,
    )
    largest_step = Rule(
        0.4,
        "of the rise",
        "a few large steps are lazy imports, or buffers made once",
        off=1e9,
    )
    sure = Rule(
        0.4,
        "of the slope",
        "a slope whose interval reaches lower is that of a curve that bends, or of noise",
        off=-1e9,
    )
    retained_bytes = Rule(
        40_000_000,
        "bytes",
        "allocators and pools of devices keep less for their own use",
        off=1,
    )

    # What still rises at the end
    unsettled_bytes = Rule(
        8_000_000,
        "bytes",
        "less, rising at the end, is not worth a doubt",
        off=1e15,
    )

    # What was not seen
    unseen_bytes = Rule(
        50_000_000,
        "bytes",
        "less that was not seen explains no problem",
        off=1,
    )
    unseen_cpu_s = Rule(
        0.5,
        "s",
        "an interpreter takes less for its imports alone",
        off=0.0,
    )

    # What the growth belongs to
    python_per_array = Rule(
        4_000,
        "bytes",
        "Python objects that come with a kept array are not growth of their own",
        off=1,
    )
    most_containers = Rule(
        1_000_000,
        "containers",
        "a collector that waits for more containers is as good as off",
        off=1e15,
    )
    all_but_few = Rule(
        0.95,
        "of the survivors",
        "what fills a container with a bound has few objects elsewhere; an array into which others "
        "were joined has nearly their bytes",
        off=0.0,
    )
    filled = Rule(
        0.25,
        "of its bound",
        "a container that has less of its bound is not bounded by it",
        off=0.0,
    )
    most_of_an_item = Rule(
        4,
        "arrays for each item",
        "with more arrays for each item, the items may grow",
        off=1e9,
    )
    slack = Rule(
        1.1,
        "of the room",
        "more survivors than fit are kept by something else",
        off=1e9,
    )
    majority = Rule(
        0.5,
        "of the whole",
        "more than half speak for all: of a line, of a rise, of what a snapshot saw",
        off=0.0,
    )
    nearly_all = Rule(
        0.8,
        "of the whole",
        "nearly all must be of one kind to say that a line is",
        off=0.0,
    )


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

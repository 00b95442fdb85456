"""What a recording means: ``analyse(recording)`` says what grows, who holds it, where memory is.

In: the tables of a recording. Out: an ``Analysis``: findings, the verdict, the attribution.
Each folder or module imports only those to its left: ``model``, ``rules``, ``cells``, ``places``,
``heap_samples``, ``own_time``, ``lifetimes`` (births, deaths, clocks) < ``growth`` < ``holders``
< ``leaks``, ``memory``, ``ledger``, ``unseen`` < ``sentences`` < ``judge`` < ``growth_findings``,
``compare`` < ``analyse``.
May import: events, units, analysis.growth, analysis.holders, analysis.leaks,
analysis.memory, analysis.ledger.
Third-party: numpy. Inside functions: scipy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tlmem.analysis.growth.cohorts import with_cohorts
from tlmem.analysis.growth.gathered import gathered_finding, gathered_results
from tlmem.analysis.growth.growing_arrays import enlarging_lines, filled_buffers
from tlmem.analysis.growth.growing_sites import GrowingSite, begun_lately, growing_lines, is_early
from tlmem.analysis.growth.heap_lines import (
    heap_lines,
    sampled_growths,
    with_line_named,
    with_sampled,
)
from tlmem.analysis.growth.hidden_growth import hidden_growth
from tlmem.analysis.growth.late_rise import still_rising, worth_a_doubt
from tlmem.analysis.growth.new_sizes import without_new_sizes
from tlmem.analysis.growth.past_growth import past_findings
from tlmem.analysis.growth.per_mark import Marks, growth_per_mark
from tlmem.analysis.growth.per_scope import scopes_of
from tlmem.analysis.growth.process_growth import judge_samples
from tlmem.analysis.growth.stages import LastStage, last_stages
from tlmem.analysis.growth_findings import (
    filled_buffer_findings,
    larger_array_findings,
    line_findings,
    memory_findings,
    without_one_long_graph,
)
from tlmem.analysis.heap_samples import held_heap
from tlmem.analysis.holders.cells_held import without_results
from tlmem.analysis.holders.containers import contents_beside, with_contents, with_holder_named
from tlmem.analysis.holders.object_types import with_types, with_types_named
from tlmem.analysis.holders.python_holders import with_python_holders
from tlmem.analysis.holders.runtime_holders import with_holders
from tlmem.analysis.holders.survivors import with_graphs
from tlmem.analysis.judge import Evidence, judge
from tlmem.analysis.leaks.alive_at_end import alive_by_line, alive_in, live_at_end
from tlmem.analysis.leaks.cached_objects import without_cached
from tlmem.analysis.leaks.classes import class_findings
from tlmem.analysis.leaks.deep_graphs import deep_graph, deep_graph_findings, with_deep_graph
from tlmem.analysis.leaks.facts import exact_findings
from tlmem.analysis.leaks.filling_caches import filling_finding
from tlmem.analysis.leaks.fragmentation import fragmentation
from tlmem.analysis.leaks.garbage import (
    arrays_in_cycles,
    garbage_finding,
    sort_lines,
    unclear_finding,
)
from tlmem.analysis.leaks.growing_models import extended_findings
from tlmem.analysis.leaks.left_on import modes_left_on
from tlmem.analysis.leaks.loader_workers import worker_findings
from tlmem.analysis.leaks.more_at_a_time import more_at_a_time
from tlmem.analysis.leaks.one_call import SingleCalls, within_one_call, without_one_call
from tlmem.analysis.leaks.one_pass import within_one_pass
from tlmem.analysis.ledger.misuse import misuse_findings
from tlmem.analysis.lifetimes import Lifetimes, is_imported, lifetimes
from tlmem.analysis.memory.attribution import attribute_run
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.memory.mappings import mapped_file_findings
from tlmem.analysis.model import (
    FULL,
    SEVERITIES,
    Analysis,
    Asked,
    Attribution,
    Finding,
    StackFrame,
    Verdict,
)
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import RULES, Checks
from tlmem.analysis.unseen import unseen

if TYPE_CHECKING:
    import pandas as pd

    from tlmem.recording.reader import Recording

MOST_ASKED = 10
"""Lines whose conditions a verdict carries."""

__all__ = ["Analysis", "Attribution", "Finding", "StackFrame", "Verdict", "analyse"]


def importance(finding: Finding) -> tuple[int, bool, int]:
    """What findings are sorted by: the severity, then the bytes, temporaries of the end last."""
    return SEVERITIES.index(finding.severity), finding.passing, -finding.bytes


def analyse(recording: Recording, frugal: bool = False) -> Analysis:
    """All that can be said about one recording; the same events always give the same findings.

    Args:
        frugal: give back the memory of a long recording's events before; later tables that need
            them read them again.
    """

    def made() -> Analysis:
        if frugal:
            recording.release_events()
        return _analyse(recording)

    return recording.kept(("analysis",), made, with_attributes=True)


def _analyse(recording: Recording) -> Analysis:
    evidence = evidence_of(recording)
    places, lives, samples = evidence.places, evidence.lives, evidence.samples
    whole = lifetimes(recording, places, older=True) if is_imported(recording) else lives
    level, growth, peak = attribute_run(
        samples, lives.begin_ns, lives.work_begin_ns, lives.judged_ns
    )
    evidence = replace(
        evidence,
        mapped=mapped_file_findings(
            level, growth, any(rise.kind == "shared" for rise in evidence.rises)
        ),
        unseen=unseen(recording, places, whole, samples, level, peak),
    )
    found = [
        *line_findings(evidence),
        *class_findings(recording, evidence.leaks, evidence.rises),
        *deep_graph_findings(evidence.deep, evidence.rises, places, lives.begin_ns),
        *modes_left_on(recording.info, evidence.rises, bool(evidence.growths)),
        *exact_findings(recording, places, lives, evidence.growing),
        *evidence.unclear,
        *evidence.garbage,
        *evidence.filling,
        *evidence.buffers,
        *evidence.cached,
        *evidence.gathered,
        *evidence.one_pass,
        *evidence.more_at_a_time,
        *(each.finding(lives, places) for each in evidence.last_stages),
        *evidence.one_call,
        *evidence.extended,
        *larger_array_findings(evidence),
        *memory_findings(evidence),
        *heap_lines(recording, places, evidence.rises, lives.judged_ns, evidence.sampled),
        *evidence.past,
        *misuse_findings(recording, places),
        *evidence.mapped,
        *fragmentation(recording, places),
        *(fact.finding() for fact in evidence.unseen),
        *live_at_end(whole, places),
    ]
    alive_in(recording, places)  # so that a comparison finds it kept
    found = with_cohorts(found, lives, places, evidence.growths)
    found = with_holders(found, lives, places)
    found = with_python_holders(found, lives, places, evidence.growths)
    beside = contents_beside(found, recording, lives.judged_ns)
    found = with_contents(found, beside, recording, lives.work_begin_ns, lives.judged_ns)
    found = with_types(found, recording, lives.begin_ns)
    found += worker_findings(found, recording)
    found.sort(key=importance)
    verdict = with_types_named(with_holder_named(judge(evidence), beside, found), found)
    return Analysis(
        verdict=with_line_named(
            verdict, found, recording.heap_rate if recording.heap_sampled else None
        ),
        attribution=level,
        findings=tuple(found),
        growth=growth,
        peak=peak,
        per_mark=growth_per_mark(evidence.marks, lives, samples),
        per_scope=scopes_of(recording, lives),
        judged_ns=lives.judged_ns,
        heap=held_heap(recording, places, lives.judged_ns),
    )


def evidence_of(recording: Recording) -> Evidence:
    """What the verdict on a recording rests on, but for mapped files."""
    places = Places.of(recording)
    lives = with_graphs(lifetimes(recording, places), recording)
    samples = with_devices(recording)
    asked: dict[int, Checks] = {}
    growths = growing_lines(lives, places, asked)
    enlargements = enlarging_lines(lives)
    hidden = hidden_growth(lives, places, growths, enlargements)
    growths = sorted([*growths, *hidden], key=lambda growth: -growth.bytes)
    growths = without_results(growths, lives, places)
    growing = frozenset(growth.group for growth in growths)
    begun = just_begun(recording, places, lives, samples, growing)
    growing = growing.union(growth.group for growth in begun)
    buffers = filled_buffers(lives, worth_a_doubt(lives, samples))
    buffers = [each for each in buffers if each.group not in growing]
    last = last_stages(lives, growths)
    growths = without(growths, (each.growth for each in last))
    last += [LastStage(growth, (), ()) for growth in begun]
    gathered = gathered_results(lives, growths)
    growths = without(growths, (result.growth for result in gathered))
    passing = within_one_pass(recording, lives, growths)
    growths = without(growths, (growth for each in passing for growth in each.growths))
    lines = sort_lines(recording, places, lives, growths)
    full = [line.growth for line in lines.full]
    growths = without(growths, full)
    waiting = [*lines.garbage, *lines.unclear, *lines.filling, *lines.extended, *lines.renewed]
    left = without(growths, (line.growth for line in waiting))
    single = SingleCalls(recording, places)
    by_calls = within_one_call(single, lives, left, lines.leaks)
    left = without(left, (growth for growth, _ in by_calls))
    leaks = [line for line in lines.leaks if any(line.growth is growth for growth in left)]
    memory: list[Asked] = []
    resident = judge_samples(samples, lives.work_begin_ns, lives.judged_ns, lives.progress, memory)
    resident = without_one_long_graph(resident, recording)
    sampled = sampled_growths(recording, places, lives)
    late = still_rising(lives, samples)
    resident = with_sampled(resident, recording, places, lives, samples, sampled, late)
    deep = deep_graph(recording)
    resident = with_deep_graph(resident, deep, samples, lives)
    sizes = None
    if deep is None:
        resident, sizes = without_new_sizes(resident, lives)
    resident, cached = without_cached(resident, recording, lives)
    resident, in_calls = without_one_call(resident, single, lives)
    return Evidence(
        recording=recording,
        places=places,
        lives=lives,
        samples=samples,
        growths=[growth for growth in left if not is_early(growth, lives)],
        early=[growth for growth in left if is_early(growth, lives)],
        growing=growing,
        enlargements=[
            each
            for each in enlargements
            if each.group not in growing and each.last_bytes >= RULES.least_bytes_of_values
        ],
        resident=resident,
        marks=Marks.of(recording.marks, lives.judged_ns),
        leaks=leaks,
        garbage=[garbage_finding(line) for line in lines.garbage],
        unclear=[unclear_finding(line) for line in lines.unclear],
        filling=[filling_finding(line) for line in lines.filling],
        buffers=filled_buffer_findings(lives, places, buffers),
        cached=[cached.finding()] if cached else [],
        gathered=[gathered_finding(lives, places, result) for result in gathered],
        one_pass=[each.finding(lives, places) for each in passing],
        last_stages=last,
        one_call=[*(finding for _, finding in by_calls), *in_calls],
        more_at_a_time=[more_at_a_time(line) for line in lines.renewed],
        extended=extended_findings(recording, lines.extended),
        garbage_arrays=arrays_in_cycles(recording) if waiting else 0,
        unsettled=late,
        past=past_findings(lives, places, growing, full),
        lines=asked_lines(places, lives, asked, hidden, full),
        memory=tuple(memory),
        sampled=sampled,
        deep=deep,
        sizes=sizes,
    )


def just_begun(
    recording: Recording,
    places: Places,
    lives: Lifetimes,
    samples: pd.DataFrame,
    growing: frozenset[int],
) -> list[GrowingSite]:
    """Lines beside those that grow which began to when too little of the run was left to judge."""
    least = worth_a_doubt(lives, samples)
    found = [each for each in begun_lately(lives, places, growing) if each.bytes >= least]
    found = without_results(found, lives, places)
    return [line.growth for line in sort_lines(recording, places, lives, found).leaks]


def without(growths: Iterable[GrowingSite], others: Iterable[GrowingSite]) -> list[GrowingSite]:
    """The growths that are not among the others."""
    known = {id(growth) for growth in others}
    return [growth for growth in growths if id(growth) not in known]


def asked_lines(
    places: Places,
    lives: Lifetimes,
    asked: dict[int, Checks],
    hidden: list[GrowingSite],
    full: list[GrowingSite],
) -> tuple[Asked, ...]:
    """What the lines were asked that keep most bytes at the end, most first."""
    counts, held = alive_by_line(lives, places)
    manners = {growth.group: growth.manner for growth in hidden}
    manners |= {growth.group: FULL for growth in full}
    groups = asked.keys() | manners.keys()
    most = sorted(groups, key=lambda group: (-int(held[group]), -int(counts[group]), group))
    return tuple(
        Asked(place(places.frames[group]), (), manners[group])
        if group in manners
        else Asked(place(places.frames[group]), tuple(asked[group]))
        for group in most[:MOST_ASKED]
    )

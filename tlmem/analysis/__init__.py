"""What a recording means: ``analyse(recording)`` says what grows, who holds it, where memory is.

In: the tables of a recording. Out: an ``Analysis``: findings, the verdict, the attribution.
Each folder or module imports only those to its left: ``model`` (results), ``rules``, ``places``,
``lifetimes`` (births, deaths, clocks) < ``growth`` < ``holders`` < ``leaks``, ``memory``,
``ledger`` < ``sentences`` < ``judge`` < ``growth_findings``, ``compare`` < ``analyse``.
May import: events, units, analysis.growth, analysis.holders, analysis.leaks,
analysis.memory, analysis.ledger.
Third-party: numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlmem.analysis.growth.growing_arrays import enlarging_lines
from tlmem.analysis.growth.growing_sites import growing_lines
from tlmem.analysis.growth.hidden_growth import hidden_growth
from tlmem.analysis.growth.late_rise import still_rising
from tlmem.analysis.growth.per_mark import Marks, growth_per_mark
from tlmem.analysis.growth.per_scope import scopes_of
from tlmem.analysis.growth.process_growth import judge_samples
from tlmem.analysis.growth_findings import (
    larger_array_findings,
    line_findings,
    memory_findings,
    without_one_long_graph,
)
from tlmem.analysis.holders.python_holders import with_python_holders
from tlmem.analysis.holders.runtime_holders import with_holders
from tlmem.analysis.judge import Evidence, judge
from tlmem.analysis.leaks.alive_at_end import alive_by_line, live_at_end
from tlmem.analysis.leaks.bounded_caches import filling_finding
from tlmem.analysis.leaks.classes import class_findings
from tlmem.analysis.leaks.facts import exact_findings
from tlmem.analysis.leaks.garbage import (
    arrays_in_cycles,
    garbage_finding,
    sort_lines,
    unclear_finding,
)
from tlmem.analysis.ledger.misuse import misuse_findings
from tlmem.analysis.lifetimes import Lifetimes, lifetimes
from tlmem.analysis.memory.attribution import attribute_run
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.memory.mappings import mapped_file_findings
from tlmem.analysis.model import (
    SEVERITIES,
    Analysis,
    Asked,
    Attribution,
    Finding,
    StackFrame,
    Verdict,
)
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import Checks

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_ASKED = 10
"""Lines whose conditions a verdict carries."""

__all__ = ["Analysis", "Attribution", "Finding", "StackFrame", "Verdict", "analyse"]


def analyse(recording: Recording) -> Analysis:
    """All that can be said about one recording; the same events always give the same findings."""
    places = Places.of(recording)
    lives = lifetimes(recording, places)
    samples = with_devices(recording)
    marks = Marks.of(recording.marks, lives.judged_ns)
    level, growth, peak = attribute_run(
        samples, lives.begin_ns, lives.work_begin_ns, lives.judged_ns
    )
    asked: dict[int, Checks] = {}
    growths = growing_lines(lives, places, asked)
    growths = sorted(
        [*growths, *hidden_growth(lives, places, growths)], key=lambda growth: -growth.bytes
    )
    lines = sort_lines(recording, places, lives, growths)
    waiting = {id(line.growth) for line in (*lines.garbage, *lines.unclear, *lines.filling)}
    memory: list[Asked] = []
    resident = judge_samples(samples, lives.work_begin_ns, lives.judged_ns, lives.progress, memory)
    evidence = Evidence(
        recording=recording,
        places=places,
        lives=lives,
        growths=[growth for growth in growths if id(growth) not in waiting],
        enlargements=enlarging_lines(lives, places.count),
        resident=without_one_long_graph(resident, recording),
        marks=marks,
        garbage=[garbage_finding(line) for line in lines.garbage],
        unclear=[unclear_finding(line) for line in lines.unclear],
        filling=[filling_finding(line) for line in lines.filling],
        garbage_arrays=arrays_in_cycles(recording) if waiting else 0,
        unsettled=still_rising(samples, lives.work_begin_ns, lives.judged_ns),
        mapped=mapped_file_findings(level, growth),
        lines=asked_lines(places, lives, asked),
        memory=tuple(memory),
    )
    found = [
        *line_findings(evidence),
        *class_findings(recording, lines.leaks, evidence.rises),
        *exact_findings(recording, places, lives, {growth.group for growth in growths}),
        *evidence.unclear,
        *evidence.garbage,
        *evidence.filling,
        *larger_array_findings(evidence),
        *memory_findings(evidence),
        *misuse_findings(recording, places),
        *evidence.mapped,
        *live_at_end(lives, places),
    ]
    found = with_holders(found, lives, places)
    found = with_python_holders(found, lives, places, evidence.growths)
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Analysis(
        verdict=judge(evidence),
        attribution=level,
        findings=tuple(found),
        growth=growth,
        peak=peak,
        per_mark=growth_per_mark(marks, lives, samples),
        per_scope=scopes_of(recording, lives),
        judged_ns=lives.judged_ns,
    )


def asked_lines(places: Places, lives: Lifetimes, asked: dict[int, Checks]) -> tuple[Asked, ...]:
    """What the lines were asked that keep most bytes at the end, most first."""
    counts, held = alive_by_line(lives, places)
    most = sorted(asked, key=lambda group: (-int(held[group]), -int(counts[group])))
    return tuple(
        Asked(place(places.frames[group]), tuple(asked[group])) for group in most[:MOST_ASKED]
    )

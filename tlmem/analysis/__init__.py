"""What a recording means: ``analyse(recording)`` says what grows, who holds it, where memory is.

In: the tables of a recording. Out: an ``Analysis``: findings, the verdict, the attribution.
Each folder or module imports only those to its left: ``model`` (results), ``cells`` (code without
a file), ``places`` (lines),
``lifetimes`` (births, deaths, clocks) < ``growth`` < ``holders`` < ``leaks``, ``memory``,
``ledger`` < ``verdict``, ``compare`` < ``analyse``.
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
from tlmem.analysis.holders.cells_held import without_results
from tlmem.analysis.holders.containers import contents_beside, with_contents, with_holder_named
from tlmem.analysis.holders.python_holders import with_python_holders
from tlmem.analysis.holders.runtime_holders import with_holders
from tlmem.analysis.leaks.alive_at_end import live_at_end
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
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.memory.attribution import attribute_run
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.memory.mappings import mapped_file_findings
from tlmem.analysis.model import SEVERITIES, Analysis, Attribution, Finding, StackFrame, Verdict
from tlmem.analysis.places import Places
from tlmem.analysis.verdict import (
    Evidence,
    enlargement_findings,
    growth_findings,
    judge,
    resident_findings,
    rises_that_count,
    without_one_long_graph,
)

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

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
    growths = growing_lines(lives, places)
    growths = sorted(
        [*growths, *hidden_growth(lives, places, growths)], key=lambda growth: -growth.bytes
    )
    growths = without_results(growths, lives, places)
    lines = sort_lines(recording, places, lives, growths)
    waiting = {id(line.growth) for line in (*lines.garbage, *lines.unclear, *lines.filling)}
    evidence = Evidence(
        recording=recording,
        places=places,
        lives=lives,
        growths=[growth for growth in growths if id(growth) not in waiting],
        enlargements=enlarging_lines(lives, places.count),
        resident=without_one_long_graph(
            judge_samples(samples, lives.work_begin_ns, lives.judged_ns, lives.progress), recording
        ),
        marks=marks,
        garbage=[garbage_finding(line) for line in lines.garbage],
        unclear=[unclear_finding(line) for line in lines.unclear],
        filling=[filling_finding(line) for line in lines.filling],
        garbage_arrays=arrays_in_cycles(recording) if waiting else 0,
        unsettled=still_rising(samples, lives.work_begin_ns, lives.judged_ns),
        mapped=mapped_file_findings(level, growth),
    )
    found = [
        *growth_findings(evidence),
        *class_findings(recording, lines.leaks, rises_that_count(evidence)),
        *exact_findings(recording, places, lives, {growth.group for growth in growths}),
        *evidence.unclear,
        *evidence.garbage,
        *evidence.filling,
        *enlargement_findings(evidence),
        *resident_findings(evidence),
        *misuse_findings(recording, places),
        *evidence.mapped,
        *live_at_end(lives, places),
    ]
    found = with_holders(found, lives, places)
    found = with_python_holders(found, lives, places, evidence.growths)
    beside = contents_beside(found, recording, lives.judged_ns)
    found = with_contents(found, beside, recording, lives.work_begin_ns, lives.judged_ns)
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Analysis(
        verdict=with_holder_named(judge(evidence), beside, found),
        attribution=level,
        findings=tuple(found),
        growth=growth,
        peak=peak,
        per_mark=growth_per_mark(marks, lives, samples),
        per_scope=scopes_of(recording, lives),
        judged_ns=lives.judged_ns,
    )

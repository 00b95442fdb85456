"""From tables to findings: ``analyse(recording)`` answers what grows, who is alive, where memory
is.

Reading order: ``places`` (which line), ``lifetimes`` (when, on which clock), ``growth`` (when a
line grows), ``lines`` (which lines and call paths do), ``enlarging`` (arrays that grow),
``devices`` and ``resident`` (growth outside arrays), ``leaks``, ``keepers`` (who holds what),
``misuse``, ``attribution``, ``verdict``; then why a line grows: ``kept``, ``ownership_leaks``,
``tape_leaks``, ``pool_leaks``, ``leak_classes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlmem.analysis.attribution import attribute
from tlmem.analysis.devices import with_devices
from tlmem.analysis.enlarging import enlarging_lines
from tlmem.analysis.keepers import with_holders
from tlmem.analysis.leak_classes import class_findings
from tlmem.analysis.leaks import live_at_end
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.lines import growing_lines
from tlmem.analysis.misuse import misuse_findings
from tlmem.analysis.model import SEVERITIES, Analysis, Attribution, Finding, Frame, Verdict
from tlmem.analysis.places import Places
from tlmem.analysis.resident import judge_samples
from tlmem.analysis.verdict import (
    Evidence,
    enlargement_findings,
    growth_findings,
    judge,
    resident_findings,
    without_one_long_graph,
)

if TYPE_CHECKING:
    from tlmem.recording import Recording

__all__ = ["Analysis", "Attribution", "Finding", "Frame", "Verdict", "analyse"]


def analyse(recording: Recording) -> Analysis:
    """All that can be said about one recording; the same events always give the same findings."""
    places = Places.of(recording)
    lives = lifetimes(recording, places)
    samples = with_devices(recording)
    evidence = Evidence(
        recording=recording,
        places=places,
        lives=lives,
        growths=growing_lines(lives, places),
        enlargements=enlarging_lines(lives, places.count),
        resident=without_one_long_graph(
            judge_samples(samples, lives.work_begin_ns, lives.judged_ns, lives.progress), recording
        ),
    )
    found = [
        *growth_findings(evidence),
        *class_findings(evidence),
        *enlargement_findings(evidence),
        *resident_findings(evidence),
        *misuse_findings(recording, places),
        *live_at_end(lives, places),
    ]
    found = with_holders(found, lives, places)
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Analysis(
        verdict=judge(evidence),
        attribution=attribute(samples, lives.judged_ns),
        findings=tuple(found),
    )

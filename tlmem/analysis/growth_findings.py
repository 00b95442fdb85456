"""Findings about growth: of lines, of arrays that become larger, of memory outside arrays.

Covers: what grows, as findings with numbers, place, stack and sentence. Does not cover: whether it
grows (``growth``), the words (``sentences``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tlmem.analysis import sentences
from tlmem.analysis.growth.growing_arrays import Enlargement
from tlmem.analysis.growth.process_growth import Resident
from tlmem.analysis.judge import Evidence, with_profiler
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

KINDS = {
    "tape": "tape-growth",
    "native": "native-growth",
    "shared": "shared-growth",
    "driver": "driver-growth",
    "python": "python-growth",
}
"""The finding of each kind of memory."""


def line_findings(evidence: Evidence) -> list[Finding]:
    """One finding for each growing line."""
    places = evidence.places
    return [
        Finding(
            kind="growing-site",
            severity="warning" if evidence.recording.missing_events else "error",
            count=growth.survivors,
            bytes=growth.bytes,
            evidence=sentences.growing(places, evidence.lives, evidence.marks, growth),
            object=growth.example,
            site=places.frames[growth.group],
            stack=places.stack(growth.site),
            slope_bytes_per_s=growth.rate.value,
            slope_low_bytes_per_s=growth.rate.low,
            slope_high_bytes_per_s=growth.rate.high,
            grew_from_ns=growth.first_ns,
            grew_until_ns=growth.judged_ns,
        )
        for growth in evidence.growths
    ]


def larger_array_findings(evidence: Evidence) -> list[Finding]:
    """One finding for each line whose arrays are replaced by ever larger ones."""
    return [
        Finding(
            kind="growing-array",
            severity="warning",
            count=1,
            bytes=found.last_bytes,
            evidence=sentences.larger(evidence.places, found, evidence.lives.noun(found.group)),
            object=found.example,
            site=evidence.places.frames[found.group],
            stack=evidence.places.stack(found.site),
            slope_bytes_per_s=(found.last_bytes - found.first_bytes) / max(1e-3, found.seconds),
        )
        for found in evidence.enlargements
    ]


def filled_buffer_findings(
    lives: Lifetimes, places: Places, found: list[Enlargement]
) -> list[Finding]:
    """One finding for each line whose array is a buffer that is filled to the end."""
    return [
        Finding(
            kind="growing-array",
            severity="warning",
            count=1,
            bytes=each.last_bytes,
            evidence=sentences.filled(places, each, lives.noun(each.group)),
            object=each.example,
            site=places.frames[each.group],
            stack=places.stack(each.site),
        )
        for each in found
    ]


def memory_findings(evidence: Evidence) -> list[Finding]:
    """Findings about memory that belongs to no line."""
    found = [
        Finding(
            kind=KINDS[rise.kind],
            severity="warning",
            count=0,
            bytes=rise.bytes,
            evidence=with_profiler(
                sentences.rising(rise, evidence.lives.begin_ns, evidence.lives.nouns),
                evidence.recording,
            ),
            slope_bytes_per_s=rise.rate.value,
            slope_low_bytes_per_s=rise.rate.low,
            slope_high_bytes_per_s=rise.rate.high,
            grew_from_ns=rise.since_ns,
            grew_until_ns=rise.since_ns + round(rise.seconds * 1e9),
        )
        for rise in evidence.rises
    ]
    retained = evidence.resident.retained
    if retained.bytes:
        rise, text = retained.rise, sentences.retained(retained)
        found.append(
            Finding(
                kind="retained",
                severity="warning",
                count=0,
                bytes=retained.bytes,
                evidence=text,
                slope_bytes_per_s=rise.rate.value if rise else None,
                slope_low_bytes_per_s=rise.rate.low if rise else None,
                slope_high_bytes_per_s=rise.rate.high if rise else None,
            )
        )
    return found


def without_one_long_graph(resident: Resident, recording: Recording) -> Resident:
    """What the samples say, without records that pile up for a pass that is still to come."""
    if len(recording.passes) >= RULES.fewest_survivors:
        return resident
    rises = tuple(rise for rise in resident.rises if rise.kind != "tape")
    return replace(resident, rises=rises)

"""``worker-grows``: a worker process of a PyTorch ``DataLoader`` that keeps more and more.

Each worker has a dataset of its own: what ``__getitem__`` puts into a cache or a list stays in the
worker that was asked, once for each of them, and the program's own process never sees it.

Covers: which recording is a worker's; its lines and its heap that grow.
Does not cover: whether they grow (``growth``); pages that a worker only copies because it counts
references to objects of its parent, which are shared until then and do not grow by themselves.
See also: docs/findings/worker-grows.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tlmem.analysis.model import Finding

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

_LOOP = ("/torch/utils/data/_utils/worker.py", "_worker_loop")
_NUMBERS = re.compile(r"([0-9]{1,9}) of ([0-9]{1,9})")
SAMPLED = {"python-growth": "Python's heap", "native-growth": "Native memory"}
"""Growth outside arrays that is a worker's, and what grows."""


def worker_of(recording: Recording) -> str:
    """``DataLoader worker 0``; without a number where it was killed; empty of other processes."""
    numbers = _NUMBERS.fullmatch(recording.info.get("torch.worker", ""))
    if numbers is not None:
        return f"DataLoader worker {int(numbers[1])}"
    sites = recording.sites
    if recording.parent_pid == 0 or not len(sites):
        return ""
    loops = sites["file"].str.endswith(_LOOP[0]) & (sites["function"] == _LOOP[1])
    return "DataLoader worker" if bool(loops.any()) else ""


def each_has_its_own(recording: Recording) -> str:
    """That other workers keep the same."""
    numbers = _NUMBERS.fullmatch(recording.info.get("torch.worker", ""))
    count = int(numbers[2]) if numbers is not None else 0
    who = f"each of the {count} workers" if count > 1 else "each worker"
    return f"{who} has a dataset of its own and keeps what it makes until it ends"


def in_worker(finding: Finding, recording: Recording) -> Finding:
    """A finding about a cache that only grows, as one about the worker that has it."""
    name = worker_of(recording) if finding.kind == "cache-only-grows" else ""
    if not name:
        return finding
    evidence = f"{name}: {finding.evidence.removesuffix('.')}; {each_has_its_own(recording)}."
    return replace(finding, kind="worker-grows", evidence=evidence)


def worker_findings(found: Sequence[Finding], recording: Recording) -> list[Finding]:
    """One more finding where Python's heap, or native memory, of a worker grows.

    Args:
        found: the findings so far, with their containers; a line whose objects were sampled lends
            its place.
    """
    growth = next((finding for finding in found if finding.kind in SAMPLED), None)
    name = worker_of(recording) if growth is not None else ""
    if growth is None or not name or any(finding.kind == "worker-grows" for finding in found):
        return []
    line = next((f for f in found if f.kind == growth.kind.replace("growth", "site")), None)
    by = f", kept by {growth.holders[0].name}" if growth.holders else ""
    text = f"{SAMPLED[growth.kind]} of {name} grows{by}: {each_has_its_own(recording)}."
    return [
        replace(
            growth,
            kind="worker-grows",
            evidence=text,
            site=line.site if line is not None else None,
            stack=line.stack if line is not None else (),
        )
    ]

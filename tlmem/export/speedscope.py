"""Stacks with their bytes, for speedscope: flame graphs in a browser.

Covers: profiles of bytes and objects, alive and in all. Does not cover: time; see ``perfetto``.
Source: https://www.speedscope.app/file-format-schema.json, "sampled" profiles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tlmem.recording.reader import Recording
from tlmem.report.site_sums import StackTree, stack_tree

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PROFILES = (
    ("bytes alive when judged", "bytes"),
    ("objects alive when judged", "none"),
    ("bytes allocated in all", "bytes"),
    ("objects allocated in all", "none"),
)
"""Name and unit of a profile for each of ``stacks.MEASURES``."""


def write(recording: Recording, place: Path) -> str:
    """Writes the file; what comes from different lines of a function stays apart."""
    text = json.dumps(document(recording), separators=(",", ":"), ensure_ascii=True)
    place.write_text(text + "\n", encoding="utf-8")
    return ""


def document(recording: Recording) -> dict[str, Any]:
    """The file as plain dicts and lists."""
    tree = stack_tree(recording)
    frames: dict[tuple[str, str, int], int] = {}
    of_node = [
        frames.setdefault((frame.function or "?", frame.file, frame.line), len(frames))
        for frame in tree.frames
    ]
    profiles = [profile(tree, of_node, measure) for measure in range(len(PROFILES))]
    filled = [number for number, made in enumerate(profiles) if made["weights"]]
    script = recording.info.get("script", "").rpartition("/")[2]
    return {
        "$schema": SCHEMA,
        "name": script or Path(recording.path).name,
        "exporter": "tlmem",
        "activeProfileIndex": filled[0] if filled else 0,
        "shared": {"frames": [frame_dict(*frame) for frame in frames]},
        "profiles": profiles,
    }


def profile(tree: StackTree, of_node: list[int], measure: int) -> dict[str, Any]:
    """One profile: each stack, outermost frame first, with what was allocated by its last frame."""
    name, unit = PROFILES[measure]
    filled = tree.values[measure].nonzero()[0].tolist()
    # In the order of the tree, so that what has a caller in common stands side by side.
    paths = sorted(tree.path(node) for node in filled)
    weights = [int(tree.values[measure, path[-1]]) for path in paths]
    samples = [[of_node[node] for node in path] for path in paths]
    return {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def frame_dict(function: str, file: str, line: int) -> dict[str, Any]:
    """A frame; a line that is not known is not there."""
    frame: dict[str, Any] = {"name": function}
    if file:
        frame["file"] = file
    if line:
        frame["line"] = line
    return frame

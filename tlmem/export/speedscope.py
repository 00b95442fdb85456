"""Stacks with their bytes, for speedscope: flame graphs in a browser.

Covers: profiles of bytes and objects, alive and in all. Does not cover: time; see ``perfetto``.
Source: https://www.speedscope.app/file-format-schema.json, "sampled" profiles.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlmem.recording.reader import Recording
from tlmem.report.site_sums import StackTree, stack_tree

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PROFILES = (
    ("bytes alive when judged", "bytes"),
    ("objects alive when judged", "none"),
    ("bytes allocated in total", "bytes"),
    ("objects allocated in total", "none"),
)
"""Name and unit of a profile for each of ``stacks.MEASURES``."""
MOST_FRAMES = 1_000_000
"""A stack is written with all its frames; of one profile the stacks have so many together."""


def write(recording: Recording, place: Path) -> str:
    """Writes the file; what comes from different lines of a function stays apart."""
    return save(*document(recording), place)


def save(made: dict[str, Any], left_out: int, place: Path) -> str:
    """Writes a document; returns what it leaves out, as a sentence."""
    text = json.dumps(made, separators=(",", ":"), ensure_ascii=True)
    place.write_text(text + "\n", encoding="utf-8")
    return left_out_sentence(left_out)


def left_out_sentence(left_out: int) -> str:
    """What is said of stacks that have no room; empty without any."""
    if not left_out:
        return ""
    return f"the profiles leave out the {left_out} stacks with the least: deep ones take much room."


def document(recording: Recording, most: int = MOST_FRAMES) -> tuple[dict[str, Any], int]:
    """The file as plain dicts and lists, and how many stacks it leaves out."""
    return document_of(recording, stack_tree(recording), PROFILES, most)


def document_of(
    recording: Recording,
    tree: StackTree,
    names: Sequence[tuple[str, str]],
    most: int = MOST_FRAMES,
) -> tuple[dict[str, Any], int]:
    """The same of any tree; ``names`` are the name and unit of a profile for each of its rows."""
    frames: dict[tuple[str, str, int], int] = {}
    of_node = [
        frames.setdefault((frame.function or "?", frame.file, frame.line), len(frames))
        for frame in tree.frames
    ]
    stacks = [shown_stacks(tree, measure, most) for measure in range(len(names))]
    profiles = [
        profile(tree, of_node, measure, nodes, names[measure])
        for measure, (nodes, _) in enumerate(stacks)
    ]
    filled = [number for number, made in enumerate(profiles) if made["weights"]]
    script = recording.info.get("script", "").rpartition("/")[2]
    made = {
        "$schema": SCHEMA,
        "name": script or Path(recording.path).name,
        "exporter": "tlmem",
        "activeProfileIndex": filled[0] if filled else 0,
        "shared": {"frames": [frame_dict(*frame) for frame in frames]},
        "profiles": profiles,
    }
    return made, max(left_out for _, left_out in stacks)


def shown_stacks(tree: StackTree, measure: int, most: int) -> tuple[list[int], int]:
    """The nodes whose stacks are written, as many of the largest as have ``most`` frames together.

    Returns:
        The nodes, and how many are left out.
    """
    depth = [0] * len(tree)
    for node, parent in enumerate(tree.parent.tolist()):
        depth[node] = depth[parent] + 1 if parent >= 0 else 1
    filled = np.flatnonzero(tree.values[measure])
    filled = filled[np.argsort(-tree.values[measure, filled], kind="stable")]
    shown = filled[np.cumsum(np.array(depth, np.int64)[filled]) <= most]
    return shown.tolist(), len(filled) - len(shown)


def profile(
    tree: StackTree, of_node: list[int], measure: int, filled: list[int], named: tuple[str, str]
) -> dict[str, Any]:
    """One profile: each stack, outermost frame first, with what was allocated by its last frame."""
    name, unit = named
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

"""Summaries of simulated programs, as reports get them.

Covers: what pages and comments read of a recording beyond what analyses do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.events import Kind
from tlmem.report.summary import Process, Summary


def process_of(program: Program, **changes: Any) -> Process:
    """A process whose recording has ``changes`` in its attributes, and its analysis."""
    recording = program.recording()
    objects = recording.objects
    sums = objects.groupby("born_site")["size_bytes"].agg(["count", "sum"])
    recording.site_totals = pd.DataFrame(
        {"alloc_count": sums["count"], "alloc_bytes": sums["sum"]}
    ).rename_axis("site")
    recording.marks = pd.DataFrame(
        {"time_ns": np.zeros(0, np.int64), "label": [], "index": np.zeros(0, np.int64)}
    )
    recording.sites["blamed"] = recording.blame_table
    recording.created_unix_ns = 0
    recording.samples["tracked"] = np.nan
    for name, value in {"address": 0, "died_thread": 0, "resized_from": -1}.items():
        objects[name] = value
    recording.history = lambda number: history_of(objects.loc[number])
    for name, value in changes.items():
        setattr(recording, name, value)
    return Process(recording, analyse(recording))


def history_of(row: pd.Series) -> pd.DataFrame:
    """The events of an object without holders: its allocation, and its free if it has one."""
    ends = [(row["born_ns"], Kind.ALLOC, row["born_site"], row["size_bytes"])]
    if row["died_ns"] >= 0:
        ends.append((row["died_ns"], Kind.FREE, row["died_site"], 0))
    table = pd.DataFrame(ends, columns=["time_ns", "kind", "site", "size_bytes"])
    return table.assign(thread=1, holder="", count=0, resize=False, failed=False, ended_by=-1,
                        began_at=-1, unpaired=False)  # fmt: skip


def leaking(**changes: Any) -> Process:
    """A program whose line 20 keeps 2000 arrays of 8 kB."""
    program = Program(step_ns=100_000)
    for _ in range(2000):
        program.temporary(10)
        program.alloc(20)
    return process_of(program, **changes)


def renamed(process: Process, **changes: Any) -> Summary:
    """A summary in which every finding has ``changes``, to see what strange names do."""
    findings = tuple(replace(finding, **changes) for finding in process.analysis.findings)
    return Summary((replace(process, analysis=replace(process.analysis, findings=findings)),))

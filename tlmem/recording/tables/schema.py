"""Every table of a recording: its columns, their units and dtypes, in one place.

Covers: what a table looks like; ``docs/reference/tables.md`` is written from here.
Does not cover: how the rows come about (the other modules here).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tlmem.events import METRIC_NAMES


@dataclass(frozen=True)
class Column:
    """One column: its name, NumPy dtype, unit (empty for plain numbers and texts) and meaning."""

    name: str
    dtype: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: what a row is, the column that is its index (or none), and its columns."""

    row: str
    index: str
    columns: tuple[Column, ...]


TEXT = "text"
"""The dtype of texts: pandas has ``object`` for it up to version 2 and ``str`` from version 3."""

_UNITS_OF_METRICS = {
    **dict.fromkeys(("minor_faults", "major_faults", "tracked_count", "modules"), ""),
    "delayed": "ns",
}
"""All others are bytes."""
_METRIC_MEANING = {
    "anon": "anonymous resident memory of the process, the recorder's included",
    "file": "file-backed and shared resident memory",
    "malloc_used": "handed out by the C allocator, mapped blocks included",
    "malloc_free": "free inside the C allocator's arenas",
    "python_arena": "arenas of Python's small objects, the newest as far as it was touched",
    "python_large": "Python's raw allocations: above 512 bytes, and its own tables",
    "recorder": "anonymous memory of the recorder itself",
    "high_water": "highest resident size so far",
    "minor_faults": "page faults so far",
    "major_faults": "page faults so far that needed the disk",
    "untouched": "pages of large live arrays that were never touched",
    "tracked": "live tracked memory, from the events",
    "tracked_count": "live tracked objects, from the events",
    "pss": "proportional share of resident memory",
    "private": "resident memory that no other process shares",
    "swap": "swapped out",
    "modules": "modules that Python had imported, when that had changed",
    "driver": "held by the drivers of devices, handed out or not, when that had changed",
    "tapes": "of the recorder's: what the records on tapes take, when that had changed",
    "library_data": "of anon: written and zeroed data of programs and libraries",
    "stacks": "of anon: stacks of threads",
    "allocator_resident": "of anon: the C allocator's arenas, without blocks it mapped singly",
    "mapped": "of anon: all other mappings, whoever made them",
    "log_file": "of file: the recording itself",
    "shared": "of file: shared memory without a file",
    "data_files": "of file: files without code",
    "malloc_mapped": "of malloc_used: blocks that the C allocator mapped singly",
    "recorder_resident": "of recorder: what is resident",
    "shared_size": "address space of the mappings of shared, resident or not",
    "delayed": "how long the main thread had been ready to run and waited for a processor",
}

SCHEMA: dict[str, Table] = {
    "events": Table(
        "one event, in time order",
        "",
        (
            Column("time_ns", "int64", "ns", "time since the start of the recording"),
            Column("thread", "int32", "", "number of the thread, see threads"),
            Column("kind", "uint8", "", "what happened, see tlmem.events.KIND_NAMES"),
            Column("device", "uint8", "", "whose memory, see tlmem.events.DEVICE_NAMES"),
            Column(
                "object",
                "int64",
                "",
                "object number for alloc, free and realloc, -1 when unknown; "
                "else as recorded: the metric of a sample, the label of a mark, a handle",
            ),
            Column("address", "uint64", "", "of foreign memory; a handle; else as recorded"),
            Column("arg", "uint64", "by kind", "bytes, a holder, a sample's value, a mark's index"),
            Column("site", "uint32", "", "call site, see sites; 0 without a Python stack"),
            Column("count", "uint16", "", "reference count after the event; 65535: at least"),
        ),
    ),
    "objects": Table(
        "one allocation or object of the runtime; a resize ends one and begins another",
        "object",
        (
            Column("object", "int64", "", "number of the allocation, from 0 in time order"),
            Column("device", "uint8", "", "whose memory, see tlmem.events.DEVICE_NAMES"),
            Column("address", "uint64", "", "where it lay; of the runtime's objects the handle"),
            Column("size_bytes", "int64", "bytes", "as asked for; 0 for views and structs"),
            Column("born_ns", "int64", "ns", "when it was allocated"),
            Column("died_ns", "int64", "ns", "when it was freed; -1 while alive"),
            Column("born_site", "uint32", "", "call site of the allocation"),
            Column("died_site", "uint32", "", "call site of the free; 0 while alive"),
            Column("born_thread", "int32", "", "thread of the allocation"),
            Column("died_thread", "int32", "", "thread of the free; 0 while alive"),
            Column("resized_from", "int64", "", "object this one replaced by a resize; -1: none"),
            Column("folded", "bool", "", "known from a checkpoint's live list, not from events"),
        ),
    ),
    "heap": Table(
        "one sampled block of native code or of Python's heap (record --heap); a resize begins "
        "another; of those that a size limit folded only what was alive",
        "",
        (
            Column("address", "uint64", "", "where it lay"),
            Column("size_bytes", "int64", "bytes", "as asked for"),
            Column("is_python", "bool", "", "of Python's allocators; else of native code"),
            Column("of_malloc", "bool", "", "by malloc; else in Python's arenas, or a mapping"),
            Column("is_resize", "bool", "", "what its thread freed just before, resized"),
            Column("weight", "float64", "", "so many blocks it stands for; 1: every block is here"),
            Column("born_ns", "int64", "ns", "when it was allocated"),
            Column("died_ns", "int64", "ns", "when it was freed; -1 while alive"),
            Column("born_site", "uint32", "", "call site of the allocation"),
            Column("born_thread", "int32", "", "thread of the allocation"),
            Column("died_thread", "int32", "", "thread of the free; 0 while alive"),
        ),
    ),
    "samples": Table(
        "one sample of the process's memory, in time order; NaN where not taken",
        "",
        (
            Column(
                "time_ns",
                "int64",
                "ns",
                "when its values were known: when the C allocator had answered, where it was asked",
            ),
            *(
                Column(
                    name,
                    "float64",
                    _UNITS_OF_METRICS.get(name, "bytes"),
                    _METRIC_MEANING[name],
                )
                for name in METRIC_NAMES.values()
            ),
        ),
    ),
    "sites": Table(
        "one frame called from its parent site; a stack is the path to site 0 or 1",
        "site",
        (
            Column("site", "int64", "", "number; 0: no Python stack, 1: root of cut stacks"),
            Column("parent", "int64", "", "the site that called this one"),
            Column("code", "int64", "", "number of the code object; 0: none"),
            Column("file", "text", "", "absolute where known"),
            Column("function", "text", "", "qualified name"),
            Column("line", "int64", "", "0: unknown"),
            Column("first_line", "int64", "", "where the function is defined"),
            Column("depth", "int32", "", "frames in the stack"),
            Column("blamed", "int64", "", "innermost site of the stack in the user's code"),
        ),
    ),
    "site_totals": Table(
        "exact sums of one call site, folded events included",
        "site",
        (
            Column("site", "int64", "", "call site"),
            Column("alloc_count", "int64", "", "objects allocated here"),
            Column("alloc_bytes", "int64", "bytes", "their size"),
            Column("freed_count", "int64", "", "of those, freed (anywhere)"),
            Column("freed_bytes", "int64", "bytes", "their size"),
            Column("live_count", "int64", "", "of those, still alive"),
            Column("live_bytes", "int64", "bytes", "their size"),
            Column("free_calls", "int64", "", "frees made here, of any object"),
            Column("first_ns", "int64", "ns", "when the first object was allocated; -1: none was"),
        ),
    ),
    "marks": Table(
        "one mark of the program, in time order",
        "",
        (
            Column("time_ns", "int64", "ns", "when"),
            Column("thread", "int32", "", "number of the thread; 0: known from a checkpoint"),
            Column("label", "text", "", "text given to tlmem.mark"),
            Column("index", "int64", "", "number given to tlmem.mark"),
            Column("site", "uint32", "", "call site"),
        ),
    ),
    "threads": Table(
        "one thread that recorded something",
        "thread",
        (
            Column("thread", "int32", "", "number, from 1"),
            Column("os_id", "int64", "", "the operating system's number"),
            Column("name", "text", "", "may be empty"),
            Column("main", "bool", "", "the program's first thread"),
            Column("first_ns", "int64", "ns", "when it was first seen"),
            Column("events", "int64", "", "events it recorded, folded ones included"),
        ),
    ),
    "holders": Table(
        "one time that somebody held an object, in order of begin; not of folded events",
        "",
        (
            Column("object", "int64", "", "number of the object; -1: older than the recording"),
            Column("address", "uint64", "", "its handle, or the address of foreign memory"),
            Column("kind", "uint8", "", "of the holder, see tlmem.events.HOLDER_NAMES"),
            Column("number", "int64", "", "of the holder: id of a scope, serial number"),
            Column("holder", "text", "", "in words: scope 'epoch' #3, field weight of Layer"),
            Column("begin_ns", "int64", "ns", "when it took the object"),
            Column("end_ns", "int64", "ns", "when it gave it up; -1 while it holds it"),
            Column("begin_site", "uint32", "", "call site of the taking"),
            Column("end_site", "uint32", "", "call site of the giving up; 0 while it holds it"),
            Column("ended_by", "uint8", "", "kind of the event that ended it; 0 while it holds it"),
        ),
    ),
    "holdings": Table(
        "one chain of Python objects and the arrays that it held when a snapshot was taken; of "
        "whole snapshots, in their order, most bytes first",
        "",
        (
            Column("snapshot", "int64", "", "number of the snapshot, from 1"),
            Column("group", "int64", "", "number of the chain in it"),
            Column("time_ns", "int64", "ns", "when it was taken"),
            Column("trigger", "text", "", "asked, mark, doubled, time or end: why it was taken"),
            Column("complete", "bool", "", "the walk had seen all Python objects when it ended"),
            Column("collecting", "bool", "", "Python's garbage collector was known to be on"),
            Column("arrays", "int64", "", "arrays, each piece of memory once"),
            Column("held_bytes", "int64", "bytes", "of the memory that they keep"),
            Column("used_bytes", "int64", "bytes", "of it, what the program's arrays show"),
            Column("device", "uint8", "", "whose memory, see tlmem.events.DEVICE_NAMES"),
            Column("words", "text", "", "who holds them, such as list 'heads' (module __main__)"),
            Column("chain", "text", "", "every step from the root to the array"),
            Column("root", "text", "", "what the chain begins at: module, local, cycle, ..."),
            Column("container", "text", "", "its largest container: list, dict, ...; empty: none"),
            Column("items", "int64", "", "items in that container"),
            Column("most", "int64", "", "items that it may have; 0: no bound, or others grow"),
        ),
    ),
    "holding_steps": Table(
        "one step of a chain of holdings, from the root on",
        "",
        (
            Column("snapshot", "int64", "", "number of the snapshot"),
            Column("group", "int64", "", "number of the chain"),
            Column("step", "int64", "", "number of the step, from 0"),
            Column("kind", "text", "", "what holds: module, local, list, instance, view, ..."),
            Column("type", "text", "", "its type, or the name of the module or function"),
            Column("edge", "text", "", "by what it holds the next: a name, a key, [] for an item"),
            Column("items", "int64", "", "items in it"),
        ),
    ),
    "holding_objects": Table(
        "one object that a snapshot found in a chain; of many only some, evenly chosen",
        "",
        (
            Column("snapshot", "int64", "", "number of the snapshot"),
            Column("group", "int64", "", "number of the chain"),
            Column("object", "int64", "", "number of the object; -1: older than the recording"),
            Column("address", "uint64", "", "where it lay; of the runtime's objects the handle"),
        ),
    ),
    "contents": Table(
        "how many items one of the largest containers of the program had when a snapshot was "
        "taken, how many the lru_caches had that had a quarter of their bound or more, or how many "
        "arrays over memory that is not tracked a chain held",
        "",
        (
            Column("snapshot", "int64", "", "number of the snapshot"),
            Column("group", "int64", "", "number of the container or chain in it"),
            Column("time_ns", "int64", "ns", "when it was taken"),
            Column("trigger", "text", "", "asked, mark, doubled, time or end: why it was taken"),
            Column("complete", "bool", "", "the walk had seen all Python objects when it ended"),
            Column("what", "text", "", "items of a container, cached items, or arrays"),
            Column("count", "int64", "", "items, or arrays, each piece of memory once"),
            Column("most", "int64", "", "items that there may be; 0: no bound is known"),
            Column("held_bytes", "int64", "bytes", "that such arrays show; of items 0: not known"),
            Column("words", "text", "", "the container, or what holds the arrays, in words"),
            Column("name", "text", "", "the same without numbers: one name in all snapshots"),
            Column("chain", "text", "", "the whole way from its root, step by step"),
        ),
    ),
    "object_types": Table(
        "how many objects of one type Python's collector followed when a snapshot was taken; of "
        "the 64 types with most objects",
        "",
        (
            Column("snapshot", "int64", "", "number of the snapshot"),
            Column("time_ns", "int64", "ns", "when it was taken"),
            Column("type", "text", "", "module.Class; of builtin types the name alone"),
            Column("count", "int64", "", "objects"),
            Column("rarest", "int64", "", "a type that is not named there has at most so many"),
        ),
    ),
    "scopes": Table(
        "one scope, or frame of a function, in order of entry; not of folded events",
        "scope",
        (
            Column("scope", "int64", "", "its id, never used again"),
            Column("label", "text", "", "its name"),
            Column("thread", "int32", "", "thread that entered it"),
            Column(
                "parent",
                "int64",
                "",
                "scope around it; 0: none; -1: not known, several tasks of a thread had one there",
            ),
            Column("depth", "int32", "", "1: the outermost"),
            Column("is_frame", "bool", "", "the frame of a function"),
            Column("slots", "int64", "", "of a frame"),
            Column("enter_ns", "int64", "ns", "when it was entered"),
            Column("exit_ns", "int64", "ns", "when it had ended; -1 while it is entered"),
            Column("enter_site", "uint32", "", "call site"),
            Column("exit_site", "uint32", "", "call site; 0 while it is entered"),
            Column("registered", "int64", "", "objects that it took"),
            Column("promoted", "int64", "", "of these, given up to float: unregistered, promoted"),
            Column("escaped", "int64", "", "of these, handed to another holder"),
            Column("released", "int64", "", "of these, released at its exit or freed before"),
            Column("freed", "int64", "", "objects that it says it freed; 0 while it is entered"),
        ),
    ),
    "misuses": Table(
        "one misuse, in time order; of those in folded events the first 1000 at most",
        "",
        (
            Column("time_ns", "int64", "ns", "when"),
            Column("thread", "int32", "", "number of the thread; 0: known from a checkpoint"),
            Column("misuse", "text", "", "use-after-free, double-free and others"),
            Column("object", "int64", "", "number of the object; -1: none, or not known"),
            Column("address", "uint64", "", "its handle or address; 0: none"),
            Column("device", "uint8", "", "whose memory, see tlmem.events.DEVICE_NAMES"),
            Column("holder", "text", "", "who did it, or for whom; empty when nobody is named"),
            Column("site", "uint32", "", "call site"),
        ),
    ),
    "pools": Table(
        "one pool of objects, or the freed buffers of a device; not of folded events",
        "",
        (
            Column("name", "text", "", "pool #1, buffers of cpu"),
            Column("pool", "int64", "", "number of the pool; -1 for buffers"),
            Column("device", "uint8", "", "of buffers; 0 for a pool"),
            Column("hits", "int64", "", "requests that were served from it"),
            Column("misses", "int64", "", "requests that were not"),
            Column("puts", "int64", "", "put into it"),
            Column("drops", "int64", "", "not taken: it was full"),
            Column("prunes", "int64", "", "taken out to be freed"),
            Column("hit_rate", "float64", "", "hits among the requests; NaN without any"),
            Column("reserved_bytes", "int64", "bytes", "taken ahead of need"),
            Column("kept_count", "int64", "", "in it at the end, as far as the events tell"),
            Column("kept_bytes", "int64", "bytes", "their size"),
        ),
    ),
    "ops": Table(
        "one op that a tape recorded, or for which one held something; not of folded events",
        "op",
        (
            Column("op", "int64", "", "its number; below 16: gradients, values computed again"),
            Column("name", "text", "", "add, matmul, gradient"),
            Column("records", "int64", "", "times that it was recorded"),
            Column("saves", "int64", "", "times that something was saved for it"),
            Column("saved_bytes", "int64", "bytes", "the sum of their sizes"),
            Column("held_count", "int64", "", "of these, still held"),
            Column("held_bytes", "int64", "bytes", "their size"),
        ),
    ),
    "passes": Table(
        "one backward pass, in order of begin; not of folded events",
        "",
        (
            Column("root", "uint64", "", "slot of the value that it began at"),
            Column("sequence", "int64", "", "of that value: the how manieth of all, on any tape"),
            Column("thread", "int32", "", "thread that ran it"),
            Column("begin_ns", "int64", "ns", "when it began"),
            Column("end_ns", "int64", "ns", "when it had ended; -1 while it is under way"),
            Column("site", "uint32", "", "call site"),
            Column("rules", "int64", "", "rules that it ran; 0 while it is under way"),
            Column(
                "status", "int32", "", "0: whole; -1: under way; else the tlm_status it failed with"
            ),
            Column("recorded", "int64", "", "operations recorded since the last pass began"),
            Column("saved_bytes", "int64", "bytes", "that tapes held for rules when it began"),
            Column(
                "left_bytes", "int64", "bytes", "likewise when it had ended; -1 while under way"
            ),
        ),
    ),
    "devices": Table(
        "one device whose driver handed out memory; not of folded events",
        "",
        (
            Column("name", "text", "", "cpu, metal, sim-metal"),
            Column("device", "uint8", "", "its number"),
            Column("alloc_count", "int64", "", "blocks that the driver handed out"),
            Column("alloc_bytes", "int64", "bytes", "their size"),
            Column("free_count", "int64", "", "blocks that it got back"),
            Column("free_bytes", "int64", "bytes", "their size"),
            Column("live_count", "int64", "", "the difference"),
            Column("live_bytes", "int64", "bytes", "the difference, arenas and kept buffers in it"),
            Column("driver_bytes", "int64", "bytes", "of all devices at the last sample of it"),
        ),
    ),
    "segments": Table(
        "one segment that a caching allocator had when a snapshot was taken; of imported ones",
        "",
        (
            Column("accelerator", "uint8", "", "its number; 255: pinned memory of the host"),
            Column("address", "uint64", "", "where it lies"),
            Column("pool_owner", "int64", "", "first number of its private pool; 0: none"),
            Column("pool_number", "int64", "", "second number of its private pool; 0: none"),
            Column("stream", "int64", "", "stream that it belongs to"),
            Column("small", "bool", "", "for blocks of up to 1 MB"),
            Column("expandable", "bool", "", "grows in place"),
            Column("blocks", "int64", "", "blocks that it is divided into"),
            Column("total_bytes", "int64", "bytes", "reserved: allocated, waiting and both free"),
            Column("allocated_bytes", "int64", "bytes", "in use, in whole blocks"),
            Column("requested_bytes", "int64", "bytes", "of it, what was asked for"),
            Column("rounding_bytes", "int64", "bytes", "of it, the rest"),
            Column("waiting_bytes", "int64", "bytes", "freed, another stream may still use it"),
            Column("split_free_bytes", "int64", "bytes", "free beside blocks in use"),
            Column("whole_free_bytes", "int64", "bytes", "free, and nothing in it is in use"),
            Column("site", "uint32", "", "call site that reserved it; 0: not known"),
        ),
    ),
    "blocks": Table(
        "one block of a segment when a snapshot was taken; of imported ones",
        "",
        (
            Column("accelerator", "uint8", "", "its number; 255: pinned memory of the host"),
            Column("segment", "int64", "", "row of segments"),
            Column("address", "uint64", "", "where it lies"),
            Column("size_bytes", "int64", "bytes", "of the block"),
            Column("requested_bytes", "int64", "bytes", "of it, what was asked for; 0: free"),
            Column("state", "text", "", "allocated, free, or waiting for another stream"),
            Column("site", "uint32", "", "call site of its allocation, or last one; 0: not known"),
            Column("object", "int64", "", "number of the object; -1: free, or not in the trace"),
        ),
    ),
    "phases": Table(
        "one annotation of the program with its begin and end, in order of begin; of imported ones",
        "",
        (
            Column("label", "text", "", "its name, without a number at its end"),
            Column("index", "int64", "", "that number, or the how manieth of its name, from 0"),
            Column("accelerator", "int64", "", "the one in use"),
            Column("begin_ns", "int64", "ns", "when it began; 0: before the trace"),
            Column("end_ns", "int64", "ns", "when it ended; -1: not in the trace"),
        ),
    ),
    "requests": Table(
        "one allocation of an imported snapshot; objects has the size of its block",
        "object",
        (
            Column("object", "int64", "", "number of the object"),
            Column("requested_bytes", "int64", "bytes", "what was asked for"),
            Column("stream", "int64", "", "on which it was allocated; 0 is the default one"),
            Column("pool_owner", "int64", "", "the first number of its private pool; 0: none"),
            Column("pool_number", "int64", "", "the second number; 0: none"),
            Column(
                "reusable",
                "int64",
                "",
                "allocations of its accelerator before the block may serve again; -1: not in the "
                "trace, -2: as soon as it is freed",
            ),
        ),
    ),
}


def frame(name: str, columns: Mapping[str, np.ndarray | list | range]) -> pd.DataFrame:
    """The table ``name`` as a frame with exactly the columns, dtypes and index of its schema.

    Arrays that have the dtype already are shared, not copied. An index may be a range, which takes
    no memory.
    """
    table = SCHEMA[name]
    arrays: dict[str, Any] = {
        column.name: np.asarray(columns[column.name]).astype(
            object if column.dtype == TEXT else column.dtype, copy=False
        )
        for column in table.columns
        if not isinstance(columns[column.name], range)
    }
    # Texts may have lone surrogates, as names of files do, which not every storage of pandas takes.
    texts = pd.StringDtype("python", na_value=np.nan)
    for column in table.columns:
        if column.dtype == TEXT:
            arrays[column.name] = pd.array(arrays[column.name], dtype=texts)
    if not table.index:
        return pd.DataFrame(arrays, copy=False)
    numbers = columns[table.index]
    labels = (
        pd.RangeIndex(numbers, name=table.index)
        if isinstance(numbers, range)
        else pd.Index(arrays.pop(table.index), name=table.index)
    )
    return pd.DataFrame(arrays, index=labels, copy=False)


def describe() -> str:
    """All tables as Markdown: the body of ``docs/reference/tables.md``, printed by this module."""
    lines = []
    for name, table in SCHEMA.items():
        lines += [f"## {name}", "", f"Each row is {table.row}."]
        lines += [f"Index: `{table.index}`.", ""] if table.index else [""]
        lines += ["| column | dtype | unit | meaning |", "|---|---|---|---|"]
        lines += [f"| {c.name} | {c.dtype} | {c.unit} | {c.meaning} |" for c in table.columns]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(describe())

"""Scopes, holders in words, misuses, pools and devices, from files written by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import writer
from support.owners import (
    ACQUIRE,
    ALLOC,
    CPU,
    ESCAPE,
    FREE,
    HOLDERS,
    MISUSE,
    POOL_HIT,
    POOL_PUT,
    PROMOTE,
    REGISTER,
    RELEASE,
    SCOPE_ENTER,
    SCOPE_EXIT,
    holder,
)

from tlmem.events import HolderKind
from tlmem.recording.format.checkpoint import FoldTotals
from tlmem.recording.reader import Recording, read
from tlmem.recording.tables.device_memory import device_memory

FRAME_ENTER, FRAME_EXIT, MISS, DROP, PRUNE, RESERVE = 12, 13, 17, 19, 20, 21
DEVICE_ALLOC, DEVICE_FREE, SAMPLE, DRIVER = 22, 23, 33, 18
LABELS = {1: "epoch", 2: "step", 3: "Layer{weight,bias}", 4: "cache", 5: "dict{}"}
A, B, C = (1 << 28 | number for number in (1, 2, 3))


@pytest.fixture
def recorded(tmp_path: Path):
    """Writes (kind, object, arg, count, device[, thread[, site]]) events and reads them back."""

    def write(*rows: tuple) -> Recording:
        threads: dict[int, list] = {}
        for step, (kind, obj, arg, count, device, *more) in enumerate(rows):
            thread, site = [*more, *(1, 2)[len(more) :]]
            event = (1_000_000 + 4 * step, obj, arg, site, count, kind, device)
            threads.setdefault(thread, []).append(event)
        meta = [*(writer.label(*pair) for pair in LABELS.items()), writer.site(2, 0, 1, 7)]
        events = {thread: writer.events(events) for thread, events in threads.items()}
        file = writer.RecordingWriter(form="sealed", meta=meta, threads=events)
        return read(file.write(tmp_path / "x.tlm"))

    return write


def columns(table: pd.DataFrame, *names: str) -> list[tuple]:
    return list(table[list(names)].itertuples(index=False, name=None))


def test_scopes_know_their_names_nesting_and_what_became_of_their_objects(recorded) -> None:
    inner = holder(2, 8)
    scopes = recorded(
        (SCOPE_ENTER, 7, 1, 1, 0),
        (SCOPE_ENTER, 8, 2, 2, 0),
        *((ALLOC, thing, 64, 1, CPU) for thing in (A, B, C)),
        *((REGISTER, thing, inner, 1, CPU) for thing in (A, B, C)),
        (ESCAPE, A, holder(3, 1), 1, CPU),
        (PROMOTE, B, inner, 1, CPU),
        (RELEASE, C, inner, 0, CPU),
        (FREE, C, 0, 0, CPU),
        (SCOPE_EXIT, 8, 1, 0, 0),
    ).scopes

    told = ["label", "parent", "depth", "registered", "promoted", "escaped", "released", "freed"]
    assert scopes.index.tolist() == [7, 8]
    assert columns(scopes, *told) == [
        ("epoch", 0, 1, 0, 0, 0, 0, 0),
        ("step", 7, 2, 3, 1, 1, 1, 1),
    ]
    assert (scopes["exit_ns"] >= 0).tolist() == [False, True]
    assert scopes["exit_site"].tolist() == [0, 2]


def test_a_frame_is_a_scope_with_slots(recorded) -> None:
    scopes = recorded(
        (SCOPE_ENTER, 7, 1, 1, 0), (FRAME_ENTER, 7, 5, 0, 0), (SCOPE_ENTER, 9, 0, 2, 0)
    ).scopes

    assert columns(scopes, "is_frame", "slots") == [(True, 5), (False, 0)]
    assert scopes["label"].tolist() == ["epoch", ""]


def test_the_scope_around_is_not_guessed_where_tasks_share_a_thread(recorded) -> None:
    scopes = recorded(
        (SCOPE_ENTER, 1, 1, 1, 0),
        (SCOPE_ENTER, 2, 1, 1, 0),
        (SCOPE_ENTER, 3, 2, 2, 0),
        (SCOPE_EXIT, 1, 0, 0, 0),
        (SCOPE_ENTER, 4, 2, 2, 0),
        (SCOPE_ENTER, 5, 2, 2, 0, 2),
    ).scopes

    assert scopes["parent"].to_dict() == {1: 0, 2: 0, 3: -1, 4: 2, 5: -1}


def test_holders_are_told_in_words(recorded) -> None:
    big = 1 << 40
    recording = recorded(
        (SCOPE_ENTER, 7, 1, 1, 0),
        (ALLOC, B, 0, 1, CPU),
        (HOLDERS, B, 3 << 40 | 10, 3, CPU),
        (HOLDERS, C, 5 << 40 | 20, 1, CPU),
        (ALLOC, A, 64, 1, CPU),
        *(
            (ACQUIRE, A, who, 2 + i, CPU)
            for i, who in enumerate(
                [
                    *(holder(2, 7), holder(2, 99), holder(3, 5), holder(5, B), holder(6, 4)),
                    *(holder(4, 10), holder(4, 11), holder(4, 12), holder(4, 13), holder(4, 20)),
                    *(holder(4, 9), holder(7, 2), holder(8, 7), holder(9, 6), holder(10, 1)),
                    *(holder(11, 4), holder(11, 77), holder(11, big)),
                ]
            )
        ),
    )
    held = recording.holders[recording.holders["address"] == A]

    assert held["holder"].tolist() == [
        *("nobody", "scope 'epoch' #7", "scope #99", "handle", "view", "parameter 'cache'"),
        *("field weight of Layer", "field bias of Layer", "field 2 of Layer"),
        *("field of a struct", "field 0 of dict", "field of a struct"),
        *("pool #2", "frame 'epoch' #7", "tape node #6", "export"),
        *("cache", "label #77", f"owner at {big:#x}"),
    ]
    assert held["kind"].iloc[:3].tolist() == [
        HolderKind.FLOATING,
        HolderKind.SCOPE,
        HolderKind.SCOPE,
    ]
    assert recording.problems == []


def test_who_holds_at_a_time_is_told_without_numbers(recorded) -> None:
    recording = recorded(
        (SCOPE_ENTER, 7, 1, 1, 0),
        (ALLOC, A, 64, 1, CPU),
        (REGISTER, A, holder(2, 7), 1, CPU),
        (ACQUIRE, A, holder(3, 5), 2, CPU),
        (RELEASE, A, holder(2, 7), 1, CPU),
        (ALLOC, B, 64, 1, CPU),
    )
    first = recording.held_at(np.array([0]), 6)
    last = recording.held_at(np.array([0, 1]), 10**9)

    assert columns(first, "object", "holder", "site") == [(0, "scope 'epoch'", 2), (0, "handle", 2)]
    assert columns(last, "object", "holder") == [(0, "handle"), (1, "nobody")]


def test_misuses_name_what_whose_and_where(recorded) -> None:
    misuses = recorded(
        (ALLOC, A, 64, 1, CPU),
        (RELEASE, A, holder(1, 0), 0, CPU),
        (FREE, A, 0, 0, CPU),
        (MISUSE, A, 0, 1, 0),
        (MISUSE, B, holder(3, 4), 3, CPU),
        (MISUSE, 0, holder(2, 9), 8, 0),
        (MISUSE, 0, 0, 99, 0),
    ).misuses

    assert columns(misuses, "misuse", "object", "holder", "site") == [
        ("use-after-free", 0, "", 2),
        ("over-release", -1, "handle", 2),
        ("unbalanced-scope", -1, "scope #9", 2),
        ("misuse-99", -1, "", 2),
    ]
    assert misuses["address"].tolist() == [A, B, 0, 0]


def test_pools_of_objects_count_what_came_and_went(recorded) -> None:
    pool = holder(7, 3)
    pools = recorded(
        (MISS, 0, pool, 0, 0),
        *((ALLOC, thing, 100 * thing % 7 + 10, 1, CPU) for thing in (A, B)),
        *((REGISTER, thing, pool, 1, CPU) for thing in (A, B)),
        *((POOL_PUT, thing, pool, 1, CPU) for thing in (A, B)),
        (2, C, 0, 0, CPU),
        (POOL_PUT, 12345, pool, 0, 0),
        (DROP, 12346, pool, 0, 0),
        (7, A, pool, 1, CPU),
        (POOL_HIT, A, pool, 1, CPU),
    ).pools

    told = ["name", "pool", "device", "hits", "misses", "puts", "drops", "prunes", "kept_count"]
    assert columns(pools, *told) == [("pool #3", 3, 0, 1, 1, 3, 1, 0, 2)]
    assert pools["hit_rate"].tolist() == [0.5]
    assert pools["kept_bytes"].tolist() == [100 * B % 7 + 10]


def test_buffers_of_devices_count_bytes(recorded) -> None:
    pools = recorded(
        (RESERVE, 0, 10_000, 0, CPU),
        (POOL_HIT, 0, 4096, 0, CPU),
        (MISS, 0, 512, 0, CPU),
        (POOL_PUT, 0, 512, 0, CPU),
        (DROP, 0, 64, 0, CPU),
        (PRUNE, 0, 512, 0, CPU),
        (POOL_PUT, 0, 128, 0, 18),
    ).pools

    assert columns(pools, "name", "pool", "device") == [
        ("buffers of cpu", -1, CPU),
        ("buffers of sim-metal", -1, 18),
    ]
    assert columns(pools, "hits", "misses", "puts", "drops", "prunes")[0] == (1, 1, 1, 1, 1)
    assert pools["kept_bytes"].tolist() == [10_000 - 4096, 128]
    assert np.isnan(pools["hit_rate"].iloc[1])


def test_devices_balance_and_tell_what_objects_use_of_them(recorded) -> None:
    recording = recorded(
        (DEVICE_ALLOC, 4096, 1000, 0, CPU),
        (DEVICE_ALLOC, 8192, 500, 0, CPU),
        (ALLOC, A, 600, 1, CPU),
        (ALLOC, B, 50, 1, 19),
        (DEVICE_FREE, 8192, 500, 0, CPU),
        (DEVICE_ALLOC, 8192, 300, 0, 33),
        (SAMPLE, DRIVER, 7777, 0, 0),
        (RELEASE, A, holder(1, 0), 0, CPU),
        (FREE, A, 0, 0, CPU),
    )

    told = ["name", "device", "alloc_count", "alloc_bytes", "free_count", "live_bytes"]
    assert columns(recording.devices, *told) == [
        ("cpu", CPU, 2, 1500, 1, 1000),
        ("device 33", 33, 1, 300, 0, 300),
    ]
    assert recording.devices["driver_bytes"].tolist() == [7777, 7777]
    assert recording.samples["driver"].tolist() == [7777.0]
    memory = recording.device_memory(np.array([0, 6, 10**9]))
    assert columns(memory, "objects", "handed_out", "host", "host_count") == [
        (0, 1000, 1000, 1),
        (600, 1500, 1500, 2),
        (0, 1300, 1000, 1),
    ]


def test_what_devices_held_while_events_were_folded_is_not_known(recorded) -> None:
    recording = recorded((DEVICE_ALLOC, 4096, 1000, 0, CPU), (ALLOC, A, 600, 1, CPU))
    objects = recording.objects.assign(folded=True, born_ns=0)
    folded = FoldTotals(device_bytes=5000, live_stride=2)
    changes = recording._device_changes
    memory = device_memory(changes, objects, folded, np.array([0, 9]), 5)

    assert memory["objects"].isna().tolist() == [True, False]
    assert memory.iloc[1].tolist() == [2 * 600, 6000, 6000, 1]


def test_views_and_structs_are_objects_without_bytes(recorded) -> None:
    recording = recorded((ALLOC, A, 100, 1, CPU), (ALLOC, B, 0, 1, CPU))

    assert recording.objects["size_bytes"].tolist() == [100, 0]
    assert (recording.totals.current_count, recording.totals.current_bytes) == (2, 100)
    assert recording.site_totals.loc[2, "live_count"] == 2

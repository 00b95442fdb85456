"""What the reader bounds, bound by bound: what is refused, cut, dropped or folded is said.

Covers: docs/format.md, "What a reader bounds". Does not cover: memory and time of whole commands
(``test_forged_files``).
"""

import os
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hostile import forge
from support import writer

from tlmem.errors import DamagedRecording, TooManyEvents
from tlmem.recording import family
from tlmem.recording.format import limits
from tlmem.recording.reader import Recording, read


def forged(name: str, folder: Path) -> Path:
    """A forged file."""
    path = folder / f"{name}.tlm"
    path.write_bytes(forge.FORGERIES[name]())
    return path


def has_problem(recording: Recording, *words: str) -> bool:
    """Whether a problem has all these words."""
    return any(all(word in problem for word in words) for problem in recording.problems)


@pytest.mark.parametrize(
    "name, words",
    [
        ("index_names_one_block_of_names_a_thousand_times", "the same bytes twice"),
        ("index_names_one_block_of_events_many_times", "more blocks than fit into"),
        ("index_claims_half_a_billion_events", "more blocks than fit into"),
        ("index_of_many_parts_that_inflate", "more blocks than fit into"),
        ("index_entries_outside_and_between", "outside the file"),
        ("index_with_slots_as_pieces", "more blocks than fit into"),
    ],
)
def test_an_index_that_lies_is_not_used(name: str, words: str, tmp_path: Path) -> None:
    recording = read(forged(name, tmp_path))

    assert has_problem(recording, "the index is damaged", words, "the slots were walked")
    assert len(recording.events) >= 100


def test_more_events_than_a_recorder_can_write_are_refused(tmp_path: Path) -> None:
    path = forged("many_blocks_with_the_same_events", tmp_path)
    with pytest.raises(DamagedRecording, match="claims 40920000 events in 1589248 bytes.*record"):
        read(path)


def test_names_are_read_up_to_a_bound_and_the_rest_is_left_out(tmp_path: Path) -> None:
    path = forged("notes_that_inflate", tmp_path)
    recording = read(path)
    most = limits.most_names(path.stat().st_size)

    assert has_problem(recording, "were left out", f"{most} bytes")
    assert sum(map(len, recording.info.values())) <= most


def test_damage_in_names_is_not_searched_for_ever(tmp_path: Path) -> None:
    path = forged("damaged_names_that_are_searched_for_the_next_one", tmp_path)
    begin = time.process_time()
    recording = read(path)

    assert has_problem(recording, "names are damaged")
    assert time.process_time() - begin < 10


def test_stacks_are_cut_where_recorders_cut_them(tmp_path: Path) -> None:
    recording = read(forged("a_stack_of_twenty_thousand_frames", tmp_path))

    assert recording.sites["depth"].max() == limits.MOST_STACK_DEPTH
    assert len(recording.stack(20_001)) <= limits.MOST_STACK_DEPTH
    assert recording.stack(20_001)[0]["line"] == 20_001
    assert has_problem(recording, "1024 frames were cut")


def test_a_stack_as_deep_as_recorders_write_is_whole(tmp_path: Path) -> None:
    deepest = limits.MOST_STACK_DEPTH
    names = [writer.site(n, n - 1 if n > 2 else 0, 1, n) for n in range(2, deepest + 2)]
    path = tmp_path / "deep.tlm"
    path.write_bytes(forge.with_events(forge.rows(100, site=deepest + 1), names))
    recording = read(path)

    assert len(recording.stack(deepest + 1)) == deepest
    assert recording.problems == []


def test_numbers_of_sites_are_as_high_as_names_have_room(tmp_path: Path) -> None:
    path = forged("sites_with_the_highest_numbers", tmp_path)
    recording = read(path)

    assert recording.sites.index.max() <= limits.largest_site(path.stat().st_size)
    assert has_problem(recording, "names are damaged")
    assert recording.events["site"].max() <= limits.largest_site(path.stat().st_size)


@pytest.mark.parametrize("size", [2**64 - 1, 2**63, (1 << 52) + 1])
def test_a_size_that_no_memory_has_is_dropped_and_said(size: int, tmp_path: Path) -> None:
    sizes = np.array([8, size, 24], np.uint64)
    path = tmp_path / "size.tlm"
    path.write_bytes(forge.with_events(forge.rows(3, arg=sizes)))
    recording = read(path)

    assert recording.totals.total_bytes == 32
    assert has_problem(recording, "1 events were dropped", str(size))


def test_sums_of_sizes_never_overflow(tmp_path: Path) -> None:
    path = tmp_path / "sum.tlm"
    path.write_bytes(forge.with_events(forge.rows(5000, arg=1 << 52)))
    recording = read(path)

    assert 0 < recording.totals.total_bytes <= limits.LARGEST_SUM
    assert (recording.site_totals >= 0).all().all()
    assert has_problem(recording, "more than any memory has")


@pytest.mark.parametrize(
    "name, words",
    [
        ("checkpoint_with_impossible_sums", "its sum events is 18446744073709551615"),
        ("checkpoint_of_fifty_million_objects", "it inflates to more than"),
        ("checkpoint_with_impossible_blocks", "its sampled blocks cannot be"),
        ("checkpoint_where_one_object_passed_a_million_times", "passed cannot be"),
        ("many_checkpoints", "blocks are there"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_not_used(name: str, words: str, tmp_path: Path) -> None:
    recording = read(forged(name, tmp_path))

    assert has_problem(recording, "cannot be used", words)
    assert len(recording.problems) < 20
    assert recording.folded_events == 0


def test_what_there_is_no_memory_for_is_folded_and_sums_stay_exact(tmp_path: Path) -> None:
    count = 60_000
    kind = np.tile([forge.ALLOC, forge.ALLOC, forge.FREE], count // 3).astype("u1")
    at = np.arange(count)
    address = np.where(at % 3 == 2, at - 1, at) * 64 + 64
    path = tmp_path / "many.tlm"
    path.write_bytes(forge.with_events(forge.rows(count, kind, object=address, arg=at % 777)))
    whole = read(path, detail_events=10**9)
    with (
        patch.object(limits, "MEMORY_OF_SMALL_FILES", 30_000 * limits.BYTES_OF_AN_OBJECT),
        patch.object(limits, "DETAIL_OF_SMALL_FILES", count),
    ):
        bounded = read(path)
        assert bounded.folded_events > 20_000

    assert whole.folded_events == 0 and whole.problems == bounded.problems == []
    for name in ("total_bytes", "total_count", "current_bytes", "current_count", "peak_bytes"):
        assert getattr(whole.totals, name) == getattr(bounded.totals, name), name
    assert bounded.site_totals.equals(whole.site_totals)
    most = limits.SHARE_OF_LISTED * 30_000
    assert 0 < bounded.objects["folded"].sum() <= most
    assert bounded.fold is not None and bounded.fold["live_stride"] > 1
    listed = bounded.objects.index[bounded.objects["folded"]]
    assert set(listed) <= set(whole.objects.index[whole.objects["died_ns"] < 0])


def test_a_range_of_time_with_more_events_than_there_is_memory_for_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "range.tlm"
    path.write_bytes(forge.with_events(forge.rows(50_000)))
    with (
        patch.object(limits, "MEMORY_OF_SMALL_FILES", 10_000 * limits.BYTES_OF_AN_OBJECT),
        pytest.raises(TooManyEvents, match="choose a shorter time"),
    ):
        _ = read(path, 0.0, 1e9).events


def test_long_names_of_many_lines_are_cut(tmp_path: Path) -> None:
    recording = read(forged("one_long_name_for_many_sites", tmp_path))
    files = recording.sites["file"]

    assert files.str.len().max() == limits.SHORT_NAME
    assert files.iloc[-1].endswith("xxx")
    assert has_problem(recording, "were cut to 120 characters")


def write_child(folder: Path, name: str, pid: int, parent: int) -> None:
    header = writer.Header(pid=pid, parent_pid=parent)
    (folder / name).write_bytes(header.pack())


def test_a_directory_full_of_names_costs_no_more_than_reading_them(tmp_path: Path) -> None:
    """Each child was once compared with every name there is."""
    write_child(tmp_path, "x.tlm", 1, 0)
    for pid in range(2, 202):
        write_child(tmp_path, f"x.{pid}.tlm", pid, 1)
    write_child(tmp_path, "x.5.700.tlm", 700, 5)
    others = [f"x.{pid}.{pid}.{pid}.tlm" for pid in range(60_000)]
    begin = time.process_time()
    with patch.object(os, "listdir", return_value=[*os.listdir(tmp_path), *others]):
        found = family.find(tmp_path / "x.tlm")

    assert time.process_time() - begin < 2
    assert len(found) == 201
    assert found.index(tmp_path / "x.5.700.tlm") == found.index(tmp_path / "x.5.tlm") + 1


def test_a_family_larger_than_any_program_starts_is_refused(tmp_path: Path) -> None:
    write_child(tmp_path, "x.tlm", 1, 0)
    for pid in range(2, 9):
        write_child(tmp_path, f"x.{pid}.tlm", pid, 1)
    with (
        patch.object(family, "MOST_MEMBERS", 5),
        pytest.raises(TooManyEvents, match="more than 5 recordings; move those"),
    ):
        family.find(tmp_path / "x.tlm")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_names_of_children_that_are_no_children_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    write_child(outside, "x.7.tlm", 7, 1)
    inside = tmp_path / "inside"
    inside.mkdir()
    write_child(inside, "x.tlm", 1, 0)
    os.mkfifo(inside / "x.8.tlm")
    write_child(inside, f"x.{'9' * 30}.tlm", 9, 1)
    with patch.object(os, "listdir", return_value=[*os.listdir(inside), "../outside/x.7.tlm"]):
        assert family.find(inside / "x.tlm") == []

"""Where resident memory is: parts that add up, what they grew by, and their peak."""

import re
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tlmem.analysis.memory.attribution import Moments, attribute, attribute_run, difference
from tlmem.analysis.memory.mappings import with_mappings
from tlmem.analysis.model import Analysis, Attribution, Change, Peak, Verdict
from tlmem.report.json import attributions
from tlmem.report.summary import Summary
from tlmem.report.text import PARTS, attribution_block

MB = 1_000_000
SECOND = 1_000_000_000


def picture(second: float, **changed: float) -> dict[str, float]:
    """A sample in which everything was taken, in MB, of a process in which all adds up."""
    row = {
        "tracked": 20.0,
        "untouched": 4.0,
        "malloc_used": 35.0,  # 20 arrays, 6 Python, 9 native
        "malloc_mapped": 14.0,
        "malloc_free": 5.0,
        "python_arena": 8.0,
        "python_large": 6.0,
        "recorder": 2.0,
        "recorder_resident": 1.0,
        "library_data": 3.0,
        "stacks": 0.5,
        "allocator_resident": 24.0,  # 21 in use, 3 free
        "mapped": 26.0,  # 8 arenas, 10 blocks, 1 ours, 7 of others
        "file": 30.0,
        "log_file": 2.0,
        "shared": 4.0,
        "data_files": 5.0,
    } | changed
    row["anon"] = changed.get(
        "anon",
        row["library_data"] + row["stacks"] + row["allocator_resident"] + row["mapped"],
    )
    return {"time_ns": second * SECOND} | {name: size * MB for name, size in row.items()}


def table(*rows: dict[str, float]) -> pd.DataFrame:
    return with_mappings(pd.DataFrame(list(rows)).astype({"time_ns": np.int64}))


def closes(parts: Attribution) -> bool:
    main = [field.name for field in fields(Attribution)][1:10]
    assert main[0] == "tracked_bytes" and main[-1] == "residual_bytes"
    whole = sum(getattr(parts, name) for name in main) - 2 * parts.untouched_bytes
    others = parts.native_bytes + parts.mapped_bytes + parts.library_bytes
    others += parts.stack_bytes + parts.file_bytes + parts.shared_bytes
    return whole == parts.resident_bytes and others == parts.other_bytes


def test_every_part_is_found_where_all_adds_up() -> None:
    parts = attribute(table(picture(1)), SECOND)

    assert parts == Attribution(
        resident_bytes=round(83.5 * MB),
        tracked_bytes=20 * MB,
        untouched_bytes=4 * MB,
        python_bytes=14 * MB,
        allocator_free_bytes=3 * MB,
        recorder_bytes=3 * MB,
        other_bytes=round(47.5 * MB),
        native_bytes=9 * MB,
        mapped_bytes=7 * MB,
        library_bytes=22 * MB,
        stack_bytes=MB // 2,
        file_bytes=5 * MB,
        shared_bytes=4 * MB,
        known=True,
    )
    assert closes(parts)


def test_memory_mapped_by_others_is_not_taken_for_free_memory_of_the_allocator() -> None:
    grown = attribute(table(picture(1, mapped=126, malloc_free=500)), SECOND)

    assert (grown.mapped_bytes, grown.allocator_free_bytes) == (107 * MB, 3 * MB)
    assert closes(grown)


def test_memory_that_the_allocator_gave_back_is_not_kept_by_it() -> None:
    parts = attribute(table(picture(1, malloc_free=300)), SECOND)

    assert parts.allocator_free_bytes == 3 * MB


def test_native_blocks_that_were_never_touched_are_not_resident() -> None:
    parts = attribute(table(picture(1, malloc_used=95, malloc_mapped=74)), SECOND)

    assert parts.residual_bytes == 0
    assert parts.native_bytes == 16 * MB  # of 69: 53 are in blocks of which no page is there
    assert closes(parts)


def test_native_blocks_in_arenas_that_were_never_touched_are_not_resident() -> None:
    parts = attribute(table(picture(1, malloc_used=135, allocator_resident=40)), SECOND)

    assert parts.residual_bytes == 0
    assert parts.native_bytes == 32 * MB  # of 109: the arenas handed out 77 more than they have
    assert closes(parts)


def test_larger_blocks_of_python_that_were_never_touched_are_not_resident() -> None:
    """A decompressor asks for room for all that may come, and what came was broken."""
    before = attribute(table(picture(1)), SECOND)
    changed = table(picture(1, python_large=906, malloc_used=1_000, allocator_resident=40))
    parts = attribute(changed, SECOND)

    assert parts.residual_bytes == 0
    assert parts.python_bytes < before.python_bytes + 40 * MB
    assert closes(parts)


def test_what_the_kernel_and_the_allocator_contradict_each_other_in_is_the_residual() -> None:
    parts = attribute(table(picture(1, allocator_resident=64)), SECOND)

    assert parts.residual_bytes == 38 * MB
    assert closes(parts)


def test_the_newest_arena_of_python_may_not_be_touched_yet() -> None:
    parts = attribute(table(picture(1, python_arena=15.8)), SECOND)

    assert (parts.mapped_bytes, parts.residual_bytes) == (0, 0)
    assert parts.python_bytes == 21 * MB  # of 21.8


def test_a_residual_can_be_negative() -> None:
    parts = attribute(table(picture(1, python_arena=60)), SECOND)

    assert parts.residual_bytes < 0
    assert closes(parts)


def test_driver_memory_is_the_pools_and_not_mapped_by_others() -> None:
    row = picture(1, mapped=66, tracked=30)
    row |= {"device_objects": 10 * MB, "device_unused": 30 * MB, "device_host": 0}
    parts = attribute(table(row), SECOND)

    assert (parts.pool_bytes, parts.mapped_bytes, parts.residual_bytes) == (30 * MB, 7 * MB, 0)


def test_arrays_with_pages_of_their_own_are_not_mapped_by_others() -> None:
    parts = attribute(table(picture(1, tracked=120, mapped=96)), SECOND)

    assert parts.mapped_bytes <= 7 * MB
    assert closes(parts)


def test_between_pictures_what_others_mapped_is_carried_on() -> None:
    later = {"time_ns": 2 * SECOND, "anon": 63.5 * MB, "malloc_used": 45 * MB, "tracked": 30 * MB}
    samples = table(picture(1), later)
    alone = attribute(samples.ffill().bfill().iloc[1:], 0)

    assert (alone.tracked_bytes, alone.mapped_bytes, alone.residual_bytes) == (30 * MB, 7 * MB, 0)
    assert attribute(samples, 3 * SECOND).tracked_bytes == 20 * MB


def test_growth_is_that_of_the_steady_state() -> None:
    samples = table(*(picture(at, mapped=26 + 2 * at, tracked=20) for at in range(11)))
    level, growth, peak = attribute_run(samples, 0, 0, 10 * SECOND)

    assert growth is not None and peak is not None
    assert (growth.begin_s, growth.end_s) == (3, 10)  # 35 % of the run are its warm-up
    assert growth.parts.mapped_bytes == growth.parts.resident_bytes == 14 * MB
    assert growth.parts.residual_bytes == 0
    assert level.mapped_bytes == 27 * MB
    assert (peak.at_s, peak.parts) == (10, level)


def test_what_a_function_gave_back_at_its_end_was_there_until_then() -> None:
    rising = [picture(at, mapped=26 + 10 * at) for at in range(10)]
    level, growth, peak = attribute_run(table(*rising, picture(10)), 0, 0, 10 * SECOND)

    assert growth is not None and peak is not None
    assert growth.end_s == peak.at_s == 9
    assert level.mapped_bytes == 97 * MB


def test_a_picture_that_was_disturbed_is_not_taken_where_another_is_near() -> None:
    rows = [picture(at, mapped=26 + at) for at in range(20)]
    disturbed = picture(20, mapped=46, allocator_resident=64)
    level, growth, _ = attribute_run(table(*rows, disturbed), 0, 0, 20 * SECOND)
    alone, _, _ = attribute_run(table(picture(0), disturbed), 0, 0, 20 * SECOND)

    assert growth is not None
    assert (growth.end_s, level.residual_bytes) == (19, 0)
    assert alone.residual_bytes == 38 * MB  # there is no other one near the end


def test_a_peak_in_the_middle_is_told() -> None:
    heights = [0, 0, 90, 10, 10, 10, 10, 10, 10]
    samples = table(*(picture(at, mapped=26 + high) for at, high in enumerate(heights)))
    level, _, peak = attribute_run(samples, 0, 0, 8 * SECOND)

    assert peak is not None
    assert (peak.at_s, peak.parts.mapped_bytes) == (2, 97 * MB)
    assert level.mapped_bytes == 17 * MB


def test_a_peak_between_pictures_is_that_of_all_samples() -> None:
    between = {
        "time_ns": 2 * SECOND,
        "anon": 253.5 * MB,
        "malloc_used": 235 * MB,
        "tracked": 220 * MB,
    }
    _, _, peak = attribute_run(table(picture(1), between, picture(3)), 0, 0, 3 * SECOND)

    assert peak is not None
    assert (peak.at_s, peak.parts.tracked_bytes) == (2, 220 * MB)


@pytest.mark.parametrize("rows", [[], [picture(1)]])
def test_without_two_moments_there_is_no_growth(rows: list[dict[str, float]]) -> None:
    samples = table(*rows) if rows else pd.DataFrame({"time_ns": np.array([], np.int64)})
    level, growth, peak = attribute_run(samples, 0, 0, SECOND)

    assert growth is None
    assert level.known == bool(rows) == (peak is not None)


def test_a_picture_from_before_the_work_is_all_there_is_to_say_where_memory_is() -> None:
    """As of a program that imports for seconds and then works for a moment."""
    level, growth, peak = attribute_run(table(picture(1)), 0, 10 * SECOND, 20 * SECOND)

    assert level == attribute(table(picture(1)), SECOND) and level.known
    assert growth is None
    assert peak is not None and peak.at_s == 1.0


def test_parts_of_many_moments_are_those_of_each_one() -> None:
    samples = table(*(picture(at, tracked=20.0 + at, malloc_used=35.0 + at) for at in range(1, 8)))
    moments = Moments(samples)
    columns = moments.columns(moments.rows)

    assert len(moments.rows) == 7
    assert [
        Attribution(**{name: int(of[at]) for name, of in columns.items()}, known=True)
        for at in range(7)
    ] == [attribute(samples, at * SECOND) for at in range(1, 8)]


def test_samples_without_mappings_are_left_as_they_are() -> None:
    samples = pd.DataFrame({"time_ns": [1], "anon": [5.0]})

    assert with_mappings(samples) is samples


def test_the_table_for_people_adds_up_and_shows_growth_and_peak() -> None:
    before, after = (attribute(table(picture(1, mapped=at)), SECOND) for at in (26, 66))
    high = attribute(table(picture(1, mapped=266)), SECOND)
    change = Change(difference(before, after), 0.5, 2.0)
    text = attribution_block(after, change, Peak(high, 1.5))

    assert text.startswith("Resident memory after 2.00 s, and its growth since 500 ms")
    assert re.search(r"\+ +47\.0 MB +\+40\.0 MB  mapped by libraries and the program\n", text)
    assert re.search(r"= +124 MB +\+40\.0 MB  resident\n", text)
    assert "at the peak after 1.50 s: 324 MB (mapped by libraries" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_rows_of_the_table_are_all_parts() -> None:
    shown = {f"{name}_bytes" for _, name, _ in PARTS}
    known = {field.name for field in fields(Attribution)} - {"known", "other_bytes"}

    assert shown == known


def test_a_family_has_sums_without_moments() -> None:
    parts = attribute(table(picture(1)), SECOND)
    found = Analysis(Verdict("stable", ""), parts, (), Change(parts, 1.0, 2.0), Peak(parts, 2.0))
    summary = Summary((SimpleNamespace(analysis=found), SimpleNamespace(analysis=found)))  # type: ignore[arg-type]
    report = attributions(summary.attribution, summary.growth, summary.peak)

    assert report["growth_attribution"]["begin_seconds"] is None
    assert report["growth_attribution"]["tracked_bytes"] == 40 * MB
    assert report["peak_attribution"]["other"]["mapped_bytes"] == 14 * MB
    assert sum(report["other_attribution"].values()) == report["attribution"]["other_bytes"]

"""Tables and curves of scopes, pools, devices and tapes; two recordings beside each other."""

from pathlib import Path

import numpy as np
import pytest
from hostile import forge
from tlmem.dashboards.model import diff, tables
from tlmem.dashboards.model.curves import Grid, edges
from tlmem.dashboards.model.diff import difference, finding_changes, line_changes
from tlmem.dashboards.model.loading import Loaded
from tlmem.dashboards.model.view import View


@pytest.fixture
def whole(loaded: Loaded) -> View:
    return View.whole(loaded.end_ns)


def row_of(shown: tables.TableData, name: str) -> dict[str, str]:
    row = next(row for row in shown.rows if row[0] == name)
    return dict(zip(shown.heads, row, strict=True))


def test_scopes_are_summed_by_label(loaded: Loaded, whole: View) -> None:
    step = row_of(loaded.scopes.labels(whole), "step")

    assert (step["what"], step["entered"], step["open"]) == ("scope", "360", "")
    assert (step["registered"], step["released"], step["freed"]) == ("720", "720", "360")
    assert (step["total"], step["mean"], step["longest"]) == ("693 ms", "1.93 ms", "2 ms")


def test_scopes_of_a_stretch_are_those_entered_in_it(loaded: Loaded, whole: View) -> None:
    shown = loaded.scopes.labels(whole.select(0, whole.end_ns // 2))

    assert 0 < int(row_of(shown, "step")["entered"]) < 360
    nothing = loaded.scopes.labels(whole.select(0, 1_000))
    assert list(nothing.rows) == []


def test_pools_have_a_hit_rate_and_what_they_keep(loaded: Loaded, whole: View) -> None:
    pool = row_of(loaded.pools.table(whole), "pool 'buffers'")

    assert (pool["hit rate"], pool["hits"], pool["misses"]) == ("25.0%", "90", "270")
    assert pool["kept bytes"] == "4.10 kB"
    sizes = loaded.pools.size_classes(whole)
    assert list(sizes.rows) == [("pool 'buffers'", "4.10 kB", "1", "4.10 kB")]


def test_buffers_that_a_device_keeps_are_among_the_sizes(tmp_path: Path) -> None:
    kinds = np.repeat([forge.POOL_PUT, forge.POOL_HIT, forge.POOL_PUT], [300, 100, 102])
    events = forge.rows(len(kinds), forge.POOL_PUT, object=0, arg=4_096, device=16)
    events["kind"], events["arg"][400:] = kinds, 1_048_576
    path = tmp_path / "buffers.tlm"
    path.write_bytes(forge.with_events(events))
    loaded = Loaded(path)
    loaded.read_events()
    whole = View.whole(loaded.end_ns)
    kept = row_of(loaded.pools.table(whole), "buffers of cpu")
    times = loaded.recording.events["time_ns"].to_numpy()
    part = whole.select(0, int(times[299]))

    assert (kept["kept"], kept["kept bytes"]) == ("302", "108 MB")
    assert list(loaded.pools.size_classes(whole).rows) == [
        ("buffers of cpu", "1.05 MB", "102", "107 MB"),
        ("buffers of cpu", "4.10 kB", "200", "819 kB"),
    ]
    assert list(loaded.pools.size_classes(part).rows) == [
        ("buffers of cpu", "4.10 kB", "300", "1.23 MB")
    ]


def test_devices_have_what_their_drivers_handed_out(loaded: Loaded) -> None:
    cpu = row_of(tables.devices(loaded.recording), "cpu")

    assert (cpu["blocks"], cpu["bytes held"]) == ("1", "8.00 MB")


def test_ops_and_passes_are_counted(loaded: Loaded, whole: View) -> None:
    multiply = row_of(tables.ops(loaded.recording), "multiply")
    passes = tables.passes(loaded.recording, whole)

    assert (multiply["recorded"], multiply["bytes saved"]) == ("360", "5.90 MB")
    assert (len(passes.rows), passes.rows[0][0], passes.rows[0][-1]) == (360, "1", "whole")
    half = tables.passes(loaded.recording, whole.select(whole.end_ns // 2, whole.end_ns))
    assert 0 < len(half.rows) < 360 and half.rows[0][0] != "1"


def test_curves_follow_what_was_held(loaded: Loaded, whole: View) -> None:
    in_pool = loaded.pools.pooled(whole, 100)
    saved, gradients = loaded.tapes.saved(whole, 1000), loaded.tapes.gradients(whole, 1000)

    assert (in_pool[0], in_pool[-1]) == (0, 4096)
    assert saved.max() == 16_384 and gradients.max() == 0
    assert loaded.pools.unused(whole, 50).max() <= 8_000_000
    assert len(loaded.pools.unused(whole, 50)) == 50


def test_a_dear_quantity_is_asked_for_once_while_columns_are_wide() -> None:
    asked = []

    def ask(times: np.ndarray) -> np.ndarray:
        asked.append(len(times))
        return times.astype(float)

    grid, whole = Grid(ask, 10**9), View.whole(10**9)
    wide, narrow = edges(whole.zoom(0.5), 100), edges(whole.zoom(1e-4), 100)
    late = wide - grid.at(wide)

    assert 0 <= late.min() and late.max() <= (wide[1] - wide[0]) / 8
    assert len(asked) == 1
    assert grid.at(narrow).tolist() == narrow.tolist() and len(asked) == 2


def test_of_very_many_pools_the_busiest_are_listed_and_counted(tmp_path: Path) -> None:
    pools, at = 1500, np.arange(4500)
    pool = np.where(at < 2 * pools, at % pools, 500 + at % (pools - 500))  # 500 have one event
    events = forge.rows(
        len(at), forge.POOL_PUT, object=at, arg=forge.HOLDER * 7 + 1 + pool, device=0
    )
    path = tmp_path / "pools.tlm"
    path.write_bytes(forge.with_events(events))
    loaded = Loaded(path)
    loaded.read_events()
    whole = View.whole(loaded.end_ns)
    part = whole.select(whole.start_ns + 1_000, whole.end_ns)
    shown, later = loaded.pools.table(whole), loaded.pools.table(part)
    table = loaded.recording.pools
    puts = table.set_index("name")["puts"]

    assert len(table) == pools and len(shown.rows) == len(later.rows) == tables.MOST_ROWS
    assert "the 1,000 busiest of 1,500 pools" in shown.note
    assert "the 1,000 busiest of 1,500 pools" in later.note
    expected = puts[puts > 2]
    assert 0 < len(expected) <= tables.MOST_ROWS
    for rows in (shown, later):
        counted = {row[0]: int(row[rows.heads.index("puts")]) for row in rows.rows}
        assert {name: counted[name] for name in expected.index} == expected.to_dict()


def test_pools_of_a_stretch_count_what_happened_in_it(loaded: Loaded, whole: View) -> None:
    half = whole.end_ns // 2
    parts = [whole.select(0, half), whole.select(half + 1, whole.end_ns)]
    rows = [row_of(loaded.pools.table(part), "pool 'buffers'") for part in parts]

    assert sum(int(row["hits"]) for row in rows) == 90
    assert sum(int(row["misses"]) for row in rows) == 270
    assert all(0 < int(row["misses"]) < 270 for row in rows)
    assert rows[1]["kept bytes"] == "4.10 kB"
    assert "in this stretch" in loaded.pools.table(parts[0]).note


def test_short_times_are_told_in_microseconds() -> None:
    assert tables.duration(12.34e-6) == "12.3 µs"
    assert tables.duration(0.0125) == "12.5 ms"


def test_a_difference_names_what_came_and_what_changed(loaded: Loaded, mended: Path) -> None:
    found = difference([loaded], mended)
    findings, lines = finding_changes(found), line_changes(found)

    assert [(*row[:4], row[-1]) for row in findings.rows] == [
        ("+ new", "‼ error", "train.py:12", "never freed", "growing-site"),
        ("+ new", "! warning", "train.py:12", "acquired, never released", "over-retained"),
    ]
    assert lines.rows[0][-1] == "train.py:12 train"
    assert lines.rows[0][2].startswith("+23.")


def test_of_very_many_lines_that_changed_the_first_are_listed(
    loaded: Loaded, mended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = difference([loaded], mended)
    every = line_changes(found)
    monkeypatch.setattr(diff, "MOST_ROWS", 1)
    first = line_changes(found)

    assert len(every.rows) > 1 and every.note == ""
    assert list(first.rows) == every.rows[:1]
    assert first.note == f"of {len(every.rows)} lines the first 1 listed"


def test_a_recording_does_not_differ_from_itself(loaded: Loaded, story: Path) -> None:
    found = difference([loaded], story)

    assert list(line_changes(found).rows) == []
    assert {row[0] for row in finding_changes(found).rows} == {"= both"}
    assert np.array([change.changed for change in found.lines]).sum() == 0

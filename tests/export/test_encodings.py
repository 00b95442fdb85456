"""Parts of exports that need no recording: lanes, addresses, encodings, texts."""

import json

import numpy as np
import pandas as pd
import pytest
from support.summaries import leaking

from tlmem import cli
from tlmem.export import TARGETS, memory_viz, perfetto, protobuf, speedscope
from tlmem.recording import arrow
from tlmem.report.plots import KINDS

# ---- lanes of a trace ----


def lanes_of(
    spans: list[tuple[int, int]], most: int = 100
) -> tuple[dict[int, list[tuple[int, bool]]], int]:
    """Times of each lane, with whether a span begins there; and how many spans begin in all."""
    spans = sorted(spans, key=lambda span: (span[0], -span[1]))
    begin, end = np.array(spans, np.int64).reshape(-1, 2).T
    lanes: dict[int, list[tuple[int, bool]]] = {}
    open_rows: dict[int, list[int]] = {}
    begun = 0
    for lane, time_ns, row in perfetto.nested(begin, end, most):
        assert lane <= len(lanes)
        lanes.setdefault(lane, []).append((time_ns, row is not None))
        if row is None:
            assert time_ns == spans[open_rows[lane].pop()][1]
        else:
            assert time_ns == spans[row][0]
            open_rows.setdefault(lane, []).append(row)
            begun += 1
    assert not any(open_rows.values())
    assert all(edges == sorted(edges, key=lambda edge: edge[0]) for edges in lanes.values())
    return lanes, begun


def test_nested_scopes_share_a_lane() -> None:
    lanes, begun = lanes_of([(0, 10), (1, 4), (4, 9), (12, 13)])

    assert begun == 4
    assert lanes == {
        0: [
            *((0, True), (1, True), (4, False), (4, True)),
            *((9, False), (10, False), (12, True), (13, False)),
        ]
    }


def test_scopes_that_take_turns_get_lanes_of_their_own() -> None:
    lanes, begun = lanes_of([(0, 10), (5, 15), (11, 20)])

    assert (len(lanes), begun) == (2, 3)


def test_any_scopes_are_nested_on_their_lanes() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        begins = rng.integers(0, 100, 40)
        ends = begins + rng.integers(0, 30, 40)
        _, begun = lanes_of(list(zip(begins.tolist(), ends.tolist(), strict=True)))

        assert begun == 40


def test_what_fits_on_no_lane_is_left_out_and_the_rest_stays_nested() -> None:
    lanes, begun = lanes_of([(n, n + 100) for n in range(50)] + [(200, 210)], most=20)

    assert (len(lanes), begun) == (20, 21)


def test_objects_never_overlap_on_a_lane() -> None:
    spans = [(0, 5, "o"), (3, 8, "o"), (5, 6, "o"), (8, 9, "o")]
    lanes = perfetto.apart(spans)

    assert sorted(span for lane in lanes for span in lane) == sorted(spans)
    assert all(a[1] <= b[0] for lane in lanes for a, b in zip(lane, lane[1:], strict=False))
    assert len(lanes) == 2


# ---- protocol buffers ----


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_numbers_are_encoded_as_the_library_does(value: int) -> None:
    wrappers = pytest.importorskip("google.protobuf.wrappers_pb2", reason="needs protobuf")
    expected = wrappers.Int64Value(value=value).SerializeToString()

    assert protobuf.number(1, value) == (expected or b"\x08\x00")


def test_texts_are_encoded_with_their_length() -> None:
    assert protobuf.text(2, "é\udcff") == b"\x12\x08\xc3\xa9\\udcff"
    assert protobuf.message(3, b"a" * 200) == b"\x1a\xc8\x01" + b"a" * 200


# ---- addresses ----


def test_made_up_addresses_never_overlap_while_both_live() -> None:
    rng = np.random.default_rng(5)
    size = rng.integers(1, 3000, 300)
    is_alloc, row, live = [], [], []
    for number in range(300):
        is_alloc.append(True)
        row.append(number)
        live.append(number)
        if rng.random() < 0.6:
            is_alloc.append(False)
            row.append(live.pop(int(rng.integers(len(live)))))
    address = memory_viz.made_up(np.array(is_alloc), np.array(row), size)

    taken: dict[int, int] = {}
    for allocates, number in zip(is_alloc, row, strict=True):
        begin, end = int(address[number]), int(address[number] + size[number])
        if allocates:
            assert all(end <= b or begin >= e for b, e in taken.items())
            taken[begin] = end
        else:
            del taken[begin]
    assert np.all(address % memory_viz.GRAIN_BYTES == 0)


def test_freed_room_is_used_again_by_what_fits() -> None:
    address = memory_viz.made_up(
        np.array([True, False, True, True]), np.array([0, 0, 1, 2]), np.array([100, 90, 5000])
    )

    assert address[0] == address[1] != address[2]


def test_near_memory_is_one_segment_and_far_memory_another() -> None:
    address = np.array([1000, 0, 5_000_000])
    size = np.array([10, 2000, 8])

    assert memory_viz.segments(address, size) == [(0, 2000), (5_000_000, 5_000_008)]
    assert memory_viz.segments(address[:0], size[:0]) == []


def test_of_overlapping_blocks_the_later_one_stays() -> None:
    keep = memory_viz.without_overlaps(np.array([0, 50, 200, 240]), np.array([100, 100, 50, 5]))

    assert keep.tolist() == [False, True, False, True]
    assert memory_viz.without_overlaps(np.array([0, 100]), np.array([100, 5])).all()


def test_events_of_one_nanosecond_keep_a_possible_order() -> None:
    lives = memory_viz.Lives(
        born_ns=np.array([1, 5, 5]), died_ns=np.array([5, 5, -1]), born_site=np.zeros(3, int),
        died_site=np.zeros(3, int), size=np.ones(3, int), address=np.full(3, 64),
    )  # fmt: skip
    is_alloc, row = memory_viz.in_order(lives)

    assert list(zip(is_alloc.tolist(), row.tolist(), strict=True)) == [
        (True, 0), (False, 0), (True, 1), (False, 1), (True, 2),
    ]  # fmt: skip


# ---- speedscope ----


def test_every_stack_has_its_bytes() -> None:
    process = leaking()
    made, left_out = speedscope.document(process.recording)
    alive, _, total, count = made["profiles"]
    frames = made["shared"]["frames"]

    assert alive["weights"] == [2000 * 8_000] and alive["endValue"] == 2000 * 8_000
    assert sum(total["weights"]) == process.totals["total_bytes"]
    assert sum(count["weights"]) == process.totals["total_count"]
    assert frames[alive["samples"][0][-1]] == {
        "name": "work", "file": "/home/user/program.py", "line": 20,
    }  # fmt: skip
    json.dumps(made, allow_nan=False)


# ---- tables ----


def test_halves_of_characters_become_escapes() -> None:
    table = pd.DataFrame({"file": pd.Series(["a", "\udcff"], dtype=object), "line": [1, 2]})

    assert arrow.encodable(table)["file"].tolist() == ["a", "\\udcff"]
    assert table["file"].tolist() == ["a", "\udcff"]


# ---- the command ----


def test_the_command_line_offers_every_format_and_picture(capsys) -> None:
    for command, names in (("export", TARGETS), ("plot", [*KINDS, "all"])):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        said = capsys.readouterr().out

        assert "{" + ",".join(names) + "}" in said


@pytest.mark.parametrize("to", ["parquet", "csv", "perfetto", "speedscope", "memory-viz"])
def test_what_is_not_there_is_one_sentence(to: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)

    assert cli.main(["export", "none.tlm", "--to", to]) == 2
    err = capsys.readouterr().err
    assert err.startswith("tlmem: ") and "none.tlm" in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

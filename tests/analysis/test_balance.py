"""The balance of takings: every sum of every frame, against walking each stack by hand."""

import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer
from support.owners import (
    ACQUIRE,
    ALLOC,
    CPU,
    FREE,
    REGISTER,
    RELEASE,
    SCOPE_ENTER,
    Runtime,
    holder,
)

from tlmem.analysis.ledger.balance import (
    Balance,
    NoSuchSite,
    _distinct,
    _Open,
    balance,
    matching,
)
from tlmem.analysis.model import StackFrame
from tlmem.recording.reader import Recording, read
from tlmem.report import balance as balance_report

FILES = ["/home/user/model.py", "/home/user/train.py"]
FLOATING, NUMPY = 1, 1
A, B = 1 << 28 | 5, 1 << 28 | 6
SCOPE, READER = holder(2, 1), holder(11, 2)
# train.py:1 calls model.py:10 (site 3) and model.py:20 (site 4); another stack begins at site 5.
META = [
    *(writer.label(1, "step"), writer.label(2, "reader")),
    *(writer.code(1, FILES[1], "main"), writer.code(2, FILES[0], "Layer.forward")),
    *(writer.site(2, 0, 1, 1), writer.site(3, 2, 2, 10), writer.site(4, 2, 2, 20)),
    *(writer.site(5, 0, 1, 9), writer.site(6, 2, 2, 10)),
]


def recorded(folder: Path, *rows: tuple) -> Recording:
    """(kind, object, arg, count, device, site) events, read back."""
    events = [
        (1_000_000 + 4000 * step, obj, arg, site, count, kind, device)
        for step, (kind, obj, arg, count, device, site) in enumerate(rows)
    ]
    file = writer.RecordingWriter(form="sealed", meta=META, threads={1: writer.events(events)})
    return read(file.write(folder / "x.tlm"))


@pytest.fixture
def kept(tmp_path: Path) -> Recording:
    """One object with a taking that has no pair, another that nobody holds any more."""
    return recorded(
        tmp_path,
        (SCOPE_ENTER, 1, 1, 1, 0, 2),
        (ALLOC, A, 800, 1, CPU, 3),
        (REGISTER, A, SCOPE, 1, CPU, 3),
        (ACQUIRE, A, READER, 2, CPU, 4),
        (ALLOC, B, 100, 1, CPU, 6),
        (REGISTER, B, SCOPE, 1, CPU, 6),
        (RELEASE, A, SCOPE, 1, CPU, 2),
        (RELEASE, B, SCOPE, 0, CPU, 2),
        (FREE, B, 0, 0, CPU, 2),
    )


def sums(found: Balance) -> dict[tuple[int, ...], tuple[int, ...]]:
    """The sums of each node by the lines of its path."""
    told, waiting = {}, [((), node) for node in found.roots]
    while waiting:
        above, node = waiting.pop()
        path = (*above, node.frame.line)
        assert path not in told
        told[path] = (node.taken, node.given_back, node.unpaired, node.objects, node.bytes)
        waiting.extend((path, child) for child in node.children)
    return told


def test_each_frame_has_the_sums_of_all_below_it(kept: Recording) -> None:
    assert sums(balance(kept, at_exit=True)) == {
        (1,): (3, 2, 1, 1, 800),
        (1, 10): (2, 0, 0, 0, 0),
        (1, 20): (1, 0, 1, 1, 800),
    }


def test_a_line_that_calls_twice_is_one_frame(kept: Recording) -> None:
    assert [path for path in sums(balance(kept, at_exit=True)) if path[1:] == (10,)] == [(1, 10)]


def test_what_is_unpaired_says_who_took_it(kept: Recording) -> None:
    root = balance(kept, at_exit=True).roots[0]

    assert root.holders == ()
    assert root.children[0].holders == (("reader", 1),)


def test_scopes_of_one_label_are_one_holder_and_pools_are_not(tmp_path: Path) -> None:
    rows = [(SCOPE_ENTER, scope, 1, scope, 0, 2) for scope in (1, 2)]
    for number, who in enumerate([holder(2, 1), holder(2, 2), holder(7, 1), holder(7, 2)]):
        rows += [(ALLOC, A + number, 8, 1, CPU, 3), (REGISTER, A + number, who, 1, CPU, 3)]
    (line,) = balance(recorded(tmp_path, *rows), at_exit=True).roots[0].children

    assert set(line.holders) == {("scope 'step'", 2), ("pool #1", 1), ("pool #2", 1)}


def test_an_array_is_taken_by_its_allocation_and_given_back_by_its_free(tmp_path: Path) -> None:
    recording = recorded(
        tmp_path,
        (ALLOC, 64, 10, 1, NUMPY, 3),
        (ALLOC, 128, 20, 1, NUMPY, 3),
        (FREE, 64, 0, 0, NUMPY, 5),
    )
    found = balance(recording, at_exit=True)

    assert sums(found) == {
        (1,): (2, 0, 1, 1, 20),
        (1, 10): (2, 0, 1, 1, 20),
        (9,): (0, 1, 0, 0, 0),
    }
    assert found.roots[0].children[0].holders == (("Python", 1),)


@pytest.mark.parametrize(
    ("site", "taken", "unpaired"),
    [
        ("model.py:10", 3, 1),
        ("user/model.py", 3, 1),
        ("Layer.forward", 3, 1),
        ("*.py:1?", 3, 1),
        ("Layer.*", 3, 1),
    ],
)
def test_a_site_chooses_the_objects_that_were_made_there(
    kept: Recording, site: str, taken: int, unpaired: int
) -> None:
    found = balance(kept, site, at_exit=True)

    assert (found.taken, found.unpaired, found.site) == (taken, unpaired, site)


@pytest.mark.parametrize("site", ["model.py:20", "odel.py", "train.py:10", "forward", "*:7", ""])
def test_a_site_where_nothing_was_made_is_answered_with_those_that_there_are(
    kept: Recording, site: str
) -> None:
    with pytest.raises(NoSuchSite, match="most objects were allocated at model.py:10"):
        balance(kept, site)


def test_no_pattern_means_a_place_without_a_stack() -> None:
    assert not any(matching(StackFrame("", 0, ""), text) for text in ("", "x.py", ":0", "main"))


def test_the_text_shows_what_has_no_pair_and_all_on_request(kept: Recording) -> None:
    found = balance(kept, at_exit=True)
    short, whole = balance_report.render_text(found), balance_report.render_text(found, True)

    assert "model.py:20 Layer.forward" in short and "held by reader: 1" in short
    assert "model.py:10" not in short and "model.py:10" in whole
    assert max(map(len, whole.splitlines())) <= 100


def test_a_balance_without_a_rest_says_so(tmp_path: Path) -> None:
    recording = recorded(tmp_path, (ALLOC, 64, 10, 1, NUMPY, 3), (FREE, 64, 0, 0, NUMPY, 3))
    text = balance_report.render_text(balance(recording, at_exit=True))

    assert "every acquire has its release" in " ".join(text.split())
    assert "unpaired" not in text


def test_json_is_flat_and_every_node_follows_its_caller(kept: Recording) -> None:
    told = json.loads("".join(balance_report.render_json(balance(kept, at_exit=True), True)))

    assert (told["schema"], told["taken"], told["unpaired"], told["bytes"]) == (1, 3, 1, 800)
    assert [node["site"]["line"] for node in told["nodes"]] == [1, 20, 10]
    assert [node["parent"] for node in told["nodes"]] == [None, 0, 0]


def test_stacks_as_deep_as_can_be_recorded_are_shown(tmp_path: Path) -> None:
    deep = 1024
    meta = [writer.code(1, FILES[0], "call"), writer.site(2, 0, 1, 1)]
    meta += [writer.site(number, number - 1, 1, number) for number in range(3, deep + 2)]
    events = writer.events([(1_000_000, 64, 10, deep + 1, 1, ALLOC, NUMPY)])
    file = writer.RecordingWriter(form="sealed", meta=meta, threads={1: events})
    found = balance(read(file.write(tmp_path / "x.tlm")), at_exit=True)

    assert len(balance_report.render_text(found, True).splitlines()) > deep
    assert len(json.loads("".join(balance_report.render_json(found)))["nodes"]) == deep


def random_sites(rng: random.Random) -> tuple[list[bytes], int]:
    """A random trie of call sites in two files."""
    count = rng.randint(1, 12)
    meta = [writer.code(n + 1, FILES[n % 2], f"f{n}") for n in range(3)]
    for number in range(2, 2 + count):
        parent = rng.choice([0, 1, *range(2, number)])
        meta.append(writer.site(number, parent, rng.randint(1, 3), rng.randint(1, 2)))
    return meta, count + 2


def by_hand(recording: Recording) -> dict[tuple, list[Any]]:
    """Sums by path, each taking walked up its stack."""
    told: dict[tuple, list[Any]] = {}
    size = recording.objects["size_bytes"].to_dict()

    def at(site: int) -> list[list[Any]]:
        frames = [(f["file"], f["line"], f["function"]) for f in recording.stack(site)][::-1]
        paths = [tuple(frames[: n + 1]) for n in range(len(frames))] or [()]
        return [told.setdefault(path, [0, 0, Counter()]) for path in paths]

    for row in recording.holders.to_dict("records"):
        if row["kind"] == FLOATING and row["end_ns"] >= 0:
            continue
        for node in at(row["begin_site"]):
            node[0] += 1
            if row["end_ns"] < 0:
                node[2][row["object"]] += 1
        if row["end_ns"] >= 0:
            for node in at(row["end_site"]):
                node[1] += 1
    return {
        path: [taken, given, open_.total(), len(open_), sum(size[n] for n in open_)]
        for path, (taken, given, open_) in told.items()
    }


operations = st.lists(
    st.tuples(st.integers(1, 2), st.integers(0, 14), st.integers(0, 1000)), min_size=1, max_size=60
)


@given(operations, st.integers(0, 1 << 30))
@settings(max_examples=100, deadline=None)
def test_every_sum_is_the_one_found_by_walking_every_stack(ops: list, seed: int) -> None:
    runtime, rng = Runtime().run(ops), random.Random(seed)
    meta, sites = random_sites(rng)
    threads = runtime.events()
    for events in threads.values():
        events["site"] = [rng.randrange(sites) for _ in events]
    if not any(np.isin(events["kind"], (ALLOC,)).any() for events in threads.values()):
        return
    file = writer.RecordingWriter(form="sealed", meta=meta, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        recording = read(file.write(Path(folder) / "x.tlm"))
        found, expected = balance(recording, at_exit=True), by_hand(recording)
    told: dict[tuple, list[int]] = {}
    waiting = [((), node) for node in found.roots]
    while waiting:
        above, node = waiting.pop()
        frame = node.frame
        path = (*above, (frame.file, frame.line, frame.function)) if frame.file else ()
        sums_of = [node.taken, node.given_back, node.unpaired, node.objects, node.bytes]
        assert path not in told
        told[path] = sums_of
        waiting.extend((path, child) for child in node.children)

    assert told == expected
    assert found.taken == sum(root.taken for root in found.roots)


def test_what_was_lost_is_told_since_a_pair_may_be_among_it(kept, monkeypatch) -> None:
    monkeypatch.setattr(Recording, "problems", ["one block was dropped"])
    found = balance(kept, at_exit=True)

    assert "\n\nproblem: one block was dropped\n" in balance_report.render_text(found)
    assert len(json.loads("".join(balance_report.render_json(found)))["problems"]) == 1


def objects_under(parents: list[int], rows: list[tuple[int, int]]) -> list[set[int]]:
    """The objects under each frame, from rows of a site and an object, stack by stack."""
    under: list[set[int]] = [set() for _ in parents]
    for site, number in rows:
        under[site].add(number)
        while parents[site]:
            site = parents[site]
            under[site].add(number)
    return under


@pytest.mark.parametrize("seed", range(40))
def test_objects_are_counted_once_under_every_frame_of_any_tree(seed: int) -> None:
    chance = random.Random(seed)
    parents = [0, 0]
    for site in range(2, chance.choice((4, 12, 70))):
        parents.append(chance.choice((0, site - 1, chance.randrange(site))))
    parents = [parent if parent > 1 else 0 for parent in parents]
    sites = [0, *range(2, len(parents))]
    rows = [(chance.choice(sites), chance.randrange(9)) for _ in range(chance.randrange(1, 90))]
    size = pd.Series({number: 2**number for number in range(8)})  # one is not listed
    site, number = np.array(rows).T
    open_rows = _Open(site, number, np.full(len(rows), "", object))
    count, held = _distinct(open_rows, np.array(parents), size)
    expected = objects_under(parents, rows)

    assert count.tolist() == [len(objects) for objects in expected]
    assert held.tolist() == [sum(int(size.get(n, 0)) for n in objects) for objects in expected]

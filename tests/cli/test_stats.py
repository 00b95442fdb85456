"""``tlmem stats``: sizes, lines and temporaries, in text and JSON, and what it refuses."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from support import programs, training
from support.training import Loop

import tlmem
from tlmem.analysis.allocation_statistics import size_classes, temporaries

LINES = (20, 21, 22)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in which line 20 makes temporaries, 21 large arrays, and 22 keeps small ones."""
    folder = tmp_path_factory.mktemp("stats")
    loop = Loop()
    kept = []
    for _ in range(10):
        loop.free(loop.alloc(training.at(LINES[0]), 100, device=training.NUMPY), training.at(30))
        large = loop.alloc(training.at(LINES[1]), 10_000, device=training.NUMPY)
        kept += [loop.alloc(training.at(LINES[2]), 8, device=training.NUMPY) for _ in range(3)]
        loop.free(large, training.at(30))
    loop.write(folder / "run.tlm")
    (folder / "not.tlm").write_bytes(b"no recording at all" * 1000)
    return folder


def rows_below(text: str, title: str) -> list[list[str]]:
    """The words of the rows of one table."""
    (block,) = [block for block in text.split("\n\n") if block.startswith(title)]
    return [line.split() for line in block.splitlines()[1:]]


def test_what_was_allocated_how_large_and_by_which_line(folder: Path) -> None:
    done = programs.command(("stats", "run.tlm"), folder)
    text = done.stdout.decode()

    assert (done.returncode, done.stderr) == (0, b"")
    assert text.startswith("50 allocations of 101 kB in ")
    assert "240 B in 30 objects left at the end. 10 (20%) were temporary" in " ".join(text.split())
    assert [row[:3] for row in rows_below(text, "Sizes")[1:]][0] == ["8", "B", "30"]
    assert [row[:3] for row in rows_below(text, "Sizes")[1:]][-1] == ["8", "KiB", "10"]
    for title, line, count in (
        ("Lines that allocate most bytes", 21, "10"),
        ("Lines that allocate most often", 22, "30"),
        ("Lines with most temporaries", 20, "10"),
    ):
        first = rows_below(text, title)[0]
        assert (first[2], f"train.py:{line}" in first) == (count, True)
    assert all(len(line) <= 100 for line in text.splitlines())


def test_json_adds_up_and_a_larger_threshold_counts_more_temporaries(folder: Path) -> None:
    def read(*words: str) -> dict:
        done = programs.command(("stats", "run.tlm", "--format", "json", *words), folder)
        assert (done.returncode, done.stderr) == (0, b"")
        return json.loads(done.stdout)

    one, three = read(), read("--temporary", "3")

    assert one["totals"]["count"] == one["known"] == 50
    assert sum(each["count"] for each in one["sizes"]) == 50
    assert sum(each["bytes"] for each in one["sizes"]) == one["totals"]["bytes"]
    assert sum(line["count"] for line in one["lines"]) == 50
    assert one["temporary"] == {"threshold": 1, "count": 10, "bytes": 1000}
    assert three["temporary"] == {"threshold": 3, "count": 20, "bytes": 101_000}


@pytest.mark.parametrize("words", [("nope.tlm",), ("not.tlm",), ("run.tlm", "--lines", "-1")])
def test_what_cannot_be_shown_is_one_sentence(folder: Path, words: tuple[str, ...]) -> None:
    done = programs.command(("stats", *words), folder)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr and done.stderr.strip()


def test_classes_begin_at_powers_of_two_and_hold_every_size() -> None:
    sizes = np.array([0, 1, 2, 3, 4, 1023, 1024, 2**40])
    found = size_classes(sizes)

    assert [(each.low, each.high, each.count) for each in found[:5]] == [
        (0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 1), (8, 15, 0)
    ]  # fmt: skip
    assert sum(each.bytes for each in found) == sizes.sum()
    assert size_classes(sizes[:0]) == ()


@pytest.mark.parametrize("seed", range(5))
def test_temporaries_are_those_that_a_plain_count_finds(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    loop = Loop()
    made: list[tuple[int, int]] = []  # address, thread
    events: list[tuple[str, int, int]] = []
    for _ in range(200):
        if made and chance.random() < 0.5:
            address, _ = made.pop(chance.randrange(len(made)))
            loop.free(address, training.at(30), thread=chance.choice((1, 2)))
            events.append(("free", address, 0))
        else:
            thread = chance.choice((1, 2))
            address = loop.alloc(training.at(20), 16, device=training.NUMPY, thread=thread)
            made.append((address, thread))
            events.append(("alloc", address, thread))
    recording = tlmem.read(loop.write(tmp_path / "random.tlm"))

    expected = {}
    for begin, (kind, address, thread) in enumerate(events):
        if kind == "alloc":
            later = events[begin + 1 :]
            ends = [i for i, event in enumerate(later) if event[:2] == ("free", address)]
            between = later[: ends[0]] if ends else []
            others = sum(e[0] == "alloc" and e[2] == thread for e in between)
            expected[address] = bool(ends) and others <= 1
    found = dict(
        zip(recording.objects["address"].tolist(), temporaries(recording).tolist(), strict=True)
    )

    assert found == expected
    assert any(expected.values()) and not all(expected.values())

"""``tlmem peak``: its text and JSON, and what it refuses."""

import json
from pathlib import Path

import pytest
from support import programs, training
from support.story import write_story
from support.training import Loop, trained

UNIT = 16_384


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings: a training loop, a NumPy program with marks, and files that are none."""
    folder = tmp_path_factory.mktemp("peak")
    trained(steps=4, blocks=4, unit=UNIT, batch=4, clear="late").write(folder / "train.tlm")
    write_story(folder / "story.tlm")
    loop = Loop()
    for index in range(3):
        loop.mark("load", index)
        loop.alloc(training.at(20), 1_000, device=training.NUMPY)
    loop.write(folder / "numpy.tlm")
    (folder / "not.tlm").write_bytes(b"no recording at all" * 1000)
    return folder


def said(folder: Path, *words: str) -> str:
    """What a command says that must not fail."""
    done = programs.command(("peak", *words), folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_by_role_what_when_and_what_would_lower_it(folder: Path) -> None:
    text = said(folder, "train.tlm")
    lines = text.splitlines()

    assert lines[0].startswith("Peak 868 kB in 26 blocks, ")
    assert "step 2 of 4, in forward of h.3 (train.py:33)" in " ".join(lines[:2])
    rows = {
        line[19:35].strip(): line.split()[:3]
        for line in lines
        if line.startswith("  ") and "%" in line[:20]
    }
    assert rows["activations"] == ["524", "kB", "60%"]
    assert rows["optimizer state"] == ["131", "kB", "15%"]
    assert rows["gradients"] == ["65.5", "kB", "8%"]
    assert "h.0 to h.3 131 kB each" in text
    assert "checkpoint h.* (4 modules, each by itself): peak " in text
    assert "half the batch" in text
    assert all(len(line) <= 100 for line in lines)


def test_by_module_as_a_tree_and_by_line(folder: Path) -> None:
    by_module = said(folder, "train.tlm", "--by", "module")
    by_line = said(folder, "train.tlm", "--by", "line")

    assert "   197 kB    23%  h.0         " in by_module
    assert " Net " not in by_module and all(len(line) <= 100 for line in by_module.splitlines())
    assert "of no known module: inputs" in by_module
    assert "of no known module: weights" not in by_module
    assert "train.py:31 Net.forward  activations" in by_line
    for text in (by_module, by_line):
        assert "100%" in text


def test_a_program_without_torch_is_shown_by_line_and_mark(folder: Path) -> None:
    text = said(folder, "numpy.tlm")

    assert "Peak 3.00 kB in 3 blocks" in text
    assert "after mark 'load' 2, at train.py:20" in text
    assert "   3.00 kB   100%        3  train.py:20 main" in text
    assert "   3.00 kB   100%        3  after marks 'load' 0 to 2" in text
    assert "What would lower it" not in text
    assert "objects" in said(folder, "story.tlm", "--by", "role")


def test_tensors_without_modules_are_shown_by_line(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.at(20), 5_000)
    loop.write(tmp_path / "a.tlm")
    report = programs.command(("report", "a.tlm"), tmp_path).stdout.decode()

    assert "  5.00 kB   100%        1  train.py:20 main" in said(tmp_path, "a.tlm")
    assert "\nPeak 5.00 kB in 1 block, " in report
    assert "100%        1  train.py:20 main" in report


def test_another_moment(folder: Path) -> None:
    text = said(folder, "numpy.tlm", "--at", "load:1")

    assert text.startswith("Alive 1.00 kB in 1 block, ")
    assert "the peak is 3.00 kB" in " ".join(text.split())
    assert said(folder, "numpy.tlm", "--at", "0").startswith("Nothing was alive in ")


def test_a_generation_is_what_two_moments_have_between_them(folder: Path) -> None:
    text = said(folder, "numpy.tlm", "--born", "load:1..load:2")

    assert text.startswith("Alive 1.00 kB in 1 block allocated after ")
    refused = programs.command(("peak", "numpy.tlm", "--born", "7"), folder)
    assert refused.returncode == 2 and b"is not two moments; write for" in refused.stderr


def test_json_has_every_sum(folder: Path) -> None:
    found = json.loads(said(folder, "train.tlm", "--format", "json"))

    assert list(found) == [
        "schema",
        "recording",
        "other_memories",
        "peak_before_detail",
        "memory",
        "at",
        "born",
        "is_peak",
        "bytes",
        "count",
        "peak_bytes",
        "estimated",
        "roles",
        "lower",
        "modules",
        "lines",
        "marks",
    ]
    assert found["schema"] == 1
    assert sum(each["bytes"] for each in found["roles"]) == found["bytes"] == found["peak_bytes"]
    assert sum(each["own_bytes"] for each in found["modules"]) == found["bytes"]
    assert sum(each["bytes"] for each in found["lines"]) == found["bytes"]
    assert found["at"]["step"] == 2 and found["at"]["module"] == "h.3"
    assert {each["kind"] for each in found["lower"]} == {
        "checkpoint",
        "smaller-batch",
    }
    checkpoint = next(each for each in found["lower"] if each["kind"] == "checkpoint")
    assert checkpoint["group"] == "Net.h.*" and len(checkpoint["modules"]) == 4
    assert checkpoint["saved_bytes"] == found["bytes"] - checkpoint["peak_bytes"]


def test_the_output_goes_to_a_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "peak.txt"

    done = programs.command(("peak", "train.tlm", "-o", str(out)), folder)

    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"tlmem: wrote the report to {out}\n"
    assert out.read_text(encoding="utf-8") == said(folder, "train.tlm")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["missing.tlm"], "missing.tlm"),
        (["not.tlm"], "not.tlm"),
        (["train.tlm", "--at", "epoch"], "has no mark 'epoch'"),
        (["numpy.tlm", "--at", "load:9"], "its marks are: load"),
        (["train.tlm", "--at", "12"], "ends after"),
        (["train.tlm", "--memory", "cuda:0"], "memories with objects: host"),
    ],
)
def test_what_is_refused_with_one_sentence(folder: Path, words: list[str], expected: str) -> None:
    done = programs.command(("peak", *words), folder)
    error = done.stderr.decode()

    assert done.returncode == 2
    assert done.stdout == b""
    assert error.startswith("tlmem: ") and error.count("\n") == 1
    assert expected in error


def test_the_report_has_the_peak_of_torch_and_of_nothing_else(folder: Path) -> None:
    report = programs.command(("report", "train.tlm"), folder).stdout.decode()
    told = json.loads(programs.command(("report", "train.tlm", "--format", "json"), folder).stdout)
    markdown = programs.command(("report", "train.tlm", "--format", "markdown"), folder).stdout
    without = programs.command(("report", "story.tlm"), folder).stdout.decode()

    assert "\nPeak 868 kB in 26 blocks, " in report
    assert "  Lower: half the batch" in report
    assert sum(each["bytes"] for each in told["peak"]["roles"]) == told["peak"]["bytes"]
    assert b"Peak 868 kB in 26 blocks, " in markdown
    assert "\nPeak " not in without
    plain = json.loads(programs.command(("report", "story.tlm", "--format", "json"), folder).stdout)
    assert "peak" not in plain


def test_names_cannot_break_the_text(tmp_path: Path) -> None:
    """Labels of modules come from the recorded program."""
    loop = Loop()
    name = "Net/" + "x" * 300 + "\x1b[31m\n.fc"
    for _ in range(2):
        saved = loop.alloc(training.forward(), UNIT, name)
        loop.free(loop.alloc(training.backward(), UNIT), training.backward())
        loop.free(saved, training.backward())
    loop.write(tmp_path / "a.tlm")
    for by in ("role", "module", "line"):
        text = said(tmp_path, "a.tlm", "--by", by)
        assert "\x1b" not in text
        assert all(len(line) <= 120 for line in text.splitlines())

"""What ``tlmem replay`` prints, and what it refuses."""

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.cuda_snapshot import frame, training
from support.reference_allocator import ReferenceAllocator, program

from tlmem.cli import main
from tlmem.importing import import_snapshot


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of a run in which a few blocks of one line keep a segment each."""
    folder = tmp_path_factory.mktemp("command")
    made = program(ReferenceAllocator(ring=500), 36)
    stack = made.stack(frame("/home/u/keep.py", 7, "remember"))
    for _ in range(5):
        first = made.alloc(90_000_000, stack)
        made.free(first, stack)
        made.alloc(65_000_000, stack)
    (folder / "run.pickle").write_bytes(pickle.dumps(made.snapshot(), protocol=4))
    (folder / "run.tlm").write_bytes(import_snapshot(folder / "run.pickle").data)
    return folder / "run.tlm"


def words(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["replay", str(path), *options]) == 0
    return capsys.readouterr().out


def found(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    return json.loads(words(path, capsys, "--json", *options))


def test_text_has_proof_answers_keepers_and_a_picture(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = words(path, capsys)

    assert "Reproduces the recorded run within 0%" in text
    assert "smallest device" in text and "default (recorded)" in text
    assert "At the peak (default settings)" in text and "keep.py:7 remember" in text
    assert "blocks are older than the trace" in text
    picture = [line for line in text.splitlines() if line.startswith("  |")]
    assert len(picture) == 12 and len({len(line) for line in picture}) == 1
    assert set("".join(picture)) > set(" .#|")


def test_a_sweep_is_one_table_with_a_line_to_copy(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = words(path, capsys, "--sweep")
    about = found(path, capsys, "--sweep")

    rows = [each["setting"] for each in about["answers"]]
    assert len(rows) == len(set(rows)) > 10
    assert all(row in text for row in rows)
    best = about["answers"][about["best"]]
    assert best["conf"] == about["conf"]
    assert f"export PYTORCH_ALLOC_CONF={about['conf']}\n" in text
    least = min(each["smallest_device_bytes"] for each in about["answers"])
    assert best["smallest_device_bytes"] <= 1.02 * least + best["within_bytes"]
    assert about["plan_bound_bytes"] >= about["requested_peak_bytes"] > 0


def test_what_is_reserved_is_a_sum_and_names_the_line_that_strands_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = found(path, capsys)
    for at in (about["stranded"]["at_peak"], about["stranded"]["at_end"]):
        parts = at["block_bytes"] + at["stranded_bytes"] + at["whole_free_bytes"]
        assert parts == at["reserved_bytes"]
        assert sum(line["stranded_bytes"] for line in at["lines"]) <= at["stranded_bytes"]
    end = about["stranded"]["at_end"]
    (keeps,) = [line for line in end["lines"] if line["site"]["line"] == 7]
    assert (keeps["site"]["file"], keeps["count"]) == ("/home/u/keep.py", 5)
    assert keeps["segments"] >= 1 and keeps["bytes"] == 325_000_000


def test_a_setting_is_compared_with_the_recorded_one(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = found(path, capsys, "--set", "expandable_segments=True")

    assert [each["setting"] for each in about["answers"]] == ["default", "expandable_segments:True"]
    assert [each["recorded"] for each in about["answers"]] == [True, False]
    assert about["stranded"]["setting"] == "expandable_segments:True"
    assert about["stranded"]["at_peak"]["pages"]


def test_arrays_of_a_program_name_who_holds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keeps.py").write_text(
        "import numpy as np\n"
        "kept = []\n"
        "for step in range(60):\n"
        "    large = [np.ones(400_000 + 9_000 * (step % 5)) for _ in range(4)]\n"
        "    kept.append(np.zeros(40_000))\n"
        "    del large\n"
    )
    command = [sys.executable, "-m", "tlmem", "record", "-q", "-o", "x.tlm", "keeps.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    about = found(tmp_path / "x.tlm", capsys)
    text = words(tmp_path / "x.tlm", capsys)

    assert about["memory"] == "host" and about["proof"] is None
    assert "Not compared with a real allocator" in text
    lines = {line["site"]["line"]: line for line in about["stranded"]["at_end"]["lines"]}
    assert lines[5]["count"] == 60 and lines[5]["stranded_bytes"] > 0
    assert lines[5]["holders"] == ["list 'kept' (module __main__, 60 items)"]
    assert "held by list 'kept'" in text


def test_pools_are_run_and_say_so(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = found(path, capsys, "--allocator", "pool", "--set", "policy=direct")
    text = words(path, capsys, "--allocator", "pool", "--sweep")

    assert about["allocator"] == "pool" and about["proof"] is None and about["conf"] is None
    assert about["answers"][0]["setting"] == "policy=direct"
    assert "tlmem's own buffers" in text and "persistent-reusing" in text


def test_a_picture_and_a_page_are_written(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, page = tmp_path / "x.svg", tmp_path / "x.html"
    words(path, capsys, "--plot", str(picture), "--format", "html", "-o", str(page))

    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "reserved and free" in text or "<path" in text
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>") and "<svg" in html and "keep.py:7" in html
    assert main(["replay", str(path), "--plot", str(picture)]) == 2
    assert "exists" in capsys.readouterr().err


def test_other_accelerators_are_named_and_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(training(steps=4, devices=2).snapshot()))
    (tmp_path / "x.tlm").write_bytes(import_snapshot(tmp_path / "x.pickle").data)

    assert "--memory cuda:1 replays it" in words(tmp_path / "x.tlm", capsys)
    assert found(tmp_path / "x.tlm", capsys, "--memory", "cuda:1")["proof"]["error"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "colour=blue"], "is not a setting"),
        (["--memory", "cuda:9"], "memories with some: cuda:0"),
        (["--allocator", "pool", "--set", "max_split_size_mb=32"], "policy=NAME"),
        (["--plot", "x.gif"], "must end in"),
    ],
)
def test_bad_options_get_one_sentence(
    options: list[str], said: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(path), *options]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_bad_files_get_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.tlm").write_bytes(b"nothing of ours")

    assert main(["replay", str(tmp_path / "x.tlm")]) == 2
    assert main(["replay", str(tmp_path / "absent.tlm")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_snapshot_gets_an_answer_or_one_sentence(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(seed)
    snapshot = program(ReferenceAllocator(ring=300, expandable=seed % 2 == 0), 14).snapshot()
    trace, segments = snapshot["device_traces"][0], snapshot["segments"]
    for _ in range(4):
        del trace[chance.randrange(len(trace))]
        chance.choice(trace)["size"] = chance.choice([0, 513, 7 << 20, 1 << 33])
        chance.choice(trace)["addr"] = chance.choice([0, 1 << 40])
        trace.insert(chance.randrange(len(trace)), dict(chance.choice(trace)))
    chance.choice(segments)["total_size"] = chance.choice([512, 1 << 33])
    del segments[chance.randrange(len(segments))]
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(snapshot))
    (tmp_path / "x.tlm").write_bytes(import_snapshot(tmp_path / "x.pickle").data)

    code = main(["replay", str(tmp_path / "x.tlm")])
    said = capsys.readouterr()
    assert code in (0, 1, 3)
    assert said.err.count("\n") == (code != 0) and bool(said.out) == (code == 0)

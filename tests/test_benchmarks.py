"""Every benchmark runs and fills in its part of the page. Sizes are tiny; no number is judged."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks" / "programs"
PAGE = ROOT / "docs" / "benchmarks.md"
WHOLE = ["mlp", "pandas_pipeline", "pure_python", "storm", "ten_million", "ten_million_runtime"]
PARTS = {
    "events": ["off", "warm 0", "line 20", "frame 50", "compaction, storm", "sealing"],
    "start": ["start-up", "start-up, numpy", "start-up, with verdict"],
    "programs": ["cpu, storm", "tracemalloc 25, storm", "bytes, storm", "exit, storm"],
    "reading": [],
    "runtime": ["runtime, scope", "runtime, pool hit", "runtime, add 64 out, tlmem"],
    "autograd": ["autograd us, mlp 8", "autograd us, transformer", "autograd, products"],
    "planning": ["planning generated, tight", "planning generated, 5 ms"],
    "heap": ["heap, pure_python", "heap, small_objects", "heap, pandas_pipeline"],
    "holders": ["holders, own", "holders, asked"],
    "torch": ["torch, tiny", "torch, resnet_kept", "profiler, add", "memtracker, gpt"],
}


def bench(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module", autouse=True)
def needs_native() -> None:
    """Only the recording side can be measured whole."""
    pytest.importorskip("tlmem._native", reason="benchmarks record, which needs the extension")


@pytest.mark.parametrize("part", PARTS)
def test_part_measures_and_fills_in_its_section(part: str, tmp_path: Path) -> None:
    if part in ("torch", "holders"):
        pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    page = tmp_path / "page.md"
    shutil.copy(PAGE, page)

    done = bench(part, "--scale", "0.004", "--rounds", "1", "--program", "storm", "--page", page)

    assert done.returncode == 0, done.stderr
    assert f"## {part}" in done.stdout
    section = page.read_text().split(f"<!-- begin {part} -->")[1].split(f"<!-- end {part} -->")[0]
    assert section.count("\n|") >= 3
    assert "--scale 0.004" in section
    values = json.loads(page.with_suffix(".json").read_text())
    assert [name for name in PARTS[part] if name not in values] == []


@pytest.mark.parametrize("program", WHOLE)
def test_program_tells_its_first_and_last_moment(program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, PROGRAMS / f"{program}.py", "0.004"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    began, ended = map(int, done.stdout.split())
    assert began < ended


def test_quick_run_leaves_the_published_page_alone(tmp_path: Path) -> None:
    before = PAGE.read_bytes()

    done = bench("reading", "--scale", "0.001", "--rounds", "1")

    assert done.returncode == 0, done.stderr
    assert PAGE.read_bytes() == before


def test_unknown_part_is_named() -> None:
    done = bench("speed")

    assert (done.returncode, "'speed' is not a part" in done.stderr) == (2, True)

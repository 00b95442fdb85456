"""What commands and screens say of a recording that was made from a snapshot."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from support import cuda_snapshot
from support.cuda_snapshot import training
from support.screens import app_of, opened, press, screen_text
from tlmem.dashboards.app import PAGES

import tlmem
from tlmem.analysis import analyse
from tlmem.cli import main
from tlmem.importing import import_snapshot


def write(folder: Path, name: str, value: Any = None, **options: Any) -> Path:
    """The file of the recording of a simulated training run."""
    value = training(**options).snapshot() if value is None else value
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(value, protocol=4))
    place = folder / f"{name}.tlm"
    place.write_bytes(import_snapshot(folder / f"{name}.pickle").data)
    return place


@pytest.fixture(scope="module")
def leaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty steps, each of which keeps 300 kB at line 66; the ring lost the first ones."""
    return write(tmp_path_factory.mktemp("leak"), "leak", steps=40, leak=300_000, ring=5000)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without."""
    return write(tmp_path_factory.mktemp("healthy"), "healthy", steps=40, ring=5000)


# ---- the verdict ----


def test_a_line_that_keeps_blocks_is_a_leak(leaking: Path) -> None:
    found = analyse(tlmem.read(leaking))
    growing = [finding for finding in found.findings if finding.kind == "growing-site"]

    assert found.verdict.outcome == "leak"
    assert [(finding.site.file, finding.site.line) for finding in growing] == [
        ("/home/u/train.py", 66)
    ]
    assert "blocks allocated here were never freed" in found.verdict.sentence
    assert growing[0].bytes % 300_032 == 0
    alive = [finding for finding in found.findings if finding.kind == "live-at-end"]
    assert {finding.site.line for finding in alive} >= {12, 64, 66}


@pytest.mark.parametrize("steps", [9, 14, 40])
@pytest.mark.parametrize("ring", [400, 777, 10**9])
@pytest.mark.parametrize("free_stacks", [True, False])
def test_a_healthy_run_is_no_leak(steps: int, ring: int, free_stacks: bool, tmp_path: Path) -> None:
    path = write(tmp_path, "x", steps=steps, ring=ring, free_stacks=free_stacks, waits=True)
    verdict = analyse(tlmem.read(path)).verdict

    assert verdict.outcome in ("stable", "cannot-judge"), verdict.sentence
    assert "sampled" not in verdict.sentence and "rss" not in verdict.sentence


def test_stable_says_what_a_snapshot_covers(healthy: Path) -> None:
    verdict = analyse(tlmem.read(healthy)).verdict

    assert verdict.outcome == "stable"
    assert "caching allocator" in verdict.sentence


def test_blocks_older_than_the_trace_are_no_growth(tmp_path: Path) -> None:
    """The ring begins in the forward pass, with many blocks of the lines that go on."""
    path = write(tmp_path, "x", steps=40, ring=40 * 60, layers=20)
    found = analyse(tlmem.read(path))

    assert found.verdict.outcome != "leak"
    assert not [finding for finding in found.findings if finding.kind == "growing-site"]


@pytest.mark.parametrize("stop", [2940, 3460, 4641])
def test_optimizer_state_and_later_temporaries_of_its_line_are_no_leak(
    stop: int, tmp_path: Path
) -> None:
    """The first step makes 48 blocks at one line that stay; each later one makes one that goes."""
    path = write(tmp_path, "x", steps=20, layers=24, stop=stop, step_us=2_000_000)

    assert analyse(tlmem.read(path)).verdict.outcome != "leak"


def test_a_snapshot_without_a_trace_is_not_judged(tmp_path: Path) -> None:
    value = training(steps=3).snapshot()
    value["device_traces"] = [[]]
    verdict = analyse(tlmem.read(write(tmp_path, "x", value))).verdict

    assert verdict.outcome == "cannot-judge"
    assert "_record_memory_history" in verdict.sentence


# ---- commands ----


def test_the_report_has_the_identity(leaking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(leaking)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    segments = tlmem.read(leaking).segments
    sums = {name: int(segments[name].sum()) for name in segments.columns if name.endswith("_bytes")}

    assert "Leak at train.py:66" in text
    for name, words in (
        ("total_bytes", "reserved {} = "),
        ("requested_bytes", "live {} +"),
        ("rounding_bytes", "rounding {} +"),
        ("split_free_bytes", "free inside used segments {} +"),
        ("whole_free_bytes", "whole free segments {}"),
    ):
        assert words.format(tlmem.units.format_bytes(sums[name])) in text
    assert "older than the trace" in text and "Resident memory" not in text


def test_json_has_it_in_bytes(leaking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--format", "json", str(leaking)]) == 0
    (found,) = json.loads(capsys.readouterr().out)["allocators"]
    parts = dict(found["reserved"])

    assert parts.pop("total_bytes") == sum(parts.values()) > 0
    assert found["pools"][0]["name"] == "default pool, stream 0"


def test_out_of_memory_and_pools_are_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = training(steps=3, oom=True).snapshot()
    value["segments"][0]["segment_pool_id"] = (0, 4)
    assert main(["report", str(write(tmp_path, "x", value))]) == 0
    text = " ".join(capsys.readouterr().out.split())

    assert "out of memory on cuda:0: 4.29 GB requested, 537 MB free on the device, after" in text
    assert "train.py:70" in text
    assert "private pool (0, 4), stream 0: reserved" in text


@pytest.mark.parametrize(
    "words",
    [
        ["check", "{}", "--budget", "peak=60GB"],
        ["plan", "{}", "--seconds", "0"],
        ["plan", "{}", "--json", "--seconds", "0"],
        ["peak", "{}"],
        ["peak", "{}", "--format", "json"],
        ["balance", "{}"],
        ["history", "{}", "30"],
        ["report", "--explain", "{}"],
        ["report", "--format", "markdown", "{}"],
        ["report", "--format", "html", "{}", "-o", "out.html"],
        ["plot", "{}", "-o", "out.svg"],
        ["plot", "{}", "--kind", "sites", "-o", "sites.svg"],
        ["export", "{}", "--to", "csv", "-o", "tables"],
        ["export", "{}", "--to", "perfetto", "-o", "out.trace"],
        ["export", "{}", "--to", "speedscope", "-o", "out.json"],
        ["export", "{}", "--to", "memory-viz", "-o", "out.pickle"],
    ],
    ids=lambda words: " ".join(words).replace(" {}", ""),
)
def test_every_command_reads_it(
    words: list[str], leaking: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)

    assert main([word.replace("{}", str(leaking)) for word in words]) == 0
    said = capsys.readouterr()
    assert "Traceback" not in said.out + said.err


def test_a_diff_names_the_line(
    leaking: Path, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(healthy), str(leaking)]) == 0
    text = " ".join(capsys.readouterr().out.split())

    assert "growing-site" in text and "train.py:66" in text


def test_a_gate_fails_on_the_leak_and_passes_without(leaking: Path, healthy: Path) -> None:
    assert main(["check", str(leaking)]) == 1
    assert main(["check", str(healthy)]) == 0


def test_a_snapshot_of_the_old_form_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = cuda_snapshot.bare_list(training(steps=2).snapshot())

    assert main(["report", str(write(tmp_path, "old", value))]) == 0
    text = capsys.readouterr().out
    assert "Cannot judge" in text and "no trace of it" in text and "reserved" in text


# ---- the terminal ----


@pytest.mark.asyncio
async def test_every_screen_opens(leaking: Path) -> None:
    app = app_of(leaking)
    async with opened(app, (140, 40)) as pilot:
        assert "leak at train.py:66" in screen_text(app)
        for number in range(1, len(PAGES) + 1):
            await press(pilot, str(number % 10))
            assert screen_text(app).strip()


def test_two_snapshots_are_reported_together(
    leaking: Path, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--format", "json", str(healthy), str(leaking)]) == 0
    processes = json.loads(capsys.readouterr().out)["processes"]

    assert len(processes) == 2
    assert sorted(each["verdict"]["outcome"] for each in processes.values()) == ["leak", "stable"]

"""The check of live CUDA recordings says what differs, on recordings of which the truth is known.

It has not been run on a machine with a GPU: there its parts are tried by themselves.
"""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import writer

ROOT = Path(__file__).resolve().parents[1]
ALLOC, FREE, MARK, DEVICE_ALLOC, ACCELERATOR = 1, 2, 32, 22, 5
FIRST, SECOND = 0x7F00_0000_0000, 0x7F00_0000_2000
TRACE = [("alloc", FIRST), ("alloc", SECOND), ("free", FIRST)]
SAYS = [(3072, 2 << 20), (2048, 2 << 20)]


def test_it_ends_with_2_without_an_accelerator() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    if torch.cuda.is_available():
        pytest.skip("there is an accelerator here: run python -m benchmarks.cuda_check")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cuda_check"],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert "no accelerator" in done.stderr


def recording(path: Path) -> Path:
    """A block older than the check, then two allocations, a step, a free, and another step."""
    ticks = iter(range(2_000_000, 10_000_000, 4_000))
    rows = [
        (0, 2 << 20, DEVICE_ALLOC, ACCELERATOR),
        (FIRST + 0x9000, 0, ALLOC, ACCELERATOR),
        (1, 0, MARK, 0),
        (FIRST, 1024, ALLOC, ACCELERATOR),
        (SECOND, 2048, ALLOC, ACCELERATOR),
        (2, 0, MARK, 0),
        (FIRST, 0, FREE, ACCELERATOR),
        (2, 1, MARK, 0),
    ]
    events = writer.events(
        (next(ticks), thing, arg, 0, 0, kind, device) for thing, arg, kind, device in rows
    )
    made = writer.RecordingWriter(form="sealed", threads={1: events})
    made.meta = [writer.thread(1), writer.label(1, "check"), writer.label(2, "step")]
    path.write_bytes(made.build())
    return path


@pytest.mark.parametrize(
    "trace, says, wrong",
    [
        (TRACE, SAYS, []),
        (TRACE[:2], SAYS, ["3 events and 2 entries of PyTorch's trace"]),
        ([TRACE[1], TRACE[0], TRACE[2]], SAYS, ["event 0 is"]),
        (TRACE, [SAYS[0], (2049, 2 << 20)], ["step 1: (2048, 2097152) bytes live and reserved"]),
        (TRACE, [(3072, 1 << 20), SAYS[1]], ["step 0: (3072, 2097152) bytes live and reserved"]),
    ],
)
def test_what_differs_is_said(
    trace: list, says: list, wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    cuda_check = importlib.import_module("benchmarks.cuda_check")
    truth = tmp_path / "trace.json"
    truth.write_text(json.dumps({"says": says, "trace": trace}))

    found = cuda_check.compare(recording(tmp_path / "x.tlm"), truth)

    assert len(found) == len(wrong)
    assert all(text in sentence for text, sentence in zip(wrong, found, strict=True)), found

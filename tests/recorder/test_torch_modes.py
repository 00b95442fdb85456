"""Whether PyTorch's modes were on: noted at snapshots and at the end, without a call of Python."""

from pathlib import Path

import pytest
from recorder.test_stacks import record
from support import programs

import tlmem

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

HEAD = """
import warnings; warnings.simplefilter('ignore')
import torch, tlmem
def forbidden(*_): raise AssertionError("called by the recorder")
torch.is_anomaly_enabled = torch._C.is_anomaly_enabled = forbidden
torch._C._autograd._profiler_enabled = torch.autograd._profiler_enabled = forbidden
"""


@pytest.mark.parametrize(
    ("program", "note"),
    [
        ("torch.zeros(1)", None),
        (
            "torch.set_anomaly_enabled(True)",
            "looks=1 anomaly=1 anomaly_last=1 profiler=0 profiler_last=0",
        ),
    ],
)
def test_what_is_on_at_the_end_is_noted_without_snapshots_too(
    program: str, note: str | None, tmp_path: Path
) -> None:
    found = record(tmp_path, HEAD + program, options=("--holders", "off"))

    assert found.info["torch.hook"] == "slots"
    assert found.info.get("torch.modes") == note


def test_what_was_on_at_a_snapshot_and_is_off_again_is_noted(tmp_path: Path) -> None:
    program = "with torch.autograd.profiler.profile(): tlmem.snapshot()"
    (tmp_path / "program.py").write_text(HEAD + program, encoding="utf-8")
    done = programs.recorded(["program.py"], tmp_path, options=("-q", "-o", "made.tlm"))
    assert done.returncode == 0, done.stderr.decode()  # PyTorch says there that it profiles

    note = tlmem.read(tmp_path / "made.tlm").info["torch.modes"]

    assert "anomaly=0" in note
    assert " profiler=0" not in note
    assert note.endswith("profiler_last=0")

"""A worker of PyTorch's DataLoader writes its number into its own recording."""

from pathlib import Path

import pytest
from support import programs

import tlmem
from tlmem.recording import family

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

PROGRAM = """
import warnings; warnings.simplefilter('ignore')
import torch
from torch.utils.data import DataLoader
assert sum(len(batch) for batch in DataLoader(range(8), num_workers=2)) == 8
"""


def test_each_worker_is_known_by_its_number_and_the_program_has_none(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = programs.recorded(["program.py"], tmp_path, options=("-q", "-o", "made.tlm"))
    assert done.returncode == 0, done.stderr.decode()

    own, *workers = [tmp_path / "made.tlm", *family.find(tmp_path / "made.tlm")]
    assert "torch.worker" not in tlmem.read(own).info
    assert sorted(tlmem.read(each).info["torch.worker"] for each in workers) == ["0 of 2", "1 of 2"]

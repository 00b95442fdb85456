"""joblib, torchrun and pytest-xdist under ``--follow all``: the one worker that leaks is named."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.programs import command, recorded

TASK = """
import os, time
import numpy

kept = []

def work(number):
    deadline = time.monotonic() + 60
    open(f"{number}.here", "w").close()
    while len([name for name in os.listdir() if name.endswith(".here")]) < 2:
        assert time.monotonic() < deadline  # until each worker has one of the two
    for step in range(2000 * number):
        kept.append(numpy.ones(200))
        time.sleep(0.0005)
    return number
"""
MAIN = """
from joblib import Parallel, delayed
from work import work

if __name__ == "__main__":
    print(Parallel(n_jobs=2)(delayed(work)(number) for number in range(2)))
"""
TORCHRUN = """
import time
import numpy
import torch.distributed as distributed

distributed.init_process_group("gloo")
rank, kept = distributed.get_rank(), []
for step in range(2000 * rank):
    kept.append(numpy.ones(200))
    time.sleep(0.0005)
distributed.barrier()
distributed.destroy_process_group()
"""
XDIST = """
import time
import numpy, pytest

kept = []

@pytest.mark.parametrize("number", range(40))
def test_work(number, worker_id):
    for step in range(100):
        array = numpy.ones(200)
        if worker_id == "gw1":
            kept.append(array)
            time.sleep(0.001)
"""


def verdict_of(arguments: list[str], folder: Path, **environment: str) -> tuple[bytes, Any]:
    """What the program printed, and the report of its family."""
    options = ("-q", "--follow", "all", "-o", "a.tlm")
    done = recorded(arguments, folder, options=options, environment=environment)
    assert done.returncode == 0, done.stderr.decode()
    report = command(["report", "--format", "json", "a.tlm"], folder)
    return done.stdout, json.loads(report.stdout)


def outcomes(report: Any, key: str) -> dict[object, str]:
    """The verdict of each process that has this in its identity."""
    processes = report["processes"].values()
    return {
        each["identity"][key]: each["verdict"]["outcome"]
        for each in processes
        if each["identity"][key] not in (None, "")
    }


def test_the_leaking_worker_of_joblib_is_named(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "main.py").write_text(MAIN, encoding="utf-8")
    stdout, report = verdict_of(["main.py"], tmp_path)

    assert stdout == b"[0, 1]\n"
    assert sorted(outcomes(report, "worker").values()).count("leak") == 1
    assert report["verdict"]["sentence"].startswith("Worker LokyProcess-")
    assert "one of 3 processes: Leak at work.py:13" in report["verdict"]["sentence"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_the_leaking_rank_of_torchrun_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TORCHRUN, encoding="utf-8")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    _, report = verdict_of(words, tmp_path, OMP_NUM_THREADS="1")
    (leaking,) = [p for p in report["processes"].values() if p["verdict"]["outcome"] == "leak"]
    host = os.uname().nodename

    assert sorted(outcomes(report, "rank")) == [0, 1]
    assert outcomes(report, "rank")[0] != "leak"
    assert leaking["identity"]["local_rank"] == 1 and leaking["identity"]["world_size"] == 2
    assert report["verdict"]["sentence"].startswith(
        f"Rank 1 (node {host}, pid {leaking['identity']['pid']}), one of 3 processes: Leak at "
    )


def test_the_leaking_worker_of_xdist_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_work.py").write_text(XDIST, encoding="utf-8")
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist"]
    words += ["-n", "2", "--dist", "each"]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    stdout, report = verdict_of([*words, "test_work.py"], tmp_path, **environment)

    assert b"80 passed" in stdout
    assert sorted(outcomes(report, "worker")) == ["gw0", "gw1"]
    assert outcomes(report, "worker")["gw0"] != "leak"
    assert report["verdict"]["sentence"].startswith("Worker gw1 (pid ")

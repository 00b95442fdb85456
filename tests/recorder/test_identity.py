"""Recordings say which rank or worker made them, as its launcher says; files are named so."""

import os
from pathlib import Path

import pytest
from support.programs import command, plain, recorded

import tlmem
from tlmem.recorder import identity
from tlmem.recorder.bound import core
from tlmem.recording.identity import Identity, identity_of

HOST = os.uname().nodename
NAMES = {name for names in identity.VARIABLES.values() for name in names}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of whatever runs these tests are not there."""
    core.load()
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, {}),
        (
            {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "SLURM_PROCID": "0"},
            {"rank": "3", "local_rank": "1", "world_size": "8"},
        ),
        (
            {
                "OMPI_COMM_WORLD_RANK": "2",
                "OMPI_COMM_WORLD_LOCAL_RANK": "0",
                "OMPI_COMM_WORLD_SIZE": "4",
            },
            {"rank": "2", "local_rank": "0", "world_size": "4"},
        ),
        ({"PMI_RANK": "5", "PMI_SIZE": "6"}, {"rank": "5", "world_size": "6"}),
        ({"PMIX_RANK": "7"}, {"rank": "7"}),
        (
            {"SLURM_PROCID": "9", "SLURM_LOCALID": "1", "SLURM_NTASKS": "16", "SLURM_JOB_ID": "77"},
            {"rank": "9", "local_rank": "1", "world_size": "16", "job": "77"},
        ),
        ({"PYTEST_XDIST_WORKER": "gw1"}, {"worker": "gw1"}),
        ({"DASK_WORKER_NAME": "w-2"}, {"worker": "w-2"}),
        ({"RAY_WORKER_ID": "ab12", "RAY_JOB_ID": "01"}, {"worker": "ab12", "job": "01"}),
        ({"RANK": "auto", "PMI_RANK": "4"}, {"rank": "4"}),
        ({"RANK": "", "PYTEST_XDIST_WORKER": "w" * 300}, {}),
    ],
)
def test_launchers_are_known_by_their_variables(
    variables: dict[str, str], found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert identity.identity() == {"host": HOST, **found}


@pytest.mark.parametrize(
    ("known", "name"),
    [
        (Identity(5, 0), "Process 5"),
        (Identity(5, 0, "b"), "Process 5"),
        (Identity(5, 1, "b", worker="gw1"), "Worker gw1 (pid 5)"),
        (Identity(20227, 1, "b", 37, worker="x"), "Rank 37 (node b, pid 20227)"),
        (Identity(20227, 1, "", 0), "Rank 0 (pid 20227)"),
    ],
)
def test_a_rank_is_a_name_before_a_worker_before_a_number(known: Identity, name: str) -> None:
    assert known.name == name


@pytest.mark.parametrize("rank", ["", "x", "-1", "9" * 30, "³"])
def test_a_note_that_is_no_number_is_not_taken_for_one(rank: str) -> None:
    class Foreign:
        info = {"rank": rank, "world_size": "2"}
        pid, parent_pid = 5, 4

    assert identity_of(Foreign()) == Identity(5, 4, world_size=2)


def test_what_a_process_becomes_after_its_start_is_noted_at_its_end(tmp_path: Path) -> None:
    program = """
import multiprocessing, os
def work(rank):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
if __name__ == "__main__":
    os.environ.pop("RANK", None)
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        process = context.Process(target=work, args=(len(method),), name="made by " + method)
        process.start()
        process.join()
"""
    (tmp_path / "ranks.py").write_text(program, encoding="utf-8")
    recorded(["ranks.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    children = [identity_of(tlmem.read(path)) for path in tmp_path.glob("a.*.tlm")]
    report = command(["report", "a.tlm"], tmp_path).stdout.decode()

    assert sorted((each.rank, each.world_size, each.worker) for each in children) == [
        (4, 2, "made by fork"),
        (5, 2, "made by spawn"),
    ]
    for each in children:
        assert f"\nRank {each.rank} (node {HOST}, pid {each.pid}), " in report
    assert identity_of(tlmem.read(tmp_path / "a.tlm")).rank is None


def test_a_process_group_without_variables_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distributed:
        @staticmethod
        def is_initialized() -> bool:
            return True

        @staticmethod
        def get_rank() -> int:
            return 3

        @staticmethod
        def get_world_size() -> int:
            return 4

    class Broken:
        is_initialized = 1

    assert identity.identity_within({}) == {}
    assert identity.identity_within({"torch.distributed": Broken}) == {}
    assert identity.identity_within({"torch.distributed": Distributed}) == {
        "rank": "3",
        "world_size": "4",
    }


def test_a_file_is_named_by_host_rank_and_number(tmp_path: Path) -> None:
    options = ("-q", "-o", "run/%h/%r.%p.100%%.tlm")
    recorded(["-c", "pass"], tmp_path, options=options, environment={"PMI_RANK": "12"})
    (path,) = tmp_path.glob("run/*/*.tlm")

    assert path.parent.name == HOST
    assert path.name == f"12.{tlmem.read(path).pid}.100%.tlm"


def test_without_a_rank_the_name_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert identity.expand("a/%r.tlm") == "a/none.tlm" and (tmp_path / "a").is_dir()
    assert identity.expand("b/none.tlm") == "b/none.tlm" and not (tmp_path / "b").exists()


@pytest.mark.parametrize("pattern", ["%z.tlm", "a%", "%-h.tlm"])
def test_another_letter_is_one_clear_error(pattern: str, tmp_path: Path) -> None:
    done = recorded(["-c", "print(1)"], tmp_path, options=("-o", pattern))

    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"stands for nothing; %h is the host" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = recorded(["-c", "print(1)"], tmp_path, options=("-o", "file/%r.tlm"))

    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"the folder of 'file/%r.tlm' cannot be made" in done.stderr


def test_a_name_is_the_same_for_the_gate(tmp_path: Path) -> None:
    words = ["-m", "tlmem", "record", "--check", "--allow", "short", "-o", "%r.%%.tlm"]
    done = plain([*words, "-c", "pass"], tmp_path)

    assert (done.returncode, [path.name for path in tmp_path.iterdir()]) == (0, ["none.%.tlm"])

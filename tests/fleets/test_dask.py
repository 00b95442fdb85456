"""A real Dask scheduler with workers: the same answer, and a worker that is killed is survived."""

from pathlib import Path

import pytest
from support.dask_cluster import Cluster, cluster, until

import tlmem
from tlmem import cli
from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.engine import NoExecutor, executor_at

distributed = pytest.importorskip("distributed", reason="Dask is not installed (tlmem[dask])")


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory):
    """A scheduler and two workers."""
    with cluster(tmp_path_factory.mktemp("dask"), 2) as started:
        yield started


def test_dask_gives_the_answer_of_this_machine(
    two_workers: Cluster,
    run_folder: Path,
    found: FleetAnalysis,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with executor_at(two_workers.address) as executor:
        assert tlmem.fleet(run_folder).analyse(executor) == found
    code = cli.main(["report", str(run_folder), "--on", two_workers.address])

    assert code == 0
    assert capsys.readouterr().out.startswith("rank 5 (node b, pid 20005) grows 801 kB per step")


def test_a_worker_that_is_killed_in_the_middle_is_survived(
    two_workers: Cluster, run_folder: Path, found: FleetAnalysis
) -> None:
    killed = two_workers.workers[0]

    def kill(done: int, of: int) -> None:
        if done == 1:
            killed.kill()
            killed.wait()

    with distributed.Client(two_workers.address.replace("dask://", "tcp://")) as client:
        until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == 2)
    with executor_at(two_workers.address) as executor:
        assert tlmem.fleet(run_folder).analyse(executor, progress=kill) == found
    assert killed.returncode == -9


def test_a_scheduler_that_does_not_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tlmem.fleets.engine.DASK_TIMEOUT_S", 0.2)
    with pytest.raises(NoExecutor, match="no Dask scheduler answers at dask://127.0.0.1:1"):
        with executor_at("dask://127.0.0.1:1"):
            pass

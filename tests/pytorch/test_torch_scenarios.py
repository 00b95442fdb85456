"""The scenarios of PyTorch: each fault is a leak with a line, and without PyTorch they are skipped.

That the truth of each is found, ``tests/scenarios`` asks of all scenarios.
"""

import importlib.util

import pytest
from tlmem.scenarios.harness import catalog

from tlmem import scenarios

FOLDERS = [catalog.PROGRAMS / name for name in ("torch", "autograd", "loaders")]
OF_TORCH = {
    scenario.name: scenario
    for folder in FOLDERS
    for path in folder.glob("*.py")
    for scenario in catalog.read_scenarios(path)
}
FAULTS = {
    "torch-anomaly-mode",
    "torch-context-cycle",
    "torch-detached-kept",
    "torch-gradients-never-cleared",
    "torch-hidden-state",
    "torch-hook-keeps",
    "torch-kept-contexts",
    "torch-kept-losses",
    "torch-kept-nodes",
    "torch-kv-cache",
    "torch-loader-batches",
    "torch-modules-grow",
    "torch-optimizer-outlives",
    "torch-pack-hook",
    "torch-profiler-left-on",
    "torch-replay-views",
    "torch-retained-graph",
    "torch-running-loss",
    "torch-sparse-kept",
    "torch-worker-cache",
}


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else found(name)
    )


def test_each_fault_has_a_line_and_a_twin() -> None:
    faulty = {name for name, scenario in OF_TORCH.items() if scenario.faulty}

    assert faulty == FAULTS
    assert {name for name in faulty if OF_TORCH[name].line == 0} == {"torch-profiler-left-on"}
    assert {OF_TORCH[name].twin for name in faulty} <= set(OF_TORCH)


def test_a_dozen_more_are_healthy() -> None:
    twins = {scenario.twin for scenario in OF_TORCH.values() if scenario.faulty}

    assert len(set(OF_TORCH) - FAULTS - twins) >= 12


def test_all_say_that_they_need_torch() -> None:
    assert {scenario.needs for scenario in OF_TORCH.values()} == {"torch"}


def test_with_torch_none_is_skipped() -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

    assert set(OF_TORCH) <= set(catalog.scenarios())
    assert catalog.skipped() == {} and catalog.skipped_text() == ""


@pytest.mark.usefixtures("without_torch")
def test_without_torch_they_are_no_scenarios_here() -> None:
    known = catalog.scenarios()

    assert set(OF_TORCH) & set(known) == set()
    assert "dict-cache" in known
    assert set(catalog.skipped()) == set(OF_TORCH)


@pytest.mark.usefixtures("without_torch")
def test_without_torch_the_list_says_how_many_are_skipped_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert scenarios.list_scenarios() == 0

    printed = capsys.readouterr()
    assert "torch-" not in printed.out and "dict-cache" in printed.out
    assert printed.err == (
        f"tlmem: {len(OF_TORCH)} scenarios are skipped, they need "
        "PyTorch: pip install tlmem[torch]\n"
    )


@pytest.mark.usefixtures("without_torch")
def test_without_torch_one_that_is_named_says_what_to_install(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert scenarios.run_scenario("torch-kept-losses") == 2

    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "tlmem: scenario torch-kept-losses needs PyTorch: pip install tlmem[torch]\n"
    )

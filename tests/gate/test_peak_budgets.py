"""Budgets of roles and modules at the peak, and that other budgets count PyTorch's memory too."""

from pathlib import Path

import pytest
from gate.programs import check, recorded, states
from support import training
from support.training import at, forward, init

from tlmem.gate.budget_kinds import ROLES

UNIT = 16_384
BLOCKS, BATCH = 4, 4
WEIGHTS = BLOCKS * UNIT
ACTIVATIONS = 2 * BLOCKS * BATCH * UNIT
"""Two of each block: all of them are there when backward begins."""
TEMPORARIES = BATCH * UNIT + 64
"""What the first node of backward makes, and the gradient of the loss."""
TRAIN = """\
import torch

import tlmem

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 64))
optimizer = torch.optim.AdamW(net.parameters())
kept = []
for step in range(700):
    tlmem.mark("step", step)
    x = torch.ones(64, 64)
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(x[:, :16].clone())
"""
MADE = 3 * UNIT
"""Of each block's weight and its two states, at the peak."""
PARAMETERS = 4 * (64 * 96 + 96 + 96 * 64 + 64)
KEPT_LINE, KEPT_BYTES = 16, 64 * 16 * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training loop ``net.tlm``, one with half of its blocks, and one program without PyTorch."""
    place = tmp_path_factory.mktemp("peaks")
    training.trained(blocks=BLOCKS).write(place / "net.tlm")
    training.trained(blocks=BLOCKS // 2).write(place / "small.tlm")
    plain = training.Loop()
    plain.free(plain.alloc(at(5), 1_000, device=training.NUMPY), at(6))
    plain.write(place / "numpy.tlm")
    two_memories().write(place / "two.tlm")
    return place


def two_memories() -> training.Loop:
    """Weights in two memories, and modules of which no path is known."""
    loop = training.Loop()
    for device, number in ((training.TORCH, 0), (training.ACCELERATOR, 1)):
        loop.alloc(init(), 1_000 + number, device=device, accelerator=number)
        loop.free(loop.alloc(forward(), 50_000, device=device, accelerator=number), forward())
    return loop


def row(folder: Path, name: str, limit: str, *words: str, file: str = "net.tlm") -> dict:
    """What is said of one budget."""
    given = (file, "--budget", f"{name}={limit}", "--allow", "short", *words)
    _, found = check(*given, cwd=folder)
    return next(row for row in found["programs"][0]["budgets"] if row["name"] == name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("peak.weights", WEIGHTS),
        ("peak.optimizer-state", 2 * WEIGHTS),
        ("peak.activations", ACTIVATIONS),
        ("peak.temporaries", TEMPORARIES),
        ("peak.recomputed", 0),
        ("peak.numpy-arrays", 0),
        ("peak.module@Net", 2 * BLOCKS * BATCH * UNIT + BATCH * UNIT + BLOCKS * MADE),
        ("peak.module@Net/h.0", 2 * BATCH * UNIT + MADE),
        ("peak.module@h.0", 2 * BATCH * UNIT + MADE),
        ("peak.module@Net.h.[01]", 4 * BATCH * UNIT + 2 * MADE),
        ("peak.module@Net/h.0.fc", BATCH * UNIT + MADE),
        ("peak.module@*.fc", BLOCKS * (BATCH * UNIT + MADE)),
    ],
)
def test_a_part_of_the_peak_is_exact(folder: Path, name: str, value: int) -> None:
    over = row(folder, name, f"{value - 1} B") if value else None
    kept = row(folder, name, f"{value} B")

    assert kept["value"] == kept["low"] == kept["high"] == value
    assert kept["state"] == "pass"
    assert over is None or over["state"] == "over"


def test_roles_add_up_to_the_peak(folder: Path) -> None:
    values = [row(folder, f"peak.{role}", "1 GB")["value"] for role in ROLES]

    assert sum(values) == row(folder, "peak", "1 GB")["value"]


def test_what_is_over_says_where_to_look(folder: Path) -> None:
    sentence = row(folder, "peak.activations", "1 kB")["sentence"]
    of_module = row(folder, "peak.module@h.*", "1 kB")["sentence"]

    assert "peak.activations is 524 kB; at most 1.00 kB is allowed. The peak is " in sentence
    assert sentence.endswith("tlmem peak net.tlm --by role shows its parts.")
    assert of_module.endswith("tlmem peak net.tlm --by module shows its parts.")


@pytest.mark.parametrize(("name", "state"), [("peak.weights", "over"), ("peak.inputs", "pass")])
def test_a_part_may_not_increase_beside_a_baseline(folder: Path, name: str, state: str) -> None:
    found = row(folder, f"{name}-increase", "10%", "--baseline", "small.tlm")

    assert found["state"] == state


def test_modules_are_compared_with_a_baseline_too(folder: Path) -> None:
    words = ("--baseline", "small.tlm")
    of_one = row(folder, "peak.module@h.0-increase", "0", *words)
    of_all = row(folder, "peak.module@h.*-increase", "10%", *words)

    assert (of_one["state"], of_all["state"]) == ("pass", "over")


def test_each_memory_counts_at_its_own_peak(folder: Path) -> None:
    found = row(folder, "peak.weights", "1 B", file="two.tlm")

    assert found["value"] == 1_001
    assert "The peak of accelerator:1 is" in found["sentence"]
    assert "--memory accelerator:1 shows" in found["sentence"]


@pytest.mark.parametrize(
    ("name", "file", "parts"),
    [
        ("peak.activations", "numpy.tlm", ("numpy.tlm has no memory of PyTorch", "budget peak")),
        ("peak.module@h.*", "numpy.tlm", ("numpy.tlm has no memory of PyTorch",)),
        ("peak.module@h.*", "two.tlm", ("no block in two.tlm has the path of a module",)),
        ("peak.module@g.*", "net.tlm", ("'g.*'", "Net, Net/h, Net/h.0", "--by module lists")),
    ],
)
def test_what_is_not_there_is_not_measured(folder: Path, name, file, parts) -> None:
    found = row(folder, name, "1 GB", file=file)

    assert found["state"] == "unknown"
    assert [part for part in parts if part not in found["sentence"]] == []


def test_arrays_of_numpy_have_a_budget_without_pytorch(folder: Path) -> None:
    assert row(folder, "peak.numpy-arrays", "1 kB", file="numpy.tlm")["value"] == 1_000


def test_growth_of_pytorchs_memory_is_measured_without_samples(tmp_path: Path) -> None:
    loop = training.Loop()
    for step in range(400):
        loop.mark("step", step)
        loop.alloc(at(30), 4_000)
        loop.free(loop.alloc(at(31), 9_000), at(32))
    loop.write(tmp_path / "kept.tlm")
    per_second = row(tmp_path, "tracked-growth", "1 kB/s", file="kept.tlm")
    per_step = row(tmp_path, "tracked-growth", "4 kB per step", file="kept.tlm")

    # Four events a step, of 1 microsecond each.
    assert per_second["value"] == pytest.approx(4_000 / 4e-6, rel=0.02)
    assert (per_step["value"], per_step["state"]) == (pytest.approx(4_000, rel=0.01), "pass")


def test_a_training_loop_is_held_to_its_budgets(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    recorded(tmp_path, TRAIN, "train")
    budgets = {
        "peak.weights": f"{PARAMETERS} B",
        "peak.optimizer-state": f"{2 * PARAMETERS + 64} B",
        "peak.gradients": "1 B",
        "peak.module@Sequential/0": "1 B",
        "tracked-growth": f"{KEPT_BYTES - 500} B per step",
        "leaks": "0",
    }
    words = [word for pair in budgets.items() for word in ("--budget", "=".join(pair))]
    code, found = check("train.tlm", *words, "--allow", "short", cwd=tmp_path)
    rows = {row["name"]: row for row in found["programs"][0]["budgets"]}

    assert code == 1
    assert rows["peak.weights"]["value"] == PARAMETERS
    assert states(found)["peak.optimizer-state"] == "pass"
    assert states(found)["peak.module@Sequential/0"] == "over"
    assert rows["tracked-growth"]["value"] == pytest.approx(KEPT_BYTES, rel=0.02)
    assert states(found)["tracked-growth"] == states(found)["leaks"] == "over"
    assert rows["leaks"]["findings"][0]["site"]["line"] == KEPT_LINE

"""What the replays of a real program predict is what it needs once it is changed so.

The program is the small GPT of ``tests/pytorch/programs``; it is recorded as it is, and then with
one thing changed in its source.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support import programs

from tlmem.analysis.peak.explained import Explained, explain
from tlmem.analysis.peak.lowering import BATCH, CHECKPOINT, CLEAR
from tlmem.recording.reader import read

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
pytestmark = pytest.mark.xdist_group("predictions")  # recorded once, not in each worker

PROGRAMS = Path(__file__).resolve().parents[2] / "pytorch" / "programs"
ZERO = "        optimizer.zero_grad(set_to_none=True)\n"
CALL = "        loss = model(x, y)\n"
BATCH_OF = "batch(data, 8, 64)"
BLOCK = "            x = block(x)\n"
AGAIN = "            x = checkpoint(block, x, use_reentrant=False)\n"
NEAR = 0.01
"""Of a peak: what the runs of a program differ by for other reasons than the change."""


def replaced(source: str, old: str, new: str) -> str:
    assert source.count(old) == 1
    return source.replace(old, new)


def early(source: str) -> str:
    """Gradients are cleared before forward."""
    return replaced(replaced(source, ZERO, ""), CALL, ZERO + CALL)


CHANGES: dict[str, Callable[[str], str]] = {
    "as it is": lambda source: source,
    CLEAR: early,
    BATCH: lambda source: replaced(source, BATCH_OF, "batch(data, 4, 64)"),
    CHECKPOINT: lambda source: replaced(
        replaced(source, BLOCK, AGAIN),
        "import torch\n",
        "import torch\nfrom torch.utils.checkpoint import checkpoint\n",
    ),
    "in place": lambda source: early(source).replace("set_to_none=True", "set_to_none=False"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Explained]:
    """The peak of each variant, recorded."""
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "truth.py").write_bytes((PROGRAMS / "truth.py").read_bytes())
    found = {}
    for name, change in CHANGES.items():
        program = folder / f"{name.replace(' ', '_')}.py"
        program.write_text(change((PROGRAMS / "gpt.py").read_text("utf-8")), "utf-8")
        out = program.with_suffix(".tlm")
        done = programs.recorded([program.name], folder, options=("-q", "-o", out.name))
        assert done.returncode == 0, done.stderr
        found[name] = explain(read(out))
    return found


def predicted(found: Explained, kind: str) -> int | None:
    return next((each.bytes for each in found.lowered if each.kind == kind), None)


@pytest.mark.parametrize("kind", [CLEAR, BATCH])
def test_the_changed_program_has_the_predicted_peak(kind: str, runs: dict[str, Explained]) -> None:
    before, after = runs["as it is"], runs[kind]
    said = predicted(before, kind)

    assert said is not None
    assert after.bytes < 0.95 * before.bytes
    assert abs(said - after.bytes) <= NEAR * after.bytes


def test_gradients_that_are_zeroed_in_place_would_be_less_if_they_were_cleared(
    runs: dict[str, Explained],
) -> None:
    said = predicted(runs["in place"], CLEAR)

    assert said is not None
    assert abs(said - runs[CLEAR].bytes) <= NEAR * runs[CLEAR].bytes
    assert predicted(runs[CLEAR], CLEAR) is None


def test_checkpointed_blocks_have_at_most_the_predicted_peak(runs: dict[str, Explained]) -> None:
    before, after = runs["as it is"], runs[CHECKPOINT]
    said = predicted(before, CHECKPOINT)

    assert said is not None
    assert after.bytes < 0.8 * before.bytes
    assert after.bytes <= 1.01 * said
    assert said <= 1.1 * after.bytes


def test_gradients_are_of_the_modules_of_their_weights(
    runs: dict[str, Explained], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every weight of 16 kB or more: smaller blocks have no path."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    model = __import__("gpt").GPT(vocabulary=256, length=64, width=128, layers=4, heads=4)
    expected: Counter[tuple[str, ...]] = Counter()
    for name, weight in model.named_parameters():
        size = weight.numel() * weight.element_size()
        if size >= 16_384:
            expected["GPT", *name.split(".")[:-1]] += size
    gradients = next(each for each in runs["as it is"].roles if each.role == "gradients")

    assert dict(gradients.modules) == expected


def test_what_is_computed_again_has_a_role_of_its_own(runs: dict[str, Explained]) -> None:
    roles = {each.role: each.bytes for each in runs[CHECKPOINT].roles}
    before = {each.role: each.bytes for each in runs["as it is"].roles}

    assert roles["recomputed"] > 1_000_000
    assert roles["activations"] < 0.1 * before["activations"]
    assert "recomputed" not in before


def test_steps_and_roles_of_the_program(runs: dict[str, Explained]) -> None:
    found = runs["as it is"]
    roles = {each.role: each.bytes for each in found.roles}

    assert found.moment.steps == 6
    assert roles["optimizer state"] == pytest.approx(2 * roles["weights"], rel=0.001)
    assert roles["gradients"] == roles["weights"]
    assert sum(roles.values()) == found.bytes

"""Suppressions mean what they mean to LeakSanitizer, and none is forgotten in silence."""

from pathlib import Path

import pytest

from tlmem.analysis.model import Finding, StackFrame
from tlmem.gate import suppressions
from tlmem.gate.budgets import BadOptions
from tlmem.gate.suppressions import Suppression, matches_site, module_of

STACK = (
    StackFrame(
        "/srv/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 7, "Linear.init"
    ),
    StackFrame("/srv/job/model.py", 30, "Layer.forward"),
    StackFrame("/srv/job/train.py", 12, "main"),
)
LEAK = Finding("growing-site", "error", 7, 700, "", site=STACK[1], stack=STACK)


@pytest.mark.parametrize(
    "pattern",
    [
        "model.py",
        "forward",
        "Layer.forward",
        "main",
        "torch.nn.modules",
        "torch*linear",
        "^Layer.forward$",
        "^main",
        "train.py$",
        "*",
    ],
)
def test_a_pattern_is_found_in_function_file_or_module_of_any_frame(pattern: str) -> None:
    assert Suppression(pattern, "x:1").matches(LEAK)


@pytest.mark.parametrize("pattern", ["^forward", "mode$", "Layer.backward", "torch.optim", "a.b"])
def test_other_patterns_are_not(pattern: str) -> None:
    assert not Suppression(pattern, "x:1").matches(LEAK)


@pytest.mark.parametrize(
    "pattern, there",
    [("model.py:30", True), ("model.py", True), ("main", False), ("model.py:3$", False)],
)
def test_places_are_those_of_the_line_to_blame(pattern: str, there: bool) -> None:
    assert matches_site(pattern, LEAK) is there


def test_used_and_unused_ones_are_counted(tmp_path: Path) -> None:
    (tmp_path / "known").write_text("# known\n\nleak:Layer.forward\n  leak:nothing  \nleak:main\n")
    kind = Finding("over-retained", "warning", 7, 700, "", site=STACK[1], stack=STACK)

    known = suppressions.read([tmp_path / "known"])
    left, gone, used = suppressions.apply([LEAK, kind], known)

    assert (left, gone) == ([], [LEAK, kind])
    assert [(u.suppression.pattern, u.findings, u.objects, u.bytes) for u in used] == [
        ("Layer.forward", 2, 7, 700),
        ("nothing", 0, 0, 0),
        ("main", 0, 0, 0),
    ]
    assert used[1].suppression.origin == f"{tmp_path / 'known'}:4"


@pytest.mark.parametrize("line", ["race:main", "leak:", "leak", "forward"])
def test_a_line_that_is_none_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    (tmp_path / "known").write_text(f"# first\n{line}\n")

    with pytest.raises(BadOptions, match="known:2: "):
        suppressions.read([tmp_path / "known"])


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadOptions, match="cannot be read"):
        suppressions.read([tmp_path / "missing"])
    with pytest.raises(BadOptions, match="not a text"):
        suppressions.read([tmp_path / "bytes"])


def test_modules_are_named_from_their_package_on() -> None:
    assert module_of("/x/site-packages/numpy/linalg/__init__.py") == "numpy.linalg"
    assert module_of("/home/a/model.py") == "home.a.model"

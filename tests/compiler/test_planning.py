"""A function is planned before its first call: for given arguments, or for what annotations say."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tlmem
from tlmem.compiler.compiled import compile


def plain(x, w, n=2):
    return tlmem.relu(x @ w) * n


def described(x: "float32[8, 16]", w: "Float64[16, 4]", n: int = 2):  # noqa: F722, F821, UP037
    return tlmem.relu(x.astype("float64") @ w) * n


def only_first(x, y, /, *, z: "float32[4]"):  # noqa: F722, F821, UP037
    return (x + y) * z


def test_a_plan_for_given_arguments_is_that_of_the_first_call() -> None:
    function = compile(plain)
    x, w = tlmem.randn((8, 16), seed=1), tlmem.randn((16, 4), seed=2)
    made = function.compiled.plan(x, w=w)
    into = function.compiled.plan(x, w, out=True)

    assert function.compiled.plan(x, w, 2) is made
    assert len(made.plan.placed) == 2
    assert [each.nbytes for each in into.plan.placed.values()] == [128, 128]
    function(x, w)
    function(x, w, out=tlmem.empty((8, 4)))
    assert function.compiled.specialisations == [made, into]


def test_annotations_say_what_is_not_given_and_a_call_of_another_kind_plans_anew() -> None:
    function = compile(described)
    made = function.compiled.plan()

    assert [each.nbytes for each in made.plan.placed.values()] == [8 * 4 * 8] * 2
    x, w = tlmem.randn((8, 16), seed=1), tlmem.randn((16, 4), "float64", seed=2)
    assert function(x, w).tolist() == described(x, w).tolist()
    assert function.compiled.specialisations == [made]
    assert function(x[:3], w).tolist() == described(x[:3], w).tolist()
    assert len(function.compiled.specialisations) == 2


def test_positional_and_keyword_arguments_go_where_they_belong() -> None:
    function = compile(only_first)
    x = tlmem.ones(4)
    made = function.compiled.plan(x, x)

    function(x, x, z=x)
    assert function.compiled.specialisations == [made]
    with pytest.raises(TypeError):
        function.compiled.plan(x=x, y=x)


def test_what_has_no_value_is_named() -> None:
    with pytest.raises(TypeError, match="plain cannot be planned without w; give a value, or an"):
        compile(plain).compiled.plan(tlmem.ones((2, 2)))
    with pytest.raises(TypeError, match="unexpected keyword"):
        compile(plain).compiled.plan(v=1)


def test_an_explanation_before_the_first_call_knows_the_annotations() -> None:
    found = tlmem.explain(compile(described))

    assert [row.reason for row in found.rows if row.operation == "slot"] == []
    assert sum("in the frame" in row.reason for row in found.rows) == 2


def test_the_command_line_takes_shapes_from_annotations(tmp_path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "import tlmem\n\n\ndef forward(x: 'float32[8, 16]', w: 'float32[16, 4]', b):\n"
        "    return tlmem.relu(x @ w + b)\n"
    )
    command = [sys.executable, "-m", "tlmem", "plan", f"{file}:forward"]
    done = subprocess.run([*command, "--shapes", "b=4"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "given x 8x16:float32, w 16x4:float32, b 4:float32" in " ".join(done.stdout.split())
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "forward needs b too; give a shape for each tensor" in done.stderr

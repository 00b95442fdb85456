"""Growth within one call of a library may be its result; what repeats, or is the user's, is not."""

from pathlib import Path

import pytest
from support.programs import recorded

import tlmem
from tlmem.analysis import Analysis, analyse

SOLVE = """
import numpy as np
from scipy.integrate import solve_ivp

KEPT = []
A = np.random.default_rng(0).normal(size=(60, 60)) * 0.1 - np.eye(60)


def slope(t, y):
    return A @ np.sin(y)


def solve(end):
    return solve_ivp(slope, (0, end), np.ones(60), max_step=0.1)


"""
ONE_CALL = "print(solve(400).y.shape)\n"
IN_A_LOOP = "for end in range(500):\n    KEPT.append(solve(1 + end / 200))\n"
NAMED_TWICE = """
def again(call):
    for end in range(500):
        KEPT.append(call(3))
again(solve)
"""
MAPPED = "KEPT += list(map(solve, [3] * 500))\n"
BY_CALLBACK = """
from scipy.optimize import rosen
from scipy.optimize import differential_evolution
differential_evolution(rosen, [(-5, 5)] * 8, maxiter=400, tol=0, seed=1, polish=False,
                       callback=lambda x, convergence: KEPT.append(x))
"""
ANIMATION = """
import matplotlib
matplotlib.use("Agg")
import numpy as np
from matplotlib import animation, pyplot

figure, axes = pyplot.subplots(figsize=(3, 2))
(line,) = axes.plot(np.linspace(0, 6, 400), np.zeros(400))
def draw(i):
    line.set_ydata(np.sin(line.get_xdata() + i / 10))
film = animation.FuncAnimation(figure, draw, frames=150)
film.save("film.gif", writer=animation.PillowWriter(fps=20))
"""
"""The writer keeps each frame until the film is written."""


def analysed(source: str, folder: Path) -> Analysis:
    (folder / "x.py").write_text(SOLVE + source)
    recorded(["x.py"], folder, options=("-q", "-o", "x.tlm"))
    return analyse(tlmem.read(folder / "x.tlm"))


def kinds(found: Analysis) -> set[str]:
    return {finding.kind for finding in found.findings}


def test_the_result_of_one_call_is_no_leak(tmp_path: Path) -> None:
    found = analysed(ONE_CALL, tmp_path)

    assert found.verdict.outcome == "cannot-judge", found.verdict.sentence
    assert "were kept within one call of a library at x.py:14, " in found.verdict.sentence
    assert " of them by list 'ys' (local variable of solve_ivp()" in found.verdict.sentence
    assert "one-call" in kinds(found) and "growing-site" not in kinds(found)


@pytest.mark.parametrize("source", [IN_A_LOOP, NAMED_TWICE, MAPPED])
def test_calls_that_repeat_are_judged_as_ever(source: str, tmp_path: Path) -> None:
    found = analysed(source, tmp_path)

    assert (found.verdict.outcome, "one-call" in kinds(found)) == ("leak", False), found.verdict


def test_what_the_user_s_own_code_holds_is_the_user_s(tmp_path: Path) -> None:
    found = analysed(BY_CALLBACK, tmp_path)

    assert (found.verdict.outcome, "one-call" in kinds(found)) == ("leak", False), found.verdict
    assert any(
        "'KEPT' (module __main__" in holder.name
        for finding in found.findings
        if finding.kind == "growing-site"
        for holder in finding.holders
    )


def test_memory_outside_arrays_is_the_call_s_too(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(ANIMATION)
    recorded(["x.py"], tmp_path, options=("-q", "-o", "x.tlm"))
    found = analyse(tlmem.read(tmp_path / "x.tlm"))

    assert (found.verdict.outcome, "one-call" in kinds(found)) == ("cannot-judge", True)
    assert "grew by" in found.verdict.sentence and "at x.py:12" in found.verdict.sentence


IN_MODULES = {
    "main.py": "from steps import work\n\nif __name__ == '__main__':\n    work.go()\n",
    "steps/__init__.py": "",
    "steps/work.py": f"{SOLVE}def go():\n    print(solve(800).y.shape)\n",
}


def analysed_files(files: dict[str, str], program: list[str], folder: Path) -> Analysis:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    recorded(program, folder, options=("-q", "-o", "x.tlm"))
    return analyse(tlmem.read(folder / "x.tlm"))


@pytest.mark.parametrize("program", [["main.py"], ["-m", "main"], ["-m", "steps"]])
def test_the_call_may_be_in_another_module(program: list[str], tmp_path: Path) -> None:
    files = {**IN_MODULES, "steps/__main__.py": "from . import work\nwork.go()\n"}
    found = analysed_files(files, program, tmp_path)

    assert found.verdict.outcome == "cannot-judge", found.verdict.sentence
    assert "within one call of a library at work.py:14" in found.verdict.sentence


def test_a_module_that_is_run_once_is_no_loop(tmp_path: Path) -> None:
    files = {"x.py": SOLVE + ONE_CALL, "main.py": "import x\n"}

    assert analysed_files(files, ["main.py"], tmp_path).verdict.outcome == "cannot-judge"


def test_a_loop_in_another_module_repeats(tmp_path: Path) -> None:
    steps = f"{SOLVE}def go():\n    return solve(5)\n"
    main = "from work import go, KEPT\nfor i in range(500):\n    KEPT.append(go())\n"
    found = analysed_files({"work.py": steps, "main.py": main}, ["main.py"], tmp_path)

    assert (found.verdict.outcome, "one-call" in kinds(found)) == ("leak", False), found.verdict


def test_the_function_of_a_command_line_runs_once(tmp_path: Path) -> None:
    pytest.importorskip("click")
    begin, save = ANIMATION.rsplit("film.save", 1)
    main = f"import click\n@click.command()\ndef main():\n    film.save{save}main()\n"
    found = analysed_files({"x.py": begin + main}, ["x.py"], tmp_path)

    assert (found.verdict.outcome, "one-call" in kinds(found)) == ("cannot-judge", True)
    assert "grew by" in found.verdict.sentence


BY_OTHER_NAMES = {
    "a table of functions": "{'run': solve}['run'](800)",
    "an instance": "class Call:\n    def __call__(self):\n        solve(800)\n"
    "call = Call()\ncall()",
    "a decorator": "import functools\n"
    "def twice(f):\n    return functools.wraps(f)(lambda *a: f(*a))\ntwice(solve)(800)",
    "a coroutine": "import asyncio\nasync def main():\n    solve(800)\nasyncio.run(main())",
    "exec": "exec('solve(800)')",
}


@pytest.mark.parametrize("source", BY_OTHER_NAMES.values(), ids=BY_OTHER_NAMES)
def test_a_local_variable_of_the_library_holds_what_one_call_made(
    source: str, tmp_path: Path
) -> None:
    found = analysed_files({"x.py": f"{SOLVE}{source}\n"}, ["x.py"], tmp_path)

    assert found.verdict.outcome == "cannot-judge", found.verdict.sentence
    assert " by list 'ys' (local variable of solve_ivp()" in found.verdict.sentence


LIBRARY = """
import time
import numpy as np

def collect(into, count):
    for number in range(count):
        into.append(np.full(300, number))
        time.sleep(0.0005)

def serve(handler, count):
    pending = []
    for number in range(count):
        pending.append(handler(number))
        time.sleep(0.0005)

def relay(handler, count):
    latest = []
    for number in range(count):
        latest = [*latest[-2:], handler(number)]
        time.sleep(0.0005)
"""
OWN_LIST = """
from collecting import collect

def main():
    own = []
    for _ in range(4):
        collect(own, 500)

(lambda call: call())(main)
"""
OWN_HANDLER = """
import numpy as np
from collecting import serve

(lambda call: call(lambda number: np.full(300, number), 2000))(serve)
"""


def of_a_library(source: str, folder: Path) -> str:
    (folder / "site-packages").mkdir()
    (folder / "site-packages/collecting.py").write_text(LIBRARY)
    (folder / "x.py").write_text(source)
    environment = {"PYTHONPATH": str(folder / "site-packages")}
    recorded(["x.py"], folder, environment=environment, options=("-q", "-o", "x.tlm"))
    return analyse(tlmem.read(folder / "x.tlm")).verdict.sentence


def test_what_the_user_s_code_gave_a_library_is_judged(tmp_path: Path) -> None:
    sentence = of_a_library(OWN_LIST, tmp_path)

    assert sentence.startswith("Leak at x.py:7: 2,000 of "), sentence


def test_what_a_library_collects_of_the_user_s_function_is_of_one_call(tmp_path: Path) -> None:
    sentence = of_a_library(OWN_HANDLER, tmp_path)

    assert sentence.startswith("Cannot judge: 2,000 arrays (4.80 MB) were kept within one call of")
    assert "by list 'pending' (local variable of serve() at collecting.py:" in sentence


NATIVE_OWNER = """
import ctypes
import numpy as np
from collecting import relay

def handler(number):
    made = np.full(300, number)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))
    return made

(lambda call: call(handler, 2000))(relay)
"""


def test_a_library_that_has_a_few_of_them_in_a_variable_did_not_collect_them(
    tmp_path: Path,
) -> None:
    sentence = of_a_library(NATIVE_OWNER, tmp_path)

    assert sentence.startswith("Leak at x.py:7: 2,000 of "), sentence


COROUTINES = """
import asyncio
import numpy as np

async def request(number):
    body = np.full(900, number)
    await asyncio.Event().wait()
    return body

async def main():
    tasks = set()
    for number in range(600):
        tasks.add(asyncio.create_task(request(number)))
        await asyncio.sleep(0.002)
    for task in tasks:
        task.cancel()

asyncio.run(main())
"""


def test_what_the_user_s_coroutines_keep_is_judged(tmp_path: Path) -> None:
    found = analysed_files({"x.py": COROUTINES}, ["x.py"], tmp_path)

    assert found.verdict.sentence.startswith("Leak at x.py:6: "), found.verdict.sentence

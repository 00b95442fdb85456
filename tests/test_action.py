"""The GitHub Action: its steps run in bash as GitHub runs them, on small programs.

Expressions of inputs and of the event are put in as GitHub would; ``gh`` is a program of this test
that notes what it was asked. Covers: what the steps do. Does not cover: GitHub's own machinery.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the packages of the tests")

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / ".github/actions/check/action.yml").read_text(encoding="utf-8"))
EVENT = {
    "github.event_name": "pull_request",
    "github.token": "secret",
    "github.repository": "owner/name",
    "github.event.number": "12",
}
STEADY = """\
import time, numpy
kept = [None] * 10
for step in range(1500):
    kept[step % 10] = numpy.ones(3000)
    time.sleep(0.0004)
"""
LEAK = STEADY.replace("[None] * 10", "{}").replace("kept[step % 10]", "kept[step]")
GH = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$GH_CALLS"
[ "$GH_FOUND" != refused ] || exit 1
case "$*" in *--paginate*) printf '%s' "$GH_FOUND" ;; *) cp "${7#body=@}" "$GH_CALLS.body" ;; esac
"""
"""Finds what the test says, notes its words, and keeps the comment that it is given."""


@dataclass
class Ran:
    """What the steps printed, the first exit code that was not 0, and the calls of ``gh``."""

    printed: str
    code: int
    calls: list[str]


def value_of(expression: str, inputs: dict[str, str]) -> str:
    """An expression without operators."""
    name = expression.strip()
    if name.startswith("inputs."):
        return inputs[name.removeprefix("inputs.")]
    return EVENT[name]


def holds(condition: str, inputs: dict[str, str], failed: bool) -> bool:
    """A condition of a step: terms joined by ``&&``. Without ``always()`` a failure skips it."""
    terms = [term.strip() for term in condition.split("&&")] if condition else []
    if failed and "always()" not in terms:
        return False
    for term in terms:
        if term != "always()":
            name, how, text = re.fullmatch(r"([\w.]+) (==|!=) '([^']*)'", term).groups()
            if (value_of(name, inputs) == text) != (how == "=="):
                return False
    return True


def act(folder: Path, found: str = "", **given: str) -> Ran:
    """Runs all steps of the action in a folder.

    Args:
        found: the numbers of comments that ``gh`` finds.
        given: inputs; those of others are their defaults.
    """
    defaults = {name: about.get("default", "") for name, about in ACTION["inputs"].items()}
    inputs: dict[str, str] = {**defaults, "install": "", **given}
    assert set(inputs) == set(ACTION["inputs"])
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    calls = folder / "calls"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TLMEM_", "GITHUB_"))}
    path = [str(programs), str(Path(sys.executable).parent), environment["PATH"]]
    environment |= {
        "PATH": os.pathsep.join(path), "GH_CALLS": str(calls), "GH_FOUND": found,
    }  # fmt: skip
    printed, code = "", 0
    for step in ACTION["runs"]["steps"]:
        if not holds(step.get("if", ""), inputs, code != 0):
            continue
        assert step["shell"] == "bash"
        put_in = {
            name: re.sub(r"\$\{\{(.*?)\}\}", lambda found: value_of(found[1], inputs), text)
            for name, text in step["env"].items()
        }
        script = folder / "step.sh"
        script.write_text(step["run"])
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=folder, env={**environment, **put_in}, text=True, timeout=600,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        printed, code = printed + ran.stdout, code or ran.returncode
    return Ran(printed, code, calls.read_text().splitlines() if calls.exists() else [])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two programs, and a recording of the steady one from the base branch."""
    folder = tmp_path_factory.mktemp("action")
    (folder / "steady.py").write_text(STEADY)
    (folder / "leak.py").write_text(LEAK)
    ran = act(folder, program="steady.py", budgets="verdict=stable\npeak=1 GB\n", output="base")
    assert ran.code == 0, ran.printed
    shutil.copy(folder / "base" / "check.tlm", folder / "main.tlm")
    return folder


def test_a_program_that_keeps_its_budgets_passes_and_leaves_its_reports(place: Path) -> None:
    names = {path.name for path in (place / "base").iterdir()}

    assert names >= {"check.tlm", "check.xml", "check.sarif", "comment.md"}
    assert "peak" in (place / "base" / "comment.md").read_text()
    assert not (place / "calls").exists()


def test_a_leak_fails_and_the_comment_has_the_difference_to_the_base_branch(place: Path) -> None:
    ran = act(place, program="leak.py", baseline="main.tlm", comment="true")
    body = (place / "calls.body").read_text()
    search, post = ran.calls
    (place / "calls").unlink()

    assert ran.code == 1, ran.printed
    assert "::error" in ran.printed and "leak.py" in ran.printed
    assert search.startswith("api --paginate repos/owner/name/issues/12/comments ")
    assert "--method POST repos/owner/name/issues/12/comments " in post
    assert body.startswith("<!-- tlmem check ")
    assert "Difference to the base branch" in body and "leak.py:4" in body.partition("````")[2]


def test_a_later_run_writes_its_comment_anew_and_needs_no_baseline(place: Path) -> None:
    ran = act(place, "77\n78", program="steady.py", baseline="not-yet.tlm", comment="true")

    assert ran.code == 0, ran.printed
    assert "no baseline not-yet.tlm yet" in ran.printed
    assert "--method PATCH repos/owner/name/issues/comments/77 " in ran.calls[-1]


def test_a_comment_that_github_refuses_does_not_fail_the_job(place: Path) -> None:
    ran = act(place, "refused", program="-c pass", options="--allow short", comment="true")

    assert ran.code != 1 and "::warning::The comment was not written" in ran.printed


def test_each_input_and_its_default_is_described() -> None:
    assert all(about["description"].endswith(".") for about in ACTION["inputs"].values())
    assert {name for name, about in ACTION["inputs"].items() if "default" not in about} == {
        "program"
    }

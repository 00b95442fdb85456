"""Forged recordings: every command answers or refuses in a sentence, in bounded memory and time.

A forged file of at most 2 MB takes below 500 MB and 20 s of CPU, whatever it says and whichever
command reads it. In CI a file meets two commands, so that each command meets a file, and a command
that walks a table row by row meets the file with the most rows of that table (``BURDENS``);
``TLMEM_HOSTILE=long`` runs all of them on all files, which takes most of an hour.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile import forge
from support import story
from support.programs import environment_of

MOST_BYTES, MOST_CPU_S = 500_000_000, 20.0
MOST_STDOUT_BYTES = 64_000_000
LONG = os.environ.get("TLMEM_HOSTILE") == "long"
HERE = Path(__file__).parent
BATCHES = 2
BURDENS = {
    "many_marks_with_one_label": ("perfetto",),
    "passes_within_passes": ("perfetto",),
    "many_scopes_that_overlap": ("perfetto", "tui"),
    "many_pools": ("tui", "live"),
    "many_lines_that_grow": ("tui",),
}
"""Files that are the heaviest for some commands, which they meet in every run."""

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="children are measured by fork and wait4, which Windows has not"
)


def names_of_commands() -> list[str]:
    """The commands, without importing what they import."""
    text = (HERE / "all_commands.py").read_text(encoding="utf-8")
    listed = text.partition("COMMANDS: dict")[2].partition("\n}\n")[0]
    return [line.split('"')[1] for line in listed.splitlines() if line.startswith('    "')]


def commands_for(number: int, name: str) -> list[str]:
    """What a file meets in CI: all tables, one more that changes from file to file, its burdens."""
    others = [command for command in names_of_commands() if command != "read"]
    turn = others[number % len(others)]
    return ["read", turn, *(burden for burden in BURDENS.get(name, ()) if burden != turn)]


def files() -> list[str]:
    """Names of the files; in CI a third of those with very many events, and ``BURDENS``."""
    return [
        name
        for number, name in enumerate(forge.FORGERIES)
        if LONG or not name.startswith("many_") or number % 3 == 0 or name in BURDENS
    ]


def run(work: list[tuple[str, list[str]]], other: Path, folder: Path) -> list[dict]:
    """What each command did with each file."""
    listed = folder / "work.json"
    listed.write_text(json.dumps(work), encoding="utf-8")
    words = [HERE / "all_commands.py", listed, other, folder / "out"]
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment_of({}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def faults(answer: dict) -> list[str]:
    """What is wrong with an answer."""
    found = []
    if answer["code"] not in (0, 1, 2, 3):
        found.append(f"exit code {answer['code']} {answer['killed']}")
    if answer["peak_bytes"] > MOST_BYTES:
        found.append(f"{answer['peak_bytes'] / 1e6:.0f} MB")
    if answer["cpu_s"] > MOST_CPU_S:
        found.append(f"{answer['cpu_s']} s")
    if answer["stdout_bytes"] > MOST_STDOUT_BYTES:
        found.append(f"{answer['stdout_bytes'] / 1e6:.0f} MB of output")
    for word in ("Traceback", "Warning"):
        if word in answer["stderr"]:
            found.append(answer["stderr"])
            break
    return found


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that nothing is wrong with."""
    return story.write_story(tmp_path_factory.mktemp("good") / "good.tlm")


def test_every_command_meets_a_file_in_every_run() -> None:
    met = {met for number, name in enumerate(files()) for met in commands_for(number, name)}

    assert met == set(names_of_commands())
    assert set(BURDENS) <= set(files())


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_command_survives_every_forged_file(batch: int, good: Path, tmp_path: Path) -> None:
    work = []
    for number, name in list(enumerate(files()))[batch::BATCHES]:
        path = tmp_path / f"{name}.tlm"
        path.write_bytes(forge.FORGERIES[name]())
        assert path.stat().st_size <= forge.MOST_BYTES
        work.append((str(path), names_of_commands() if LONG else commands_for(number, name)))
    answers = run(work, good, tmp_path)
    wrong = [
        f"{Path(answer['file']).stem}, {answer['command']}: {fault}"
        for answer in answers
        for fault in faults(answer)
    ]

    assert len(answers) == sum(len(commands) for _, commands in work)
    assert not wrong, "\n".join(wrong)

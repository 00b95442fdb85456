"""A recording is read and reported where the extension module, cffi and psutil do not exist."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tlmem

LEAK = "import numpy\nkept = []\nfor i in range(2000):\n    kept.append(numpy.ones(200))\n"
BLOCKED = ["tlmem._native", "_cffi_backend", "cffi", "psutil"]
WITHOUT = f"""
import sys
for name in {BLOCKED!r}:
    sys.modules[name] = None  # importing it raises ImportError
sys.argv = ["tlmem", *sys.argv[1:]]
"""


def python(*arguments: object, cwd: Path) -> str:
    """What a fresh interpreter prints; a failure shows what it complained about."""
    command = [sys.executable, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of a program that leaks in line 4."""
    place = tmp_path_factory.mktemp("reading")
    (place / "leak.py").write_text(LEAK)
    python("-m", "tlmem", "record", "-q", "-o", "leak.tlm", "leak.py", cwd=place)
    return place / "leak.tlm"


def test_tables_are_read_without_the_recording_side(recording: Path) -> None:
    code = WITHOUT + (
        "import tlmem\n"
        "found = tlmem.read(sys.argv[1])\n"
        "assert found.complete, found.problems\n"
        "objects = found.objects\n"
        "print((objects.size_bytes == 1600).sum(), len(found.samples) > 0, len(found.sites) > 0)\n"
        "print(sorted(name for name in sys.modules if name.startswith('tlmem.recorder')))\n"
    )

    assert python("-c", code, recording, cwd=recording.parent) == "2000 True True\n[]\n"


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_report_is_written_without_the_recording_side(recording: Path, form: str) -> None:
    code = WITHOUT + "from tlmem.cli import main\nsys.exit(main())\n"
    report = python("-c", code, "report", "--format", form, recording, cwd=recording.parent)

    if form == "json":
        assert json.loads(report)["findings"][0]["site"]["line"] == 4
    else:
        assert "leak.py:4" in report


def test_ledger_commands_work_without_the_recording_side(recording: Path) -> None:
    code = WITHOUT + "from tlmem.cli import main\nsys.exit(main())\n"

    def told(*words: str) -> str:
        return python("-c", code, *words, cwd=recording.parent)

    # The program's own frame has unwound at its exit; before that all of its arrays are alive.
    balance = json.loads(told("balance", "leak.tlm", "--site", "leak.py:4", "--format", "json"))
    assert (balance["unpaired"], balance["bytes"]) == (2000, 2000 * 1600)
    objects = tlmem.read(recording).objects
    number = str(objects.index[objects.size_bytes == 1600][-1])
    assert "allocated at leak.py:4 in <module>" in told("history", "leak.tlm", number)
    assert "No line allocated or kept more or less" in told("diff", "leak.tlm", "leak.tlm")


def test_recording_without_the_extension_says_what_to_do(tmp_path: Path) -> None:
    code = WITHOUT + "from tlmem.cli import main\nsys.exit(main())\n"
    command = [sys.executable, "-c", code, "record", "-c", "print('ran')"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and "install" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_replay_says_what_it_lacks_without_the_extension_module(recording: Path) -> None:
    code = WITHOUT + "from tlmem.cli import main\nsys.exit(main())\n"
    command = [sys.executable, "-c", code, "replay", str(recording)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=recording.parent)

    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "without its C core" in done.stderr

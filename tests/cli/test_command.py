"""``tlmem`` started as an installed command: by a script of its own, not by ``python -m tlmem``.

Python goes on using the names of the script that it started, after the recorder has put the user's
``__main__`` in its place.
"""

import sys
from pathlib import Path

import pytest
from support.programs import plain, run

ENTRY = "import sys\nfrom tlmem.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
ENDS = [
    "raise ValueError(1)",
    "raise KeyboardInterrupt",
    "import sys; sys.exit(3)",
    "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
    "import numpy; kept = [numpy.ones(9) for _ in range(500)]; 1 / 0",
    "print('to the end')",
]


@pytest.mark.parametrize("source", ENDS)
def test_a_program_ends_under_the_command_as_it_ends_in_python(source: str, tmp_path: Path) -> None:
    (tmp_path / "entry.py").write_text(ENTRY, encoding="utf-8")
    (tmp_path / "program.py").write_text(source + "\n", encoding="utf-8")
    python = plain(["program.py"], tmp_path)
    command = [sys.executable, "entry.py", "record", "-q", "-o", "a.tlm", "program.py"]
    done = run(command, tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (
        python.returncode,
        python.stdout,
        python.stderr,
    )

"""An installed package that is the program: its lines are blamed where no other is the user's."""

from pathlib import Path

import pytest
from support.programs import recorded

import tlmem
from tlmem.analysis import analyse
from tlmem.recording.tables.blame import is_users

FILES = {
    "leaky/__init__.py": "",
    "leaky/__main__.py": "from leaky.cli import main\nraise SystemExit(main())\n",
    "leaky/cli.py": """
import sys
import time
import numpy as np
from leaky.service import Service

def main():
    if sys.argv[1:]:
        import runpy
        runpy.run_path(sys.argv[1])
        return
    service = Service()
    for number in range(1000):
        service.serve(np.full(100, number))
        time.sleep(0.0005)

if __name__ == "__main__":
    main()
""",
    "leaky/service.py": """
import numpy as np

class Service:
    def __init__(self):
        self.answers = {}

    def serve(self, question):
        answer = self.answers[question[0]] = np.concatenate([question, question])
        return answer
""",
}
CONSOLE = """
import re
import sys
from leaky.cli import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
USERS = """
import time
import numpy as np

KEPT = [np.full(100, number) for number in range(1000) if not time.sleep(0.0005)]
"""
SCRIPT = """
import time
from leaky.service import Service
import numpy as np

service = Service()
for number in range(1000):
    service.serve(np.full(100, number))
    time.sleep(0.0005)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {f"site-packages/{name}": text for name, text in FILES.items()}
    files |= {"bin/leaky": CONSOLE, "users.py": USERS, "script.py": SCRIPT}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def leaking_line(program: list[str], folder: Path) -> str:
    environment = {"PYTHONPATH": str(folder / "site-packages")}
    ended = recorded(program, folder, environment=environment, options=("-q", "-o", "x.tlm"))
    assert ended.returncode == 0, ended.stderr.decode()
    verdict = analyse(tlmem.read(folder / "x.tlm")).verdict
    assert verdict.outcome == "leak", verdict.sentence
    return verdict.sentence.partition(": ")[0]


@pytest.mark.parametrize("program", [["bin/leaky"], ["-m", "leaky"], ["-m", "leaky.cli"]])
def test_its_own_line_is_blamed(program: list[str], folder: Path) -> None:
    assert leaking_line(program, folder) == "Leak at service.py:9"


def test_other_code_of_the_user_comes_first(folder: Path) -> None:
    assert leaking_line(["bin/leaky", "users.py"], folder) == "Leak at users.py:5"


def test_where_it_is_a_library_its_caller_is_blamed(folder: Path) -> None:
    assert leaking_line(["script.py"], folder) == "Leak at script.py:8"


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("/s/site-packages/leaky/cli.py", True),
        ("/s/site-packages/leaky_too/cli.py", False),
        ("/s/site-packages/other.py", False),
    ],
)
def test_only_its_own_files_are_the_programs(file: str, users: bool) -> None:
    notes = {"python.sites": "/s/site-packages", "program": "/s/site-packages/leaky"}

    assert is_users(file, notes) is users

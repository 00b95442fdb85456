"""Tools of the standard library that run, trace or test a program: the same output when recorded.

They look at frames and modules, so they would see what does not belong to the program.
"""

import re
from pathlib import Path

import pytest
from support.programs import plain, recorded

PROGRAM = '''"""
>>> twice(2)
4
"""
import sys

def twice(number):
    return 2 * number

if __name__ == "__main__":
    print(sorted(map(twice, range(4)), key=twice))
    print(sys.argv, sys._getframe().f_back and sys._getframe().f_back.f_code.co_filename)
'''
TESTS = """
import unittest

class Tests(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(1, 1)

    def test_fails(self):
        raise ValueError("x")
"""
TOOLS = [
    "cProfile -s name program.py",
    "profile -s name program.py",
    "trace --count --missing -C counts program.py",
    "trace --trace program.py",
    "trace --listfuncs program.py",
    "pdb -c continue -c quit program.py",
    "doctest -v program.py",
    "unittest -v test_program",
    "inspect program:twice",
    "dis program.py",
    "runpy program",
    "code",
    "asyncio",
    "site",
]
VARIES = re.compile(rb"0x[0-9a-f]+|[0-9]+\.[0-9]+ ?s?")
"""Addresses, and times as profilers print them."""


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: "-".join(tool.split()[:2]))
def test_a_tool_of_the_standard_library_prints_the_same_when_recorded(
    tool: str, tmp_path: Path
) -> None:
    ended = []
    for run in (plain, recorded):
        folder = tmp_path / run.__name__ / "here"
        folder.mkdir(parents=True)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "test_program.py").write_text(TESTS)
        words = ["-m", *tool.split()]
        result = run(words, folder)
        output = [
            VARIES.sub(b"#", text.replace(bytes(folder), b"FOLDER"))
            for text in (result.stdout, result.stderr)
        ]
        counts = sorted((folder / "counts").glob("program*"))
        ended.append((result.returncode, output, [path.read_bytes() for path in counts]))

    assert ended[1] == ended[0]
    assert ended[0][1] != [b"", b""]

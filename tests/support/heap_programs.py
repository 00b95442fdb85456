"""Programs that allocate native memory, recorded with ``record --heap``."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import recorded

COMPILER = shutil.which("cc") or shutil.which("gcc")
LIBRARY = """\
#include <stdlib.h>
#include <string.h>
void *keep(size_t bytes) { void *block = malloc(bytes); memset(block, 1, bytes); return block; }
void *grow(void *block, size_t bytes) { return realloc(block, bytes); }
void drop(void *block) { free(block); }
void storm(int count) { for (int i = 0; i < count; i++) free(calloc(1, 64 + i % 256)); }
"""
USING_IT = """\
import ctypes, time
library = ctypes.CDLL("./library.so")
time.sleep(0.1)  # ours looks for libraries that are not imported now and then
library.keep.restype = library.grow.restype = ctypes.c_void_p
library.keep.argtypes = [ctypes.c_size_t]
library.grow.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
library.drop.argtypes = [ctypes.c_void_p]
"""
TWO_LINES = """\
def little():
    return [library.keep(2_000) for _ in range({little})]
def much():
    return [library.keep(3_000) for _ in range(8_000)]
blocks = [little(), much()]
strings = ["x" * 1_100 + str(i) for i in range(6_000)]
"""
LITTLE, MUCH, STRINGS = 9, 11, 13
"""The lines that allocate."""


def with_library(folder: Path) -> Path:
    """The folder, with a library in C that allocates."""
    if sys.platform != "linux":
        pytest.skip("libraries have no slots that are known on this system")
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    (folder / "library.c").write_text(LIBRARY)
    command = [COMPILER, "-O1", "-shared", "-fPIC", "library.c", "-o", "library.so"]
    subprocess.run(command, cwd=folder, check=True)
    return folder


def two_lines(folder: Path, name: str, little: int = 4_000, *options: str) -> Path:
    """The recording of a program with 24 MB of native memory from one line, less from another."""
    (folder / "program.py").write_text(USING_IT + TWO_LINES.format(little=little))
    words = options or ("--heap=64kB", "--heap-seed=3")
    result = recorded(["-f", "-o", name, *words, "program.py"], with_library(folder))
    assert result.returncode == 0, result.stderr.decode()
    return folder / name

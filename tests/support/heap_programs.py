"""Programs that allocate native memory, recorded with ``record --heap``."""

import shutil
import struct
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
void pattern(const size_t *bytes, void **blocks, int count)
{
    for (int i = 0; i < count; i++) blocks[i] = malloc(bytes[i]);
    for (int i = 0; i < count; i++) free(blocks[i]);
}
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
LOOKING = """\
#define _GNU_SOURCE
#include <dlfcn.h>
void look(void) { dlsym(RTLD_DEFAULT, "none"); }
"""
LOADED_WHILE_LOOKED_AT = """\
#include <stdlib.h>
void look(void);
__attribute__((aligned(64))) char room[1024] = "{room}";
static void *keep_it(size_t bytes) {{ return malloc(bytes); }}
static void *(*choose(void))(size_t) {{ look(); return keep_it; }}
static void *kept(size_t bytes) __attribute__((ifunc("choose")));
void *keep(size_t bytes) {{ room[0] = 1; return kept(bytes); }}
"""
"""Has itself looked at while the linker fills in its slots: the last one waits for ``choose``."""

ROOM = b"room for the dynamic section"
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


def with_library_that_is_looked_at(folder: Path) -> None:
    """Puts ``looking.so`` there, which looks something up, and ``looked_at.so``, which calls it."""
    (folder / "looking.c").write_text(LOOKING)
    (folder / "looked_at.c").write_text(LOADED_WHILE_LOOKED_AT.format(room=ROOM.decode()))
    command = [str(COMPILER), "-shared", "-fPIC", "-Wl,-z,relro,-z,now,-rpath,$ORIGIN"]
    for words in (["looking.c", "-ldl"], ["looked_at.c", "./looking.so"]):
        library = Path(words[0]).with_suffix(".so").name
        subprocess.run([*command, *words, "-o", library], cwd=folder, check=True)


def move_dynamic_section(library: Path) -> None:
    """Moves it to data that stay writable, as patchelf does in libraries of wheels."""
    image = bytearray(library.read_bytes())
    (headers,) = struct.unpack_from("<Q", image, 32)
    each, count = struct.unpack_from("<HH", image, 54)
    places = range(headers, headers + each * count, each)
    parts = {at: struct.unpack_from("<IIQQQQQQ", image, at) for at in places}
    to = image.index(ROOM)
    address = next(
        to - offset + virtual
        for kind, _, offset, virtual, _, bytes_there, _, _ in parts.values()
        if kind == 1 and offset <= to < offset + bytes_there
    )
    for at, (kind, flags, offset, _, _, bytes_there, in_memory, alignment) in parts.items():
        if kind == 2:
            image[to : to + bytes_there] = image[offset : offset + bytes_there]
            moved = (kind, flags, to, address, address, bytes_there, in_memory, alignment)
            struct.pack_into("<IIQQQQQQ", image, at, *moved)
    library.write_bytes(image)

"""Tells setuptools and cffi what ``tlmem._native`` and the library beside it are.

The core is a C library, ``libtlmem``, that knows nothing of Python; the extension module holds what
needs the interpreter and links the library, so that a process has one core and one log whoever
loaded it first. Run by cffi from the repository root; source paths must stay relative to it.
Imports nothing of tlmem. The interface is what stands between the cffi markers of the headers, so
that headers and Python can never disagree.
"""

import os
import sys
from pathlib import Path

import numpy
from cffi import FFI

HEADERS = (
    "include/tlmem_log.h",
    "include/tlmem.h",
    "include/tlmem_tape.h",
    "include/tlmem_plan.h",
    "include/tlmem_replay.h",
    "include/tlmem_python.h",
)
# The folders of the library and of the extension module; each is a layer (native/README.md). Loops
# that measure are files of bench/: those of the extension begin with "py".
LIBRARY_FOLDERS = ("platform", "log", "memory/devices", "memory", "tape", "plan", "replay")
EXTENSION_FOLDERS = ("ops", "python", "python/*")
IS_MACOS = sys.platform == "darwin"


def files(pattern: str) -> list[str]:
    """Files below ``native`` that match, in a fixed order, relative to the repository root."""
    return sorted(path.as_posix() for path in Path("native").glob(pattern))


def sources_of(folders: tuple[str, ...]) -> list[str]:
    """The C files directly in these folders."""
    return [name for folder in folders for name in files(f"{folder}/*.[cm]")]


def interface() -> str:
    """The declarations that Python sees."""
    texts = [Path("native", name).read_text(encoding="utf-8") for name in HEADERS]
    return "".join(t.split("/* cffi: begin */")[1].split("/* cffi: end */")[0] for t in texts)


def installed_headers() -> list[str]:
    """The headers for programs in C, without that of the extension module."""
    return [name for name in files("include/*.h") if not name.endswith("_python.h")]


def library_sources() -> list[str]:
    """The C files of the library: one backend for Metal, where there is one."""
    other = "absent.c" if IS_MACOS else "metal.m"
    sources = [*sources_of(LIBRARY_FOLDERS), *files("bench/bench*.c")]
    return [name for name in sources if name != f"native/memory/devices/backend_{other}"]


COMPILE = ["-O2", "-fvisibility=hidden", "-pthread", "-Wall"]
# Loops over elements are written for the compiler to vectorise.
OPS_COMPILE = ["-O3", "-fno-math-errno"]
STANDARD = ["-std=gnu11"]
# A file is included as "folder/file.h"; the public headers by their name alone.
INCLUDE = ["native/include", "native"]
LIBRARY = "libtlmem.dylib" if IS_MACOS else "libtlmem.so"
# A program of its own that replays a trace with the real malloc; what it reads is Linux's.
PLAYER = None if IS_MACOS else "tlmem-player"
LIBRARY_LINK = ["-pthread"]
LIBRARY_NEEDS: list[str] = []
if IS_MACOS:
    LIBRARY_LINK += [f"-Wl,-install_name,@rpath/{LIBRARY}", "-framework", "Metal"]
    # Without CoreGraphics the system names no default Metal device to a command-line program.
    LIBRARY_LINK += ["-framework", "Foundation", "-framework", "CoreGraphics"]
    FIND_LIBRARY = ["-Wl,-rpath,@loader_path/lib"]
else:
    # A thread's writer state is read on every event: no call of __tls_get_addr in between.
    COMPILE += ["-ftls-model=initial-exec", "-fno-semantic-interposition"]
    LIBRARY_LINK += [f"-Wl,-soname,{LIBRARY}", "-Wl,-Bsymbolic", "-Wl,-z,defs"]
    # It has a thread, handlers and keys of threads: closing it must not take its code away.
    LIBRARY_LINK += ["-Wl,-z,nodelete"]
    LIBRARY_NEEDS = ["dl", "pthread"]
    FIND_LIBRARY = ["-Wl,-rpath,$ORIGIN/lib"]

ffibuilder = FFI()
ffibuilder.cdef(interface())
ffibuilder.set_source(
    "tlmem._native",
    '#include "tlmem_python.h"',
    sources=[*sources_of(EXTENSION_FOLDERS), *files("bench/py*.c")],
    depends=[*files("**/*.h"), *library_sources()],
    include_dirs=[*INCLUDE, numpy.get_include()],
    extra_compile_args=[*COMPILE, *OPS_COMPILE, *STANDARD],
    extra_link_args=["-pthread", *FIND_LIBRARY],
    libraries=["tlmem", *LIBRARY_NEEDS, "m"],
    optional=os.environ.get("TLMEM_REQUIRE_NATIVE", "") in ("", "0"),
    py_limited_api=False,  # the stack walk needs one CPython version's internals
)

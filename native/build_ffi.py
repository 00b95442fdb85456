"""Tells setuptools and cffi what ``tlmem._native`` is.

Run by cffi from the repository root; source paths must stay relative to it. Imports nothing of
tlmem. The interface is the part of ``native/include/tlmem.h`` between its two cffi markers, so that
header and Python can never disagree.
"""

import os
import sys
from pathlib import Path

from cffi import FFI


def files(pattern: str) -> list[str]:
    """Files below ``native`` that match, in a fixed order, relative to the repository root."""
    return sorted(path.as_posix() for path in Path("native").glob(pattern))


def interface() -> str:
    """The declarations that Python sees."""
    header = Path("native/include/tlmem.h").read_text(encoding="utf-8")
    return header.split("/* cffi: begin */")[1].split("/* cffi: end */")[0]


COMPILE = ["-O2", "-std=gnu11", "-fvisibility=hidden", "-pthread"]
LIBRARIES = []
if sys.platform == "linux":
    # A thread's writer state is read on every event: no call of __tls_get_addr in between.
    COMPILE.append("-ftls-model=initial-exec")
    LIBRARIES = ["dl", "pthread"]

ffibuilder = FFI()
ffibuilder.cdef(interface())
ffibuilder.set_source(
    "tlmem._native",
    '#include "tlmem.h"',
    sources=files("src/*.c"),
    depends=files("**/*.h"),
    include_dirs=["native/include", "native/src"],
    extra_compile_args=COMPILE,
    extra_link_args=["-pthread"],
    libraries=LIBRARIES,
    optional=os.environ.get("TLMEM_REQUIRE_NATIVE", "") in ("", "0"),
    py_limited_api=False,  # the stack walk needs one CPython version's internals
)

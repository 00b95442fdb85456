"""Where programs in other languages find tlmem: its headers and its library.

Covers: paths, and flags for a C compiler. Does not cover: what to do with them; see
docs/how-to/other-languages.md.
"""

import os
import shlex
import sys

from tlmem.errors import TlmemError

HEADERS = ("tlmem.h", "tlmem_log.h", "tlmem_probe.h")
LIBRARY = "libtlmem.dylib" if sys.platform == "darwin" else "libtlmem.so"


class NoLibrary(TlmemError):
    """This installation has no C library; the message says how to get one."""


def get_include() -> str:
    """The folder of ``tlmem.h``, the runtime, and ``tlmem_probe.h``, for other runtimes.

    Raises:
        NoLibrary: tlmem was installed without its C part.
    """
    folder = _beside("include")
    _require(*(os.path.join(folder, name) for name in HEADERS))
    return folder


def get_library() -> str:
    """The file of the C library; it knows nothing of Python and can be linked by any program.

    Raises:
        NoLibrary: tlmem was installed without its C part.
    """
    path = os.path.join(_beside("lib"), LIBRARY)
    _require(path)
    return path


def compile_flags() -> str:
    """Flags with which a C compiler finds the headers."""
    return shlex.join([f"-I{get_include()}"])


def link_flags() -> str:
    """Flags with which a linker finds the library, as does the program when it runs."""
    folder = os.path.dirname(get_library())
    return shlex.join([f"-L{folder}", f"-Wl,-rpath,{folder}", "-ltlmem"])


def _beside(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)


def _require(*paths: str) -> None:
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise NoLibrary(
            f"'{missing[0]}' is not there, for tlmem was installed without its C part; install it "
            "where a C compiler is."
        )

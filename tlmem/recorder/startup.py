"""What an interpreter does when it finds ``TLMEM_FOLLOW`` in its environment: it records itself.

``tlmem-follow.pth`` calls ``begin`` while ``site`` runs, before anything of the program. Where the
variable is missing nothing of tlmem is imported.

Covers: which of these interpreters are recorded. Does not cover: who sets the variable
(``children``); interpreters with -S, which read no such file.
"""

import os
import sys
from typing import Any

from tlmem.recorder import children
from tlmem.recorder.bound import core

VARIABLE = "TLMEM_FOLLOW"
HELPER = "resource_tracker import main"
"""Of multiprocessing and loky: it lives as long as all others, and does no work of theirs."""
PRELUDE = "tlmem.recorder.children"
LAST_OF_SITE = "sitecustomize"
"""What ``site`` imports, if it is there, when it has put every folder on the path."""


class AllFolders:
    """A finder that finds nothing: it notices when every site folder is on the path, and goes."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Begins when ``site`` is about to be done."""
        if name == LAST_OF_SITE and self in sys.meta_path:
            sys.meta_path.remove(self)
            begin()


def begin() -> None:
    """Records this interpreter from now on, if that is its parent's wish and can be done.

    Interpreters with -E or -I take nothing from the environment, tlmem's own commands are not
    recorded, and a process of multiprocessing is recorded as it always is.
    """
    if sys.flags.ignore_environment or VARIABLE not in os.environ:
        return
    try:
        core.load()
    except ImportError:  # what it needs may be in a folder that is not on the path yet
        if LAST_OF_SITE not in sys.modules and not _waited:
            _waited.append(AllFolders())
            sys.meta_path.insert(0, _waited[0])
        return
    words = own_words()
    program = words[1] if len(words) > 1 and words[0] == "-c" else ""
    notes = {"command": _joined(words), "script": _script()}
    try:
        lineage = children.Lineage.of_variable(os.environ[VARIABLE], notes)
    except ValueError:
        return
    del os.environ[VARIABLE]
    is_ours = words[:2] == ["-m", "tlmem"] or os.path.basename(words[0]) == "tlmem"
    if not (is_ours or HELPER in program or PRELUDE in program):
        children.begin_followed(lineage)


_waited: list[AllFolders] = []


def own_words() -> list[str]:
    """What stands on the command line behind the interpreter and its flags; at least one word."""
    # The source behind -c and the name behind -m are not in sys.argv.
    count = len(sys.argv) + (sys.argv[:1] in (["-c"], ["-m"]))
    return sys.orig_argv[max(1, len(sys.orig_argv) - count) :] or [""]


def _script() -> str:
    name = sys.argv[0] if sys.argv else ""
    return "" if name in ("", "-", "-c", "-m") else os.path.abspath(name)


def _joined(words: list[str]) -> str:
    """The words for a shell; ``shlex`` would be one more module that the program did not import."""
    from tlmem.recorder.summary import _quoted

    return " ".join([_quoted(word) for word in words])

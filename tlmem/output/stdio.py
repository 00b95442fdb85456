"""What commands write to stdout and stderr, whatever state these are in.

Covers: a reader that has seen enough, a full disk, a stream that is closed. Does not cover: the
streams of a recorded program, which are its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def reopen() -> None:
    """Puts something in the place of streams that are closed, as by ``2>&-``.

    What is written to stdout is then refused as by the system; text for stderr is dropped.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def to_stdout(text: str | Iterable[str]) -> int:
    """Writes a text, or the pieces of one, to stdout; returns the exit code, 2 after one sentence
    if it cannot."""
    try:
        sys.stdout.flush()
        encoding = sys.stdout.encoding or "utf-8"
        for piece in [text] if isinstance(text, str) else text:
            if not piece.isascii():
                piece = piece.encode(encoding, "backslashreplace").decode(encoding)
            sys.stdout.write(piece)
    except OSError as error:
        return _refused(error, 0)
    return finish(0)


def finish(code: int) -> int:
    """Sends off what waits for stdout and returns the exit code, another one if that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return _refused(error, code)
    return code


def fail(sentence: str, code: int) -> int:
    """Says an error and returns its exit code."""
    sys.stderr.write(f"tlmem: {sentence}\n")
    return code


def _refused(error: OSError, code: int) -> int:
    # Python must not complain again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return code  # the reader of the pipe has seen enough
    return fail(
        f"stdout cannot be written ({error.strerror}); send it elsewhere, or give -o OUT.", 2
    )

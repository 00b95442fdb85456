"""The words of ``tlmem tui`` and ``tlmem live``; ``tlmem.dashboards`` has the screens.

Covers: options and help, refusing what no screen can show before the screen is taken over.
Does not cover: other commands (``cli``).
"""

from __future__ import annotations

import argparse
import sys


def tui(words: list[str]) -> int:
    """Runs ``tlmem tui FILE``."""
    parser = argparse.ArgumentParser(
        prog="tlmem tui",
        description="Browses a recording in the terminal: what grows and who holds it, lifetimes, "
        "lines, scopes, pools and tapes. ? shows every key, q quits.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--diff", metavar="OTHER", help="a recording to compare it with, on the screen diff"
    )
    given = parser.parse_args(words)
    from tlmem.dashboards import opening

    if not _has_terminal():
        sys.stderr.write(f"tlmem: {_NO_TERMINAL.format(given.file)}\n")
        return 2
    return opening.browse(given.file, given.diff)


def live(words: list[str]) -> int:
    """Runs ``tlmem live [FILE|PID]``."""
    parser = argparse.ArgumentParser(
        prog="tlmem live",
        description="Follows a program that is being recorded: memory over time, lines that hold "
        "it, all processes of a family together. Space pauses, arrows scrub back, q quits; the "
        "program does not notice, and it can be followed again at any time.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="FILE|PID",
        help="a recording, or the number of a process that is recorded (default: the newest "
        "recording of this directory that is being written)",
    )
    given = parser.parse_args(words)
    from tlmem.dashboards import opening

    if not _has_terminal():
        file = "FILE" if given.target is None or given.target.isdigit() else given.target
        sys.stderr.write(f"tlmem: {_NO_TERMINAL.format(file)}\n")
        return 2
    return opening.follow(given.target)


_NO_TERMINAL = "this needs a terminal to draw on; tlmem report {} prints what it would show."


def _has_terminal() -> bool:
    """Whether keys can be read and screens be drawn."""
    return all(stream is not None and stream.isatty() for stream in (sys.__stdin__, sys.__stderr__))


COMMANDS = {"tui": tui, "live": live}

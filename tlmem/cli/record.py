"""``tlmem record``: run a Python program and record its memory.

The words up to SCRIPT, ``-m`` or ``-c`` are options of tlmem; the rest belongs to the program, as
on the command line of ``python``. argparse cannot stop there, so ``split`` finds the border, and
argparse reads what stands before it.

Covers: options, help, ``--check``. Does not cover: recording (``tlmem.recorder.run``), judging
(``tlmem.gate``).
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tlmem.cli import own_path
from tlmem.output import stdio

if TYPE_CHECKING:
    import argparse

Program = tuple[str, str | None, list[str]]
"""Its kind (``script``, ``module``, ``code``), which one (None: none was given), its arguments."""
TARGETS = {"-m": "module", "-c": "code"}
PARSING = ("argparse", "gettext", "locale")
"""Modules of the standard library that only the parser needs."""
_kept: list[Any] = []
"""The parser and its modules: freed, they would change the program's heap while it is recorded."""


def run(words: list[str]) -> int:
    """Runs ``tlmem record [OPTIONS] PROGRAM``; whatever ends the program is let through."""
    with _unseen(), own_path():
        from tlmem.cli.arguments import UsageError

        parser, of_check = make_parser()
        _kept.append(parser)
        own, program = split(words, parser)
        given = parser.parse_args(own)
        from tlmem.recorder.options import Options
        from tlmem.recorder.run import record
    if given.help:
        stdio.reopen()
        text = parser.format_help().replace("--zombie [SIZE]", "--zombie[=SIZE]")
        return stdio.to_stdout(text)
    kind, target, arguments = program
    if target is None:
        raise UsageError(
            "there is nothing to record; give a SCRIPT, -m MODULE or -c CODE "
            "(tlmem record --help explains)."
        )
    if kind == "script" and _is_python(target):
        raise UsageError(
            f"'{target}' is not a script; leave it out: tlmem record {' '.join(arguments)}".rstrip()
            + "."
        )
    if given.output == "-":
        raise UsageError(
            "a recording is a file that is written while the program runs, so it cannot go to "
            "standard output; name a file with -o."
        )
    if given.upload:
        mine = [word for word in own if not word.startswith("--upload=")]
        return _record_and_upload(mine, given, kind, target, arguments)
    if given.check:
        mine = [word for word in own if word.partition("=")[0] not in of_check]
        return _record_and_check(mine, given, kind, target, arguments)
    for word in own:
        if word.partition("=")[0] in of_check:
            raise UsageError(f"{word} needs --check.")
    if given.ring and given.max_file:
        raise UsageError("--ring and --max-file say the same; give one of them.")
    options = Options(
        overwrite=given.force,
        stack_depth=given.stack_depth,
        limit_bytes=given.ring or given.max_file,
        rss_interval_ms=given.rss_interval,
        smaps=given.smaps,
        sources=given.source,
        quiet=given.quiet,
        holders=given.holders,
        mode=given.mode,
        heap_rate_bytes=given.heap,
        heap_seed=given.heap_seed,
        follow=given.follow,
        **given.zombie,
    )
    path = _path_of(given.output)
    del words, given, parser, own, program
    return record(kind, target, arguments, path, options)


def _is_python(target: str) -> bool:
    """Whether a script is the interpreter, as in ``tlmem record python train.py``."""
    name = os.path.basename(target).removeprefix("python")
    return name != os.path.basename(target) and not name.strip("0123456789.") and name[-1:] != "."


def _path_of(pattern: str | None) -> str | None:
    """The recording's path: what ``%h``, ``%r`` and ``%p`` stand for is put in."""
    from tlmem.cli.arguments import UsageError

    if pattern is None or "%" not in pattern:
        return pattern
    from tlmem.recorder import identity, session

    session.require_native()
    try:
        return identity.expand(pattern)
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    except OSError as error:
        raise UsageError(
            f"the folder of '{pattern}' cannot be made ({error.strerror}); name another with -o."
        ) from None


def make_parser() -> tuple[argparse.ArgumentParser, frozenset[str]]:
    """The options of ``record``, and which of them are those of ``check``."""
    import argparse

    from tlmem.cli.arguments import UsageError, add_budgets
    from tlmem.recorder.options import (
        HEAP_RATE_BYTES,
        MODE,
        RSS_INTERVAL_MS,
        SOURCES,
        STACK_DEPTH,
        parse_heap,
        parse_mode,
        parse_sources,
        parse_zombie,
    )
    from tlmem.units import parse_bytes

    def value(convert: Callable[[str], Any]) -> Callable[[str], Any]:
        def converted(text: str) -> Any:
            try:
                return convert(text)
            except ValueError as error:
                raise UsageError(f"{error}.") from None

        return converted

    def count(option: str) -> Callable[[str], Any]:
        def whole(text: str) -> int:
            if not text.isdecimal():
                raise UsageError(f"{option} needs a whole number, not '{text}'.")
            return int(text)

        return whole

    def size(text: str) -> int:
        found = parse_bytes(text)
        if found == 0:
            raise ValueError(f"{text!r} leaves no room for a recording; give at least 8.4MB")
        return found

    parser = argparse.ArgumentParser(
        prog="tlmem record",
        usage="tlmem record [OPTIONS] (SCRIPT | - | -m MODULE | -c CODE) [ARGS ...]",
        description="Runs a program as python would and records its memory. What stands after "
        "SCRIPT, MODULE or CODE belongs to the program. The exit code is the program's.",
        # With a width, argparse does not import shutil to ask the terminal for one.
        formatter_class=lambda prog: argparse.HelpFormatter(prog, width=100),
        add_help=False,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-h", "--help", action="store_true", help="show this text")
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write (default: tlmem-SCRIPT.PID.tlm in this directory); %%h, %%r and %%p "
        "stand for host, rank and process id, and their folder is made",
    )
    add("-f", "--force", action="store_true", help="overwrite FILE")
    add(
        "--mode",
        metavar="OCTAL",
        type=value(parse_mode),
        default=MODE,
        help="who may read and write FILE and those of child processes (default: 600, the owner)",
    )
    add("-q", "--quiet", action="store_true", help="write nothing to stderr")
    add(
        "--source",
        metavar="LIST",
        type=value(parse_sources),
        default=SOURCES,
        help="where events come from: auto, or names with commas between: numpy, torch",
    )
    add(
        "--heap",
        metavar="SIZE",
        nargs="?",
        type=value(parse_heap),
        const=HEAP_RATE_BYTES,
        default=0,
        help="record blocks of native code and large ones of Python, too: one for each SIZE bytes "
        "(default: 256kB), all, or off",
    )
    add("--heap-seed", type=count("--heap-seed"), default=0, help=argparse.SUPPRESS)
    add(
        "--stack-depth",
        metavar="N",
        type=count("--stack-depth"),
        default=STACK_DEPTH,
        help="innermost frames kept of a stack, 0 to 1024 (default: %(default)s)",
    )
    add(
        "--max-file",
        metavar="SIZE",
        type=value(size),
        default=0,
        help="keep FILE below SIZE (200MB, 1.5GB, 64MiB) by folding its oldest events into exact "
        "sums",
    )
    add(
        "--ring",
        metavar="SIZE",
        type=value(size),
        default=0,
        help="the same, under the name that flight recorders use",
    )
    add(
        "--rss-interval",
        metavar="MS",
        type=count("--rss-interval"),
        default=RSS_INTERVAL_MS,
        help="time between samples of resident memory; later a 200th of the run's age, up to five "
        "times as long (default: %(default)s; 0: start and end only)",
    )
    add(
        "--smaps",
        action="store_true",
        help="sample proportional and private memory and page faults too",
    )
    add(
        "--holders",
        metavar="auto|off",
        default="auto",
        help="whether to find out which Python objects hold arrays: at the end, and while the "
        "program runs, for at most 1%% of its CPU time, 20 ms in the first two seconds "
        "(default: auto)",
    )
    add(
        "--follow",
        metavar="all|fork|none",
        default="fork",
        help="which processes that the program starts record themselves, to FILE.PID.tlm: fork: "
        "forked ones and those of multiprocessing; all: every Python, also those of subprocess, "
        "joblib, torchrun, pytest-xdist (default: fork)",
    )
    add(
        "--zombie",
        metavar="SIZE",
        nargs="?",
        type=value(parse_zombie),
        default={},
        help="keep up to SIZE (default: 256MB) of freed memory unreadable, so that a use after "
        "free is caught, with the places of allocation, free and use; --zombie=sample: the same, "
        "and for one in 32 of the objects below 4096 bytes too",
    )
    add(
        "--upload",
        metavar="URL",
        help="copy FILE and those of child processes there when the program has ended, as "
        "s3://bucket/run; needs tlmem[remote]",
    )
    add(
        "--check",
        action="store_true",
        help="judge the recording afterwards, as tlmem check does, and exit as it does when the "
        "program itself exited with 0",
    )
    of_check = parser.add_argument_group("with --check, as of tlmem check")
    add_budgets(of_check)
    names = frozenset(action.option_strings[-1] for action in of_check._group_actions)
    return parser, names


def split(words: list[str], parser: argparse.ArgumentParser) -> tuple[list[str], Program]:
    """Separates the options of ``record`` from the program, where ``python`` would.

    Returns:
        Options under their long names, each with its value in one word, and the program.

    Raises:
        UsageError: an option that is not known, or one without its value.
    """
    from tlmem.cli.arguments import UsageError

    actions = {name: action for action in parser._actions for name in action.option_strings}
    own: list[str] = []
    rest = list(words)

    def next_value(name: str) -> str:
        if not rest:
            raise UsageError(f"{name} needs a value (tlmem record --help explains).")
        return rest.pop(0)

    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if not word.startswith("--"):  # -o FILE, -oFILE, or several flags as in -fq
            name, equals, value = word[:2], "", word[2:]
        if name in TARGETS:
            return own, (TARGETS[name], value or next_value(name), rest)
        action = actions.get(name)
        flag = action is not None and action.nargs == 0
        if action is None or (flag and equals):
            raise UsageError(
                f"'{word}' is not an option of record (tlmem record --help lists them)."
            )
        long = action.option_strings[-1]
        if flag:
            own.append(long)
            if value:
                rest.insert(0, f"-{value}")
            continue
        if not (equals or value or action.nargs == "?"):
            value = next_value(name)
        if not value and action.nargs != "?":
            raise UsageError(f"{name} needs a value, and '' is none.")
        own.append(f"{long}={value}")
    return own, ("script", rest[0] if rest else None, rest[1:])


@contextmanager
def _unseen() -> Iterator[None]:
    """Reading the options leaves ``sys.modules`` as a program expects it."""
    before = [name for name in PARSING if name in sys.modules]
    yield
    for name in PARSING:
        if name not in before and name in sys.modules:
            _kept.append(sys.modules.pop(name))
    gc.collect(1)  # what argparse leaves behind


def _record_and_check(
    own: list[str], given: argparse.Namespace, kind: str, target: str, arguments: list[str]
) -> int:
    """Records in a process of its own, then judges the recording.

    Args:
        own: options of ``record``.
        given: the same, and those of ``check``.
        kind, target, arguments: the program.

    Returns:
        What the program exited with, if that is not 0; else what ``check`` decides. A program that
        a signal ended takes this process with it.
    """
    from tlmem.cli.check import more_of, options_of
    from tlmem.gate import subprocess_record
    from tlmem.gate.check import check as check_files
    from tlmem.gate.check import report_after

    options, more = options_of(given), more_of(given)
    path = _path_there(given, kind, target)
    words = [word for word in own if word != "--check" and not word.startswith("--output=")]
    code = subprocess_record.run(
        [*words, "-o", path.replace("%", "%%"), *_program(kind, target), *arguments]
    )
    if code:
        if not given.quiet:
            sys.stderr.write(f"tlmem: not checked, as the program exited with {code}.\n")
        return code
    return report_after(check_files([path], options), more, given.quiet)


def _record_and_upload(
    own: list[str], given: argparse.Namespace, kind: str, target: str, arguments: list[str]
) -> int:
    """Records in a process of its own, then copies the recording, however the program ended.

    Args:
        own: options of ``record`` without ``--upload``.
        given: the same, and the URL.
        kind, target, arguments: the program.

    Returns:
        What the program exited with, if that is not 0; else 2 after one sentence when the copy
        failed. A program that a signal ended takes this process with it, after the copy.
    """
    from pathlib import Path

    from tlmem.errors import TlmemError
    from tlmem.export.upload import check_url, upload
    from tlmem.gate import subprocess_record

    check_url(given.upload)
    path = _path_there(given, kind, target)
    words = [word for word in own if not word.startswith("--output=")]
    failed: list[int] = []

    def copy() -> None:
        try:
            copies = upload(Path(path), given.upload)
        except TlmemError as error:
            failed.append(stdio.fail(str(error), error.exit_code))
        else:
            if not given.quiet:
                more = f" and {len(copies) - 1} of child processes" if len(copies) > 1 else ""
                sys.stderr.write(f"tlmem: copied to {copies[0]}{more}\n")

    command = [*words, "-o", path.replace("%", "%%"), *_program(kind, target), *arguments]
    code = subprocess_record.run(command, copy)
    return code or (failed[0] if failed else 0)


def _path_there(given: argparse.Namespace, kind: str, target: str) -> str:
    """Where a process of its own writes the recording."""
    name = {"code": "string", "module": target}.get(kind) or os.path.basename(
        os.path.normpath(target)
    )
    return _path_of(given.output) or f"tlmem-{name}.{os.getpid()}.tlm"


def _program(kind: str, target: str) -> list[str]:
    """The words that name a program."""
    return {"module": ["-m", target], "code": ["-c", target]}.get(kind, ["--", target])

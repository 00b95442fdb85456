"""Of which code a result is: digests of what records and judges, and the machine it ran on."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatch
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import tlmem

PACKAGE = Path(tlmem.__file__).resolve().parent
SCENARIOS = Path(__file__).resolve().parents[2]
FACES = (
    *("cli/*", "planning/*", "_exports.py", "pytest_plugin.py"),
    *("compiler/*", "dashboards/*", "export/*", "gate/outputs/*", "report/*", "testing/*"),
    "scenarios/*",
)
"""Parts of the package that change neither what is recorded nor what is found or decided."""
NO_FACES = ("report/summary.py",)
"""What the gate reads recordings by."""
READING = ("analysis/*", "gate/*", "importing/*", "recording/*", *NO_FACES)
"""What reads recordings and judges them: with another one they need not be made again."""
PACKAGES = ("numpy", "pandas", "scipy")
DIGITS = 12
IMPORTED = re.compile(r"^from tlmem\.scenarios\.([\w.]+) import", re.MULTILINE)


def code_files() -> list[Path]:
    """tlmem's own source and libraries, as they are on disk."""
    found = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.so"), *PACKAGE.rglob("*.dylib")]
    return sorted(path for path in found if not is_face(path.relative_to(PACKAGE)))


def of_code() -> str:
    """Of all that records and judges."""
    return of_files(code_files())


def of_recorder() -> str:
    """Of what records: a recording made by the same code need not be made again."""
    return of_files(path for path in code_files() if not is_reading(path.relative_to(PACKAGE)))


def of_program(path: Path) -> str:
    """Of a program and of the scenarios' modules that it imports."""
    names = IMPORTED.findall(path.read_text(encoding="utf-8"))
    modules = (SCENARIOS.joinpath(*name.split(".")).with_suffix(".py") for name in names)
    return of_files([path, *modules])


def is_face(path: Path) -> bool:
    """Whether a file of the package, by its path in it, has no say in what is found."""
    name = path.as_posix()
    return name not in NO_FACES and any(fnmatch(name, pattern) for pattern in FACES)


def is_reading(path: Path) -> bool:
    """Whether a file of the package, by its path in it, has no say in what is recorded."""
    return any(fnmatch(path.as_posix(), pattern) for pattern in READING)


def signature() -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the code's files: what is cheap to compare after each run."""
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in code_files())


def of_files(paths: Iterable[Path]) -> str:
    """Of contents and names; a short hexadecimal number."""
    whole = hashlib.sha256()
    for path in paths:
        whole.update(f"{path.name}:{path.stat().st_size}:".encode())
        whole.update(path.read_bytes())
    return whole.hexdigest()[:DIGITS]


def commit() -> str:
    """The commit of the checkout, with ``+`` when the package differs from it; empty outside."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "tlmem", "native", "scenarios")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name + ("+" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=PACKAGE.parent, capture_output=True, text=True, check=True
    ).stdout.strip()


def machine() -> str:
    """Processor, cores, memory, system and versions, in one sentence without its full stop."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{processor()}, {cores()} cores, {memory / 1e9:.0f} GB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, {', '.join(versions())}"
    )


def cores() -> int:
    """So many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """Its name, as far as the system tells."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> list[str]:
    """Of the packages that take part and are there."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found

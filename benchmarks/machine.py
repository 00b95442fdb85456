"""Where numbers were measured: processor, memory, system, versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from benchmarks.measuring import ROOT


def processor() -> str:
    """Its name and how many cores this process may use."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next(
                line.split(":")[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} cores"


def memory_bytes() -> int:
    """Of the machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def versions() -> str:
    """Of what takes part."""
    found = [f"Python {platform.python_version()}"]
    for name in ("numpy", "pandas", "memray", "torch"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def commit() -> str:
    """The commit that was measured, with ``+`` when files differ from it; empty outside git."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", "tlmem", "native")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def describe() -> str:
    """One paragraph: when, on what, with which versions, how busy the machine was."""
    load = f"{os.getloadavg()[0]:.1f}"
    system = f"{platform.system()} {platform.release()}"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, tlmem {commit() or 'of no commit'}, {versions()}; "
        f"{processor()}, {memory_bytes() / 1e9:.0f} GB, {system}, "
        f"load before the start {load} ({sys.platform})."
    )

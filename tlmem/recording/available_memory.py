"""How much memory this process may still take: of the machine, and of its control group.

Covers: physical memory by psutil, limits of version 1 and 2 of Linux's control groups, as
containers and batch systems set them; giving back what is free in the C allocator. Does not
cover: swap, which is not counted on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's ``mallopt``."""
_KEPT = (8 << 20, 64 << 20)
_GIVEN_BACK = (1 << 20, 1 << 20)
"""Bytes of arrays that go back to the system as soon as they are freed, and of what is kept."""
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


def available_memory() -> int:
    """Bytes that can be taken without swapping, the page cache of files counted as free."""
    import psutil

    machine = int(psutil.virtual_memory().available)
    return max(0, min([machine, *_left_in_groups()]))


def keep_freed_memory() -> None:
    """Has glibc keep memory of freed arrays of up to 8 MB for the next ones.

    A part that is folded has a hundred arrays of 2 MB; asking the system for each anew is a tenth
    of the time of folding. ``give_back_freed_memory`` ends this.
    """
    _mallopt(*_KEPT)


def give_back_freed_memory() -> None:
    """Has glibc give back to the system what it keeps of freed arrays; others do so by themselves.

    Once it has seen an array of 32 MB freed, it takes every smaller one from its heap, and gives
    that back only from its end.
    """
    import ctypes

    _mallopt(*_GIVEN_BACK)
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library
        return


def _mallopt(largest_bytes: int, kept_bytes: int) -> None:
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, largest_bytes)
        mallopt(_TRIM_THRESHOLD, kept_bytes)
    except (AttributeError, OSError, TypeError):  # another C library
        return


def _left_in_groups() -> Iterator[int]:
    """What each control group above this process still allows, of those that have a limit."""
    try:
        lines = OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "none", "")
        if controllers == "":
            names, root = ("memory.max", "memory.current", "inactive_file"), GROUPS
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            root = GROUPS / "memory"
        else:
            continue
        folder = root / path.lstrip("/")
        for group in (folder, *folder.parents):
            left = _left(group, *names)
            if left is not None:
                yield left
            if group == root:
                break


def _left(group: Path, limit: str, used: str, cache: str) -> int | None:
    """The limit of one group without what is used of it; None where there is none."""
    try:
        most, now = int((group / limit).read_text()), int((group / used).read_text())
        stat = dict(line.split()[:2] for line in (group / "memory.stat").read_text().splitlines())
        return most - max(now - int(stat.get(cache, 0)), 0)
    except (OSError, ValueError):
        return None

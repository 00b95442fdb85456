"""The allocators of a process that can be run here, and their settings.

Covers: which are installed and where, ``KEY=VALUE`` as the environment that sets it, the settings
that a sweep tries. Does not cover: running them (``hosts``).

A setting that an allocator does not know is refused: most allocators ignore it without a word.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.replaying.settings import BadSetting
from tlmem.units import parse_bytes

LARGEST_MMAP_THRESHOLD = 32 << 20
GLIBC = {
    "mmap_threshold": LARGEST_MMAP_THRESHOLD,
    "mmap_max": 1 << 30,
    "trim_threshold": 1 << 62,
    "top_pad": 1 << 40,
    "arena_max": 1 << 20,
    "arena_test": 1 << 20,
    "tcache_count": 65_535,
    "tcache_max": 1 << 20,
    "tcache_unsorted_limit": 1 << 30,
    "mxfast": 160,
    "hugetlb": 1 << 40,
}
"""Tunables ``glibc.malloc.*`` and the largest value of each; glibc ignores what is larger."""
KEY, VALUE = re.compile(r"[a-z][a-z0-9_.]*"), re.compile(r"[A-Za-z0-9_.+-]+")
FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", f"{sys.prefix}/lib")


class NoAllocator(TlmemError):
    """The allocator is not installed, or cannot run on this system."""

    exit_code = 2


@dataclass(frozen=True)
class Allocator:
    """One allocator. ``function`` is one that only it has; ``package`` is Debian's."""

    name: str
    library: str
    package: str
    function: str
    knows_time: bool
    swept: tuple[tuple[str, ...], ...] = ()

    def path(self) -> Path | None:
        """Where the library is; None: it is not installed, or it is that of the system."""
        for folder in FOLDERS:
            for pattern in (f"{self.library}.so.*", f"*/{self.library}.so.*"):
                for found in sorted(Path(folder).glob(pattern), key=lambda p: len(p.name)):
                    return found
        return None


ALLOCATORS = {
    each.name: each
    for each in (
        Allocator(
            "glibc",
            "",
            "",
            "-",
            False,
            (
                ("arena_max=1",),
                ("mmap_threshold=131072",),
                ("trim_threshold=131072",),
                ("tcache_count=0",),
            ),
        ),
        Allocator(
            "jemalloc",
            "libjemalloc",
            "libjemalloc2",
            "mallctl",
            True,
            (("dirty_decay_ms=0", "muzzy_decay_ms=0"), ("narenas=1",)),
        ),
        Allocator("mimalloc", "libmimalloc", "libmimalloc2.0", "mi_version", True),
        Allocator("tcmalloc", "libtcmalloc_minimal", "libtcmalloc-minimal4", "tc_version", False),
    )
}


@dataclass(frozen=True)
class HostSettings:
    """An allocator with settings; ``environment`` is what sets them, without the preloading."""

    allocator: Allocator
    pairs: tuple[tuple[str, str], ...] = ()
    library: Path | None = None
    environment: dict[str, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def name(self) -> str:
        """What a table calls them."""
        return ",".join(f"{key}={value}" for key, value in self.pairs) or "default"

    @property
    def command(self) -> str:
        """What stands before a program's command to run it so; empty: nothing."""
        made = dict(self.environment)
        if self.library is not None:
            made["LD_PRELOAD"] = str(self.library)
        return " ".join(f"{key}={value}" for key, value in made.items())


def check_system() -> None:
    """Whether the player can run here.

    Raises:
        NoAllocator: another system than Linux with glibc.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        raise NoAllocator(
            "host allocators are run on Linux with glibc only; replay the recording on such a "
            "machine, it can be read anywhere."
        )


def settings_for(name: str, pairs: Iterable[str] = ()) -> HostSettings:
    """An allocator with some settings.

    Args:
        pairs: each ``KEY=VALUE``.
    Raises:
        NoAllocator: it is not installed.
        BadSetting: it has no such setting, or does not take the value.
    """
    allocator = ALLOCATORS[name]
    path = None
    if allocator.library:
        path = allocator.path()
        if path is None:
            raise NoAllocator(
                f"{name} is not installed on this machine; install the package "
                f"{allocator.package} (Debian, Ubuntu), or the one that has {allocator.library}.so."
            )
    parted = tuple(_parted(name, text) for text in pairs)
    return HostSettings(allocator, parted, path, _environment(allocator, path, dict(parted)))


def _parted(name: str, text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    key = key.strip().lower()
    if not KEY.fullmatch(key) or not VALUE.fullmatch(value):
        raise BadSetting(f"'{text}' is not a setting of {name}; write KEY=VALUE.")
    return key, value


def _environment(allocator: Allocator, path: Path | None, pairs: dict[str, str]) -> dict[str, str]:
    """The variables that set it."""
    if allocator.name == "glibc":
        tunables = [f"glibc.malloc.{key}={_tunable(key, value)}" for key, value in pairs.items()]
        return {"GLIBC_TUNABLES": ":".join(tunables)} if tunables else {}
    assert path is not None
    if allocator.name == "jemalloc":  # it stops itself at what it does not know
        conf = ",".join(["abort_conf:true", *(f"{key}:{value}" for key, value in pairs.items())])
        return {"MALLOC_CONF": conf} if pairs else {}
    known = path.read_bytes() if pairs else b""
    made = {}
    for key, value in pairs.items():
        variable = f"{allocator.name}_{key}".upper()
        # mimalloc has the names of its options in the library, tcmalloc those of the variables.
        wanted = key if allocator.name == "mimalloc" else variable
        if b"\0" + wanted.encode() + b"\0" not in known:
            raise BadSetting(
                f"{path} has no setting {key}; its documentation names them as "
                f"{allocator.name.upper()}_KEY."
            )
        made[variable] = value
    return made


def _tunable(key: str, value: str) -> int:
    """A value that glibc takes."""
    if key not in GLIBC:
        raise BadSetting(f"glibc has no setting {key}; there are {', '.join(GLIBC)}.")
    try:
        number = parse_bytes(value)
    except ValueError as error:
        raise BadSetting(f"{key}={value} is not a number; write {key}=1 or {key}=4MiB.") from error
    if not 0 <= number <= GLIBC[key]:
        raise BadSetting(f"{key}={value} is too large; glibc takes at most {GLIBC[key]}.")
    return number


def swept(chosen: HostSettings) -> Iterator[HostSettings]:
    """What a sweep tries: each allocator that is installed, by itself and with a few settings."""
    for allocator in ALLOCATORS.values():
        if allocator.library and allocator.path() is None:
            continue
        yield settings_for(allocator.name)
        for pairs in allocator.swept:
            yield settings_for(allocator.name, pairs)
    yield chosen


def missing() -> list[Allocator]:
    """Allocators that are not installed."""
    return [each for each in ALLOCATORS.values() if each.library and each.path() is None]


def clean_environment(settings: HostSettings) -> dict[str, str]:
    """The environment of the player: nothing of this process's but where to find the C library."""
    made = {key: os.environ[key] for key in ("LD_LIBRARY_PATH",) if key in os.environ}
    made.update(settings.environment)
    if settings.library is not None:
        made["LD_PRELOAD"] = str(settings.library)
    return made

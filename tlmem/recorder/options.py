"""What a recording is asked to be: sizes, depths, intervals, sources.

Does not cover: the command line that these come from (``tlmem.cli``).
"""

from tlmem.recorder.bound import STEADY
from tlmem.recorder.failure import CannotRecord
from tlmem.recorder.sources import NAMES as SOURCES
from tlmem.units import parse_bytes

globals()["__builtins__"] = STEADY  # of the functions below

STACK_DEPTH = 64
RSS_INTERVAL_MS = 10
HEAP_RATE_BYTES = 256_000
"""One block of the heap is recorded for each so many bytes in the mean, when it is sampled."""
LARGEST_HEAP_RATE_BYTES = 1 << 40
SMALLEST_LIMIT_BYTES = 8 << 20
MODE = 0o600
"""Who may read and write a recording unless told otherwise: it has the program's command line."""
QUARANTINE_BYTES = 256_000_000
"""Freed memory that zombie mode holds unless another size is given."""
SAMPLED_NTH = 32
"""``--zombie=sample``: one of so many small payloads has pages of its own."""


FOLLOW = ("none", "fork", "all")
"""Which children record themselves; the order is that of ``tlm_follow``."""

HOLDERS = ("auto", "off")
"""Whether snapshots say which Python objects hold arrays."""


def parse_zombie(text: str) -> dict[str, int]:
    """The options that a ``--zombie`` value names: a size, ``sample``, or nothing.

    Raises:
        ValueError: the text is none of these.
    """
    if text in ("", "sample"):
        nth = SAMPLED_NTH if text else 0
        return {"quarantine_bytes": QUARANTINE_BYTES, "quarantine_nth": nth}
    size = parse_bytes(text)
    if size == 0:
        raise ValueError(f"{text!r} leaves no room for freed memory; leave --zombie out instead")
    return {"quarantine_bytes": size, "quarantine_nth": 0}


def parse_heap(text: str) -> int:
    """Bytes for which one block of the heap is recorded: a size, ``all``, ``off``, or nothing.

    Raises:
        ValueError: the text is none of these.
    """
    words = {"": HEAP_RATE_BYTES, "off": 0, "all": 1}
    return words[text] if text in words else parse_bytes(text)


def parse_mode(text: str) -> int:
    """The rights that a ``--mode`` value names, in octal as ``chmod`` has them.

    Raises:
        ValueError: the text is no such number, or would keep the owner out.
    """
    mode = int(text, 8) if text and not text.strip("01234567") else -1
    if not 0 <= mode <= 0o777 or mode & MODE != MODE:
        raise ValueError(
            f"{text!r} is not a mode for a recording; give three octal digits, the first 6 or 7, "
            "such as 640"
        )
    return mode


def parse_sources(text: str) -> tuple[str, ...]:
    """The sources that a ``--source`` value names; ``auto`` is every one there is.

    Raises:
        ValueError: a name that is not a source of this version.
    """
    names = tuple(name.strip() for name in text.split(","))
    if names == ("auto",):
        return SOURCES
    for name in names:
        if name not in SOURCES:
            known = ", ".join(("auto", *SOURCES))
            raise ValueError(f"'{name}' is not a source of this version; choose from {known}")
    return names


class Options:
    """How to record. Plain values, so that they can be handed to a spawned child as text.

    Args:
        overwrite: replace a file that exists.
        stack_depth: innermost frames kept of a stack, 0 to 1024.
        limit_bytes: the file stays below this by folding its oldest events; 0 means no limit.
        rss_interval_ms: time between samples of resident memory; later a 200th of the run's age, up
            to five times as long; 0 means start and end only.
        smaps: take the expensive samples too (proportional and private memory, page faults).
        sources: names from ``tlmem.recorder.sources.NAMES``.
        quiet: nothing is written to stderr.
        quarantine_bytes: freed memory that is kept unreadable at most; 0 means none.
        quarantine_nth: of the payloads too small for pages of their own one in so many has them
            all the same; 0 means none.
        holders: ``auto``, or ``off`` for no snapshots of who holds arrays.
        mode: who may read and write the file, whatever the umask.
        heap_rate_bytes: of what is neither array nor tensor, one block for each so many bytes is
            recorded in the mean; 1 means every block, 0 none.
        heap_seed: of the choice of these blocks; 0 means another one each time.
        follow: ``fork`` for children that are forked or that multiprocessing makes, ``all`` for
            every Python that this process starts, ``none``.

    Raises:
        CannotRecord: a value out of its range.
    """

    __slots__ = (
        "follow",
        "heap_rate_bytes",
        "heap_seed",
        "holders",
        "limit_bytes",
        "mode",
        "overwrite",
        "quarantine_bytes",
        "quarantine_nth",
        "quiet",
        "rss_interval_ms",
        "smaps",
        "sources",
        "stack_depth",
    )

    def __init__(
        self,
        overwrite: bool = False,
        stack_depth: int = STACK_DEPTH,
        limit_bytes: int = 0,
        rss_interval_ms: int = RSS_INTERVAL_MS,
        smaps: bool = False,
        sources: tuple[str, ...] = SOURCES,
        quiet: bool = False,
        quarantine_bytes: int = 0,
        quarantine_nth: int = 0,
        holders: str = "auto",
        mode: int = MODE,
        heap_rate_bytes: int = 0,
        heap_seed: int = 0,
        follow: str = "fork",
    ) -> None:
        if holders not in HOLDERS:
            raise CannotRecord(f"holders cannot be '{holders}'; choose auto or off.")
        if follow not in FOLLOW:
            raise CannotRecord(f"follow cannot be '{follow}'; choose all, fork or none.")
        if not 0 <= stack_depth <= 1024:
            raise CannotRecord(f"a stack depth of {stack_depth} is not between 0 and 1024.")
        if limit_bytes and limit_bytes < SMALLEST_LIMIT_BYTES:
            raise CannotRecord(
                f"a file limit of {limit_bytes} bytes is too small; give at least 8.4MB."
            )
        if not 0 <= mode <= 0o777 or mode & MODE != MODE:
            raise CannotRecord(
                f"a mode of 0o{mode:o} is not between 0o600 and 0o777 with 0o600 in it."
            )
        if not 0 <= heap_rate_bytes <= LARGEST_HEAP_RATE_BYTES:
            raise CannotRecord(
                f"a heap rate of {heap_rate_bytes} bytes is not between 0 and 1.1 TB."
            )
        if not 0 <= rss_interval_ms <= 3_600_000:
            raise CannotRecord(
                f"an interval of {rss_interval_ms} ms is not between 0 and 3600000 (an hour)."
            )
        self.overwrite = overwrite
        self.stack_depth = stack_depth
        self.limit_bytes = limit_bytes
        self.rss_interval_ms = rss_interval_ms
        self.smaps = smaps
        self.sources = tuple(sources)
        self.quiet = quiet
        self.quarantine_bytes = quarantine_bytes
        self.quarantine_nth = quarantine_nth
        self.holders = holders
        self.mode = mode
        self.heap_rate_bytes = heap_rate_bytes
        self.heap_seed = heap_seed
        self.follow = follow

    def as_dict(self) -> dict[str, object]:
        """The values by name; ``Options(**options.as_dict())`` is an equal object."""
        return {name: getattr(self, name) for name in self.__slots__}

    def as_text(self) -> str:
        """The values in one line without ``;``, for the environment of another process."""
        return "&".join([f"{name}={_text_of(value)}" for name, value in self.as_dict().items()])

    @staticmethod
    def from_text(text: str) -> "Options":
        """What ``as_text`` was called on.

        Raises:
            ValueError: it is another text.
            CannotRecord: a value out of its range.
        """
        plain, values = Options().as_dict(), {}
        for part in text.split("&"):
            name, _, value = part.partition("=")
            values[name] = _value_of(value, plain.get(name))
        return Options(**values)  # type: ignore[arg-type]


def _text_of(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(int(value)) if isinstance(value, int) else str(value)


def _value_of(text: str, like: object) -> object:
    """The text as a value of the type that ``like`` has."""
    if isinstance(like, bool):
        return text == "1"
    if isinstance(like, int):
        return int(text)
    if isinstance(like, tuple):
        return tuple([name for name in text.split(",") if name])
    if isinstance(like, str):
        return text
    raise ValueError(f"{text!r} belongs to no option")

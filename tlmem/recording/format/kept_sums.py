"""Sums of older events, kept in a file of their own, so that a recording is folded only once.

``X.tlm.sums`` beside ``X.tlm`` has the checkpoint that folding its older events gave. It is
disposable: what does not fit the recording byte for byte, or was not written by this user with this
version of tlmem, is as if it were not there, and whatever goes wrong with it is not an error.

Covers: where the file is, who may have written it, what it holds, what it was made from.
Does not cover: folding (``checkpoint``), which events are folded (``live_file``).
See also: docs/decisions/sums.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from tlmem.events import EVENT_DTYPE
from tlmem.recording.format import limits
from tlmem.recording.format.checkpoint import (
    HEAP_DTYPE,
    LIVE_DTYPE,
    PASSED_DTYPE,
    SAMPLE_DTYPE,
    SITE_DTYPE,
    Checkpoint,
    FoldTotals,
)

SUFFIX = ".sums"
SWITCH = "TLMEM_SUMS"
"""Set to ``off`` in the environment, nothing is kept and nothing that was kept is read."""
MOST_ANSWERS, LONGEST_ANSWER = 64, 1_000_000
"""Answers that are kept with the sums, the latest ones, and bytes of one."""
LEAST_EVENTS = 1_000_000
"""Of fewer, reading them again is faster than a look at the file."""
MAGIC = b"tlmsums3"
_LENGTH = struct.Struct("<Q")
_MAC_BYTES = 32
_SECRET_BYTES = 32
_ARRAYS = {
    "sites": SITE_DTYPE,
    "samples": SAMPLE_DTYPE,
    "marks": EVENT_DTYPE,
    "live": LIVE_DTYPE,
    "heap": HEAP_DTYPE,
    "passed": PASSED_DTYPE,
}

Identity = Callable[[int], bytes]
"""A digest of everything that folding up to a time (ticks) depends on."""


@dataclass(frozen=True)
class Kept:
    """A checkpoint, where the events begin that it does not have, and the cuts it was made with."""

    checkpoint: Checkpoint
    first_ticks: int
    ends: list[int]


class KeptSums:
    """The sums that are kept of one recording."""

    def __init__(self, path: Path, file_bytes: int) -> None:
        self.path = path
        self._most_bytes = limits.most_folded(file_bytes)

    @property
    def places(self) -> list[Path]:
        """Where they may be, the best place first: beside the recording, in the user's cache."""
        beside = self.path.with_name(self.path.name + SUFFIX)
        try:
            name = hashlib.sha256(os.fsencode(os.path.abspath(self.path))).hexdigest()[:32]
            return [beside, _cache() / f"{name}{SUFFIX}"]
        except (OSError, RuntimeError):  # no current directory, or no home
            return [beside]

    def find(self, ends: list[int], identity: Identity) -> Kept | None:
        """What was kept of events up to one of these cuts, if it was made from these very events.

        Args:
            ends: the cuts that folding would make, in order.
        """
        for kept, digest, _ in self._all_found():
            count = len(kept.ends)
            if count and kept.ends == ends[:count]:
                if hmac.compare_digest(identity(kept.ends[-1]).hex(), digest):
                    return kept
        return None

    def keep(self, kept: Kept, digest: bytes) -> Path | None:
        """Writes it, whole or not at all; returns where, None when it could not be written."""
        secret = None if os.environ.get(SWITCH) == "off" else _secret(create=True)
        if secret is None:
            return None
        return self._write(_packed(kept, digest, {}, secret))

    def answers(self) -> dict[str, bytes]:
        """What was worked out from the recording, by a digest of the question and its events."""
        found = [each[-1] for each in self._all_found()]
        return {key: data for answers in reversed(found) for key, data in answers.items()}

    def keep_answers(self, answers: dict[str, bytes]) -> None:
        """Keeps answers beside the sums; where there are none, beside sums of no events."""
        secret = None if os.environ.get(SWITCH) == "off" else _secret(create=True)
        short = {key: data for key, data in answers.items() if len(data) <= LONGEST_ANSWER}
        if secret is None or not short:
            return
        nothing = Kept(Checkpoint.none(), 0, [])
        kept, digest, before = next(self._all_found(), (nothing, "", {}))
        every = {key: data for key, data in before.items() if key not in short} | short
        every = {key: every[key] for key in list(every)[-MOST_ANSWERS:]}
        self._write(_packed(kept, bytes.fromhex(digest), every, secret))

    def _write(self, data: bytes) -> Path | None:
        if len(data) > self._most_bytes:
            return None
        for place in self.places:
            try:
                _write(place, data)
            except OSError:
                continue
            return place
        return None

    def _all_found(self) -> Iterator[tuple[Kept, str, dict[str, bytes]]]:
        """What this user has written in each place, the best place first."""
        secret = None if os.environ.get(SWITCH) == "off" else _secret(create=False)
        if secret is None:
            return
        for place in self.places:
            with suppress(OSError, ValueError, KeyError, TypeError):
                yield _parsed(_read(place, self._most_bytes), secret)


@cache
def code_digest() -> str:
    """A digest of the code that folds: sums that other code made may be others."""
    digest = hashlib.blake2b(digest_size=16)
    here = Path(__file__).parent
    try:
        for file in (*sorted(here.glob("*.py")), here.parents[1] / "events.py"):
            digest.update(file.read_bytes())
    except OSError:  # installed without its source
        digest.update(os.urandom(16))
    return digest.hexdigest()


def _packed(kept: Kept, digest: bytes, answers: dict[str, bytes], secret: bytes) -> bytes:
    checkpoint = kept.checkpoint
    about = {
        "digest": digest.hex(),
        "first_ticks": kept.first_ticks,
        "ends": kept.ends,
        "number": checkpoint.number,
        "totals": asdict(checkpoint.totals),
        "lost_ticks": checkpoint.lost_ticks,
        "consumed": sorted(checkpoint.consumed.items()),
        "answers": {key: len(data) for key, data in answers.items()},
        "rows": {name: len(getattr(checkpoint, name)) for name in _ARRAYS},
    }
    words = json.dumps(about).encode()
    arrays = (getattr(checkpoint, name).astype(of).tobytes() for name, of in _ARRAYS.items())
    body = b"".join([_LENGTH.pack(len(words)), words, *arrays, *answers.values()])
    return MAGIC + _mac(secret, body) + body


def _parsed(data: bytes, secret: bytes) -> tuple[Kept, str, dict[str, bytes]]:
    """What was kept, the digest of what it was made from, and answers.

    Raises:
        ValueError, KeyError, TypeError: it is not what this user has written.
    """
    begin = len(MAGIC) + _MAC_BYTES
    body = data[begin:]
    if data[: len(MAGIC)] != MAGIC or not hmac.compare_digest(
        _mac(secret, body), data[len(MAGIC) : begin]
    ):
        raise ValueError("written by somebody else, or damaged")
    (length,) = _LENGTH.unpack_from(body)
    at = _LENGTH.size + length
    about = json.loads(body[_LENGTH.size : at])
    arrays = {}
    for name, dtype in _ARRAYS.items():
        count = about["rows"][name]
        arrays[name] = np.frombuffer(body, dtype, count, at).copy()
        at += count * dtype.itemsize
    answers = {}
    for key, length in about["answers"].items():
        answers[key] = body[at : at + length]
        at += length
    checkpoint = Checkpoint(
        number=about["number"],
        totals=FoldTotals(**about["totals"]),
        consumed=dict(about["consumed"]),
        lost_ticks=about["lost_ticks"],
        **arrays,
    )
    kept = Kept(checkpoint, about["first_ticks"], about["ends"])
    return kept, about["digest"], answers


def _mac(secret: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_MAC_BYTES, key=secret).digest()


def _read(place: Path, most_bytes: int) -> bytes:
    """A regular file of bounded length.

    Raises:
        OSError, ValueError: it is something else, or longer.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(place, flags)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > most_bytes:
            raise ValueError("not a file of ours")
        return file.read(about.st_size)


def _write(place: Path, data: bytes) -> None:
    """Makes a file that only this user can read, whole or not at all."""
    if place.parent == _cache():  # there is one, as it has the secret
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if place.exists() and not stat.S_ISREG(os.lstat(place).st_mode):
        raise OSError("in its place is something else")
    descriptor, beside = tempfile.mkstemp(prefix=".tlmem-", suffix=SUFFIX, dir=place.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise


def _cache() -> Path:
    """The user's own folder for what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tlmem"


def _secret(create: bool) -> bytes | None:
    """What only this user knows, so that no other user can forge sums; None where there is none."""
    try:
        place = _cache() / "sums.key"
        if create and not place.exists():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(made, "wb") as file:
                file.write(os.urandom(_SECRET_BYTES))
        about = os.stat(place)
        secret = _read(place, _SECRET_BYTES)
    except (OSError, ValueError, RuntimeError):
        return None
    mine = not hasattr(os, "getuid") or (
        about.st_uid == os.getuid() and not about.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    )
    return secret if mine and len(secret) == _SECRET_BYTES else None

"""Pools: tensors that are done with, kept by dtype and shape for reuse.

Covers: tensors and anything else with ``shape``, ``dtype`` and ``handle``; pruning by size, by key
and by time; entries that garbage collection may take. Does not cover: buffers of devices, which are
reused below objects (``device``).
See also: docs/reference/runtime.md, "Pools".
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, Protocol, TextIO, runtime_checkable
from weakref import ref

from tlmem.runtime import contexts, core, dtypes
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.ownership import adopted
from tlmem.runtime.ownership.holders import describe, own_count

NEEDED = ("shape", "dtype", "handle")
BATCH = 256
_NO_OBJECT = 1 << 63  # set in the items of things that are not ours; no handle has it


@runtime_checkable
class PoolableTensor(Protocol):
    """What a pool needs of a thing. It calls ``free()`` on a thing that has it and is not kept."""

    @property
    def shape(self) -> Any:
        """Its lengths."""

    @property
    def dtype(self) -> Any:
        """Its dtype, by name or as an object with a text."""

    @property
    def handle(self) -> Any:
        """A key of its own; never taken for a pointer."""


@dataclass(frozen=True)
class PoolStats(Mapping[str, Any]):
    """Sizes and counters of a pool at one moment; attributes and items are the same.

    Attributes:
        size: how many tensors are kept.
        hits: how often ``acquire`` gave one.
        misses: how often it gave none.
        puts: how many releases were kept.
        drops: how many were freed because their key was full.
        by_key: key -> how many are kept, in the order of their first release.
        hit_rate: ``hits / (hits + misses)``, 0 before the first ``acquire``.
    """

    size: int
    hits: int
    misses: int
    puts: int
    drops: int
    by_key: dict[str, int] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """Share of ``acquire`` that found something."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0

    def __getitem__(self, name: str) -> Any:
        if name in _STATISTICS:
            return getattr(self, name)
        raise KeyError(f"no statistic {name!r}; there are {', '.join(_STATISTICS)}")

    def __iter__(self) -> Iterator[str]:
        return iter(_STATISTICS)

    def __len__(self) -> int:
        return len(_STATISTICS)


_STATISTICS = ("size", "hits", "misses", "hit_rate", "by_key", "puts", "drops")


class TensorPool:
    """Keeps released tensors; acquiring gives the one of the same dtype and shape released last.

    Contents are undefined: initialise what you acquire. It may be used from any thread.

    Args:
        max_per_key: how many of one dtype and shape are kept; one more is freed on release.
        name: its label in recordings.
        auto_prune: frees half of what is kept each time ``prune_interval`` has passed, when the
            pool is next used; no thread does it.
        prune_interval: in seconds.
        weak: keeps no reference: garbage collection may take an entry, which is freed then.
        clock: returns seconds; for tests.
    Raises:
        ValueError: ``max_per_key`` is not positive.
    Source: the ``TensorPool`` of ts-torch (S42 to S53).
    """

    def __init__(
        self,
        max_per_key: int = 16,
        *,
        name: str | None = None,
        auto_prune: bool = False,
        prune_interval: float = 60.0,
        weak: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._number = 0
        if isinstance(max_per_key, bool) or not isinstance(max_per_key, int):
            raise TypeError(f"max_per_key is a whole number, not {max_per_key!r}")
        if not 0 < max_per_key < 1 << 32:
            raise ValueError(f"a pool keeps at least 1 tensor per key, not {max_per_key}")
        self.max_per_key = max_per_key
        self.name = name or ""
        made = ffi.new("uint32_t *")
        check(lib.tlm_pool_create(core.label(name), max_per_key, made), "make", "a pool")
        self._number = made[0]
        self._kept: dict[int, Any] = {}  # item -> thing, or a weak reference to it
        self._asked: dict[str, list[int]] = {}  # key -> [hits, misses]
        self._lock = RLock()  # may be entered again: by a thing's end, by garbage collection
        self._weak = weak
        self._clock = clock
        self._interval = prune_interval if auto_prune else None
        self._pruned = clock() if auto_prune else 0.0

    # ---- out and in ----

    def acquire(self, shape: Any, dtype: Any = dtypes.DEFAULT, device: str = "cpu") -> Any:
        """The tensor of this shape and dtype that was released last, or None.

        It is the same Python object that was released. A tensor belongs to the innermost scope
        then, or outside any to its handle.
        """
        text = key_text(shape, dtype, device)
        with self._lock:
            thing = self._take(text)
            asked = self._asked.get(text) or self._asked.setdefault(text, [0, 0])
            asked[thing is None] += 1
        self._prune_when_due()
        return thing

    def release(self, tensor: Any) -> None:
        """Gives a tensor to the pool, out of its scope or handle; freed when its key is full.

        Raises:
            AlreadyPooled: it is in a pool.
            StillHeld: others hold it too, such as a struct, an array over its memory or a view.
            InArena: its memory ends with its scope.
            UseAfterFree: it was freed.
            TypeError: it is a view, or has no ``shape``, ``dtype`` and ``handle``.
        """
        text = self._key_of(tensor)
        if isinstance(tensor, core.Reference):
            self._put_object(tensor, text)
        else:
            self._put_item(tensor, text)
        self._prune_when_due()

    # ---- less ----

    def clear(self) -> None:
        """Frees everything that is kept and sets the counters to 0."""
        with self._lock:
            items = self._prune_to(0)
            check(lib.tlm_pool_reset_counters(self._number), "clear", repr(self))
            self._asked.clear()
        self._free(items, "clearing")

    def prune(self, target: int | None = None) -> int:
        """Frees until ``target`` are left, half of what is kept by default; how many were freed.

        It begins with the key that was put first, and there with what was released last.
        """
        if target is not None and target < 0:
            raise ValueError(f"a pool cannot be pruned to {target} tensors")
        with self._lock:
            items = self._prune_to(self._core_stats().size // 2 if target is None else target)
        return self._free(items, "pruning")

    def clear_key(self, shape: Any, dtype: Any = dtypes.DEFAULT, device: str = "cpu") -> int:
        """Frees what is kept of one key; counters stay. How many were freed."""
        label = core.label(key_text(shape, dtype, device))
        items: list[int] = []
        room = ffi.new("uint64_t[]", BATCH)
        removed = ffi.new("uint64_t *")
        with self._lock:
            while True:
                status = lib.tlm_pool_clear_key(self._number, label, room, BATCH, removed)
                check(status, "clear a key of", repr(self))
                items.extend(ffi.unpack(room, removed[0]))
                if removed[0] < BATCH:
                    break
        return self._free(items, "clearing a key of")

    # ---- what there is ----

    def stats(self) -> PoolStats:
        """Sizes and counters now."""
        with self._lock:
            self._forget_lost()
            found = self._core_stats()
            return PoolStats(
                found.size, found.hits, found.misses, found.puts, found.drops, self._sizes()
            )

    def key_size(self, shape: Any, dtype: Any = dtypes.DEFAULT, device: str = "cpu") -> int:
        """How many are kept of this shape and dtype."""
        return lib.tlm_pool_key_size(self._number, core.label(key_text(shape, dtype, device)))

    def keys(self) -> list[str]:
        """Keys of what is kept, such as ``float32:[10,10]``, in the order of first release."""
        return list(self._sizes())

    def print_stats(self, file: TextIO | None = None) -> None:
        """Prints one line for the pool and one for each key, with its own hit rate."""
        out = sys.stdout if file is None else file
        now = self.stats()
        print(f"{self!r}: {now.size} tensors (hit rate: {now.hit_rate:.0%})", file=out)
        for key, size in now.by_key.items():
            hits, misses = self._asked.get(key, (0, 0))
            rate = hits / (hits + misses) if hits + misses else 0.0
            print(f"  {key}: {size} tensors (hit rate: {rate:.0%})", file=out)

    def __len__(self) -> int:
        return self._core_stats().size

    def __repr__(self) -> str:
        return f"pool {self.name!r} (#{self._number})" if self.name else f"pool #{self._number}"

    def __del__(self) -> None:
        if self._number and lib is not None:  # None: the interpreter is ending
            lib.tlm_pool_prune(self._number, 0, ffi.NULL, ffi.NULL, 0, ffi.NULL)
            lib.tlm_pool_destroy(self._number)

    # ---- how ----

    def _take(self, text: str) -> Any:
        """What is kept of a key, taken out and owned by the caller; None when there is nothing."""
        item = ffi.new("uint64_t *")
        try:
            while True:
                status = lib.tlm_pool_acquire(self._number, core.label(text), item)
                if status:
                    core.raise_for(status, "acquire from", repr(self))
                if not item[0]:
                    self._forget_lost()
                    return None
                kept = self._kept.pop(item[0], None)
                thing = kept() if self._weak and kept is not None else kept
                if item[0] & _NO_OBJECT:
                    if thing is not None:
                        return thing
                elif thing is None:
                    lib.tlm_release(item[0], core.FLOATING_HOLDER)
                else:
                    return self._own(thing, item[0])
        except BaseException:  # Ctrl-C: what was taken out would float for ever
            if core.FLOATING_HOLDER in core.holders_of(item[0]):
                lib.tlm_release(item[0], core.FLOATING_HOLDER)
            raise

    def _own(self, tensor: Any, handle: int) -> Any:
        contexts.settle()
        status = tensor._adopt(handle, core.INNERMOST)
        if status:
            lib.tlm_free(handle)
            core.raise_for(status, "own", tensor)
        tensor.escaped = False
        return tensor

    def _put_object(self, tensor: Any, text: str) -> None:
        tensor._require("release to a pool")
        if tensor._base_handle:
            raise TypeError(
                f"cannot release {core.subject_text(tensor)} to a pool: it is a view and has no "
                "memory of its own; release its base"
            )
        handle, label = tensor.handle, core.label(text)
        dropped = ffi.new("int *")
        with self._lock:
            self._keep(handle, tensor, text)
            try:
                status = lib.tlm_pool_put(self._number, label, handle, own_count(tensor), dropped)
            except BaseException:  # Ctrl-C
                if not describe(handle).flags & lib.TLM_FLAG_POOLED:
                    del self._kept[handle]
                raise
            if (status or dropped[0]) and status != lib.TLM_ALREADY_POOLED:
                del self._kept[handle]
            if not status:
                tensor._holder = 0  # under the lock: another thread may acquire it right after
                core.engine.require(tensor, False)  # its next user has nothing to do with its past
        if status == lib.TLM_NOT_A_HOLDER:
            status = lib.TLM_STILL_HELD
        check(status, "release to a pool", tensor)
        if dropped[0]:
            tensor._ended = core.here()

    def _put_item(self, thing: Any, text: str) -> None:
        item = id(thing) | _NO_OBJECT
        dropped = ffi.new("int *")
        with self._lock:
            status = lib.tlm_pool_put_item(self._number, core.label(text), item, dropped)
            check(status, "release to a pool", thing)
            self._keep(item, thing, text)
        adopted.give_up(thing)
        if dropped[0]:
            self._free([item], "releasing to")

    def _keep(self, item: int, thing: Any, text: str) -> None:
        self._kept[item] = ref(thing, _Lost(self, item, text)) if self._weak else thing

    def _lose(self, item: int, text: str) -> None:
        """Garbage collection took a thing of the pool; its memory goes too."""
        with self._lock:
            taken = lib.tlm_pool_remove(self._number, core.label(text), item)
            if taken:
                self._kept.pop(item, None)
                if not item & _NO_OBJECT:
                    lib.tlm_release(item, core.FLOATING_HOLDER)

    def _forget_lost(self) -> None:
        """Lets go of tensors that were freed, or handed on, behind the pool's back."""
        if len(self._kept) > self._core_stats().size:
            for item in list(self._kept):
                known = item & _NO_OBJECT or describe(item).flags & lib.TLM_FLAG_POOLED
                if not known:
                    del self._kept[item]

    def _prune_to(self, target: int) -> list[int]:
        items: list[int] = []
        room = ffi.new("uint64_t[]", BATCH)
        removed = ffi.new("uint64_t *")
        while True:
            status = lib.tlm_pool_prune(self._number, target, room, ffi.NULL, BATCH, removed)
            check(status, "prune", repr(self))
            items.extend(ffi.unpack(room, removed[0]))
            if removed[0] < BATCH:
                return items

    def _free(self, items: list[int], doing: str) -> int:
        """Ends things that left the pool; the core has freed objects already."""
        problems: list[BaseException] = []
        for item in items:
            with self._lock:
                kept = self._kept.pop(item, None)
            thing = kept() if self._weak and kept is not None else kept
            if item & _NO_OBJECT and hasattr(thing, "free"):
                try:
                    thing.free()
                except BaseException as error:
                    problems.append(error)
        if problems:
            adopted.report(problems, None, f"{doing} {self!r}")
        return len(items)

    def _prune_when_due(self) -> None:
        if self._interval is not None and self._clock() - self._pruned >= self._interval:
            self._pruned = self._clock()
            self.prune()

    def _key_of(self, tensor: Any) -> str:
        is_tensor = isinstance(tensor, core.Reference) and hasattr(tensor, "shape")
        if is_tensor:
            return key_text(tensor.shape, tensor.dtype, tensor.device)
        missing = [name for name in NEEDED if not hasattr(tensor, name)]
        if missing and not adopted.is_dropped(tensor):
            raise TypeError(
                f"cannot release {type(tensor).__name__} to a pool: it has no "
                f"{', '.join(missing)}; a pool needs {', '.join(NEEDED)}"
            )
        return key_text(tensor.shape, tensor.dtype, str(getattr(tensor, "device", "cpu")))

    def _core_stats(self) -> Any:
        found = ffi.new("tlm_pool_statistics *")
        check(lib.tlm_pool_stats(self._number, found), "tell the statistics of", repr(self))
        return found

    def _sizes(self) -> dict[str, int]:
        room = BATCH
        while True:
            labels, sizes = ffi.new("tlm_label[]", room), ffi.new("uint64_t[]", room)
            count = lib.tlm_pool_keys(self._number, labels, sizes, room)
            if count <= room:
                return {core.label_text(labels[i]): sizes[i] for i in range(count)}
            room = count


class _Lost:
    """What a weak entry does at its end; it does not keep the pool alive."""

    __slots__ = ("item", "pool", "text")

    def __init__(self, pool: TensorPool, item: int, text: str) -> None:
        self.pool, self.item, self.text = ref(pool), item, text

    def __call__(self, _: Any) -> None:
        pool = self.pool()
        if pool is not None:
            pool._lose(self.item, self.text)


def key_text(shape: Any, dtype: Any, device: str = "cpu") -> str:
    """``float32:[10,10]``; with ``@device`` behind it for another device than ``cpu``."""
    try:
        return _texts[shape, dtype, device]
    except (KeyError, TypeError):
        text = _text_of(shape, dtype, device)
    try:
        _texts[shape, dtype, device] = text
    except TypeError:
        pass  # a list, say
    return text


_texts: dict[tuple[Any, Any, str], str] = {}  # as many as there are labels of keys


def _text_of(shape: Any, dtype: Any, device: str) -> str:
    lengths = (shape,) if isinstance(shape, int) else shape
    try:
        name = dtypes.dtype_name(dtype)
    except WrongDtype:
        name = str(dtype)
    where = "" if device == "cpu" else f"@{device}"
    return f"{name}:[{','.join(str(int(length)) for length in lengths)}]{where}"


global_pool = TensorPool(name="global")
"""The pool that programs may share; 16 per key."""

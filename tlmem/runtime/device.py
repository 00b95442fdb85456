"""Devices: where memory comes from, what becomes of freed memory, and devices that fail on purpose.

Covers: ``device``, ``devices``, ``limit_device``, statistics of drivers and of their buffers.
Does not cover: pools of tensors (``pool``); what a device is made of
(``native/memory/devices/backend.h``).

A freed payload goes back to the driver at once (``"direct"``), is kept for reuse up to a budget of
bytes (``"bounded"``), or is kept for ever (``"persistent"``: never used again;
``"persistent-reusing"``: used again). ``cpu`` begins with ``"bounded"``, GPUs with ``"direct"``.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from tlmem.runtime import core, errors
from tlmem.runtime.core import ffi, lib

POLICIES: dict[str, int] = {
    "direct": lib.TLM_BUFFERS_DIRECT,
    "bounded": lib.TLM_BUFFERS_BOUNDED,
    "persistent": lib.TLM_BUFFERS_PERSISTENT,
    "persistent-reusing": lib.TLM_BUFFERS_PERSISTENT_REUSING,
}
DEFAULT_BUDGET_BYTES = 32 << 20
_MOST = 2**64 - 1
_NUMBERS: tuple[int, ...] = (lib.TLM_DEVICE_CPU, lib.TLM_DEVICE_METAL, lib.TLM_DEVICE_SIM_METAL)


@dataclass(frozen=True)
class DeviceStats:
    """What a driver handed out; of an adaptor, what was asked of it.

    Attributes:
        current_bytes: handed out now, what is kept for reuse included.
        peak_bytes: the most at once.
        total_bytes: ever.
        current_count: pieces handed out now.
        peak_count: the most at once.
        total_count: ever.
        driver_bytes: what the driver holds of the system's memory, handed out or not.
        failed_count: requests that were refused.
    """

    current_bytes: int
    peak_bytes: int
    total_bytes: int
    current_count: int
    peak_count: int
    total_count: int
    driver_bytes: int
    failed_count: int


@dataclass(frozen=True)
class BufferStats:
    """What a device's buffers amount to; bytes as the driver counts them.

    Under a persistent policy ``total_allocated_bytes == active_bytes + free_bytes`` at all times.

    Attributes:
        total_allocated_bytes: taken from the driver so far, preallocation included; never falls.
        active_bytes: in use by objects.
        active_count: buffers in use.
        free_bytes: kept.
        free_count: buffers kept.
        hits: requests served without the driver.
        misses: requests that found nothing kept; none are counted under ``"direct"``.
        reserved_bytes: by preallocation.
    """

    total_allocated_bytes: int
    active_bytes: int
    active_count: int
    free_bytes: int
    free_count: int
    hits: int
    misses: int
    reserved_bytes: int

    @property
    def hit_rate(self) -> float:
        """Share of requests that were served without the driver; 0 before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class Device:
    """A place where memory comes from; everything that takes ``device=`` accepts it or its name.

    Attributes:
        number: as in events and in the C interface.
        name: ``"cpu"``, ``"metal"``, ``"sim-metal"``, or of an adaptor ``"limit(cpu)"``.
    """

    __slots__ = ("__weakref__", "name", "number")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name

    @property
    def available(self) -> bool:
        """Whether it can be used here."""
        return bool(lib.tlm_device_available(self.number, ffi.NULL))

    @property
    def reason(self) -> str:
        """Why it cannot be used here; empty when it can."""
        why = ffi.new("const char **")
        lib.tlm_device_available(self.number, why)
        return "" if why[0] == ffi.NULL else ffi.string(why[0]).decode()

    def stats(self) -> DeviceStats:
        """What the driver handed out."""
        found = ffi.new("tlm_device_statistics *")
        lib.tlm_device_stats(self._open_number(), found)
        return DeviceStats(**_fields(found, DeviceStats))

    def buffers(self) -> BufferStats:
        """What is in use and what is kept. An adaptor's buffers are those of the device below."""
        found = ffi.new("tlm_buffers_statistics *")
        lib.tlm_buffers_stats(self._open_number(), found)
        return BufferStats(**_fields(found, BufferStats))

    def dump(self) -> str:
        """The statistics of its buffers as a text, size by size."""
        room = 0
        while (needed := lib.tlm_buffers_dump(self._open_number(), ffi.NULL, 0) + 1) > room:
            room = needed + 256  # other threads may add lines meanwhile
            text = ffi.new("char[]", room)
            if lib.tlm_buffers_dump(self._open_number(), text, room) < room:
                return str(ffi.string(text).decode())
        return ""

    def policy(self, name: str, budget_bytes: int | None = None) -> None:
        """Says what becomes of freed memory from now on. What is kept beyond it is freed.

        Args:
            name: ``"direct"``, ``"bounded"``, ``"persistent"`` or ``"persistent-reusing"``.
            budget_bytes: kept at most, only with ``"bounded"``; 32 MiB when not said.
        Raises:
            ValueError: no such policy, or a budget for one that has none.
            NoSuchDevice: it is not available here.
        """
        if name not in POLICIES:
            raise ValueError(f"no policy {name!r}; there are {', '.join(map(repr, POLICIES))}")
        if budget_bytes is not None and name != "bounded":
            raise ValueError(f"the policy {name!r} has no budget; 'bounded' has one")
        budget = DEFAULT_BUDGET_BYTES if budget_bytes is None else _bytes(budget_bytes, "budget")
        self._check(
            lib.tlm_device_policy(self._open_number(), POLICIES[name], budget), "set the policy of"
        )

    def trim(self) -> int:
        """Gives every kept buffer back to the driver.

        Returns:
            The bytes that went; 0 under a persistent policy, which gives nothing back.
        """
        return int(lib.tlm_device_trim(self._open_number()))

    def preallocate(self, nbytes: int) -> None:
        """Reserves memory that later requests are served from; once, later calls do nothing.

        Args:
            nbytes: size, above 0; rounded up to a multiple of 64. Its pages become resident now.
        Raises:
            DeviceOutOfMemory: the driver has not so much; nothing was reserved.
            SizeOverflow: no device could have so much.
            ValueError: it is 0 or negative.
            NoSuchDevice: it is not available here.
        """
        size = _bytes(nbytes, "preallocation")
        self._check(lib.tlm_device_preallocate(self._open_number(), size), "preallocate memory of")

    def _open_number(self) -> int:
        return self.number

    def _check(self, status: int, doing: str) -> None:
        if status == lib.TLM_NO_DEVICE:
            reason = self.reason or "it is closed"
            raise errors.NoSuchDevice(f"cannot {doing} device {self.name!r}: {reason}")
        core.check(status, doing, f"device {self.name!r}")

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        state = "" if self.available else f", not available: {self.reason}"
        return f"<Device {self.name!r} (number {self.number}){state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.number == self.number and other.name == self.name

    def __hash__(self) -> int:
        return hash((self.number, self.name))


class LimitDevice(Device):
    """An adaptor over a device that limits or fails; closed by ``with`` or ``close``.

    Its ``stats`` tell what was asked of it, exact with any number of threads; its policy and its
    buffers are those of the device below. Once it is closed, its methods raise ``NoSuchDevice``.
    """

    __slots__ = ("_finalizer", "closed")

    def __init__(self, number: int, name: str) -> None:
        super().__init__(number, name)
        self.closed = False
        self._finalizer = weakref.finalize(self, lib.tlm_device_close, number)

    def fail_nth(self, n: int | None) -> None:
        """Lets the n-th request from now on fail, then none any more; ``None``: none at all.

        Raises:
            ValueError: it is 0 or negative.
            NoSuchDevice: the adaptor is closed.
        """
        self._check(lib.tlm_device_fail_nth(self._open_number(), _nth(n)), "arm")

    def close(self) -> None:
        """Ends the adaptor; a second time does nothing.

        Raises:
            StillHeld: memory of it is handed out, or an adaptor stands before it; it goes on.
        """
        if self.closed:
            return
        status = lib.tlm_device_close(self.number)
        if status == lib.TLM_STILL_HELD:
            raise self._still_held()
        self._check(status, "close")
        self.closed = True
        self._finalizer.detach()

    def _still_held(self) -> errors.StillHeld:
        held = self.stats()
        what = f"{held.current_bytes} bytes in {held.current_count} objects are handed out"
        advice = "free them first"
        if held.current_count == 0:
            what, advice = "another adaptor stands before it", "close that one first"
        return errors.StillHeld(
            f"cannot close device {self.name!r} (number {self.number}): {what}; {advice}",
            advice=advice,
        )

    def _open_number(self) -> int:
        if self.closed:
            raise errors.NoSuchDevice(f"device {self.name!r} (number {self.number}) is closed")
        return self.number

    @property
    def available(self) -> bool:
        """Whether it can be used: it is open, and the device below is available."""
        return not self.closed and super().available

    @property
    def reason(self) -> str:
        """Why it cannot be used; empty when it can."""
        return "it is closed" if self.closed else super().reason

    def __enter__(self) -> LimitDevice:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except errors.StillHeld:
            # An error that is under way has names that hold memory: it must not be covered up.
            if error is None:
                raise


def device(name: str | int | Device = "cpu") -> Device:
    """The device of a name or number, available or not.

    Raises:
        NoSuchDevice: there is none.
    """
    if isinstance(name, Device):
        return name
    for each in devices():
        if name in (each.name, each.number):
            return each
    names = ", ".join(repr(each.name) for each in devices())
    raise errors.NoSuchDevice(f"no device {name!r}; there are {names}")


def devices() -> list[Device]:
    """All devices that tlmem knows; ``available`` and ``reason`` say which can be used here."""
    return [Device(number, core.device_name(number)) for number in _NUMBERS]


def limit_device(
    inner: str | int | Device = "cpu",
    limit_bytes: int | None = None,
    fail_nth: int | None = None,
) -> LimitDevice:
    """An adaptor over a device, for trying out how a program behaves when memory runs out.

    It counts what is asked for, whatever the device below rounds it to or keeps for reuse.

    Args:
        inner: the device that the memory comes from; another adaptor is fine.
        limit_bytes: at most so many bytes at once; ``None``: no limit.
        fail_nth: the n-th request fails, then none any more; ``None``: none. Zero bytes are no
            request.
    Raises:
        NoSuchDevice: there is no such device, or it is not available here.
        MemoryError: 224 adaptors are open.
        ValueError: a limit or a number that is not above 0.
    """
    below = device(inner)
    most = 0 if limit_bytes is None else _above_zero(_bytes(limit_bytes, "limit"), "limit")
    number = ffi.new("uint32_t *")
    below._check(lib.tlm_device_limit(below.number, most, _nth(fail_nth), number), "limit")
    return LimitDevice(number[0], f"limit({below.name})")


# ---- under the names of TensorLogic's persistent pool ----


def tl_get_gpu_total_allocated_bytes() -> int:
    """Bytes that were ever taken from the driver of the GPU: ``metal`` where there is one, else
    ``sim-metal``. It never falls.

    Source: docs/seed-map.md, S27; ``device(name).buffers()`` has it for any device.
    """
    return int(lib.tlm_get_gpu_total_allocated_bytes())


def tl_get_gpu_free_count() -> int:
    """How many freed buffers of the GPU are kept. Source: docs/seed-map.md, S27."""
    return int(lib.tlm_get_gpu_free_count())


def tl_get_gpu_free_bytes() -> int:
    """Bytes of these buffers. Source: docs/seed-map.md, S27."""
    return int(lib.tlm_get_gpu_free_bytes())


def tl_get_gpu_pool_hit_rate() -> float:
    """Share of the GPU's requests that were served without its driver; 0 before the first.

    Source: docs/seed-map.md, S27.
    """
    return float(lib.tlm_get_gpu_pool_hit_rate())


def tl_dump_gpu_pool_stats() -> None:
    """Writes the statistics of the GPU's buffers to stderr, size by size.

    Source: docs/seed-map.md, S27; ``device(name).dump()`` gives them as a text.
    """
    metal = device("metal")
    sys.stderr.write((metal if metal.available else device("sim-metal")).dump())


def _fields(found: Any, kind: type) -> dict[str, int]:
    return {name: int(getattr(found, name)) for name in kind.__dataclass_fields__}  # type: ignore[attr-defined]


def _nth(n: int | None) -> int:
    return 0 if n is None else _above_zero(_bytes(n, "fail_nth"), "fail_nth")


def _above_zero(value: int, what: str) -> int:
    if value == 0:
        raise ValueError(f"{what} must be above 0; leave it out for none")
    return value


def _bytes(value: int, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if not 0 <= value <= _MOST:
        raise ValueError(f"{what} must be from 0 to 2**64 - 1, not {value}")
    return value

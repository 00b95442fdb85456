"""Devices by name and number, as every argument ``device=`` is understood.

Does not cover: what a device does (``device``).
"""

from __future__ import annotations

from typing import Any

from tlmem._native import ffi, lib
from tlmem.runtime.errors import NoSuchDevice

CPU: int = lib.TLM_DEVICE_CPU
_device_numbers: dict[str, int] = {"cpu": CPU}
_device_names: dict[int, str] = {CPU: "cpu"}


def device_number(device: Any) -> int:
    """The number of a device that is given by name, number or ``Device``; None is the CPU.

    Raises:
        NoSuchDevice: there is none of this name, or it is not available here.
    """
    if device is None:
        return CPU
    if isinstance(device, str):
        found = _device_numbers.get(device)
        return _find_device(device) if found is None else found
    number = getattr(device, "number", device)
    is_number = isinstance(number, int) and 0 <= number < 1 << 32
    if is_number and lib.tlm_device_name(number) != ffi.NULL:
        return number
    raise NoSuchDevice(f"no device {device!r}; tlmem.devices() lists them")


def _find_device(name: str) -> int:
    for number in (lib.TLM_DEVICE_CPU, lib.TLM_DEVICE_METAL, lib.TLM_DEVICE_SIM_METAL):
        if device_name(number) != name:
            continue
        why = ffi.new("const char **")
        if lib.tlm_device_available(number, why):
            _device_numbers[name] = number
            return number
        reason = ffi.string(why[0]).decode() if why[0] != ffi.NULL else "no reason is known"
        raise NoSuchDevice(f"device {name!r} is not available here: {reason}")
    raise NoSuchDevice(f"no device {name!r}; tlmem.devices() lists them")


def device_name(number: int) -> str:
    """The name of a device; ``device 40`` when it has none (any more)."""
    found = _device_names.get(number)
    if found is None:
        text = lib.tlm_device_name(number)
        found = ffi.string(text).decode() if text != ffi.NULL else f"device {number}"
    return found

"""The vocabulary is the same in Python, in C and in the layout of the file."""

import re
from pathlib import Path

import pytest
from support.writer import EVENT

from tlmem.events import EVENT_DTYPE, Device, HolderKind, Kind, Metric, Misuse, ObjectType

INCLUDE = Path(__file__).resolve().parents[2] / "native/include"
PREFIXES = {
    Kind: "KIND",
    Device: "DEVICE",
    Metric: "METRIC",
    HolderKind: "HOLDER",
    Misuse: "MISUSE",
    ObjectType: "OBJECT",
}


@pytest.mark.parametrize("enum", PREFIXES)
def test_numbers_are_those_of_the_c_headers(enum: type) -> None:
    text = "".join((INCLUDE / name).read_text("utf-8") for name in ("tlmem.h", "tlmem_log.h"))
    found = dict(re.findall(rf"\bTLM_{PREFIXES[enum]}_(\w+) = (\d+)", text))
    if enum is Kind:
        assert found.pop("NONE") == "0"

    assert {name: int(number) for name, number in found.items()} == enum.__members__


def test_an_event_has_32_bytes_without_holes() -> None:
    assert EVENT_DTYPE == EVENT
    assert EVENT_DTYPE.itemsize == 32
    assert EVENT_DTYPE.fields["kind"][1] == 30

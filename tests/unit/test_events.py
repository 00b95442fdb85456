"""The vocabulary is the same in Python, in C and in the layout of the file."""

import re
from pathlib import Path

import pytest
from support.writer import EVENT

from tlmem.events import EVENT_DTYPE, Device, Kind, Metric

HEADER = Path(__file__).resolve().parents[2] / "native/include/tlmem.h"


@pytest.mark.parametrize("enum", [Kind, Device, Metric])
def test_numbers_are_those_of_the_c_header(enum: type) -> None:
    found = dict(
        re.findall(rf"TLM_{enum.__name__.upper()}_(\w+) = (\d+)", HEADER.read_text("utf-8"))
    )
    if enum is Kind:
        assert found.pop("NONE") == "0"

    assert {name: int(number) for name, number in found.items()} == enum.__members__


def test_an_event_has_32_bytes_without_holes() -> None:
    assert EVENT_DTYPE == EVENT
    assert EVENT_DTYPE.itemsize == 32
    assert EVENT_DTYPE.fields["kind"][1] == 30

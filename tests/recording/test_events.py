"""What C writes and Python reads has the same numbers and layout on both sides.

The C sources are read as text, wherever in ``native`` they stand, so that nothing needs a compiler.
"""

import re
import struct
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.writer import EVENT

from tlmem import events
from tlmem.events import EVENT_DTYPE, Device, HolderKind, Kind, Metric, Misuse, ObjectType
from tlmem.recording.format import blocks, chains, checkpoint, segments, symbols

NATIVE = Path(__file__).resolve().parents[2] / "native"
PREFIXES = {
    Kind: "KIND",
    Device: "DEVICE",
    Metric: "METRIC",
    HolderKind: "HOLDER",
    Misuse: "MISUSE",
    ObjectType: "OBJECT",
}
SIZES = {"uint64_t": 8, "uint32_t": 4, "uint16_t": 2, "uint8_t": 1, "char": 1, "tlmi_column": 8}


@cache
def c_text() -> str:
    """Every C source and header without its comments."""
    files = sorted(path for path in NATIVE.rglob("*") if path.suffix in (".c", ".h"))
    return re.sub(
        r"/\*.*?\*/", "", "\n".join(path.read_text("utf-8") for path in files), flags=re.S
    )


def c_enum(first: str) -> dict[str, int]:
    """The enum that has this member, by the names of its members."""
    (body,) = (
        body
        for body in re.findall(r"enum \{(.*?)\}", c_text(), re.S)
        if re.search(rf"(^|,)\s*{first}\b", body)
    )
    found, following = {}, 0
    for member in filter(None, (part.strip() for part in body.split(","))):
        name, _, value = (part.strip() for part in member.partition("="))
        number = re.fullmatch(r"(\w+)(?: << (\d+))?", value)
        if number and number[1].startswith("TLMI_"):  # a member of another enum
            following = c_enum(number[1])[number[1]]
        elif value and not (number and number[1][0].isdigit()):  # an expression of other members
            break
        elif number:
            is_octal = re.fullmatch(r"0\d+", number[1])
            following = int(number[1], 8 if is_octal else 0) << int(number[2] or 0)
        found[name] = following
        following += 1
    return found


def c_prefixed(first: str, prefix: str) -> dict[str, int]:
    """The same, of members that begin with this prefix, without it."""
    return {
        name.removeprefix(prefix): number
        for name, number in c_enum(first).items()
        if name.startswith(prefix)
    }


def c_define(name: str) -> int:
    """The number of a macro."""
    (found,) = set(re.findall(rf"#define {name} (\w+)", c_text()))
    return int(found.rstrip("uU"), 0)


def c_number(text: str) -> int:
    """A number, or the member of an enum that stands for one."""
    return int(text) if text.isdecimal() else c_enum(text)[text]


def c_struct(name: str) -> list[tuple[str, int, int]]:
    """Name, offset and size of each field of a struct but unused ones; texts are one field."""
    matches = re.findall(rf"typedef struct \{{([^{{}}]*)\}} {name};", c_text())
    assert len(matches) == 1, name
    found, offset = [], 0
    for kind, names in re.findall(r"(?:_Atomic )?(\w+) ([^;]+);", matches[0]):
        for field in names.split(","):
            field, _, count = field.strip().rstrip("]").partition("[")
            size = SIZES[kind] * (c_number(count) if count else 1)
            if not field.startswith("unused"):
                found.append((field, offset, size))
            offset += size
    return found


def packed(layout: struct.Struct) -> list[tuple[int, int]]:
    """Offset and size of each field of a layout; a text is one field."""
    found, offset = [], 0
    for count, code in re.findall(r"(\d*)([a-zA-Z])", layout.format):
        if code in "sx":
            if code == "s":
                found.append((offset, int(count)))
            offset += int(count or 1)
            continue
        size = struct.calcsize(f"<{code}")
        for _ in range(int(count or 1)):
            found.append((offset, size))
            offset += size
    return found


def placed(layout: list[tuple[str, int, int]]) -> list[tuple[int, int]]:
    return [(offset, size) for _, offset, size in layout]


def columns(dtype: np.dtype) -> list[tuple[int, int]]:
    assert dtype.names and dtype.fields
    return [
        (dtype.fields[name][1], dtype.fields[name][0].itemsize)
        for name in dtype.names
        if name != "unused"
    ]


@pytest.mark.parametrize("enum", PREFIXES)
def test_numbers_are_those_of_the_c_headers(enum: type) -> None:
    headers = "".join(
        (NATIVE / "include" / f).read_text("utf-8") for f in ("tlmem.h", "tlmem_log.h")
    )
    found = dict(re.findall(rf"\bTLM_{PREFIXES[enum]}_(\w+) = (\d+)", headers))
    if enum is Kind:
        assert found.pop("NONE") == "0"

    assert {name: int(number) for name, number in found.items()} == enum.__members__


def test_the_header_for_probes_repeats_numbers_that_there_are() -> None:
    kinds = c_prefixed("TLM_PROBE_KIND_ALLOC", "TLM_PROBE_KIND_")
    assert kinds == {name: Kind[name] for name in kinds}

    misuses = c_prefixed("TLM_PROBE_DOUBLE_FREE", "TLM_PROBE_")
    assert misuses.pop("WRONG_ALLOCATOR") == Misuse.WRONG_DEVICE
    assert misuses == {name: Misuse[name] for name in misuses}


def test_an_event_has_32_bytes_without_holes() -> None:
    assert EVENT_DTYPE == EVENT
    assert EVENT_DTYPE.itemsize == 32
    assert EVENT_DTYPE.fields["kind"][1] == 30
    assert EVENT_DTYPE.names == tuple(name for name, _, _ in c_struct("tlmi_event"))
    assert columns(EVENT_DTYPE) == placed(c_struct("tlmi_event"))


def test_what_packed_numbers_mean_is_the_same_in_c() -> None:
    text = c_text()

    assert f"(kind) << {events.HOLDER_NUMBER_BITS}" in text
    assert f"(op) << {events.TAPE_OP_BITS}" in text
    assert f"< {events.SATURATED_COUNT} ? " in text
    assert c_enum("TLMI_OP_FIRST")["TLMI_OP_FIRST"] == events.FIRST_TAPE_OP
    assert c_define("RESIZE_ANNOUNCED") == events.RESIZE_FREE
    assert "#define RESIZE_FAILED UINT64_MAX" in text
    assert events.RESIZE_FAILED == 2**64 - 1
    assert f'"{events.BEGIN_LABEL}"' in text
    assert f'"{events.END_LABEL}"' in text


def test_sizes_and_types_of_slots_and_blocks_are_the_same_in_c() -> None:
    sizes = {
        "TLMI_HEADER_BYTES": segments.HEADER_BYTES,
        "TLMI_SLOT_BYTES": blocks.SLOT_BYTES,
        "TLMI_SLOT_HEADER_BYTES": blocks.SLOT_HEADER_BYTES,
        "TLMI_BLOCK_HEADER_BYTES": blocks.BLOCK_HEADER_BYTES,
        "TLMI_BLOCK_COLUMNS": 8,
        "TLMI_SEGMENT_EVENTS": blocks.EVENTS_PER_SLOT,
    }
    assert c_enum("TLMI_HEADER_BYTES") == sizes
    assert c_prefixed("TLMI_SLOT_EVENTS", "TLMI_SLOT_") == {
        "FREE": 0,
        "EVENTS": segments.EVENTS_SLOT,
        "BLOCKS": segments.BLOCKS_SLOT,
        "META": segments.META_SLOT,
    }
    assert c_prefixed("TLMI_BLOCK_EVENTS", "TLMI_BLOCK_") == {
        "EVENTS": blocks.EVENTS_BLOCK,
        "META": blocks.META_BLOCK,
        "FOLD": blocks.FOLD_BLOCK,
        "INDEX": blocks.INDEX_BLOCK,
    }
    assert c_prefixed("TLMI_STATE_OPEN", "TLMI_STATE_") == {
        "OPEN": segments.OPEN,
        "SEALED": segments.SEALED,
        "STOPPED": segments.STOPPED,
    }
    assert c_define("TLMI_SLOT_MAGIC") == segments.SLOT_MAGIC
    assert c_define("TLMI_BLOCK_MAGIC").to_bytes(4, "little") == blocks.BLOCK_MAGIC
    assert r'MAGIC[8] = "TLMEM\r\n\x1a"' in c_text()
    assert segments.MAGIC == b"TLMEM\r\n\x1a"
    assert f"header->version = {segments.VERSION};" in c_text()


def test_headers_have_the_fields_of_the_c_structs() -> None:
    header = c_struct("tlmi_file_header")
    assert packed(segments._FILE_HEADER) == placed(header)
    told = [field.name for field in fields(segments.FileHeader) if field.name != "sound"]
    sizes = ("magic", "header_bytes", "slot_bytes", "event_bytes", "static_crc")
    assert told == [name for name, _, _ in header if name not in sizes]

    *block, sizes_of_columns, crc = c_struct("tlmi_block_header")
    layout = packed(blocks._HEADER)
    assert [*layout[: len(block)], layout[-1]] == [*placed(block), crc[1:]]
    assert sum(size for _, size in layout[len(block) : -1]) == sizes_of_columns[2]

    slot = c_struct("tlmi_slot_header")
    assert packed(segments._SLOT_HEADER) == placed(slot)
    told = [field.name for field in fields(segments.SlotHeader)]
    assert told == [name for name, _, _ in slot if name != "magic"]


def test_sections_of_a_checkpoint_have_the_layout_of_the_c_structs() -> None:
    sections = c_prefixed("SECTION_TOTALS", "SECTION_")
    assert sections == {name: getattr(checkpoint, name) for name in sections}
    assert len(sections) == len(checkpoint.SECTION_DTYPES)

    totals = [name for name, _, size in c_struct("tlmi_fold_totals") if size == 8]
    assert totals == [field.name for field in fields(checkpoint.FoldTotals)]
    for dtype, name in (
        (checkpoint.SITE_DTYPE, "tlmi_site_sums"),
        (checkpoint.SAMPLE_DTYPE, "tlmi_fold_sample"),
    ):
        assert dtype.names == tuple(field for field, _, _ in c_struct(name))
        assert columns(dtype) == placed(c_struct(name))
    assert columns(checkpoint.HEAP_DTYPE) == placed(c_struct("heap_entry"))
    assert columns(checkpoint.PASSED_DTYPE) == placed(c_struct("tlmi_passed"))


def test_limits_of_a_fold_are_the_same_in_c_or_differ_as_documented() -> None:
    recorder = c_enum("MOST_MISUSES")

    assert recorder["MOST_MISUSES"] == checkpoint.MOST_MISUSES
    assert (recorder["MOST_SAMPLES"], recorder["MOST_MARKS"]) == (65_536, 16_384)
    assert checkpoint.MOST_SAMPLES > recorder["MOST_SAMPLES"]
    assert checkpoint.MOST_MARKS > recorder["MOST_MARKS"]
    assert recorder["MOST_HALVINGS"] == checkpoint._MOST_HALVINGS
    assert recorder["MOST_HEAP"] == recorder["MOST_PASSED"] == checkpoint.MOST_RECORDED
    assert min(checkpoint.MOST_HEAP, checkpoint.MOST_PASSED) > checkpoint.MOST_RECORDED


def test_meta_records_have_the_types_of_c() -> None:
    types = c_enum("HOLDING")

    assert types == {name: getattr(symbols, name) for name in types}
    assert max(types.values()) + 1 == symbols.STATE == blocks.LAST_RECORD  # only importers write it


def test_chains_of_holders_have_the_numbers_of_c() -> None:
    steps = c_prefixed("TLMI_STEP_MODULE", "TLMI_STEP_")
    steps["LOCAL"], steps["METHOD"] = steps.pop("FRAME"), steps.pop("BOUND")
    assert steps == chains.StepKind.__members__

    assert c_enum("COLLECTING") == {
        "INCOMPLETE": chains.INCOMPLETE,
        "COLLECTING": chains.COLLECTING,
    }
    triggers = c_enum("MEMORY_DOUBLED")
    assert list(triggers) == ["ASKED", "AT_MARK", "MEMORY_DOUBLED", "TIME_PASSED", "AT_END"]
    assert dict(zip(triggers.values(), chains.TRIGGERS.values(), strict=True)) == chains.TRIGGERS
    assert packed(chains._HEAD)[:-1] == placed(c_struct("holding"))[: len(packed(chains._HEAD)) - 1]


def test_defaults_and_limits_of_a_recording_are_those_of_c() -> None:
    from tlmem.recorder import options

    defaults, limits = c_enum("SAMPLE_MS"), c_enum("LEAST_LIMIT_BYTES")

    assert defaults["SAMPLE_MS"] == options.RSS_INTERVAL_MS
    assert defaults["STACK_DEPTH"] == options.STACK_DEPTH
    assert limits["LEAST_LIMIT_BYTES"] == options.SMALLEST_LIMIT_BYTES
    assert options.Options(stack_depth=limits["MOST_STACK_DEPTH"])
    with pytest.raises(options.CannotRecord):
        options.Options(stack_depth=limits["MOST_STACK_DEPTH"] + 1)

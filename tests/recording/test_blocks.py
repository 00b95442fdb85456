"""Blocks decode to what was encoded, and lies in them are found."""

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import writer

from tlmem.recording.format.blocks import (
    EVENT_COLUMNS,
    BadBlock,
    column,
    decode_events,
    join_planes,
    meta_records,
    parse_header,
    payload_of,
)

word = st.integers(0, 2**64 - 1)
address = st.one_of(st.integers(0, 40), word)


def decoded(data: bytes, shift: int = 0, at: int = 3) -> dict[str, np.ndarray]:
    """The columns of an events block, decoded into the middle of larger arrays."""
    header = parse_header(data)
    out = {name: np.zeros(header.count + 5, dtype) for name, dtype in EVENT_COLUMNS.items()}
    count = decode_events(header, data, shift, out, at)
    assert count == header.count
    return {name: values[at : at + count] for name, values in out.items()}


@given(
    st.lists(
        st.tuples(
            *(st.one_of(st.integers(0, 300), word), address, address, st.integers(0, 2**32 - 1)),
            *(st.integers(0, 65535), st.integers(1, 34), st.integers(0, 255)),
        ),
        min_size=1,
        max_size=400,
    ),
    st.integers(0, 8),
    st.sampled_from([0, 1]),
    st.booleans(),
)
@settings(max_examples=150)
def test_events_come_back_as_they_went_in(rows: list, shift: int, codec: int, plain: bool) -> None:
    events = writer.events(rows)
    events["ticks"] = np.cumsum(events["ticks"])
    data = writer.events_block(events, thread=1, seq=5, time_shift=shift, codec=codec, plain=plain)
    out = decoded(data, shift)

    expected = events["ticks"] >> np.uint64(shift) << np.uint64(shift)
    assert out["ticks"].tolist() == expected.tolist()
    for name in ("object", "arg", "site", "count", "kind", "device"):
        assert out[name].tolist() == events[name].tolist()


def test_a_full_block_with_more_than_256_shapes_uses_wide_codes() -> None:
    generator = np.random.default_rng(2)
    events = np.zeros(writer.PER_SLOT, writer.EVENT)
    events["ticks"] = np.cumsum(generator.integers(0, 200_000, len(events)))
    events["object"] = generator.integers(0, 3000, len(events)) * 64
    events["arg"] = generator.integers(0, 2000, len(events))
    events["kind"] = 1
    data = writer.events_block(events, thread=1, seq=1)
    header = parse_header(data)

    assert header.columns[3][1] == header.columns[5][1] == 2 * len(events)
    assert decoded(data)["object"].tolist() == events["object"].tolist()
    assert decoded(data)["arg"].tolist() == events["arg"].tolist()


def sample_block(**changes: object) -> bytes:
    """A small block with something changed and all checksums right again."""
    events = writer.events([(10 + i, 64 * (i % 3), 8, 2, 0, 1, 1) for i in range(9)])
    data = bytearray(writer.events_block(events, thread=1, seq=1, plain=True))
    for name, value in changes.items():
        at, code = {"count": (20, "<I"), "codec": (5, "B"), "payload_bytes": (48, "<I")}[name]
        struct.pack_into(code, data, at, value)
    struct.pack_into("<I", data, 120, zlib.crc32(data[:120]))
    return bytes(data)


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "ends inside its header"),
        (b"x" * 128, "no block begins"),
        (sample_block()[:120] + bytes(8), "header has a wrong checksum"),
        (sample_block()[:150], "ends inside it"),
        (sample_block(count=0), "claims 0 events"),
        (sample_block(count=8185), "claims 8185 events"),
        (sample_block(count=10), "not one byte for each"),
        (sample_block(codec=2), "codec 2"),
        (sample_block(codec=0), "not the size they claim"),
        (sample_block(payload_bytes=2**31), "larger than a slot"),
        (sample_block(payload_bytes=3), "do not add up"),
    ],
)
def test_a_block_that_cannot_be_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(BadBlock, match=reason):
        decoded(data)


def test_a_wrong_byte_in_the_payload_is_found() -> None:
    data = bytearray(sample_block())
    data[140] ^= 4

    with pytest.raises(BadBlock, match="payload has a wrong checksum"):
        decoded(bytes(data))


def test_recency_codes_beyond_the_dictionary_are_refused() -> None:
    columns = [bytes(3), bytes(3), b"", bytes([0, 9, 1]), bytes(16), bytes([0, 1, 1]), bytes(8)]
    data = writer.block(1, columns, codec=1, seq=1, thread=1, count=3, plain=True)

    with pytest.raises(BadBlock, match="dictionary"):
        decoded(data)


def test_a_column_that_inflates_to_something_else_is_refused() -> None:
    data = bytearray(writer.block(2, [bytes(500)]))
    struct.pack_into("<I", data, 60, 400)
    struct.pack_into("<I", data, 120, zlib.crc32(data[:120]))
    header = parse_header(bytes(data))

    with pytest.raises(BadBlock, match="not the size it claims"):
        column(header, payload_of(header, bytes(data)), 0)


def test_planes_come_back_as_entries() -> None:
    entries = np.arange(24, dtype=np.uint8)

    assert join_planes(writer.planes(entries.tobytes(), 8), 8).tolist() == (
        entries.reshape(3, 8).tolist()
    )


def test_records_after_a_damaged_one_are_found() -> None:
    records = [writer.note("a", "1"), writer.note("b", "2"), writer.site(2, 0, 1, 7)]
    damaged = bytearray(b"".join(records))
    damaged[len(records[0]) + 20] ^= 1
    found = list(meta_records(bytes(damaged)))

    assert [record.type if record else None for record in found] == [4, None, 2]

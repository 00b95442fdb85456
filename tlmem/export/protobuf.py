"""Protocol buffers, as far as a trace needs them: fields of numbers, texts and messages.

Covers: the encoding of fields. Does not cover: which fields there are; see ``perfetto``.
Source: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

VARINT, BYTES = 0, 2
"""Wire types."""
_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A whole number in groups of seven bits, lowest first; a negative one as 64 bits."""
    if 0 <= value <= 0x7F:
        return _ONE_BYTE[value]
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def number(field: int, value: int) -> bytes:
    """A field with a whole number, an enum or a truth value."""
    return varint(field << 3 | VARINT) + varint(value)


def text(field: int, value: str) -> bytes:
    """A field with a text; surrogates are written as escapes."""
    return message(field, value.encode("utf-8", "backslashreplace"))


def message(field: int, *parts: bytes) -> bytes:
    """A field with a message of some fields, or with bytes."""
    whole = b"".join(parts)
    return varint(field << 3 | BYTES) + varint(len(whole)) + whole

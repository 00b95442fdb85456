"""The text of JSON, piece by piece: what the library writes, without a list of all of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlmem.report.json import document, pieces

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
FINITE = LEAVES.filter(lambda value: value not in (float("inf"), float("-inf")))
VALUES = st.recursive(FINITE, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(st.dictionaries(st.text(), VALUES))
def test_a_document_is_what_the_library_writes(values: dict[str, Any]) -> None:
    assert document(values) == json.dumps(values, indent=2) + "\n"


def test_an_iterator_is_written_as_a_list_and_asked_for_one_item_at_a_time() -> None:
    asked: list[int] = []

    def items():
        for number in range(3):
            asked.append(number)
            yield {"number": number}

    text = ""
    for piece in pieces({"empty": iter([]), "items": items()}):
        text += piece
        assert text.count('"number"') >= len(asked) - 1

    assert json.loads(text) == {"empty": [], "items": [{"number": n} for n in range(3)]}
    assert text == document(json.loads(text))


def test_what_json_has_no_number_for_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        document({"rate": float("nan")})

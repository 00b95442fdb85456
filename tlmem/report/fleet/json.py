"""A fleet for other programs: about 1 kB and one line for each process.

Covers: the object ``fleet`` of schema 1; docs/reference/json.md describes every field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tlmem.fleets.comparing import FleetAnalysis
from tlmem.report.json import SCHEMA

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(", ", ": "))
ONE_A_LINE = ("groups", "outliers", "unreadable", "processes")
"""Lists whose items have a line each."""


def render(found: FleetAnalysis, paths: Sequence[str]) -> str:
    """One JSON object, with a line feed at its end."""
    return "".join(pieces(found))


def pieces(found: FleetAnalysis) -> Iterator[str]:
    """The same, line by line."""
    verdict = {"outcome": next(iter(found.verdicts)), "sentence": found.sentence}
    yield f'{{\n  "schema": {SCHEMA},\n  "verdict": {_ENCODER.encode(verdict)},\n  "fleet": {{'
    comma = ""
    for key, value in found.to_dict().items():
        yield f'{comma}\n    "{key}": '
        yield from _list(value) if key in ONE_A_LINE and value else [_ENCODER.encode(value)]
        comma = ","
    yield "\n  }\n}\n"


def _list(items: Sequence[Any]) -> Iterator[str]:
    comma = "["
    for item in items:
        yield f"{comma}\n      {_ENCODER.encode(item)}"
        comma = ","
    yield "\n    ]"

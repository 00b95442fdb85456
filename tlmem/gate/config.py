"""Finds and reads the TOML that budgets stand in: ``pyproject.toml`` or a file that is named.

Covers: which file it is, and errors of reading it. Does not cover: its keys (``budgets``).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tlmem.gate.budgets import BadPlan, Plan, from_table
from tlmem.gate.catalogue import suggestion

PROJECT = "pyproject.toml"
TABLE = "[tool.tlmem.check]"
TOOLS = ("check",)
"""Tables that ``[tool.tlmem]`` may have."""


def load(path: str | None, start: Path | None = None) -> Plan:
    """The plan of a file.

    Args:
        path: a TOML file: ``pyproject.toml`` or one whose keys stand at the top. None: the
            nearest ``pyproject.toml`` in ``start`` or above it, when that has our table.
        start: None for the current directory.

    Raises:
        BadPlan: it is missing, no TOML, or says something that is not understood.
    """
    file = Path(path) if path is not None else _nearest(start or Path.cwd())
    if file is None:
        return Plan()
    data = _read(file)
    if file.name != PROJECT and "tool" not in data:
        return from_table(data, str(file), file.parent)
    table = _table(data, file)
    if table is None:
        if path is not None:
            raise BadPlan(f"{file} has no table {TABLE}; write the budgets there.")
        return Plan()
    return from_table(table, f"{file} {TABLE}", file.parent)


def _nearest(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        if (folder / PROJECT).is_file():
            return folder / PROJECT
    return None


def _read(file: Path) -> dict[str, Any]:
    try:
        with open(file, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise BadPlan(f"{file} cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPlan(f"{file} is not TOML: {error}.") from None


def _table(data: dict[str, Any], file: Path) -> dict[str, Any] | None:
    ours = data.get("tool", {}).get("tlmem", {})
    for key in ours:
        if key not in TOOLS:
            raise BadPlan(
                f"{file} [tool.tlmem]: '{key}' is not known; {suggestion(key, list(TOOLS))}"
            )
    table = ours.get("check")
    if table is not None and not isinstance(table, dict):
        raise BadPlan(f"{file} [tool.tlmem]: check = {table!r} is not a table.")
    return table

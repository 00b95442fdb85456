"""The tables of a recording as files: one for each table, as CSV or Parquet.

Covers: which tables, their texts, columns and units. Does not cover: what they mean; see
``tlmem.recording.tables.schema`` and docs/reference/tables.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pandas as pd

from tlmem.errors import TlmemError
from tlmem.events import DEVICE_NAMES, HOLDER_NAMES, KIND_NAMES
from tlmem.recording.reader import Recording
from tlmem.recording.tables.schema import SCHEMA, TEXT

ABOUT = "recording.json"
"""The file beside the tables that says what was recorded, and each column's unit and meaning."""
CHUNK_ROWS = 200_000
_FORMULA = re.compile("[\\s\"']*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""What a spreadsheet takes for the begin of a formula, at the begin of a cell or behind quotes."""


class MissingLibrary(TlmemError):
    """A format needs a package that is not installed."""

    exit_code = 2


def names(ending: str) -> tuple[str, ...]:
    """Every file that an export may write into its folder."""
    return (ABOUT, *(f"{name}{ending}" for name in SCHEMA))


def write_csv(recording: Recording, folder: Path) -> str:
    """Writes every table as CSV with a row of names; times are ns, and NaN is an empty cell.

    A text that a spreadsheet would take for a formula has ``'`` before it.
    """

    def write(parts: Iterator[pd.DataFrame], name: str) -> None:
        with (folder / f"{name}.csv").open(
            "w", encoding="utf-8", errors="backslashreplace", newline=""
        ) as file:
            for number, part in enumerate(parts):
                changed = changed_texts(part, _no_formula)
                changed.to_csv(file, index=False, header=not number, lineterminator="\n")

    return _write_all(recording, folder, write)


def write_parquet(recording: Recording, folder: Path) -> str:
    """Writes every table as Parquet; units and meanings of columns are in its metadata.

    Raises:
        MissingLibrary: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingLibrary(
            "Parquet needs pyarrow, which is not installed; "
            "run: pip install 'tlmem[parquet]', or export --to csv."
        ) from None

    def schema_of(name: str, some: pd.DataFrame) -> pyarrow.Schema:
        about = {column.name: column for column in SCHEMA[name].columns}
        known = pyarrow.Schema.from_pandas(some, preserve_index=False)
        fields = []
        for field in known:
            column = about[field.name]
            # An empty column of texts would else have no type at all.
            field = field.with_type(pyarrow.string()) if column.dtype == TEXT else field
            fields.append(field.with_metadata({"unit": column.unit, "meaning": column.meaning}))
        return pyarrow.schema(fields, metadata=known.metadata)

    def write(parts: Iterator[pd.DataFrame], name: str) -> None:
        first = next(parts)
        schema, file = schema_of(name, first), folder / f"{name}.parquet"
        with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for part in chain([first], parts):
                rows = pyarrow.Table.from_pandas(part, schema, preserve_index=False)
                writer.write_table(rows.replace_schema_metadata(schema.metadata))

    return _write_all(recording, folder, write)


def _write_all(
    recording: Recording, folder: Path, write: Callable[[Iterator[pd.DataFrame], str], None]
) -> str:
    """Writes each table that the recording has, then the page about them."""
    rows = {}
    for name, table in SCHEMA.items():
        frame = getattr(recording, name)
        write(parts(frame, bool(table.index)), name)
        rows[name] = len(frame)
    (folder / ABOUT).write_text(about(recording, rows), encoding="utf-8")
    if recording.folded_events:
        return (
            f"{recording.folded_events} events are in the recording only as sums, in site_totals, "
            "and their survivors in objects."
        )
    return ""


def parts(table: pd.DataFrame, indexed: bool) -> Iterator[pd.DataFrame]:
    """A table, whose index is a column if it counts, a stretch of rows at a time; at least one."""
    for begin in range(0, max(len(table), 1), CHUNK_ROWS):
        rows = table.iloc[begin : begin + CHUNK_ROWS]
        yield encodable(rows.reset_index() if indexed else rows)


def encodable(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose texts can be written as UTF-8: halves of characters are written as escapes.

    A path on Linux is bytes, and Python has such halves for those that are not UTF-8.
    """
    return changed_texts(table, _encodable)


def changed_texts(table: pd.DataFrame, change: Callable[[object], object]) -> pd.DataFrame:
    """A table with every text changed; itself where none does."""
    changes = {}
    for name in table.columns:
        column = table[name]
        if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
            continue
        codes, found = pd.factorize(column)
        texts = [change(text) for text in found]
        if texts != list(found):
            changes[name] = pd.Series([*texts, None], dtype=column.dtype).iloc[codes]
            changes[name].index = column.index
    return table.assign(**changes) if changes else table


def _encodable(text: object) -> object:
    """A text with escapes for halves of characters; what is no text, as one that is missing."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text


def _no_formula(text: object) -> object:
    if not isinstance(text, str) or not _FORMULA.match(text) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def about(recording: Recording, rows: dict[str, int]) -> str:
    """What was recorded, what the columns are and what numbers in them are called, as JSON."""
    described = {
        name: {
            "row": table.row,
            "rows": rows[name],
            "columns": [
                {"name": column.name, "dtype": column.dtype, "unit": column.unit,
                 "meaning": column.meaning}
                for column in table.columns
            ],
        }
        for name, table in SCHEMA.items()
    }  # fmt: skip
    whole = {
        "path": str(recording.path),
        "pid": recording.pid,
        "created_unix_ns": recording.created_unix_ns,
        "seconds": recording.seconds,
        "complete": recording.complete,
        "problems": recording.problems,
        "info": recording.info,
        "names": {"kind": KIND_NAMES, "device": DEVICE_NAMES, "holder kind": HOLDER_NAMES},
        "tables": described,
    }
    return json.dumps(whole, indent=1, ensure_ascii=True) + "\n"

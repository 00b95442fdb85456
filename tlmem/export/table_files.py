"""The tables of a recording as files: one for each table, as CSV or Parquet.

Covers: which tables, their texts, columns and units. Does not cover: what they mean; see
``tlmem.recording.tables.schema`` and docs/reference/tables.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
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

    def write(table: pd.DataFrame, name: str, indexed: bool) -> None:
        changed_texts(table, _no_formula).to_csv(
            folder / f"{name}.csv",
            index=indexed,
            chunksize=CHUNK_ROWS,
            lineterminator="\n",
            errors="backslashreplace",
        )

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

    def write(table: pd.DataFrame, name: str, indexed: bool) -> None:
        whole = table.reset_index() if indexed else table
        about = {column.name: column for column in SCHEMA[name].columns}
        fields = []
        arrays = pyarrow.Table.from_pandas(whole, preserve_index=False)
        for field in arrays.schema:
            column = about[field.name]
            # An empty column of texts would else have no type at all.
            field = field.with_type(pyarrow.string()) if column.dtype == TEXT else field
            fields.append(field.with_metadata({"unit": column.unit, "meaning": column.meaning}))
        typed = arrays.cast(pyarrow.schema(fields, metadata=arrays.schema.metadata))
        pyarrow.parquet.write_table(typed, folder / f"{name}.parquet", compression="zstd")

    return _write_all(recording, folder, write)


def _write_all(
    recording: Recording, folder: Path, write: Callable[[pd.DataFrame, str, bool], None]
) -> str:
    """Writes each table that the recording has, then the page about them."""
    rows = {}
    for name, table in SCHEMA.items():
        frame = encodable(getattr(recording, name))
        write(frame, name, bool(table.index))
        rows[name] = len(frame)
    (folder / ABOUT).write_text(about(recording, rows), encoding="utf-8")
    if recording.folded_events:
        return (
            f"{recording.folded_events} events are in the recording only as sums, in site_totals, "
            "and their survivors in objects."
        )
    return ""


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
        texts = [change(text) for text in column]
        if texts != column.to_list():
            changes[name] = pd.Series(texts, column.index)
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

"""The tables of a recording as files: one for each table, as CSV or Parquet.

Covers: which tables, their texts, columns and units. Does not cover: what they mean; see
``tlmem.recording.tables.schema`` and docs/reference/tables.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pandas as pd

from tlmem.errors import MissingLibrary, TlmemError
from tlmem.events import DEVICE_NAMES, HOLDER_NAMES, KIND_NAMES
from tlmem.recording.arrow import as_columns, batches_of, changed_texts, empty, schema_of
from tlmem.recording.parts import LAST_PART_TABLES, LEDGER_TABLES, is_long
from tlmem.recording.reader import Recording
from tlmem.recording.tables.schema import SCHEMA

ABOUT = "recording.json"
"""The file beside the tables that says what was recorded, and each column's unit and meaning."""
CHUNK_ROWS = 200_000
MOST_PROBLEMS = 3
"""So many problems of a recording are said; reports say all of them."""
_FORMULA = re.compile("[\\s\"']*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
"""What a spreadsheet takes for the begin of a formula, at the begin of a cell or behind quotes."""


def names(ending: str) -> tuple[str, ...]:
    """Every file that an export may write into its folder."""
    return (ABOUT, *(f"{name}{ending}" for name in SCHEMA))


class NothingToExport(TlmemError):
    """A recording has nothing in the range of time that was asked for."""

    exit_code = 2


class Writer(Protocol):
    """What writes one table, some rows at a time."""

    def __call__(self, rows: pd.DataFrame) -> None:
        """Writes rows, with the index as a column."""


Open = Callable[[str, ExitStack], Writer]
"""Opens the file of a table, and has it closed in the end."""


def write_csv(recording: Recording, folder: Path) -> list[str]:
    """Writes every table as CSV with a row of names; times are ns, and NaN is an empty cell.

    A text that a spreadsheet would take for a formula has ``'`` before it.

    Raises:
        NothingToExport: the range of time has no event.
        TablesTooLarge: see ``_sources``.
    """

    def open_file(name: str, files: ExitStack) -> Writer:
        place = folder / f"{name}.csv"
        file = files.enter_context(
            place.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        )
        empty(name).to_csv(file, index=False, lineterminator="\n")

        def write(rows: pd.DataFrame) -> None:
            changed = changed_texts(rows, _no_formula)
            changed.to_csv(file, index=False, header=False, lineterminator="\n")

        return write

    return _write_all(recording, folder, open_file)


def write_parquet(recording: Recording, folder: Path) -> list[str]:
    """Writes every table as Parquet; units and meanings of columns are in its metadata.

    Raises:
        MissingLibrary: pyarrow is not installed.
        NothingToExport: the range of time has no event.
        TablesTooLarge: see ``_sources``.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingLibrary(
            "Parquet needs pyarrow, which is not installed; "
            "run: pip install 'tlmem[parquet]', or export --to csv."
        ) from None

    def open_file(name: str, files: ExitStack) -> Writer:
        schema, place = schema_of(name, empty(name)), folder / f"{name}.parquet"
        file = files.enter_context(pyarrow.parquet.ParquetWriter(place, schema, compression="zstd"))

        def write(rows: pd.DataFrame) -> None:
            file.write_table(pyarrow.Table.from_batches(batches_of(rows, schema), schema))

        return write

    return _write_all(recording, folder, open_file)


class _Table:
    """The rows of one table on their way to its file, ``CHUNK_ROWS`` at a time."""

    def __init__(self, write: Writer) -> None:
        self.count = 0
        self._write, self._waiting, self._waiting_rows = write, [], 0  # type: ignore[var-annotated]

    def add(self, rows: pd.DataFrame) -> None:
        """Takes rows, and writes when there are many."""
        self.count += len(rows)
        self._waiting.append(rows)
        self._waiting_rows += len(rows)
        if self._waiting_rows >= CHUNK_ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes what is waiting."""
        for rows in self._waiting if self._waiting_rows >= CHUNK_ROWS else self._joined():
            for begin in range(0, len(rows), CHUNK_ROWS):
                self._write(as_columns(rows.iloc[begin : begin + CHUNK_ROWS]))
        self._waiting, self._waiting_rows = [], 0

    def _joined(self) -> list[pd.DataFrame]:
        filled = [rows for rows in self._waiting if len(rows)]
        return [pd.concat(filled)] if len(filled) > 1 else filled


def _write_all(recording: Recording, folder: Path, open_file: Open) -> list[str]:
    """Writes each table that the recording has, then the page about them.

    Returns:
        What was left out, and what is not intact, a sentence each.
    """
    last: Recording = recording
    found = False
    with ExitStack() as files:
        tables = {name: _Table(open_file(name, files)) for name in SCHEMA}
        for last, name, rows in _rows_in_turn(recording):
            tables[name].add(rows)
            found = found or last.event_count > 0
        if not found:
            raise NothingToExport(
                f"{recording.path} has no event in this time; choose another one with --since "
                "and --until."
            )
        for table in tables.values():
            table.flush()
    counts = {name: table.count for name, table in tables.items()}
    (folder / ABOUT).write_text(about(last, counts), encoding="utf-8")
    said = last.problems[:MOST_PROBLEMS]
    if not last.folded_events:
        return said
    left_out = (
        f"{last.folded_events} events are in the recording only as sums, in site_totals, and their "
        "survivors in objects."
    )
    return [left_out, *said]


def _rows_in_turn(recording: Recording) -> Iterator[tuple[Recording, str, pd.DataFrame]]:
    """Rows of all tables, with what they are made from: the recording, or one part after another.

    Tables of a ledger are made from the whole, as nothing less has them.

    Raises:
        TablesTooLarge: a long recording has a ledger, and there is not enough memory for it.
    """
    if not is_long(recording):
        for name in SCHEMA:
            yield recording, name, getattr(recording, name)
        return
    has_ledger = False
    for part in recording.parts():
        has_ledger = has_ledger or part.has_ledger
        of_whole = LEDGER_TABLES if has_ledger and part.is_last else ()
        for name in of_whole:
            yield recording, name, getattr(recording, name)
        for name in SCHEMA:
            if name not in of_whole and (part.is_last or name not in LAST_PART_TABLES):
                yield part, name, part.rows_of_whole(name)


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

"""Tables as Arrow: their schema with units and meanings, and record batches made while reading.

Covers: what ``Recording.to_arrow`` returns. Does not cover: files (``tlmem.export``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pandas as pd

from tlmem.errors import MissingLibrary
from tlmem.recording.parts import LAST_PART_TABLES, LEDGER_TABLES, parts_of
from tlmem.recording.tables.schema import SCHEMA, TEXT, frame

if TYPE_CHECKING:
    import pyarrow

    from tlmem.recording.reader import Recording


def reader_of(recording: Recording, table: str, events: int) -> pyarrow.RecordBatchReader:
    """See ``Recording.to_arrow``."""
    if table not in SCHEMA:
        raise ValueError(f"there is no table '{table}'; there are {', '.join(SCHEMA)}")
    try:
        import pyarrow
    except ImportError:
        raise MissingLibrary(
            "Arrow tables need pyarrow, which is not installed; run: pip install 'tlmem[parquet]'."
        ) from None
    schema = schema_of(table, empty(table))

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for rows in rows_in_turn(recording, table, events):
            yield from batches_of(as_columns(rows), schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def rows_in_turn(recording: Recording, table: str, events: int) -> Iterator[pd.DataFrame]:
    """The rows of a table, a part of the recording at a time."""
    if table in LEDGER_TABLES:
        yield getattr(recording, table)
        return
    for part in parts_of(recording, events):
        if part.is_last or table not in LAST_PART_TABLES:
            yield part.rows_of_whole(table)


def batches_of(rows: pd.DataFrame, schema: pyarrow.Schema) -> list[pyarrow.RecordBatch]:
    """Rows of ``as_columns`` as record batches."""
    import pyarrow

    whole = pyarrow.Table.from_pandas(rows, schema, preserve_index=False).replace_schema_metadata(
        schema.metadata
    )
    batches: list[pyarrow.RecordBatch] = whole.to_batches()
    return batches


def as_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their index, if it has a name, as a column, and with texts that UTF-8 has."""
    return encodable(rows.reset_index() if rows.index.name else rows)


def empty(table: str) -> pd.DataFrame:
    """A table without rows."""
    return as_columns(frame(table, {column.name: [] for column in SCHEMA[table].columns}))


def schema_of(table: str, rows: pd.DataFrame) -> pyarrow.Schema:
    """The schema of a table, with unit and meaning of each column in its metadata."""
    import pyarrow

    about = {column.name: column for column in SCHEMA[table].columns}
    known = pyarrow.Schema.from_pandas(rows, preserve_index=False)
    fields = []
    for field in known:
        column = about[field.name]
        # An empty column of texts would else have no type at all.
        field = field.with_type(pyarrow.string()) if column.dtype == TEXT else field
        fields.append(field.with_metadata({"unit": column.unit, "meaning": column.meaning}))
    return pyarrow.schema(fields, metadata=known.metadata)


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
    """A text with escapes for halves of characters; what is not text, as one that is missing."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else text

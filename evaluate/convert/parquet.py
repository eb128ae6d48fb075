"""Rows of a Parquet file, a batch at a time; the library for it is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langshift.errors import LangshiftError, UsageError

_BATCH = 1024  # rows held at a time


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the fields of each row.

    Raises:
        UsageError: the file is no Parquet file.
        LangshiftError: the extra is not installed.
    """
    try:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise LangshiftError(
            f"{path} is a Parquet file, which needs an extra: pip install 'langshift[parquet]'."
        ) from error
    try:
        with ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (ArrowInvalid, OSError) as error:
        raise UsageError(f"{path} is damaged or no Parquet file: fetch it again.") from error

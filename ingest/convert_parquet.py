"""Rows of a Parquet file, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langshift.parquet import open_parquet

_BATCH = 1024  # rows held at a time


def rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number (from 1) and the fields of each row.

    Raises:
        UsageError: the file is no Parquet file.
        LangshiftError: the extra is not installed.
    """
    with open_parquet(path) as file:
        number = 0
        for batch in file.iter_batches(batch_size=_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row

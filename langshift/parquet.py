"""Open a Parquet file; the library for it is an extra."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from langshift.errors import LangshiftError, UsageError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

#: The first bytes of every Parquet file.
PARQUET = b"PAR1"
_BUFFER = 1 << 20  # bytes of a column read at a time


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetFile]:
    """Open a file; what is found damaged while it is read is told as well.

    Raises:
        UsageError: the file may not be read, is no Parquet file, or damaged.
        LangshiftError: the extra is not installed.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise LangshiftError(
            f"{path} is a Parquet file, which needs an extra: pip install 'langshift[parquet]'."
        ) from error
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path}: you may not read it; change its permissions, or copy it to where you may.")
    try:
        # By default a row group is read whole, and with pre_buffer all of them are kept until the file is closed.
        with ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
            yield file
    except (ArrowException, OSError) as error:
        raise UsageError(f"{path} is damaged or no Parquet file: fetch it again.") from error

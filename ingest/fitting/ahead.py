"""Reading the next batch while this one is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from langshift.ingest.parallel import Rows


def read_ahead(batches: Iterator[Rows]) -> Iterator[Rows]:
    """The same batches, always one of them read in advance, in a thread of its own."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        coming = reader.submit(next, batches, None)
        while (rows := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield rows

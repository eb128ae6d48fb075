"""The folder that holds the state of a load, on this machine or in a store."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.files import batched, write_bytes
from langshift.ingest.bulk.dead_letters import NO_ROOM
from langshift.remote_store import MissingError, Store, is_remote

T = TypeVar("T")


#: The columns of a table, each with its name and its type.
Columns = Sequence[tuple[str, Any]]

#: How many rows of a table are in Python at once; there one takes twenty times as much memory.
AT_ONCE = 10_000


class StateFolder:
    """A folder whose files are there as a whole or not at all.

    Attributes:
        shown: how messages name it.
    """

    def __init__(self, uri: str, patience: float) -> None:
        """Name a folder; nothing is made yet.

        Args:
            uri: its path, or its address in S3 (``s3://``) or Google Cloud Storage (``gs://``).
            patience: seconds for which a store that does not answer is waited for.

        Raises:
            LangshiftError: the extra is not installed.
        """
        require_extra("--state keeps Parquet files, which needs", "parquet", "pyarrow")
        self.shown = uri.rstrip("/") or uri
        self._store = Store.of(uri, patience) if is_remote(uri) else None

    def stop_waiting(self) -> None:
        """Ask a store that does not answer no second time from now on."""
        if self._store is not None:
            self._store = self._store._replace(patience=0)

    def put(self, name: str, content: bytes) -> None:
        """Write a file, in place of what is there.

        Raises:
            LangshiftError: it cannot be written.
        """
        if (store := self._store) is None:
            with self._trouble("written"):
                write_bytes(Path(self.shown, name), content, private=True)
            return

        def write(files: Any) -> None:  # noqa: ANN401 - pyarrow has no types
            file = files.open_output_stream(self._path(name), compression=None)
            file.write(content)
            file.close()

        store.ask(self._uri(name), write, writes=True)

    def get(self, name: str) -> bytes | None:
        """What a file holds; None where there is none.

        Raises:
            LangshiftError: it cannot be read.
        """
        return self._read(name, lambda file: file.read())

    def names(self, folder: str = "") -> list[str]:
        """The names of the files and folders in a folder within it, sorted; none where there is no such folder.

        Raises:
            LangshiftError: it cannot be read.
        """
        if (store := self._store) is None:
            with self._trouble("read"):
                inside = Path(self.shown, folder)
                found = [one.name for one in inside.iterdir()] if inside.is_dir() else []
        else:
            from pyarrow.fs import FileSelector

            selector = FileSelector(self._path(folder).rstrip("/"), allow_not_found=True)
            found = [one.base_name for one in store.ask(self.shown, lambda files: files.get_file_info(selector))]
        return sorted(name for name in found if name and not name.startswith("."))

    def remove(self, name: str) -> None:
        """Remove a file; it may be gone.

        Raises:
            LangshiftError: it cannot be removed.
        """
        if (store := self._store) is None:
            with self._trouble("written"):
                Path(self.shown, name).unlink(missing_ok=True)
            return
        with suppress(MissingError):
            store.ask(self._uri(name), lambda files: files.delete_file(self._path(name)), writes=True)

    def put_table(self, name: str, columns: Columns, rows: Iterable[Sequence[Any]], more: dict[str, bytes]) -> None:
        """Write a Parquet file of which the rows of a bucket can be read alone.

        Args:
            name: the file's name.
            columns: name and type of each column; the first one is the bucket, the second one gives the rows' order.
            rows: a value for each column.
            more: what is to stand in its metadata.
        """
        import pyarrow as pa
        from pyarrow import parquet

        schema, batches = pa.schema(columns, more), []
        for some in batched(rows, AT_ONCE):
            values = zip(zip(*some, strict=True), schema.types, strict=True)
            batches.append(pa.record_batch([pa.array(column, kind) for column, kind in values], schema))
        first, second = ((name, "ascending") for name in schema.names[:2])
        table = pa.Table.from_batches(batches, schema).sort_by([first, second])
        content, begin = io.BytesIO(), 0
        with parquet.ParquetWriter(content, schema, compression="zstd", use_dictionary=False) as writer:
            for _, count in sorted(Counter(table.column(0).to_pylist()).items()):
                writer.write_table(table.slice(begin, count), row_group_size=count)
                begin += count
        self.put(name, content.getvalue())

    def rows(self, name: str, bucket: int, columns: list[str]) -> Iterator[tuple[Any, ...]]:
        """Some columns of the rows of a bucket in what ``put_table`` wrote.

        Raises:
            LangshiftError: it cannot be read.
        """
        from pyarrow import parquet

        options: Any = {"columns": columns, "filters": [("bucket", "=", bucket)], "use_threads": False}
        table = self._read(name, lambda file: parquet.read_table(file, **options))
        if table is None:
            raise self._unusable(name, "missing")
        for batch in table.select(columns).to_batches(AT_ONCE):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def metadata(self, name: str) -> dict[bytes, bytes]:
        """What stands in the metadata of what ``put_table`` wrote.

        Raises:
            LangshiftError: it cannot be read.
        """
        from pyarrow import parquet

        schema = self._read(name, parquet.read_schema)
        if schema is None:
            raise self._unusable(name, "missing")
        return dict(schema.metadata or {})

    def _read(self, name: str, question: Callable[[Any], T]) -> T | None:
        from pyarrow import ArrowInvalid

        try:
            if (store := self._store) is None:
                with self._trouble("read"):
                    path = Path(self.shown, name)
                    return question(io.BytesIO(path.read_bytes())) if path.exists() else None

            def read(files: Any) -> T:  # noqa: ANN401 - pyarrow has no types
                with files.open_input_file(self._path(name)) as file:
                    return question(file)

            return store.ask(self._uri(name), read)
        except MissingError:
            return None
        except ArrowInvalid as error:
            raise self._unusable(name, "damaged") from error

    def _unusable(self, name: str, why: str) -> LangshiftError:
        # Beside a part that says that its lines are handled, what it needs may be what is missing.
        part = f"{self.shown}/parts/{name.rpartition('/')[2]}"
        return LangshiftError(f"{self._uri(name)} is {why}: remove {part}, and its lines are loaded again.")

    def _uri(self, name: str) -> str:
        return f"{self.shown}/{name}"

    def _path(self, name: str) -> str:
        assert self._store is not None  # noqa: S101 - nobody else asks
        return self._store.path(self._uri(name))

    @contextmanager
    def _trouble(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or error
            if error.errno in NO_ROOM:
                raise LangshiftError(
                    f"The state {self.shown} cannot be {done} ({reason}): free space on the disk."
                ) from error
            raise UsageError(
                f"The state {self.shown} cannot be {done} ({reason}): give a writable folder with --state."
            ) from error

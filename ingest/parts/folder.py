"""The folder that holds the state of a load, on this machine or in a store."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.files import batched, write_bytes
from langshift.ingest.bulk.dead_letters import NO_ROOM
from langshift.remote_store import S3, MissingError, Store, is_remote

T = TypeVar("T")


#: The columns of a table, each with its name and its type as pyarrow calls it.
Columns = Sequence[tuple[str, str]]

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

    def create(self, name: str, content: bytes) -> bool:
        """Write a file where there is none; of two processes that do so at once, one does.

        Returns:
            Whether it holds this content then, also where the answer to an earlier try was lost.

        Raises:
            LangshiftError: it cannot be written.
        """
        if (store := self._store) is None:
            path, own = Path(self.shown, name), Path(self.shown, f".{uuid4().hex}")
            with self._trouble("written"):
                try:
                    write_bytes(own, content, private=True)
                    with suppress(FileExistsError):
                        path.hardlink_to(own)
                finally:
                    own.unlink(missing_ok=True)
        elif store.scheme == S3:
            store.create(self._uri(name), content)
        elif self.get(name) is None:
            # Of Google's, pyarrow has no such request: the later of two takes over from the earlier one.
            self.put(name, content)
        return self.get(name) == content

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
            raise self.unusable(name, "missing")
        for batch in table.select(columns).to_batches(AT_ONCE):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def metadata(self, name: str, columns: Columns) -> tuple[int, dict[bytes, bytes]]:
        """How many rows are in what ``put_table`` wrote, and what stands in its metadata.

        Raises:
            LangshiftError: it cannot be read, or has other columns.
        """
        import pyarrow as pa
        from pyarrow import parquet

        footer = self._read(name, lambda file: parquet.ParquetFile(file))
        if footer is None or not footer.schema_arrow.equals(pa.schema(columns)):
            raise self.unusable(name, "missing" if footer is None else "damaged")
        return footer.metadata.num_rows, footer.schema_arrow.metadata or {}

    def _read(self, name: str, question: Callable[[Any], T]) -> T | None:
        from pyarrow import ArrowException

        def answer(file: Any) -> T:  # noqa: ANN401 - pyarrow has no types
            try:
                return question(file)
            except (ArrowException, OSError) as error:
                # What a store says of itself passes; all else is said of the content.
                if any(sign in str(error) for sign in ("AWS Error", "google::cloud")):
                    raise
                raise self.unusable(name, "damaged") from error

        def read(files: Any) -> T:  # noqa: ANN401 - likewise
            with files.open_input_file(self._path(name)) as file:
                return answer(file)

        if (store := self._store) is None:
            with self._trouble("read"):
                path = Path(self.shown, name)
                content = path.read_bytes() if path.exists() else None
            return None if content is None else answer(io.BytesIO(content))
        try:
            return store.ask(self._uri(name), read)
        except MissingError:
            return None

    def unusable(self, name: str, why: str) -> LangshiftError:
        """The error where a part, or what belongs to it, cannot be used."""
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

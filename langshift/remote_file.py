"""Files in S3 and Google Cloud Storage: found by their names, and read through failures of the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from langshift.corpus_file import ChangedError, FileState, StoredFile, UnreachableError
from langshift.errors import UsageError
from langshift.remote_store import DeniedError, MissingError, Store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from typing_extensions import Buffer

T = TypeVar("T")


def find_remote_files(given: str, endings: Sequence[str], patience: float) -> list[str]:
    """The files that a name stands for, in the order of their paths.

    Args:
        given: the address of a file, of a folder, or a glob: ``s3://bucket/exports/*.jsonl.gz``.
        endings: what the files of a folder are called that are read.
        patience: seconds for which a store that does not answer is waited for.

    Raises:
        UsageError: there is no such file, folder or match, or it may not be read.
        LangshiftError: the store does not answer, or the extra is not installed.
    """
    store = Store.of(given, patience)
    from pyarrow.fs import FileType

    kind = store.ask(given, lambda files: files.get_file_info(store.path(given)).type)
    if kind == FileType.File:
        return [given]
    if has_magic(given):
        pattern = store.path(given).split("/")
        literal = next(place for place, part in enumerate(pattern) if has_magic(part))
        paths = store.below("/".join(pattern[:literal]), given)
        if found := [path for path in paths if _matches(path.split("/"), pattern)]:
            return [store.scheme + path for path in found]
        raise UsageError(f"{given} matches no file.")
    folder = store.path(given).rstrip("/")
    paths = store.below(folder, given)
    if not paths:
        raise UsageError(f"{given}: there is no such file.")
    names = [(path, path[len(folder) + 1 :].split("/")) for path in paths]
    found = [path for path, (*_, name) in names if name[:1] not in "._" and name.lower().endswith(tuple(endings))]
    if not found:
        raise UsageError(f"{given} is a folder without files that end in .jsonl, .json, .parquet or the like.")
    return [store.scheme + path for path in found]


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path is one of a glob's, each in its parts; ``**`` stands for any number of folders."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_matches(path[skipped:], pattern[1:]) for skipped in range(len(path))) or len(pattern) == 1
    # As in a shell, no star stands for the dot that hides a file.
    hidden = bool(path) and path[0].startswith(".") and not pattern[0].startswith(".")
    return bool(path) and not hidden and fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])


class RemoteFile(StoredFile):
    """A file in a store, as it was when it was opened: one that has changed since is refused."""

    def __init__(self, uri: str, patience: float) -> None:
        """Open a file.

        Args:
            uri: its address.
            patience: seconds for which a store that does not answer is waited for.

        Raises:
            UsageError: there is none, or it may not be read.
            LangshiftError: the store does not answer, or the extra is not installed.
        """
        self._uri, self._store, self._place = uri, Store.of(uri, patience), 0
        opened = self._store.ask(uri, self._opened)
        self._file: Any = opened.file
        self._size, self.opened_as = opened.state[0], opened.state

    def _opened(self, files: FileSystem) -> _Opened:
        file = files.open_input_file(self._store.path(self._uri))
        told = {name.lower(): value for name, value in (file.metadata() or {}).items()}
        time = told.get("last-modified", told.get("updated", b""))
        return _Opened(file, (file.size(), time.decode(), told.get("etag", b"").decode()))

    def state(self) -> FileState:
        """Its size in bytes, the time of its last change and its ETag, as they are now.

        Raises:
            ChangedError: it is not there any more.
            UnreachableError: the store does not answer, or does not let it be read any more.
        """
        opened = self._ask(self._opened)
        opened.file.close()
        return opened.state

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """As ``RawIOBase`` has it."""
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        return self._place

    def readinto(self, buffer: Buffer, /) -> int:
        """As ``RawIOBase`` has it.

        Raises:
            ChangedError: it is not what it was when it was opened.
            UnreachableError: the store does not answer, or does not let it be read any more.
        """
        view = memoryview(buffer)
        wanted = max(0, min(len(view), self._size - self._place))

        def read(files: FileSystem) -> bytes:
            if self._file.closed:
                opened = self._opened(files)
                if opened.state != self.opened_as:
                    raise ChangedError.of(self._uri)
                self._file = opened.file
            try:
                found: bytes = self._file.read_at(wanted, self._place)
                if len(found) < wanted:
                    raise OSError(f"{len(found):,} of {wanted:,} bytes came")
            except OSError:
                # A connection that broke off is begun anew, at the same place.
                self._file.close()
                raise
            return found

        view[:wanted] = self._ask(read) if wanted else b""
        self._place += wanted
        return wanted

    def _ask(self, question: Callable[[FileSystem], T]) -> T:
        try:
            return self._store.ask(self._uri, question)
        except MissingError as error:
            raise ChangedError(f"{self._uri} was removed while it was read.") from error
        except DeniedError as error:
            # Credentials expire: with new ones the load goes on.
            raise UnreachableError(error.sentence) from error

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            self._file.close()
        super().close()


class _Opened(NamedTuple):
    file: Any
    state: FileState

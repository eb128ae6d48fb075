"""S3 and Google Cloud Storage: files there are found, read, written and removed, through failures of the store."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from glob import has_magic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from langshift.corpus_file import ChangedError, FileState, StoredFile, UnreachableError
from langshift.errors import LangshiftError, UsageError, require_extra
from langshift.files import is_text
from langshift.retry import RetryBudget, retry_until_available

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from typing_extensions import Buffer

T = TypeVar("T")

S3: Final = "s3://"
GCS: Final = "gs://"
# Seconds, and how often pyarrow itself asks: what takes longer is borne outside it, for as long as a person wants.
_CONNECT, _ANSWER, _TRIES, _TRYING = 5, 30, 2, 5
# What the stores say of who may not do something, which waiting does not change.
_REFUSALS = (
    "ACCESS_DENIED",
    "INVALID_ACCESS_KEY_ID",
    "INVALID_CLIENT_TOKEN_ID",
    "SIGNATURE",
    "EXPIRED_TOKEN",
    "UNRECOGNIZED_CLIENT",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
    "Permission denied",
    "OAuth2 access token",
    "HTTP status 401",
    "HTTP status 403",
)
_NOT_THERE = ("NO_SUCH_BUCKET", "NO_SUCH_KEY", "NOT_FOUND", "HTTP status 404")
_ELSEWHERE = "configured region"


_ADDRESS = re.compile(r"(\w[\w+.-]+)://(.*)", re.DOTALL)
# What other programs call the two.
_SCHEMES = {"s3": S3, "s3a": S3, "s3n": S3, "gs": GCS, "gcs": GCS}


def is_remote(given: str) -> bool:
    """Whether it names something in a store, not on this machine.

    Raises:
        UsageError: it is an address of another kind.
    """
    if given.startswith((S3, GCS)):
        return True
    if (found := _ADDRESS.match(given)) and not os.path.exists(given):  # noqa: PTH110 - pathlib raises at long names
        if scheme := _SCHEMES.get(found[1].lower()):
            raise UsageError(f"{given}: write it as {scheme}{found[2]}.")
        # Neither a password nor a signature is repeated.
        shown = re.sub(r"(?<=://)[^/]*@|\?.*", "", given, flags=re.DOTALL)
        raise UsageError(f"{shown}: give a path on this machine, or an address in S3 ({S3}) or Google's store ({GCS}).")
    return False


class MissingError(UsageError):
    """There is no such file."""


class DeniedError(UsageError):
    """Whoever asks may not do it."""


class Store(NamedTuple):
    """A store and how it is asked.

    Attributes:
        files: how pyarrow reaches it.
        scheme: what its addresses begin with.
        name: what messages call it.
        patience: seconds for which it is waited for.
    """

    files: FileSystem
    scheme: str
    name: str
    patience: float

    @classmethod
    def of(cls, uri: str, patience: float) -> Store:
        """The store of an address."""
        scheme = S3 if uri.startswith(S3) else GCS
        name = "S3" if scheme == S3 else "Google Cloud Storage"
        require_extra(f"{uri} is in {name}, which needs", "s3", "pyarrow", "botocore")
        bucket, *parts = uri[len(scheme) :].split("/")
        if not re.fullmatch(r"\w[\w.-]*", bucket, re.ASCII):
            raise UsageError(f"{scheme}{'' if '@' in bucket else bucket}: name a bucket, as in {scheme}bucket/folder.")
        # pyarrow refuses an empty part, and takes `..` for the folder above, of another bucket in the end.
        if "" in parts[:-1] or not {".", ".."}.isdisjoint(parts) or not is_text(uri):
            raise UsageError(
                f"{uri}: langshift reads no address with an empty part, with . or .. as a part, or that is not UTF-8: "
                "rename the file in the store, or correct the address."
            )
        if scheme == GCS:
            return cls(_gcs(os.environ.get("STORAGE_EMULATOR_HOST")), scheme, name, patience)
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if region is None and endpoint is None:
            from pyarrow.fs import resolve_s3_region

            region = _ask(uri, name, patience, lambda: resolve_s3_region(bucket))
        return cls(_s3(region or "us-east-1", endpoint), scheme, name, patience)

    def path(self, uri: str) -> str:
        """An address as pyarrow has it, with the bucket first."""
        return uri[len(self.scheme) :]

    def below(self, folder: str, shown: str) -> list[str]:
        """The paths of all files in a folder and below, sorted."""
        from pyarrow.fs import FileSelector

        selector = FileSelector(folder, allow_not_found=True, recursive=True)
        return sorted(one.path for one in self.ask(shown, lambda files: files.get_file_info(selector)) if one.is_file)

    def create(self, uri: str, content: bytes) -> None:
        """Write a file of S3 where there is none; one that is there stays as it is.

        Raises:
            UsageError: it may not be written.
            UnreachableError: patience is over.
        """
        # pyarrow has no request with a condition.
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

        bucket, _, key = self.path(uri).partition("/")

        def put() -> None:
            try:
                _botocore(self.files.region).put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
            except ClientError as error:
                # In pyarrow's words.
                code = re.sub("(?<=[a-z])(?=[A-Z])", "_", error.response["Error"]["Code"]).upper()
                if code not in ("PRECONDITION_FAILED", "412"):
                    raise OSError(f"AWS Error {code}: {error.response['Error'].get('Message')}") from error
            except BotoCoreError as error:
                raise OSError(f"{'' if isinstance(error, HTTPClientError) else 'UNAUTHENTICATED: '}{error}") from error

        _ask(uri, self.name, self.patience, put, writes=True)

    def ask(self, uri: str, question: Callable[[FileSystem], T], *, writes: bool = False) -> T:
        """Ask until an answer comes.

        Args:
            uri: what messages name.
            question: what to ask; it may be asked several times.
            writes: whether it changes what is there.

        Raises:
            UsageError: there is no such file, or it may not be read, or written.
            UnreachableError: patience is over.
        """
        return _ask(uri, self.name, self.patience, lambda: question(self.files), writes=writes)


def _ask(uri: str, name: str, patience: float, question: Callable[[], T], *, writes: bool = False) -> T:
    def attempt() -> T:
        with _refusals(uri, writes):
            return question()

    budget = RetryBudget(patience, name)
    try:
        return retry_until_available(attempt, budget, passes=lambda error: isinstance(error, OSError))
    except OSError as error:
        done = "written" if writes else "read"
        raise UnreachableError(f"{uri} cannot be {done}, because {name} does not answer: {_reason(error)}.") from error


@contextmanager
def _refusals(uri: str, writes: bool) -> Iterator[None]:
    """Tell what waiting does not change.

    Raises:
        UsageError: it is such.
    """
    try:
        yield
    except OSError as error:
        reason = str(error)
        if isinstance(error, FileNotFoundError) or any(sign in reason for sign in _NOT_THERE):
            raise MissingError(f"{uri}: there is no such file.") from error
        if _ELSEWHERE in reason:
            raise LangshiftError(f"{uri}: {_reason(error)}: set AWS_REGION.") from error
        if any(sign in reason for sign in _REFUSALS):
            named = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE,"
            named = named if uri.startswith(S3) else "GOOGLE_APPLICATION_CREDENTIALS"
            may = "read, list and write it" if writes else "read and list it"
            raise DeniedError(
                f"{uri}: access denied ({_reason(error)}): set {named} to credentials that may {may}."
            ) from error
        raise


def _reason(error: OSError) -> str:
    """What pyarrow says, without ids of requests, and without what was underneath."""
    return re.split(r" \(Request ID| error_info=|\. The request was not sent", str(error))[0].rstrip(".")


@cache
def _s3(region: str, endpoint: str | None) -> FileSystem:
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    if endpoint and not re.match("https?://[^/]", endpoint):
        raise UsageError(f"AWS_ENDPOINT_URL is {endpoint}: give an address that begins with http:// or https://.")
    # What is small is written by one request, and so is there as a whole or not at all.
    given: dict[str, Any] = {"allow_delayed_open": True, "connect_timeout": _CONNECT, "request_timeout": _ANSWER}
    if endpoint:
        # pyarrow takes the address of another service in two parts.
        other = urlsplit(endpoint)
        given |= {"scheme": other.scheme, "endpoint_override": other.netloc + other.path.rstrip("/")}
    return S3FileSystem(region=region, retry_strategy=AwsStandardS3RetryStrategy(max_attempts=_TRIES), **given)


@cache
def _botocore(region: str) -> Any:  # noqa: ANN401 - made by botocore as it runs
    from botocore.config import Config
    from botocore.session import Session

    options: dict[str, Any] = {"connect_timeout": _CONNECT, "read_timeout": _ANSWER}
    # Others that speak S3 need not know the checksums that botocore would add.
    options |= {"retries": {"total_max_attempts": _TRIES}, "request_checksum_calculation": "when_required"}
    return Session().create_client("s3", region_name=region, config=Config(**options))


@cache
def _gcs(emulator: str | None) -> FileSystem:
    from pyarrow.fs import GcsFileSystem

    given: dict[str, Any] = {}
    if emulator:
        other = urlsplit(emulator)
        given = {"scheme": other.scheme, "endpoint_override": other.netloc, "anonymous": True}
    return GcsFileSystem(retry_time_limit=timedelta(seconds=_TRYING), **given)


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

"""A corpus as people name it: files, folders of them, globs, here or in S3, a pipe, standard input."""

import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Final

from langshift.corpus_file import CorpusFile
from langshift.errors import UsageError, special_file
from langshift.files import PARQUET, decompressed_stream, read_lines
from langshift.ingest.documents import DocumentSource, Embeddings
from langshift.ingest.parquet import ParquetRows
from langshift.ingest.parsing import Parser, own_fields
from langshift.ingest.sources import Files, JsonLines, Pipe
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.remote_store import RemoteFile, find_remote_files, is_remote
from langshift.reporting import note
from langshift.retry import PATIENCE
from langshift.wording import pluralize

STANDARD_INPUT: Final = "-"
# What the files of a folder are called that are read; a file that is named itself may be called anything.
_ENDINGS: Final = (
    *(f".{kind}{packed}" for kind in ("jsonl", "ndjson", "json") for packed in ("", ".gz", ".zst")),
    ".parquet",
)
# Files that a process may have open beside those of a corpus.
_SPARE: Final = 200


class FoundFiles(list[str]):
    """Paths and addresses of files that are there, which need not be looked for again."""


def find_files(given: Sequence[str], patience: float = PATIENCE) -> FoundFiles:
    """The files that were named, in the order in which they are read.

    Args:
        given: paths of files; of folders, for the files in them and below that are JSON lines or Parquet by their
            names; and globs; or addresses of such in S3 (``s3://``) or Google Cloud Storage (``gs://``). What a folder
            or a glob stands for is in the order of its paths.
        patience: seconds for which a store that does not answer is waited for.

    Raises:
        UsageError: there is no such file, folder or match; one cannot be read, or is named twice; or standard input, or
            a pipe, is not alone.
        LangshiftError: a store does not answer, or the extra is not installed.
    """
    found = FoundFiles(path for one in given for path in _expanded(one, patience))
    for path in found:
        _require_readable(path)
    if len(found) > 1:
        for path in found:
            if not _is_file(path):
                named = "Standard input" if path == STANDARD_INPUT else path
                raise UsageError(f"{named} can only be read alone: load it by itself, or save it to a file.")
        seen: dict[str, str] = {}
        for path in found:
            if (before := seen.get(real := os.path.realpath(path))) is not None:
                raise UsageError(f"{path} is named twice{'' if before == path else f' (as {before})'}: name it once.")
            seen[real] = path
    return found


def _is_file(path: str) -> bool:
    return path != STANDARD_INPUT and (is_remote(path) or Path(path).is_file())


def _expanded(given: str, patience: float) -> list[str]:
    path = Path(given)
    if given == STANDARD_INPUT:
        return [given]
    if is_remote(given):
        return find_remote_files(given, _ENDINGS, patience)
    if path.is_dir():
        below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names if name[0] not in "._")
        if found := sorted(str(one) for one in below if one.name.lower().endswith(_ENDINGS)):
            return found
        raise UsageError(f"{given} is a folder without files that end in .jsonl, .json, .parquet or the like.")
    if glob.has_magic(given) and not path.exists():
        matches = glob.glob(given, recursive=True)  # noqa: PTH207 - pathlib takes no absolute ones
        if found := sorted(one for one in matches if not Path(one).is_dir()):
            return found
        raise UsageError(f"{given} matches no file.")
    return [given]


def _require_readable(given: str) -> None:
    path = Path(given)
    if is_remote(given):
        return
    if given == STANDARD_INPUT:
        if sys.stdin is None:
            raise UsageError("Standard input is closed: give a file, or pipe the corpus in.")
    elif (special := special_file(path)) and not path.is_fifo():
        raise UsageError(f"{special}: give a file, or pipe the corpus in.")
    elif not path.exists():
        raise UsageError(f"{given}: there is no such file.")
    elif not os.access(path, os.R_OK):
        raise UsageError(f"{given}: permission denied; change its permissions, or copy it to a readable place.")


@contextmanager
def open_source(
    given: str | Sequence[str],
    *,
    embeddings: Embeddings = "refused",
    fields: FieldNames = USUAL,
    weighted: bool = False,
    named: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Iterator[DocumentSource]:
    """Open a corpus and look at its first lines.

    Args:
        given: what ``find_files`` takes or has found, or one of them: the first bytes of a file tell its kind; or a
            pipe; or ``-`` for standard input.
        embeddings: what becomes of vectors that come with documents.
        fields: the names of their fields.
        weighted: whether documents bring the weights of tokens that the index keeps.
        named: fields of which each must be in one of the first documents, with the option that names it; None for those
            of ``fields`` that are not the usual ones.
        patience: seconds for which a store that does not answer is waited for, now and whenever it is read.

    Raises:
        UsageError: there is no such file, it holds no document, or none of its first 1,000 lines is one: then what
            is wrong with the very first of them, so that a wrong file is refused before anything is written. Or none
            of them has a field that was named.
        LangshiftError: it is Parquet or in a store, and the extra is not installed; or a store does not answer.
    """
    listed = [given] if isinstance(given, str) else given
    paths = given if isinstance(given, FoundFiles) else find_files(listed, patience)
    named = own_fields(fields) if named is None else named
    parser = Parser(embeddings, fields=fields, weighted=weighted)
    with ExitStack() as stack:
        if _is_file(paths[0]):
            _allow_open_files(sum(not is_remote(path) for path in paths))
            yield Files([open_rows(path, patience, parser, stack)[1] for path in paths], parser, named)
            return
        _require_readable(paths[0])
        if paths[0] == STANDARD_INPUT:
            stdin: Any = sys.stdin.buffer
            stream, shown = getattr(stdin, "raw", stdin), "standard input"
        else:
            # Opening one to which nobody writes yet takes as long as that.
            note(f"{paths[0]} is a pipe: waiting for what comes through it ...")
            stream, shown = stack.enter_context(Path(paths[0]).open("rb", buffering=0)), paths[0]
        unpacked = stack.enter_context(decompressed_stream(stream))
        yield Pipe(read_lines(unpacked, shown, cut=True), stream, shown, parser, named)


def open_rows(
    path: str, patience: float, parser: Parser, stack: ExitStack
) -> tuple[FileIO | RemoteFile, ParquetRows | JsonLines]:
    """Open a file of a corpus, which ``stack`` closes.

    Args:
        path: its path or address; its first bytes tell its kind.
        patience: seconds for which a store that does not answer is waited for, now and whenever it is read.
        parser: makes its documents.
        stack: closes it.

    Returns:
        The file, and its lines or rows.

    Raises:
        UsageError: it is not there, may not be read, or is damaged.
        LangshiftError: it is Parquet or in a store, and the extra is not installed; or the store does not answer.
    """
    stream: FileIO | RemoteFile
    if is_remote(path):
        stream = stack.enter_context(RemoteFile(path, patience))
    else:
        _require_readable(path)
        stream = stack.enter_context(FileIO(path))
    is_parquet = stream.read(len(PARQUET)) == PARQUET
    file = CorpusFile(stream, path, unpacks=not is_parquet)
    return stream, ParquetRows(file, parser) if is_parquet else JsonLines(file, parser)


def _allow_open_files(count: int) -> None:
    """Let this process have so many more files open: one that is open stays the same, whatever becomes of its name.

    Raises:
        UsageError: it may not.
    """
    if sys.platform == "win32":
        return
    import resource

    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + _SPARE
    if now != resource.RLIM_INFINITY and now < wanted:
        if most != resource.RLIM_INFINITY and most < wanted:
            raise UsageError(
                f"The corpus has {pluralize(count, 'file')}, and a process may have {most:,} open here: join files, or "
                f"have the limit raised (`ulimit -Hn`)."
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))

"""Writing a dataset folder, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import CORPUS, LANGUAGES, QRELS, QUERIES
from langshift.reading import write_table

Record = Mapping[str, Any]


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes ``out`` when the block ends well and vanishes when it does not.

    Raises:
        UsageError: ``out`` is a file or holds something.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: name a folder that does not exist yet.")
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty: name a folder that does not exist yet, or empty this one.")
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f".{out.name}.partial-{os.getpid()}")
    partial.mkdir()
    try:
        yield partial
        if out.is_dir():
            out.rmdir()
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_dataset(
    folder: Path,
    documents: Iterable[Record],
    queries: Iterable[Record],
    judgements: Iterable[tuple[str, str, int]],
    languages: Iterable[tuple[str, str]] = (),
) -> None:
    """Write the files of a dataset into an empty folder.

    Args:
        folder: an existing folder.
        documents: lines of ``corpus.jsonl``.
        queries: lines of ``queries.jsonl``.
        judgements: query id, document id, grade.
        languages: document id and language, for documents whose line names none; no file is
            written when there are none.
    """
    write_corpus(folder, documents)
    write_questions(folder, queries, judgements)
    if tags := "".join(f"{document}\t{language}\n" for document, language in languages):
        (folder / LANGUAGES).write_text("corpus-id\tlanguage\n" + tags, encoding="utf-8", newline="\n")


def write_corpus(folder: Path, documents: Iterable[Record], *, with_language: bool = True) -> None:
    """Write ``corpus.jsonl``, one document at a time.

    Args:
        folder: an existing folder.
        documents: the lines.
        with_language: whether the lines name languages; if not, ``languages.tsv`` does, if any is known.
    """
    with ExitStack() as files:
        corpus = files.enter_context((folder / CORPUS).open("wb"))
        tags = None
        for document in documents:
            line = dict(document)
            language = None if with_language else line.pop("language", None)
            if language is not None:
                if tags is None:
                    tags = files.enter_context((folder / LANGUAGES).open("w", encoding="utf-8", newline="\n"))
                    tags.write("corpus-id\tlanguage\n")
                tags.write(f"{line['_id']}\t{language}\n")
            corpus.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def write_questions(folder: Path, queries: Iterable[Record], judgements: Iterable[tuple[str, str, int]]) -> None:
    """Write ``queries.jsonl`` and ``qrels/test.tsv``."""
    with (folder / QUERIES).open("wb") as file:
        file.writelines(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE) for record in queries)
    write_table(
        folder / QRELS,
        ("query-id", "corpus-id", "score"),
        ((query, name, f"{grade}") for query, name, grade in judgements),
    )

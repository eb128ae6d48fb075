"""XQuAD as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), section 4.2.

The corpus holds every language's version of each paragraph, the queries are one language's
questions, and every language's version of the paragraph that a question was asked of is relevant.
XQuAD's article titles are English in every file, so titles are left empty: English words in every
passage would help English queries find translations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.evaluate.dataset_files import new_folder, write_dataset

_FILE = re.compile(r"(?:xquad\.)?([a-z]{2,3})\.json")
_LAYOUT = "XQuAD's layout is data[].paragraphs[] with a context and qas[] of id and question"


class Paragraph(NamedTuple):
    """A paragraph in one language: its text, and question id -> question."""

    context: str
    questions: dict[str, str]


@dataclass(frozen=True)
class Converted:
    """What was written: the folder and how much is in it."""

    folder: str
    languages: list[str]
    pivot: str
    documents: int
    queries: int
    judgements: int

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return asdict(self)


def convert_xquad(
    folder: Path, out: Path, *, languages: Sequence[str] | None, pivot: str, with_language: bool
) -> Converted:
    """Make a dataset folder from XQuAD's files.

    Args:
        folder: holds ``<lang>.json`` or ``xquad.<lang>.json`` for each language.
        out: the folder to make; must not exist, or be empty.
        languages: the languages to pool; None takes all that ``folder`` has.
        pivot: the language of the queries, one of ``languages``.
        with_language: whether ``corpus.jsonl`` names each passage's language; if not, it stands in
            ``languages.tsv``, which evaluation reads and ingest does not.

    Raises:
        UsageError: a language without a file, a file that is not XQuAD's, files that do not run
            parallel, or an ``out`` that is taken.
    """
    files = _files(folder)
    wanted = list(dict.fromkeys(languages)) if languages else sorted(files)
    for language in [*wanted, pivot]:
        if language not in files:
            raise UsageError(f"{folder} has no file for the language {language!r}: it has {', '.join(sorted(files))}.")
    if pivot not in wanted:
        raise UsageError(
            f"The pivot {pivot!r} is not among the languages {', '.join(wanted)}: add it, or name another --pivot."
        )
    with new_folder(out) as partial:
        paragraphs = {language: _read(files[language]) for language in wanted}
        for language in wanted:
            _check_parallel(files[language], paragraphs[language], files[pivot], paragraphs[pivot])
        counts = _write(partial, paragraphs, pivot, with_language)
    return Converted(str(out), wanted, pivot, *counts)


def _files(folder: Path) -> dict[str, Path]:
    """Find the file of each language."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: name the one that holds XQuAD's <language>.json files.")
    files = {match[1]: path for path in sorted(folder.iterdir()) if (match := _FILE.fullmatch(path.name))}
    if not files:
        raise UsageError(f"{folder} holds no XQuAD file: they are named en.json or xquad.en.json, for each language.")
    return files


def _read(path: Path) -> list[Paragraph]:
    try:
        articles = orjson.loads(path.read_bytes())["data"]
        items = [item for article in articles for item in article["paragraphs"]]
        asked = [[(qa["id"], qa["question"]) for qa in item["qas"]] for item in items]
        paragraphs = [Paragraph(item["context"], dict(qas)) for item, qas in zip(items, asked, strict=True)]
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"{path} is not valid JSON ({error.msg} at character {error.pos + 1}): fetch the file again."
        ) from error
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} is not an XQuAD file: {_LAYOUT}.") from error
    questions = [question for qas in asked for question in qas]
    texts = [item.context for item in paragraphs] + [text for question in questions for text in question]
    if not questions or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UsageError(f"{path} has a paragraph or question without text, or none at all: {_LAYOUT}.")
    if len({name for name, _ in questions}) != len(questions):
        raise UsageError(f"{path} has two questions of one id: fetch the file again.")
    return paragraphs


def _check_parallel(path: Path, paragraphs: list[Paragraph], pivot: Path, expected: list[Paragraph]) -> None:
    remedy = "take both from the same release of XQuAD"
    if len(paragraphs) != len(expected):
        raise UsageError(
            f"{path} has {len(paragraphs)} paragraphs and {pivot.name} has {len(expected)}, "
            f"so they are not translations of each other: {remedy}."
        )
    for number, (one, other) in enumerate(zip(paragraphs, expected, strict=True), 1):
        if one.questions.keys() != other.questions.keys():
            raise UsageError(
                f"{path} and {pivot.name} have different questions at paragraph {number}, "
                f"so they are not translations of each other: {remedy}."
            )


def _write(
    folder: Path, paragraphs: dict[str, list[Paragraph]], pivot: str, with_language: bool
) -> tuple[int, int, int]:
    documents: list[dict[str, str]] = []
    queries: list[dict[str, str]] = []
    judgements: list[tuple[str, str, int]] = []
    for number, asked in enumerate(paragraphs[pivot]):
        group = f"p{number + 1:04d}"
        for language, versions in paragraphs.items():
            document = {
                "_id": f"{group}-{language}",
                "title": "",
                "text": versions[number].context,
                "group": group,
            }
            documents.append(document | ({"language": language} if with_language else {}))
        for query, question in asked.questions.items():
            queries.append({"_id": query, "text": question, "language": pivot, "group": group})
            judgements += [(query, f"{group}-{language}", 1) for language in paragraphs]
    ids = (document["_id"] for document in documents)
    languages = [] if with_language else [(name, name.rpartition("-")[2]) for name in ids]
    write_dataset(folder, documents, queries, judgements, languages)
    return len(documents), len(queries), len(judgements)

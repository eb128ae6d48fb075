"""XQuAD as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), section 4.2.

The corpus holds every language's version of each paragraph, the queries are one language's
questions, and every language's version of the paragraph that a question was asked of is relevant.
XQuAD's article titles are English in every file, so titles are left empty: English words in every
passage would help English queries find translations. They name the article, which is not searched.

Layout (google-deepmind/xquad): ``xquad.<language>.json`` in SQuAD's layout, the same paragraphs and
question ids in the same order in every file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from langshift.errors import UsageError
from langshift.evaluate.convert.languages import choose, tag_of
from langshift.evaluate.convert.pool import Choice, Converted, build
from langshift.evaluate.convert.source import Passage, Question, Source
from langshift.evaluate.convert.squad import Paragraph, read_squad

_FILE = re.compile(r"(?:xquad\.)?([a-z]{2,3})\.json")


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
    choice = Choice(pivots=[pivot], with_language=with_language)
    return build(out, lambda: read_xquad(folder, languages, [pivot]), choice)[0]


def read_xquad(folder: Path, languages: Sequence[str] | None, pivots: Sequence[str] | None) -> Source:
    """XQuAD as a source of pools.

    Raises:
        UsageError: a language without a file, a file that is not XQuAD's, or files that do not run parallel.
    """
    files = _files(folder)
    chosen = choose({code: tag_of(code) or code for code in files}, languages, pivots, folder)
    paragraphs = {code: read_squad(files[code], "XQuAD") for code in chosen}
    # The first pivot's file is the one that messages compare with: a person knows it best.
    first = next((code for code, tag in chosen.items() if pivots and pivots[0] in (code, tag)), next(iter(chosen)))
    for code in chosen:
        _check_parallel(files[code], paragraphs[code], files[first], paragraphs[first])

    def passages() -> Iterator[Passage]:
        for number, paragraph in enumerate(paragraphs[first]):
            for code, tag in chosen.items():
                text = paragraphs[code][number].context
                yield Passage(f"{_group(number)}-{code}", text, tag, _group(number), paragraph.article)

    questions = []
    for code, tag in chosen.items():
        for number, paragraph in enumerate(paragraphs[code]):
            judged = {f"{_group(number)}-{other}": 1 for other in chosen}
            article = paragraphs[first][number].article
            questions += [
                Question(name, text, tag, judged, _group(number), article) for name, text in paragraph.questions.items()
            ]
    return Source(folder, list(chosen.values()), questions, passages)


def _group(number: int) -> str:
    return f"p{number + 1:04d}"


def _files(folder: Path) -> dict[str, Path]:
    """Find the file of each language."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: name the one that holds XQuAD's <language>.json files.")
    files = {match[1]: path for path in sorted(folder.iterdir()) if (match := _FILE.fullmatch(path.name))}
    if not files:
        raise UsageError(f"{folder} holds no XQuAD file: they are named en.json or xquad.en.json, for each language.")
    return dict(sorted(files.items()))


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

"""Belebele as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), section 4.2.

The stem of each multiple-choice question is a query, and its passage is relevant in every language.

Layout (facebook/belebele on the Hugging Face Hub, and Belebele.zip): ``data/<code>.jsonl`` with the
FLORES-200 code of one of 122 variants, a question a line: ``link`` (the passage's page),
``question_number`` (1 or 2), ``flores_passage``, ``question``, four answers, ``dialect``. Link and
question number are the same in every variant and tell the questions apart; the order of lines and
``ds`` are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.convert.common import choose, find_by_code, located, tagged
from langshift.evaluate.convert.pool import JudgedQuestion, Passage, PoolSource
from langshift.files import string

_FILE = re.compile(r"([a-z]{3}_[A-Za-z]{4})\.jsonl(?:\.gz)?")
_LAYOUT = "each line of Belebele has link, question_number, flores_passage and question"


class _Variant(NamedTuple):
    """One language variant: link -> passage, and link and number -> question."""

    passages: dict[str, str]
    questions: dict[tuple[str, str], str]


def read_belebele(folder: Path, languages: Sequence[str] | None, pivots: Sequence[str] | None) -> PoolSource:
    """Belebele as a source of pools.

    Args:
        folder: holds the files, or ``data`` with them.
        languages: FLORES-200 codes or tags (``zh`` is ``zho_Hans``); None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.

    Raises:
        UsageError: a language without a file, a line that is not Belebele's, or files that do not run parallel.
    """
    files = find_by_code(
        folder,
        ("", "data"),
        _FILE,
        "name the one that holds Belebele's eng_Latn.jsonl and so on",
        "Belebele file: they are named eng_Latn.jsonl, for each language variant",
    )
    chosen = choose(tagged(files), languages, pivots, folder)
    variants = {code: _read(files[code]) for code in chosen}
    first = next(iter(chosen))
    for code, variant in variants.items():
        if variant.questions.keys() != variants[first].questions.keys():
            odd = min(variant.questions.keys() ^ variants[first].questions.keys())
            raise UsageError(
                f"{files[code]} and {files[first].name} do not have the same questions (question {odd[1]} of {odd[0]} "
                "is in one only), so they are not translations of each other: take both from the same release."
            )

    def passages() -> Iterator[Passage]:
        for link in sorted(variants[first].passages):
            for code, tag in chosen.items():
                yield Passage(f"{_group(link)}-{code}", variants[code].passages[link], tag, _group(link), link)

    questions = [
        JudgedQuestion(f"{group}-q{number}", text, tag, {f"{group}-{other}": 1 for other in chosen}, group, link)
        for code, tag in chosen.items()
        for (link, number), text in sorted(variants[code].questions.items())
        for group in (_group(link),)
    ]
    return PoolSource(folder, list(chosen.values()), questions, passages)


def _group(link: str) -> str:
    """A short id for a page, the same whatever else is in the pool."""
    return f"b{blake2b(link.encode(), digest_size=5).hexdigest()}"


def _read(path: Path) -> _Variant:
    variant = _Variant({}, {})
    for where, record in located(path):
        link = string(record, "link", where, _LAYOUT)
        text = string(record, "flores_passage", where, _LAYOUT)
        key = (link, str(record.get("question_number")))
        if key[1] not in ("1", "2"):
            raise UsageError(f"{where}, has no question_number of 1 or 2: {_LAYOUT}.")
        if key in variant.questions:
            raise UsageError(f"{where}, has question {key[1]} of {link} a second time: fetch the file again.")
        variant.questions[key] = string(record, "question", where, _LAYOUT)
        if variant.passages.setdefault(link, text) != text:
            raise UsageError(f"{where}, has another passage for {link} than an earlier line: fetch the file again.")
    if not variant.questions:
        raise UsageError(f"{path} holds no question: {_LAYOUT}.")
    return variant

"""Belebele as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), section 4.2.

The stem of each multiple-choice question is a query, and its passage is relevant in every language.

Layout (facebook/belebele on the Hugging Face Hub, and Belebele.zip): ``data/<code>.jsonl`` with the
FLORES-200 code of one of 122 variants, a question a line: ``link`` (the passage's page),
``question_number`` (1 or 2), ``flores_passage``, ``question``, ``mc_answer1`` to ``mc_answer4``,
``correct_answer_num``, ``dialect``. Link and question number are the same in every variant and tell the
questions apart; the order of lines and ``ds`` are not.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.convert.common import Chosen, located
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.files import string
from langshift_lab.convert.chosen_languages import choose, find_by_code, tagged

_VARIANT_FILE = re.compile(r"([a-z]{3}_[A-Za-z]{4})\.jsonl(?:\.gz)?")
_BELEBELE = "each line of Belebele has link, question_number, flores_passage and question"


class _Variant(NamedTuple):
    """One language variant: link -> passage, link and number -> question, and -> its right answer where it is there."""

    passages: dict[str, str]
    questions: dict[tuple[str, str], str]
    answers: dict[tuple[str, str], tuple[str, ...]]


def read_belebele(folder: Path, languages: Chosen) -> PoolSource:
    """Belebele as a source of pools.

    Args:
        folder: holds the files, or ``data`` with them.
        languages: FLORES-200 codes or tags (``zh`` is ``zho_Hans``); None takes all that ``folder`` has.

    Raises:
        UsageError: a language without a file, a line that is not Belebele's, or files that do not run parallel.
    """
    files = find_by_code(
        folder,
        ("", "data"),
        _VARIANT_FILE,
        "name the folder that contains Belebele's eng_Latn.jsonl and so on",
        "Belebele files: they are named like eng_Latn.jsonl, one for each language variant",
    )
    chosen = choose(tagged(files), languages, folder)
    variants = {code: _read_variant(files[code]) for code in chosen}
    first = next(iter(chosen))
    for code, variant in variants.items():
        if variant.questions.keys() != variants[first].questions.keys():
            odd = min(variant.questions.keys() ^ variants[first].questions.keys())
            raise UsageError(
                f"{files[code]} and {files[first].name} do not have the same questions (question {odd[1]} of {odd[0]} "
                "is in only one), so they are not translations of each other: take both from the same release."
            )

    def passages() -> Iterator[PoolPassage]:
        for link in sorted(variants[first].passages):
            group = _page_group(link)
            for code, tag in chosen.items():
                yield PoolPassage(f"{group}-{code}", variants[code].passages[link], tag, group, link)

    questions = [
        JudgedQuestion(
            f"{group}-q{key[1]}",
            text,
            tag,
            {f"{group}-{other}": 1 for other in chosen},
            group,
            key[0],
            answers=variants[code].answers[key],
        )
        for code, tag in chosen.items()
        for key, text in sorted(variants[code].questions.items())
        for group in (_page_group(key[0]),)
    ]
    return PoolSource(folder, list(chosen.values()), questions, passages)


def _page_group(link: str) -> str:
    """A short id for a page, the same whatever else is in the pool."""
    return f"b{blake2b(link.encode(), digest_size=5).hexdigest()}"


def _read_variant(path: Path) -> _Variant:
    variant = _Variant({}, {}, {})
    for where, record in located(path):
        link = string(record, "link", where, _BELEBELE)
        text = string(record, "flores_passage", where, _BELEBELE)
        key = (link, str(record.get("question_number")))
        if key[1] not in ("1", "2"):
            raise UsageError(f"{where}, has no question_number of 1 or 2: {_BELEBELE}.")
        if key in variant.questions:
            raise UsageError(f"{where}, repeats question {key[1]} of {link}: fetch the file again.")
        variant.questions[key] = string(record, "question", where, _BELEBELE)
        right = record.get(f"mc_answer{record.get('correct_answer_num')}")
        variant.answers[key] = (right,) if isinstance(right, str) and right.strip() else ()
        if variant.passages.setdefault(link, text) != text:
            raise UsageError(f"{where}, has a different passage for {link} from an earlier line: fetch the file again.")
    if not variant.questions:
        raise UsageError(f"{path} contains no questions: {_BELEBELE}.")
    return variant

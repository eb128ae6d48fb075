"""XQuAD, MLQA and Belebele: questions on passages that are there in several languages."""

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import orjson

from langshift.errors import UsageError
from langshift.evaluate.convert.common import Chosen, choose, find_by_code, located, tagged
from langshift.evaluate.convert.pool import JudgedQuestion, Passage, PoolSource
from langshift.files import string
from langshift.languages import parse_tag


class Paragraph(NamedTuple):
    """A paragraph in one language: its text, question id -> question, and the article it is from."""

    context: str
    questions: dict[str, str]
    article: str | None


def read_squad(path: Path, name: str) -> list[Paragraph]:
    """The paragraphs of a file, in order.

    Args:
        path: the file.
        name: the collection's, for messages.

    Raises:
        UsageError: the file is none of this layout, has nothing in it, or has a text or question that is empty.
    """
    layout = f"{name}'s layout is data[].paragraphs[] with a context and qas[] of id and question"
    try:
        articles = orjson.loads(path.read_bytes())["data"]
        items = [(article.get("title"), item) for article in articles for item in article["paragraphs"]]
        question_pairs = [[(qa["id"], qa["question"]) for qa in item["qas"]] for _, item in items]
        paragraphs = [
            Paragraph(item["context"], dict(qas), title if isinstance(title, str) else None)
            for (title, item), qas in zip(items, question_pairs, strict=True)
        ]
    except orjson.JSONDecodeError as error:
        raise UsageError(
            f"{path} is not valid JSON ({error.msg} at character {error.pos + 1}): fetch the file again."
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not an {name} file: {layout}.") from error
    questions = [question for qas in question_pairs for question in qas]
    texts = [item.context for item in paragraphs] + [text for question in questions for text in question]
    if not questions or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UsageError(f"{path} has no questions, or a paragraph or question without text: {layout}.")
    if len({name for name, _ in questions}) != len(questions):
        raise UsageError(f"{path} has two questions with the same id: fetch the file again.")
    return paragraphs


_NAMED = "they are named like test-context-en-question-en.json, one for each language"


# Layout (facebookresearch/MLQA, MLQA_V1.zip): ``<split>/<split>-context-<l>-question-<m>.json`` in
# SQuAD's layout; here the files with one language for both are read. A question has one id in every
# language that it exists in (four on average), and its passages in those languages are relevant. A
# passage in one language can belong to several questions whose passages differ in another language, so
# a translation group is all that hangs together through questions; that is how a group can come to
# hold two passages of one language. The same text in two places of a file is one passage.
#
# Shift's 11,582 English questions are a few fewer than the 11,590 of the published test split, all of
# which are kept here. As its Table 7 counts them, the pool of a source language holds only the groups
# that have a passage in it.
def read_mlqa(folder: Path, languages: Chosen, pivots: Chosen, split: str) -> PoolSource:
    """MLQA as a source of pools.

    Args:
        folder: holds the files, or the folder of the split, or MLQA_V1 with it.
        languages: the languages to pool; None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.
        split: ``test`` or ``dev``.

    Raises:
        UsageError: a language without a file, or a file that is not MLQA's.
    """
    files = find_by_code(
        folder,
        ("", split, f"MLQA_V1/{split}"),
        re.compile(rf"{split}-context-([a-z]{{2,3}})-question-\1\.json"),
        f"name the folder that contains MLQA's files; {_NAMED}",
        f"MLQA files of the split {split}: {_NAMED}",
    )
    chosen = choose({code: parse_tag(code) or code for code in files}, languages, pivots, folder)
    # Text -> question ids, in each language, in the order of the file.
    texts: dict[str, dict[str, list[str]]] = {code: {} for code in chosen}
    questions: dict[str, dict[str, str]] = {code: {} for code in chosen}
    titles: dict[str, dict[str, str | None]] = {code: {} for code in chosen}
    for code in chosen:
        for paragraph in read_squad(files[code], "MLQA"):
            texts[code].setdefault(paragraph.context, []).extend(paragraph.questions)
            questions[code].update(paragraph.questions)
            titles[code].update(dict.fromkeys(paragraph.questions, paragraph.article))
    groups = _together([names for code in chosen for names in texts[code].values()])
    articles = _articles(groups, titles)
    judged: dict[str, dict[str, int]] = {}
    for code in chosen:
        for names in texts[code].values():
            for name in names:
                judged.setdefault(name, {})[f"{min(names)}-{code}"] = 1

    def passages() -> Iterator[Passage]:
        for code, tag in chosen.items():
            for text, names in texts[code].items():
                group = groups[names[0]]
                yield Passage(f"{min(names)}-{code}", text, tag, group, articles[group])

    judged_questions = [
        JudgedQuestion(name, text, chosen[code], judged[name], groups[name], articles[groups[name]])
        for code in chosen
        for name, text in questions[code].items()
    ]
    return PoolSource(folder, list(chosen.values()), judged_questions, passages, partly_parallel=True)


def _together(bundles: list[list[str]]) -> dict[str, str]:
    """Question id -> the smallest id of all that hang together with it through passages."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    for names in bundles:
        for name in names:
            parent.setdefault(name, name)
        for name in names[1:]:
            first, second = sorted((root(names[0]), root(name)))
            parent[second] = first
    return {name: root(name) for name in parent}


def _articles(groups: Mapping[str, str], titles: Mapping[str, Mapping[str, str | None]]) -> dict[str, str | None]:
    """Group -> its article: titles differ by language, so the English one names it, else the first language's."""
    articles: dict[str, str | None] = {}
    for code in sorted(titles, key=lambda code: (code != "en", code)):
        for name, title in titles[code].items():
            articles.setdefault(groups[name], title)
    return articles


_FILE = re.compile(r"(?:xquad\.)?([a-z]{2,3})\.json")


# The corpus holds every language's version of each paragraph, the queries are one language's
# questions, and every language's version of the paragraph that a question was asked of is relevant.
# XQuAD's article titles are English in every file, so titles are left empty: English words in every
# passage would help English queries find translations. They name the article, which is not searched.
#
# Layout (google-deepmind/xquad): ``xquad.<language>.json`` in SQuAD's layout, the same paragraphs and
# question ids in the same order in every file.
def read_xquad(folder: Path, languages: Chosen, pivots: Chosen) -> PoolSource:
    """XQuAD as a source of pools.

    Args:
        folder: holds ``<lang>.json`` or ``xquad.<lang>.json`` for each language.
        languages: the languages to pool; None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.

    Raises:
        UsageError: a language without a file, a file that is not XQuAD's, or files that do not run parallel.
    """
    files = find_by_code(
        folder,
        ("",),
        _FILE,
        "name the folder that contains XQuAD's <language>.json files",
        "XQuAD files: they are named like en.json or xquad.en.json, one for each language",
    )
    chosen = choose({code: parse_tag(code) or code for code in sorted(files)}, languages, pivots, folder)
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
            group, article = _group(number), paragraphs[first][number].article
            judged = {f"{group}-{other}": 1 for other in chosen}
            asked = paragraph.questions.items()
            questions += [JudgedQuestion(name, text, tag, judged, group, article) for name, text in asked]
    return PoolSource(folder, list(chosen.values()), questions, passages)


def _group(number: int) -> str:
    return f"p{number + 1:04d}"


def _check_parallel(path: Path, paragraphs: list[Paragraph], pivot: Path, expected: list[Paragraph]) -> None:
    so = "so they are not translations of each other: take both from the same release of XQuAD"
    if len(paragraphs) != len(expected):
        raise UsageError(f"{path} has {len(paragraphs)} paragraphs and {pivot.name} has {len(expected)}, {so}.")
    for number, (one, other) in enumerate(zip(paragraphs, expected, strict=True), 1):
        if one.questions.keys() != other.questions.keys():
            raise UsageError(f"{path} and {pivot.name} have different questions at paragraph {number}, {so}.")


# Belebele as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), section 4.2.
#
# The stem of each multiple-choice question is a query, and its passage is relevant in every language.
#
# Layout (facebook/belebele on the Hugging Face Hub, and Belebele.zip): ``data/<code>.jsonl`` with the
# FLORES-200 code of one of 122 variants, a question a line: ``link`` (the passage's page),
# ``question_number`` (1 or 2), ``flores_passage``, ``question``, four answers, ``dialect``. Link and
# question number are the same in every variant and tell the questions apart; the order of lines and
# ``ds`` are not.
_VARIANT_FILE = re.compile(r"([a-z]{3}_[A-Za-z]{4})\.jsonl(?:\.gz)?")
_BELEBELE = "each line of Belebele has link, question_number, flores_passage and question"


class _Variant(NamedTuple):
    """One language variant: link -> passage, and link and number -> question."""

    passages: dict[str, str]
    questions: dict[tuple[str, str], str]


def read_belebele(folder: Path, languages: Chosen, pivots: Chosen) -> PoolSource:
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
        _VARIANT_FILE,
        "name the folder that contains Belebele's eng_Latn.jsonl and so on",
        "Belebele files: they are named like eng_Latn.jsonl, one for each language variant",
    )
    chosen = choose(tagged(files), languages, pivots, folder)
    variants = {code: _read_variant(files[code]) for code in chosen}
    first = next(iter(chosen))
    for code, variant in variants.items():
        if variant.questions.keys() != variants[first].questions.keys():
            odd = min(variant.questions.keys() ^ variants[first].questions.keys())
            raise UsageError(
                f"{files[code]} and {files[first].name} do not have the same questions (question {odd[1]} of {odd[0]} "
                "is in only one), so they are not translations of each other: take both from the same release."
            )

    def passages() -> Iterator[Passage]:
        for link in sorted(variants[first].passages):
            group = _page_group(link)
            for code, tag in chosen.items():
                yield Passage(f"{group}-{code}", variants[code].passages[link], tag, group, link)

    questions = [
        JudgedQuestion(f"{group}-q{number}", text, tag, {f"{group}-{other}": 1 for other in chosen}, group, link)
        for code, tag in chosen.items()
        for (link, number), text in sorted(variants[code].questions.items())
        for group in (_page_group(link),)
    ]
    return PoolSource(folder, list(chosen.values()), questions, passages)


def _page_group(link: str) -> str:
    """A short id for a page, the same whatever else is in the pool."""
    return f"b{blake2b(link.encode(), digest_size=5).hexdigest()}"


def _read_variant(path: Path) -> _Variant:
    variant = _Variant({}, {})
    for where, record in located(path):
        link = string(record, "link", where, _BELEBELE)
        text = string(record, "flores_passage", where, _BELEBELE)
        key = (link, str(record.get("question_number")))
        if key[1] not in ("1", "2"):
            raise UsageError(f"{where}, has no question_number of 1 or 2: {_BELEBELE}.")
        if key in variant.questions:
            raise UsageError(f"{where}, repeats question {key[1]} of {link}: fetch the file again.")
        variant.questions[key] = string(record, "question", where, _BELEBELE)
        if variant.passages.setdefault(link, text) != text:
            raise UsageError(f"{where}, has a different passage for {link} from an earlier line: fetch the file again.")
    if not variant.questions:
        raise UsageError(f"{path} contains no questions: {_BELEBELE}.")
    return variant

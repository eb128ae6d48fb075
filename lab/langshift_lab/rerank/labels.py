"""LAURA's labels: which passages lead generators to the right answer, whatever language they are in (LAURA, section 3).

A question's candidates are split by language, and generators answer from the best five of each. The languages whose
answers are the best are kept, all on ties; then generators answer from each passage of these alone. A utility is the
mean over generators of the answer's 3-gram recall (Eq. 2); a passage above .8 is positive.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import msgspec

from langshift.errors import UsageError, no_file
from langshift.evaluate.datasets.dataset import Dataset, gather
from langshift.evaluate.measures.distributions import Distribution
from langshift.files import decode_line, json_lines, numbered_raw_lines, write_bytes
from langshift.languages import UNDETERMINED
from langshift_lab.generation.generators import Answer, answer_prompt
from langshift_lab.generation.rag import oracle_languages
from langshift_lab.generation.scoring import trigram_recall

#: The documents that one search gives a question.
CANDIDATES: Final = 100
_PER_LANGUAGE: Final = 5
_POSITIVE: Final = 0.8


class Labels(msgspec.Struct, frozen=True):
    """The labels of one query, as a line of the file has them.

    Attributes:
        query: its id.
        language: its primary tag, ``und`` where it is not known.
        candidates: ids of the documents that were found, the best first.
        languages: language of documents -> utility of its best five together, 0 to 1.
        utilities: id -> utility of a document alone, 0 to 1; those of the best languages.
        positives: ids whose utility is above .8, the best candidates first.
    """

    query: str
    language: str
    candidates: list[str]
    languages: dict[str, float]
    utilities: dict[str, float]
    positives: list[str]


class LabelQuestion(NamedTuple):
    """A question to be labelled.

    Attributes:
        query: its id.
        text: its words.
        language: its primary tag, ``und`` where it is not known.
        answers: its reference answers.
        candidates: ids of documents, the best first.
    """

    query: str
    text: str
    language: str
    answers: Sequence[str]
    candidates: Sequence[str]


#: Prompts -> the answer of one generator to each.
Generate = Callable[[Sequence[str]], Sequence[Answer]]


def best_by_language(
    questions: Sequence[LabelQuestion], languages: Mapping[str, str | None]
) -> list[dict[str, list[str]]]:
    """Of each question: language -> the best five candidates in it.

    Args:
        questions: with their candidates.
        languages: id -> primary tag; documents without one stand together as ``und``.
    """
    return [
        {
            tag: found[:_PER_LANGUAGE]
            for tag, found in gather((languages.get(name) or UNDETERMINED, name) for name in one.candidates).items()
        }
        for one in questions
    ]


def label(
    questions: Sequence[LabelQuestion],
    passages: Mapping[str, str],
    languages: Mapping[str, str | None],
    generators: Sequence[Generate],
) -> list[Labels]:
    """Label the candidates of questions.

    Args:
        questions: each with reference answers.
        passages: id -> text, of every candidate.
        languages: id -> primary tag; documents without one stand together as ``und``.
        generators: at least one.

    Returns:
        The labels of each question, in order; a question without candidates has none.

    Raises:
        LangshiftError: a generator fails.
    """
    by_language = best_by_language(questions, languages)
    requests = [(row, documents) for row, found in enumerate(by_language) for documents in found.values()]
    scores = iter(_utilities(questions, requests, passages, generators))
    together = [{tag: next(scores) for tag in found} for found in by_language]
    kept = [
        [name for tag, documents in found.items() if utility[tag] == max(utility.values()) for name in documents]
        for found, utility in zip(by_language, together, strict=True)
    ]
    requests = [(row, [name]) for row, names in enumerate(kept) for name in names]
    scores = iter(_utilities(questions, requests, passages, generators))
    alone = [{name: next(scores) for name in names} for names in kept]
    return [
        Labels(
            one.query,
            one.language,
            list(one.candidates),
            of_languages,
            utilities,
            [name for name in one.candidates if utilities.get(name, 0.0) > _POSITIVE],
        )
        for one, of_languages, utilities in zip(questions, together, alone, strict=True)
    ]


def _utilities(
    questions: Sequence[LabelQuestion],
    requests: Sequence[tuple[int, Sequence[str]]],
    passages: Mapping[str, str],
    generators: Sequence[Generate],
) -> list[float]:
    """The utility of some documents together for a question, for each of ``requests``."""
    prompts = [
        answer_prompt(questions[row].text, [passages[name] for name in documents], questions[row].language)
        for row, documents in requests
    ]
    answers = [generate(prompts) for generate in generators]
    return [
        fmean(trigram_recall(answer.text, questions[row].answers) for answer in given)
        for (row, _), *given in zip(requests, *answers, strict=True)
    ]


def oracle_distribution(labels: Sequence[Labels]) -> dict[str, Distribution]:
    """Query language -> document language -> share: the languages of the best answers (LAURA, section 2.1).

    A query counts 1 for its best language, evenly over ties; a query language has the mean over its queries.
    """
    return oracle_languages({one.query: one.languages for one in labels}, {one.query: one.language for one in labels})


def write_labels(path: Path, labels: Sequence[Labels]) -> None:
    """Write JSON Lines, one line a query, whole or not at all, for the owner alone."""
    write_bytes(path, json_lines(map(msgspec.to_builtins, labels)), private=True)


def read_labels(path: Path) -> list[Labels]:
    """Read what ``write_labels`` wrote.

    Raises:
        UsageError: there is no such file, it is empty, or a line holds no labels or those of a query once more.
    """
    if not path.is_file():
        raise UsageError(f"{no_file(path)}: langshift rerank label writes it.")
    found: dict[str, Labels] = {}
    for number, line in numbered_raw_lines(path):
        where = f"{path}, line {number},"
        try:
            one = msgspec.json.decode(line, type=Labels)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            decode_line(line, f"{path}, line {number}")
            raise UsageError(f"{where} holds no labels ({error}): write the file anew with rerank label.") from error
        if strange := {*one.utilities, *one.positives} - {*one.candidates}:
            raise UsageError(f"{where} labels {min(strange)!r}, which is no candidate: correct or remove the line.")
        if one.query in found:
            raise UsageError(f"{where} labels the query {one.query!r} a second time: keep one of the two lines.")
        found[one.query] = one
    if not found:
        raise UsageError(f"{path} is empty: write it anew with langshift rerank label.")
    return list(found.values())


def with_labels(dataset: Dataset, labels: Sequence[Labels], path: Path) -> Dataset:
    """The questions that labels have a positive document for, with these as its judgements.

    Args:
        dataset: the questions.
        labels: what stands in ``path``.
        path: named in errors.

    Raises:
        UsageError: the labels are of another dataset, or none is positive.
    """
    found = {one.query: dict.fromkeys(one.positives, 1) for one in labels if one.positives}
    known = {query.id for query in dataset.queries}
    if strange := {*found} - known or {name for names in found.values() for name in names} - dataset.documents.keys():
        other = f"{min(strange)!r}, which is not in {dataset.folder}"
        raise UsageError(f"{path} labels {other}: give the labels of this dataset.")
    if not found:
        raise UsageError(f"{path} has no positive document, so there is nothing to learn: label more questions.")
    return replace(dataset, queries=tuple(query for query in dataset.queries if query.id in found), qrels=found)

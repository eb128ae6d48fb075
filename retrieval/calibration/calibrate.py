"""Calibrating anchored search on questions that are made of the index itself, without judgments by people.

Questions are cut out of the index's own passages, and asked of it as it is and with their passage hidden.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl, modes, settings
from langshift.retrieval.anchored import AnchorModel, body_with_vectors, collect_candidates, hit_vectors
from langshift.retrieval.calibration import fit
from langshift.retrieval.hits import GROUP, ScoredDoc, group_of, to_hit, without_legs
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.steps import Body, Response, SearchPlan, execute, execute_many, step_by_step

_SENTENCE: Final = re.compile(r"(?<=[.!?؟۔])\s+|(?<=[。！？।॥])\s*|\n+")
_WORDS: Final = 10
_LEAST_WORDS: Final = 4
# Of scripts without spaces about as many characters as ten words have.
_CHARACTERS: Final = {"zh": 18, "yue": 18, "ja": 18, "th": 40, "lo": 40, "km": 40, "my": 40, "bo": 40}
_LONGEST: Final = 300
assert _LONGEST < dsl.MOST_CLAUSES // 2  # noqa: S101 - whatever an analyzer makes of it, the server takes it


def extract_question(text: str, language: str, name: str) -> str | None:
    """A question of about ten words out of one sentence.

    Args:
        text: of a document.
        language: its language; in scripts without spaces characters are counted instead.
        name: the document's id, by which the place is chosen, so that it is the same each time.

    Returns:
        The piece; None where no sentence is long enough.
    """
    chance = np.random.default_rng(zlib.crc32(name.encode(errors="replace")))
    # A text that was cut in the middle of a character has half of it left, which no request can hold.
    whole = text.encode(errors="ignore").decode()
    pieces = [found for sentence in _SENTENCE.split(whole) if (found := _parts(sentence, language))]
    if not pieces:
        return None
    parts, joint = pieces[int(chance.integers(len(pieces)))]
    wanted = _WORDS if joint else _CHARACTERS[language]
    start = int(chance.integers(max(1, len(parts) - wanted + 1)))
    return joint.join(parts[start : start + wanted]).strip()[:_LONGEST]


def _parts(sentence: str, language: str) -> tuple[list[str], str] | None:
    """What a question can be cut of, and what joins it; None where that is too little."""
    if language in _CHARACTERS:
        characters = list(sentence.strip())
        return (characters, "") if len(characters) >= _CHARACTERS[language] // 2 else None
    words = sentence.split()
    return (words, " ") if len(words) >= _LEAST_WORDS else None


T = TypeVar("T")


def masked(plan: SearchPlan[T], gone: Sequence[Mapping[str, Any]]) -> SearchPlan[T]:
    """A plan, in every step of which the documents that match one of the clauses are left out.

    Scores stay as they are. Nearest neighbours are left out after they were found: the few that are hidden are less
    than what is looked at beside those that are wanted.
    """

    def carry_out(bodies: tuple[Body, ...]) -> SearchPlan[Sequence[Response]]:
        without = [body | {"query": {"bool": {"must": [body["query"]], "must_not": list(gone)}}} for body in bodies]
        return (yield tuple(without))

    return step_by_step(plan, carry_out)


# A language with fewer documents is not asked about.
_FEW: Final = 5


class CalibrationPassage(NamedTuple):
    """A document that a question is cut out of.

    Attributes:
        id: its ``_id``.
        language: primary tag.
        words: the question.
        group: its translation group; None where it names none.
        vector: of unit length, shape (dimension,), float32.
    """

    id: str
    language: str
    words: str
    group: str | None
    vector: NDArray[np.float32]


def draw_passages(searcher: Searcher, sample: int, window: int) -> list[CalibrationPassage]:
    """Documents with a vector and a sentence to ask by, the same each time.

    Args:
        searcher: over the index.
        sample: how many at most; every language gets as even a share as it has documents for.
        window: how many documents one request to the index may ask for.
    """
    index, found = searcher.index, list[CalibrationPassage]()
    for language, share in shares(index.counts, sample).items():
        found += execute(searcher.client, index.index, _draw(index, language, share, window))
    return found


def shares(counts: Mapping[str, int], sample: int) -> dict[str, int]:
    """Language -> how many of the sample: as evenly as each language's documents allow; a few of them are too few."""
    left, wanted = sample, {}
    rarest_first = sorted((count, language) for language, count in counts.items() if count >= _FEW)
    for position, (count, language) in enumerate(rarest_first):
        share = min(count, left // (len(rarest_first) - position))
        if share:
            wanted[language] = share
        left -= share
    return dict(sorted(wanted.items()))


def _draw(index: IndexInfo, language: str, share: int, window: int) -> SearchPlan[list[CalibrationPassage]]:
    fields = index.fields
    clauses = [{"term": {fields.language: language}}, {"exists": {"field": fields.vector}}]
    brings = [*(fields.texts or metadata.TEXT_FIELDS), GROUP]
    # Some have no sentence to ask by.
    size = min(window, share + share // 2 + _FEW)
    (response,) = yield (
        body_with_vectors(fit.drawn({"bool": {"filter": clauses}}), size, fields) | {"_source": brings},
    )
    vectors, made = hit_vectors(response), list[CalibrationPassage]()
    for found in without_legs(response, fields):
        words = extract_question(text_of(found, fields), language, found.id)
        if found.id in vectors and words is not None:
            vector = vectors[found.id].astype(np.float32)
            made.append(CalibrationPassage(found.id, language, words, group_of(found.source), vector))
    return made[:share]


def text_of(found: ScoredDoc, fields: metadata.FieldNames) -> str:
    """The words of a document that a question is cut out of."""
    if not fields.texts:
        hit = to_hit(found, fields)
        return hit.text or hit.title
    texts = (to_hit(found, msgspec.structs.replace(fields, texts=(name,))).text for name in fields.texts)
    return next(filter(None, texts), "")


# Documents whose vectors are as near as that say the same in the same words.
_COPY: Final = 0.999


class CalibrationQuestion(NamedTuple):
    """A question of which the answer is known.

    Attributes:
        question: with its vector.
        passage: what it was cut out of.
        answers: ids of the passage and its copies in its language.
        hides: clauses for these, and for all in the language that the passage's translation group has.
    """

    question: settings.SearchQuery
    passage: CalibrationPassage
    answers: frozenset[str]
    hides: Sequence[Mapping[str, Any]]


def make_questions(searcher: Searcher, passages: Sequence[CalibrationPassage]) -> list[CalibrationQuestion]:
    """The questions of passages, encoded and moved as those of a searcher would be.

    Raises:
        UsageError: the encoder makes no vectors of queries.
    """
    index, tags = searcher.index, [passage.language for passage in passages]
    vectors = searcher.move(searcher.encode([passage.words for passage in passages]), tags)
    copies = execute_all(searcher, (_copies(passage, index) for passage in passages))
    questions = []
    for passage, vector, found in zip(passages, vectors, copies, strict=True):
        answers = frozenset((passage.id, *found))
        hides = dsl.filter_clauses({"_id": sorted(answers)})
        if passage.group is not None:
            own = {index.fields.language: [passage.language], GROUP: [passage.group]}
            hides.append({"bool": {"filter": dsl.filter_clauses(own)}})
        query = settings.SearchQuery(passage.words, passage.language, vector)
        questions.append(CalibrationQuestion(query, passage, answers, hides))
    return questions


def evidence(searcher: Searcher, questions: Sequence[CalibrationQuestion]) -> list[fit.CalibrationEvidence]:
    """What an anchored search gathers for each question, in both situations."""
    setting, target = settings.SearchSettings("anchored"), settings.SearchContext(searcher.index)
    requests = [settings.SearchRequest(one.question, setting, target) for one in questions]
    there = execute_all(searcher, map(collect_candidates, requests))
    asked = zip(requests, questions, strict=True)
    hidden = execute_all(searcher, (masked(collect_candidates(one), of.hides) for one, of in asked))
    return [
        fit.CalibrationEvidence(one.passage.language, one.answers, *gathered)
        for one, *gathered in zip(questions, there, hidden, strict=True)
    ]


def first_hits(
    searcher: Searcher,
    questions: Sequence[CalibrationQuestion],
    mode: settings.Mode,
    trust: AnchorModel | None = None,
    *,
    hidden: bool = False,
) -> list[bool]:
    """Whether the first hit of each question is what it was cut out of; or, with that hidden, a translation of it.

    Args:
        searcher: over the index.
        questions: what is asked.
        mode: of the searches.
        trust: what of the rule of ``anchored`` is the index's own; None in other modes.
        hidden: whether the answers are hidden, and those of their group in the question's language.
    """
    setting, target = settings.SearchSettings(mode), settings.SearchContext(searcher.index, trust=trust)
    plans = [
        modes.search(settings.SearchRequest(one.question, setting, target, size=1, source=[GROUP])) for one in questions
    ]
    if hidden:
        plans = [masked(plan, one.hides) for plan, one in zip(plans, questions, strict=True)]
    return [
        any(group_of(hit.source) == one.passage.group if hidden else hit.id in one.answers for hit in found.hits)
        for found, one in zip(execute_all(searcher, plans), questions, strict=True)
    ]


def execute_all(searcher: Searcher, plans: Iterable[SearchPlan[T]]) -> list[T]:
    """What all the plans return.

    Raises:
        LangshiftError: one of them failed.
    """
    returned: list[T] = []
    for outcome in execute_many(searcher.client, searcher.index.index, plans):
        if isinstance(outcome, LangshiftError):
            raise outcome
        returned.append(outcome)
    return returned


def _copies(passage: CalibrationPassage, index: IndexInfo) -> SearchPlan[list[str]]:
    fields = index.fields
    query = dsl.knn(passage.vector, settings.LEAST_CANDIDATES, [{"term": {fields.language: passage.language}}], fields)
    body = dsl.body(query, settings.LEAST_CANDIDATES, fields, source=False) | {"min_score": (1 + _COPY) / 2}
    (response,) = yield (body,)
    return [found.id for found in without_legs(response, fields)]


_SPREAD_DOCUMENTS: Final = 300
_FEWEST_QUESTIONS: Final = 30
# Lower values of k are tried at so many steps where the fitted one loses something.
_STEPS: Final = 4


def require_languages(index: IndexInfo) -> None:
    """Refuse an index in which there is nothing to lead to.

    Raises:
        ClusterError: it has one language only, or none.
    """
    if len(index.languages) < 2:
        alone = ", ".join(index.languages)
        what = f"documents in one language only ({alone})" if alone else "no documents in a known language"
        raise ClusterError(f"{index.name} has {what}: anchored search needs two languages or more.")


def calibrate(searcher: Searcher, sample: int) -> fit.Calibration:
    """Measure what of the rule of trust is an index's own; nothing is written.

    Args:
        searcher: over the index.
        sample: how many questions to ask at most.

    Raises:
        UsageError: the encoder makes no vectors of queries.
        ClusterError: the index has too few documents to ask by.
    """
    client, index = searcher.client, searcher.index
    window = metadata.window(metadata.read_settings(client, index.index))
    passages = draw_passages(searcher, sample, window)
    if len(passages) < _FEWEST_QUESTIONS:
        raise ClusterError(
            f"Calibration needs {_FEWEST_QUESTIONS} documents with a vector and a sentence, in languages with five "
            f"documents or more; {index.name} has {len(passages)}. Anchored search continues with default values."
        )
    questions = make_questions(searcher, passages)
    gathered = evidence(searcher, questions)
    spread = fit.measured_spread(client, index, min(_SPREAD_DOCUMENTS, window))
    grouped = fit.has_groups(client, index)
    priors = fit.measured_priors(client, index, window) if grouped else {}
    trust = AnchorModel(spread, fit.fitted_worth(gathered, spread, priors), priors, calibrated=True)
    translated = _translated(searcher, questions) if grouped else []
    fitted, hidden = None, None
    if translated:
        dense_hidden = first_hits(searcher, translated, "dense", hidden=True)

        def trial(trust: AnchorModel) -> fit.FirstHits:
            anchored = first_hits(searcher, translated, "anchored", fit.at_even_odds(trust), hidden=True)
            return fit.FirstHits.compared(dense_hidden, anchored)

        hidden = trial(trust)
        if hidden.lost:
            fitted = trust.words
            trust, hidden = lowered(trial, trust)
    dense = first_hits(searcher, questions, "dense")
    there = fit.FirstHits.compared(dense, first_hits(searcher, questions, "anchored", trust))
    return fit.Calibration(trust, _by_language(trust, gathered), there, hidden, fitted)


def lowered(hidden: Callable[[AnchorModel], fit.FirstHits], trust: AnchorModel) -> tuple[AnchorModel, fit.FirstHits]:
    """The trust with the highest ``k`` at which nothing is lost, and what comes of it.

    Args:
        hidden: the first hits with a trust where the answers are hidden.
        trust: with a ``k`` at which anchored search loses some of these.

    Returns:
        That from the lowest ``k`` up as long as nothing is lost; the lowest where even that loses.
    """
    accepted = replace(trust, words=fit.LEAST_WORTH)
    first = hidden(accepted)
    for worth in [] if first.lost else np.geomspace(fit.LEAST_WORTH, trust.words, _STEPS)[1:-1]:
        tried = replace(trust, words=round(float(worth), 2))
        found = hidden(tried)
        if found.lost:
            break
        accepted, first = tried, found
    return accepted, first


def _by_language(trust: AnchorModel, gathered: Sequence[fit.CalibrationEvidence]) -> list[fit.LanguageCalibration]:
    by_language: dict[str, list[fit.CalibrationEvidence]] = {}
    for one in gathered:
        by_language.setdefault(one.language, []).append(one)
    return [
        fit.LanguageCalibration(
            language,
            len(of),
            float(np.mean([one.trusts_most(trust) for one in of])),
            float(np.mean([one.deceived(fit.at_even_odds(trust)) for one in of])),
            trust.prior(language),
        )
        for language, of in by_language.items()
    ]


def _translated(searcher: Searcher, questions: Sequence[CalibrationQuestion]) -> list[CalibrationQuestion]:
    """The questions of which translations of the answer are there."""
    groups = {one.passage.group for one in questions if one.passage.group is not None}
    found = fit.languages_of(searcher.client, searcher.index, groups)
    return [
        one for one in questions if one.passage.group is not None and found[one.passage.group] - {one.passage.language}
    ]

"""The language map of an index, measured: how near its languages lie to each other, before and after the shift."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.similarity import with_norm_1
from langshift.errors import ClusterError, LangshiftError
from langshift.plugin.metadata import FieldNames, read_metadata, value_at
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.stored_vector import vector_at
from langshift.plugin.versions import IndexInfo, live
from langshift.retrieval import dsl
from langshift.retrieval.calibration.questions import extract_question, text_of
from langshift.retrieval.hits import Vector, group_of, known_shift, unshifted_vector, without_legs
from langshift.retrieval.service import VersionedSearcher
from langshift.retrieval.steps import Response, SearchPlan, execute
from langshift.wording import pluralize

Matrix = NDArray[np.float64]


class Axes(NamedTuple):
    """The plane of a picture.

    Attributes:
        centre: mean of the vectors it was fitted on, shape (dimension,).
        directions: of unit length and at right angles, shape (2, dimension); zeros where the vectors have less.
        share: of the vectors' variance that each direction holds, 0 to 1.
    """

    centre: Matrix
    directions: Matrix
    share: tuple[float, float]


def fit_axes(vectors: Matrix) -> Axes:
    """The first two principal components, by a singular value decomposition.

    The sign of each is such that its largest component is above 0, so that the same vectors give the same picture.

    Args:
        vectors: shape (n, dimension), at least one.
    """
    centre = vectors.mean(axis=0)
    _, lengths, directions = np.linalg.svd(vectors - centre, full_matrices=False)
    found, held = np.zeros((2, vectors.shape[1])), [0.0, 0.0]
    total = float((lengths**2).sum())
    # What is left of rounding is no direction.
    real = lengths > np.finfo(np.float64).eps * max(vectors.shape) * max(1.0, float(lengths[0]))
    for place, (length, direction) in enumerate(zip(lengths[real][:2], directions[real][:2], strict=True)):
        found[place] = direction * np.sign(direction[np.abs(direction).argmax()])
        held[place] = float(length**2) / total
    return Axes(centre, found, (held[0], held[1]))


def placed(vectors: Matrix, axes: Axes) -> Matrix:
    """Where vectors lie in the plane, shape (n, 2)."""
    made: Matrix = (vectors - axes.centre) @ axes.directions.T
    return made


LANGUAGES: Final = 20
DOCUMENTS: Final = 40


class DrawnDocument(NamedTuple):
    """A document of the sample.

    Attributes:
        id: its ``_id``; of a chunk that of its document.
        language: as it stands in the index.
        group: its translation group; None where it names none.
        words: a question that is cut out of it; None where no sentence is long enough.
        stored: the vector that is searched, shape (dimension,), float32.
        made: the vector as the encoder made it, of the same shape; None where that cannot be known.
    """

    id: str
    language: str
    group: str | None
    words: str | None
    stored: Vector
    made: Matrix | None


def most_frequent(counts: Mapping[str, int], most: int = LANGUAGES) -> tuple[str, ...]:
    """The languages with the most documents, at most so many; of equals the first by tag."""
    return tuple(sorted(counts, key=lambda tag: (-counts[tag], tag))[:most])


def draw(
    index: IndexInfo, languages: Sequence[str], shift: StoredShift | None, each: int = DOCUMENTS
) -> SearchPlan[list[DrawnDocument]]:
    """Documents with a vector, drawn at random and the same each time; one request.

    Args:
        index: the index.
        languages: of which to draw.
        shift: of the index; None where it cannot be taken back.
        each: how many of a language at most.

    Returns:
        The documents, language by language.
    """
    fields = index.fields
    with_vector = {"exists": {"field": fields.vector}}
    brings = [*fields.text_fields, fields.group, fields.vector, fields.stamp]
    responses = yield tuple(
        dsl.body(dsl.drawn({"bool": {"filter": [{"term": {fields.language: tag}}, with_vector]}}), each, fields, brings)
        for tag in languages
    )
    return [
        one
        for language, response in zip(languages, responses, strict=True)
        for one in _read(response, language, fields, shift)
    ]


def _read(response: Response, language: str, fields: FieldNames, shift: StoredShift | None) -> list[DrawnDocument]:
    made = list[DrawnDocument]()
    for found in without_legs(response, fields):
        stored, stamp = vector_at(found.source, fields.vector), value_at(found.source, fields.stamp) or {}
        if stored is None:
            continue
        words = extract_question(text_of(found, fields), language, found.id)
        raw = unshifted_vector(stored, stamp, shift)
        made.append(DrawnDocument(found.document, language, group_of(found.source, fields), words, stored, raw))
    return made


ReportProgress = Callable[[str], None]

QUESTIONS: Final = 16
# So many of each language are encoded before the next ones, so that searches come in between.
_ROUND: Final = 4
# Seconds after which no further round begins: a large model asks fewer questions.
_LONGEST: Final = 30.0


class EncodedQuestions(NamedTuple):
    """Questions with their vectors.

    Attributes:
        documents: what each was cut out of.
        vectors: shape (questions, dimension), float32.
        all: whether no question was left out because encoding takes long.
    """

    documents: Sequence[DrawnDocument]
    vectors: Vector
    all: bool


def encode_questions(
    documents: Sequence[DrawnDocument], opening: Callable[[], VersionedSearcher], report_progress: ReportProgress
) -> EncodedQuestions | None:
    """Encode the questions of documents; None where no text has a sentence to ask by.

    Args:
        documents: the sample.
        opening: opens the version that the documents are of, with its encoder.
        report_progress: is told how many are encoded.

    Raises:
        LangshiftError: the encoder is not here, is another one, or makes no vectors of questions.
    """
    rounds = list(in_rounds(documents))
    if not rounds:
        return None
    report_progress("Opening the encoder")
    opened = opening()
    open_version = opened.current()
    if opened.identity() != open_version.identity:
        open_version = opened.renewed(open_version)
    total, began = sum(map(len, rounds)), time.monotonic()
    encoded, vectors = list[DrawnDocument](), list[Vector]()
    for together in rounds:
        if encoded and time.monotonic() - began > _LONGEST:
            break
        report_progress(f"Encoding queries: {len(encoded)} of {total}")
        vectors.append(opened.encoded(open_version, [one.words or "" for one in together]))
        encoded += together
    return EncodedQuestions(encoded, np.concatenate(vectors), len(encoded) == total)


def in_rounds(
    documents: Sequence[DrawnDocument], most: int = QUESTIONS, at_once: int = _ROUND
) -> Iterator[list[DrawnDocument]]:
    """The documents whose questions are encoded together: of every language a few, the first drawn first.

    Args:
        documents: the sample, of which those without a question are passed over.
        most: how many of a language at most, all rounds together.
        at_once: how many of a language in a round.
    """
    seen, rounds = Counter[str](), defaultdict[int, list[DrawnDocument]](list)
    for one in documents:
        if one.words is not None and seen[one.language] < most:
            rounds[seen[one.language] // at_once].append(one)
            seen[one.language] += 1
    yield from (rounds[number] for number in sorted(rounds))


def answer_mask(question_documents: Sequence[DrawnDocument], documents: Sequence[DrawnDocument]) -> NDArray[np.bool_]:
    """Which documents may answer a question: the one that it was cut out of, and its translations.

    Args:
        question_documents: the document of each question.
        documents: what questions are compared with.

    Returns:
        Shape (questions, documents).
    """
    ids = np.array([[one.id == other.id for other in documents] for one in question_documents], bool)
    groups = [[one.group is not None and one.group == other.group for other in documents] for one in question_documents]
    found: NDArray[np.bool_] = (ids | np.array(groups, bool)).reshape(len(question_documents), len(documents))
    return found


def mean_similarities(
    questions: NDArray[np.floating],
    documents: NDArray[np.floating],
    question_languages: Sequence[str],
    document_languages: Sequence[str],
    languages: Sequence[str],
    left_out: NDArray[np.bool_],
) -> Matrix:
    """The mean cosine of the questions of each language with the documents of each.

    Args:
        questions: vectors, shape (questions, dimension).
        documents: vectors, shape (documents, dimension).
        question_languages: language of each question.
        document_languages: language of each document.
        languages: of the rows and of the columns.
        left_out: pairs that do not count, shape (questions, documents).

    Returns:
        Shape (languages, languages): rows are questions, columns documents; NaN where there is no pair.
    """
    counted = (~left_out).astype(np.float64)
    cosines = (with_norm_1(questions) @ with_norm_1(documents).T) * counted
    # Shape (languages, tags): 1 where a tag is that language.
    rows, columns = (
        (np.array(languages, object)[:, np.newaxis] == np.array(tags, object)).astype(np.float64)
        for tags in (question_languages, document_languages)
    )
    sums, pairs = rows @ cosines @ columns.T, rows @ counted @ columns.T
    means: Matrix = np.divide(sums, pairs, out=np.full_like(sums, np.nan), where=pairs > 0)
    return means


def own_language_lead(similarities: Matrix) -> float | None:
    """How much nearer documents of the question's own language are than those of others, on average.

    The mean over languages of the similarity within a language, less that to each of the other languages; None where
    there is no language of which both are known.

    Args:
        similarities: as ``mean_similarities`` gives them.
    """
    differences = []
    for place, row in enumerate(similarities):
        others = np.delete(row, place)
        known = others[~np.isnan(others)]
        if known.size and not np.isnan(row[place]):
            differences.append(float(row[place] - known.mean()))
    return float(np.mean(differences)) if differences else None


class Nearness(NamedTuple):
    """How near questions are to documents, by language; shape (languages, languages) each, NaN where there is no pair.

    Attributes:
        before: of vectors as the encoder made them; None where that is not known, or nothing was moved.
        after: of vectors as they are searched.
        questions: language -> how many were asked.
    """

    before: Matrix | None
    after: Matrix
    questions: Mapping[str, int]


class Picture(NamedTuple):
    """Documents as points of a plane, all at length 1.

    Attributes:
        languages: of each document.
        before: shape (documents, 2); None where it is not known, or nothing was moved.
        after: of the same shape.
        share: of the variance of what the plane was fitted on that each of its directions holds, 0 to 1.
    """

    languages: Sequence[str]
    before: Matrix | None
    after: Matrix
    share: tuple[float, float]


@dataclass(frozen=True)
class LanguageMap:
    """What the page shows.

    Attributes:
        index: the version, as it was found.
        languages: those that are shown, most frequent first.
        drawn: language -> how many documents are in the sample.
        length: mean length of the documents' vectors as they are searched.
        lengths: language -> length of its language vector; those without one are left out.
        alphas: language -> by how much of it documents are shifted; those without one are left out.
        nearness: None where no question could be asked.
        widest: in the plane in which the documents differ most before the shift; None where there is none to show.
        along: in the plane in which the language vectors differ most; None where the index holds no two.
        known: whether what was before the shift is known of the documents.
        remarks: what is not shown and why, in sentences.
    """

    index: IndexInfo
    languages: Sequence[str]
    drawn: Mapping[str, int]
    length: float
    lengths: Mapping[str, float]
    alphas: Mapping[str, float]
    nearness: Nearness | None
    widest: Picture | None
    along: Picture | None
    known: bool
    remarks: Sequence[str]

    def similarities(self, question: str | None, document: str) -> list[float | None]:
        """How near questions in one language are to documents in another, before and after; None where not known."""
        if self.nearness is None or question not in self.languages:
            return [None, None]
        place = self.languages.index(question), self.languages.index(document)
        both = (self.nearness.before, self.nearness.after)
        return [None if means is None or np.isnan(means[place]) else float(means[place]) for means in both]


def measure(
    client: OpenSearch, name: str, opening: Callable[[], VersionedSearcher], report_progress: ReportProgress
) -> LanguageMap:
    """Draw documents, ask questions that are cut out of them, and compare.

    Args:
        client: the cluster.
        name: the version.
        opening: opens it with its encoder.
        report_progress: is told what is being done, in a few words.

    Raises:
        ClusterError: there is no such index, or it did not answer.
    """
    report_progress("Sampling documents")
    index = live(client, name)
    shift, _ = known_shift(read_metadata(client, index.index), index.index)
    languages = most_frequent(index.counts)
    drawn = execute(client, index.index, draw(index, languages, shift)) if languages else []
    documents, remarks = comparable(index.index, drawn, held=shift is not None)
    nearness, more = _nearness_and_remarks(documents, languages, opening, report_progress)
    others = pluralize(len(index.counts) - len(languages), "other")
    chosen = f"The {LANGUAGES} languages with the most documents are shown; {others} are not."
    report_progress("Drawing the map")
    taken = _taken(languages, shift)
    # The pivot language takes none.
    directions = np.array([*taken.values(), np.zeros(index.fingerprint.dimension)]) if taken else np.zeros((0, 0))
    return LanguageMap(
        index=index,
        languages=languages,
        drawn=Counter(one.language for one in documents),
        length=float(np.mean([np.linalg.norm(one.stored) for one in documents])) if documents else 0.0,
        lengths={tag: float(np.linalg.norm(vector)) for tag, vector in taken.items()},
        alphas={tag: shift.scale(shift.key(tag) or tag) for tag in taken} if shift is not None else {},
        nearness=nearness,
        widest=pictured(documents) if documents else None,
        along=pictured(documents, directions) if documents and len(directions) > 1 else None,
        known=_known(documents),
        remarks=[*([chosen] if len(languages) < len(index.counts) else []), *remarks, *more],
    )


def comparable(index: str, drawn: Sequence[DrawnDocument], *, held: bool) -> tuple[list[DrawnDocument], list[str]]:
    """The documents to compare, with what is to be said of the others.

    Those whose vector before the shift is known; all, as they are, where the index does not hold its shift.

    Args:
        index: its name, for the message.
        drawn: the sample.
        held: whether the index holds what its documents were shifted by.
    """
    if not drawn:
        return [], [f"{index} has no document with a language and a vector, so there is nothing to show."]
    known = [one for one in drawn if one.made is not None]
    gone = len(drawn) - len(known)
    if gone and not (held and known):
        return list(drawn), [
            f"Vectors before the shift are not shown: {index} does not store what is needed to reverse it exactly."
        ]
    message = f"For {gone:,} of the {pluralize(len(drawn), 'document')} drawn, the shift cannot be reversed exactly"
    return known, [f"{message}: they are left out here."] if gone else []


def measure_nearness(
    questions: EncodedQuestions, documents: Sequence[DrawnDocument], languages: Sequence[str]
) -> Nearness:
    """How near the questions are to the documents."""
    asked, made = [one.language for one in questions.documents], _before(documents)
    compared = asked, [one.language for one in documents], languages, answer_mask(questions.documents, documents)
    stored = np.array([one.stored for one in documents])
    before = None if made is None else mean_similarities(questions.vectors, made, *compared)
    return Nearness(before, mean_similarities(questions.vectors, stored, *compared), Counter(asked))


def pictured(documents: Sequence[DrawnDocument], differing: Matrix | None = None) -> Picture:
    """The documents in the plane in which vectors differ most.

    Args:
        documents: at least one.
        differing: those vectors, shape (n, dimension); None for the documents' before the shift.
    """
    made, stored = _before(documents), with_norm_1(np.array([one.stored for one in documents]))
    before = None if made is None else with_norm_1(made)
    axes = fit_axes(differing if differing is not None else stored if before is None else before)
    points = None if before is None else placed(before, axes)
    return Picture([one.language for one in documents], points, placed(stored, axes), axes.share)


def _known(documents: Sequence[DrawnDocument]) -> bool:
    return all(one.made is not None for one in documents)


def _before(documents: Sequence[DrawnDocument]) -> Matrix | None:
    """The vectors as the encoder made them; None where that is not known, or no document was moved."""
    made = [one.made for one in documents if one.made is not None]
    if len(made) < len(documents) or np.array_equal(made, [one.stored for one in documents]):
        return None
    return np.array(made, np.float64)


def _nearness_and_remarks(
    documents: Sequence[DrawnDocument],
    languages: Sequence[str],
    opening: Callable[[], VersionedSearcher],
    report_progress: ReportProgress,
) -> tuple[Nearness | None, list[str]]:
    """How near questions are, and what is to be said of it."""
    unshown = "The similarity of queries to documents is not shown:"
    if not documents:
        return None, []
    try:
        questions = encode_questions(documents, opening, report_progress)
    except ClusterError:
        raise
    except LangshiftError as error:
        return None, [f"{unshown} {error}"]
    if questions is None:
        return None, [f"{unshown} no text has a sentence to use as a query."]
    found = measure_nearness(questions, documents, languages)
    fewer = f"Encoding is slow here, so at most {max(found.questions.values())} queries per language were sent, "
    return found, [] if questions.all else [f"{fewer}not {QUESTIONS}."]


def _taken(languages: Sequence[str], shift: StoredShift | None) -> dict[str, Matrix]:
    """Language -> the language vector that its documents take, float64; those that take none are left out."""
    if shift is None:
        return {}
    keys = {tag: shift.key(tag) for tag in languages}
    return {tag: shift.vectors[key].astype(np.float64) for tag, key in keys.items() if key is not None}

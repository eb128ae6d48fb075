"""The language map of an index: how near its languages lie to each other, before and after the shift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from opensearchpy import OpenSearch

from langshift.console import counted
from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import meta
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import LiveIndex, live
from langshift.retrieval.exchange import carry_out
from langshift.retrieval.explaining import known_shift
from langshift.retrieval.standing import Opened
from langshift.web.language_map.asking import QUESTIONS, Asked, Tell, ask
from langshift.web.language_map.picture import Matrix, fit, placed
from langshift.web.language_map.sampling import LANGUAGES, Drawn, draw, most_frequent
from langshift.web.language_map.similarity import answering, mean_similarities, unit


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

    index: LiveIndex
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


def measure(client: OpenSearch, name: str, opening: Callable[[], Opened], tell: Tell) -> LanguageMap:
    """Draw documents, ask questions that are cut out of them, and compare.

    Args:
        client: the cluster.
        name: the version.
        opening: opens it with its encoder.
        tell: is told what is being done, in a few words.

    Raises:
        ClusterError: there is no such index, or it did not answer.
    """
    tell("Drawing documents")
    index = live(client, name)
    shift, _ = known_shift(meta.read(client, index.index), index.index)
    languages = most_frequent(index.counts)
    drawn = carry_out(client, index.index, draw(index, languages, shift)) if languages else []
    documents, remarks = comparable(index.index, drawn, held=shift is not None)
    nearness, more = _asked(documents, languages, opening, tell)
    tell("Drawing the picture")
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
        remarks=[*_chosen(index, languages), *remarks, *more],
    )


def comparable(index: str, drawn: Sequence[Drawn], *, held: bool) -> tuple[list[Drawn], list[str]]:
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
            f"What was before the shift is not shown: {index} does not hold what could take it back exactly."
        ]
    told = f"{gone:,} of the {counted(len(drawn), 'document')} drawn cannot be taken back exactly to before the shift"
    return known, [f"{told}: left out here."] if gone else []


def near(asked: Asked, documents: Sequence[Drawn], languages: Sequence[str]) -> Nearness:
    """How near the questions are to the documents."""
    asked_in, written_in = [one.language for one in asked.documents], [one.language for one in documents]
    left_out = answering(asked.documents, documents)
    stored = np.array([one.stored for one in documents])
    after = mean_similarities(asked.moved, stored, asked_in, written_in, languages, left_out)
    made, before = _before(documents), None
    # Questions may be moved where no document is drawn that was.
    if made is not None or (_known(documents) and not np.array_equal(asked.raw, asked.moved)):
        raw = stored if made is None else made
        before = mean_similarities(asked.raw, raw, asked_in, written_in, languages, left_out)
    return Nearness(before, after, Counter(asked_in))


def pictured(documents: Sequence[Drawn], differing: Matrix | None = None) -> Picture:
    """The documents in the plane in which vectors differ most.

    Args:
        documents: at least one.
        differing: those vectors, shape (n, dimension); None for the documents' before the shift.
    """
    made, stored = _before(documents), unit(np.array([one.stored for one in documents]))
    before = None if made is None else unit(made)
    axes = fit(differing if differing is not None else stored if before is None else before)
    points = None if before is None else placed(before, axes)
    return Picture([one.language for one in documents], points, placed(stored, axes), axes.share)


def _known(documents: Sequence[Drawn]) -> bool:
    return all(one.made is not None for one in documents)


def _before(documents: Sequence[Drawn]) -> Matrix | None:
    """The vectors as the encoder made them; None where that is not known, or no document was moved."""
    made = [one.made for one in documents if one.made is not None]
    if len(made) < len(documents) or np.array_equal(made, [one.stored for one in documents]):
        return None
    return np.array(made, np.float64)


def _asked(
    documents: Sequence[Drawn],
    languages: Sequence[str],
    opening: Callable[[], Opened],
    tell: Tell,
) -> tuple[Nearness | None, list[str]]:
    """How near questions are, and what is to be said of it."""
    unshown = "How near questions are to documents is not shown:"
    if not documents:
        return None, []
    try:
        asked = ask(documents, opening, tell)
    except ClusterError:
        raise
    except LangshiftError as error:
        return None, [f"{unshown} {error}"]
    if asked is None:
        return None, [f"{unshown} no text has a sentence to ask by."]
    found = near(asked, documents, languages)
    fewer = f"Encoding takes long here, so {max(found.questions.values())} questions of a language were asked at most, "
    return found, [] if asked.all else [f"{fewer}not {QUESTIONS}."]


def _chosen(index: LiveIndex, languages: Sequence[str]) -> list[str]:
    others = len(index.counts) - len(languages)
    if not others:
        return []
    return [f"The {LANGUAGES} languages with the most documents are shown; {counted(others, 'other')} are not."]


def _taken(languages: Sequence[str], shift: IndexShift | None) -> dict[str, Matrix]:
    """Language -> the language vector that its documents take, float64; those that take none are left out."""
    if shift is None:
        return {}
    keys = {tag: shift.key(tag) for tag in languages}
    return {tag: shift.vectors[key].astype(np.float64) for tag, key in keys.items() if key is not None}

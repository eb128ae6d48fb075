"""The figures of anchored search that are an index's own: measured, and fitted to questions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.plugin.versions import IndexInfo
from langshift.retrieval import dsl
from langshift.retrieval.anchored import AnchorModel, Candidates, anchor_probabilities, body_with_vectors, hit_vectors
from langshift.retrieval.hits import GROUP
from langshift.retrieval.steps import SearchPlan, execute

#: Between these ``k`` lies; in indices whose answers were judged by people it came out from 8 to 16.
LEAST_WORTH: Final = 6.0
MOST_WORTH: Final = 20.0
_LEAST_PROBABILITY: Final = 1e-4
_BEYOND_CHANCE: Final = 0.05
#: The modes that calibration compares.
CalibratedMode = Literal["anchored", "hybrid", "dense"]


class CalibrationEvidence(NamedTuple):
    """What a search gathers for one question.

    Attributes:
        language: of the question.
        answers: ids of what the question was cut out of, and of its copies.
        there: what is gathered as the index is.
        hidden: what is gathered where the answers are not there in the question's language.
    """

    language: str
    answers: Collection[str]
    there: Candidates
    hidden: Candidates

    def found(self, trust: AnchorModel) -> float:
        """How far the answers are trusted where they are there."""
        return self._trusted(self.there, trust, [name in self.answers for name in self.there.ids])

    def trusts_most(self, trust: AnchorModel) -> bool:
        """Whether nothing else is trusted more than one of the answers, where they are there."""
        if not self.there.ids:
            return False
        return self.there.ids[int(np.argmax(anchor_probabilities(self.there, trust, self.language)))] in self.answers

    def deceived(self, trust: AnchorModel) -> float:
        """How far documents in the question's language are trusted where none of them can be right."""
        return self._trusted(self.hidden, trust, [one.own for one in self.hidden.candidates])

    def _trusted(self, gathered: Candidates, trust: AnchorModel, which: Sequence[bool]) -> float:
        if not gathered.ids:
            return 0.0
        return float(anchor_probabilities(gathered, trust, self.language)[np.array(which)].sum())


def at_even_odds(trust: AnchorModel) -> AnchorModel:
    """The trust where answers are hidden from the question's language as often as not: no prior above 0.

    The prior of an index that has everything in every language speaks against what hiding makes of it.
    """
    return replace(trust, priors={language: min(prior, 0.0) for language, prior in trust.priors.items()})


def fitted_worth(evidence: Sequence[CalibrationEvidence], spread: float, priors: Mapping[str, float]) -> float:
    """The ``k`` of the rule of trust by maximum likelihood, from ``LEAST_WORTH`` to ``MOST_WORTH``.

    ``-mean (w ln p(answers | there) + (1 - w) ln (1 - Σ p(own language) | hidden))``, where ``p`` is at least 0.0001
    and ``w`` is how probable the prior of the question's language makes it that the answer is there.

    Args:
        evidence: of all questions.
        spread: of the index's vectors.
        priors: language -> log-odds.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import expit

    usual = AnchorModel(spread, priors=priors)
    there = np.array([expit(usual.prior(one.language)) for one in evidence])

    def loss(logarithm: float) -> float:
        trust = replace(usual, words=float(np.exp(logarithm)))
        found = np.log(np.maximum([one.found(trust) for one in evidence], _LEAST_PROBABILITY))
        spared = np.log(np.maximum([1 - one.deceived(trust) for one in evidence], _LEAST_PROBABILITY))
        return -float(np.mean(there * found + (1 - there) * spared))

    bounds = (np.log(LEAST_WORTH), np.log(MOST_WORTH))
    fit = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return round(float(np.exp(fit.x)), 2)


def chance_of_loss(before: Sequence[bool], after: Sequence[bool]) -> float:
    """How likely chance alone makes ``after`` as much worse than ``before`` as it is, by the sign test."""
    from scipy.stats import binomtest

    worse = sum(one and not other for one, other in zip(before, after, strict=True))
    better = sum(other and not one for one, other in zip(before, after, strict=True))
    return float(binomtest(worse, worse + better, alternative="greater").pvalue) if worse + better else 1.0


# Fewer documents tell nothing; then the spread is that of a usual model.
_FEWEST: Final = 5
_USUAL: Final = 0.05
# No model's documents are all alike, but those of a test may be; it is divided by.
_LEAST: Final = 1e-3
# Of normally distributed figures, standard deviation over median absolute deviation.
_NORMAL: Final = 1.4826


def spread_of(vectors: NDArray[np.floating[Any]]) -> float:
    """The robust standard deviation of the cosine of all pairs: ``1.4826 · median |cos - median cos|``.

    Translations of each other are few among all pairs of a sample, and a median does not see them.

    Args:
        vectors: of documents drawn at random, shape (documents, dimension), of any norm.
    """
    if len(vectors) < _FEWEST:
        return _USUAL
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, np.finfo(np.float64).tiny)
    cosines = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    return max(_LEAST, _NORMAL * float(np.median(np.abs(cosines - np.median(cosines)))))


def measured_spread(client: OpenSearch, index: IndexInfo, documents: int) -> float:
    """The spread of a sample of an index's documents, the same each time; one request.

    Args:
        client: the cluster.
        index: the index.
        documents: how many to draw.
    """
    return execute(client, index.index, _spread(index, documents))


def drawn(among: dict[str, Any]) -> dict[str, Any]:
    """The query that puts what another one finds in an order of chance, which is the same each time."""
    drawing = {"query": among, "random_score": {"seed": 0, "field": "_seq_no"}, "boost_mode": "replace"}
    return {"function_score": drawing}


def _spread(index: IndexInfo, documents: int) -> SearchPlan[float]:
    among = drawn({"exists": {"field": index.fields.vector}})
    (response,) = yield (body_with_vectors(among, documents, index.fields),)
    return spread_of(np.array(list(hit_vectors(response).values())))


# Exact figures are not needed: of so many documents the groups are looked at.
_SAMPLED_DOCUMENTS: Final = 2_000
_PAGE: Final = 5_000
_LOWEST, _HIGHEST = -0.5, 2.0
# Where an answer is missing in the searcher's language, trust in that language costs what is seldom won back: only a
# language that has nearly everything is given more than usual.
_CAUTION: Final = 2.0


def has_groups(client: OpenSearch, index: IndexInfo) -> bool:
    """Whether documents of an index can name a translation group: in an adopted one the field may be another thing."""
    kinds = client.field_caps(index=index.index, fields=GROUP)["fields"].get(GROUP, {})
    return bool(kinds) and all(kind["type"] == "keyword" and kind["aggregatable"] for kind in kinds.values())


def measured_priors(client: OpenSearch, index: IndexInfo, documents: int) -> dict[str, float]:
    """The prior of each language, from how much of what is there in other languages is there in this one, too.

    Args:
        client: the cluster.
        index: an index with groups.
        documents: how many are looked at at most, and how many one request to the index may ask for.
    """
    sampled = execute(client, index.index, _grouped(index, min(_SAMPLED_DOCUMENTS, documents)))
    found = languages_of(client, index, {group for _, group in sampled})
    return priors(sampled, found, index.languages)


def priors(
    documents: Iterable[tuple[str, str]], found: Mapping[str, Collection[str]], languages: Iterable[str]
) -> dict[str, float]:
    """Language -> ``logit((h + .5) / (n + 1)) - 2``, from -0.5 to 2.

    Of the ``n`` documents in other languages, ``h`` belong to a group with a document in this language. A language
    without others is left out.

    Args:
        documents: language and group of each.
        found: group -> languages of its documents.
        languages: those that are asked about.
    """
    known, made = list(documents), {}
    for language in languages:
        others = [group for own, group in known if own != language]
        if others:
            share = (sum(language in found[group] for group in others) + 0.5) / (len(others) + 1)
            made[language] = min(_HIGHEST, max(_LOWEST, math.log(share / (1 - share)) - _CAUTION))
    return made


def languages_of(client: OpenSearch, index: IndexInfo, groups: Collection[str]) -> dict[str, set[str]]:
    """Group -> the languages of its documents."""
    found: dict[str, set[str]] = defaultdict(set)
    names = {"group": GROUP, "language": index.fields.language}
    composite: dict[str, Any] = {"size": _PAGE, "sources": [{n: {"terms": {"field": f}}} for n, f in names.items()]}
    body = {
        "size": 0,
        "query": {"bool": {"filter": dsl.filter_clauses({GROUP: sorted(groups)})}},
        "aggs": {"pairs": {"composite": composite}},
    }
    while groups:
        answer = client.search(index=index.index, body=body)["aggregations"]["pairs"]
        for bucket in answer["buckets"]:
            found[bucket["key"]["group"]].add(bucket["key"]["language"])
        if len(answer["buckets"]) < _PAGE:
            break
        composite["after"] = answer["after_key"]
    return found


def _grouped(index: IndexInfo, size: int) -> SearchPlan[list[tuple[str, str]]]:
    language = index.fields.language
    clauses = [{"exists": {"field": GROUP}}, {"exists": {"field": language}}]
    body = dsl.body(drawn({"bool": {"filter": clauses}}), size, index.fields, source=False)
    (response,) = yield (body | {"docvalue_fields": [language, GROUP]},)
    return [(hit["fields"][language][0], hit["fields"][GROUP][0]) for hit in response["hits"]["hits"]]


class LanguageCalibration(NamedTuple):
    """What the questions of one language came to.

    Attributes:
        language: primary tag.
        questions: how many.
        found: the share whose own document is trusted most.
        deceived: the mean trust in documents of the language where none of them can be right; the prior counts as 0
            at most there.
        prior: log-odds that what is sought is there in this language.
    """

    language: str
    questions: int
    found: float
    deceived: float
    prior: float


class FirstHits(NamedTuple):
    """How often the first hit is right.

    Attributes:
        questions: how many were asked.
        dense: share of those that a search by vectors alone answers.
        anchored: share of those that an anchored search answers.
        chance: the probability that chance alone makes the latter fall as far below the former.
    """

    questions: int
    dense: float
    anchored: float
    chance: float

    @classmethod
    def compared(cls, dense: Sequence[bool], anchored: Sequence[bool]) -> FirstHits:
        """Of the two searches' first hits, of each question in the same order: whether it is right."""
        return cls(len(dense), float(np.mean(dense)), float(np.mean(anchored)), chance_of_loss(dense, anchored))

    @property
    def lost(self) -> bool:
        """Whether an anchored search is right more rarely, beyond chance."""
        return self.chance < _BEYOND_CHANCE


@dataclass(frozen=True)
class Calibration:
    """A calibration, and what it was measured by.

    Attributes:
        trust: what of the rule is the index's own.
        languages: by language.
        there: first hits as the index is: the documents that the questions were cut out of.
        hidden: first hits with these hidden: their translations; None where there are none.
        fitted: ``k`` as it was fitted, where that was lowered because something would have been lost; else None.
        mode: the best mode for the index.
        lexical_weight: the share of words at which ``hybrid`` loses nothing; None where there is none.
    """

    trust: AnchorModel
    languages: Sequence[LanguageCalibration]
    there: FirstHits
    hidden: FirstHits | None
    fitted: float | None = None
    mode: CalibratedMode = "anchored"
    lexical_weight: float | None = None

    @property
    def lost(self) -> bool:
        """Whether anchored search loses against dense even with the lowest ``k``."""
        return self.hidden is not None and self.hidden.lost

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(one.questions for one in self.languages)

    @property
    def found(self) -> float:
        """The share of all questions whose own document is trusted most."""
        return sum(one.found * one.questions for one in self.languages) / self.questions

    @property
    def deceived(self) -> float:
        """The mean trust in documents of the question's language where none of them can be right."""
        return sum(one.deceived * one.questions for one in self.languages) / self.questions

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            **self.trust.to_dict(),
            "mode": self.mode,
            "lexical_weight": self.lexical_weight,
            "fitted_words": self.trust.words if self.fitted is None else self.fitted,
            "lost": self.lost,
            "questions": self.questions,
            "found": self.found,
            "deceived": self.deceived,
            "languages": [one._asdict() for one in self.languages],
            "first_hits": {
                "there": self.there._asdict(),
                "hidden": None if self.hidden is None else self.hidden._asdict(),
            },
        }

"""Calibrating anchored search on questions that are made of the index itself, without judgments by people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.output import pluralize
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.anchor_model import AnchorModel
from langshift.retrieval.calibration import fit
from langshift.retrieval.calibration.questions import (
    CalibrationQuestion,
    draw_passages,
    evidence,
    first_hits,
    make_questions,
)
from langshift.retrieval.calibration.stored import Calibration, FirstHits, LanguageCalibration
from langshift.retrieval.searcher import QueryEncoder

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
        raise ClusterError(f"{index.name} holds {what}: anchored search leads from one language to others.")


def calibrate(client: OpenSearch, query_encoder: QueryEncoder, sample: int) -> Calibration:
    """Measure what of the rule of trust is an index's own; nothing is written.

    Args:
        client: the cluster.
        query_encoder: makes the index's questions.
        sample: how many questions to ask at most.

    Raises:
        UsageError: the encoder makes no vectors of queries.
        ClusterError: the index has too few documents to ask by.
    """
    index = query_encoder.index
    window = metadata.window(metadata.read_settings(client, index.index))
    passages = draw_passages(client, index, sample, window)
    if len(passages) < _FEWEST_QUESTIONS:
        raise ClusterError(
            f"Of {index.name} only {pluralize(len(passages), 'document')} can be asked about (in a language that has "
            f"five documents, with a vector and a sentence), and a calibration needs {_FEWEST_QUESTIONS}: anchored "
            "search goes on with usual figures."
        )
    questions = make_questions(client, query_encoder, passages)
    gathered = evidence(client, index, questions)
    spread = fit.measured_spread(client, index, min(_SPREAD_DOCUMENTS, window))
    grouped = fit.has_groups(client, index)
    priors = fit.measured_priors(client, index, window) if grouped else {}
    trust = AnchorModel(spread, fit.fitted_worth(gathered, spread, priors), priors, calibrated=True)
    translated = _translated(client, index, questions) if grouped else []
    fitted, hidden, lost = None, None, False
    if translated:
        dense_hidden = first_hits(client, index, translated, "dense", hidden=True)

        def trial(trust: AnchorModel) -> tuple[FirstHits, bool]:
            anchored = first_hits(client, index, translated, "anchored", fit.at_even_odds(trust), hidden=True)
            return _compared(dense_hidden, anchored), fit.loses(dense_hidden, anchored)

        hidden, lost = trial(trust)
        if lost:
            fitted = trust.words
            trust, hidden, lost = lowered(trial, trust)
    dense = first_hits(client, index, questions, "dense")
    there = _compared(dense, first_hits(client, index, questions, "anchored", trust))
    return Calibration(trust, _by_language(trust, gathered), there, hidden, fitted, lost)


def _compared(dense: Sequence[bool], anchored: Sequence[bool]) -> FirstHits:
    return FirstHits(len(dense), float(np.mean(dense)), float(np.mean(anchored)), fit.chance_of_loss(dense, anchored))


def lowered(
    hidden: Callable[[AnchorModel], tuple[FirstHits, bool]], trust: AnchorModel
) -> tuple[AnchorModel, FirstHits, bool]:
    """The trust with the highest ``k`` at which nothing is lost.

    Args:
        hidden: the first hits with a trust where the answers are hidden, and whether anchored search loses.
        trust: with a ``k`` at which it does.

    Returns:
        The trust, from the lowest ``k`` up as long as nothing is lost, what comes of it, and whether even the lowest
        loses.
    """
    accepted = replace(trust, words=fit.LEAST_WORTH)
    first, lost = hidden(accepted)
    for worth in [] if lost else np.geomspace(fit.LEAST_WORTH, trust.words, _STEPS)[1:-1]:
        tried = replace(trust, words=round(float(worth), 2))
        found, loses_too = hidden(tried)
        if loses_too:
            break
        accepted, first = tried, found
    return accepted, first, lost


def _by_language(trust: AnchorModel, gathered: Sequence[fit.CalibrationEvidence]) -> list[LanguageCalibration]:
    by_language: dict[str, list[fit.CalibrationEvidence]] = {}
    for one in gathered:
        by_language.setdefault(one.language, []).append(one)
    return [
        LanguageCalibration(
            language,
            len(of),
            float(np.mean([one.trusts_most(trust) for one in of])),
            float(np.mean([one.deceived(fit.at_even_odds(trust)) for one in of])),
            trust.prior(language),
        )
        for language, of in by_language.items()
    ]


def _translated(
    client: OpenSearch, index: IndexInfo, questions: Sequence[CalibrationQuestion]
) -> list[CalibrationQuestion]:
    """The questions of which translations of the answer are there."""
    groups = {one.passage.group for one in questions if one.passage.group is not None}
    found: Mapping[str, set[str]] = fit.languages_of(client, index, groups)
    return [
        one for one in questions if one.passage.group is not None and found[one.passage.group] - {one.passage.language}
    ]

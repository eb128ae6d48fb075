"""An offline evaluation, and the files it leaves: those of a replay, from exact search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from langshift.debias.fingerprint import Fingerprint
from langshift.evaluate.datasets.identity import identity
from langshift.evaluate.group_scores import GROUP_SCORES
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.offline.encoding import Encoded
from langshift.evaluate.offline.ranking import TOP_K, Ranked, place, rank
from langshift.evaluate.offline.setting import BOTH_SIDES, Setting
from langshift.evaluate.offline.sources import GIVEN, Told
from langshift.evaluate.replay.histogram import PERCENTILES
from langshift.evaluate.replay.journal import PER_QUERY, RESULT, Journal
from langshift.evaluate.replay.result import RUN, write_json
from langshift.evaluate.run import command, format_run
from langshift.evaluate.scoring import by_language, scored
from langshift.ingest.making import Making
from langshift.whole import whole


@dataclass(frozen=True)
class Offline:
    """What exact search over a dataset found.

    Attributes:
        encoded: the dataset and its vectors.
        setting: what was done to these.
        told: the languages by which documents moved.
        fingerprint: what made the vectors that were searched.
        beta: language preference, on the scale of the cosine.
        ranked: rankings and group scores.
        scores: measure -> figures.
    """

    encoded: Encoded
    setting: Setting
    told: Told
    fingerprint: Fingerprint
    beta: float
    ranked: Ranked
    scores: Mapping[str, Scores]


def evaluate(
    encoded: Encoded,
    setting: Setting,
    told: Told,
    making: Making,
    names: Sequence[str],
    *,
    beta: float = 0.0,
    on_queries: Callable[[int], None] = lambda _: None,
) -> Offline:
    """Move, search exactly, and score.

    Args:
        encoded: a dataset's vectors.
        setting: what to do to them.
        told: the languages by which documents move.
        making: encoder and detector.
        names: measures.
        beta: what a document in the query's language gets on top of its cosine.
        on_queries: called with the number of queries after each block.

    Raises:
        UsageError: an unknown measure.
        LangshiftError: a vector of which the method leaves nothing.
    """
    ranked = rank(encoded, place(encoded, setting.debias, told), beta=beta, on_queries=on_queries)
    fingerprint = replace(making, debias=setting.debias, soft=setting.source.soft).fingerprint()
    return Offline(encoded, setting, told, fingerprint, beta, ranked, score_ranked(names, encoded, ranked))


def score_ranked(names: Sequence[str], encoded: Encoded, ranked: Ranked) -> dict[str, Scores]:
    """Score rankings of an encoded dataset."""
    run = {query: dict(hits) for query, hits in ranked.rankings.items()}
    return scored(names, encoded.dataset, encoded.languages, run, ranked.group_scores)


def result(found: Offline) -> dict[str, Any]:
    """The content of ``result.json``, in the form of a replay's; there is no cluster, so no times."""
    nothing: dict[str, None] = dict.fromkeys(f"p{p}" for p in PERCENTILES)
    asked = len(found.encoded.dataset.queries)
    return {
        "complete": True,
        "index": None,
        "version": None,
        "mode": "exact",
        "method": found.setting.debias.method,
        "shift_queries": found.setting.changes == BOTH_SIDES,
        "language_from": str(found.setting.source),
        "detection": _detection(found.told),
        "beta": found.beta,
        "top_k": TOP_K,
        "measures": _means(found.scores),
        "queries": {"asked": asked, **_counts(found.scores)},
        "by_language": {
            language: {"measures": _means(scores), "queries": _counts(scores)}
            for language, scores in by_language(found.scores, found.encoded.languages).items()
        },
        "latency_ms": {"took": nothing, "wall": nothing},
        "errors": 0,
        "warnings": warnings(found),
        "dataset": identity(found.encoded.dataset),
        "fingerprint": found.fingerprint.to_dict(),
        "versions": {
            "opensearch": None,
            "langshift": version("langshift"),
            "ir_measures": version("ir_measures"),
            "encoder": f"{found.fingerprint.encoder} {found.fingerprint.revision}",
        },
        "command": command(),
    }


def warnings(found: Offline) -> list[str]:
    """What a reader of the figures must know, in sentences."""
    notes = [f"{name}: {scores.note}" for name, scores in found.scores.items() if scores.note]
    return [*found.encoded.languages.warnings, *notes]


def _detection(told: Told) -> dict[str, Any] | None:
    """How well the languages by which documents moved were detected; None where nothing was detected for it."""
    if told.source == GIVEN:
        return None
    return {"accuracy": told.accuracy, "documents": told.judged, "unknown": told.unknown}


def _means(scores: Mapping[str, Scores]) -> dict[str, float | None]:
    return {name: found.mean for name, found in scores.items()}


def _counts(scores: Mapping[str, Scores]) -> dict[str, int]:
    return {name: found.queries for name, found in scores.items()}


def write_files(folder: Path, found: Offline, document: Mapping[str, Any], tag: str) -> None:
    """Write the four files, each whole or not at all; those of an earlier evaluation are replaced.

    Args:
        folder: where; made if it is not there.
        found: what was found.
        document: the content of ``result.json``.
        tag: names the run in ``run.trec``.
    """
    _write(folder / RUN, format_run(found.ranked.rankings, tag).encode())
    groups = ({"query": query, "scores": scores} for query, scores in found.ranked.group_scores.items())
    _write(folder / GROUP_SCORES, _lines(groups))
    _write(folder / PER_QUERY, _lines(_per_query(found)))
    write_json(folder / RESULT, document)
    Journal.finish(folder)


def _per_query(found: Offline) -> list[dict[str, Any]]:
    return [
        {
            "query": query.id,
            "language": found.encoded.languages.queries[query.id],
            "measures": {name: scores.per_query.get(query.id) for name, scores in found.scores.items()},
            "hits": len(found.ranked.rankings[query.id]),
            "took_ms": None,
            "wall_ms": None,
            "error": None,
        }
        for query in found.encoded.dataset.queries
    ]


def _lines(rows: Any) -> bytes:  # noqa: ANN401 - any rows of JSON
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def _write(path: Path, content: bytes) -> None:
    with whole(path) as partial:
        partial.write_bytes(content)

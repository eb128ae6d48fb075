"""Runs: what a search answered, as TREC's six columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Ranking = Sequence[tuple[str, float]]
"""Document ids and scores, best first."""


def format_run(rankings: Mapping[str, Ranking], tag: str) -> str:
    """A TREC run: query, Q0, document, rank from 1, score, tag, one line a hit.

    Scores are written in full, so that scoring the file gives the figures of the replay to the
    last digit.

    Args:
        rankings: query id -> hits, best first.
        tag: name of the run; white space in it becomes ``_``.
    """
    tag = "_".join(tag.split())
    return "".join(
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, hits in rankings.items()
        for rank, (document, score) in enumerate(hits, 1)
    )

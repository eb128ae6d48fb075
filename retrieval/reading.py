"""Hits of the cluster's answers as candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langshift.languages import UNDETERMINED
from langshift.plugin.fields import USUAL, Fields, value_at
from langshift.retrieval.exchange import Response
from langshift.retrieval.found import Candidate, Leg


class Pool(NamedTuple):
    """What one leg retrieved.

    Attributes:
        candidates: best first, those that only the favoured documents' search brought at the end.
        unfavoured: how many the others are.
    """

    candidates: Sequence[Candidate]
    unfavoured: int

    @property
    def scores(self) -> list[float]:
        """Of those that the leg retrieved among all documents, best first."""
        return [candidate.score or 0.0 for candidate in self.candidates[: self.unfavoured]]


def candidates(response: Response, leg: str, fields: Fields = USUAL) -> list[Candidate]:
    """The hits of a search by one leg, best first."""
    return [
        _candidate(hit, fields, {leg: Leg(float(hit["_score"]), rank)})
        for rank, hit in enumerate(response["hits"]["hits"], start=1)
    ]


def without_legs(response: Response, fields: Fields = USUAL) -> list[Candidate]:
    """The hits of a search of which nobody knows what its legs said, best first."""
    return [_candidate(hit, fields, {}) for hit in response["hits"]["hits"]]


def sources(responses: Iterable[Response]) -> dict[str, Mapping[str, Any]]:
    """Document -> the fields that it brought."""
    return {hit["_id"]: hit.get("_source", {}) for response in responses for hit in response["hits"]["hits"]}


def pool(leg: str, responses: Iterable[Response], favoured: Iterable[Response] = (), fields: Fields = USUAL) -> Pool:
    """What one leg retrieved, of all shards, ranked.

    Args:
        leg: its name.
        responses: what it retrieved, from one shard or more each.
        favoured: what it retrieved of the favoured documents.
        fields: the index's names of fields.
    """
    return pooled(
        leg,
        (candidate for response in responses for candidate in candidates(response, leg, fields)),
        (candidate for response in favoured for candidate in candidates(response, leg, fields)),
    )


def pooled(leg: str, retrieved: Iterable[Candidate], favoured: Iterable[Candidate] = ()) -> Pool:
    """What one leg retrieved, ranked.

    Args:
        leg: its name.
        retrieved: from one shard or more, each best first.
        favoured: what it retrieved of the favoured documents.
    """
    found = _best_first(retrieved)
    known = {candidate.id for candidate in found}
    more = (candidate for candidate in _best_first(favoured) if candidate.id not in known)
    ranked = [*found, *more]
    placed = [
        # What only the search among the favoured documents brought has no rank among all.
        one._replace(legs={leg: Leg(one.legs[leg].score, place + 1 if place < len(found) else None)})
        for place, one in enumerate(ranked)
    ]
    return Pool(placed, len(found))


def _best_first(found: Iterable[Candidate]) -> list[Candidate]:
    # Of equals the first stays first, as on the server.
    return sorted(found, key=lambda candidate: -(candidate.score or 0.0))


def union(pools: Iterable[Sequence[Candidate]]) -> dict[str, Candidate]:
    """Document -> candidate with all of its legs."""
    found: dict[str, Candidate] = {}
    for candidate in (one for members in pools for one in members):
        legs = found[candidate.id].legs if candidate.id in found else {}
        found[candidate.id] = candidate._replace(legs={**legs, **candidate.legs})
    return found


def _candidate(hit: Mapping[str, Any], fields: Fields, legs: Mapping[str, Leg]) -> Candidate:
    return Candidate(
        id=hit["_id"],
        score=float(hit["_score"]),
        language=_first(hit, fields.language) or UNDETERMINED,
        source=hit.get("_source", {}),
        legs=legs,
    )


def _first(hit: Mapping[str, Any], field: str) -> str | None:
    """A hit's first value of a keyword field, beside the document or in it; None where it has none."""
    value = hit.get("fields", {}).get(field) or value_at(hit.get("_source", {}), field)
    if isinstance(value, list):
        value = value[0] if value else None
    return None if value is None else str(value)

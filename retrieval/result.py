"""The outcome of a search, as users of the library get it and ``--json`` prints it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from langshift.retrieval.found import Anchor
from langshift.retrieval.hit import Hit
from langshift.retrieval.requests import Request
from langshift.retrieval.wanted import Setting


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes:
        index: the version of the index that was searched.
        setting: how.
        language: of the query, as given or detected; ``und`` where unknown.
        shift_queries: whether the query was shifted as documents are, unless it is in the pivot language.
        hits: best first.
        bonus: what was added to the scores of hits in the query's language, by the language preference and by the
            mode anchored, on the scale of the scores; below 0 its amount was added to those of all others.
        anchors: documents that the query was moved by, in the mode anchored.
        compared: how many documents the ranks before and after the shift are among; 0 where nothing was explained.
        notes: sentences on what a searcher should know.
        took: milliseconds that the server says it took, without explaining.
        requests: what was sent to search, in order.
    """

    index: str
    setting: Setting
    language: str
    shift_queries: bool
    hits: tuple[Hit, ...]
    bonus: float
    anchors: tuple[Anchor, ...]
    compared: int
    notes: tuple[str, ...]
    took: float
    requests: tuple[Request, ...]

    def bonus_of(self, hit: Hit) -> float:
        """What was added to the score of a hit for its language."""
        in_language = hit.language == self.language
        return abs(self.bonus) if in_language == (self.bonus > 0) else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without the requests."""
        return {
            "index": self.index,
            **asdict(self.setting),
            "language": self.language,
            "shift_queries": self.shift_queries,
            "hits": [_hit(hit) for hit in self.hits],
            "bonus": self.bonus,
            "anchors": [asdict(anchor) | {"evidence": dict(anchor.evidence)} for anchor in self.anchors],
            "compared": self.compared,
            "notes": list(self.notes),
            "took": self.took,
        }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "id": hit.id,
        "score": hit.score,
        "language": hit.language,
        "title": hit.title,
        "text": hit.text,
        "group": hit.group,
        "legs": {name: leg._asdict() for name, leg in hit.legs.items()},
        "others": [
            {"id": one.id, "score": one.score, "language": one.language, "title": one.title, "text": one.text}
            for one in hit.others
        ],
        "shift": None if hit.shift is None else asdict(hit.shift),
    }

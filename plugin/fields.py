"""Which fields of an index hold what langshift reads and writes; an adopted index has names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Fields:
    """Names of fields, kept in the mapping under ``_meta.langshift_fields`` where they are not the usual ones.

    A name may be a path with dots, as OpenSearch writes them.

    Attributes:
        vector: the shifted vector, a ``knn_vector``.
        language: primary language tag, ``und`` where unknown; a ``keyword``.
        confidence: the detector's posterior.
        stamp: what was done to the vector.
        texts: what a word search looks into, the first is what a hit shows; empty for ``title.<language>`` and
            ``text.<language>``, one pair for each language.
        told: where a document that comes from elsewhere names its language; None for ``language``.
    """

    vector: str = "embedding"
    language: str = "language"
    confidence: str = "language_confidence"
    stamp: str = "shift"
    texts: tuple[str, ...] = ()
    told: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_fields``."""
        return {**asdict(self), "texts": list(self.texts)}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Fields:
        """The fields of an index, from its whole ``_meta``."""
        kept = meta.get("langshift_fields")
        return USUAL if kept is None else cls(**{**kept, "texts": tuple(kept["texts"])})


USUAL = Fields()


def value_at(source: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON
    """What a document holds at a field, also where a part of its name has dots itself; None where nothing is there."""
    if path in source:
        return source[path]
    head, dot, rest = path.partition(".")
    while dot:
        inner = source.get(head)
        if isinstance(inner, Mapping) and (found := value_at(inner, rest)) is not None:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None

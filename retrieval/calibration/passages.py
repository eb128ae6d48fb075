"""Documents drawn from an index, spread over its languages, each with a question that is cut out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.plugin.fields import Fields
from langshift.plugin.versions import LiveIndex
from langshift.retrieval.calibration.cutting import cut
from langshift.retrieval.calibration.spread import drawn
from langshift.retrieval.exchange import Exchange, carry_out
from langshift.retrieval.found import Candidate
from langshift.retrieval.hit import GROUP, group_of, to_hit
from langshift.retrieval.reading import without_legs
from langshift.retrieval.search_gathering import bringing_vectors, brought

# A language with fewer documents is not asked about.
_FEW: Final = 5
_FIELDS: Final = ("title", "text")


class Passage(NamedTuple):
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


def draw_passages(client: OpenSearch, index: LiveIndex, sample: int, window: int) -> list[Passage]:
    """Documents with a vector and a sentence to ask by, the same each time.

    Args:
        client: the cluster.
        index: the index.
        sample: how many at most; every language gets as even a share as it has documents for.
        window: how many documents one request to the index may ask for.
    """
    found: list[Passage] = []
    for language, share in shares(index.counts, sample).items():
        found += carry_out(client, index.index, _draw(index, language, share, window))
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


def _draw(index: LiveIndex, language: str, share: int, window: int) -> Exchange[list[Passage]]:
    fields = index.fields
    clauses = [{"term": {fields.language: language}}, {"exists": {"field": fields.vector}}]
    brings = [*(fields.texts or _FIELDS), GROUP]
    # Some have no sentence to ask by.
    size = min(window, share + share // 2 + _FEW)
    (response,) = yield (bringing_vectors(drawn({"bool": {"filter": clauses}}), size, fields) | {"_source": brings},)
    vectors, made = brought(response), list[Passage]()
    for found in without_legs(response, fields):
        words = cut(text_of(found, fields), language, found.id)
        if found.id in vectors and words is not None:
            vector = vectors[found.id].astype(np.float32)
            made.append(Passage(found.id, language, words, group_of(found.source), vector))
    return made[:share]


def text_of(found: Candidate, fields: Fields) -> str:
    """The words of a document that a question is cut out of."""
    if not fields.texts:
        hit = to_hit(found, fields)
        return hit.text or hit.title
    texts = (to_hit(found, replace(fields, texts=(name,))).text for name in fields.texts)
    return next(filter(None, texts), "")

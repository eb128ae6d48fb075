"""Documents drawn from every language of an index, with their vectors before and after the shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.taken_back import moving
from langshift.plugin.fields import Fields, value_at
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import LiveIndex
from langshift.retrieval import bodies
from langshift.retrieval.calibration.cutting import cut
from langshift.retrieval.calibration.passages import text_of
from langshift.retrieval.calibration.spread import drawn
from langshift.retrieval.exchange import Exchange, Response
from langshift.retrieval.explaining import as_made
from langshift.retrieval.hit import GROUP, group_of
from langshift.retrieval.reading import without_legs

Vector = NDArray[np.float32]

LANGUAGES: Final = 20
DOCUMENTS: Final = 40
_FIELDS: Final = ("title", "text")


class Drawn(NamedTuple):
    """A document of the sample.

    Attributes:
        id: its ``_id``.
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
    made: Vector | None


def most_frequent(counts: Mapping[str, int], most: int = LANGUAGES) -> tuple[str, ...]:
    """The languages with the most documents, at most so many; of equals the first by tag."""
    return tuple(sorted(counts, key=lambda tag: (-counts[tag], tag))[:most])


def draw(
    index: LiveIndex, languages: Sequence[str], shift: IndexShift | None, each: int = DOCUMENTS
) -> Exchange[list[Drawn]]:
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
    brings = [*(fields.texts or _FIELDS), GROUP, fields.vector, fields.stamp]
    responses = yield tuple(
        bodies.body(drawn({"bool": {"filter": _of(language, fields)}}), each, fields, brings) for language in languages
    )
    return [
        one
        for language, response in zip(languages, responses, strict=True)
        for one in _read(response, language, fields, shift)
    ]


def _of(language: str, fields: Fields) -> list[dict[str, Any]]:
    return [{"term": {fields.language: language}}, {"exists": {"field": fields.vector}}]


def _read(response: Response, language: str, fields: Fields, shift: IndexShift | None) -> list[Drawn]:
    made = list[Drawn]()
    for found in without_legs(response, fields):
        vector, stamp = value_at(found.source, fields.vector), value_at(found.source, fields.stamp) or {}
        if vector is None:
            continue
        stored = np.array(vector, np.float32)
        by = moving(stamp)
        words = cut(text_of(found, fields), language, found.id)
        raw = as_made(stored, stamp, by, shift)
        made.append(Drawn(found.id, language, group_of(found.source), words, stored, raw))
    return made

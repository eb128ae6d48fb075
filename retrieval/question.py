"""What a mode is given: the query, how it is asked, the index it is asked of, and what hits are to bring."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from langshift.languages import UNDETERMINED
from langshift.normal_form import normal_form
from langshift.plugin.metadata import FieldNames
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.filters import NO_FILTER, IndexFilter
from langshift.retrieval.request import SearchSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from langshift.debias.encoders.sparse import TokenWeights
    from langshift.plugin.stored_shift import StoredShift

# So little that nothing is lost on any text that was tried, captions asked for in other words among them.
USUAL_STRENGTH: Final = 0.05


@dataclass(frozen=True)
class AnchorModel:
    """What mode ``anchored`` needs to know of an index; kept in its mapping under ``_meta.langshift_anchors``.

    Attributes:
        spread: standard deviation of the cosine of unrelated documents.
        strength: how strongly the query is moved and candidates are given more, from 0, which is exactly dense, to 1.
        calibrated: whether the strength was measured on questions of the index.
        counterpart: how likely it is that a document in another language is there in the searcher's language, too, by
            the index's known translations, 0 to 1; 0 where none are known.
    """

    spread: Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
    strength: Annotated[float, msgspec.Meta(ge=0, le=1)] = USUAL_STRENGTH
    calibrated: bool = False
    counterpart: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        return {"spread": self.spread, "strength": self.strength, "counterpart": self.counterpart}


@dataclass(frozen=True)
class SearchContext:
    """What is searched.

    Attributes:
        index: the index.
        fuses: whether the cluster has neural-search, whose ``hybrid`` query puts two legs together; where not, or
            where the scores of the legs are wanted, the client does it, with the same result.
        trust: what ``anchored`` needs to know of the index; needed by that mode alone.
        shift: of the index; None where it has neither gamma nor own. Needed by ``anchored`` and by ``features``.
        legs: whether ``anchored`` is to tell what each leg says of the hits, which costs it a step.
        native: whether the cluster has our plugin, whose query carries out ``dense`` with a preference in one search;
            where not, that is two searches, with the same result.
    """

    index: IndexInfo
    fuses: bool = False
    trust: AnchorModel | None = None
    shift: StoredShift | None = None
    legs: bool = False
    native: bool = False


class SearchQuery(NamedTuple):
    """One query.

    Attributes:
        words: as the searcher wrote them.
        language: primary language tag, ``und`` where unknown.
        vector: the vector to search with, shape (dimension,), float32; None where the setting needs none.
        weights: the weights of tokens to search with; likewise.
    """

    words: str
    language: str = UNDETERMINED
    vector: NDArray[np.float32] | None = None
    weights: TokenWeights | None = None


# The approximate search looks at no fewer candidates than this: fewer cost recall, not time.
LEAST_CANDIDATES: Final = 100

#: Which fields hits bring: all but the vector, none, or those named.
Source = bool | Sequence[str]


@dataclass(frozen=True)
class SearchRequest:
    """One search: what is asked, how, of what, and what it is to bring.

    Attributes:
        question: what is asked; it has a vector where ``setting.needs_vector``.
        setting: how to search; in any mode but ``auto``, which stands for one of the others.
        target: what is searched.
        size: how many hits, 1 to 10,000.
        depth: how many documents each leg brings, or each shard chooses the hits from; ``search.search`` makes it
            ``size`` where that is more.
        filters: what hits must match.
        source: which fields hits bring: True for all but the vector, False for none.
        passages: in an index of chunks, how many further chunks of each hit are wanted.
        collapses: whether, in an index of chunks, the cluster brings the best chunk of each document alone. Of chunks
            that name no document it brings only one.
        sort: clauses by which hits are sorted, in ``lexical`` all that match, instead of by score.
        start: the place of the first hit in the ranking that pages are cut from; None for no page.
        fields: the index's names of fields.
        preference: the language preference, in units of cosine: none where the question's language is not known.
        favoured: the part of the documents that the preference favours: ``own`` or ``others``; None where it favours
            none.
        has_own: whether the index has documents in the question's language.
    """

    question: SearchQuery
    setting: SearchSettings
    target: SearchContext
    size: int = 10
    depth: int = LEAST_CANDIDATES
    filters: IndexFilter = NO_FILTER
    source: Source = True
    passages: int = 0
    collapses: bool = True
    sort: tuple[Mapping[str, Any], ...] = ()
    start: int | None = None
    fields: FieldNames = field(init=False, repr=False, compare=False)
    preference: float = field(init=False, repr=False, compare=False)
    favoured: str | None = field(init=False, repr=False, compare=False)
    has_own: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Ask for words in the form in which documents are indexed and encoded, and work out what follows once."""
        question, setting, index = self.question, self.setting, self.target.index
        known = question.language != UNDETERMINED
        preference = setting.prefer_language - setting.spread if known else 0.0
        made = {
            "question": question._replace(words=normal_form(question.words)),
            "fields": index.fields,
            "preference": preference,
            "favoured": ("own" if preference > 0 else "others") if preference else None,
            "has_own": known and index.counts.get(question.language, 0) > 0,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)


class SearchOptions(NamedTuple):
    """How an index is opened for searching.

    Attributes:
        encoder: where the index's encoder is now; None for where it was when the index was made.
    """

    encoder: str | None = None


USUAL_OPTIONS = SearchOptions()

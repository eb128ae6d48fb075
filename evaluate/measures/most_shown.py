"""Whether one language crowds the others out: the one that is shown most, beside its share of what is relevant."""

from collections import Counter
from typing import NamedTuple

from langshift.evaluate.measures.base import Measure, MeasureCell, MeasureFamily, MeasureTable, RankedMaterial, Scores
from langshift.languages import UNDETERMINED
from langshift.wording import format_score

#: What a language's share of the hits stands beside: its share of the relevant documents, or of all documents.
RELEVANT, DOCUMENTS = "what is relevant", "the documents"
_SHARE_OF = "share of"
#: A language crowds others out that has so many times its fair share, so much more, and so much more than before.
FACTOR, EXCESS, RISE = 2.0, 0.1, 0.05


def most_shown_share(measure: Measure, ranked: RankedMaterial) -> Scores:
    """MostShown@k: the share that the language shown most has of all first k documents, over all queries.

    The table has each language's share of these hits, the largest first, beside its share of what is
    relevant: of all pairs of a query and a relevant document. Where nothing is judged relevant, its
    share of the documents stands there. A language that has far more of the hits than of what is
    relevant crowds the others out, whatever the queries ask. Hits of unknown language count among the
    hits and are no language; queries without answer are left out.

    Direction: report. Source: langshift, by the shares of LAURA, section 2.1, over all hits.
    """
    tops = [top for query in ranked.queries if (top := ranked.top(query, measure.depth))]
    hits = Counter(ranked.language(document) or UNDETERMINED for top in tops for document in top)
    relevant = (language for query in ranked.queries for language in ranked.languages_of_relevant(query).values())
    fair, beside = Counter(relevant), RELEVANT
    if not fair:
        held = ranked.material.held or Counter(filter(None, ranked.material.documents.values()))
        fair, beside = Counter(held), DOCUMENTS
    total, whole, shown = hits.total(), fair.total(), f"the first {measure.depth} hits"
    languages = sorted((hits.keys() | fair.keys()) - {UNDETERMINED}, key=lambda tag: (-hits[tag], tag))
    cells = {
        tag: {shown: MeasureCell(hits[tag] / total, len(tops))}
        | ({beside: MeasureCell(fair[tag] / whole, len(tops))} if whole else {})
        for tag in languages
        if total
    }
    first = languages[0] if cells and hits[languages[0]] else None
    return Scores(
        {},
        len(ranked.queries) - len(tops),
        table=MeasureTable("document language", _SHARE_OF, cells),
        pooled=MeasureCell(cells[first][shown].mean if first else None, len(tops)),
        again=lambda queries: most_shown_share(measure, ranked.only(queries)),
    )


MOST_SHOWN = MeasureFamily(
    "MostShown@k", "report", "langshift, by the shares of LAURA, section 2.1, over all hits", most_shown_share
)
#: What is measured where nobody says.
MOST_SHOWN_20 = "MostShown@20"


class LanguageShare(NamedTuple):
    """One language among the hits.

    Attributes:
        language: its tag.
        shown: its share of the hits.
        fair: its share of what is relevant, or of the documents; None where no language of these is known.
        beside: which of the two that is.
        hits: which hits these are, ``the first 20 hits``.
    """

    language: str
    shown: float
    fair: float | None
    beside: str
    hits: str

    @property
    def sentence(self) -> str:
        """``zh has 35% of the first 20 hits and 12% of what is relevant``."""
        fair = "" if self.fair is None else f" and {self.fair:.0%} of {self.beside}"
        return f"{self.language} has {self.shown:.0%} of {self.hits}{fair}"


def language_shares(scores: Scores) -> list[LanguageShare]:
    """The languages of MostShown's table, the one that is shown most first; empty of any other measure."""
    if scores.table is None or scores.table.columns != _SHARE_OF:
        return []
    found = []
    for tag, row in scores.cells.items():
        (hits, shown), *rest = row.items()
        beside, fair = rest[0] if rest else (RELEVANT, MeasureCell(None, 0))
        found.append(LanguageShare(tag, shown.mean or 0.0, fair.mean, beside, hits))
    return found


def most_shown(scores: Scores) -> LanguageShare | None:
    """The language that is shown most; None where there is none, and of any other measure."""
    return next((one for one in language_shares(scores) if one.shown), None)


def format_figure(scores: Scores, digits: int = 4) -> str:
    """A measure's figure as tables have it, ``.8136``; that of MostShown with its language, ``zh .3541``."""
    figure, most = format_score(scores.mean, digits), most_shown(scores)
    return f"{most.language} {figure}" if most else figure


def crowding(before: Scores, after: Scores) -> str:
    """Say which language a change lets crowd the others out; empty where it lets none.

    Args:
        before: MostShown@20 of the earlier side.
        after: the same of the later one.
    """
    known = {one.language: one.shown for one in language_shares(before)}
    for one in language_shares(after):
        rise = one.shown - known.get(one.language, 0.0)
        if one.fair is not None and one.shown >= max(FACTOR * one.fair, one.fair + EXCESS) and rise >= RISE:
            was = f"{known.get(one.language, 0.0):.0%}"
            return f"{one.language} crowds the other languages out: {one.sentence}, where it had {was} of the hits"
    return ""

"""Translation groups of hits, as far as they need no cluster."""

import pytest
from plain_index import PLAIN

from langshift.plugin.metadata import USUAL
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.hits import GROUP, RankedHits, ScoredDoc, group_of
from langshift.retrieval.modes import one_per_group
from langshift.retrieval.settings import SearchContext, SearchQuery

FULL = (
    "The groups found have 10,000 documents or more beside those that the search itself found: what is more than that "
    "is not shown."
)


@pytest.mark.parametrize(
    ("source", "group"),
    [({"group": "g"}, "g"), ({"group": ["g", "h"]}, "g"), ({"group": 3}, "3"), ({"group": []}, None), ({}, None)],
)
def test_a_document_is_of_the_first_group_that_it_names(source, group):
    assert group_of(source) == group


@pytest.mark.parametrize(("count", "notes"), [(9_999, ()), (10_000, (FULL,))])
def test_where_not_all_documents_of_the_groups_can_be_shown_a_note_says_so(count, notes):
    def retrieve(*_):
        yield from ()
        return RankedHits((ScoredDoc("a", 1.0, "de", {GROUP: "g"}),))

    def rescore(_, ids):
        yield from ()
        return dict.fromkeys(ids, 0.5)

    target = SearchContext(
        IndexInfo("news", "news-v0001", PLAIN, USUAL, ("de",), 20_000, 1, {"de": 20_000}, frozenset())
    )
    exchange = one_per_group(retrieve, rescore, SearchQuery("x", "de"), target, size=1, filters={}, source=False)
    (members,) = next(exchange)
    assert members["size"] == 10_000
    hits = [{"_id": f"d{i}", "_score": 0.0, "_source": {GROUP: "g"}} for i in range(count)]
    with pytest.raises(StopIteration) as end:
        exchange.send([{"hits": {"hits": hits}}])
    assert end.value.value.notes == notes
    assert len(end.value.value.hits[0].others) == count

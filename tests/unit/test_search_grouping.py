"""Translation groups of hits, as far as they need no cluster."""

import numpy as np
import pytest
from search_request import request_for

from langshift.plugin.metadata import USUAL
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.result import group_of
from langshift.retrieval.search import search

FULL = (
    "The groups found have 10,000 or more documents in addition to those that the search itself found: the rest is "
    "not shown."
)


@pytest.mark.parametrize(
    ("source", "group"),
    [({"group": "g"}, "g"), ({"group": ["g", "h"]}, "g"), ({"group": 3}, "3"), ({"group": []}, None), ({}, None)],
)
def test_a_document_is_of_the_first_group_that_it_names(source, group):
    assert group_of(source, USUAL) == group


@pytest.mark.parametrize(("count", "notes"), [(9_999, ()), (10_000, (FULL,))])
def test_where_not_all_documents_of_the_groups_can_be_shown_a_note_says_so(count, notes):
    request = request_for(
        np.ones(2, np.float32), "x", "de", ["de"], SearchSettings("dense", one_per_group=True), size=1, source=False
    )
    exchange = search(request)
    next(exchange)
    found = {"_id": "a", "_score": 1.0, "_source": {"group": "g"}, "fields": {"language": ["de"]}}
    (members,) = exchange.send([answered(found)])
    assert members["size"] == 10_000
    hits = [{"_id": f"d{i}", "_score": 0.0, "_source": {"group": "g"}} for i in range(count)]
    (scores,) = exchange.send([answered(*hits)])
    assert scores["size"] == count
    with pytest.raises(StopIteration) as end:
        exchange.send([answered(*(hit | {"_score": 0.5} for hit in hits))])
    assert end.value.value.notes == notes
    assert len(end.value.value.hits[0].others) == count


def answered(*hits):
    return {"took": 1, "hits": {"hits": list(hits)}}

"""What clients may filter by, at the service and in the console's addresses: the rest is refused with a sentence."""

import json
import re

import pytest
from hostile_filters import REFUSED, nested

from langshift.errors import UsageError
from langshift.retrieval.filters import ClientFilters
from langshift.retrieval.request import SearchArguments, read_arguments
from langshift.web.search.state import parse_state

ALLOWED = {
    "term": {"term": {"year": 1990}},
    "term in full": {"term": {"year": {"value": 1990, "boost": 2}}},
    "terms": {"terms": {"year": [1990, 1991], "boost": 1.0}},
    "most values": {"terms": {"year": list(range(9_990))}},
    "range": {"range": {"published": {"gte": "now-1y/d", "format": "yyyy", "time_zone": "+01:00"}}},
    "exists": {"exists": {"field": "meta.author"}},
    "ids": {"ids": {"values": ["1", "2"]}},
    "prefix": {"prefix": {"group": "ti"}},
    "wildcard": {"wildcard": {"isbn": {"value": "978-3*-?", "case_insensitive": True}}},
    "words": {"match": {"title": {"query": "moon", "operator": "and"}}},
    "phrase": {"match_phrase": {"title": "the moon"}},
    "all": {"match_all": {}},
    "bool": {
        "bool": {"must_not": {"term": {"year": 1}}, "should": [{"exists": {"field": "a"}}, {"ids": {"values": []}}]}
    },
    "nested": {"nested": {"path": "authors", "query": {"term": {"authors.name": "x"}}, "score_mode": "none"}},
    "constant": {"constant_score": {"filter": {"term": {"year": 1}}, "boost": 1}},
    "deepest": nested(10),
    "a field of that name": {"term": {"boost": {"value": 1}}},
    "most": {"bool": {"should": [{"prefix": {"title": str(n)}} for n in range(20)]}},
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_a_client_may_filter_by(case):
    ClientFilters({"language": ["de", "th"], "year": {"gte": 1990, "not": [1995]}}, [ALLOWED[case]])
    if len(json.dumps(ALLOWED[case])) < 10_000:
        parse_state([("q", "x"), ("filter", json.dumps(ALLOWED[case]))])


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_client_may_not_filter_by(case):
    query, said = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        ClientFilters({}, query)
    assert said in str(refused.value)
    with pytest.raises(UsageError) as by_address:
        parse_state([("q", "x"), ("filter", json.dumps(query))])
    # Of what is deeper than JSON may be, an address says that first.
    assert str(by_address.value) == str(refused.value) or (
        case == "deeper" and "nested too deeply" in str(by_address.value)
    )


def test_all_filters_of_a_request_are_counted_together():
    ClientFilters({str(n): n for n in range(50)}, [ALLOWED["term"]] * 50)
    with pytest.raises(UsageError, match="more than 100 conditions"):
        ClientFilters({str(n): n for n in range(50)}, [ALLOWED["term"]] * 51)
    with pytest.raises(UsageError, match="more than 10,000 values"):
        ClientFilters({"a": list(range(6_000)), "b": {"not": list(range(6_000))}})
    with pytest.raises(UsageError, match="more than 1,000 characters"):
        ClientFilters({"a": {"in": ["b", "c" * 1001]}})


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("fields", ["meta.*", "title", "*.year"], ["title", [1], 3, ["*a*"], ["a"] * 101, ["a" * 2001]]),
        ("sort", ["year"] * 100, [["year"] * 5000, 3, [""]]),
    ],
)
def test_names_of_fields_are_few_and_have_few_wildcards(name, good, bad):
    assert getattr(read_arguments(SearchArguments, **{name: good}), name) == good
    for one in bad:
        with pytest.raises(UsageError) as refused:
            read_arguments(SearchArguments, **{name: one})
        said = str(refused.value)
        assert re.fullmatch(rf"{name} is .{{,62}}, but it must be .*names.*", said)

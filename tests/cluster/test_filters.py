"""Filters, sorts and facets: in every mode what filtering, sorting and counting all documents in Python gives."""

from collections import Counter

import pytest
from filtered_index import QUERY, FilteredIndex
from searched_index import WITHOUT_WEIGHTS

from langshift.errors import UsageError
from langshift.retrieval.filters import read_filters
from langshift.retrieval.request import SearchSettings


@pytest.fixture(scope="module", params=[False, True], ids=["documents", "chunks"])
def index(client, request):
    made = FilteredIndex(client, chunked=request.param)
    yield made
    made.drop()


def values(document, name):
    found = document.get(name, [])
    return found if isinstance(found, list) else [found]


# In Python, as options, what a document must be, and which languages.
FILTERS = {
    "range": (
        {"year": {"gte": 1990, "lt": 2000}},
        ["year>=1990", "year<2000"],
        lambda d: 1990 <= d.get("year", 0) < 2000,
    ),
    "float": ({"price": {"gt": 3.5}}, ["price>3.5"], lambda d: d["price"] > 3.5),
    "date": (
        {"published": {"gte": "2015", "lte": "2018-05-15"}},
        ["published>=2015", "published<=2018-05-15"],
        lambda d: "2015" <= d["published"] <= "2018-05-15",
    ),
    "arithmetic": (
        {"published": {"lt": "2015-03-15||-2y/y"}},
        ["published<2015-03-15||-2y/y"],
        lambda d: d["published"] < "2013",
    ),
    "now": ({"published": {"lte": "now+1d/d"}}, ["published<=now+1d/d"], lambda _: True),
    "view of dates": (
        {"printed": {"gt": "2015-03-15||-2y/y"}},
        ["printed>2015-03-15||-2y/y"],
        lambda d: d["printed"] >= "2014",
    ),
    "several": ({"source": ["s1", "s5"]}, ["source=s1,s5"], lambda d: {"s1", "s5"} & set(values(d, "source"))),
    "alternatives": ({"year": ["1985", 1999]}, ["year=1985", "year=1999"], lambda d: d.get("year") in {1985, 1999}),
    "not": (
        {"source": {"not": ["s1", "s2"]}},
        ["source!=s1,s2"],
        lambda d: not {"s1", "s2"} & set(values(d, "source")),
    ),
    "exists": ({"isbn": {"exists": True}}, ["isbn=*"], lambda d: "isbn" in d),
    "missing": ({"isbn": {"exists": False}}, ["isbn!=*"], lambda d: "isbn" not in d),
    "boolean": ({"used": True}, ["used=true"], lambda d: d["used"]),
    "view": ({"section": "Arts, culture"}, ['section="Arts, culture"'], lambda d: d["section"] == "Arts, culture"),
    "both": (
        {"section": ["Science"], "used": {"not": False}},
        ["section=Science", "used!=false"],
        lambda d: d["section"] == "Science" and d["used"],
    ),
    "nothing": ({"year": 1}, ["year=1"], lambda _: False),
}


@pytest.mark.parametrize("kind", FILTERS)
def test_a_filter_finds_what_python_finds(index, kind):
    given, written, holds = FILTERS[kind]
    assert read_filters(written).dsl_filter == []
    for mode in WITHOUT_WEIGHTS[1:]:
        # As Python has them and as options have them.
        filters = given if mode in {"dense", "lexical"} else read_filters(written).filters
        found = index.searcher.search(QUERY, SearchSettings(mode), size=1000, filters=filters, language="en")
        ids = [hit.id for hit in found.hits]
        assert len(set(ids)) == len(ids)
        assert set(ids) == index.expected(mode, index.matching(holds)), mode
        if mode == "dense":
            assert ids == list(index.cosines(index.matching(holds)))


@pytest.mark.parametrize("mode", WITHOUT_WEIGHTS[1:])
def test_languages_and_queries_of_ones_own(index, mode):
    def ids(**how):
        return {
            hit.id for hit in index.searcher.search(QUERY, SearchSettings(mode), size=1000, language="en", **how).hits
        }

    def expected(holds, languages):
        return index.expected(mode, index.matching(holds, languages))

    assert ids(filters={"language": ["DE-at", "th"]}) == expected(lambda _: True, {"de", "th"})
    assert ids(filters={"language": {"not": "en"}}) == expected(lambda _: True, {"de", "th"})
    prefix = {"prefix": {"isbn": "978-1"}}
    assert ids(dsl_filter=prefix) == expected(lambda d: d.get("isbn", "").startswith("978-1"), None)
    either = {"bool": {"should": [prefix, {"range": {"year": {"gte": 2010}}}]}}
    assert ids(dsl_filter=[either, {"term": {"used": True}}], filters={"language": "en"}) == expected(
        lambda d: d["used"] and (d.get("isbn", "").startswith("978-1") or d.get("year", 0) >= 2010), {"en"}
    )


@pytest.mark.parametrize(("field", "order"), [("year", "asc"), ("printed", "desc"), ("section", "desc")])
def test_words_are_sorted_whole_and_other_modes_as_far_as_they_found(index, field, order):
    def sorted_in_python(ids):
        key = {name: index.documents[name].get(field) for name in ids}
        there = sorted(
            (name for name in ids if key[name] is not None), key=lambda one: key[one], reverse=order == "desc"
        )
        return [key[name] for name in (*there, *(name for name in ids if key[name] is None))]

    def of(found):
        return [index.documents[hit.id].get(field) for hit in found.hits]

    sort = f"{field}:{order}"
    found = index.searcher.search(QUERY, SearchSettings("lexical"), size=15, sort=sort, language="en")
    everything = index.expected("lexical", index.matching(lambda _: True))
    assert (found.sorted, found.sorted_count) == ("all", None)
    assert of(found) == sorted_in_python(everything)[:15]
    for mode in ("dense", "hybrid", "balanced", "anchored"):
        plain = index.searcher.search(QUERY, SearchSettings(mode), size=15, language="en")
        found = index.searcher.search(QUERY, SearchSettings(mode), size=15, sort=[sort], language="en")
        assert (found.sorted, found.sorted_count) == ("found", len(plain.hits))
        assert {hit.id for hit in found.hits} == {hit.id for hit in plain.hits}
        assert of(found) == sorted_in_python([hit.id for hit in plain.hits])
        assert all(hit.text for hit in found.hits)


def test_equal_values_stay_in_the_order_of_the_ranking(index):
    plain = [hit.id for hit in index.searcher.search(QUERY, SearchSettings("dense"), size=40).hits]
    found = index.searcher.search(QUERY, SearchSettings("dense"), size=40, sort=["used:desc", "section"]).hits
    key = {name: (not index.documents[name]["used"], index.documents[name]["section"]) for name in plain}
    assert [hit.id for hit in found] == sorted(plain, key=lambda name: key[name])


@pytest.mark.parametrize("field", ["language", "year", "source", "section", "used", "isbn", "shelf[row]", "from>to"])
def test_facets_count_documents(index, field):
    for filters, holds in (({}, lambda _: True), ({"year": {"gte": 1990}}, lambda d: d.get("year", 0) >= 1990)):
        found = index.searcher.search(QUERY, size=1, filters=filters, facets=[field]).facets[field]
        entries = index.matching(holds)
        if field == "language":
            pairs = {(index.entries[entry][0], index.entries[entry][1]) for entry in entries}
        else:
            names = {index.entries[entry][0] for entry in entries}
            pairs = {(name, value) for name in names for value in values(index.documents[name], field)}
        counted = Counter(value for _, value in pairs)
        told = {value.value: value.count for value in found.values}
        expected = {str(v).lower() if field == "used" else v: n for v, n in counted.items()}
        best = sorted(expected.values(), reverse=True)[:10]
        assert [value.count for value in found.values] == best
        assert told.items() <= expected.items()
        if field not in {"source", "language"} or not index.chunked:
            assert found.other == sum(counted.values()) - sum(best)


NO_VALUES = "holds words, not values: name a field of type keyword, or search for its words"
NO_DOC_VALUES = "of type keyword and keeps no doc values: map it with doc_values, or name another field."
REFUSED = [
    (
        {"filters": {"colour": "red"}},
        "has no field 'colour': use language, group or another field that its documents came with.",
    ),
    (
        {"filters": {"abstract": "x"}},
        f"cannot filter by its field 'abstract', which is of type text and {NO_VALUES}, or filter by OpenSearch's own "
        "DSL, such as {'match_phrase': {'abstract': '…'}}.",
    ),
    (
        {"filters": {"embedding": 1}},
        "cannot filter by its field 'embedding', which is of type knn_vector and has no values: name a field inside "
        "it, or another one.",
    ),
    (
        {"filters": {"isbn": {"gte": "now-1d"}}},
        "has no dates in its field 'isbn', which is of type keyword: load the index anew with --date-field isbn.",
    ),
    ({"sort": "abstract"}, f"cannot sort by its field 'abstract', which is of type text and {NO_VALUES}."),
    ({"sort": "hidden:desc"}, f"cannot sort by its field 'hidden', which is {NO_DOC_VALUES}"),
    ({"facets": ["hidden"]}, f"cannot count by its field 'hidden', which is {NO_DOC_VALUES}"),
]


def test_what_a_field_cannot_do_is_refused(index):
    for how, message in REFUSED:
        with pytest.raises(UsageError) as refused:
            index.searcher.search(QUERY, **how)
        assert str(refused.value) == f"Index {index.name} {message}"


def test_filters_in_writing_are_refused():
    for texts, message in (
        (["year"], "A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not 'year'."),
        (["year>1", "year>2"], "The filter year>2 contradicts or repeats another one by year: give one of them."),
        (["isbn=*", "isbn!=*"], "The filter isbn!=* contradicts or repeats another one by isbn: give one of them."),
        (
            ['author="Doe, J.'],
            'The filter author="Doe, J. has an empty value or a quotation mark too few: separate values by commas, and '
            'write a value with a comma as "a, b".',
        ),
        (['{"term"'], 'The filter {"term" is not JSON: unexpected end of data: line 1 column 8 (char 7).'),
    ):
        with pytest.raises(UsageError) as refused:
            read_filters(texts)
        assert str(refused.value) == message


@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_values_that_do_not_fit_their_field_are_named(index, mode):
    def refused(**how):
        with pytest.raises(UsageError) as error:
            index.searcher.search(QUERY, SearchSettings(mode), **how)
        return str(error.value)

    assert refused(filters={"section": "Science", "year": "soon"}).startswith(
        "The filter year=soon does not fit its field"
    )
    assert refused(filters={"published": {"gte": "soon"}}).startswith(
        "The filter published>=soon does not fit its field"
    )
    assert refused(filters={"used": "perhaps"}).startswith("The filter used=perhaps does not fit its field")
    assert refused(dsl_filter={"prefx": {}}).startswith('The filter {"prefx":{}} is no query that the cluster takes: ')

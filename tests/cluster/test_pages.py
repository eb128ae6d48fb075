"""Pages at a point in time: one ranking, of which no page repeats or skips a hit, also while others write."""

import pytest
from filtered_index import QUERY, FilteredIndex

from langshift.errors import UsageError
from langshift.retrieval.request import SearchSettings

SIZE = 9
SETTINGS = [
    SearchSettings("dense"),
    SearchSettings("lexical"),
    SearchSettings("hybrid"),
    SearchSettings("hybrid", spread=0.1, fusion="rrf"),
    SearchSettings("balanced"),
    SearchSettings("anchored"),
    SearchSettings("dense", one_per_group=True),
    SearchSettings("lexical", rerank="features"),
]
FILTERS = {"year": {"gte": 1985, "lt": 2018}, "source": {"not": "s4"}}


def holds(document):
    sources = document["source"]
    return 1985 <= document.get("year", 0) < 2018 and "s4" not in (sources if isinstance(sources, list) else [sources])


@pytest.fixture(scope="module", params=[False, True], ids=["documents", "chunks"])
def index(client, request):
    made = FilteredIndex(client, chunked=request.param)
    yield made
    made.drop()


def expected_documents(index, setting):
    """What a ranking holds of what matches the filters; None where Python cannot tell it."""
    if setting.rerank or (setting.mode == "balanced" and setting.preference):
        return None
    return index.expected(setting.mode, index.matching(holds))


def test_no_page_repeats_or_skips_a_hit_while_others_write(index):
    how = {"language": "en", "filters": FILTERS}
    rankings = [index.searcher.search(QUERY, setting, size=1000, from_=0, **how) for setting in SETTINGS]
    pages = [[index.searcher.search(QUERY, one, size=SIZE, from_=0, facets="section", **how)] for one in SETTINGS]
    for page in range(1, 5):
        # Another client deletes, and writes what would be found.
        index.write(range(1000 + 40 * page, 1040 + 40 * page), known=False)
        index.delete(sorted(index.entries)[page::5])
        for setting, found in zip(SETTINGS, pages, strict=True):
            if page * SIZE < found[0].depth:
                more = {"from_": page * SIZE, "point_in_time": found[0].point_in_time}
                found.append(index.searcher.search(QUERY, setting, size=SIZE, facets="section", **more, **how))
    for setting, whole, found in zip(SETTINGS, rankings, pages, strict=True):
        hits = [hit for one in found for hit in one.hits]
        assert [hit.id for hit in hits] == [hit.id for hit in whole.hits[: 5 * SIZE]], setting
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in whole.hits[: 5 * SIZE]])
        assert all(hit.text and hit.source for hit in hits)
        assert {one.depth for one in found} == {whole.depth} == {len(whole.hits)}
        # Facets, too, are of the point in time.
        assert all(one.facets == found[0].facets for one in found)
        ranked = {hit.id for hit in whole.hits} | {one.id for hit in whole.hits for one in hit.others}
        assert (expected_documents(index, setting) or ranked) == ranked
    now = index.searcher.search(QUERY, SearchSettings("dense"), size=1000, **how)
    assert {hit.id for hit in now.hits} != {hit.id for hit in rankings[0].hits}
    assert [hit.id for hit in rankings[0].hits] == list(index.cosines(index.matching(holds)))


@pytest.mark.parametrize("mode", ["lexical", "dense"])
def test_pages_of_what_is_sorted(index, mode):
    def page(start, **more):
        setting = SearchSettings(mode)
        return index.searcher.search(QUERY, setting, size=SIZE, from_=start, sort=["year:desc"], **more)

    first = page(0)
    found = [first, *(page(SIZE * n, point_in_time=first.point_in_time) for n in range(1, 5))]
    hits = [hit for one in found for hit in one.hits]
    years = [hit.source.get("year", 0) for hit in hits]
    assert len({hit.id for hit in hits}) == len(hits) == 5 * SIZE
    assert years == sorted(years, reverse=True)
    scope = ("all", None) if mode == "lexical" else ("found", first.depth)
    assert {(one.sorted, one.sorted_count) for one in found} == {scope}


def test_what_is_no_page_is_refused(client, index):
    def refused(kind, **how):
        with pytest.raises(kind) as error:
            index.searcher.search(QUERY, SearchSettings("dense"), size=SIZE, **how)
        return str(error.value)

    ranked = index.searcher.search(QUERY, from_=0)
    assert refused(UsageError, from_=1000) == (
        "from_ is 1000, but it must be a whole number from 0 to 999: pages are cut from the best 1,000 hits, so "
        "filter, or use other words, to find what is below."
    )
    assert refused(UsageError, from_=600, point_in_time=ranked.point_in_time) == (
        f"The ranking ends after {ranked.depth} hits, so there is no page that begins at 600."
    )
    assert refused(UsageError, point_in_time=ranked.point_in_time) == ("point_in_time needs from_.")
    other = client.create_pit(index="langshift-test-*", params={"keep_alive": "1m"})["pit_id"]
    client.delete_pit(body={"pit_id": [other, ranked.point_in_time]})
    over = (
        "The point in time has expired, or is not one of this cluster's: ask for the first page again, without a point "
        "in time."
    )
    assert refused(UsageError, from_=0, point_in_time=ranked.point_in_time) == over
    assert refused(UsageError, from_=0, point_in_time="nonsense") == over

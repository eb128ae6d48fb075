"""Under document-level security the plugin's query searches as if there were the visible documents alone."""

import json

import pytest
from filtered_index import ENCODER, WORDS, FilteredIndex, drawn_filters, questions
from native_agreement import Agreement, query_of
from secured_cluster import documented_roles

from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import SearchSettings

SEARCHES = 40
# The spread is that of all that is visible, and of no sample, which would be another one in another index.
COUNT = 100
# What a user may see, of one role or of two: by terms, or by terms that are looked up in another index, which the
# security plugin puts into the request itself.
RESTRICTIONS = {
    "terms": [{"terms": {"source": ["s1", "s2"]}}],
    "two roles": [{"terms": {"source": ["s1", "s2"]}}, {"term": {"used": True}}],
    "a lookup": [{"terms": {"source": {"index": "lookup", "id": "1", "path": "sources"}}}],
}
# Bodies in which the security plugin's own addition to scores, one for each role, or the order of documents decides.
RANKED_BY_OTHERS = {"of several", "named", "scored", "significant", "sorted", "after", "rescored"}
FORMS = {"whole": False, "chunked": True}


def visible(restriction):
    """The restriction, as a query that looks nothing up."""
    known = [RESTRICTIONS["terms"][0] if restriction == "a lookup" else one for one in RESTRICTIONS[restriction]]
    return {"bool": {"should": known, "minimum_should_match": 1}}


class Restricted:
    """An index, one of its visible documents alone, and clients that may see these and all.

    Args:
        secured: the cluster.
        administrator: its client.
        restriction: the name of one.
    """

    def __init__(self, secured, administrator, restriction, *, chunked, shards):
        self.administrator, self.restriction = administrator, restriction
        self.whole = FilteredIndex(administrator, chunked=chunked, count=COUNT, shards=shards)
        self.version = f"{self.whole.name}-v0001"
        self.alone = f"{self.whole.name}-alone"
        settings = {"index": {"knn": True, "number_of_shards": shards, "number_of_replicas": 0}}
        mappings = administrator.indices.get_mapping(index=self.version)[self.version]["mappings"]
        administrator.indices.create(index=self.alone, body={"settings": settings, "mappings": mappings})
        seen = {"query": visible(restriction), "size": 1000}
        lines = []
        for hit in administrator.search(index=self.version, body=seen)["hits"]["hits"]:
            lines += [{"index": {"_id": hit["_id"]}}, hit["_source"]]
        administrator.bulk(index=self.alone, body="".join(f"{json.dumps(one)}\n" for one in lines), refresh=True)
        administrator.index(index="lookup", id="1", body={"sources": ["s1", "s2"]}, refresh=True)
        self.user, *others = [secured.user_of(self._role(one)) for one in RESTRICTIONS[restriction]]
        secured.set_user(self.user, [self.user, *others])
        self.client = secured.client(self.user)

    def _role(self, query):
        role = documented_roles(self.whole.name)["searching"]
        role["index_permissions"][0]["dls"] = json.dumps(query)
        return role

    def hide(self, word):
        """Write all hidden documents anew: of this word alone, in groups of visible ones, beside the query."""
        hidden = {"query": {"bool": {"must_not": visible(self.restriction)}}, "size": 1000}
        lines = []
        for hit in self.administrator.search(index=self.version, body=hidden)["hits"]["hits"]:
            source = hit["_source"] | {"language": "en", "group": "g1", "text": {"en": f"{word} " * 30}, "isbn": word}
            source["embedding"] = ENCODER.encode_queries([WORDS[0]])[0].tolist()
            lines += [{"index": {"_id": hit["_id"]}}, source]
        self.administrator.bulk(index=self.version, body="".join(f"{json.dumps(one)}\n" for one in lines), refresh=True)


@pytest.fixture(scope="module", params=[("whole", 1), ("chunked", 3)], ids=str)
def shape(request):
    return request.param


@pytest.fixture(scope="module", params=RESTRICTIONS)
def restricted(request, secured, administrator, shape):
    form, shards = shape
    made = Restricted(secured, administrator, request.param, chunked=FORMS[form], shards=shards)
    yield made
    made.client.close()
    administrator.indices.delete(index=f"{made.version},{made.alone},lookup")


def test_it_finds_what_the_visible_documents_alone_would_give(restricted):
    agreement = Agreement(
        restricted.administrator, restricted.alone, questions(), drawn_filters, opened={"toy": ENCODER}
    )
    agreement.compare(SEARCHES, asked=(restricted.client, restricted.whole.name))
    assert agreement.apart == []
    assert agreement.counts["all"] > SEARCHES / 2


def bodies():
    """Searches with the query in many places."""
    question = SearchQuery("sun moon", "en", ENCODER.encode_queries(["sun moon"])[0])
    made = {}
    for mode in ("dense", "balanced", "anchored"):
        for one_per_group in (False, True):
            query = query_of(question, SearchSettings(mode, prefer_language=0.02, one_per_group=one_per_group))
            counted = {"languages": {"terms": {"field": "language"}}, "groups": {"cardinality": {"field": "group"}}}
            made[f"{mode} {one_per_group}"] = {"query": query, "aggs": counted, "size": 40}
    query = query_of(question, SearchSettings("anchored"))
    named = query_of(question, SearchSettings("dense"), k=1, _name="nearest")
    prefix = {"prefix": {"isbn": "secret"}}
    forms = {
        "k 1": {"query": query_of(question, SearchSettings("dense"), k=1)},
        "hidden": {"query": query_of(question, SearchSettings("dense"), [prefix], k=1)},
        "hidden groups": {"query": query_of(question, SearchSettings("dense", one_per_group=True), [prefix])},
        "filtered": {"query": {"bool": {"must": [query], "filter": [{"term": {"language": "en"}}]}}},
        "scored": {"query": {"function_score": {"query": query, "random_score": {"seed": 1, "field": "_seq_no"}}}},
        "after": {"query": {"match_all": {}}, "post_filter": query},
        "counted": {"size": 0, "aggs": {"found": {"filter": query}}},
        "significant": {
            "size": 0,
            "aggs": {
                "words": {"significant_terms": {"field": "source", "background_filter": query, "min_doc_count": 1}}
            },
        },
        "rescored": {"query": {"match_all": {}}, "rescore": {"query": {"rescore_query": query}}},
        "collapsed": {"query": query, "collapse": {"field": "group", "inner_hits": {"name": "all"}}},
        "named": {"query": {"bool": {"must": [{"match_all": {}}], "should": [named]}}, "sort": ["_doc"], "size": 100},
        "explained": {"query": query, "explain": True},
        "sorted": {"query": query, "sort": ["year"], "track_scores": True},
        "of several": {"query": {"bool": {"should": [query, {"term": {"language": "th"}}]}}},
    }
    return made | forms


def answers(client, index):
    """What is answered to each, but for how long it took."""
    made = {}
    for name, body in bodies().items():
        answer = client.search(index=index, body=body)
        assert not answer["_shards"]["failed"], (name, answer["_shards"])
        made[name] = json.loads(json.dumps({key: answer.get(key) for key in ("hits", "aggregations")}))
    return made


def told(answer):
    """Of an answer what is the same in another index: totals, counts and documents."""
    hits = answer["hits"]
    return [hits["total"], answer["aggregations"], sorted(hit["_id"] for hit in hits["hits"])]


def test_hidden_documents_change_nothing(restricted):
    before = answers(restricted.client, restricted.whole.name)
    alone = answers(restricted.administrator, restricted.alone)
    for name in before.keys() - RANKED_BY_OTHERS:
        assert told(before[name]) == told(alone[name]), name
    restricted.hide("secret")
    after = answers(restricted.client, restricted.whole.name)
    for name, answer in before.items():
        assert told(after[name]) == told(answer), name
        scores = [[hit["_score"] for hit in one["hits"]["hits"]] for one in (answer, after[name])]
        assert scores[1] == pytest.approx(scores[0], abs=1e-6), name


def test_suggestions_beside_it_are_refused(restricted):
    suggested = {"words": {"text": "sun", "term": {"field": "abstract"}}}
    body = {"query": bodies()["k 1"]["query"], "suggest": suggested}
    answer = restricted.client.search(index=restricted.whole.name, body=body, params={"ignore": 400})
    assert "[langshift] cannot tell which documents the search may see" in json.dumps(answer)


def test_who_sees_all_is_searched_as_ever(restricted, secured):
    role = documented_roles(restricted.whole.name)["searching"]
    with secured.client(secured.user_of(role)) as client:
        wanted = answers(restricted.administrator, restricted.whole.name)
        assert answers(client, restricted.whole.name) == wanted

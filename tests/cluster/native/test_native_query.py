"""The query ``langshift`` of the plugin finds what langshift's own searches find, and refuses what they refuse."""

import base64
import json
import random
import uuid
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from documents import DOCS, blocks
from filtered_index import ENCODER, QUERY, FilteredIndex
from native_agreement import query_of
from native_plugin import has_plugin, hits_of, metadata_of
from opensearchpy.exceptions import RequestError, TransportError
from plain_index import PLAIN
from search_request import preferring
from searched_index import DIMENSION, LANGUAGES, TRUST, ChunkCorpus, Corpus, asked, found
from tls_proxy import client_of, proxy

from langshift.debias.fingerprint import FORMAT
from langshift.debias.vectors import CommonStep
from langshift.plugin.metadata import USUAL
from langshift.plugin.stored_shift import StoredShift
from langshift.retrieval.calibration import stored
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

TOY = replace(PLAIN, encoder="unknown", dimension=DIMENSION)
#: Orthonormal rows, of which documents would hold a part only.
_BASIS = np.linalg.qr(np.random.default_rng(7).standard_normal((DIMENSION, 2)))[0].T.astype(np.float32)
_STEP = CommonStep(np.zeros(DIMENSION, np.float32), _BASIS)
DIRECTIONS = StoredShift("made up", "en", gamma=0.7, step=_STEP)
_OWN = dict(
    zip(("de", "en", "th"), np.random.default_rng(8).standard_normal((3, DIMENSION)).astype(np.float32), strict=True)
)
PREFERRING = replace(DIRECTIONS, own=0.1, own_vectors=_OWN, scatter=[1.0, 0.0, 0.0])
CALIBRATION = {
    "spread": TRUST.spread,
    "strength": TRUST.strength,
    "mode": "anchored",
    "lexical_weight": None,
    "rerank": {},
}
SETTINGS = [
    SearchSettings(mode, **preferring(beta), one_per_group=grouped)
    for mode in ("dense", "balanced", "anchored")
    for beta in (0.0, 0.1, -0.3)
    for grouped in (False, True)
]


def told(setting):
    return f"{setting.mode}{setting.preference:+g}{'-grouped' if setting.one_per_group else ''}"


@pytest.fixture(scope="module", autouse=True)
def _plugin(client):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")


def written(client, corpus, shards, *, shift=None, counterpart=0.0, calibration=None, **_):
    """An index of a corpus of which every ninth entry was deleted, as it is searched."""
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    target = corpus.write(client, name, shards)
    gone = list(corpus.vectors)[4::9]
    client.bulk(index=name, body=[{"delete": {"_id": one}} for one in gone], refresh=True)
    meta = metadata_of(TOY, corpus.fields, shift=shift, calibration=calibration)
    client.indices.put_mapping(index=name, body={"_meta": meta})
    left = {one: tag for one, tag in corpus.languages.items() if one not in gone}
    counts = Counter(tag for tag in left.values() if tag)
    languages = tuple(sorted(counts, key=lambda tag: (-counts[tag], tag)))
    index = replace(target.index, counts=counts, languages=languages, documents=len(left))
    return replace(target, index=index, shift=shift, trust=replace(target.trust, counterpart=counterpart))


class Documents(Corpus):
    """Documents of which some are in two groups, the first of which counts, and some have no vector."""

    def __init__(self):
        super().__init__()
        several = [name for at, name in enumerate(self.groups) if at % 7 == 0 and self.groups[name]]
        self.groups |= {name: [f"g{len(name) * 7}", self.groups[name]] for name in several}

    def write(self, client, index, shards):
        """Some more documents hold the words of every question, and have no vector."""
        made, lines = super().write(client, index, shards), []
        for number in range(12):
            name, tag = f"bare{number}", LANGUAGES[number % 3]
            self.languages[name] = tag
            held = {"language": tag, "year": 2001, "text": {tag: "sun moon tide comet twin bread rain"}}
            lines += [{"index": {"_id": name}}, held]
        assert not client.bulk(index=index, body=lines, refresh=True)["errors"]
        return made


class Chunks(ChunkCorpus):
    """Chunks of which those that name no document are in no group, or langshift's own collapsing hides some of them."""

    def __init__(self):
        super().__init__()
        self.groups |= dict.fromkeys(self.nameless)


KINDS = {
    "documents": (Documents, {"documents": 360}),
    "gamma": (Corpus, {"documents": 1, "shift": DIRECTIONS}),
    "own": (Corpus, {"documents": 1, "shift": PREFERRING, "counterpart": 0.6}),
    "own alone": (Corpus, {"documents": 1, "shift": replace(PREFERRING, own=0.3)}),
    "chunks": (Chunks, {"documents": 1, "counterpart": 0.6}),
}


@pytest.fixture(scope="module")
def targets(client):
    made = {
        (kind, shards): written(client, corpus(), shards, calibration=calibration(**how), **how)
        for kind, (corpus, how) in KINDS.items()
        for shards in (1, 3)
    }
    yield made
    client.indices.delete(index=",".join(target.index.index for target in made.values()))


def calibration(documents, counterpart=None, **_):
    """That of an index with as many documents, whatever its directions; older ones counted no translations."""
    then = {"alpha": 0.0, "alphas": {}, "gamma": 0.0, "vectors": None, "documents": documents}
    counted = {} if counterpart is None else {"counterpart": counterpart}
    return CALIBRATION | counted | {"measured_with": then}


def asking(question, setting, filters=None, **more):
    """The query of a search, with filters by terms."""
    terms = [{"terms": {name: values}} for name, values in (filters or {}).items()]
    return query_of(question, setting, terms, **more)


def native(client, target, question, setting, size=20, filters=None, **more):
    """What the plugin finds."""
    body = {"size": size, "query": asking(question, setting, filters), "_source": False, **more}
    return hits_of(client.search(index=target.index.index, body=body))


def require_same(hits, wanted):
    """The same documents in the same order; of equals the order may be another."""
    assert [score for _, score in hits] == pytest.approx([one.score for one in wanted], abs=1e-6)
    if [name for name, _ in hits] != [one.id for one in wanted]:
        by_score = Counter(round(one.score, 5) for one in wanted)
        apart = [
            (name, one.id) for (name, score), one in zip(hits, wanted, strict=True) if by_score[round(score, 5)] == 1
        ]
        assert all(mine == theirs for mine, theirs in apart)


@pytest.mark.parametrize("setting", SETTINGS, ids=told)
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_what_langshift_finds(client, targets, kind, shards, setting):
    target = targets[kind, shards]
    numbers = random.Random(f"{kind} {shards} {setting}")
    for seed, filters in enumerate([{}, {"year": ["2001"]}, {"language": ["de", "en"]}]):
        words = " ".join(numbers.sample(["sun", "moon", "tide", "comet", "twin", "bread", "rain"], 3))
        question = asked(seed, numbers.choice([*LANGUAGES, "und"]), words)
        size = numbers.choice([5, 20, 120])
        wanted = found(client, target, question, setting, size=size, filters=filters).hits
        require_same(native(client, target, question, setting, size, filters), wanted)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["documents", "chunks"])
def test_langshifts_own_search_with_a_preference_finds_the_same_by_it(client, targets, kind, shards):
    target = targets[kind, shards]
    for seed, (beta, language) in enumerate([(0.1, "de"), (-0.3, "th"), (0.5, "fr"), (0.2, "und")]):
        for size, filters, more in [(5, {}, {}), (120, {"year": ["2001"]}, {"source": False})]:
            setting, question = (
                SearchSettings("dense", **preferring(beta)),
                asked(seed, language),
            )
            ways = [
                found(client, replace(target, native=own), question, setting, size=size, filters=filters, **more)
                for own in (True, False)
            ]
            mine, wanted = (one._replace(missing=0.0, hits=()) for one in ways)
            assert mine == wanted
            (hits, others) = (one.hits for one in ways)
            require_same([(hit.id, hit.score) for hit in hits], others)
            there = {hit.id: hit for hit in others}
            for hit in hits:
                other = there.get(hit.id, hit)
                assert hit._replace(score=0.0, legs={}) == other._replace(score=0.0, legs={})
                assert hit.legs["dense"].score == pytest.approx(other.legs["dense"].score, abs=1e-6)


def test_langshift_searches_by_it_where_every_node_has_the_plugin_and_else_as_before(client, cluster_url):
    index, setting = FilteredIndex(client, chunked=False, count=60), SearchSettings("dense", prefer_language=0.1)
    lonely = [{"name": "lonely", "component": "opensearch-knn", "version": "3.6.0.0", "description": ""}]
    answers = {
        "every node": None,
        "one without": lambda body: (200, json.dumps(json.loads(body) + lonely).encode()),
        "forbidden": lambda _: (403, b'{"error": {"reason": "no permissions"}, "status": 403}'),
    }
    try:
        results = {}
        for case, answer in answers.items():

            def rewrite(path, status, body, answer=answer):
                return answer(body) if answer and path.startswith("/_cat/plugins") else (status, body)

            with proxy(cluster_url, rewrite=rewrite) as (url, server), client_of(url) as opened:
                searcher = Searcher(opened, index.name, opened={"toy": ENCODER})
                searcher.search(QUERY, language="de")
                assert not any(path.startswith("/_cat") for path, _ in server.seen)
                results[case] = searcher.search(QUERY, setting, language="de", size=5)
        ways = [any(b'"langshift"' in one.content for one in result.requests) for result in results.values()]
        assert ways == [True, False, False]
        ids = {tuple(hit.id for hit in result.hits) for result in results.values()}
        assert len(ids) == 1
    finally:
        index.drop()


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["documents", "gamma"])
def test_auto_is_what_calibration_found_while_that_holds(client, targets, kind, shards):
    target, question = targets[kind, shards], asked(3)
    wanted = found(client, target, question, SearchSettings("anchored" if kind == "documents" else "dense")).hits
    require_same(native(client, target, question, SearchSettings("auto")), wanted)


@pytest.mark.parametrize("shards", [1, 3])
def test_an_index_that_was_never_calibrated_is_known_by_a_sample(client, shards):
    target = written(client, Corpus(), shards)
    try:
        target = replace(target, trust=stored.trust_of(client, target.index, target.shift))
        for setting in (SearchSettings("anchored"), SearchSettings("anchored", prefer_language=0.1)):
            require_same(native(client, target, asked(4), setting), found(client, target, asked(4), setting).hits)
        require_same(native(client, target, asked(4), SearchSettings("auto")), found(client, target, asked(4)).hits)
    finally:
        client.indices.delete(index=target.index.index)


ANCHORED = SearchSettings("anchored", prefer_language=0.1)


def test_it_is_a_query_among_others(client, targets):
    target, question = targets["documents", 1], asked(5)
    index, query = target.index.index, asking(question, ANCHORED)
    plain = native(client, target, question, ANCHORED)

    def ask(**body):
        return client.search(index=index, body={"size": 20, "_source": False, **body})

    both = {"bool": {"must": [query], "filter": [{"term": {"year": 2001}}]}}
    assert hits_of(ask(query=both, size=5))[0] == next(one for one in plain if Corpus().years[one[0]] == 2001)
    added = {
        "bool": {
            "must": [query],
            "should": [{"constant_score": {"filter": {"term": {"_id": plain[9][0]}}, "boost": 5}}],
        }
    }
    assert hits_of(ask(query=added))[0] == (plain[9][0], pytest.approx(plain[9][1] + 5, abs=1e-5))
    assert hits_of(ask(query=query, **{"from": 5}, size=15)) == plain[5:]
    by_year = hits_of(ask(query=query, collapse={"field": "year"}))
    assert by_year == [next(one for one in plain if Corpus().years[one[0]] == year) for year in _years_of(plain)]
    ordered = ask(query=query, sort=["year", "_score"], track_scores=True)["hits"]["hits"]
    assert [hit["sort"][0] for hit in ordered] == sorted(hit["sort"][0] for hit in ordered)
    counted = ask(query=query, size=0, aggs={"years": {"terms": {"field": "year"}}})
    assert (
        sum(one["doc_count"] for one in counted["aggregations"]["years"]["buckets"])
        == counted["hits"]["total"]["value"]
    )
    assert client.count(index=index, body={"query": query})["count"] == counted["hits"]["total"]["value"]
    two = client.msearch(index=index, body=[{}, {"query": query, "size": 20}, {}, {"query": both, "size": 5}])
    assert hits_of(two["responses"][0]) == plain
    assert ask(query=query, profile=True)["profile"]["shards"]
    assert client.explain(index=index, id=plain[0][0], body={"query": query})["explanation"]["value"] == plain[0][1]
    legs = {"hybrid": {"queries": [query, {"match": {"text.de": "sun"}}]}}
    fused = ask(query=legs, search_pipeline={"phase_results_processors": [{"normalization-processor": {}}]})
    assert fused["hits"]["max_score"] <= 1
    assert plain[0][0] in dict(hits_of(fused))
    page = client.search(index=index, body={"query": query, "size": 7, "_source": False}, params={"scroll": "1m"})
    more = client.scroll(body={"scroll_id": page["_scroll_id"], "scroll": "1m"})
    client.clear_scroll(scroll_id=page["_scroll_id"])
    assert hits_of(page) + hits_of(more) == plain[:14]
    named = ask(query={"langshift": query["langshift"] | {"_name": "mine", "boost": 2}})["hits"]["hits"][0]
    assert (named["matched_queries"], named["_score"]) == (["mine"], pytest.approx(2 * plain[0][1], abs=1e-5))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_group_that_is_collapsed_has_its_members_within_it(client, targets, shards):
    target, question = targets["gamma", shards], asked(5)
    groups = Corpus().groups
    # All documents are looked at.
    query = asking(question, ANCHORED, k=1000)
    plain = hits_of(client.search(index=target.index.index, body={"size": 1000, "query": query, "_source": False}))
    members = {}
    for name, score in plain:
        members.setdefault(groups[name], []).append((name, pytest.approx(score, abs=1e-6)))
    assert len(members[None]) > 1
    inner = {"name": "members", "size": 100, "_source": False}

    def collapsed(query, **how):
        body = {
            "size": 1000,
            "query": query,
            "_source": False,
            "collapse": {"field": "group", "inner_hits": inner | how},
        }
        hits = client.search(index=target.index.index, body=body)["hits"]["hits"]
        return [((hit["_id"], hit["_score"]), hits_of(hit["inner_hits"]["members"])) for hit in hits]

    # All that are in none are one hit; a hit has room for 100 others.
    assert collapsed(query) == [(all_[0], all_[:100]) for all_ in members.values()]
    own = {"source": "doc['language'].contains(params.own) ? 0 : 1", "params": {"own": "de"}}
    own = {"sort": [{"_script": {"type": "number", "script": own}}, "_score"], "track_scores": True}
    languages = Corpus().languages
    for _, inside in collapsed(query, **own):
        foreign = [languages[name] != "de" for name, _ in inside]
        assert foreign == sorted(foreign)
    one_per_group = asking(question, SearchSettings("anchored", prefer_language=0.1, one_per_group=True), k=1000)
    assert all(head == inside[0] for head, inside in collapsed(one_per_group))
    assert all(len(inside) == 1 for (name, _), inside in collapsed(one_per_group) if groups[name])


@pytest.mark.parametrize("how", [{"rescore": {"query": {"rescore_query": {"match_all": {}}}}}, {"scroll": "1m"}])
def test_what_opensearch_refuses_beside_collapse_is_refused(client, targets, how):
    target = targets["gamma", 1]
    body = {"query": asking(asked(5), ANCHORED), "collapse": {"field": "group"}}
    params = {"scroll": how["scroll"]} if "scroll" in how else {}
    with pytest.raises(TransportError, match="cannot use `collapse` in"):
        client.search(index=target.index.index, body=body | ({} if params else how), params=params)


def test_counts_are_of_what_was_looked_at_and_within_global_of_all(client, targets):
    target, question = targets["gamma", 1], asked(5)
    by_year = {"terms": {"field": "year"}}
    since = {"term": {"year": 2001}}
    aggs = {"looked": by_year, "all": {"global": {}, "aggs": {"matching": {"filter": since}}}}
    query = asking(question, SearchSettings("dense"), {"year": [2001]}, k=7)
    counted = client.search(index=target.index.index, body={"size": 0, "query": query, "aggs": aggs})["aggregations"]
    assert [(one["key"], one["doc_count"]) for one in counted["looked"]["buckets"]] == [(2001, 7)]
    every = client.count(index=target.index.index, body={"query": since})["count"]
    assert counted["all"]["matching"]["doc_count"] == every > 7


def _years_of(hits):
    return dict.fromkeys(Corpus().years[name] for name, _ in hits)


@pytest.mark.parametrize("shards", [1, 3])
def test_what_is_written_later_is_not_in_a_point_in_time(client, shards):
    target, question = written(client, Corpus(), shards, calibration=calibration(1)), asked(6)
    index, setting = target.index.index, SearchSettings("anchored", one_per_group=True)
    try:
        before = native(client, target, question, setting)
        pit = client.create_pit(index=index, params={"keep_alive": "1m"})["pit_id"]
        near = {"embedding": question.vector.tolist(), "language": "de", "text": {"de": question.words}}
        client.index(index=index, id="new", body=near, params={"refresh": "true"})
        body = {
            "size": 20,
            "query": asking(question, setting),
            "_source": False,
            "pit": {"id": pit, "keep_alive": "1m"},
        }
        assert hits_of(client.search(body=body)) == before
        assert native(client, target, question, setting)[0][0] == "new"
        client.delete_pit(body={"pit_id": [pit]})
    finally:
        client.indices.delete(index=index)


@pytest.mark.parametrize("shards", [1, 3])
def test_the_filter_of_an_alias_holds_for_all_steps(client, targets, shards):
    target, question = targets["documents", shards], asked(7)
    alias = f"{target.index.index}-of-2001"
    client.indices.put_alias(index=target.index.index, name=alias, body={"filter": {"term": {"year": 2001}}})
    anchored = SearchSettings("anchored")
    # What the mode auto stands for goes by all documents of the index.
    stands_for = {one: one for one in (ANCHORED, anchored, SearchSettings("balanced", one_per_group=True))}
    for setting, known in {**stands_for, SearchSettings("auto"): anchored}.items():
        wanted = found(client, target, question, known, filters={"year": ["2001"]}).hits
        body = {"size": 20, "query": asking(question, setting), "_source": False}
        require_same(hits_of(client.search(index=alias, body=body)), wanted)


VECTOR = asked(1).vector.tolist()
LENGTH = "The vector of the query is too long or too short for cosines in floats: give it length 1."
ALONE = "cannot stand within another query langshift, or in the filter of an alias that one searches."
WITHIN = {"langshift": {"vector": VECTOR, "mode": "dense"}}


def wrapped(query):
    """A query in base64, which the server reads late."""
    return {"wrapper": {"query": base64.b64encode(json.dumps(query).encode()).decode()}}


WAYS_WITHIN = {
    "directly": lambda one: {"filter": one},
    "and twice": lambda one: {"filter": {"langshift": {"vector": VECTOR, "filter": one}}},
    "under bool": lambda one: {"filter": {"bool": {"must": [{"bool": {"must_not": [one]}}]}}},
    "under knn": lambda one: {"filter": {"knn": {"embedding": {"vector": VECTOR, "k": 2, "filter": one}}}},
    "wrapped": lambda one: {"filter": wrapped(one)},
    "wrapped in a function": lambda one: {
        "filter": {"function_score": {"functions": [{"filter": wrapped(one), "weight": 2}]}}
    },
}
REFUSED = {
    "dimension": ({"vector": [1.0] * 5}, "The vector has dimension 5, and index INDEX holds vectors of 12."),
    "zeros": ({"vector": [0.0] * 12}, "The vector of the query is all zeros, so no document is near it."),
    "infinite": ({"vector": [1e300] * 12}, "The vector of the query has a number that is not finite as a float."),
    "no text": ({"vector": VECTOR, "mode": "anchored"}, "mode anchored needs [text]."),
    "no text, by calibration": ({"vector": VECTOR}, "mode anchored needs [text]."),
    "blank text": ({"vector": VECTOR, "text": " "}, "[text] is empty: give the words to search for."),
    "a long text": (
        {"vector": VECTOR, "text": "a" * 10_001},
        "[text] has 10,001 characters, but at most 10,000 can be searched for.",
    ),
    "many words": (
        {"vector": VECTOR, "text": " ".join(f"word{n}" for n in range(1200)), "language": "de"},
        "The query has too many words for a lexical search: the limit is 500.",
    ),
    "nothing": ({"mode": "dense"}, "needs a [vector] or a [vector_query]."),
    "text alone": ({"text": "sun"}, "needs a [vector] or a [vector_query]."),
    "two preferences": (
        {"vector": VECTOR, "prefer_language": 0.1, "spread": 0.1},
        "[prefer_language] and [spread] are mutually exclusive: give one of them.",
    ),
    "a preference": ({"vector": VECTOR, "spread": 3}, "[prefer_language] and [spread] are numbers from 0 to 2."),
    "k": ({"vector": VECTOR, "k": 0}, "[k] is a number from 1 to 10,000."),
    "mode": ({"vector": VECTOR, "mode": "foo"}, "Unknown mode [foo]: choose one of auto, dense, balanced, anchored."),
    "language": (
        {"vector": VECTOR, "language": "x-klingon"},
        "[language] is 'x-klingon', which is not a valid language: use a BCP 47 tag such as th or zh-TW.",
    ),
    "no knn": (
        {"vector_query": {"match_all": {}}},
        "[vector_query] became no knn query, whose vector would be searched with.",
    ),
    "a vector that is not finite, of another query": (
        {"vector_query": {"knn": {"embedding": {"vector": ["NaN"] * 12, "k": 1}}}},
        "The vector of the query has a number that is not finite as a float.",
    ),
    "too long": ({"vector": [3e38] * 12}, LENGTH),
    "too short": ({"vector": [1e-30] * 12}, LENGTH),
    "no numbers": ({"vector": []}, "The vector of the query is all zeros, so no document is near it."),
    "not a number": ({"vector": ["NaN"] * 12}, "The vector of the query has a number that is not finite as a float."),
    "k of a billion": ({"vector": VECTOR, "k": 10**9}, "[k] is a number from 1 to 10,000."),
    "no preference": (
        {"vector": VECTOR, "prefer_language": "NaN"},
        "[prefer_language] and [spread] are numbers from 0 to 2.",
    ),
    **{
        f"within another {how}": ({"vector": VECTOR, "mode": "dense", **around(WITHIN)}, ALONE)
        for how, around in WAYS_WITHIN.items()
    },
    "to make the vector": ({"vector_query": WITHIN}, ALONE),
}
#: Kinds of values that a key does not take, as they are in JSON.
DAMAGED = {
    "vector": [
        "null",
        '"abc"',
        '["a"]',
        "[null]",
        "[[1]]",
        '[{"a": 1}]',
        '{"a": 1}',
        "[true]",
        "[NaN]",
        f"[{'9' * 2000}]",
    ],
    "mode": ["null", "3", "{}", '["dense"]'],
    "text": ["null", "3", "{}", '["sun"]'],
    "language": ["null", "3", "{}", '["de"]'],
    "k": ["null", "1e400", "9" * 400, '"x"', "[1]", "{}", "true", "NaN"],
    "spread": ["null", '"x"', "true", "NaN", "[1]"],
    "one_per_group": ["null", '"yes"', "1", "[]"],
    "boost": ["null", '"x"', "{}", "-1", '"NaN"', "1e400"],
    "_name": ["null", "3", "[]"],
    "filter": [
        "null",
        "{}",
        "[{}]",
        '"x"',
        '{"foo": {}}',
        '{"range": {"year": {"gte": "x"}}}',
        '{"match_all": {}, "a": 1}',
    ],
    "vector_query": [
        "null",
        "{}",
        "[{}]",
        '{"foo": {}}',
        '{"knn": {}}',
        '{"knn": {"embedding": {"vector": ["a"], "k": 1}}}',
    ],
    "foo": ["1", '{"a": [1]}'],
}
#: What surrounds a query, so that it is in a search's body.
AROUND = {
    "bool": lambda one: {"query": {"bool": {"should": [{"match_all": {}}, one]}}},
    "not": lambda one: {"query": {"bool": {"must_not": one}}},
    "function_score": lambda one: {"query": {"function_score": {"query": one}}},
    "function": lambda one: {"query": {"function_score": {"functions": [{"filter": one, "weight": 2}]}}},
    "constant_score": lambda one: {"query": {"constant_score": {"filter": one}}},
    "dis_max": lambda one: {"query": {"dis_max": {"queries": [one]}}},
    "boosting": lambda one: {"query": {"boosting": {"positive": one, "negative": one, "negative_boost": 0.5}}},
    "script_score": lambda one: {"query": {"script_score": {"query": one, "script": {"source": "1"}}}},
    "hybrid": lambda one: {"query": {"hybrid": {"queries": [one]}}},
    "knn": lambda one: {"query": {"knn": {"embedding": {"vector": VECTOR, "k": 2, "filter": one}}}},
    "wrapper": lambda one: {"query": wrapped(one)},
    "post_filter": lambda one: {"post_filter": one},
    "aggregation": lambda one: {"aggs": {"some": {"filters": {"filters": {"one": one}}}}},
    "rescore": lambda one: {"rescore": {"query": {"rescore_query": one}}},
    "highlight": lambda one: {"highlight": {"fields": {"text.de": {"highlight_query": one}}}},
}


def refusal(client, index, query):
    """The sentence with which a search is refused."""
    with pytest.raises(RequestError) as refused:
        client.search(index=index, body={"query": {"langshift": query}})
    assert refused.value.status_code == 400
    causes = refused.value.info["error"]["root_cause"]
    return {cause["reason"] for cause in causes}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_searched_for_is_refused(client, targets, shards, case):
    query, wanted = REFUSED[case]
    index = targets["documents", shards].index.index
    assert refusal(client, index, query) == {f"[langshift] {wanted.replace('INDEX', index)}"}


@pytest.mark.parametrize("shards", [1, 3])
def test_damaged_input_is_refused(client, targets, shards):
    path, plain = (
        f"/{targets['documents', shards].index.index}/_search",
        {"vector": json.dumps(VECTOR), "mode": '"dense"'},
    )
    fields = [
        {name: value for name, value in plain.items() if (key, name) != ("vector_query", "vector")} | {key: damaged}
        for key, all_ in DAMAGED.items()
        for damaged in all_
    ]
    queries = ["{" + ", ".join(f'"{name}": {value}' for name, value in one.items()) + "}" for one in fields]
    queries += ['{"k": 1, "k": 2}', '{"vector": [0.1,', "null", "[]", '"x"', "3", "{}"]
    # As many as the server reads at all, and more.
    for depth in (400, 3000):
        queries.append('{"filter": {"langshift": ' * depth + "{}" + "}}" * depth)
    for query in queries:
        body = '{"query": {"langshift": ' + query + "}}"
        with pytest.raises(RequestError) as refused:
            client.transport.perform_request("POST", path, body=body, headers={"content-type": "application/json"})
        assert refused.value.status_code == 400
        assert refused.value.info["error"]["root_cause"][0]["reason"]
    assert client.ping()


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("around", AROUND)
def test_a_query_among_others_is_refused_in_the_same_sentence(client, targets, shards, around):
    index = targets["documents", shards].index.index
    for case in ("dimension", "no text", "within another directly", "within another wrapped"):
        query, wanted = REFUSED[case]
        with pytest.raises(RequestError) as refused:
            client.search(index=index, body=AROUND[around]({"langshift": query}))
        reasons = {cause["reason"] for cause in refused.value.info["error"]["root_cause"]}
        assert reasons == {f"[langshift] {wanted.replace('INDEX', index)}"}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("mode", ["dense", "anchored", "auto"])
def test_it_cannot_be_the_filter_of_an_alias(client, targets, shards, mode):
    index = targets["documents", shards].index.index
    query = {"langshift": {"vector": VECTOR, "mode": mode, "text": "sun"}}
    for one in (query, {"bool": {"must": [query]}}, wrapped(query)):
        with pytest.raises(RequestError) as refused:
            client.indices.put_alias(index=index, name=f"{index}-near", body={"filter": one})
        error = refused.value.info["error"]
        assert error["caused_by"]["reason"] == (
            "[langshift] cannot stand in the filter of an alias, or in a stored query: what it finds depends on what "
            "the index then holds."
        )
    assert not client.indices.exists_alias(name=f"{index}-near")


def test_what_cannot_be_searched_is_refused(client, targets):
    query = {"vector": VECTOR}
    two = ",".join(target.index.index for target in list(targets.values())[:2])
    assert refusal(client, two, query) == {"[langshift] searches one index, not 2."}
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    vector = {"type": "knn_vector", "dimension": 12}
    for meta, wanted in (
        ({}, f"Index {name} has no langshift fingerprint: it was not created by langshift."),
        (
            {"langshift": TOY.to_dict() | {"format": FORMAT + 1}},
            f"Index {name} was made by a later version of langshift: install its plugin on every node.",
        ),
        (
            metadata_of(TOY, USUAL, shift=DIRECTIONS) | {"langshift_vectors": {}},
            f"Index {name} does not contain its language vectors (made up): index the corpus again.",
        ),
        *(
            (
                metadata_of(TOY, USUAL, calibration=unreadable),
                f"The calibration in the mapping of {name} (_meta.langshift_anchors) cannot be read: run `langshift "
                "anchors calibrate` again.",
            )
            for unreadable in ({"spread": 0}, calibration(1, counterpart=1.5), calibration(1) | {"counterpart": None})
        ),
    ):
        field = vector | {"method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}}
        body = {"settings": {"index": {"knn": True}}, "mappings": {"_meta": meta, "properties": {"embedding": field}}}
        client.indices.create(index=name, body=body)
        try:
            assert refusal(client, name, query | {"mode": "anchored", "text": "sun"}) == {f"[langshift] {wanted}"}
        finally:
            client.indices.delete(index=name)


#: How an index may keep vectors that have no cosine, and what it is told to be.
OTHERWISE = {
    "l2": ({"method": {"name": "hnsw", "engine": "lucene", "space_type": "l2"}}, "float by engine lucene and space l2"),
    "no space": ({}, "float by engine faiss and space l2"),
    "inner product": ({"space_type": "innerproduct"}, "float by engine faiss and space innerproduct"),
    "bytes": (
        {"data_type": "byte", "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}},
        "byte by engine lucene and space cosinesimil",
    ),
    "bits": (
        {
            "data_type": "binary",
            "method": {"name": "hnsw", "engine": "faiss", "space_type": "hamming"},
            "dimension": 16,
        },
        "binary by engine faiss and space hamming",
    ),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_vectors_without_cosines_are_refused(client, case):
    kept, told = OTHERWISE[case]
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    # Nothing is written to it: that would end a node which lacks the libraries of Faiss.
    mappings = {
        "_meta": metadata_of(TOY, USUAL),
        "properties": {"embedding": {"type": "knn_vector", "dimension": 12, **kept}},
    }
    client.indices.create(index=name, body={"settings": {"index": {"knn": True}}, "mappings": mappings})
    try:
        assert refusal(client, name, {"vector": VECTOR}) == {
            f"[langshift] Index {name} keeps its vectors as {told}; this query searches those as float by lucene or "
            "faiss and cosinesimil: search with `langshift search`."
        }
    finally:
        client.indices.delete(index=name)


def test_groups_need_a_field_that_can_be_asked_for(client):
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    vector = {"type": "knn_vector", "dimension": 12}
    vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    mappings = {"_meta": metadata_of(TOY, USUAL), "properties": {"embedding": vector, "language": {"type": "keyword"}}}
    client.indices.create(index=name, body={"settings": {"index": {"knn": True}}, "mappings": mappings})
    try:
        assert refusal(client, name, {"vector": VECTOR, "one_per_group": True}) == {
            f"[langshift] Index {name} cannot be searched for one document per group, because its field 'group' is "
            "not in its mapping."
        }
    finally:
        client.indices.delete(index=name)


def test_a_vector_may_come_from_another_query(client, targets):
    target, question = targets["documents", 1], asked(8)
    query = asking(question, ANCHORED)["langshift"]
    query["vector_query"] = {"knn": {"embedding": {"vector": query.pop("vector"), "k": 1}}}
    body = {"size": 20, "query": {"langshift": query}, "_source": False}
    assert hits_of(client.search(index=target.index.index, body=body)) == native(client, target, question, ANCHORED)


def test_the_page_of_the_plugin_shows_a_search(client):
    (request,) = (one.text for one in blocks(DOCS / "plugin.md") if one.text.startswith("POST /news/_search"))
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    vector = {"type": "knn_vector", "dimension": 4}
    vector["method"] = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    keywords = {field: {"type": "keyword"} for field in ("language", "group")}
    mappings = {"_meta": metadata_of(PLAIN, USUAL), "properties": {"embedding": vector, **keywords}}
    client.indices.create(index=name, body={"settings": {"index": {"knn": True}}, "mappings": mappings})
    try:
        for tag in ("de", "en"):
            held = {"embedding": [0.1, -0.3, 0.4, 0.2], "language": tag, "group": "tides", "year": 2026}
            client.index(index=name, id=f"tides-{tag}", body=held, params={"refresh": "true"})
        body = json.loads(request.partition("\n")[2])
        assert hits_of(client.search(index=name, body=body)) == [("tides-de", pytest.approx(1.01))]
    finally:
        client.indices.delete(index=name)

"""Filters that a client may not send: each with what is said of it."""

SCRIPT = {"script": {"script": {"source": "while (true) {}"}}}
KINDS = (
    "bool, constant_score, exists, ids, match, match_all, match_phrase, nested, prefix, range, term, terms, wildcard"
)


def nested(depth):
    query = {"match_all": {}}
    for _ in range(depth - 1):
        query = {"bool": {"must": [query]}}
    return query


def kind(name):
    return f"A filter may not use {name!r} here: use {KINDS}."


REFUSED = {
    "script": (SCRIPT, kind("script")),
    "script in a bool": ({"bool": {"filter": [{"bool": {"must_not": SCRIPT}}]}}, kind("script")),
    "script in a constant": ({"constant_score": {"filter": SCRIPT}}, kind("script")),
    "script in a nested one": ({"nested": {"path": "a", "query": SCRIPT}}, kind("script")),
    "script as a value": ({"term": {"year": {"value": SCRIPT}}}, kind("script")),
    "script in a list": ({"terms": {"year": [SCRIPT]}}, kind("script")),
    "script_score": ({"script_score": {"query": {"match_all": {}}}}, kind("script_score")),
    "terms_set": ({"terms_set": {"tag": {"terms": ["a"], "minimum_should_match_script": {}}}}, kind("terms_set")),
    "intervals": ({"intervals": {"title": {"match": {"query": "a"}}}}, kind("intervals")),
    "function_score": ({"function_score": {"functions": []}}, kind("function_score")),
    "wrapper": ({"wrapper": {"query": "eyJtYXRjaF9hbGwiOnt9fQ=="}}, kind("wrapper")),
    "template": ({"template": {}}, kind("template")),
    "terms lookup": (
        {"terms": {"tag": {"index": "secret", "id": "1", "path": "ids"}}},
        "In a filter, terms takes a list of values, boost here, not 'index'.",
    ),
    "percolate": ({"percolate": {"field": "q", "index": "secret", "id": "1"}}, kind("percolate")),
    "more_like_this": ({"more_like_this": {"like": [{"_index": "secret", "_id": "1"}]}}, kind("more_like_this")),
    "geo_shape": ({"geo_shape": {"a": {"indexed_shape": {"index": "secret", "id": "1"}}}}, kind("geo_shape")),
    "has_child": ({"has_child": {"type": "a", "query": {"match_all": {}}}}, kind("has_child")),
    "knn": ({"knn": {"embedding": {"vector": [1], "k": 10_000}}}, kind("knn")),
    "nested knn": ({"nested": {"path": "a", "query": {"knn": {"embedding": {}}}}}, kind("knn")),
    "query_string": ({"query_string": {"query": "/(a|b)*c/"}}, kind("query_string")),
    "simple_query_string": ({"simple_query_string": {"query": "a*"}}, kind("simple_query_string")),
    "regexp": ({"regexp": {"title": "(a|b)*c"}}, kind("regexp")),
    "fuzzy": ({"fuzzy": {"title": "moon"}}, kind("fuzzy")),
    "span": ({"span_multi": {"match": {"wildcard": {"title": "*"}}}}, kind("span_multi")),
    "inner hits": (
        {"nested": {"path": "a", "query": {"match_all": {}}, "inner_hits": {"script_fields": {}}}},
        "In a filter, nested takes query, path, score_mode, ignore_unmapped, boost here, not 'inner_hits'.",
    ),
    "rewrite": (
        {"prefix": {"title": {"value": "a", "rewrite": "scoring_boolean"}}},
        "In a filter, prefix takes value, case_insensitive, boost here, not 'rewrite'.",
    ),
    "fuzziness": ({"match": {"title": {"query": "moon", "fuzziness": 2}}}, "not 'fuzziness'."),
    "200 stars": (
        {"wildcard": {"title": "a*" * 200}},
        f"The filter '{'a*' * 30}…' may match too much: begin with another character than "
        "* and ?, and use at most 5 of them.",
    ),
    "leading star": ({"wildcard": {"title": {"wildcard": "*a"}}}, "The filter '*a' may match too much"),
    "leading mark": ({"wildcard": {"title": {"value": "?a"}}}, "The filter '?a' may match too much"),
    "any field": ({"exists": {"field": "*"}}, "The filter '*' may match too much"),
    "deep": (nested(11), "A filter nests its queries more than 10 deep: write it flatter."),
    "deeper": (nested(300), "A filter nests its queries more than 10 deep: write it flatter."),
    "many": ({"bool": {"should": [{"term": {"year": n}} for n in range(100)]}}, "more than 100 conditions"),
    "many prefixes": (
        {"bool": {"should": [{"prefix": {"title": str(n)}} for n in range(21)]}},
        "The filters have more than 20 conditions by prefix, range, wildcard: ask for fewer at once.",
    ),
    "many values": ({"terms": {"year": list(range(10_001))}}, "The filters have more than 10,000 values"),
    "long": (
        {"match": {"title": "a " * 501}},
        "A value or a name in a filter has more than 1,000 characters: shorten it.",
    ),
    "long field": ({"term": {"a" * 1001: 1}}, "more than 1,000 characters"),
    "two fields": ({"term": {"a": 1, "b": 2}}, "In a filter, term is of one field: write one for each"),
    "two kinds": ({"term": {"a": 1}, "match_all": {}}, "Each query in a filter is an object with one name, such as"),
    "none": ({}, "Each query in a filter is an object with one name, such as"),
    "text": ({"bool": "x"}, "minimum_should_match, adjust_pure_negative, boost here, not 'x'."),
}

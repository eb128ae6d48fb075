"""Logs of queries in every form that one is given in, and what is refused of them."""

import csv
import gzip
import io
import json

import pytest

from langshift.errors import UsageError
from langshift.evaluate.datasets.logs import FORMS, LogFields, QueryLog, words_of

TOLD = []


@pytest.fixture(autouse=True)
def told(monkeypatch):
    TOLD.clear()
    monkeypatch.setattr("langshift.evaluate.datasets.logs.note", TOLD.append)


def read(path, **fields):
    return [(line.query.id, line.query.text, line.timestamp) for line in QueryLog(path, LogFields(**fields)).lines()]


def refused(path, **fields):
    with pytest.raises(UsageError) as caught:
        read(path, **fields)
    return str(caught.value)


def written(folder, name, *lines):
    path = folder / name
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


HOSTILE = "<script>alert(1)</script> \x1b[31mrot\x1b[0m \u202eback"


def test_json_lines_with_any_names_of_fields(tmp_path):
    path = written(
        tmp_path,
        "searches.ndjson",
        {"event": {"q": "tides"}, "at": 1714557600, "user": "u1"},
        {"event": {"q": HOSTILE}, "at": 1714557601, "_id": "b"},
    )
    assert read(path, query="event.q", time="at") == [("1", "tides", 1714557600), ("b", HOSTILE, 1714557601)]
    assert read(path, query="event.q") == [("1", "tides", None), ("b", HOSTILE, None)]
    assert refused(path, query="q") == f"{path}, line 1, has no q: correct --query-field, or remove the line."
    assert refused(path, query="event.q", time="when") == (
        f"{path}, line 1, has no when: correct --time-field, or remove the line."
    )
    assert refused(path) == (
        f"{path}, line 1, has no text: name the field with the query by --query-field (fields: at, event, user)."
    )


def test_csv_of_either_delimiter_with_quotes_and_line_breaks(tmp_path):
    table = io.StringIO()
    rows = [("when", "words", "language"), ("2026-03-01", 'a "b", c', "en"), ("", "one\ntwo", ""), ("1", HOSTILE, "de")]
    csv.writer(table, delimiter=";").writerows(rows)
    path = tmp_path / "log.csv"
    path.write_bytes(b"\xef\xbb\xbf" + table.getvalue().encode())
    found = list(QueryLog(path, LogFields("words")).lines())
    assert [line.query.text for line in found] == ['a "b", c', "one\ntwo", HOSTILE]
    assert [(line.number, line.query.language) for line in found] == [(2, "en"), (4, None), (5, "de")]
    assert (
        refused(path)
        == f"{path}, line 1, has no column text: name it by --query-field (columns: when, words, language)."
    )
    assert refused(path, query="words", time="at") == (
        f"{path}, line 1, has no column at: name it by --time-field (columns: when, words, language)."
    )
    assert refused(path, query="words", time="when") == (
        f"{path}, line 4, has no when: correct --time-field, or remove the line."
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("text,timestamp\na,1,2\n", "line 2, has 3 fields, and the first line has 2: correct or remove the line."),
        ('text\n"a\n', "line 2, is not valid CSV (unexpected end of data): correct the line."),
        ("text,language\n ,en\n", "line 2, has no text: give the query one, or remove the line."),
    ],
)
def test_a_damaged_row_is_refused_by_its_line(tmp_path, content, told):
    path = tmp_path / "log.csv"
    path.write_text(content)
    assert refused(path) == f"{path}, {told}"


def test_plain_text_is_a_query_on_each_line(tmp_path):
    path = tmp_path / "queries.txt.gz"
    path.write_bytes(gzip.compress(f"why tides\n\n{HOSTILE}\n".encode()))
    assert read(path) == [("1", "why tides", None), ("3", HOSTILE, None)]
    assert refused(path, query="q") == f"{path} is plain text, which has no fields: leave --query-field out."
    assert refused(path, time="t") == f"{path} is plain text, which has no fields: leave --time-field out."


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.txt"])
def test_another_encoding_is_refused_by_its_line(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"text\n" * (name == "log.csv") + '{"text": "Fl\xfcsse"}\n'.encode("cp1252"))
    number = 2 if name == "log.csv" else 1
    assert refused(path) == (
        f"{path}, line {number}, is not UTF-8: save the file as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8 "
        "FILE > NEW."
    )


# As OpenSearch 3.6 writes them, of an index of two shards.
SLOW = (
    "[2026-03-01T08:30:00,250][WARN ][index.search.slowlog.query] [node-1] [news][{}] took[2.1ms], took_millis[2], "
    "total_hits[1 hits], stats[], search_type[QUERY_THEN_FETCH], total_shards[2], source[{}], id[], "
)


def slow(query, shard=0):
    return SLOW.format(shard, json.dumps({"size": 10, "query": query}))


def test_a_search_slow_log_gives_the_words_of_each_search_once(tmp_path):
    match = {"match": {"text": {"query": 'tides], id[x "high"', "operator": "OR"}}}
    fetch = slow(match).replace(".query]", ".fetch]")
    path = written(
        tmp_path,
        "news_index_search_slowlog.log",
        *(slow(match), slow(match, 1), fetch),
        slow({"term": {"section": "sport"}}),
        slow({"multi_match": {"query": HOSTILE, "fields": ["title"]}}),
        slow(match).replace("index.search.slowlog.query]", "i.s.s.query              ]"),
    )
    time = "2026-03-01T08:30:00,250"
    words = 'tides], id[x "high"'
    assert read(path) == [("1", words, time), ("5", HOSTILE, time), ("6", words, time)]
    assert [
        f"{path}: 1 line left out, which are further shards of a search.",
        f"{path}: 1 line left out, which are about fetching what was found.",
        f"{path}: 1 line left out, which are no searches by words.",
    ] == TOLD
    broken = written(tmp_path, "slow.log", slow(match), slow(match)[:-80])
    assert refused(broken) == (
        f"{broken}, line 2, is not as a search slow log has it, with source[{{...}}]: correct or remove the line."
    )


def test_a_slow_log_as_json_and_as_cloudwatch_has_it(tmp_path):
    query = {"size": 5, "query": {"neural": {"vector": {"query_text": "tides", "k": 10}}}}
    fields = {
        "type": "index_search_slowlog",
        "timestamp": "2026-03-01T08:30:00,250Z",
        "component": "i.s.s.query",
        "node.name": "node-1",
        "message": "[news][0]",
        "source": json.dumps(query),
    }
    path = written(tmp_path, "slow.json", fields, {"timestamp": 1, "message": slow({"match": {"text": "floods"}})})
    assert read(path) == [("1", "tides", "2026-03-01T08:30:00,250Z"), ("2", "floods", "2026-03-01T08:30:00,250")]
    path = written(tmp_path, "slow.json", {**fields, "source": "{"})
    assert refused(path) == (
        f"{path}, line 1, is not as a search slow log has it, with source[{{...}}]: correct or remove the line."
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"match": {"text": "tides"}}, "tides"),
        ({"match_phrase": {"text": {"query": "high tides"}}}, "high tides"),
        ({"query_string": {"query": "high AND tides"}}, "high AND tides"),
        ({"langshift": {"text": "tides", "language": "en"}}, "tides"),
        ({"hybrid": {"queries": [{"knn": {"v": {"vector": [1]}}}, {"match": {"t": "tides"}}]}}, "tides"),
        ({"bool": {"filter": [{"match": {"t": "no"}}], "must": [{"match": {"t": "tides"}}]}}, "tides"),
        ({"bool": {"must_not": {"match": {"t": "no"}}}}, None),
        ({"constant_score": {"filter": {"match": {"t": "tides"}}, "boost": 1.0}}, "tides"),
        (
            {"function_score": {"query": {"match": {"t": "tides"}}, "functions": [{"filter": {"match": {"t": "no"}}}]}},
            "tides",
        ),
        ({"match": {"t": {"query": 7}}}, None),
        ({"match_all": {}}, None),
        (None, None),
    ],
)
def test_the_words_of_a_search(query, words):
    assert words_of(query) == words


def ubi(name, text, **more):
    fields = {"query_id": name, "user_query": text, "client_id": "c1", "timestamp": "2026-03-01T08:30:00Z", **more}
    return {"_index": "ubi_queries", "_id": f"hit-{name}", "_source": fields}


def test_user_behavior_insights(tmp_path):
    path = written(
        tmp_path, "ubi_queries.ndjson", ubi("q1", "tides"), ubi("q1", "tides"), ubi("q2", ""), ubi("q3", "x")["_source"]
    )
    time = "2026-03-01T08:30:00Z"
    assert read(path) == [("q1", "tides", time), ("q3", "x", time)]
    assert [
        f"{path}: 1 line left out, which are further pages of a query.",
        f"{path}: 1 line left out, which have no words.",
    ] == TOLD
    path = written(tmp_path, "ubi_events.ndjson", {"action_name": "click", "query_id": "q1", "user_query": "tides"})
    assert refused(path) == (
        f"{path}, line 1, is an event of User Behavior Insights, not a query: give the lines of ubi_queries; "
        "`langshift dataset convert ubi` makes judgements of ubi_events."
    )
    path = written(tmp_path, "none.ndjson", ubi("q2", None))
    assert refused(path) == f"{path} has no query: give a log, which is {FORMS}."


def test_redacted_fields_are_read_as_if_they_were_not_there(tmp_path):
    path = written(tmp_path, "ubi.ndjson", ubi("q1", "tides"))
    log = QueryLog(path, LogFields(redact=("query_id", "client_id", "timestamp")))
    assert [(line.query.id, line.timestamp) for line in log.lines()] == [("1", None)]
    assert log.words_kept
    log = QueryLog(path, LogFields(redact=("user_query",)))
    assert [line.query.text for line in log.lines()] == ["tides"]
    assert not log.words_kept
    assert refused(path, redact=("ip",)) == f"{path} has no field 'ip' to redact: correct --redact."

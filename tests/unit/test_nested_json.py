"""JSON that is nested too deeply to be written again, shown or compared: refused in one sentence."""

import json
from datetime import datetime

import orjson
import pytest

from langshift.debias.encoders.model_kinds import read_json
from langshift.debias.parallel import open_parallel
from langshift.embedded.state import ServerState
from langshift.errors import UsageError
from langshift.evaluate.compare.comparison import read_result
from langshift.evaluate.compare.gate import read_baseline
from langshift.evaluate.datasets.dataset import read_facts, read_queries
from langshift.evaluate.datasets.logs import QueryLog
from langshift.evaluate.replay.journal import resume
from langshift.evaluate.runs import read_group_scores
from langshift.files import load_json
from langshift.model_server import parse_json
from langshift.plugin.user_template import Template
from langshift.retrieval.filters import read_filters
from langshift.retrieval.rerank.features import read_model
from langshift.web.evaluations import results


def nested(kind, depth):
    return "[" * depth + "]" * depth if kind == "lists" else '{"a":' * depth + "1" + "}" * depth


@pytest.fixture(params=[300, 1_010, 3_000, 200_000])
def depth(request):
    return request.param


@pytest.fixture(params=["lists", "objects"])
def deep(request, depth):
    return nested(request.param, depth)


READERS = {
    "query": ("x.jsonl", '{{"_id": "q", "text": "a", "x": {}}}', lambda path: list(read_queries(path))),
    "language": ("x.jsonl", '{{"_id": "q", "text": "a", "language": {}}}', lambda path: list(read_queries(path))),
    "log": ("x.jsonl", '{{"text": "a", "timestamp": {}}}', lambda path: list(QueryLog(path).lines())),
    "slow log": (
        "x.log",
        '[2026-03-01T08:30:00,250][WARN ][index.search.slowlog.query] [n] [news][0] took[1ms], source[{{"a": {}',
        lambda path: list(QueryLog(path).lines()),
    ),
    "scores": ("x.jsonl", '{{"query": "q", "scores": {{"d": {}}}}}', read_group_scores),
    "judged": ("dataset.json", '{{"judged": {}}}', read_facts),
    "baseline": ("x.json", '{{"dataset": {}}}', lambda path: read_baseline(path, None)),
    "replay": ("unfinished.json", '{{"dataset": {}}}', lambda path: resume(path.parent, {"dataset": "x"})),
    "template": ("x.json", '{{"mappings": {}}}', Template.read),
    "features": ("x.json", '{{"weights": {}}}', lambda path: read_model(f"features:{path}")),
    "model": ("config.json", "[{}]", lambda path: read_json(path, {})),
    "parallel": ("x.jsonl", '{{"en": "a", "th": {}}}', lambda path: list(open_parallel(path).batches(10))),
    "filter": ("x", '{{"bool": {}}}', lambda path: read_filters([path.read_text()])),
}


@pytest.mark.parametrize("reader", READERS)
def test_files_that_are_nested_too_deeply(reader, deep, tmp_path):
    name, form, read = READERS[reader]
    (tmp_path / name).write_text(form.format(deep))
    with pytest.raises(UsageError) as caught:
        read(tmp_path / name)
    assert len(str(caught.value)) < 2_000
    assert str(caught.value).endswith(".") or reader == "filter"


def test_a_result_that_is_nested_too_deeply(deep, depth, tmp_path):
    (tmp_path / "run.trec").write_text("q Q0 d 1 1 x\n")
    path = tmp_path / "result.json"
    path.write_text(f'{{"dataset": null, "setting": {deep}}}')
    with pytest.raises(UsageError) as caught:
        read_result(tmp_path)
    how = "nested too deeply" if depth < 1_020 else "depth limit exceeded"
    assert str(caught.value) == f"{path} is not valid JSON ({how}): run the evaluation again."
    path.write_text(f'{{"setting": {deep}, "measures": {deep}}}')
    assert results._run(tmp_path, "x", datetime.now().astimezone()).problem is not None or depth < 3_000


def test_what_is_as_good_as_nothing(deep, tmp_path):
    (tmp_path / "state.json").write_text(f'{{"pid": {deep}}}')
    assert ServerState.read(tmp_path / "state.json").port is None
    assert parse_json(f"{deep}NaN".encode()) is None


def test_what_is_not_nested_too_deeply_is_read():
    flat = b'{"a": [' + b",".join([b"[{}]"] * 1_000) + b'], "b": ' + nested("lists", 200).encode() + b"}"
    assert load_json(flat) == json.loads(flat)
    with pytest.raises(orjson.JSONDecodeError, match="nested too deeply"):
        load_json(nested("objects", 300).encode())

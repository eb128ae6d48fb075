"""XQuAD as it is published made into a pooled set."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from langshift.commands.dataset import dataset as command
from langshift.evaluate.convert.pool import PoolOptions, build
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.convert.squad import read_xquad


@pytest.mark.parametrize(
    ("languages", "documents"), [(["ar", "de", "en", "es", "ru", "th", "tr", "zh"], 1920), (None, 2880)]
)
def test_as_it_is_published(xquad, tmp_path, languages, documents):
    (made,) = build(tmp_path / "out", lambda: read_xquad(xquad, languages), PoolOptions(with_language=False))
    assert (made.documents, made.queries, made.judgements) == (documents, 1190, 1190 * documents // 240)
    dataset = load_dataset(tmp_path / "out")
    assert len(dataset.documents) == documents
    assert {len(judged) for judged in dataset.qrels.values()} == {documents // 240}
    for query in dataset.queries[::100]:
        assert {dataset.documents[name].group for name in dataset.qrels[query.id]} == {query.group}
    assert len({query.article for query in dataset.queries}) == 48


def test_in_many_languages_thinned_and_split(xquad, tmp_path):
    arguments = [
        "convert",
        "xquad",
        str(xquad),
        str(tmp_path / "out"),
        "--languages",
        "ar,de,en,es,hi,ru,vi,zh",
    ]
    options = ["--multilingual-queries", "--keep", "2", "--split-by-article", "--json"]
    said = CliRunner().invoke(command, [*arguments, *options], catch_exceptions=False)
    halves = [load_dataset(tmp_path / "out" / name) for name in ("dev", "test")]
    assert [one["folder"] for one in json.loads(said.stdout)["sets"]] == [str(one.folder) for one in halves]
    assert halves[0].documents == halves[1].documents
    assert Counter(Counter(one.group for one in halves[0].documents.values()).values()) == {2: 240}
    assert sum(len(half.queries) for half in halves) == 9520
    dev, test = ({query.article for query in half.queries} for half in halves)
    assert (len(dev), len(test), dev & test) == (24, 24, set())
    assert {len(judged) for half in halves for judged in half.qrels.values()} == {2}
    own = [
        sum(half.documents[name].language == query.language for name in half.qrels[query.id])
        for half in halves
        for query in half.queries
    ]
    assert 0.23 < sum(own) / len(own) < 0.27  # nothing favours the question's language: 2 of 8

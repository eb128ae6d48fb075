"""Means of an index's own kind of text, against those of parallel text: captions, and articles on other subjects."""

import json
import random

import pytest
from command_line import langshift
from documents import DATA
from searched import a_name, drop

from langshift.files import records

CAPTIONS = DATA / "multi30k"
LANGUAGES = "ar,de,en,es,ru,th,tr,zh"


@pytest.fixture(scope="module")
def run(client, cluster_url, e5_small):  # noqa: ARG001 - which knows XQuAD's texts
    """Runs a command, and gives what it prints."""

    def run(*arguments):
        done = langshift(*arguments, url=cluster_url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def loaded(run, client):
    """Loads a corpus; gives the index's name. The indices are removed at the end."""
    names = []

    def load(corpus, *how):
        names.append(a_name())
        run("ingest", corpus, "--index", names[-1], *how)
        return names[-1]

    yield load
    for name in names:
        drop(client, name)


@pytest.mark.skipif(not CAPTIONS.is_dir(), reason=f"no multi30k in {DATA}; LANGSHIFT_DATA names another place")
def test_captions_gain_over_the_papers_shift(run, loaded):
    gains = {}
    for part in ("all", "one"):
        corpus = CAPTIONS / part / "corpus.jsonl"
        names = [loaded(corpus, "--alpha", "1", "--documents-only"), loaded(corpus)]
        replays = [
            json.loads(run("evaluate", "replay", CAPTIONS / part, "--index", name, "--concurrency", "2", "--json"))
            for name in names
        ]
        paper, ours = (replay["measures"] for replay in replays)
        gains[part] = {name: ours[name] - paper[name] for name in ("nDCG@20", "TLR@20", "SLR@20")}
        print(part, {name: f"{paper[name]:.4f} -> {ours[name]:.4f}" for name in gains[part]})
    assert gains["all"]["nDCG@20"] >= 0.01
    assert gains["all"]["SLR@20"] >= 0.04
    assert gains["one"]["nDCG@20"] >= 0


def test_subjects_hardly_touch_the_means(run, loaded, xquad, tmp_path):
    """Means of an index with other articles in each language serve all of XQuAD."""
    whole = tmp_path / "whole"
    run("dataset", "convert", "xquad", xquad, whole, "--languages", LANGUAGES, "--multilingual-queries")
    lines = [line for _, line in records(whole / "corpus.jsonl")]
    articles = sorted({line["article"] for line in lines})
    random.Random(0).shuffle(articles)
    tags = LANGUAGES.split(",")
    mine = {article: tags[place // 6] for place, article in enumerate(articles)}
    assert len(mine) == 6 * len(tags)
    corpus = tmp_path / "skewed.jsonl"
    kept = [line for line in lines if mine[line["article"]] == line["language"]]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    fitted = tmp_path / "of-index.safetensors"
    run("vectors", "fit", "--from-index", loaded(corpus), "--output", fitted)
    found = json.loads(run("evaluate", "offline", whole, "--vectors", fitted, "--json"))["measures"]
    print({name: f"{found[name]:.4f}" for name in ("nDCG@20", "TLR@20", "SLR@20")})
    assert found["nDCG@20"] >= 0.81

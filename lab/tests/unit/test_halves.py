"""Questions in two halves by their articles."""

from __future__ import annotations

from pathlib import Path

from converted import parallel, refusal

from langshift.evaluate.convert.pool import JudgedQuestion, PoolOptions, PoolPassage, PoolSource, build
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.convert.halves import halved


def in_halves(source: PoolSource):
    return lambda: halved(lambda *_: source)(source.where, None, split_by_article=True)


def test_halves_share_the_corpus_and_no_article(tmp_path):
    made = build(tmp_path / "out", in_halves(parallel()), PoolOptions(with_language=False))
    assert [(one.folder, one.documents, one.queries) for one in made] == [
        (str(tmp_path / "out/dev"), 160, 20),
        (str(tmp_path / "out/test"), 160, 20),
    ]
    dev, test = (load_dataset(tmp_path / "out" / name) for name in ("dev", "test"))
    assert dev.documents == test.documents
    assert dev.documents["g0-zh"].language == "zh"
    assert {query.article for query in dev.queries} == {f"article {n}" for n in range(0, 20, 2)}
    assert {query.article for query in test.queries} == {f"article {n}" for n in range(1, 20, 2)}
    # Halves are the same in every language, and what is done to one corpus is not done to the other.
    build(tmp_path / "zh", in_halves(parallel(backwards=True)), PoolOptions(pivots=["zh"]))
    assert {query.article for query in load_dataset(tmp_path / "zh/dev").queries} == {q.article for q in dev.queries}


def test_what_cannot_be_halved_is_refused(tmp_path):
    alone = PoolSource(
        Path("made-up"),
        ["en"],
        [JudgedQuestion("q", "?", "en", {"d": 1})],
        lambda: iter([PoolPassage("d", "text", "en")]),
    )
    assert refusal(tmp_path, in_halves(alone)) == (
        "made-up has questions without an article, so they cannot be split: leave --split-by-article out."
    )
    assert refusal(tmp_path, in_halves(parallel(2))) == (
        "made-up has questions on only one article, so they cannot be split in two."
    )


def test_without_the_option_there_is_one_set(tmp_path):
    (made,) = build(tmp_path / "out", lambda: halved(lambda *_: parallel())(Path(), None), PoolOptions())
    assert (made.folder, made.queries) == (str(tmp_path / "out"), 40)

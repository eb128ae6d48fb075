"""What a calibration reckons in memory is what the cluster would have answered, for each mode that it tries."""

import numpy as np
import pytest
from anchored_corpus import corpus
from given_data import run, write_lines
from searched import drop

from langshift.plugin import versions
from langshift.retrieval import dsl
from langshift.retrieval.calibration.changes import DEEPEST
from langshift.retrieval.calibration.pool import QuestionPool
from langshift.retrieval.calibration.questions import draw_passages, execute_all, make_questions
from langshift.retrieval.calibration.stored import measured_spread
from langshift.retrieval.filters import FilterPart, IndexFilter
from langshift.retrieval.question import AnchorModel, SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.rerank.stage import search_numbers
from langshift.retrieval.search import search
from langshift.retrieval.searcher import Searcher


class Asked:
    """A pool of an index, and the questions that it was made for."""

    def __init__(self, client, name):
        self.searcher = Searcher(client, versions.live(client, name))
        index = self.searcher.index
        self.trust = AnchorModel(measured_spread(client, index, self.searcher.shift, 300), 1.0, calibrated=True)
        passages = draw_passages(self.searcher, 12, 10_000, 0)
        self.questions = make_questions(self.searcher, passages, 0)
        self.searches = 0
        self.pool = QuestionPool(self.searcher, self.questions, self.trust, 10_000, self.count)

    def count(self):
        self.searches += 1

    def live(self, setting, trust, search):
        """What the cluster finds for each question, in an index without the documents that it hides."""
        fields, target = self.searcher.index.fields, self.searcher.target(setting, trust=trust, legs=True)
        plans = []
        for one in self.questions:
            without = [{"bool": {"must_not": dsl.of_documents(sorted(one.hides), fields)}}] if one.hides else []
            filters = IndexFilter(tuple(FilterPart("", clause) for clause in without))
            plans.append(search(SearchRequest(one.query, setting, target, DEEPEST, source=False, filters=filters)))
        return execute_all(self.searcher, plans)


@pytest.fixture(scope="module", params=["groups", "no groups", "own", "chunks"])
def asked(request, client, cluster_url, tmp_path_factory):
    name = f"langshift-test-pool-{request.param.replace(' ', '-')}"
    drop(client, name)
    lines = corpus(grouped=request.param != "no groups", languages=("de", "en", "th"))
    path = write_lines(tmp_path_factory.mktemp("pool") / "corpus.jsonl", lines)
    more = {"own": ("--own", "0.05"), "chunks": ("--chunk", "words:16")}.get(request.param, ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        done = run("ingest", path, "--index", name, "--encoder", "use-m", *more)
    assert done.exit_code == 0, done.output
    yield Asked(client, name)
    drop(client, name)


@pytest.mark.parametrize(
    ("setting", "strength"),
    [
        (SearchSettings("dense"), 1.0),
        (SearchSettings("anchored"), 1.0),
        (SearchSettings("anchored"), 0.12),
        (SearchSettings("hybrid", lexical_weight=0.3), 1.0),
    ],
)
def test_every_mode_finds_what_it_finds_in_the_cluster(asked, setting, strength):
    trust = AnchorModel(asked.trust.spread, strength, calibrated=True)
    before = asked.searches
    pooled = asked.pool.found(asked.questions, setting, trust)
    live = asked.live(setting, trust, search)
    equal = [one.names == [hit.document for hit in found.hits] for one, found in zip(pooled, live, strict=True)]
    assert np.mean(equal) > 0.95
    again = asked.searches
    # Another strength, or another share of words, asks for nothing.
    assert again == before or setting.mode == "hybrid"
    asked.pool.found(asked.questions, SearchSettings(setting.mode, lexical_weight=0.1), trust)
    assert asked.searches == again


@pytest.mark.parametrize(
    "setting", [SearchSettings("dense", rerank="features"), SearchSettings("anchored", rerank="features")]
)
def test_what_a_reranker_is_told_is_what_the_cluster_tells(asked, setting):
    pooled = asked.pool.numbers(asked.questions, setting, asked.trust)
    live = asked.live(setting, asked.trust, lambda request: search_numbers(request, asked.trust.spread))
    near, words, total = 0, 0, 0
    for (names, numbers), (expected, known) in zip(pooled, live, strict=True):
        ours = dict(zip(names, zip(numbers.near, numbers.words, strict=True), strict=True))
        for name, *theirs in zip(expected, known.near, known.words, strict=True):
            mine = ours.get(name, (np.nan, np.nan))
            near, words = near + (abs(mine[0] - theirs[0]) < 1e-3), words + (abs(mine[1] - theirs[1]) < 1e-3)
            total += 1
    # Of chunks, how deep a search looks decides on some of the last.
    assert near > 0.95 * total
    assert words > 0.95 * total

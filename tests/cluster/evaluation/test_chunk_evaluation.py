"""Replay and calibration on an index of chunks: what is listed, scored and hidden are documents."""

import pytest
from chunked_index import LANGUAGES, MIXED, TOPICS, ChunkedCorpus, searcher
from opensearchpy.exceptions import ConnectionError as UnreachableError

from langshift.evaluate.datasets.texts import indexed_languages
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, open_journals
from langshift.evaluate.replay.replay import replay_all
from langshift.evaluate.replay.requests import WARM_UP
from langshift.evaluate.replay.result import result, write_files
from langshift.evaluate.runs import read_passages, read_run
from langshift.plugin.inventory import drop_all
from langshift.retrieval.calibration.questions import draw_passages, execute_all, make_questions, masked
from langshift.retrieval.dsl import of_documents
from langshift.retrieval.question import SearchRequest
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.search import search

NAME = "langshift-test-chunk-evaluation"
MODES = ("dense", "lexical", "hybrid", "balanced", "anchored")


@pytest.fixture(scope="module")
def corpus(client, tmp_path_factory):
    made = ChunkedCorpus(tmp_path_factory.mktemp("chunks") / "data")
    drop_all(client, NAME)
    made.write(client, NAME)
    yield made
    drop_all(client, NAME)


@pytest.fixture(scope="module")
def over(client, corpus):  # noqa: ARG001 - the index is its
    return searcher(client, NAME)


def planned(over, corpus, mode="dense"):
    options = ReplayOptions(settings=[SearchSettings(mode)], group_scores=True)
    return ReplayPlan.of([over], corpus.dataset, options), options


def test_a_run_lists_each_document_once_with_the_score_and_the_place_of_its_best_chunk(client, over, corpus):
    (found,) = replay_all([client], *planned(over, corpus))
    assert [warning for warning in found.warnings if "LPR" not in warning] == []
    for answer in found.answers:
        expected = corpus.scores(f"Question {answer.query}?")
        scores = {name: score for name, (score, _) in expected.items()}
        assert dict(answer.hits) == pytest.approx(scores, abs=1e-5)
        assert [name for name, _ in answer.hits] == sorted(scores, key=lambda name: -scores[name])
        assert answer.places == {name: (place.start, place.end) for name, (_, place) in expected.items()}
        group = {f"{answer.query[2:]}-{tag}": scores[f"{answer.query[2:]}-{tag}"] for tag in LANGUAGES}
        assert found.group_scores[answer.query] == pytest.approx(group, abs=1e-5)
    assert {scores.queries for scores in found.scores.values()} == {2 * TOPICS}


@pytest.mark.parametrize("mode", MODES)
def test_in_every_mode_a_document_has_one_score(client, over, corpus, mode):
    (found,) = replay_all([client], *planned(over, corpus, mode))
    for answer in found.answers:
        names = [name for name, _ in answer.hits]
        assert set(names) == answer.places.keys() <= corpus.documents.keys()
        assert len(names) == len(set(names))
        for name, score in found.group_scores[answer.query].items():
            assert dict(answer.hits).get(name, score) == pytest.approx(score, abs=1e-5)


def test_a_replay_that_was_cut_off_goes_on_with_the_places(client, over, corpus, tmp_path, monkeypatch):
    replay_plan, options = planned(over, corpus)
    (whole,) = replay_all([client], replay_plan, options)
    out, sent, searching = tmp_path / "out", [], client.search

    def cut_off(**request):
        sent.append(request)
        if isinstance(request["body"], bytes) and len(sent) > WARM_UP + 8:
            raise UnreachableError("N/A", "refused", OSError("refused"))
        return searching(**request)

    for search_again in (cut_off, searching):
        monkeypatch.setattr(client, "search", search_again)
        with open_journals(out, replay_plan, options)[0] as journal:
            (found,) = replay_all([client], replay_plan, options, journals=[journal])
        write_files(out, found, result(found, "any"))
    assert 0 < found.sending.answered_earlier < 2 * TOPICS
    assert [(one.hits, one.places) for one in found.answers] == [(one.hits, one.places) for one in whole.answers]
    places = {answer.query: answer.places for answer in whole.answers}
    assert read_passages(out / "per-query.jsonl") == places
    assert {query: hits.keys() for query, hits in read_run(out / "run.trec").items()} == {
        query: its.keys() for query, its in places.items()
    }


def test_a_document_has_the_language_of_most_of_its_chunks_the_first_of_as_many(client, over, corpus):
    names = [*corpus.documents, "nowhere"]
    languages = indexed_languages(client, over.index.index, over.index.fields, names)
    assert languages == {name: name.partition("-")[2] for name in corpus.documents}
    assert len({*MIXED["5-th"]}) == len(MIXED["5-th"]) == 2


def test_questions_of_a_calibration_are_about_documents(over, corpus):
    drawn = draw_passages(over, 400, 10_000, seed=0)
    assert sorted(one.document for one in drawn) == sorted(corpus.documents)
    assert {one.id: one.document for one in drawn}.items() <= {
        entry: document for entry, (document, _) in corpus.places.items()
    }.items()
    assert all(one.text == corpus.texts[one.id] and one.language == corpus.languages[one.id] for one in drawn)
    sampled = [one for one in drawn if one.document not in MIXED][:6]
    questions = make_questions(over, sampled, seed=0)
    assert questions
    target = over.target(SearchSettings("dense"))
    requests = [SearchRequest(one.query, SearchSettings("dense"), target, 50, source=False) for one in questions]
    fields = over.index.fields
    plans = [
        masked(search(request), of_documents(sorted(one.hides), fields) if one.hides else ())
        for one, request in zip(questions, requests, strict=True)
    ]
    for one, found in zip(questions, execute_all(over, plans), strict=True):
        itself = sampled[one.document].document
        topic, _, tag = itself.partition("-")
        group = {f"{topic}-{other}": other != tag for other in LANGUAGES}
        names = {hit.document for hit in found.hits}
        if one.hides:
            # Not a chunk of it is left, nor of another document in its language of the same group.
            assert one.answers == {name: True for name, other in group.items() if other}
            assert itself not in names
        else:
            assert one.answers == group
            assert itself in names

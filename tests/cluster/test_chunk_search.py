"""Documents found by their chunks in every mode on a real cluster, with one shard and with two."""

import json
import uuid
from dataclasses import asdict, replace

import msgspec
import numpy as np
import pytest
from given_data import run
from search_request import preferring
from searched import a_name, drop
from searched_index import ChunkCorpus, asked, found, scored

import langshift
from langshift.plugin.metadata import USUAL, ChunkPlace, FieldNames, chunk_id
from langshift.plugin.representations import SPARSE_FIELD
from langshift.retrieval.filters import NO_FILTER, FieldCheck
from langshift.retrieval.plans import execute
from langshift.retrieval.request import MODES, SearchSettings
from langshift.retrieval.shortlist import build_shortlist, rank, rankable

CORPUS = ChunkCorpus()
WHOLE = msgspec.structs.replace(USUAL, sparse=SPARSE_FIELD)
SETTINGS = [
    *(SearchSettings(mode, **preferring(beta)) for mode in MODES[1:] for beta in (0.0, 0.1)),
    SearchSettings("dense", spread=0.3),
    SearchSettings("hybrid", spread=0.3, fusion="rrf"),
    SearchSettings("hybrid", sparse_weight=0.4),
]


def told(setting):
    return f"{setting.mode}-{setting.preference:g}-{setting.fusion}-{setting.sparse_weight:g}"


every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=told)


@pytest.fixture(scope="module", params=[1, 2], ids=["one-shard", "two-shards"])
def target(client, request):
    name = f"langshift-test-chunks-{uuid.uuid4().hex[:8]}"
    yield CORPUS.write(client, name, request.param)
    client.indices.delete(index=name)


def by_chunk(target):
    """The same index, searched as if its chunks were documents, by langshift's own fusion."""
    return replace(target, index=replace(target.index, fields=WHOLE), fuses=False)


def grouped(entries):
    """Document -> its best entry, best first."""
    best = {}
    for one in entries:
        best.setdefault(CORPUS.document(one.id), one)
    return best


def hot(words="sun moon tide"):
    """A question whose 130 nearest chunks are of one document."""
    return asked(words=words)._replace(vector=CORPUS.hot)


def preferred(question, beta=0.0):
    """Document -> (score, id of its best chunk) by cosine with a preference, best first, in NumPy."""
    best = {}
    for name, cosine in CORPUS.cosines(question.vector).items():
        favoured = beta and (CORPUS.languages[name] == question.language) == (beta > 0)
        score = (1 + cosine + abs(beta) * favoured) / 2
        best[CORPUS.document(name)] = max(best.get(CORPUS.document(name), (0.0, "")), (score, name))
    return dict(sorted(best.items(), key=lambda item: -item[1][0]))


@pytest.mark.parametrize("beta", [0.0, 0.02, 0.1, 2.0, -0.02, -0.5])
@pytest.mark.parametrize(
    "filters", [{}, {"year": ["2001"]}, {"year": ["2000"]}], ids=["all", "some", "with the long one"]
)
def test_the_best_documents_by_their_best_chunks(client, target, beta, filters):
    for question in (asked(1), asked(2), hot()):
        wanted = {
            name: best
            for name, best in preferred(question, beta).items()
            if not filters or str(CORPUS.years[best[1]]) in filters["year"]
        }
        for size in (5, 25):
            hits = found(
                client, target, question, SearchSettings("dense", **preferring(beta)), size=size, filters=filters
            ).hits
            assert [hit.document for hit in hits] == list(wanted)[:size]
            assert [hit.id for hit in hits] == [best for _, best in wanted.values()][:size]
            assert [hit.score for hit in hits] == pytest.approx([s for s, _ in wanted.values()][:size], abs=1e-6)


@every_setting
def test_documents_are_there_once_with_the_scores_of_their_best_chunks(client, target, setting):
    question = asked(words="sun moon")
    chunks = found(client, by_chunk(target), question, setting, size=100, source=False)
    best = list(grouped(chunks.hits).values())
    hits = found(client, target, question, setting, size=12).hits
    # From 50 documents comes more than from 50 chunks.
    exact = setting.mode != "balanced"
    if exact:
        assert [hit.id for hit in hits] == [one.id for one in best[:12]]
        assert [hit.score for hit in hits] == pytest.approx([one.score for one in best[:12]], abs=1e-6)
    assert len({hit.document for hit in hits}) == len(hits) == 12
    for hit in hits:
        assert hit.document == CORPUS.document(hit.id)
        assert hit.source["text"] == {CORPUS.languages[hit.id]: CORPUS.texts[hit.id]}
        assert hit.place == (None if hit.id in CORPUS.nameless else ChunkPlace(**hit.source["chunk"]))
    bare = found(client, target, question, setting, size=12, source=["year"]).hits
    assert [(hit.document, hit.place, hit.source) for hit in bare] == [
        (hit.document, hit.place, {"year": CORPUS.years[hit.id]}) for hit in hits
    ]


def test_balanced_takes_the_best_five_of_each_language_of_the_50_nearest_documents(client, target):
    for question in (asked(1), hot()):
        for beta in (0.0, 0.1):
            nearest = list(preferred(question).items())[:50]
            if beta:
                own = {name: (score, best) for name, (score, best) in _among(question, question.language).items()}
                nearest += list(own.items())[:50]
            ranked = {}
            for document, (score, best) in nearest:
                given = score + beta / 2 * (CORPUS.languages[best] == question.language)
                ranked[document] = max(ranked.get(document, (0.0, "")), (given, best))
            wanted, seen = [], []
            for document, (score, best) in sorted(ranked.items(), key=lambda item: -item[1][0]):
                seen.append(CORPUS.languages[best])
                if seen.count(CORPUS.languages[best]) <= 5:
                    wanted.append((document, pytest.approx(score, abs=1e-6)))
            hits = found(
                client,
                target,
                question,
                SearchSettings("balanced", **preferring(beta)),
                size=20,
            ).hits
            assert [(hit.document, hit.score) for hit in hits] == wanted


def _among(question, language):
    """Document -> (score, chunk) of the nearest chunk in a language, best first."""
    best = {}
    for name, cosine in CORPUS.cosines(question.vector).items():
        if CORPUS.languages[name] == language:
            best[CORPUS.document(name)] = max(best.get(CORPUS.document(name), (0.0, "")), ((1 + cosine) / 2, name))
    return dict(sorted(best.items(), key=lambda item: -item[1][0]))


@every_setting
def test_as_many_documents_as_are_wanted_where_one_has_all_the_nearest_chunks(client, target, setting):
    for grouping in (False, True):
        hits = found(client, target, hot(), setting.but(one_per_group=grouping), size=10, source=False).hits
        inside = [one.document for hit in hits for one in (hit, *hit.others)]
        assert len(hits) == 10
        assert len(set(inside)) == len(inside)
        assert "o0" in inside or setting.mode == "lexical" or setting.preference


@every_setting
def test_every_document_of_a_run_is_scored_as_the_run_scored_it(client, target, setting):
    for question in (asked(), hot()):
        run = found(client, target, question, setting, size=30, source=False)
        ids = [*[hit.document for hit in run.hits], "not-there"]
        given = scored(client, target, question, setting, run.how, ids)
        assert given.pop("not-there") is None
        if setting.mode == "balanced" and setting.preference:
            # What is known by a chunk of the favoured languages alone may have a better one in another.
            assert all(given[hit.document] >= hit.score - 1e-6 for hit in run.hits)
        else:
            assert given == {hit.document: pytest.approx(hit.score, abs=1e-6) for hit in run.hits}
    below = scored(client, target, asked(), setting, run.how, list({*CORPUS.sizes, *CORPUS.nameless}))
    assert all(score is not None for score in below.values()) or setting.mode in {"lexical", "sparse"}


def test_documents_with_more_chunks_than_one_search_brings_are_scored_in_parts(client, target, monkeypatch):
    wanted = preferred(asked())
    monkeypatch.setattr("langshift.retrieval.dsl.MOST", 200)
    given = scored(client, target, asked(), SearchSettings("dense"), found(client, target, asked()).how, list(wanted))
    assert given == {name: pytest.approx(score, abs=1e-6) for name, (score, _) in wanted.items()}


@every_setting
def test_further_passages_are_the_next_best_chunks_as_the_search_scores_them(client, target, setting):
    question = asked(words="sun moon tide wind")
    plain = found(client, target, question, setting, size=8)
    hits = found(client, target, question, setting, size=8, passages=3).hits
    assert [hit._replace(passages=()) for hit in hits] == list(plain.hits)
    chunks = found(client, by_chunk(target), question, setting, size=100, source=False).hits
    known = {one.id: one.score for one in chunks}
    for hit in hits:
        further = [one.id for one in hit.passages]
        assert len(further) <= 3
        assert hit.id not in further
        assert {CORPUS.document(name) for name in further} <= {hit.document}
        if setting.mode != "lexical" and hit.document in CORPUS.sizes:
            assert len(further) == min(3, CORPUS.sizes[hit.document] - 1)
        given = [hit.score, *(one.score for one in hit.passages)]
        assert given == sorted(given, reverse=True)
        for one in hit.passages:
            assert one.source["text"] == {CORPUS.languages[one.id]: CORPUS.texts[one.id]}
            if one.id in known and setting.mode != "balanced":
                assert one.score == pytest.approx(known[one.id], abs=1e-6)


@every_setting
def test_filters_hold_for_hits_passages_and_what_is_inside(client, target, setting):
    for grouping in (False, True):
        way = setting.but(one_per_group=grouping)
        hits = found(client, target, asked(), way, filters={"language": ["th"]}, passages=2, size=8).hits
        every = [one for hit in hits for one in (hit, *hit.others, *hit.passages)]
        # The best five of one language, two of them in one group.
        assert len(hits) == ((4 if grouping else 5) if setting.mode == "balanced" else 8)
        assert {one.language for one in every} == {"th"}
        (one,) = found(client, target, asked(), way, filters={"parent": ["o7"]}).hits
        assert one.document == "o7"


@every_setting
def test_each_group_is_there_once_by_documents_with_their_best_passages(client, target, setting):
    question = asked(words="sun moon tide wind")
    run = found(client, target, question, setting.but(one_per_group=True), size=8)
    keys = [CORPUS.groups[hit.id] or hit.document for hit in run.hits]
    assert len(set(keys)) == len(keys) == 8
    for hit in run.hits:
        group = CORPUS.groups[hit.id]
        members = {CORPUS.document(name) for name, of in CORPUS.groups.items() if group and of == group}
        inside = [hit.document, *(other.document for other in hit.others)]
        assert len(set(inside)) == len(inside)
        assert set(inside) == members | {hit.document}
        wanted = scored(client, target, question, setting, run.how, inside[1:])
        assert wanted == {one.document: pytest.approx(one.score, abs=1e-6) for one in hit.others}
        for one in (hit, *hit.others):
            assert one.source["text"] == {CORPUS.languages[one.id]: CORPUS.texts[one.id]}
    if not setting.preference and setting.mode == "dense":
        best = {}
        for name, (score, chunk) in preferred(question).items():
            best.setdefault(CORPUS.groups[chunk] or name, score)
        assert [hit.score for hit in run.hits] == pytest.approx(list(best.values())[:8], abs=1e-6)


def test_chunks_that_name_no_document_are_each_one(client, target):
    question = asked()._replace(vector=np.mean([CORPUS.vectors[name] for name in CORPUS.nameless], axis=0))
    for setting in (SearchSettings("dense"), SearchSettings("dense", prefer_language=0.1), SearchSettings("balanced")):
        wanted = set(CORPUS.nameless) & set(list(preferred(question, setting.preference))[:8])
        hits = found(client, target, question, setting, size=8).hits
        assert len(wanted) > 1
        assert wanted <= {hit.document for hit in hits} or setting.mode == "balanced"
        assert {hit.place for hit in hits if hit.document in wanted} == {None}


def test_one_whose_group_is_there_by_a_better_document_hides_no_other(client, target):
    better, nameless, hidden = chunk_id("o1", 2), "lone1", "lone3"
    assert CORPUS.groups[better] == CORPUS.groups[nameless] != CORPUS.groups[hidden]
    directions = [CORPUS.vectors[name] / np.linalg.norm(CORPUS.vectors[name]) for name in (better, nameless, hidden)]
    question = asked()._replace(vector=np.sum(directions, axis=0))
    places = list(preferred(question))
    assert places.index("o1") < places.index(nameless) < places.index(hidden) < 20
    hits = found(client, target, question, SearchSettings("dense", one_per_group=True)).hits
    assert hidden in {hit.document for hit in hits}


def test_fewer_documents_than_wanted_are_told_where_the_deepest_search_has_no_more(client, target, monkeypatch):
    monkeypatch.setattr("langshift.retrieval.dsl.MOST", 100)
    run = found(client, target, hot(), size=90)
    assert len(run.hits) < 90
    assert run.notes == (
        "There may be more documents: the best 10,000 passages, the most that a search looks at, are of these alone.",
    )
    assert found(client, target, asked(), size=10).notes == ()


def test_the_documents_own_id_can_be_filtered_by(client, target):
    adopted = replace(target.index, fields=FieldNames(parent="parent", parent_keyword="parent"))
    for index in (target.index, adopted):
        assert FieldCheck(client, index).checked({"parent": ["o3"]}).clauses == [{"terms": {"parent": ["o3"]}}]


@every_setting
def test_a_shortlist_ranks_documents_as_the_live_search_does(client, target, setting):
    if not rankable(setting):
        return
    question = asked(words="sun moon")
    shortlist = execute(client, target.index.index, build_shortlist(question, target, NO_FILTER, {}))
    ranked = rank(shortlist, setting, size=10).hits
    if setting.mode == "balanced":
        # The live search looks deeper for its 50 documents.
        assert len({hit.document for hit in ranked}) == len(ranked) >= 10
        return
    hits = found(client, target, question, setting, size=10).hits
    assert [(hit.id, hit.document, hit.place) for hit in ranked] == [(hit.id, hit.document, hit.place) for hit in hits]
    assert [hit.score for hit in ranked] == pytest.approx([hit.score for hit in hits], abs=1e-6)


@pytest.mark.usefixtures("cluster_env")
def test_a_document_that_was_loaded_is_found_with_its_passages_and_explained(client, tmp_path):
    name = a_name()
    texts = ["The sea rises and falls twice a day.", "Yeast makes the dough rise.", "The shop opens at six o'clock."]
    line = {"_id": "all", "title": "Of much", "text": "\n\n".join(texts), "language": "en"}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(line), encoding="utf-8")
    done = run("ingest", tmp_path / "corpus.jsonl", "--index", name, "--encoder", "use-m", "--chunk", "paragraphs")
    assert done.exit_code == 0, done.output
    with langshift.open_index(name) as opened:
        result = opened.search("when do the tides come", passages=1, explain=True)
    (hit,) = result.hits
    (other,) = hit.passages
    assert (hit.id, hit.title, hit.text, hit.passage.text) == ("all", "Of much", texts[0], texts[0])
    assert hit.passage.where == "passage 1 of 3, characters 0-36"
    assert hit.score == hit.passage.score > other.score
    assert line["text"][other.place.start : other.place.end] == other.text in texts[1:]
    assert (result.compared, hit.shift.rank_after) == (3, 1)
    shown = result.to_dict()["hits"][0]
    assert shown["passage"] == asdict(hit.passage)
    assert [passage["place"]["count"] for passage in shown["passages"]] == [3]
    drop(client, name)

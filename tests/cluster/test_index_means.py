"""Language vectors and common means from an index's own documents: measured by a load, kept, changed by a retune."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import langshift
from shifted_index import PIVOT, Corpus, language_vectors, printed, refused, run, saved, sources, write_lines
from toy_encoder import ToyEncoder

from langshift.debias.debiaser import undo
from langshift.debias.detector import open_detector
from langshift.debias.index_means import EmbeddingSums, adapted
from langshift.debias.vectors import LanguageVectors, Recommendation
from langshift.errors import LangshiftError, UsageError
from langshift.ingest import load as loading
from langshift.ingest import resume, transform
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.ingest.sources import Pipe
from langshift.plugin import metadata, stored_shift, versions
from langshift.plugin.metadata import USUAL
from langshift.settings import Settings

pytestmark = pytest.mark.usefixtures("cluster_env")

BOTH = Recommendation(1.0, gamma=0.75, shift_queries=True, preference=0.02)
TAGS = ("de", "th", "zh-TW")


def vectors(**fields):
    """Vectors for given embeddings, with a common mean and a recommended gamma."""
    made = language_vectors(1, TAGS)
    rows = np.random.default_rng(4).standard_normal((2, made.dimension)).astype(np.float32)
    common = {"documents": rows[0], "queries": rows[1]}
    return replace(made, **{"common": common, "both_sides": BOTH, "documents_only": Recommendation(1.0), **fields})


def toy_vectors():
    """The same for the toy encoder."""
    made = language_vectors(1, ("de", "th"), dimension=8)
    fields = {"encoder": "toy", "revision": "1", "document_prefix": "passage: "}
    rows = np.random.default_rng(4).standard_normal((2, 8)).astype(np.float32)
    common = {"documents": rows[0], "queries": rows[1]}
    return replace(made, **fields, common=common, both_sides=BOTH, documents_only=Recommendation(1.0))


@pytest.fixture
def toy_file(tmp_path):
    return saved(tmp_path, toy_vectors(), "toy.safetensors")


@pytest.fixture
def lines(tmp_path):
    """A corpus of 40 documents for the toy encoder."""
    rows = [{"_id": str(n), "text": f"Text {n}", "language": ("en", "de", "th")[n % 3]} for n in range(40)]
    return write_lines(tmp_path / "lines.jsonl", rows)


@pytest.fixture
def small_batches(monkeypatch):
    """The first 8 documents tell enough."""
    monkeypatch.setattr(transform, "_BATCH", 4)
    monkeypatch.setattr(loading.index_means, "SAMPLE", 8)


def toy(file, encoder=None, **options):
    return build_pipeline(encoder or ToyEncoder(), open_detector(), file, None, **options)


def kept(client, name):
    """The whole ``_meta``, and the language vectors, of what is live."""
    index = versions.live(client, name).index
    meta = metadata.read_metadata(client, index)
    return meta, stored_shift.known_vectors(meta, index)


def require_toy(client, name, count=40):
    """Each document as its shift by the index's own vectors."""
    _, known = kept(client, name)
    subtrahends = {**known.vectors, "common": known.common["documents"]}
    stored = sources(client, name)
    assert len(stored) == count
    for number, source in stored.items():
        raw = ToyEncoder().encode_documents([f"Text {number}"])[0]
        assert source["shift"]["vectors"] == known.hash
        assert source["shift"]["gamma"] == 0.75
        back = undo(np.array(source["embedding"], np.float32), source["shift"], subtrahends)
        np.testing.assert_allclose(back, raw, atol=1e-5)


def rows_of(count):
    sums = EmbeddingSums(toy_vectors())
    texts, tags = [f"Text {n}" for n in range(count)], [("en", "de", "th")[n % 3] for n in range(count)]
    sums.add(ToyEncoder().encode_documents(texts), tags)
    return sums


@pytest.mark.usefixtures("small_batches")
def test_a_load_measures_its_first_documents_and_encodes_each_once(client, index_name, lines, toy_file):
    encoder = ToyEncoder()
    summary = load(client, str(lines), index_name, toy(toy_file, encoder))
    assert sorted(encoder.seen) == sorted(f"Text {n}" for n in range(40))
    expected = adapted(toy_vectors(), rows_of(8))
    meta, known = kept(client, index_name)
    assert known.hash == expected.hash == meta["langshift"]["vectors"]
    assert meta["langshift"]["means"] == expected.measured == summary.to_dict()["means"]
    assert expected.measured["documents"] == 8
    assert known.common["queries"].tobytes() == expected.common["queries"].tobytes()
    assert meta["langshift_queries"]["preference"] == 0.02
    require_toy(client, index_name)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stored", ["gzip", "pipe"])
def test_what_can_be_read_once_is_measured_too(client, index_name, lines, toy_file, tmp_path, stored):
    if stored == "gzip":
        packed = tmp_path / "lines.jsonl.gz"
        packed.write_bytes(gzip.compress(lines.read_bytes()))
        load(client, str(packed), index_name, toy(toy_file))
    else:
        source = Pipe(enumerate(lines.read_bytes().splitlines(), 1), None, "standard input", "refused", USUAL, {})
        loading.load_source(client, source, index_name, toy(toy_file))
    assert kept(client, index_name)[1].hash == adapted(toy_vectors(), rows_of(8)).hash
    require_toy(client, index_name)


def test_means_of_the_vectors_leave_them_as_they_are(client, index_name, lines, toy_file):
    load(client, str(lines), index_name, toy(toy_file, means="vectors"))
    meta, known = kept(client, index_name)
    assert known.hash == toy_vectors().hash
    assert meta["langshift"]["means"] == {}


def test_without_a_gamma_nothing_is_measured_unless_asked_for(client, index_name, lines, toy_file):
    plain = build_pipeline(ToyEncoder(), open_detector(), toy_file, 1.0)
    load(client, str(lines), index_name, plain)
    assert kept(client, index_name)[1].hash == toy_vectors().hash
    measured = build_pipeline(ToyEncoder(), open_detector(), toy_file, 1.0, means="index")
    load(client, str(lines), index_name, measured, options=LoadOptions("new-version"))
    assert kept(client, index_name)[0]["langshift"]["means"]["documents"] == 40
    with pytest.raises(UsageError) as wrong:
        build_pipeline(ToyEncoder(), open_detector(), None, 0.0, means="index")
    assert str(wrong.value) == (
        "Only the method shift, with language vectors, takes means from an index: leave --means out."
    )


@pytest.mark.usefixtures("small_batches")
def test_a_failure_before_the_first_write_leaves_nothing(client, index_name, lines, toy_file):
    class Failing(ToyEncoder):
        def encode_documents(self, texts):
            if self.seen:
                raise LangshiftError("The model is gone.")
            return super().encode_documents(texts)

    with pytest.raises(LangshiftError) as failed:
        load(client, str(lines), index_name, toy(toy_file, Failing()))
    assert str(failed.value) == "The model is gone."
    assert versions.versions_of(client, index_name) == []
    assert not LoadWorkspace.of(Settings.from_env().home, client, index_name).journal.exists()


def test_what_is_refused_is_refused_before_anything_is_encoded(client, index_name, lines, toy_file):
    load(client, str(lines), index_name, toy(toy_file))
    encoder = ToyEncoder()
    with pytest.raises(UsageError):
        load(client, str(lines), index_name, toy(toy_file, encoder))
    assert encoder.seen == []


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stage", ["shift", "write"])
def test_a_resumed_load_has_the_vectors_of_one_that_ran_through(
    client, index_name, lines, toy_file, monkeypatch, stage
):
    load(client, str(lines), f"{index_name}-whole", toy(toy_file))
    # As if the process had been killed: nothing is cleaned up.
    monkeypatch.setattr(resume.LoadSession, "clean_up", lambda _self, _target, error: error)

    def kill(now, documents, _seconds):
        if now == stage and documents:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(client, str(lines), index_name, toy(toy_file), kill)
    summary = load(client, str(lines), index_name, toy(toy_file), options=LoadOptions(resume=True))
    assert summary.present == 40
    whole, resumed = kept(client, f"{index_name}-whole"), kept(client, index_name)
    for part in ("langshift", "langshift_vectors", "langshift_queries"):
        assert whole[0][part] == resumed[0][part]
    there = sources(client, f"{index_name}-whole")
    assert all(there[name]["embedding"] == one["embedding"] for name, one in sources(client, index_name).items())


@pytest.mark.usefixtures("small_batches")
def test_one_that_was_killed_while_it_measured_measures_again(client, index_name, lines, toy_file, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(resume.LoadSession, "clean_up", lambda _self, _target, error: error)

        def kill(stage, _documents, _seconds):
            if stage == "encode":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load(client, str(lines), index_name, toy(toy_file), kill)
    (unfinished,) = versions.versions_of(client, index_name)
    assert metadata.read_metadata(client, unfinished)["langshift"]["means"] == {}
    load(client, str(lines), index_name, toy(toy_file), options=LoadOptions(resume=True))
    assert kept(client, index_name)[1].hash == adapted(toy_vectors(), rows_of(8)).hash
    require_toy(client, index_name)


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path)


@pytest.fixture
def file(tmp_path):
    return saved(tmp_path, vectors())


def raw_sums(corpus, known):
    sums = EmbeddingSums(known)
    for name, tag in corpus.languages.items():
        sums.add(np.array([corpus.raw[name]], np.float32), [tag])
    return sums


def close(one, other):
    for part in ("vectors", "common"):
        for tag, vector in getattr(one, part).items():
            np.testing.assert_allclose(vector, getattr(other, part)[tag], rtol=1e-5, atol=1e-4)


def more(tmp_path, name="new"):
    row = {"_id": name, "text": "Neu", "language": "de", "embedding": [1.0] * 6}
    return write_lines(tmp_path / f"{name}.jsonl", [row])


def append(tmp_path, name, *options, document="new"):
    return run(
        "ingest", more(tmp_path, document), "--index", name, "--encoder", "given", "--if-exists", "append", *options
    )


def test_what_is_added_takes_the_indexs_own_shift(client, index_name, corpus, file, tmp_path):
    corpus.ingest(index_name, "--vectors", file)
    meta, known = kept(client, index_name)
    close(known, adapted(vectors(), raw_sums(corpus, vectors())))
    assert meta["langshift"]["means"]["vectors"] == vectors().hash
    for options in ((), ("--vectors", file)):
        done = append(tmp_path, index_name, *options)
        assert done.exit_code == 0, (done.output, done.exception)
        assert kept(client, index_name)[0] == meta
        stamp = sources(client, index_name)["new"]["shift"]
        assert (stamp["vectors"], stamp["alpha"], stamp["gamma"]) == (known.hash, 1.0, 0.75)
    done = run("retune", index_name, "--alpha", "0.5", "--json")
    assert done.exit_code == 0, done.output
    done = append(tmp_path, index_name, document="after")
    assert done.exit_code == 0, (done.output, done.exception)
    assert sources(client, index_name)["after"]["shift"]["alpha"] == 0.5


def test_another_shift_that_is_asked_for_is_refused(client, index_name, corpus, file, tmp_path):
    corpus.ingest(index_name, "--vectors", file)
    known = kept(client, index_name)[1]
    other = saved(tmp_path, vectors(pivot=PIVOT, vectors=language_vectors(2, TAGS).vectors), "other.safetensors")
    message, code = refused(append(tmp_path, index_name, "--vectors", other))
    assert (message, code) == (
        f"Index {index_name} was built with vectors {known.hash}, not {LanguageVectors.load(other).hash}: use the "
        "settings it was built with, or choose another index name.",
        1,
    )
    message, _ = refused(append(tmp_path, index_name, "--vectors", file, "--alpha", "0.5"))
    assert message.startswith(f"Index {index_name} was built with alpha 1.0, not 0.5")


def test_a_retune_measures_goes_back_and_is_rolled_back(client, index_name, corpus, file):
    corpus.ingest(index_name, "--vectors", file, "--means", "vectors")
    done = printed(run("retune", index_name, "--means", "index", "--json"))
    assert done["changed"]
    expected = adapted(vectors(), raw_sums(corpus, vectors()))
    meta, known = kept(client, index_name)
    close(known, expected)
    assert done["means"] == meta["langshift"]["means"] == expected.measured
    assert (meta["langshift"]["alpha"], meta["langshift"]["gamma"]) == (1.0, 0.75)
    queries = metadata.QuerySide.from_dict(meta["langshift_queries"])
    assert (queries.recommended, queries.preference) == (True, 0.02)
    np.testing.assert_allclose(queries.common, expected.common["queries"], atol=1e-4)
    stored = sources(client, index_name)
    subtrahends = {**known.vectors, "common": known.common["documents"]}
    for name, source in stored.items():
        back = undo(np.array(source["embedding"], np.float32), source["shift"], subtrahends)
        assert np.abs(back - corpus.raw[name]).max() <= 1e-6 * max(8, np.linalg.norm(corpus.raw[name]))
    # The vectors that it was adapted from are not at hand any more, but for their file.
    message, code = refused(run("retune", index_name, "--means", "index"))
    assert (message, code) == (
        f"The language vectors of {index_name} were adapted from a file with the hash {vectors().hash}, which does not "
        "come with this langshift: give it with --vectors.",
        2,
    )
    described = langshift("index", "describe", index_name).stdout
    assert "The common mean was measured on 15 documents" in " ".join(described.split())
    back = printed(run("retune", index_name, "--means", "vectors", "--vectors", file, "--json"))
    assert back["changed"]
    assert kept(client, index_name)[1].hash == vectors().hash
    assert printed(run("rollback", index_name, "--json"))["index"] == f"{index_name}-v0002"
    assert kept(client, index_name)[1].hash == known.hash


def test_a_soft_index_is_not_measured_again(index_name, corpus, file):
    corpus.ingest(index_name, "--vectors", file, "--soft", "--means", "vectors")
    message, _ = refused(run("retune", index_name, "--means", "index"))
    assert message.endswith("leave --means out, or index the corpus again with these.")


def test_vectors_are_fitted_to_an_index_and_its_queries(client, index_name, corpus, file, tmp_path):
    corpus.ingest(index_name, "--vectors", file, "--means", "vectors")
    rows = [{"text": f"q{n}", "language": "de", "timestamp": n, "embedding": [float(n)] * 6} for n in range(1, 5)]
    log, output = write_lines(tmp_path / "log.jsonl", rows), tmp_path / "own.safetensors"
    options = ("--vectors", file, "--queries", log, "--output", output, "--json")
    done = run("vectors", "fit", "--from-index", index_name, *options)
    assert done.exit_code == 0, (done.output, done.exception)
    queries = EmbeddingSums(vectors())
    queries.add(np.array([row["embedding"] for row in rows], np.float32), ["de"] * 4)
    expected, found = adapted(vectors(), raw_sums(corpus, vectors()), queries), LanguageVectors.load(output)
    close(found, expected)
    assert (found.measured, found.both_sides) == (expected.measured, BOTH)
    retuned = printed(run("retune", index_name, "--vectors", output, "--json"))
    assert retuned["changed"]
    meta, known = kept(client, index_name)
    assert known.hash == found.hash
    assert meta["langshift"]["means"] == found.measured
    # What was adapted is not adapted again.
    corpus.ingest(f"{index_name}-b", "--vectors", output)
    assert kept(client, f"{index_name}-b")[1].hash == found.hash
    message, _ = refused(run("retune", index_name, "--means", "index", "--vectors", output))
    assert message == f"{output} was adapted to an index: give the language vectors that it was adapted from."


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from-index", "x", "--pairs", "p"), "--from-index does not go with --pairs: leave one or the other out."),
        (
            ("--queries", "q", "--pairs", "p"),
            "--queries and --vectors go with --from-index: give it, or leave them out.",
        ),
        ((), "Give parallel text with --pairs, or an index with --from-index."),
    ],
)
def test_wrong_use_of_fit(tmp_path, options, message):
    assert refused(run("vectors", "fit", *options, "--output", tmp_path / "o.safetensors")) == (message, 2)


def test_an_adopted_index_is_measured(client, index_name, corpus, file):
    properties = {
        "vec": {
            "type": "knn_vector",
            "dimension": 6,
            "space_type": "cosinesimil",
            "method": {"name": "hnsw", "engine": "lucene"},
        },
        "body": {"type": "text"},
        "lang": {"type": "keyword"},
    }
    old = f"{index_name}-old"
    client.indices.create(
        index=old, body={"settings": {"index": {"knn": True}}, "mappings": {"properties": properties}}
    )
    for name, tag in corpus.languages.items():
        document = {"vec": corpus.raw[name].tolist(), "body": f"Text {name}", "lang": tag}
        client.index(index=old, id=name, body=document)
    client.indices.refresh(index=old)
    options = ("--vector-field", "vec", "--text-field", "body", "--language-field", "lang", "--encoder", "given")
    done = run("adopt", old, "--name", index_name, *options, "--vectors", file, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    expected = adapted(vectors(), raw_sums(corpus, vectors()))
    meta, known = kept(client, index_name)
    close(known, expected)
    assert json.loads(done.stdout)["means"] == meta["langshift"]["means"] == expected.measured
    assert "The common mean was measured on 15 documents" in done.stderr

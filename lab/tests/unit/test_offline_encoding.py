"""Encoding a dataset once: the cache, the languages of what names none, texts that cannot be encoded."""

from __future__ import annotations

import numpy as np
import pytest
from data_folder import write_dataset
from toy_encoder import ToyEncoder

from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import load_dataset
from langshift_lab.offline.encoding import encode

DOCUMENTS = {
    "a-en": ("en", "a", "The sea rises and falls twice a day because the Moon pulls at it."),
    "a-de": (None, "a", "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht."),
    "a-zh": ("zh-TW", "a", "海水每天漲落兩次。"),
    "b-xx": (None, "b", "1234 5678"),
}
QUERIES = {
    "q1": ("en", "a", None, "What moves the sea?"),
    "q2": (None, "a", None, "Warum bewegt sich das Meer?"),
}
QRELS = {"q1": {"a-en": 1, "a-de": 1}, "q2": {"a-de": 1}}


@pytest.fixture
def dataset(tmp_path):
    return load_dataset(write_dataset(tmp_path / "data", DOCUMENTS, QUERIES, QRELS))


def test_vectors_and_languages(dataset):
    encoder, told = ToyEncoder(), []
    found = encode(dataset, encoder, on_texts=lambda kind, done: told.append((kind, done)))
    assert found.ids == list(DOCUMENTS)
    assert np.array_equal(found.documents, ToyEncoder().encode_documents([text for _, _, text in DOCUMENTS.values()]))
    assert np.array_equal(found.queries, ToyEncoder().encode_queries([text for *_, text in QUERIES.values()]))
    assert told == [("documents", 4), ("queries", 2)]
    # A tag keeps its region for the language vectors, and loses it for the measures; figures have no language.
    assert found.languages.tags == {"a-en": "en", "a-de": "de", "a-zh": "zh-TW", "b-xx": "und"}
    assert found.languages.documents == {"a-en": "en", "a-de": "de", "a-zh": "zh", "b-xx": None}
    assert found.languages.queries == {"q1": "en", "q2": "de"}
    assert found.languages.warnings == (
        "The dataset names no language for 2 of its 4 documents; the detected ones are used.",
        "The dataset names no language for 1 of its 2 queries; the detected ones are used.",
    )


def test_the_cache_answers_for_the_same_texts_and_encoder_alone(dataset, tmp_path):
    cache = tmp_path / "new" / "cache"
    first, again, other = ToyEncoder(), ToyEncoder(), ToyEncoder()
    other.revision = "2"
    made = encode(dataset, first, cache)
    kept = sorted(path.name.partition("-")[0] for path in cache.iterdir())
    assert kept == ["documents", "queries"]
    found = encode(dataset, again, cache)
    assert again.seen == []
    assert np.array_equal(found.documents, made.documents)
    assert np.array_equal(found.queries, made.queries)
    encode(dataset, other, cache)
    assert len(other.seen) == 4  # the toy encoder notes documents
    assert len(list(cache.iterdir())) == 4


@pytest.mark.parametrize("damage", [b"", b"nothing of the kind", None])
def test_a_damaged_file_of_the_cache_is_made_anew(dataset, tmp_path, damage):
    made = encode(dataset, ToyEncoder(), tmp_path / "cache")
    for path in (tmp_path / "cache").iterdir():
        path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    found = encode(dataset, ToyEncoder(), tmp_path / "cache")
    assert np.array_equal(found.documents, made.documents)
    encoder = ToyEncoder()
    encode(dataset, encoder, tmp_path / "cache")
    assert encoder.seen == []


@pytest.mark.parametrize(("bad", "place"), [(np.nan, 0), (np.inf, 7), (0.0, slice(None))])
def test_a_text_without_a_vector_is_named(dataset, bad, place):
    class Failing(ToyEncoder):
        def encode_queries(self, texts):
            vectors = super().encode_queries(texts)
            vectors[1, place] = bad
            return vectors

    with pytest.raises(LangshiftError) as caught:
        encode(dataset, Failing())
    assert str(caught.value) == "Query 'q2': the encoder toy gives no usable vector for its text."

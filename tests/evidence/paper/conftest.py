"""What the page of the papers' figures is made with."""

import os

import pytest
from reproduced import run_blocks
from xquad_fixtures import as_users_do, e5_small, quick_java, xquad, xquad_texts

from langshift.debias.encoders import open_encoder

__all__ = ["as_users_do", "e5_small", "quick_java", "xquad", "xquad_texts"]
# Texts that are encoded, and known from then on, at a time.
AT_A_TIME = 200


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a module's commands of the page run, whose datasets, vectors and encodings stay there."""
    return tmp_path_factory.mktemp("reproduction")


@pytest.fixture(scope="module")
def printed(request, folder, client, cluster_url, xquad, e5_small, page_lock):  # noqa: ARG001 - which knows the texts
    """What the commands of the module's ``BLOCK`` print, and the page shows from then on."""
    (found,) = run_blocks([request.module.BLOCK], folder, client, cluster_url, xquad, page_lock)
    return found

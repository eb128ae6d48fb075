"""What the tests of documents share."""

import pytest
from documents import Names
from known_vectors import KnownVectors

from langshift.debias.encoders.e5_small import E5Small


@pytest.fixture(scope="module", autouse=True)
def _known_to_e5_small(pytestconfig):
    """The encoder e5-small, which encodes each text once: what a page measures asks the same questions again."""
    known = KnownVectors(pytestconfig.cache.mkdir("langshift"), E5Small, "encode_documents", "encode_queries")
    with pytest.MonkeyPatch.context() as patch:
        known.install(patch)
        yield


@pytest.fixture(scope="module", autouse=True)
def _as_users_do(usual_encoder):
    """The pages name no encoder where the usual one is meant."""


@pytest.fixture
def names(client):
    """Makes names of the test's own for those that a document gives in the cluster; all is removed afterwards."""
    made = []

    def make(*shown):
        made.append(Names(client, *shown))
        return made[-1]

    yield make
    for one in made:
        one.remove()

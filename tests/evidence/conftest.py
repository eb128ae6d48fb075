"""What the large tables share."""

import pytest
from command_line import langshift
from known_vectors import KnownVectors

from langshift.debias.encoders.e5_small import E5Small


@pytest.fixture(scope="session", autouse=True)
def known_to_e5_small(pytestconfig):
    """The encoder e5-small, which encodes each text once: tables of one dataset ask the same questions."""
    known = KnownVectors(pytestconfig.cache.mkdir("langshift"), E5Small, "encode_documents", "encode_queries")
    with pytest.MonkeyPatch.context() as patch:
        known.install(patch)
        yield


@pytest.fixture(scope="session")
def done(cluster_url):
    """Runs a command that must succeed; gives what it prints."""

    def run(*arguments):
        finished = langshift(*arguments, url=cluster_url)
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run

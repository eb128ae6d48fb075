"""What the tests of documents share."""

import pytest
from documents import Names


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

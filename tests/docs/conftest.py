"""What the tests of documents share."""

import pytest
from documents import Names


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

"""What the answer of a copying task means."""

import pytest

from langshift.plugin.transfer import tasks
from langshift.plugin.transfer.mark import GivenUp


def test_a_version_that_is_deleted_while_it_is_made_is_told_as_that_and_not_as_a_document():
    cause = {"type": "index_not_found_exception", "reason": "no such index [news-v0002]", "index": "news-v0002"}
    answer = {"failures": [{"index": "news-v0002", "id": "d0", "cause": cause, "status": 404}]}
    with pytest.raises(GivenUp) as given_up:
        tasks._result(answer)
    assert str(given_up.value) == "Index news-v0002 was deleted by somebody while it was being made: run again."

"""Which indices have replicas that a copy must not be made from."""

import pytest

from langshift.ingest.retune.retunable import lagging_replicas

SEGMENT = {"replication": {"type": "SEGMENT"}}


@pytest.mark.parametrize(
    ("settings", "lag"),
    [
        ({**SEGMENT, "number_of_replicas": "1"}, True),
        ({**SEGMENT, "number_of_replicas": "2", "auto_expand_replicas": "0-all"}, True),
        (SEGMENT, True),
        ({**SEGMENT, "number_of_replicas": "0"}, False),
        ({"replication": {"type": "DOCUMENT"}, "number_of_replicas": "1"}, False),
        ({"number_of_replicas": "1"}, False),
    ],
)
def test_replicas_that_take_segments_over_may_lag(settings, lag):
    assert lagging_replicas(settings) is lag

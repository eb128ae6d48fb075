"""Documents of an index that are drawn at random."""

import numpy as np
import pytest
from adopted_index import adopted

from langshift.plugin import metadata
from langshift.plugin.index_sample import draw
from langshift.plugin.versions import live


@pytest.fixture
def given(client, cluster_url, index_name, tmp_path):
    """An adopted index, whose model is not here."""
    with adopted(client, cluster_url, index_name, tmp_path) as found:
        yield found


def test_the_sample_is_the_same_each_time(client, given):
    index = live(client, given)
    meta = metadata.read_metadata(client, index.index)
    first, second = (draw(client, index.index, meta, index.languages, 5) for _ in range(2))
    assert all(np.array_equal([one.stored for one in first[tag]], [one.stored for one in second[tag]]) for tag in first)
    assert {tag: len(of) for tag, of in first.items()} == dict.fromkeys(index.languages, 5)

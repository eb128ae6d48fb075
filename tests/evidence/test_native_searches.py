"""10,000 searches of the plugin: contexts stay closed, and the heap does not grow."""

import time
from contextlib import nullcontext

import numpy as np
import pytest
from filtered_index import ENCODER, FilteredIndex
from native_plugin import has_plugin
from opensearchpy.exceptions import RequestError

SEARCHES, WARM_UP, EACH = 10_000, 2_000, 1_000
MODES = ("dense", "balanced", "anchored", "none")
# What lies on the heap after a collection changes by about as much from one to the next.
MOST_GROWTH = 32 << 20  # bytes


@pytest.mark.parametrize("chunked", [False, True], ids=["documents", "chunks"])
def test_the_heap_does_not_grow(client, chunked):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    index = FilteredIndex(client, chunked=chunked)
    numbers, lowest, began = np.random.default_rng(1), list[int](), time.monotonic()
    try:
        for place in range(SEARCHES):
            if place % EACH == 0:
                lowest.append(_heap(client))
            mode = MODES[place % len(MODES)]
            vector = ENCODER.encode_queries([f"sun {numbers.integers(1000)}"])[0].tolist()
            asked = {"text": "sun moon", "vector": vector, "mode": mode, "one_per_group": place % 2 == 0}
            with pytest.raises(RequestError, match="Unknown mode") if asked["mode"] == "none" else nullcontext():
                client.search(index=index.name, body={"query": {"langshift": asked}, "_source": False})
            lowest[-1] = min(lowest[-1], _heap(client)) if place % 10 == 0 else lowest[-1]
        warm = WARM_UP // EACH
        seconds = time.monotonic() - began
        megabytes = [one >> 20 for one in lowest]
        print(f"{SEARCHES:,} searches in {seconds:.0f} s; lowest heap of each {EACH:,}: {megabytes} MB")
        stats = client.indices.stats(index=f"{index.name}-v0001", metric="search")["_all"]["total"]["search"]
        assert (stats["open_contexts"], stats["query_current"], stats["point_in_time_current"]) == (0, 0, 0)
        assert min(lowest[-warm:]) < min(lowest[warm : 2 * warm]) + MOST_GROWTH
    finally:
        index.drop()


def _heap(client):
    """Bytes in use, at the one node."""
    (node,) = client.nodes.stats(metric="jvm")["nodes"].values()
    return node["jvm"]["mem"]["heap_used_in_bytes"]

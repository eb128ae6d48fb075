"""What tests of this folder share."""

import pytest
from fault_proxy import fault_proxy
from faulty_load import FaultyLoad


@pytest.fixture
def load(client, cluster_url, index_name, tmp_path):
    """``langshift ingest`` on its way through a fault proxy."""
    with fault_proxy(cluster_url) as proxy:
        yield FaultyLoad(client, proxy, index_name, tmp_path)

"""What tests of this folder share."""

import pytest
from fault_proxy import fault_proxy
from faulty_load import FaultyLoad

from langshift.cluster import make_client
from langshift.settings import Settings


@pytest.fixture
def proxy(cluster_url):
    """A fault proxy before the cluster."""
    with fault_proxy(cluster_url) as running:
        yield running


@pytest.fixture
def through(proxy):
    """A client that goes through the proxy, and tries nothing twice."""
    with make_client(Settings.from_env(), proxy.url, retries=0) as opened:
        yield opened


@pytest.fixture
def load(client, proxy, index_name, tmp_path):
    """``langshift ingest`` on its way through the proxy."""
    return FaultyLoad(client, proxy, index_name, tmp_path)


@pytest.fixture
def unwatched_disk(client):
    """A cluster that does not lift a block by itself because the disk is not full in truth."""
    name = "cluster.routing.allocation.disk.threshold_enabled"
    client.cluster.put_settings(body={"transient": {name: False}})
    yield
    client.cluster.put_settings(body={"transient": {name: None}})

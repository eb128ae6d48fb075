"""Fixtures of tests that ask a cluster, whatever folder they are in."""

import json

import pytest
from anchored_corpus import FEW, calibrate_few
from built_server import BuiltServer, lacking
from command_line import langshift
from fault_proxy import fault_proxy
from faulty_load import FaultyLoad
from native_plugin import install_plugin
from opensearchpy import helpers
from parted import letters_of
from ray_nodes import Nodes
from s3_store import s3_store
from searched import a_name
from secured_cluster import BUILT, SecuredCluster
from small_dataset import index_of, write_small_dataset
from tls_proxy import Authority, client_of

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.plugin import shift_script, versions
from langshift.plugin.inventory import drop_all
from langshift.settings import Settings


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """Who signs the certificates of the proxies with TLS."""
    return Authority.made(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def secured(new_home, quick_java, pytestconfig, tmp_path_factory):
    """A real cluster with the security plugin and ours."""
    if not BUILT.is_dir():
        pytest.skip(f"no security plugin in {BUILT}")
    home = new_home()
    install_plugin(home, pytestconfig.cache.mkdir("langshift"))
    cluster = SecuredCluster(home, tmp_path_factory.mktemp("secured"), quick_java)
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def administrator(secured):
    """A client of that cluster that may do all."""
    with secured.client("administrator") as opened:
        yield opened


@pytest.fixture
def secured_name(administrator):
    """A name there that no other test uses; every index whose name begins with it is removed afterwards."""
    name = a_name()
    yield name
    if made := ",".join(administrator.indices.get(index=f"{name}*", params={"expand_wildcards": "all"})):
        administrator.indices.delete(index=made)


@pytest.fixture(scope="session")
def faiss_server(new_home, quick_java, pytestconfig):
    """A real server whose k-NN has Faiss, with our plugin."""
    if reason := lacking():
        pytest.skip(reason)
    home = new_home()
    install_plugin(home, pytestconfig.cache.mkdir("langshift"))
    server = BuiltServer(home, quick_java)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def faiss(faiss_server):
    """A client of that server."""
    with client_of(faiss_server.url) as opened:
        yield opened


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The folder of a small dataset, which tests only read."""
    made = tmp_path_factory.mktemp("dataset")
    write_small_dataset(made)
    return made


@pytest.fixture(scope="session")
def dataset(folder):
    """The small dataset."""
    return load_dataset(folder)


@pytest.fixture(scope="session")
def indices(client, folder):
    """A plain and a shifted index of the small dataset, which tests only read."""
    made = [index_of(client, folder, alpha) for alpha in (0.0, 1.0)]
    yield made
    for name in made:
        drop_all(client, name)


@pytest.fixture
def proxy(cluster_url):
    """A fault proxy before the cluster."""
    with fault_proxy(cluster_url) as running:
        yield running


@pytest.fixture
def through(proxy):
    """A client that goes through the proxy, and tries nothing twice."""
    with client_of(proxy.url) as opened:
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


@pytest.fixture
def pipelines(client, index_name):
    """``index_name``, with which ingest pipelines of a test begin; they and the index's are removed afterwards."""
    yield index_name
    # The server says 404 where there is none at all.
    # An index that names a pipeline which is gone could not be written to; none is written to any more.
    for name in client.ingest.get_pipeline(params={"ignore": 404}):
        if name.startswith((index_name, f"langshift-{index_name}")):
            client.ingest.delete_pipeline(id=name)


@pytest.fixture
def script_of_its_own(client, index_name, monkeypatch):
    """A shift script that only this test uses; pipelines of the tests beside it run the usual one."""
    source = f"{shift_script.source()}\n// {index_name}"
    monkeypatch.setattr(shift_script, "source", lambda: source)
    yield
    client.delete_script(id=shift_script.script_id(), params={"ignore": 404})


@pytest.fixture
def corpus(tmp_path):
    """A function that writes lines to a corpus, and gives its path."""

    def write(*lines):
        path = tmp_path / "corpus.jsonl"
        # A load that still reads the file of before goes on with that.
        path.unlink(missing_ok=True)
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture(scope="module")
def _running_store():
    with s3_store() as running:
        yield running


@pytest.fixture
def store(_running_store):
    """An empty S3."""
    yield _running_store
    _running_store.empty()


@pytest.fixture
def became(client, cluster_env, index_name):
    """A function that loads corpora into an index of their own, and gives what has become of them."""
    names = []

    def load(*given, state=None, options=(), codes=(0, 3), name=None):
        names.append(name := name or f"{index_name}-{len(names)}")
        command = ("ingest", *given, "--index", name, "--encoder", "use-m", "--max-refused", 1, "--json", *options)
        command += () if state is None else ("--state", state)
        done = langshift(*command, url=cluster_env)
        assert done.returncode in codes, done.stderr
        return json.loads(done.stdout), *left(name, state)

    def left(name, state):
        place = LoadWorkspace.of(Settings.from_env().home, client, name)
        letters = list(DeadLetters(place.dead_letters)) if state is None else letters_of(state)
        client.indices.refresh(index=name)
        found = {hit["_id"]: hit["_source"] for hit in helpers.scan(client, index=name)}
        return found, letters, versions.live(client, name).fingerprint

    load.left = left
    yield load
    for name in names:
        drop_all(client, name)


@pytest.fixture
def few_are_calibrated(monkeypatch):
    """A calibration asks by few documents."""
    calibrate_few(monkeypatch, FEW)


@pytest.fixture(scope="module")
def nodes():
    """Two machines of a Ray cluster."""
    pytest.importorskip("ray", reason="needs the extra ray")
    made = Nodes()
    yield made
    made.close()


@pytest.fixture
def index(client, index_name):
    """``index_name``, all of whose versions are removed afterwards."""
    yield index_name
    drop_all(client, index_name)

"""The OpenSearch plugin for the tests' own servers, and what an index says of itself to its query."""

import base64
import hashlib
import json
import socket
import uuid
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
from embeddings_server import MODEL
from filelock import FileLock
from plain_index import PLAIN
from searched_index import DIMENSION, Corpus

from langshift import embedded
from langshift.debias import detector, detector_text
from langshift.embedded.artifacts import read_lock
from langshift.plugin import native, native_nodes
from langshift.plugin.metadata import USUAL, value_at
from langshift.plugin.native_nodes import plugin_nodes
from langshift.plugin.pipelines import name_for


def packed_plugin(home, cache):
    """The plugin's zip; built anew where its sources have changed."""
    read = hashlib.sha256(
        b"".join(Path(of.__file__).read_bytes() for of in (native, native_nodes, detector, detector_text))
    )
    for file in sorted(native.source_folder().rglob("*.*")):
        read.update(file.read_bytes())
    folder = cache / f"plugin-{read.hexdigest()[:12]}"
    with FileLock(cache / "plugin.lock"):
        return next(folder.glob("*.zip"), None) or native.build(read_lock(), home / "downloads", folder)


def install_plugin(home, cache):
    """Give the server of a langshift home, before it starts, the plugin."""
    native.unpack(packed_plugin(home, cache), Path(str(embedded.places(home)["home"])) / "plugins")


def has_plugin(client):
    """Whether all nodes of a cluster have it."""
    return plugin_nodes(client).everywhere


def install_processor(client, index, _shift, _fields, first):
    """As ``langshift.plugin.pipelines.install``, with the plugin's processor, which asks the index for all of this."""
    before = {} if first is None else {"pipeline": first.name}
    name = name_for(index)
    client.ingest.put_pipeline(id=name, body={"processors": [{"langshift": before}]})
    client.indices.put_settings(index=index, body={"index": {"default_pipeline": name}})


def metadata_of(fingerprint, fields, *, directions=None, calibration=None):
    """The ``_meta`` of an index."""
    kept = fingerprint.to_dict()
    meta = {"langshift": kept, "langshift_fields": fields.to_dict()}
    if directions is not None:
        kept |= {"gamma": 0.7, "vectors": "made up", "pivot": "en"}
        packed = base64.b64encode(directions.astype("<f4").tobytes()).decode()
        mean = base64.b64encode(np.zeros(directions.shape[1], "<f4").tobytes()).decode()
        meta["langshift_vectors"] = {"hash": "made up", "vectors": {}, "common": mean, "directions": packed}
    if calibration is not None:
        meta["langshift_anchors"] = calibration
    return json.loads(msgspec.json.encode(meta))


def hits_of(response):
    """Ids and scores of a search's hits."""
    return [(hit["_id"], hit["_score"]) for hit in response["hits"]["hits"]]


def encoder_settings():
    """Settings of a node that may ask an endpoint of the tests for the vectors of an index of the encoder ``toy``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    name = "langshift.encoders.toy"
    return {f"{name}.url": f"http://127.0.0.1:{port}/v1", f"{name}.model": MODEL, f"{name}.timeout": "2s"}


def encoder_port(client):
    """The port where such nodes expect the endpoint; None where they know none."""
    (node, *_) = client.nodes.info(metric="settings")["nodes"].values()
    url = value_at(node["settings"], "langshift.encoders.toy.url")
    return None if url is None else int(url.removesuffix("/v1").rpartition(":")[2])


@contextmanager
def index_of_texts(client):
    """The name of an index of the encoder ``toy``, whose endpoint makes a vector of a text; removed at the end."""
    name = f"langshift-test-native-{uuid.uuid4().hex[:8]}"
    Corpus().write(client, name, 1)
    made = metadata_of(PLAIN, USUAL)
    made["langshift"] |= {"dimension": DIMENSION, "query_prefix": "query: "}
    client.indices.put_mapping(index=name, body={"_meta": made})
    try:
        yield name
    finally:
        client.indices.delete(index=name)

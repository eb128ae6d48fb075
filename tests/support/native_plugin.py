"""The OpenSearch plugin for the tests' own servers, and what an index says of itself to its query."""

import hashlib
import json
from pathlib import Path

import msgspec
from filelock import FileLock

from langshift import embedded
from langshift.debias import detector, detector_text
from langshift.embedded.artifacts import read_lock
from langshift.plugin import native, native_nodes
from langshift.plugin.native_nodes import NAME, SEARCH, plugin_nodes
from langshift.plugin.pipelines import name_for
from langshift.settings import VERSION


def packed_plugin(home, cache):
    """The plugin's zips; built anew where its sources have changed."""
    read = hashlib.sha256(
        b"".join(Path(of.__file__).read_bytes() for of in (native, native_nodes, detector, detector_text))
    )
    for file in sorted(native.source_folder().rglob("*.*")):
        read.update(file.read_bytes())
    folder = cache / f"plugin-{read.hexdigest()[:12]}"
    with FileLock(cache / "plugin.lock"):
        made = [folder / f"{name}-{VERSION}.zip" for name in (NAME, SEARCH)]
        there = all(one.exists() for one in made)
        return native.Packed(*made) if there else native.build(read_lock(), home / "downloads", folder)


def install_plugin(home, cache):
    """Give the server of a langshift home, before it starts, the plugin."""
    native.unpack(packed_plugin(home, cache).whole, Path(str(embedded.places(home)["home"])) / "plugins")


def has_plugin(client):
    """Whether all nodes of a cluster have it."""
    return plugin_nodes(client).everywhere


def install_processor(client, index, _shift, _fields, first):
    """As ``langshift.plugin.pipelines.install``, with the plugin's processor, which asks the index for all of this."""
    before = {} if first is None else {"pipeline": first.name}
    name = name_for(index)
    client.ingest.put_pipeline(id=name, body={"processors": [{"langshift": before}]})
    client.indices.put_settings(index=index, body={"index": {"default_pipeline": name}})


def metadata_of(fingerprint, fields, *, shift=None, calibration=None):
    """The ``_meta`` of an index; the shift is one with directions."""
    kept = fingerprint.to_dict()
    meta = {"langshift": kept, "langshift_fields": fields.to_dict()}
    if shift is not None:
        kept |= {"gamma": shift.gamma, "own": shift.own, "vectors": shift.hash, "pivot": "en"}
        meta["langshift_vectors"] = shift.to_dict()
    if calibration is not None:
        meta["langshift_anchors"] = calibration
    return json.loads(msgspec.json.encode(meta))


def hits_of(response):
    """Ids and scores of a search's hits."""
    return [(hit["_id"], hit["_score"]) for hit in response["hits"]["hits"]]

"""An index of made-up vectors for tests of its pipeline, without an encoder."""

from copy import deepcopy
from dataclasses import replace

import numpy as np

from langshift.debias.debiaser import shifted
from langshift.debias.fingerprint import Fingerprint
from langshift.debias.fitting.directions import principal_directions
from langshift.debias.vectors import CommonStep
from langshift.plugin import metadata, version_writer
from langshift.plugin.stored_shift import StoredShift

DIMENSION = 8
MADE = Fingerprint(
    encoder="toy",
    revision="1",
    query_prefix="",
    document_prefix="",
    dimension=DIMENSION,
    normalised=False,
    pivot="en",
    alpha=1.0,
    vectors="0123456789abcdef",
    detector="none",
    langshift="0",
)


def made_shift(alpha=1.0, alphas=None, tags=("de", "th", "zh", "zh-TW"), seed=7, hash_=MADE.vectors, gamma=0.0):
    """A shift by random vectors of norms about 3, with two directions for a gamma."""
    random = np.random.default_rng(seed)
    vectors = {tag: random.standard_normal(DIMENSION).astype(np.float32) for tag in tags}
    mean, *rows = random.standard_normal((3, DIMENSION))
    step = CommonStep(mean.astype(np.float32), principal_directions(np.array(rows), 2))
    return StoredShift(hash_, "en", vectors, alpha, alphas or {}, gamma, step)


def fingerprint_of(shift, **changes):
    """The fingerprint of an index that is shifted like this."""
    dimension = next((len(vector) for vector in shift.vectors.values()), DIMENSION)
    return replace(
        MADE,
        alpha=shift.alpha,
        alphas=dict(shift.alphas),
        gamma=shift.gamma,
        vectors=shift.hash,
        pivot=shift.pivot,
        dimension=dimension,
        **changes,
    )


def make_index(client, name, shift, if_exists="fail", **changes):
    """Put an empty version of langshift's own kind before the alias; gives its name."""
    kept = {metadata.VECTORS: shift.to_dict()} if shift.hash else {}
    target = version_writer.open_for_writing(client, name, fingerprint_of(shift, **changes), kept, if_exists=if_exists)
    version_writer.publish(client, target)
    return target.index


def make_foreign_index(client, name, shift, fields, properties):
    """A version with a mapping and names of fields of its own, as an adopted index has; gives its name."""
    index = f"{name}-v0001"
    kept = {
        metadata.FINGERPRINT: fingerprint_of(shift).to_dict(),
        metadata.VECTORS: shift.to_dict(),
        "langshift_fields": fields.to_dict(),
    }
    mappings = {"_meta": kept, "properties": deepcopy(properties)}
    metadata.put_at(mappings, f"properties.{fields.page.replace('.', '.properties.')}", {"type": "keyword"})
    body = {"settings": {"index": {"knn": True}}, "mappings": mappings, "aliases": {name: {}}}
    client.indices.create(index=index, body=body)
    return index


def shifted_by(raw, shift, tag):
    """What is stored of a raw vector of a language, in NumPy."""
    stamp = (
        {"gamma": shift.gamma} if tag is None else {"gamma": shift.gamma, "alpha": shift.scale(tag), "language": tag}
    )
    return shifted(np.asarray(raw, np.float32), stamp, shift)


def raw_vector(seed=1, norm=5.0):
    """A random vector of this norm, as a client sends it."""
    vector = np.random.default_rng(seed).standard_normal(DIMENSION)
    return (norm * vector / np.linalg.norm(vector)).astype(np.float32).tolist()

"""Indices of small vectors, without an encoder."""

from __future__ import annotations

from opensearchpy import OpenSearch

from langshift.debias.fingerprint import Fingerprint
from langshift.plugin import version_writer
from langshift.plugin.versions import Target

PLAIN = Fingerprint(
    encoder="toy",
    revision="1",
    query_prefix="",
    document_prefix="",
    dimension=4,
    normalised=False,
    pivot=None,
    alpha=0.0,
    vectors=None,
    detector="none",
    langshift="0.1.0",
)


def made(client: OpenSearch, name: str, documents: int = 0) -> Target:
    """A version that is live and holds documents."""
    target = version_writer.open_for_writing(client, name, PLAIN)
    for number in range(documents):
        client.index(index=target.index, id=str(number), body={"n": number})
    version_writer.publish(client, target)
    return target

"""Versions that loads write to: made, and opened again."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.console import counted
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, UsageError
from langshift.plugin import load_settings, meta
from langshift.plugin.engine import require_engine
from langshift.plugin.fields import USUAL, Fields
from langshift.plugin.merged_template import USUAL_SHAPE, Shape
from langshift.plugin.meta import uuid_of
from langshift.plugin.publishing import discard, discard_planned, publish
from langshift.plugin.target import IfExists, Target
from langshift.plugin.template import index_body
from langshift.plugin.versions import read_fingerprint, version_behind, versions

__all__ = [
    "IfExists",
    "Target",
    "discard",
    "discard_planned",
    "may_reopen",
    "open_for_writing",
    "publish",
    "reopen",
    "stands",
]


def open_for_writing(
    client: OpenSearch,
    name: str,
    fingerprint: Fingerprint,
    kept: Mapping[str, Any] = MappingProxyType({}),
    *,
    if_exists: IfExists = "fail",
    fast: bool = False,
    token: str | None = None,
    body: Mapping[str, Any] | None = None,
    during: Mapping[str, str] = MappingProxyType({}),
    shape: Shape = USUAL_SHAPE,
) -> Target:
    """The version that documents of this fingerprint may be written to.

    A version that this makes stays out of sight until ``publish``, and is marked unfinished until then: what
    an interrupted load left behind is never mixed with another load's documents.

    Args:
        client: the cluster.
        name: the alias.
        fingerprint: what makes the documents' vectors.
        kept: what else a version that is made keeps in ``_meta``, such as its language vectors.
        if_exists: what to do where there is a version already: refuse; add to it; make a new one that takes its
            place, and delete it then; make a new one that takes its place, and keep it.
        fast: whether a version that is made does without replicas until ``publish``.
        token: noted in a version that is made; see ``discard_planned``.
        body: of a version that is made, complete with what langshift keeps in it; None for the usual one.
        during: further settings of a version that is made, which hold until ``publish``.
        shape: what is changed in the usual body.

    Raises:
        FingerprintError: documents are to be added to a version with vectors of another making.
        UsageError: there is a version already, and it is to be refused, or has fields of its own; or ``name`` cannot
            be an index's name.
        ClusterError: what is there was not made by langshift; or the cluster makes no index of that shape.
    """
    live = version_behind(client, name)
    if live is not None:
        there = read_fingerprint(client, live)
        if if_exists == "fail":
            raise UsageError(_already_there(client, name, live))
        if if_exists == "append":
            _require_usual_shape(shape, name, live)
            _require_usual_fields(client, name, live)
            there.require_same(fingerprint, name, "give what it was made with, or choose another index name")
            return Target(name, live, uuid_of(client, live), created=False, live=live, if_exists=if_exists)
    existing = versions(client, name)
    number = int(existing[-1].rpartition("-v")[2]) + 1 if existing else 1
    index = f"{name}-v{number:04}"
    made = deepcopy(dict(body)) if body is not None else shape.applied(index_body(fingerprint, kept))
    require_engine(client, made)
    restore = load_settings.quickened(made["settings"]["index"], fast, during)
    noted = made["mappings"]["_meta"]
    noted[meta.UNFINISHED] = {**restore, "live": live, "if_exists": if_exists, "token": token}
    # Asked before too: whoever may not ask for it must not leave a version behind.
    uuid_of(client, index)
    try:
        client.indices.create(index=index, body=made)
    except RequestError as error:
        if error.error != "resource_already_exists_exception":
            if shape.template is not None:
                raise shape.template.refused(error) from error
            raise
        raise ClusterError(f"Another load is making {name} at this moment: run again when it is done.") from error
    uuid, fields = uuid_of(client, index), Fields.from_meta(noted)
    return Target(name, index, uuid, created=True, live=live, if_exists=if_exists, fields=fields)


def reopen(client: OpenSearch, name: str, index: str, uuid: str, *, fast: bool = False) -> Target:
    """The version that a load which was cut off was writing to, with the settings of a load again.

    A version that the load had published already is given as one to add to.

    Args:
        client: the cluster.
        name: the alias.
        index: the version, and
        uuid: its id, both as the target had them.
        fast: whether to do without replicas until ``publish``.

    Raises:
        ClusterError: the version is gone, or the alias points to another by now.
    """
    if uuid_of(client, index) != uuid:
        raise ClusterError(
            f"Index {index}, which this load was writing to, was deleted by somebody: run it again without --resume."
        )
    if version_behind(client, name) == index:
        return Target(name, index, uuid, created=False, live=index, if_exists="append")
    noted = meta.unfinished(client, index)
    if noted is None:
        raise ClusterError(
            f"{name} does not stand for {index} any more, which this load was adding to: run it again without --resume."
        )
    load_settings.quicken(client, index, fast)
    return Target(name, index, uuid, created=True, live=noted.get("live"), if_exists=noted.get("if_exists", "fail"))


def may_reopen(client: OpenSearch, name: str, index: str, uuid: str) -> bool:
    """Whether a load that was cut off can be gone on with, which ``reopen`` or ``publish`` may refuse.

    Its version must be there, and the alias must stand for that, or for what it stood for when the load began.
    """
    if uuid_of(client, index) != uuid:
        return False
    now, noted = version_behind(client, name), meta.unfinished(client, index)
    return now == index or (noted is not None and noted.get("live") == now)


def stands(client: OpenSearch, name: str, index: str, uuid: str) -> bool:
    """Whether the alias stands for a version, and that is still the one with this id."""
    return uuid_of(client, index) == uuid and version_behind(client, name) == index


def _require_usual_fields(client: OpenSearch, name: str, index: str) -> None:
    fields = Fields.from_meta(meta.read(client, index))
    if fields != USUAL:
        raise UsageError(
            f"Index {name} was adopted, and keeps its vectors in {fields.vector!r}, where a load does not write: "
            f"add to it through `langshift pipeline install {name}`, as any client can."
        )


def _require_usual_shape(shape: Shape, name: str, index: str) -> None:
    if shape.given:
        raise UsageError(
            f"There is an index {name} already ({index}), and {shape.given} would change nothing in it: add to it "
            "without, replace it with --if-exists replace, or put a new version before it with --if-exists new-version."
        )


def _already_there(client: OpenSearch, name: str, index: str) -> str:
    held = counted(client.count(index=index)["count"], "document")
    return (
        f"There is an index {name} already ({index}, {held}): add to it with --if-exists append, replace it with "
        "--if-exists replace, or put a new version before it with --if-exists new-version."
    )

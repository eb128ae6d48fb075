"""Versions that loads write to: made, opened again, published or discarded."""

from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, RequestError

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, UsageError
from langshift.plugin import live_writes, metadata, pipelines, versions
from langshift.plugin.index_body import FieldTypes, index_body, require_engine
from langshift.plugin.index_templates import ALREADY_EXISTS, create_version
from langshift.plugin.metadata import USUAL, FieldNames, uuid_of
from langshift.plugin.representations import require_same
from langshift.plugin.transfer.cutover import lift_block
from langshift.plugin.user_template import DEFAULT_INDEX_OPTIONS, IndexOptions
from langshift.plugin.versions import IfExists, StoredIndex, Target
from langshift.plugin.whole_view import require_whole_view
from langshift.server_errors import Unreadable
from langshift.wording import pluralize, utc_time


def is_carried_over(client: OpenSearch, target: Target, now: str) -> bool:
    """Whether everything that was ever written to a load's version is in the one that is live now, too.

    Args:
        client: the cluster.
        target: the version that the load adds to.
        now: what the alias stands for.
    """
    if target.created or now == target.index:
        return False
    # Both leave the former version behind a write block, set before the last of it was carried over.
    if not metadata.is_write_blocked(metadata.read_settings(client, target.index)):
        return False
    made, left = metadata.read_origin(client, now), metadata.read_origin(client, target.index)
    copied = made is not None and made.kind in metadata.COPIES and made.uuid == target.uuid
    return copied or (left is not None and left.kind in metadata.COPIES and left.uuid == uuid_of(client, now))


def require_not_replaced(client: OpenSearch, target: Target) -> None:
    """Refuse to wait for a version that takes no writes because another has taken its place.

    Raises:
        ClusterError: saying what is in which.
    """
    if target.created:
        return
    name, index, now = target.name, target.index, versions.version_behind(client, target.name)
    if now is None or now == index:
        return
    if is_carried_over(client, target, now):
        raise ClusterError(
            f"{name} now points to {now}: a retune, reencode or rollback has replaced {index} while this load was "
            f"adding to it. What it had written is in {now} too, the rest is in neither. Run the load again with the "
            f"encoder, language vectors and scales of {now}."
        )
    raise ClusterError(f"{name} now points to {now}, and {index} is read-only: run the load again.")


_QUICK = {"refresh_interval": "-1"}
# The nodes would expand the replicas again if they were only set to 0.
_FAST = {**_QUICK, "auto_expand_replicas": "false", "number_of_replicas": "0"}


# What the settings were is kept in the index itself, with the mark of an unfinished version: the next run finds it
# there, also on another machine.
def add_load_settings(
    settings: dict[str, Any], fast: bool, more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Set the load's settings in those of an index that is about to be made.

    Args:
        settings: the ``index`` part of its settings; changed in place.
        fast: whether to do without replicas too.
        more: further settings for the time of the load.

    Returns:
        What to note with the unfinished version, for ``restore``.
    """
    wanted = {**(_FAST if fast else _QUICK), **more}
    before = {name: settings.get(name) for name in wanted}
    settings.update(wanted)
    return {"restore": before}


def apply_load_settings(
    client: OpenSearch, index: str, fast: bool, more: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Set the load's settings in an unfinished version; those of an earlier run that are not wanted go back.

    Args:
        client: the cluster.
        index: the version.
        fast: whether to do without replicas too.
        more: further settings for the time of the load.
    """
    wanted = {**(_FAST if fast else _QUICK), **more}
    found = client.indices.get(index=index, params={"flat_settings": "true"})[index]
    meta, now = metadata.checked_metadata(index, found["mappings"]), found["settings"]
    noted = meta.get(metadata.UNFINISHED) or {}
    before = {name: now.get(f"index.{name}") for name in wanted} | noted.get("restore", {})
    # Noted first: a run that is killed between the two leaves something that can be restored.
    if before != noted.get("restore"):
        metadata.write(client, index, {**meta, metadata.UNFINISHED: {**noted, "restore": before}})
    client.indices.put_settings(index=index, body={"index": {**before, **wanted}})


def restore(client: OpenSearch, index: str) -> None:
    """Put back what a load has changed in an unfinished version; it stays unfinished.

    May be called at any time and any number of times: nothing happens where nothing was changed, and where the index
    is gone.
    """
    with suppress(NotFoundError):
        meta = _put_back(client, index)
        if (noted := meta.get(metadata.UNFINISHED) or {}).get("restore"):
            metadata.write(client, index, {**meta, metadata.UNFINISHED: {**noted, "restore": {}}})


def _put_back(client: OpenSearch, index: str) -> dict[str, Any]:
    """Put back what a load has changed, which stays noted; gives the version's ``_meta``."""
    meta = live_writes.release(client, index)
    if settings := (meta.get(metadata.UNFINISHED) or {}).get("restore"):
        client.indices.put_settings(index=index, body={"index": settings})
    return meta


def publish(client: OpenSearch, target: Target) -> str:
    """Make everything written searchable, and let the alias stand for a version made by this load.

    May be called again where it was cut off: what is done already is passed over.

    Returns:
        The version that the alias stands for: the load's, or one that a retune or rollback has carried its documents
        over to meanwhile.

    Raises:
        NotPublished: the version that was to be replaced was written to since the load began.
        ClusterError: the version was deleted meanwhile, or the alias does not stand any more for what it stood for.
    """
    versions.require_there(client, target)
    now = versions.version_behind(client, target.name)
    if now is not None and is_carried_over(client, target, now):
        return now
    if now != target.index:
        _require_unchanged(target, now)
        # They need not be noted as done: all that is noted goes with ``finish``.
        _put_back(client, target.index)
    client.indices.refresh(index=target.index)
    if now != target.index:
        try:
            _move_alias(client, target)
        except NotFoundError:
            versions.require_there(client, target)
            # Of a request that was sent twice, as its first answer was lost, the second finds it done.
            if (now := versions.version_behind(client, target.name)) != target.index:
                _require_unchanged(target, now)
                raise
    finish(client, target.name, target.index)
    return target.index


def _move_alias(client: OpenSearch, target: Target) -> None:
    if target.live is None:
        versions.move_alias(client, target.name, None, target.index)
        return
    with live_writes.blocked(client, target) as writes:
        if writes:
            began = utc_time(int(metadata.read_settings(client, target.index)["creation_date"]))
            raise keep_aside(
                client,
                target,
                f"{target.live} has had {pluralize(writes, 'write')} since this load began ({began}), which the new "
                "version lacks (to have them in it, run the load again with a corpus that does)",
            )
        live_writes.require_blocked(client, target)
        versions.move_alias(client, target.name, target.live, target.index)


class NotPublished(ClusterError):
    """A load is done, but its version does not take the place of the live one; the message says why.

    Attributes:
        why: why it does not; a clause.
        version: the new one, complete and kept aside, with its documents; None where there was nothing to keep.
    """

    def __init__(self, message: str, why: str, version: str | None = None) -> None:
        super().__init__(message)
        self.why, self.version = why, version


def keep_aside(client: OpenSearch, target: Target, why: str) -> NotPublished:
    """Finish a version that a load has made, and leave the alias as it is.

    The version is no longer unfinished then: no other command removes it, and ``langshift rollback --to`` makes it
    live. May be called again where it was cut off.

    Args:
        client: the cluster.
        target: the version, which takes the place of another.
        why: why it does not go live: a clause, such as ``30 of 100 lines were refused``.

    Returns:
        The error to raise, which says why, and how to publish the version all the same.
    """
    meta = _put_back(client, target.index)
    client.indices.refresh(index=target.index)
    metadata.write(client, target.index, {**meta, metadata.UNFINISHED: None})
    return NotPublished(
        f"{target.name} still points to {target.live}, because {why}: the new version is kept aside as {target.index}, "
        f"and `langshift rollback {target.name} --to {target.index}` publishes it all the same.",
        why,
        target.index,
    )


def discard_planned(client: OpenSearch, name: str, token: str) -> None:
    """Remove the version that a load has made and was killed before it could write that down."""
    for index, meta in versions.unfinished(client, name).items():
        if meta[metadata.UNFINISHED].get("token") == token:
            live_writes.release(client, index)
            client.indices.delete(index=index, ignore_unavailable=True)


def discard(client: OpenSearch, target: Target) -> None:
    """Remove a version that this load made and that nobody has seen.

    What a write has made of its name after somebody deleted it goes too; another load's version stays, and so does one
    that is kept aside.
    """
    if not target.created:
        return
    if there := versions.read_index(client, target.index, target.uuid):
        if target.name in there.aliases or metadata.UNFINISHED not in there.meta:
            return
        live_writes.release(client, target.index)
        client.indices.delete(index=target.index, ignore_unavailable=True)
    versions.remove_impostor(client, target.index, target.uuid)


def _require_unchanged(target: Target, now: str | None) -> None:
    name, index = target.name, target.index
    status = f"now points to {now}" if now else "no longer exists"
    if not target.created:
        raise ClusterError(f"{name} {status}, but this load has added its documents to {index}: run the load again.")
    if target.live is None and now is not None:
        raise ClusterError(
            f"Another load has created {name} ({now}) in the meantime, so this load's documents were not added: "
            "run it again to add them."
        )
    if target.live != now:
        raise ClusterError(
            f"{name} pointed to {target.live} when this load began and {status}, so it was not pointed to {index}: "
            "run the load again."
        )


def finish(client: OpenSearch, name: str, index: str) -> None:
    """Do what a load has left to do for a version that is live; the mark goes last: a killed run is made up for.

    The version that it replaces is deleted only now, once searches of the name find the new one's documents.

    Raises:
        Unreadable: they do not; the version before is still there.
    """
    meta = metadata.read_metadata(client, index)
    noted = meta.get(metadata.UNFINISHED)
    # What a retune has left to do is the next one's.
    if noted is None or "if_exists" not in noted:
        return
    before = noted.get("live")
    if noted["if_exists"] == "replace" and before is not None:
        try:
            _require_searchable(client, name, index)
        except BaseException:
            live_writes.release(client, index)
            raise
        # Behind its block until then: what was written to it now would go with it.
        client.indices.delete(index=before, ignore_unavailable=True)
        pipelines.forget_where_allowed(client, before)
        meta = metadata.replacing(index, metadata.read_metadata(client, index), None, None)
    elif live_writes.has_blocked(meta):
        lift_block(client, noted["live"], noted["uuid"])
        meta = metadata.read_metadata(client, index)
    # Read right before, as anybody may change it by now: the version is live.
    metadata.write(client, index, {**meta, metadata.UNFINISHED: None})


def _require_searchable(client: OpenSearch, name: str, index: str) -> None:
    whole = {"allow_partial_search_results": "false"}
    body = {"size": 1, "_source": False, "track_total_hits": True}
    held, found = (client.search(index=one, body=body, params=whole)["hits"] for one in (index, name))
    there = {hit["_index"] for hit in found["hits"]}
    if there - {index} or (held["hits"] and not there):
        raise Unreadable(
            f"Searches of {name} do not find the documents of {index}, so the version before was not deleted: "
            f"check the alias with `GET /_alias/{name}`."
        )


def open_for_writing(
    client: OpenSearch,
    name: str,
    fingerprint: Fingerprint,
    extra_meta: Mapping[str, Any] = MappingProxyType({}),
    *,
    if_exists: IfExists = "fail",
    fast: bool = False,
    token: str | None = None,
    body: Mapping[str, Any] | None = None,
    during: Mapping[str, str] = MappingProxyType({}),
    shape: IndexOptions = DEFAULT_INDEX_OPTIONS,
    fields: FieldNames = USUAL,
    field_types: FieldTypes | None = None,
) -> Target:
    """The version that documents of this fingerprint may be written to.

    A version that this makes stays out of sight until ``publish``, and is marked unfinished until then: what
    an interrupted load left behind is never mixed with another load's documents.

    Args:
        client: the cluster.
        name: the alias.
        fingerprint: what makes the documents' vectors.
        extra_meta: what else a version that is made keeps in ``_meta``, such as its language vectors.
        if_exists: what to do where there is a version already: refuse; add to it; make a new one that takes its
            place, and delete it then; make a new one that takes its place, and keep it.
        fast: whether a version that is made does without replicas until ``publish``.
        token: noted in a version that is made; see ``discard_planned``.
        body: of a version that is made, complete with what langshift keeps in it; None for the usual one.
        during: further settings of a version that is made, which hold until ``publish``.
        shape: what is changed in the usual body.
        fields: the names of the documents' fields; ``body`` names its own.
        field_types: what the first documents tell of the types of fields.

    Raises:
        FingerprintError: documents are to be added to a version with vectors of another making, or that keeps other
            things beside them.
        UsageError: there is a version already, and it is to be refused, or has other fields; or ``name`` cannot be an
            index's name.
        ClusterError: what is there was not made by langshift; or the cluster, or an index template there, makes no
            index of that shape.
    """
    there = versions.read_live(client, name)
    live = None if there is None else there.name
    if there is not None:
        made_by = versions.fingerprint_of(there.name, there.meta)
        if if_exists == "fail":
            held = pluralize(client.count(index=live)["count"], "document")
            raise UsageError(
                f"Index {name} already exists ({live}, {held}): add to it with --if-exists append, replace it with "
                "--if-exists replace, or create a new version of it with --if-exists new-version."
            )
        if if_exists == "append":
            _require_appendable(name, there, shape, fields)
            require_same(name, there.meta, extra_meta)
            made_by.require_same(fingerprint, name, "use the settings it was built with, or choose another index name")
            return Target(name, there.name, there.uuid, created=False, live=live, if_exists=if_exists, fields=fields)
        require_whole_view(client, there.name, "a load that takes its place")
        # What a load has left to do that was killed right after it had published its version.
        if metadata.UNFINISHED in there.meta:
            finish(client, name, there.name)
    index = versions.next_version(client, name, live)
    usual = shape.applied(index_body(fingerprint, extra_meta, fields), field_types) if body is None else {}
    made = deepcopy(dict(body)) if body is not None else usual
    require_engine(client, made)
    restore = add_load_settings(made["settings"]["index"], fast, during)
    before = {} if there is None else live_writes.noted_at_begin(client, name, there)
    noted = metadata.replacing(index, made["mappings"]["_meta"], live, before.get("uuid"))
    noted[metadata.UNFINISHED] = {**restore, "live": live, **before, "if_exists": if_exists, "token": token}
    made["mappings"]["_meta"] = noted

    def is_own() -> bool:
        return token is not None and (metadata.unfinished(client, index) or {}).get("token") == token

    try:
        uuid = create_version(client, name, index, made, is_own)
    except RequestError as error:
        if error.error == ALREADY_EXISTS:
            message = f"Another load is creating {name}: run the command again when it has finished."
            raise ClusterError(message) from error
        if shape.template is not None:
            raise shape.template.refused(error) from error
        raise
    fields = FieldNames.from_meta(noted)
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
    if (there := versions.read_index(client, index, uuid)) is None:
        raise ClusterError(
            f"Index {index}, which this load was writing to, was deleted: run the load again without --resume."
        )
    fields, noted = FieldNames.from_meta(there.meta), there.meta.get(metadata.UNFINISHED)
    if versions.version_behind(client, name) == index:
        return Target(name, index, uuid, created=False, live=index, if_exists="append", fields=fields)
    if noted is None:
        raise ClusterError(
            f"{name} no longer points to {index}, to which this load was adding: run the load again without --resume."
        )
    apply_load_settings(client, index, fast)
    live, if_exists = noted.get("live"), noted.get("if_exists", "fail")
    return Target(name, index, uuid, created=True, live=live, if_exists=if_exists, fields=fields)


def may_reopen(client: OpenSearch, name: str, index: str, uuid: str) -> bool:
    """Whether a load that was cut off can be gone on with, which ``reopen`` or ``publish`` may refuse.

    Its version must be there, and the alias must stand for that, or for what it stood for when the load began.
    """
    if (there := versions.read_index(client, index, uuid)) is None:
        return False
    now, noted = versions.version_behind(client, name), there.meta.get(metadata.UNFINISHED)
    return now == index or (noted is not None and noted.get("live") == now)


def stands(client: OpenSearch, name: str, index: str, uuid: str) -> bool:
    """Whether the alias stands for a version, and that is still the one with this id."""
    return uuid_of(client, index) == uuid and versions.version_behind(client, name) == index


def _require_appendable(name: str, there: StoredIndex, shape: IndexOptions, fields: FieldNames) -> None:
    index, own = there.name, FieldNames.from_meta(there.meta)
    if shape.given:
        raise UsageError(
            f"Index {name} already exists ({index}), where {' and '.join(shape.given)} would have no effect: leave "
            "that out to add to it, replace it with --if-exists replace, or create a new version of it with "
            "--if-exists new-version."
        )
    if not own.split:
        raise UsageError(
            f"Index {name} was adopted and stores its vectors in {own.vector!r}, where a load does not write: "
            f"run `langshift pipeline install {name}`, then add documents with any client."
        )
    if own.chunking != fields.chunking:
        raise UsageError(
            f"Index {name} ({index}) was loaded with --chunk {own.chunking or 'off'}, but this load was given --chunk "
            f"{fields.chunking or 'off'}: leave --chunk out to add to it, or create a new version of it with "
            "--if-exists new-version."
        )
    if own.to_dict() != fields.to_dict():
        made, given = (one.as_options() or "no field options" for one in (own, fields))
        raise UsageError(
            f"Index {name} ({index}) was loaded with {made}, but this load was given {given}: leave the field options "
            "out to add to it, or create a new version of it with --if-exists new-version."
        )

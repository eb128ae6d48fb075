"""The versions on a cluster: listed, and dropped."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import click
from opensearchpy import OpenSearch
from rich.filesize import decimal

from langshift.client import open_cluster
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, UsageError
from langshift.output import emit_json, line, note, pluralize
from langshift.plugin import metadata, pipelines
from langshift.plugin.metadata import FieldNames
from langshift.plugin.transfer.run import release_abandoned
from langshift.plugin.transfer.state import Kind, transfer_note_from_metadata
from langshift.plugin.versions import alias_of, check_name, version_behind

State = Literal["live", "kept", "unfinished"]
VersionOperation = Literal["load", "retune", "reencode", "rollback"]

_BLOCKS = ("write", "read_only", "read_only_allow_delete")
# All but the language vectors, which may be large.
_META = (
    *(metadata.FINGERPRINT, metadata.UNFINISHED, metadata.ORIGIN, metadata.FIELDS),
    *(f"{metadata.QUERIES}.{name}" for name in ("common", "preference")),
)
_SETTINGS = ("creation_date", "uuid", *(f"blocks.{name}" for name in _BLOCKS))
_WANTED = ("aliases", *(f"mappings._meta.{name}" for name in _META), *(f"settings.index.{name}" for name in _SETTINGS))


# What ``--json`` says of a version, in this order.
_SHOWN = (
    *("name", "version", "state", "documents", "chunks", "bytes"),
    *(f"fingerprint.{name}" for name in ("encoder", "alpha", "alphas", "gamma", "vectors")),
    *("made", "write_blocked", "origin", "unfinished"),
)


# The server counts so many different values, and above only about.
_COUNTED = 40_000


class DocumentCount(NamedTuple):
    """How many documents an index holds, as ``Version`` has it."""

    documents: int | None
    chunks: int | None = None

    def __str__(self) -> str:
        if self.documents is None:
            return "closed"
        about = "about " if self.chunks is not None and self.documents > _COUNTED else ""
        cut = "" if self.chunks is None else f" in {pluralize(self.chunks, 'chunk')}"
        return f"{about}{pluralize(self.documents, 'document')}{cut}"


@dataclass(frozen=True)
class Version:
    """One version of an index.

    Attributes:
        name: the index's name, an alias.
        version: its own name.
        uuid: the server's own id of it.
        state: ``live`` is what the name stands for; ``kept`` was that once; ``unfinished`` is being made, or was left
            by a command that was cut off.
        documents: how many can be found, above 40,000 that are cut into chunks about so many; None where the version
            does not answer.
        bytes: on disk, with all copies; None where the version does not answer.
        fingerprint: what made its vectors.
        made: when, ISO 8601.
        write_blocked: whether nobody can write to it.
        origin: what made it, and of what, as ``_meta.langshift_origin`` says; None where it does not say.
        unfinished: by which command; None where it is finished.
        blocks: the version that this command has blocked for its last step; None where it has blocked none.
        preference: the language preference that is recommended with the scales of its shift.
        common_means: whether it keeps the means that a gamma takes off documents and queries.
        chunks: how many entries its documents are cut into; None where each is one entry, or where it does not answer.
    """

    name: str
    version: str
    uuid: str
    state: State
    documents: int | None
    bytes: int | None
    fingerprint: Fingerprint
    made: str
    write_blocked: bool
    origin: Mapping[str, Any] | None
    unfinished: VersionOperation | None
    blocks: str | None
    preference: float = 0.0
    common_means: bool = False
    chunks: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {name.rpartition(".")[2]: attrgetter(name)(self) for name in _SHOWN}


def all_versions(client: OpenSearch) -> list[Version]:
    """All versions of all indices of langshift's, by name and the oldest first."""
    return _versions(client, "*")


def versions_of(client: OpenSearch, name: str) -> list[Version]:
    """The versions of one index, the oldest first; indices of that name which are not langshift's are left out."""
    return [one for one in _versions(client, f"{name}-v*") if one.name == name]


def _versions(client: OpenSearch, pattern: str) -> list[Version]:
    wanted = ",".join(f"*.{name}" for name in _WANTED)
    answer = client.indices.get(index=pattern, params={"expand_wildcards": "all", "filter_path": wanted})
    found = {index: (one, ours) for index, one in answer.items() if (ours := _fingerprint(index, one)) is not None}
    if not found:
        return []
    fields = {index: FieldNames.from_meta(one["mappings"]["_meta"]) for index, (one, _) in found.items()}
    counts, sizes = count_documents(client, fields), _sizes(client, pattern)
    made = [_version(index, *one, counts[index], sizes.get(index)) for index, one in found.items()]
    return sorted(made, key=lambda one: (one.name, int(one.version.rpartition("-v")[2])))


def _fingerprint(index: str, found: Mapping[str, Any]) -> Fingerprint | None:
    """The fingerprint of a version; None for what is no version, or not langshift's."""
    if alias_of(index) == index:
        return None
    try:
        return Fingerprint.from_dict(found["mappings"]["_meta"][metadata.FINGERPRINT])
    except (KeyError, TypeError):
        return None


def _version(
    index: str, found: Mapping[str, Any], fingerprint: Fingerprint, count: DocumentCount, size: int | None
) -> Version:
    name, meta, settings = alias_of(index), found["mappings"]["_meta"], found["settings"]["index"]
    unfinished = meta.get(metadata.UNFINISHED)
    transfer, queries = transfer_note_from_metadata(meta), meta.get(metadata.QUERIES, {})
    state: State = "live" if name in found.get("aliases", {}) else "unfinished" if unfinished else "kept"
    return Version(
        name=name,
        version=index,
        uuid=settings["uuid"],
        state=state,
        documents=count.documents,
        chunks=count.chunks,
        bytes=size,
        fingerprint=fingerprint,
        made=datetime.fromtimestamp(int(settings["creation_date"]) / 1000, timezone.utc).isoformat(timespec="seconds"),
        write_blocked=any(metadata.is_on(settings.get("blocks", {}).get(block)) for block in _BLOCKS),
        origin=_origin(meta, transfer),
        unfinished=None if state != "unfinished" else "load" if transfer is None else transfer[0],
        blocks=transfer[1]["from"] if transfer is not None and transfer[1].get("blocked") else None,
        preference=queries.get("preference", 0.0),
        common_means="common" in queries,
    )


def _origin(meta: Mapping[str, Any], transfer: tuple[Kind, Mapping[str, Any]] | None) -> Mapping[str, Any] | None:
    """What a version says, or what the command says that is making it."""
    if transfer is not None:
        kind, note = transfer
        return {"kind": kind, "from": note.get("from"), "uuid": note.get("uuid")}
    origin: Mapping[str, Any] | None = meta.get(metadata.ORIGIN)
    # The checkpoint is for the rollback alone.
    return None if origin is None else {name: value for name, value in origin.items() if name != "checkpoint"}


def count_documents(client: OpenSearch, indices: Mapping[str, FieldNames]) -> dict[str, DocumentCount]:
    """Count the documents of indices, by the names of their fields; one request."""
    lines: list[dict[str, Any]] = []
    for index, fields in indices.items():
        body: dict[str, Any] = {"size": 0, "track_total_hits": True}
        if fields.parent is not None:
            cardinality = {"field": fields.document_key, "precision_threshold": _COUNTED}
            body["aggs"] = {"documents": {"cardinality": cardinality}}
        lines += [{"index": index}, body]
    answers = client.msearch(body=lines)["responses"]
    return {index: _counted(answer) for index, answer in zip(indices, answers, strict=True)}


def _counted(answer: Mapping[str, Any]) -> DocumentCount:
    # The server's statistics would count nested ones too.
    if "hits" not in answer or answer["_shards"]["failed"]:
        return DocumentCount(None)
    total = int(answer["hits"]["total"]["value"])
    if "aggregations" not in answer:
        return DocumentCount(total)
    return DocumentCount(int(answer["aggregations"]["documents"]["value"]), total)


def _sizes(client: OpenSearch, pattern: str) -> dict[str, int]:
    """Index -> bytes on disk, with all copies."""
    wanted = {"filter_path": "indices.*.total.store.size_in_bytes", "expand_wildcards": "open,hidden"}
    found = client.indices.stats(index=pattern, metric="store", params=wanted).get("indices", {})
    return {index: int(one["total"]["store"]["size_in_bytes"]) for index, one in found.items()}


class DropPlan(NamedTuple):
    """What is to be removed.

    Attributes:
        name: the index.
        versions: those that go, the live one last: until then the index serves.
        whole: whether nothing is left of it.
    """

    name: str
    versions: Sequence[Version]
    whole: bool

    def in_words(self) -> str:
        """What goes, as a sentence without its end."""
        listing = ", ".join(f"{one.version} ({_held(one)})" for one in self.versions)
        return f"the index {self.name} with {listing}" if self.whole else listing


def run_drop(name: str, version: str | None, *, yes: bool, as_json: bool) -> int:
    """Ask, and remove.

    Returns:
        The exit code: 0, or 1 where the answer is no.

    Raises:
        UsageError: ``name`` cannot be an index's name, there is no such version or it is the live one, or nobody can
            be asked.
        ClusterError: there is no such index, or it is not langshift's.
    """
    check_name(name)
    client = open_cluster()
    wanted = plan_drop(client, name, version)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"This would remove {wanted.in_words()}: without a terminal, confirm with --yes.")
        note(f"This removes {wanted.in_words()}.")
        if not click.confirm("Remove it?", err=True):
            note("Nothing was removed.")
            return 1
    drop(client, wanted)
    if as_json:
        emit_json({"name": name, "whole": wanted.whole, "removed": [one.to_dict() for one in wanted.versions]})
    else:
        line(f"Removed {wanted.in_words()}.")
    return 0


def plan_drop(client: OpenSearch, name: str, version: str | None) -> DropPlan:
    """What is to be removed; nothing is, yet.

    Args:
        client: the cluster.
        name: the index.
        version: the one version that is to go, such as ``news-v0001``, ``v0001`` or ``1``; None for all.

    Raises:
        UsageError: ``name`` cannot be an index's name, there is no such version, or it is the live one.
        ClusterError: there is no such index, or it is not langshift's.
    """
    if alias_of(name) != name and any(one.version == name for one in versions_of(client, alias_of(name))):
        raise UsageError(
            f"{name} is a version of {alias_of(name)}: remove it with `langshift index drop {alias_of(name)} "
            f"--version {name}`."
        )
    live = version_behind(client, name)
    found = versions_of(client, name)
    if live is not None and live not in [one.version for one in found]:
        raise ClusterError(f"{name} points to {live}, which is not a version of {name}: nothing was removed.")
    if not found:
        raise ClusterError(f"There is no index {name}: `langshift index list` lists the existing indices.")
    if version is None:
        return DropPlan(name, sorted(found, key=lambda one: one.state == "live"), whole=True)
    one = _named(name, version, found)
    if one.state == "live":
        raise UsageError(
            f"{one.version} is the version that {name} points to: go back to another version first "
            f"(langshift rollback {name}), or remove all versions with `langshift index drop {name}`."
        )
    return DropPlan(name, [one], whole=False)


def drop(client: OpenSearch, wanted: DropPlan) -> None:
    """Remove versions, and what the cluster keeps for them.

    Cut off in between, it may be done again: the live version goes last.

    Raises:
        ClusterError: what is there is not what it was when this was planned.
    """
    now = {one.version: (one.uuid, one.state) for one in versions_of(client, wanted.name)}
    same = all(now.get(one.version) == (one.uuid, one.state) for one in wanted.versions)
    if not same or (wanted.whole and len(now) > len(wanted.versions)):
        raise ClusterError(f"The versions of {wanted.name} have changed, so none was removed: run the command again.")
    for one in wanted.versions:
        if one.unfinished not in (None, "load"):
            release_abandoned(client, wanted.name)
        if metadata.uuid_of(client, one.version) == one.uuid:
            client.indices.delete(index=one.version, ignore_unavailable=True)
        if not pipelines.forget_where_allowed(client, one.version):
            note(f"This user may not read ingest pipelines, so {pipelines.name_for(one.version)} remains if it exists.")


def drop_all(client: OpenSearch, name: str) -> None:
    """Remove an index with all its versions, and what the cluster keeps for them; nothing where there is none.

    Raises:
        ClusterError: ``name`` is an index, or stands for what is not langshift's; then nothing is removed.
    """
    if version_behind(client, name) is not None or versions_of(client, name):
        drop(client, plan_drop(client, name, None))


def _named(name: str, version: str, found: Sequence[Version]) -> Version:
    parsed = re.fullmatch(rf"(?:{re.escape(name)}-)?v?0*([1-9][0-9]*)", version, re.ASCII)
    index = f"{name}-v{int(parsed[1]):04}" if parsed else ""
    one = next((one for one in found if one.version == index), None)
    if one is None:
        there = ", ".join(one.version for one in found)
        raise UsageError(f"{name} has no version {version!r}: it has {there}.")
    return one


def _held(one: Version) -> str:
    counted = str(DocumentCount(one.documents, one.chunks))
    return ", ".join([one.state, counted, *([] if one.bytes is None else [decimal(one.bytes)])])

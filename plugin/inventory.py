"""The versions on a cluster: listed, counted, and dropped."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import TransportError
from rich.filesize import decimal

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, UsageError
from langshift.plugin import live_writes, metadata, pipelines
from langshift.plugin.metadata import USUAL, FieldNames, MetadataError, checked_metadata
from langshift.plugin.representations import SPARSE, TOKENS, Kept, stored_beside
from langshift.plugin.transfer.run import release_abandoned
from langshift.plugin.transfer.state import Kind, transfer_note_from_metadata
from langshift.plugin.versions import IndexInfo, alias_of, broken_in_words, live, version_behind
from langshift.reporting import note
from langshift.wording import iso_time, pluralize

State = Literal["live", "kept", "unfinished"]
VersionOperation = Literal["load", "retune", "reencode", "rollback"]

_BLOCKS = ("write", "read_only", "read_only_allow_delete")
_META = (
    *(metadata.FINGERPRINT, metadata.UNFINISHED, metadata.ORIGIN, metadata.FIELDS, metadata.TRANSLATED),
    *(SPARSE, TOKENS),
)
_SETTINGS = ("creation_date", "uuid", *(f"blocks.{name}" for name in _BLOCKS))
_WANTED = ("aliases", *(f"mappings._meta.{name}" for name in _META), *(f"settings.index.{name}" for name in _SETTINGS))
# What ``--json`` says of a version, in this order.
_OF_FINGERPRINT = ("encoder", "alpha", "alphas", "gamma", "own", "vectors")
_SHOWN = (
    *("name", "version", "state", "documents", "chunks", "bytes", *_OF_FINGERPRINT, "sparse", "tokens"),
    *("made", "write_blocked", "origin", "unfinished", "error"),
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


@dataclass(frozen=True, kw_only=True)
class ListedVersion:
    """What is known of a version whatever it says of itself.

    Attributes:
        name: the index's name, an alias.
        version: its own name.
        uuid: the server's own id of it.
        state: ``live`` is what the name stands for; ``kept`` was that once, or was kept aside by a load that did not
            publish it; ``unfinished`` is being made, or was left by a command that was cut off.
        documents: how many can be found, above 40,000 that are cut into chunks about so many; None where the version
            does not answer.
        bytes: on disk, with all copies; None where the version does not answer.
        made: when, ISO 8601.
        write_blocked: whether nobody can write to it.
        chunks: how many entries its documents are cut into; None where each is one entry, or where it does not answer.
        unfinished: by which command; None where it is finished.
        error: what is wrong with its metadata, with the path of the key; None where nothing is.
    """

    name: str
    version: str
    uuid: str
    state: State
    documents: int | None
    bytes: int | None
    made: str
    write_blocked: bool
    chunks: int | None = None
    unfinished: VersionOperation | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it: null for what cannot be read."""
        made = getattr(self, "fingerprint", None)
        return {name: getattr(made if name in _OF_FINGERPRINT else self, name, None) for name in _SHOWN}


@dataclass(frozen=True, kw_only=True)
class UnreadableVersion(ListedVersion):
    """A version with metadata that somebody has changed."""

    error: str


@dataclass(frozen=True, kw_only=True)
class Version(ListedVersion):
    """One version of an index.

    Attributes:
        fingerprint: what made its vectors.
        beside: what it keeps of its texts beside their vectors.
        origin: what made it, and of what, as ``_meta.langshift_origin`` says; None where it does not say.
        blocks: the version that the command that is making it has blocked for its last step; None where it has
            blocked none.
        begun: when a retune, reencode or rollback that is not finished began, ISO 8601; None for other versions.
        process: the process that did it, as ``state.this_process`` gives it; None for other versions.
        translated: how far its documents are translated, see ``metadata.TRANSLATED``; 0 where nobody has looked.
    """

    fingerprint: Fingerprint
    origin: Mapping[str, Any] | None
    blocks: str | None
    begun: str | None = None
    process: Mapping[str, Any] | None = None
    beside: Sequence[Kept] = ()
    translated: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        kept = {one.option[2:]: msgspec.to_builtins(one) for one in self.beside}
        return {**super().to_dict(), **kept}


AnyVersion = Version | UnreadableVersion


def versions_of(client: OpenSearch, name: str | None = None) -> list[Version]:
    """The versions of one index, or of all of langshift's, that can be read, by name and the oldest first.

    Indices of that name which are not langshift's are left out.
    """
    return [one for one in listed(client, name) if isinstance(one, Version)]


def listed(client: OpenSearch, name: str | None = None) -> list[AnyVersion]:
    """All versions of one index, or of all of langshift's, by name and the oldest first."""
    pattern = "*" if name is None else f"{name}-v*"
    wanted = ",".join(f"*.{name}" for name in _WANTED)
    answer = client.indices.get(index=pattern, params={"expand_wildcards": "all", "filter_path": wanted})
    found = {index: one for index, one in answer.items() if _is_version(index, one, name)}
    if not found:
        return []
    read = {index: _read(index, one) for index, one in found.items()}
    fields = {index: USUAL if isinstance(one, str) else FieldNames.from_meta(one) for index, one in read.items()}
    counts, sizes = _counts(client, fields), _sizes(client, pattern)
    made = [_version(index, one, read[index], counts[index], sizes.get(index)) for index, one in found.items()]
    return sorted(made, key=lambda one: (one.name, int(one.version.rpartition("-v")[2])))


def searchable(client: OpenSearch, versions: Sequence[AnyVersion]) -> list[IndexInfo]:
    """The indices whose live version is among these and can be searched, by name.

    One that somebody has changed or closed, drops just now, or may not read keeps no other from the list.
    """
    found = []
    for name in sorted({one.name for one in versions if one.state == "live" and isinstance(one, Version)}):
        try:
            found.append(live(client, name))
        except (ClusterError, TransportError) as error:
            # About the index alone are answers for one that is closed, denied, gone, or has no shard that answers.
            if getattr(error, "status_code", 404) not in (400, 403, 404, 503):
                raise
    return found


def _is_version(index: str, found: Mapping[str, Any], name: str | None) -> bool:
    """Whether an index is a version of langshift's, and of the index of that name where one is given."""
    ours = metadata.FINGERPRINT in found.get("mappings", {}).get("_meta", {})
    return ours and alias_of(index) != index and name in (None, alias_of(index))


def _read(index: str, found: Mapping[str, Any]) -> Mapping[str, Any] | str:
    """What a version says of itself, or why that cannot be read."""
    try:
        return checked_metadata(index, found["mappings"], listed=True)
    except MetadataError as error:
        return error.why


def _version(
    index: str, found: Mapping[str, Any], meta: Mapping[str, Any] | str, count: DocumentCount, size: int | None
) -> AnyVersion:
    name, settings = alias_of(index), found["settings"]["index"]
    unfinished = found["mappings"]["_meta"].get(metadata.UNFINISHED)
    transfer = None if isinstance(meta, str) else transfer_note_from_metadata(meta)
    state: State = "live" if name in found.get("aliases", {}) else "unfinished" if unfinished else "kept"
    known: dict[str, Any] = {
        "name": name,
        "version": index,
        "uuid": settings["uuid"],
        "state": state,
        "documents": count.documents,
        "chunks": count.chunks,
        "bytes": size,
        "made": iso_time(int(settings["creation_date"]) / 1000),
        "write_blocked": any(metadata.is_on(settings.get("blocks", {}).get(block)) for block in _BLOCKS),
        "unfinished": None if state != "unfinished" else "load" if transfer is None else transfer[0],
    }
    if isinstance(meta, str):
        return UnreadableVersion(**known, error=meta)
    note = {} if transfer is None else transfer[1]
    # What a load notes is not of its own kind.
    by = note or unfinished or {}
    return Version(
        **known,
        fingerprint=Fingerprint.from_dict(meta[metadata.FINGERPRINT]),
        origin=_origin(meta, transfer),
        blocks=by.get("from", by.get("live")) if by.get("blocked") else None,
        begun=note.get("at"),
        process=note.get("process"),
        translated=meta.get(metadata.TRANSLATED) or 0.0,
        beside=list(stored_beside(meta).values()),
    )


def _origin(meta: Mapping[str, Any], transfer: tuple[Kind, Mapping[str, Any]] | None) -> Mapping[str, Any] | None:
    """What a version says, or what the command says that is making it."""
    if transfer is not None:
        kind, note = transfer
        return {"kind": kind, "from": note.get("from"), "uuid": note.get("uuid")}
    origin: Mapping[str, Any] | None = meta.get(metadata.ORIGIN)
    # The checkpoint is for the rollback alone.
    return None if origin is None else {name: value for name, value in origin.items() if name != "checkpoint"}


def count_documents(client: OpenSearch, index: str, fields: FieldNames) -> DocumentCount:
    """Count the documents of an index, by the names of its fields; one search."""
    return _counted(client.search(index=index, body=_counting(fields)))


def _counts(client: OpenSearch, indices: Mapping[str, FieldNames]) -> dict[str, DocumentCount]:
    lines = [part for index, fields in indices.items() for part in ({"index": index}, _counting(fields))]
    answers = client.msearch(body=lines)["responses"]
    return {index: _counted(answer) for index, answer in zip(indices, answers, strict=True)}


def _counting(fields: FieldNames) -> dict[str, Any]:
    body: dict[str, Any] = {"size": 0, "track_total_hits": True}
    if fields.parent is not None:
        cardinality = {"field": fields.document_key, "precision_threshold": _COUNTED}
        body["aggs"] = {"documents": {"cardinality": cardinality}}
    return body


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
    versions: Sequence[AnyVersion]
    whole: bool

    def in_words(self) -> str:
        """What goes, as a sentence without its end."""
        listing = ", ".join(map(in_short, self.versions))
        return f"the index {self.name} with {listing}" if self.whole else listing


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
    if alias_of(name) != name and any(one.version == name for one in listed(client, alias_of(name))):
        raise UsageError(
            f"{name} is a version of {alias_of(name)}: remove it with `langshift index drop {alias_of(name)} "
            f"--version {name}`."
        )
    live = version_behind(client, name)
    found = listed(client, name)
    if live is not None and live not in [one.version for one in found]:
        raise ClusterError(
            f"{broken_in_words(name, [live])} Nothing was removed."
            if found
            else f"{name} points to {live}, which is not a version of {name}: nothing was removed."
        )
    if not found:
        raise ClusterError(f"There is no index {name}: `langshift index list` lists the existing indices.")
    if version is None:
        return DropPlan(name, sorted(found, key=lambda one: one.state == "live"), whole=True)
    one = find_version(name, version, found)
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
    now = {one.version: (one.uuid, one.state) for one in listed(client, wanted.name)}
    same = all(now.get(one.version) == (one.uuid, one.state) for one in wanted.versions)
    if not same or (wanted.whole and len(now) > len(wanted.versions)):
        raise ClusterError(f"The versions of {wanted.name} have changed, so none was removed: run the command again.")
    for one in wanted.versions:
        if one.unfinished == "load":
            live_writes.release(client, one.version)
        elif one.unfinished is not None:
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
    if version_behind(client, name) is not None or listed(client, name):
        drop(client, plan_drop(client, name, None))


def find_version(name: str, version: str, found: Sequence[AnyVersion]) -> AnyVersion:
    """The version that a person names, such as ``news-v0001``, ``v0001`` or ``1``.

    Raises:
        UsageError: there is none.
    """
    parsed = re.fullmatch(rf"(?:{re.escape(name)}-)?v?0*([1-9][0-9]{{0,9}})", version, re.ASCII)
    index = f"{name}-v{int(parsed[1]):04}" if parsed else ""
    one = next((one for one in found if one.version == index), None)
    if one is None:
        there = ", ".join(one.version for one in found)
        raise UsageError(f"{name} has no version {version!r}: it has {there}.")
    return one


def in_short(one: AnyVersion) -> str:
    """A version with its state and size: ``news-v0001 (live, 8 documents, 12.0 kB)``."""
    counted = str(DocumentCount(one.documents, one.chunks))
    held = ", ".join([one.state, counted, *([] if one.bytes is None else [decimal(one.bytes)])])
    return f"{one.version} ({held})"


_MOST_LANGUAGES = 1000


class TranslatedPages(NamedTuple):
    """In how many of its languages an index has its pages.

    Attributes:
        pages: translation groups, and documents without one.
        per_page: in how many languages a page is there, on average.
        languages: how many languages the index has, by the shares of its documents: ``1 / Σ p²``.
        field: what a search collapses by to show each page once; empty for a corpus.
    """

    pages: int
    per_page: float
    languages: float
    field: str = ""

    @classmethod
    def of(cls, pages: float, per_language: Collection[float], field: str = "") -> TranslatedPages | None:
        """Of the pages, and how many of them there are in each language; None where none is in two."""
        held = sum(per_language)
        if held <= pages:
            return None
        return cls(round(pages), held / pages, held**2 / sum(one**2 for one in per_language), field)

    @property
    def share(self) -> float:
        """0 where nothing is translated, 1 where each page is there in every language."""
        return min((self.per_page - 1) / (self.languages - 1), 1.0) if self.languages > 1 else 0.0

    @property
    def in_words(self) -> str:
        """Such as ``240 pages, on average in 7.9 of 8.0 languages``."""
        languages = max(self.languages, self.per_page)
        return f"{pluralize(self.pages, 'page')}, on average in {self.per_page:.1f} of {languages:.1f} languages"


def noted_translations(client: OpenSearch, index: str, fields: FieldNames) -> TranslatedPages | None:
    """As ``translations_of``, and the version keeps how far it is translated."""
    found, meta = translations_of(client, index, fields), metadata.read_metadata(client, index)
    share = None if found is None else round(found.share, 2)
    if share != meta.get(metadata.TRANSLATED):
        metadata.change(client, index, {metadata.TRANSLATED: share})
    return found


def translations_of(client: OpenSearch, index: str, fields: FieldNames) -> TranslatedPages | None:
    """Count them by the pages that documents' stamps name; one search.

    Args:
        client: the cluster.
        index: a version.
        fields: the names of its fields.

    Returns:
        None where no page is there in several languages, or documents name no page.
    """
    pages = {"cardinality": {"field": fields.page, "precision_threshold": _COUNTED}}
    languages = {"terms": {"field": fields.language, "size": _MOST_LANGUAGES}, "aggs": {"pages": pages}}
    body: dict[str, Any] = {"size": 0, "query": {"exists": {"field": fields.page}}}
    found = client.search(index=index, body={**body, "aggs": {"pages": pages, "languages": languages}})["aggregations"]
    each = [one["pages"]["value"] for one in found["languages"]["buckets"]]
    return TranslatedPages.of(found["pages"]["value"], each, fields.page)

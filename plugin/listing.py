"""Which versions of langshift's there are on a cluster, and what can be said of each without opening it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from opensearchpy import OpenSearch

from langshift.debias.fingerprint import Fingerprint
from langshift.plugin import meta
from langshift.plugin.index_settings import is_on
from langshift.plugin.transfer.mark import Kind, of_meta
from langshift.plugin.versions import alias_of

State = Literal["live", "kept", "unfinished"]
Maker = Literal["load", "retune", "rollback"]

_BLOCKS = ("write", "read_only", "read_only_allow_delete")
# All but the language vectors, which may be large.
_KEPT = (meta.FINGERPRINT, meta.UNFINISHED, meta.ORIGIN)
_WANTED = (
    "*.aliases",
    *(f"*.mappings._meta.{name}" for name in _KEPT),
    "*.settings.index.creation_date",
    "*.settings.index.uuid",
    *(f"*.settings.index.blocks.{name}" for name in _BLOCKS),
)


@dataclass(frozen=True)
class Version:
    """One version of an index.

    Attributes:
        name: the index's name, an alias.
        version: its own name.
        uuid: the server's own id of it.
        state: ``live`` is what the name stands for; ``kept`` was that once; ``unfinished`` is being made, or was left
            by a command that was cut off.
        documents: how many can be found; None where the version does not answer.
        bytes: on disk, with all copies; None where the version does not answer.
        fingerprint: what made its vectors.
        made: when, ISO 8601.
        write_blocked: whether nobody can write to it.
        origin: what made it, and of what, as ``_meta.langshift_origin`` says; None where it does not say.
        unfinished: by which command; None where it is finished.
        blocks: the version that this command has blocked for its last step; None where it has blocked none.
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
    unfinished: Maker | None
    blocks: str | None

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        made = self.fingerprint
        return {
            "name": self.name,
            "version": self.version,
            "state": self.state,
            "documents": self.documents,
            "bytes": self.bytes,
            "encoder": made.encoder,
            "alpha": made.alpha,
            "alphas": dict(made.alphas),
            "vectors": made.vectors,
            "made": self.made,
            "write_blocked": self.write_blocked,
            "origin": self.origin,
            "unfinished": self.unfinished,
        }


def all_versions(client: OpenSearch) -> list[Version]:
    """All versions of all indices of langshift's, by name and the oldest first."""
    return _versions(client, "*")


def versions_of(client: OpenSearch, name: str) -> list[Version]:
    """The versions of one index, the oldest first; indices of that name which are not langshift's are left out."""
    return [one for one in _versions(client, f"{name}-v*") if one.name == name]


def _versions(client: OpenSearch, pattern: str) -> list[Version]:
    answer = client.indices.get(index=pattern, params={"expand_wildcards": "all", "filter_path": ",".join(_WANTED)})
    found = {index: (one, ours) for index, one in answer.items() if (ours := _fingerprint(index, one)) is not None}
    documents, sizes = _documents(client, list(found)), _sizes(client, pattern) if found else {}
    made = [_version(index, *one, documents[index], sizes.get(index)) for index, one in found.items()]
    return sorted(made, key=lambda one: (one.name, int(one.version.rpartition("-v")[2])))


def _fingerprint(index: str, found: Mapping[str, Any]) -> Fingerprint | None:
    """The fingerprint of a version; None for what is no version, or not langshift's."""
    if alias_of(index) == index:
        return None
    try:
        return Fingerprint.from_dict(_kept(found)[meta.FINGERPRINT])
    except (KeyError, TypeError):
        return None


def _kept(found: Mapping[str, Any]) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = found.get("mappings", {}).get("_meta", {})
    return kept


def _version(
    index: str, found: Mapping[str, Any], fingerprint: Fingerprint, documents: int | None, size: int | None
) -> Version:
    name, kept, settings = alias_of(index), _kept(found), found["settings"]["index"]
    unfinished = kept.get(meta.UNFINISHED)
    transfer = of_meta(kept)
    state: State = "live" if name in found.get("aliases", {}) else "unfinished" if unfinished else "kept"
    blocks = settings.get("blocks", {})
    return Version(
        name=name,
        version=index,
        uuid=settings["uuid"],
        state=state,
        documents=documents,
        bytes=size,
        fingerprint=fingerprint,
        made=datetime.fromtimestamp(int(settings["creation_date"]) / 1000, timezone.utc).isoformat(timespec="seconds"),
        write_blocked=any(is_on(blocks.get(block)) for block in _BLOCKS),
        origin=_origin(kept, transfer),
        unfinished=None if state != "unfinished" else "load" if transfer is None else transfer[0],
        blocks=transfer[1]["from"] if transfer is not None and transfer[1].get("blocked") else None,
    )


def _origin(kept: Mapping[str, Any], transfer: tuple[Kind, Mapping[str, Any]] | None) -> Mapping[str, Any] | None:
    """What a version says, or what the command says that is making it."""
    if transfer is not None:
        kind, note = transfer
        return {"kind": kind, "from": note.get("from"), "uuid": note.get("uuid")}
    origin: Mapping[str, Any] | None = kept.get(meta.ORIGIN)
    # The checkpoint is for the rollback alone.
    return None if origin is None else {name: value for name, value in origin.items() if name != "checkpoint"}


def _documents(client: OpenSearch, indices: Sequence[str]) -> dict[str, int | None]:
    """Index -> documents; the server's statistics would count nested ones too."""
    if not indices:
        return {}
    lines: list[dict[str, Any]] = []
    for index in indices:
        lines += [{"index": index}, {"size": 0, "track_total_hits": True}]
    answers = client.msearch(body=lines)["responses"]
    return {index: _total(answer) for index, answer in zip(indices, answers, strict=True)}


def _total(answer: Mapping[str, Any]) -> int | None:
    if "hits" not in answer or answer["_shards"]["failed"]:
        return None
    return int(answer["hits"]["total"]["value"])


def _sizes(client: OpenSearch, pattern: str) -> dict[str, int]:
    """Index -> bytes on disk, with all copies."""
    wanted = {"filter_path": "indices.*.total.store.size_in_bytes", "expand_wildcards": "open,hidden"}
    found = client.indices.stats(index=pattern, metric="store", params=wanted).get("indices", {})
    return {index: int(one["total"]["store"]["size_in_bytes"]) for index, one in found.items()}

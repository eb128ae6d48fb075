"""An index is one alias (``news``) over versioned indices (``news-v0001``)."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.client import search_recovered
from langshift.debias.encoder_languages import unread
from langshift.debias.encoders.base import is_given
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError, MissingIndexError, UsageError
from langshift.languages import UNDETERMINED
from langshift.plugin import metadata, representations
from langshift.plugin.index_body import is_native, mapped, oversample, sets_ef_search
from langshift.plugin.metadata import USUAL, FieldNames, MetadataError, checked_metadata, uuid_of
from langshift.plugin.representations import Kept, SparseWeights, TokenVectors

IfExists = Literal["fail", "append", "replace", "new-version"]


@dataclass(frozen=True)
class Target:
    """The version that a load writes to.

    Attributes:
        name: the alias.
        index: the versioned index.
        uuid: the server's own id of it; an index of the same name that is made later has another.
        created: whether this load made it and nobody sees it before ``publish``.
        live: the version behind the alias when the load began; None where there was none.
        if_exists: what was asked for where there is a version already.
        fields: its names of fields.
    """

    name: str
    index: str
    uuid: str
    created: bool
    live: str | None
    if_exists: IfExists
    fields: FieldNames = USUAL


def require_there(client: OpenSearch, target: Target) -> None:
    """Refuse a version that is gone, also where a write has made an index of its name since.

    Raises:
        ClusterError: it was deleted.
    """
    if uuid_of(client, target.index) != target.uuid:
        raise ClusterError(f"Index {target.index} was deleted while it was being written: run the command again.")


def remove_impostor(client: OpenSearch, index: str, uuid: str) -> None:
    """Remove what a write has made of a version's name after somebody had deleted the version.

    Another version that was made of that name since stays.

    Args:
        client: the cluster.
        index: the version's name, and
        uuid: its id.
    """
    now = uuid_of(client, index)
    if now and now != uuid and metadata.FINGERPRINT not in metadata.read_metadata(client, index):
        client.indices.delete(index=index, ignore_unavailable=True)


_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_VERSION = re.compile(r"-v\d{4,}$")
_LONGEST_NAME = 200  # bytes; the server allows 255 for the name with its version
#: A calibration needs queries out of as many documents.
FEWEST_CALIBRATED = 30


@dataclass(frozen=True)
class IndexInfo:
    """The version that is searched: the one behind an alias, or one that was asked for by its own name.

    Attributes:
        name: what was asked for, an alias or a version.
        index: the version.
        fingerprint: what made its vectors.
        fields: the names of its fields.
        languages: primary tags of the documents' languages, most frequent first, without ``und``.
        documents: how many documents it holds.
        shards: how many primary shards it has.
        counts: how many documents each of the languages has.
        texts: languages whose texts have a field, such as ``text.<language>``, and with it an analyzer of their own.
        unread: languages that its encoder does not read, with their documents.
        calibration: what its mapping keeps of a calibration, as JSON; None where it was never calibrated.
        native: whether the query of our plugin can search it: its vectors are Lucene's, whole, and near by cosine.
        sparse: the weights of tokens that its documents have; None where they have none.
        tokens: the vectors of tokens that its documents have; likewise.
    """

    name: str
    index: str
    fingerprint: Fingerprint
    fields: FieldNames
    languages: tuple[str, ...]
    documents: int
    shards: int
    counts: Mapping[str, int]
    texts: frozenset[str]
    unread: Mapping[str, int] = field(default_factory=dict)
    calibration: Any = None
    native: bool = False
    sparse: SparseWeights | None = None
    tokens: TokenVectors | None = None

    @property
    def beside(self) -> tuple[Kept, ...]:
        """What it keeps of its texts beside their vectors."""
        return tuple(one for one in (self.sparse, self.tokens) if one is not None)

    @cached_property
    def calibratable(self) -> bool:
        """Whether a calibration finds queries in it, and languages to lead to."""
        enough = sum(self.counts.values()) >= FEWEST_CALIBRATED and len(self.languages) > 1
        return enough and not is_given(self.fingerprint.encoder)


def live(client: OpenSearch, name: str, *, also_unfinished: bool = False) -> IndexInfo:
    """What stands behind the alias ``name``, or the version of that name.

    Args:
        client: the cluster.
        name: an alias, or a version's own name.
        also_unfinished: whether a version that is being made may be opened by its name, by who makes it.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: there is no such index, it is not langshift's, or it is not finished.
        MetadataError: what it says of itself is not as langshift writes it, or not as the index is.
    """
    found = _found(client, name)
    if not found:
        said = f"There is no index {name}: create it with `langshift ingest CORPUS --index {name}`."
        raise MissingIndexError(name, said)
    index = name if name in found else _only(client, name, found)
    mappings = found[index].get("mappings", {})
    if metadata.FINGERPRINT not in mappings.get("_meta", {}):
        raise MissingIndexError(name, _no_alias(name) if name in found else _no_fingerprint(index))
    meta = checked_metadata(index, mappings)
    unfinished = metadata.UNFINISHED in meta and alias_of(index) not in found[index]["aliases"]
    if name in found and unfinished and not also_unfinished:
        raise ClusterError(
            f"Version {name} is not finished: a command is still writing it or was interrupted. Run that command "
            f"again, or remove the version with `langshift index drop {alias_of(name)} --version {name}`."
        )
    fingerprint, fields = fingerprint_of(index, meta), FieldNames.from_meta(meta)
    check_mapping(index, mappings, fingerprint, fields)
    sparse, tokens = representations.sparse_weights(meta), representations.token_vectors(meta)
    fields = msgspec.structs.replace(
        fields,
        oversample=oversample(mappings, fields.vector),
        ef_search=sets_ef_search(mappings, fields.vector),
        sparse=sparse and sparse.field,
        tokens=tokens and tokens.field,
    )
    by_language = {"languages": {"terms": {"field": fields.language, "size": 1000}}}
    answer = search_recovered(client, index, {"size": 0, "track_total_hits": True, "aggs": by_language})
    buckets = answer["aggregations"]["languages"]["buckets"]
    counts = {bucket["key"]: int(bucket["doc_count"]) for bucket in buckets if bucket["key"] != UNDETERMINED}
    in_mapping = fields.main_text.replace(".", ".properties.")
    return IndexInfo(
        name=name,
        index=index,
        fingerprint=fingerprint,
        fields=fields,
        languages=tuple(counts),
        documents=int(answer["hits"]["total"]["value"]),
        shards=int(found[index]["settings"]["index"]["number_of_shards"]),
        counts=counts,
        texts=frozenset(metadata.value_at(mappings, f"properties.{in_mapping}.properties") or ()),
        unread=unread(fingerprint.encoder, counts, meta.get(metadata.UNREAD, ())),
        calibration=meta.get(metadata.ANCHORS),
        native=is_native(mappings, fields.vector),
        sparse=sparse,
        tokens=tokens,
    )


def check_mapping(index: str, mappings: Mapping[str, Any], made: Fingerprint, fields: FieldNames) -> None:
    """Refuse an index whose mapping lacks what every search needs of the fields that it names.

    Args:
        index: the index.
        mappings: its mappings, as the server gives them.
        made: its fingerprint, and
        fields: the names of its fields, both as it says them.

    Raises:
        MetadataError: a field is not what the metadata says.
    """
    vector, language = mapped(mappings, fields.vector), mapped(mappings, fields.language)
    if "dimension" in vector and vector["dimension"] != made.dimension:
        why = f"{made.dimension}, but {fields.vector} has {vector['dimension']} dimensions"
        raise MetadataError.at(index, f"{metadata.FINGERPRINT}.dimension", why)
    if vector.get("type") != "knn_vector":
        raise MetadataError.at(
            index, f"{metadata.FIELDS}.vector", f"{fields.vector} is not a knn_vector in the mapping"
        )
    if language.get("type") in (None, "text"):
        raise MetadataError.at(
            index, f"{metadata.FIELDS}.language", f"{fields.language} is not a keyword in the mapping"
        )


class StoredIndex(NamedTuple):
    """An index as the cluster has it, by one answer.

    Attributes:
        name: its own name.
        uuid: the server's own id of it.
        aliases: its aliases.
        settings: the ``index`` part of its settings, nested.
        meta: its ``_meta``.
    """

    name: str
    uuid: str
    aliases: Mapping[str, Any]
    settings: Mapping[str, Any]
    meta: dict[str, Any]


def _stored(index: str, found: Mapping[str, Any]) -> StoredIndex:
    settings, meta = found["settings"]["index"], checked_metadata(index, found["mappings"])
    return StoredIndex(index, settings["uuid"], found["aliases"], settings, meta)


def read_index(client: OpenSearch, index: str, uuid: str) -> StoredIndex | None:
    """An index by its own name and id; None where it is gone, also where another has its name.

    Raises:
        MetadataError: its metadata is not as langshift writes it.
    """
    try:
        found = client.indices.get(index=index)[index]
    except NotFoundError:
        return None
    return _stored(index, found) if found["settings"]["index"]["uuid"] == uuid else None


def read_live(client: OpenSearch, name: str) -> StoredIndex | None:
    """The versioned index behind the alias ``name``, whole; see ``version_behind``.

    Raises:
        MetadataError: its metadata is not as langshift writes it.
    """
    found = _found(client, name)
    index = _behind(client, name, found)
    return None if index is None else _stored(index, found[index])


# All that tells a version; the rest of an answer is large.
_NAMES = f"*.aliases,*.mappings._meta.{metadata.FINGERPRINT},*.settings.index.uuid"


def version_behind(client: OpenSearch, name: str) -> str | None:
    """The versioned index behind the alias ``name``, or None where there is nothing of that name.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: ``name`` is an index, or an alias of several, or of one that is no version while it has some.
    """
    return _behind(client, name, _found(client, name, {"filter_path": _NAMES}))


def _behind(client: OpenSearch, name: str, found: Mapping[str, Any]) -> str | None:
    if name in found:
        raise MissingIndexError(name, _no_alias(name))
    return _only(client, name, found) if found else None


def indices_behind(client: OpenSearch, name: str) -> list[str]:
    """All indices that the alias ``name`` stands for; none where there is no such alias.

    Raises:
        UsageError: ``name`` cannot be an index's name.
    """
    return [index for index in _found(client, name, {"filter_path": _NAMES}) if index != name]


def alias_of(index: str) -> str:
    """The name that a version is one of: ``news`` of ``news-v0001``; of anything else its own name."""
    return _VERSION.sub("", index)


def _found(client: OpenSearch, name: str, params: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """The indices of a name, its own or its alias's, with all that they have; empty where there is none."""
    check_name(name)
    try:
        return dict(client.indices.get(index=name, params=dict(params)))
    except NotFoundError:
        return {}


def _only(client: OpenSearch, name: str, found: Mapping[str, Any]) -> str:
    index = next(iter(found))
    is_ours = alias_of(index) == name or metadata.FINGERPRINT in found[index].get("mappings", {}).get("_meta", {})
    if len(found) == 1 and is_ours:
        return index
    if any(metadata.FINGERPRINT in metadata.read_metadata(client, one) for one in versions_of(client, name)):
        raise ClusterError(broken_in_words(name, sorted(found)))
    if len(found) > 1:
        several = f"{name} is an alias of {len(found)} indices ({', '.join(sorted(found))}): choose another name."
        raise MissingIndexError(name, several)
    return index


def broken_in_words(name: str, indices: Sequence[str]) -> str:
    """What is wrong with an alias that stands for these, and what to do, as a sentence."""
    if len(indices) > 1:
        what = f"is an alias of {len(indices)} indices ({', '.join(indices)}), but should point to one version"
    else:
        what = f"points to {indices[0]}, which is not a version of it"
    return f"{name} {what}: choose one with `langshift rollback {name} --to VERSION`, which removes no index."


def _no_alias(name: str) -> str:
    return f"{name} is an index, not an alias for versions: give the alias, or another name."


def _no_fingerprint(index: str) -> str:
    return f"Index {index} has no langshift fingerprint: it was not created by langshift."


def fingerprint_of(index: str, meta: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint in an index's whole ``_meta``.

    Raises:
        ClusterError: there is none.
    """
    if metadata.FINGERPRINT not in meta:
        raise ClusterError(_no_fingerprint(index))
    return Fingerprint.from_dict(meta[metadata.FINGERPRINT])


def unfinished(client: OpenSearch, name: str) -> dict[str, dict[str, Any]]:
    """Versions that are being made, or that an interrupted command left behind, and the ``_meta`` of each.

    No search sees them. Oldest first.
    """
    metas = {}
    for index, found in listed(client, name, "*.aliases,*.mappings._meta").items():
        # A load that was killed right after it put a version behind the alias has left its mark there.
        if name not in found.get("aliases", {}):
            # Nobody can go on with one that cannot be read, and it must not be in the way of the versions beside it.
            with suppress(MetadataError):
                metas[index] = checked_metadata(index, found.get("mappings", {}))
    return {index: meta for index, meta in metas.items() if meta.get(metadata.UNFINISHED) is not None}


def versions_of(client: OpenSearch, name: str) -> Sequence[str]:
    """All versions of ``name`` on the cluster, oldest first."""
    return list(listed(client, name))


def listed(client: OpenSearch, name: str, wanted: str = "") -> dict[str, Any]:
    """All versions of ``name`` on the cluster, oldest first, with their ids.

    Args:
        client: the cluster.
        name: the alias.
        wanted: what else is read of each, as a ``filter_path``.
    """
    pattern = re.compile(re.escape(name) + r"-v\d{4,}")
    params = {"expand_wildcards": "all", "filter_path": f"*.settings.index.uuid,{wanted}".rstrip(",")}
    found = client.indices.get(index=f"{name}-v*", params=params)
    versions = sorted((i for i in found if pattern.fullmatch(i)), key=lambda i: int(i.rpartition("-v")[2]))
    return {index: found[index] for index in versions}


def next_version(client: OpenSearch, name: str, live: str | None) -> str:
    """The name of the version after all that there are, and after the live one, whatever the cluster lists."""
    known = [index for index in (*versions_of(client, name), live or "") if index and alias_of(index) == name]
    number = max((int(index.rpartition("-v")[2]) for index in known), default=0) + 1
    return f"{name}-v{number:04}"


def move_alias(
    client: OpenSearch, name: str, before: str | None, index: str, properties: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Let an alias stand for a version, in one request: no search may find both versions, or none.

    Args:
        client: the cluster.
        name: the alias.
        before: the version that it stands for; None where there is no such alias.
        index: the version that it is to stand for.
        properties: what the alias has beside its index, such as a filter.

    Raises:
        NotFoundError: one of the versions is gone, or the alias does not stand for ``before``.
    """
    add = {"add": {"index": index, "alias": name, **properties}}
    remove = {"remove": {"index": before, "alias": name, "must_exist": True}}
    client.indices.update_aliases(body={"actions": [add] if before is None else [remove, add]})


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an index.

    Raises:
        UsageError: with the rule.
    """
    if not _NAME.fullmatch(name) or len(name.encode()) > _LONGEST_NAME:
        raise UsageError(
            f"{name!r} is not a valid index name: use lower-case letters a-z, digits, '-', '_' and '.', "
            "starting with a letter or digit."
        )

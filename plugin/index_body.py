"""The body of a new index: its fields, what indexes the vectors, and what is copied of another index."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError
from langshift.languages import analyzers
from langshift.plugin import metadata
from langshift.plugin.representations import stored_beside

# A block is no property of an index's documents.
_SET_BY_THE_SERVER = ("uuid", "creation_date", "provided_name", "version", "verified_before_close", "remote_store")
_HOW_IT_CAME_TO_BE = ("blocks", "resize", "history", "shrink", "routing.allocation.initial_recovery")


def copied_body(client: OpenSearch, index: str) -> dict[str, Any]:
    """The body of ``PUT /index`` for an index with the mappings, ``_meta`` and settings of another.

    Settings that a load or a transfer has changed for its own time are as they were before. What ``_meta`` says of
    the making of that one version (where it came from, what is unfinished) is left out.

    Args:
        client: the cluster.
        index: the other index, or an alias of it alone.

    Raises:
        NotFoundError: there is no such index.
        MetadataError: its ``_meta`` is not as langshift writes it.
    """
    ((_, found),) = client.indices.get(index=index).items()
    settings, mappings = found["settings"]["index"], found["mappings"]
    meta = mappings["_meta"] = metadata.checked_metadata(index, mappings)
    meta.pop(metadata.ORIGIN, None)
    unfinished = meta.pop(metadata.UNFINISHED, {})
    for name in (*_SET_BY_THE_SERVER, *_HOW_IT_CAME_TO_BE):
        metadata.remove_at(settings, name)
    settings.update(unfinished.get("restore", {}))
    for _, field in list(_vector_fields(mappings, "")):
        state_compression(field)
    if metadata.FINGERPRINT in meta:
        # One that was made before stamps had pages lacks it.
        _put(mappings, metadata.FieldNames.from_meta(meta).page, {"type": "keyword"})
    return {
        "settings": {"index": {name: value for name, value in settings.items() if value is not None}},
        "mappings": mappings,
    }


def map_page(client: OpenSearch, index: str, fields: metadata.FieldNames) -> None:
    """Have an index map pages that was made before stamps had them; where this user may not, by its own rules."""
    body: dict[str, Any] = {}
    _put(body, fields.page, {"type": "keyword"})
    with suppress(AuthorizationException):
        if not mapped(client.indices.get_mapping(index=index)[index]["mappings"], fields.page):
            client.indices.put_mapping(index=index, body=body)


Engine = Literal["lucene", "faiss", "faiss-fp16", "faiss-on-disk"]
ENGINES: Final[tuple[Engine, ...]] = get_args(Engine)
LUCENE: Final[Engine] = "lucene"
DERIVED = "knn.derived_source.enabled"
COSINE: Final = "cosinesimil"

# Said beside the method, as what a server takes where nothing is said may change (k-NN #3290); `mode` is deprecated
# since 3.8. Encoders are left to the server: from 3.6 on it demands `bits`, and refuses them before.
_FULL, _BITS = "1x", "32x"
COMPRESSION: dict[Engine, str] = {"faiss": _FULL, "faiss-fp16": "2x", "faiss-on-disk": _BITS}
# How many times as many candidates as are asked for k-NN compares anew by whole vectors, with `mode: on_disk`, in up to
# 1,000 dimensions and in more.
_OVERSAMPLED = (5.0, 3.0)
# Types of fields that hold vectors; `semantic` makes fields of the other type.
_OF_VECTORS = {"knn_vector", "semantic"}
_BETWEEN = {"properties", "fields", "dynamic_templates", "mapping"}


class VectorField(NamedTuple):
    """How an index keeps the vectors of one field.

    Attributes:
        engine: ``lucene``, ``faiss`` or ``nmslib``.
        space: such as ``cosinesimil``; None where only a trained model knows.
        derived: whether ``_source`` has the vectors no more, and they are put in from the engine's own files.
        mixed_case: whether the field has capital letters in its name; with derived source, OpenSearch before 3.7
            returns 1 for it (k-NN #3268).
    """

    engine: str
    space: str | None
    derived: bool
    mixed_case: bool = False

    @property
    def comes_back_normalised(self) -> bool:
        """Whether vectors that are read have norm 1, whatever was written (k-NN #3083)."""
        return self.derived and self.engine != LUCENE and self.space in ("cosinesimil", None)


def mapped(mappings: Mapping[str, Any], field: str, *, views: bool = False) -> Mapping[str, Any]:
    """What the mapping says of a field, with ``views`` also of another view of one; empty where it says nothing."""
    found = mappings
    for part in field.split("."):
        found = found.get("properties", {}).get(part) or (found.get("fields", {}).get(part, {}) if views else {})
    return found


def state_compression(field: Mapping[str, Any]) -> None:
    """Have the mapping of a field of vectors say that they are kept whole, where it says nothing of that."""
    told = {"compression_level", "mode", "encoder", "model_id"} & {
        *field,
        *field.get("method", {}).get("parameters", {}),
    }
    floats = field.get("type") == "knn_vector" and str(field.get("data_type", "float")).lower() == "float"
    if isinstance(field, dict) and floats and not told and _engine(field) in (LUCENE, "faiss"):
        field["compression_level"] = _FULL


def oversample(mappings: Mapping[str, Any], field: str) -> float | None:
    """How many times as many hits a search must have compared anew by whole vectors; None where the server sees to it.

    Args:
        mappings: of the index, as ``GET /index/_mapping`` gives them.
        field: the field of vectors.
    """
    found = mapped(mappings, field)
    if found.get("compression_level") != _BITS or "mode" in found:
        return None
    return _OVERSAMPLED[int(found.get("dimension", 0)) > 1000]


def sets_ef_search(mappings: Mapping[str, Any], field: str) -> bool:
    """Whether a search must say how many nodes of the graph it keeps in view, as Faiss keeps 100, whatever ``k`` is.

    Kept by bits they are as many as ``k``. A trained model may have no graph.

    Args:
        mappings: of the index, as ``GET /index/_mapping`` gives them.
        field: the field of vectors.
    """
    found = mapped(mappings, field)
    graph = found.get("method", {}).get("name", "hnsw") == "hnsw" and not {"model_id", "mode"} & set(found)
    return graph and _engine(found) == "faiss" and found.get("compression_level", _FULL) in (_FULL, "2x")


def engine_of(mappings: Mapping[str, Any], settings: Mapping[str, Any], field: str) -> VectorField | None:
    """How an index keeps a field's vectors; None where that is no field of vectors.

    Args:
        mappings: of the index, as ``GET /index/_mapping`` gives them.
        settings: of the index with its defaults, flat, as ``GET /index/_settings`` gives them.
        field: its name, a path with dots.
    """
    found = mapped(mappings, field)
    if found.get("type") != "knn_vector":
        return None
    method = found.get("method", {})
    space = method.get("space_type") or found.get("space_type") or (None if "model_id" in found else "l2")
    # The second has every field put in, not only vectors.
    derived = any(metadata.is_on(settings.get(f"index.{name}")) for name in (DERIVED, "derived_source.enabled"))
    return VectorField(_engine(found), space, derived, field != field.lower())


def is_native(mappings: Mapping[str, Any], field: str) -> bool:
    """Whether the query of our plugin finds in a field what k-NN finds: whole vectors, near by cosine."""
    found, kept = mapped(mappings, field), engine_of(mappings, {}, field)
    whole = found.get("compression_level", _FULL) == _FULL and found.get("data_type", "float").lower() == "float"
    told = {"mode", "encoder"} & {*found, *found.get("method", {}).get("parameters", {})}
    return kept is not None and kept.engine in (LUCENE, "faiss") and kept.space == COSINE and whole and not told


def vectors_come_back_normalised(client: OpenSearch, index: str, field: str) -> bool:
    """Whether an index gives a field's vectors back with norm 1, so that none can be moved again.

    Raises:
        NotFoundError: there is no such index.
    """
    vector_field = engine_of(*metadata.read_mappings_and_settings(client, index), field)
    return vector_field is not None and vector_field.comes_back_normalised


def has_native_libraries(client: OpenSearch) -> bool:
    """Whether all nodes can hold what another engine than Lucene makes; those of the embedded OpenSearch cannot."""
    try:
        nodes = client.nodes.info(metric="settings")["nodes"]
    except AuthorizationException:
        # Only the security plugin refuses this, which the embedded one does not have.
        return True
    return all(node.get("attributes", {}).get("langshift_native") != "false" for node in nodes.values())


def require_engine(client: OpenSearch, body: Mapping[str, Any]) -> None:
    """Refuse an index that the cluster's nodes cannot hold; to be called before any index is made.

    A node without the native libraries takes such an index, dies at its first write, and never starts again.

    Args:
        client: the cluster.
        body: of the index that is about to be made.

    Raises:
        ClusterError: a field of vectors has another engine than Lucene, and a node has no other.
    """
    needing = next((place for place, field in _vector_fields(body["mappings"], "") if _engine(field) != LUCENE), None)
    if needing is not None and not has_native_libraries(client):
        remedy = "--engine lucene" if needing == "embedding" else f"the engine lucene for the field {needing}"
        raise ClusterError(
            "The embedded OpenSearch does not include faiss (no package registry has its native libraries): use "
            f"{remedy}, or a cluster that runs OpenSearch's official images."
        )


def _engine(field: Mapping[str, Any]) -> str:
    """The engine of a field; where none is named it is faiss, or as good as that: Lucene only by its name."""
    return str(field.get("method", {}).get("engine") or field.get("engine") or "faiss").lower()


def _vector_fields(part: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:  # noqa: ANN401 - any JSON
    """Every field of vectors with its name, also those that dynamic templates would make."""
    if isinstance(part, list):
        for item in part:
            yield from _vector_fields(item, place)
    elif isinstance(part, Mapping):
        # A field may have the name `type` itself.
        if isinstance(part.get("type"), str) and part["type"] in _OF_VECTORS:
            yield place, part
        for name, inner in part.items():
            if name != "_meta":
                yield from _vector_fields(inner, place if name in _BETWEEN else f"{place}.{name}".lstrip("."))


# ISO 8601, or with a space as databases write it. What is no day of any month is left to the server.
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_DATES = "strict_date_optional_time||yyyy-MM-dd HH:mm[:ss][.SSS]"
_KEYWORD = {"type": "keyword", "ignore_above": 8191}
#: How a field is mapped that is declared to hold dates: a number is milliseconds since 1970.
DECLARED_DATE = {"type": "date", "format": f"{_DATES}||epoch_millis"}
# What only looks like dates stays what strings are, so that no document is refused for another value.
_RECOGNISED_DATE = {**_KEYWORD, "fields": {"date": {"type": "date", "format": _DATES, "ignore_malformed": True}}}
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
# Strings that a field of numbers takes for a number, or for none.
_READ_AS_NUMBERS = {"numeric", "empty"}
_WHOLE, _FRACTION = {"type": "long", "coerce": False}, {"type": "double"}
_OTHERS = {bool: "boolean", int: "whole", float: "fraction", dict: "object"}


class FieldTypes:
    """The types of a corpus's fields, as far as its first documents tell what one value alone does not.

    Args:
        fields: the names of those that are mapped by what they are for.
    """

    def __init__(self, fields: metadata.FieldNames = metadata.USUAL) -> None:
        self._known = fields.mapped.union(own_mappings()["properties"])
        # Field -> the kinds of its values, in the order in which they came.
        self._seen: dict[str, dict[str, None]] = {}

    def add(self, fields: Mapping[str, Any], place: str = "") -> None:
        """Look at the fields of a document, and at those within them."""
        for name, value in fields.items():
            path = f"{place}{name}"
            if path in self._known:
                continue
            for one in value if isinstance(value, list) else [value]:
                if (kind := _kind(one)) is not None:
                    self._seen.setdefault(path, {})[kind] = None
                if isinstance(one, Mapping):
                    self.add(one, f"{path}.")

    @property
    def dates(self) -> list[str]:
        """The fields of which all values look like dates."""
        return [path for path, kinds in self._seen.items() if kinds.keys() - {"empty"} == {"date"}]

    def mappings(self) -> dict[str, Mapping[str, Any]]:
        """Field -> how it is mapped, where the server would go by the value that happens to reach it first."""
        found = {path: _mapping(list(kinds)) for path, kinds in self._seen.items()}
        return {
            **{path: mapping for path, mapping in found.items() if mapping is not None},
            **dict.fromkeys(self.dates, _RECOGNISED_DATE),
        }

    def __contains__(self, path: str) -> bool:
        return path in self._seen


def _kind(value: object) -> str | None:
    """What a value is; None for no value, and for a list within a list."""
    if isinstance(value, str):
        kinds = {"empty": not value, "date": _DATE.fullmatch(value), "numeric": _NUMBER.fullmatch(value)}
        return next((kind for kind, fits in kinds.items() if fits), "string")
    return _OTHERS.get(type(value))


def _mapping(kinds: list[str]) -> Mapping[str, Any] | None:
    """How a field of these kinds of values, in their order, is mapped; None where any of them gives the same."""
    numbers = {"whole", "fraction"}.intersection(kinds)
    if numbers and numbers | _READ_AS_NUMBERS >= {*kinds}:
        return None if kinds == ["whole"] else _FRACTION
    types = ["number" if kind in numbers else kind if kind in _OTHERS.values() else "string" for kind in kinds]
    if len({*types}) == 1:
        return None
    # Values of several types do not fit into one field: the first counts, as if documents came one by one.
    number = _WHOLE if {"fraction", *_READ_AS_NUMBERS}.isdisjoint(kinds) else _FRACTION
    return {"number": number, "string": _KEYWORD}.get(types[0], {"type": types[0]})


# What langshift itself writes into every document.
RESERVED_FIELDS = ("embedding", "language_confidence", "shift")


def index_body(
    fingerprint: Fingerprint,
    extra_meta: Mapping[str, Any] = MappingProxyType({}),
    fields: metadata.FieldNames = metadata.USUAL,
) -> dict[str, Any]:
    """The body of ``PUT /index`` for an index that holds vectors of this fingerprint.

    Args:
        fingerprint: what makes the vectors.
        extra_meta: what else ``_meta`` holds.
        fields: the names of the documents' fields.
    """
    body: dict[str, Any] = json.loads(asset("index.json"))
    mappings = body["mappings"]
    named = {} if fields.to_dict() == metadata.USUAL.to_dict() else {metadata.FIELDS: fields.to_dict()}
    mappings["_meta"] = {"langshift": fingerprint.to_dict(), **named, **extra_meta}
    mappings["properties"]["embedding"]["dimension"] = fingerprint.dimension
    # Ids may be numbers and words, and what is declared as a language may be anything.
    for field in filter(None, (fields.id, fields.declared_language)):
        _put(mappings, field, {"type": "keyword", "ignore_above": 8191})
    _put(mappings, fields.group, {"type": "keyword"})
    for kept in stored_beside(extra_meta).values():
        _put(mappings, kept.field, {"type": kept.field_type})
    for field in fields.text_fields:
        # The server has none for Hebrew; the index has one that reads past the points of vowels.
        by_tag = {**analyzers(), "he": "hebrew"}
        languages = {tag: {"type": "text", "analyzer": analyzer} for tag, analyzer in by_tag.items()}
        _put(mappings, field, {"dynamic": True, "properties": languages})
    if fields.chunking is not None:
        numbers = {name: {"type": "integer"} for name in ("ordinal", "start", "end", "count")}
        place = {"properties": {**numbers, "field": {"type": "keyword"}}}
        mappings["properties"] |= {metadata.PARENT: {"type": "keyword"}, metadata.CHUNK: place}
    others = {"type": "text", "analyzer": "standard"}
    # Before the one for all other strings: the first that fits counts.
    mappings["dynamic_templates"][:0] = [
        {f"{field}_of_other_languages": {"path_match": f"{field}.*", "mapping": others}} for field in fields.text_fields
    ]
    return body


def _put(mappings: dict[str, Any], field: str, mapping: dict[str, Any]) -> None:
    metadata.put_at(mappings, f"properties.{field.replace('.', '.properties.')}", mapping)


@cache
def own_mappings() -> dict[str, Any]:
    """The mappings of every index, without what differs between indices; not to be changed."""
    return dict(json.loads(asset("index.json"))["mappings"])


@cache
def asset(name: str) -> str:
    """The text of a file that comes with this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

"""What an index says of itself under ``_meta``: fingerprint, fields, origin, vectors."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.debias.fingerprint import FORMAT, Fingerprint
from langshift.errors import ClusterError
from langshift.plugin.representations import SPARSE, TOKENS, SparseWeights, TokenVectors
from langshift.wording import iso_time

_KEYS = {"declared_language": "told", "by_language": "split"}


class FieldNames(msgspec.Struct, frozen=True, dict=True, rename=_KEYS):
    """Names of fields, kept in the mapping under ``_meta.langshift_fields`` where they are not the usual ones.

    A name may be a path with dots. What follows from them is computed once: every hit of every search asks for it.

    Attributes:
        vector: the shifted vector, a ``knn_vector``.
        language: primary language tag, ``und`` where unknown; a ``keyword``.
        confidence: the detector's posterior.
        stamp: what was done to the vector.
        texts: what is encoded and what a word search looks into, in this order, the title first where there is one;
            empty for ``title`` and ``text``, which are kept by language.
        declared_language: where a document that comes from elsewhere names its language; None for ``language``.
        title: which of ``texts`` is the title that a hit shows; None for none.
        by_language: whether each of ``texts`` is kept as ``<name>.<language>``, with that language's analyzer.
        weights: how much more a word search counts words in one of ``texts``, where that is not 1.
        group: names the translations of each other.
        group_keyword: the view of ``group`` that searches filter and collect by; None for ``group`` itself.
        id: the field with a document's own id; None for ``_id``.
        analyzed: languages whose analyzers an adopted index has, as views ``<name>.<language>`` of each of ``texts``.
        parent: the id of the document that a chunk is of, in an index of chunks; None where entries are whole ones.
        parent_keyword: the view of ``parent`` that searches collect by; None for ``parent`` itself.
        chunking: how documents are cut into chunks, as ``langshift ingest --chunk`` has it; None where it cuts none.
        oversample: the rescoring that the mapping demands of searches, see ``index_body.oversample``; never kept.
        ef_search: whether searches say how many nodes are kept in view, see ``index_body.sets_ef_search``; likewise.
        sparse: the weights of tokens, see ``SparseWeights``; None where there are none; never kept here.
        tokens: the vectors of tokens, see ``TokenVectors``; likewise.
    """

    vector: str = "embedding"
    language: str = "language"
    confidence: str = "language_confidence"
    stamp: str = "shift"
    texts: tuple[str, ...] = ()
    declared_language: str | None = None
    title: str | None = None
    by_language: bool = False
    weights: dict[str, float] = {}
    group: str = "group"
    group_keyword: str | None = None
    id: str | None = None
    analyzed: tuple[str, ...] = ()
    parent: str | None = None
    parent_keyword: str | None = None
    chunking: str | None = None
    oversample: float | None = None
    ef_search: bool = False
    sparse: str | None = None
    tokens: str | None = None

    @cached_property
    def embeddings(self) -> tuple[str, ...]:
        """The fields that encoders have made, which no hit brings."""
        return tuple(filter(None, (self.vector, self.sparse, self.tokens)))

    @cached_property
    def split(self) -> bool:
        """Whether texts are kept by language: in all indices but adopted ones."""
        return self.by_language or not self.texts

    @cached_property
    def text_fields(self) -> tuple[str, ...]:
        """The fields with texts, also where they are the usual ones."""
        return self.texts or TEXT_FIELDS

    @cached_property
    def title_field(self) -> str | None:
        """Which of ``text_fields`` is the title that a hit shows; None for none."""
        return self.title if self.texts else "title"

    @cached_property
    def main_text(self) -> str:
        """The first of ``text_fields`` that is not the title."""
        return next((name for name in self.text_fields if name != self.title_field), self.text_fields[0])

    @property
    def mapped(self) -> frozenset[str]:
        """The fields that a new index maps by what they are for, beside those that langshift writes itself."""
        place = (self.sparse, self.tokens) if self.chunking is None else (self.sparse, self.tokens, PARENT, CHUNK)
        return frozenset(filter(None, (*self.text_fields, self.group, self.id, self.declared_language, *place)))

    @cached_property
    def group_filter(self) -> str:
        """What searches filter and collect translation groups by."""
        return self.group_keyword or self.group

    @cached_property
    def document_key(self) -> str:
        """What searches name and collect documents by: of an index of chunks the parent, else the ``_id``."""
        return self.parent_keyword or self.parent or "_id"

    @property
    def page(self) -> str:
        """What any client's search collapses by to show each page once, see ``stored_shift.page_of``."""
        return f"{self.stamp}.page"

    @property
    def entry(self) -> str:
        """What messages call an entry of the index."""
        return "chunk" if self.parent else "document"

    def chunked(self, chunking: str | None) -> FieldNames:
        """The same fields in an index that langshift cuts documents for, or in one of whole documents."""
        return msgspec.structs.replace(self, chunking=chunking, parent=chunking and PARENT)

    def as_options(self) -> str:
        """The options of ``langshift ingest`` that give these fields and cut documents; empty for the usual ones."""
        weights = {name: f"^{weight:g}" for name, weight in self.weights.items()}
        named = [f"{option} {name}{weights.get(name, '')}" for name, option in self.named_by()]
        return " ".join([*named, *([f"--chunk {self.chunking}"] if self.chunking else [])])

    def named_by(self) -> list[tuple[str, str]]:
        """Each field with the option of ``langshift ingest`` that names it; empty where they are the usual ones."""
        if not self.by_language:
            return []
        texts = [(name, "--title-field" if name == self.title else "--text-field") for name in self.texts]
        own_id = [] if self.id is None else [(self.id, "--id-field")]
        language = [] if self.declared_language is None else [(self.declared_language, "--language-field")]
        group = [] if self.group == USUAL.group else [(self.group, "--group-field")]
        return [*own_id, *texts, *language, *group]

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_fields``."""
        kept_elsewhere = ("oversample", "ef_search", "sparse", "tokens")
        return {name: value for name, value in msgspec.to_builtins(self).items() if name not in kept_elsewhere}

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> FieldNames:
        """The fields of an index, from its whole ``_meta``."""
        return msgspec.convert(meta.get(FIELDS, {}), cls)


USUAL = FieldNames()
#: The fields of a chunk that langshift has made: the document's own id, and the place in the document.
PARENT, CHUNK = "parent", "chunk"


@dataclass(frozen=True)
class ChunkPlace:
    """Where in its document a chunk stands, kept in its field ``chunk``.

    Attributes:
        ordinal: which it is, counted from 0.
        start: its first character in the text of the document, counted from 0 in Unicode code points.
        end: the character after its last.
        count: how many chunks the document has.
        field: the text field that it is cut out of, where the document has several; else None.
    """

    ordinal: int
    start: int
    end: int
    count: int
    field: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the field."""
        return {name: value for name, value in asdict(self).items() if value is not None}


#: The names of what says where a chunk stands.
PLACE = tuple(one.name for one in fields(ChunkPlace))


def chunk_id(document: str, ordinal: int) -> str:
    """The ``_id`` of a chunk, ``doc#0003``: no two documents can have one in common, whatever their own ids are."""
    return f"{document}#{ordinal:04d}"


#: The fields with a text in each language, of an index that names no text fields of its own.
TEXT_FIELDS = ("title", "text")


def value_at(source: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 - any JSON
    """What a document holds at a field, also where a part of its name has dots itself; None where nothing is there."""
    if path in source:
        return source[path]
    for head, rest in inner_paths(path):
        inner = source.get(head)
        if isinstance(inner, Mapping) and (found := value_at(inner, rest)) is not None:
            return found
    return None


def inner_paths(path: str) -> Iterator[tuple[str, str]]:
    """The ways to cut a path in two, as a part of a name may have dots itself."""
    parts = path.split(".")
    for cut in range(1, len(parts)):
        yield ".".join(parts[:cut]), ".".join(parts[cut:])


def replaced_at(source: Mapping[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy of a document with another value where ``value_at`` finds one; without it if that is None."""
    if path in source:
        rest = {name: inner for name, inner in source.items() if name != path}
        return rest if value is None else {**rest, path: value}
    for head, inner_path in inner_paths(path):
        inner = source.get(head)
        if isinstance(inner, Mapping) and value_at(inner, inner_path) is not None:
            return {**source, head: replaced_at(inner, inner_path, value)}
    return dict(source)


def put_at(source: dict[str, Any], path: str, value: object) -> None:
    """Put a value at a field, in objects within each other that are made where they are missing."""
    *outer, last = path.split(".")
    for name in outer:
        source = source.setdefault(name, {})
    source[last] = value


def remove_at(source: dict[str, Any], path: str) -> None:
    """Remove a field, also where a part of its name has dots itself; an object that it leaves empty goes too."""
    if path in source:
        del source[path]
        return
    for head, rest in inner_paths(path):
        if isinstance(inner := source.get(head), dict):
            remove_at(inner, rest)
            if not inner:
                del source[head]


def read_settings(client: OpenSearch, index: str) -> dict[str, Any]:
    """The ``index`` part of an index's settings, nested.

    Args:
        client: the cluster.
        index: the index's own name, no alias.

    Raises:
        NotFoundError: there is no such index.
    """
    return dict(client.indices.get_settings(index=index)[index]["settings"]["index"])


def read_mappings_and_settings(client: OpenSearch, index: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mappings of an index, and all its settings by their whole names, with the defaults.

    Args:
        client: the cluster.
        index: the index, or an alias of it alone.

    Raises:
        NotFoundError: there is no such index.
    """
    wanted = {"flat_settings": "true", "include_defaults": "true"}
    ((_, found),) = client.indices.get(index=index, params=wanted).items()
    return found["mappings"], {**found.get("defaults", {}), **found["settings"]}


def is_on(value: object) -> bool:
    """Whether a setting is true; one that is not set is not."""
    return str(value).lower() == "true"


def is_write_blocked(settings: Mapping[str, Any]) -> bool:
    """Whether an index is behind a write block, by the ``index`` part of its settings."""
    return is_on(settings.get("blocks", {}).get("write"))


def window(settings: Mapping[str, Any]) -> int:
    """How many documents one request to an index may ask for, by the ``index`` part of its settings."""
    return int(settings.get("max_result_window", 10_000))


FINGERPRINT, VECTORS = "langshift", "langshift_vectors"
FIELDS = "langshift_fields"
UNFINISHED, ORIGIN = "langshift_unfinished", "langshift_origin"
#: Languages that the encoder was found not to read.
UNREAD = "langshift_unread"
#: How far documents are translated, 0 to 1, when a load last looked; see ``TranslatedPages.share``.
TRANSLATED = "langshift_translated"
ANCHORS = "langshift_anchors"
#: The version after which those of the last load begin, where that lies ahead of the server's time.
VERSION_BASE = "langshift_version_base"


def read_metadata(client: OpenSearch, index: str) -> dict[str, Any]:
    """All of it; empty where there is none.

    Raises:
        NotFoundError: there is no such index.
        MetadataError: it is not as langshift writes it.
    """
    return checked_metadata(index, client.indices.get_mapping(index=index)[index]["mappings"])


def unfinished(client: OpenSearch, index: str) -> dict[str, Any] | None:
    """What the load that made a version has noted there; None where it is finished, or never was a load's.

    Raises:
        NotFoundError: there is no such index.
    """
    noted: dict[str, Any] | None = read_metadata(client, index).get(UNFINISHED)
    return noted


def change(client: OpenSearch, index: str, values: Mapping[str, Any]) -> None:
    """Set some of it; None removes."""
    write(client, index, {**read_metadata(client, index), **values})


def write(client: OpenSearch, index: str, meta: Mapping[str, Any]) -> None:
    """Put all of it, as it was read right before but for what is changed; None removes."""
    remaining = {name: value for name, value in meta.items() if value is not None}
    client.indices.put_mapping(index=index, body={"_meta": remaining})


def uuid_of(client: OpenSearch, index: str) -> str:
    """The server's own id of an index; empty where there is no such index."""
    try:
        found = client.indices.get(index=index, params={"filter_path": "*.settings.index.uuid"})
    except NotFoundError:
        return ""
    return str(found[index]["settings"]["index"]["uuid"])


Kind = Literal["load", "retune", "reencode", "adopt"]
#: What makes a version of the live one, with all that is written meanwhile.
COPIES = ("retune", "reencode")


class Origin(msgspec.Struct, frozen=True, omit_defaults=True, rename={"version": "from"}):
    """Kept in a version's mapping under ``_meta.langshift_origin``.

    Attributes:
        kind: what made the version.
        version: of a load, the version that it has replaced, else the version or index that it was made of; None where
            there was none, or where that was not kept.
        uuid: the server's own id of that one.
        checkpoint: of a retune or a reencode, the last operation of each shard of the new version, by the shard's
            number, when it became live: whatever is later was written by others.
        at: when, ISO 8601.
        replaced: name and id of the version that was live before this one, where that is not ``version``.
    """

    kind: Kind
    version: str | None
    uuid: str | None
    checkpoint: tuple[int, ...]
    at: str
    replaced: tuple[str, str] | None = None

    @property
    def previous(self) -> tuple[str, str] | None:
        """Name and id of the version that a rollback goes back to; None where there is none."""
        if self.replaced is not None or self.kind == "adopt":
            return self.replaced
        return (self.version, self.uuid) if self.version and self.uuid else None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in ``_meta.langshift_origin``."""
        return dict(msgspec.to_builtins(self))


def new_origin(kind: Kind, version: str | None, uuid: str | None, checkpoint: Sequence[int] = ()) -> Origin:
    """The origin of a version that is made now; see ``Origin``."""
    return Origin(kind, version, uuid, tuple(checkpoint), iso_time())


def replacing(index: str, meta: Mapping[str, Any], before: str | None, uuid: str | None) -> dict[str, Any]:
    """The ``_meta`` of a version, with what it replaces, for the way back; what made it stays as it is noted.

    Args:
        index: the version.
        meta: its ``_meta``.
        before: the live version; None where there is none, or none any more.
        uuid: its id.

    Raises:
        MetadataError: its origin is not as langshift writes it.
    """
    origin = origin_from_metadata(index, meta)
    if origin is None:
        origin = new_origin("load", before, uuid)
    elif origin.kind == "load":
        origin = msgspec.structs.replace(origin, version=before, uuid=uuid)
    else:
        replaced = None if before is None or uuid in (None, origin.uuid) else (before, str(uuid))
        origin = msgspec.structs.replace(origin, replaced=replaced)
    return {**meta, ORIGIN: origin.to_dict()}


def note_replaced(client: OpenSearch, index: str, before: str) -> None:
    """Note in a version that it replaces the live one; see ``replacing``."""
    uuid = uuid_of(client, before)
    write(client, index, replacing(index, read_metadata(client, index), before if uuid else None, uuid or None))


def read_origin(client: OpenSearch, index: str) -> Origin | None:
    """Where a version came from, whether or not the rest of its metadata can be read; None where it does not say.

    Raises:
        NotFoundError: there is no such index.
        MetadataError: it is not as langshift writes it.
    """
    return origin_from_metadata(index, client.indices.get_mapping(index=index)[index]["mappings"].get("_meta") or {})


def origin_from_metadata(index: str, meta: Mapping[str, Any]) -> Origin | None:
    """As ``read_origin``, by a version's ``_meta`` or that part of it."""
    found: Origin | None = _converted(index, ORIGIN, meta.get(ORIGIN), Origin | None)
    return found


def encoded(vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, str]:
    """Tag -> text, of vectors of shape (dimension,), float32."""
    return {tag: base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii") for tag, vector in vectors.items()}


def decoded(texts: Mapping[str, str]) -> dict[str, NDArray[np.float32]]:
    """Read what ``encoded`` made; each of shape (dimension,), float32."""
    return {tag: np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32) for tag, text in texts.items()}


class MetadataError(ClusterError):
    """What an index says of itself is not as langshift writes it: somebody has changed it.

    Attributes:
        why: what is wrong, with the path of the key, without the index.
    """

    def __init__(self, index: str, why: str) -> None:
        self.why, name = why, re.sub(r"-v\d{4,}$", "", index)
        super().__init__(
            f"Index {index} cannot be read: {why}. Correct it with PUT /{index}/_mapping, or remove the index with "
            f"`langshift index drop {name}`."
        )

    @classmethod
    def at(cls, index: str, key: str, why: str) -> MetadataError:
        """The error for a key below ``_meta``, a path with dots."""
        return cls(index, f"_meta.{key} is wrong ({why})")


class _StoredPreference(msgspec.Struct):
    hash: str
    weight: float
    scatter: Annotated[list[Annotated[float, msgspec.Meta(ge=0)]], msgspec.Meta(min_length=1)]
    vectors: dict[str, bytes]


class _StoredVectors(msgspec.Struct):
    hash: str | None
    vectors: dict[str, bytes]
    common: bytes | msgspec.UnsetType = msgspec.UNSET
    directions: bytes | msgspec.UnsetType = msgspec.UNSET
    own: _StoredPreference | msgspec.UnsetType = msgspec.UNSET


class _Process(msgspec.Struct):
    host: str
    pid: int
    started: float


class _TransferNote(msgspec.Struct, kw_only=True, rename={"version": "from"}):
    version: str
    uuid: str
    checkpoint: list[int]
    blocked: bool
    token: str
    at: str | None = None
    process: _Process | None = None


class _CopyNote(_TransferNote, kw_only=True):
    asked: dict[str, Any]


class _Unfinished(msgspec.Struct):
    restore: dict[str, str | float | bool | None] = {}
    live: str | None = None
    if_exists: str | None = None
    token: str | None = None
    uuid: str | None = None
    checkpoint: list[int] = []
    blocked: bool = False
    retune: _CopyNote | msgspec.UnsetType = msgspec.UNSET
    reencode: _CopyNote | msgspec.UnsetType = msgspec.UNSET
    rollback: _TransferNote | msgspec.UnsetType = msgspec.UNSET


# The calibration is not among them: an index whose calibration cannot be read is searched as if it had none.
_FORMS: Final[Mapping[str, Any]] = {
    FINGERPRINT: Fingerprint,
    FIELDS: FieldNames,
    ORIGIN: Origin | None,
    UNFINISHED: _Unfinished | None,
    UNREAD: list[str] | None,
    TRANSLATED: float | None,
    VECTORS: _StoredVectors,
    SPARSE: SparseWeights,
    TOKENS: TokenVectors,
}
#: As they are read where the vectors are left out, which may be large.
_LISTED_FORMS: Final[Mapping[str, Any]] = {name: form for name, form in _FORMS.items() if name not in (UNREAD, VECTORS)}


def checked_metadata(index: str, mappings: Mapping[str, Any], *, listed: bool = False) -> dict[str, Any]:
    """The ``_meta`` in an index's mappings, after a look whether all that langshift reads there is as it writes it.

    Args:
        index: the index, for the message.
        mappings: as the server gives them.
        listed: whether the vectors have been left out.

    Raises:
        MetadataError: it is not; the first that is wrong.
    """
    meta = mappings.get("_meta") or {}
    for name, form in (_LISTED_FORMS if listed else _FORMS).items():
        if name in meta:
            read = _converted(index, name, meta[name], form)
            if isinstance(read, Fingerprint):
                _check_fingerprint(index, read)
            elif isinstance(read, FieldNames):
                _check_fields(index, read)
            elif isinstance(read, _StoredVectors):
                _check_vectors(index, name, read, meta.get(FINGERPRINT))
    return dict(meta)


# As msgspec calls them -> in words.
_SCALARS: Final = {"float": "a number", "int": "a whole number", "str": "text", "bool": "true or false"}
_TYPES: Final = {**_SCALARS, "object": "an object", "array": "a list"}
_LONGEST_REASON: Final = 200


def _converted(index: str, name: str, value: object, form: Any) -> Any:  # noqa: ANN401 - a type and its value
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        why, path = [*str(error).rsplit(" - at `$", 1), ""][:2]
        words = re.sub(r"`([^`]*)`", lambda one: " or ".join(_TYPES.get(w, w) for w in one[1].split(" | ")), why)
        shown = f"{words[0].lower()}{words[1:_LONGEST_REASON]}"
        raise MetadataError.at(index, f"{name}{path.rstrip('`')[:_LONGEST_REASON]}", shown) from None


def _check_fingerprint(index: str, made: Fingerprint) -> None:
    if made.format > FORMAT:
        raise ClusterError(f"Index {index} was made by a later version of langshift: upgrade langshift to use it.")
    if (made.vectors is None) != (made.pivot is None):
        raise MetadataError.at(index, f"{FINGERPRINT}.pivot", "language vectors and a pivot language belong together")


# What the server itself knows a document by: whoever writes there writes another one.
_SERVER_FIELDS = ("_index", "_id", "_routing", "_version", "_version_type", "_if_seq_no", "_if_primary_term")


def _check_fields(index: str, fields: FieldNames) -> None:
    for name, value in msgspec.structs.asdict(fields).items():
        for one in value if isinstance(value, tuple) else (value,):
            servers = isinstance(one, str) and one.split(".")[0] in _SERVER_FIELDS
            if servers or one == "":
                why = f"{one} is one of OpenSearch's own fields" if servers else "a name is empty"
                raise MetadataError.at(index, f"{FIELDS}.{_KEYS.get(name, name)}", why)
    written = [*filter(None, (fields.vector, fields.language, fields.confidence, fields.stamp, fields.parent))]
    for place, field in enumerate(written):
        for other in (*written[:place], *fields.text_fields):
            if f"{field}.".startswith(f"{other}.") or other.startswith(f"{field}."):
                raise MetadataError.at(index, FIELDS, f"{field} and another field would be written into each other")


def _check_vectors(index: str, name: str, read: _StoredVectors, made: Any) -> None:  # noqa: ANN401 - JSON
    """Each vector has as many numbers as the fingerprint says, which was checked before, and a gamma what it takes."""
    vectors = {f"vectors.{tag}": stored for tag, stored in read.vectors.items()}
    if isinstance(read.common, bytes):
        vectors["common"] = read.common
    if isinstance(read.own, _StoredPreference):
        vectors |= {f"own.vectors.{tag}": stored for tag, stored in read.own.vectors.items()}
    if made is not None and (made.get("gamma") or read.own) and not (read.common and read.directions):
        raise MetadataError.at(index, name, "the mean or the directions that its scales need are missing")
    if made is not None and made.get("own") and not read.own:
        raise MetadataError.at(index, name, "the preference vectors that own scales are missing")
    rows = len(read.directions) // (4 * made["dimension"]) if made is not None and read.directions else 0
    if isinstance(read.directions, bytes):
        vectors["directions"] = read.directions
    for key, stored in vectors.items():
        many = rows if key == "directions" else 1
        if made is not None and (len(stored) != 4 * many * made["dimension"] or not many):
            raise MetadataError.at(index, f"{name}.{key}", f"{len(stored)} bytes, not {made['dimension']} numbers")
        if not np.isfinite(np.frombuffer(stored[: len(stored) // 4 * 4], "<f4")).all():
            raise MetadataError.at(index, f"{name}.{key}", "not all of its numbers are finite")

"""All that can be said of one version: what it holds, how it is kept, and what is not as it should be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch
from rich.filesize import decimal

from langshift.client import search_recovered
from langshift.debias.encoder_languages import unread, unread_in_words
from langshift.debias.encoders.base import is_given
from langshift.debias.fingerprint import Fingerprint, scales_in_words
from langshift.errors import ClusterError, MissingIndexError
from langshift.languages import UNDETERMINED
from langshift.plugin import index_health, metadata
from langshift.plugin.index_body import VectorField, engine_of, mapped
from langshift.plugin.index_sample import Lacking, lacking_in_sample
from langshift.plugin.inventory import AnyVersion, DocumentCount, UnreadableVersion, Version, listed
from langshift.plugin.metadata import CHUNK, USUAL, FieldNames
from langshift.plugin.pipelines import name_for
from langshift.plugin.representations import in_words as in_words_of
from langshift.plugin.shift_script import StampCounts, count_stamps
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.stored_vector import masked_in
from langshift.plugin.versions import alias_of, check_mapping, check_name, version_behind
from langshift.wording import join_words, pluralize

BINS: Final = 10
LOW, FAIR = 0.5, 0.8
_LANGUAGES = 1000


class LanguageConfidence(NamedTuple):
    """How sure the detector was of one language.

    Attributes:
        documents: of the language that tell it.
        mean: of the confidence, 0 to 1.
        low: share of these documents below 0.5.
        fair: share of these documents below 0.8.
    """

    documents: int
    mean: float
    low: float
    fair: float


class Confidence(NamedTuple):
    """The detector's confidence over an index; 1 where a document named its language.

    Attributes:
        documents: how many tell it.
        bins: documents by confidence, in tenths: the first is 0 to below 0.1, the last 0.9 to 1.
        languages: tag -> how sure, without languages of which no document tells it.
    """

    documents: int
    bins: Sequence[int]
    languages: Mapping[str, LanguageConfidence]


def confidence(client: OpenSearch, index: str, fields: FieldNames) -> Confidence:
    """The confidence that the documents of a version carry; one search.

    Args:
        client: the cluster.
        index: the version.
        fields: the names of its fields.
    """
    found = client.search(index=index, body=body(fields))["aggregations"]
    languages = {one["key"]: _sureness(one) for one in found["languages"]["buckets"] if one["told"]["doc_count"]}
    bins = [int(found["bins"]["buckets"][str(number)]["doc_count"]) for number in range(BINS)]
    return Confidence(int(found["documents"]["doc_count"]), bins, languages)


def body(fields: FieldNames) -> dict[str, Any]:
    """The request for it."""
    field = fields.confidence
    told = {"filter": {"exists": {"field": field}}}
    below = {name: {"filter": {"range": {field: {"lt": limit}}}} for name, limit in (("low", LOW), ("fair", FAIR))}
    languages = {
        "terms": {"field": fields.language, "missing": UNDETERMINED, "size": _LANGUAGES},
        "aggs": {"told": told, "mean": {"avg": {"field": field}}, **below},
    }
    bins = {"filters": {"filters": {str(number): _bin(field, number) for number in range(BINS)}}}
    return {"size": 0, "aggs": {"documents": told, "bins": bins, "languages": languages}}


def _bin(field: str, number: int) -> dict[str, Any]:
    # As queries, so that the limits are rounded as the field's own values are: 0.9 of 32 bits is below that of 64.
    limits = {"gte": number / BINS} if number else {}
    if number < BINS - 1:
        limits["lt"] = (number + 1) / BINS
    return {"range": {field: limits}}


def _sureness(bucket: Mapping[str, Any]) -> LanguageConfidence:
    documents, low, fair = (int(bucket[name]["doc_count"]) for name in ("told", "low", "fair"))
    return LanguageConfidence(documents, min(1.0, float(bucket["mean"]["value"])), low / documents, fair / documents)


class TextField(NamedTuple):
    """A text field that documents fill.

    Attributes:
        field: its name, a path with dots.
        analyzer: what makes words of it.
        documents: how many fill it.
    """

    field: str
    analyzer: str
    documents: int


_SETTINGS = ("default_pipeline", "shards", "replicas", "auto_expand_replicas")


@dataclass(frozen=True)
class Description:
    """One version, and those beside it.

    Attributes:
        version: the version.
        versions: all versions of its index, the oldest first.
        fields: the names of its fields.
        entries: how many documents it holds, or of an index of chunks how many of these; what follows counts these.
        languages: tag -> entries, most frequent first; those without a tag count as ``und``.
        without_vector: how many entries have no vector.
        stamps: how those with one are stamped; None where the index does not tell what its language vectors are of.
        vector: how it keeps vectors; None where its field of vectors is none.
        masked: why the server does not return them; empty where it does.
        texts: the text fields that documents fill.
        default_pipeline: through which documents come that name no other; None where there is none.
        shards: how many.
        replicas: copies of each shard beside the first.
        auto_expand_replicas: such as ``0-1``; None where the number of replicas is fixed.
        unread: languages that its encoder does not read, with their documents.
        lacking: field of what is kept beside vectors -> how many entries of a sample have a vector and lack it.
    """

    version: Version
    versions: Sequence[Version]
    fields: FieldNames
    entries: int
    languages: Mapping[str, int]
    without_vector: int
    stamps: StampCounts | None
    vector: VectorField | None
    masked: str
    texts: Sequence[TextField]
    default_pipeline: str | None
    shards: int
    replicas: int
    auto_expand_replicas: str | None
    unread: Mapping[str, int] = field(default_factory=dict)
    alias: index_health.BrokenAlias | None = None
    lacking: Mapping[str, Lacking] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As ``--json`` prints it, less what is told in words."""
        return {
            **self.version.to_dict(),
            "fingerprint": self.version.fingerprint.to_dict(),
            "versions": [one.to_dict() for one in self.versions],
            "languages": {tag: {"documents": count, "share": self.share(tag)} for tag, count in self.languages.items()},
            "und": self.share(UNDETERMINED),
            "without_vector": self.without_vector,
            "lacking": {field: one._asdict() for field, one in self.lacking.items()},
            "stamps": None if self.stamps is None else self.stamps._asdict(),
            "unread": dict(self.unread),
            "fields": self.fields.to_dict(),
            "vector": None if self.vector is None else self.vector._asdict(),
            "texts": [one._asdict() for one in self.texts],
            **{name: getattr(self, name) for name in _SETTINGS},
        }

    @property
    def count(self) -> DocumentCount:
        """How many documents it holds, in how many chunks."""
        chunks = self.version.chunks
        return DocumentCount(self.entries) if chunks is None else DocumentCount(self.version.documents, chunks)

    def share(self, language: str) -> float:
        """The share of entries in a language, 0 to 1."""
        return self.languages.get(language, 0) / self.entries if self.entries else 0.0


def describe(client: OpenSearch, name: str) -> Description:
    """Describe what stands behind an index's name, or a version; of an index without a live one the newest version.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: there is no such index, or it is not langshift's.
    """
    return described(client, *chosen(client, name))


def described(client: OpenSearch, version: Version, versions: Sequence[Version]) -> Description:
    """Describe a version.

    Args:
        client: the cluster.
        version: the version.
        versions: all versions of its index, the oldest first.
    """
    index = version.version
    found, settings = metadata.read_mappings_and_settings(client, index)
    meta = metadata.checked_metadata(index, found)
    fields = FieldNames.from_meta(meta)
    check_mapping(index, found, version.fingerprint, fields)
    analyzers = dict(_analyzers(found, settings, fields))
    counts = _counts(client, index, fields, list(analyzers))
    filled = counts["texts"]["buckets"] if analyzers else []
    shift = StoredShift.from_meta(meta)
    languages = {one["key"]: int(one["doc_count"]) for one in counts["languages"]["buckets"]}
    pipeline = settings.get("index.default_pipeline")
    expanded = str(settings.get("index.auto_expand_replicas", "false"))
    return Description(
        version=version,
        versions=versions,
        fields=fields,
        entries=int(counts["documents"]["doc_count"]),
        languages=dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        without_vector=int(counts["without_vector"]["doc_count"]),
        lacking={one.field: lacking_in_sample(client, index, one.field, fields.vector) for one in version.beside},
        stamps=None if shift is None else count_stamps(client, index, shift, fields),
        unread=unread(version.fingerprint.encoder, languages, meta.get(metadata.UNREAD, ())),
        vector=engine_of(found, settings, fields.vector),
        masked=masked_in(client, index, fields.vector),
        texts=[
            TextField(field, analyzer, int(one["doc_count"]))
            for (field, analyzer), one in zip(analyzers.items(), filled, strict=True)
            if one["doc_count"]
        ],
        default_pipeline=None if pipeline == "_none" else pipeline,
        alias=index_health.broken_alias(client, version.name, versions),
        shards=int(settings["index.number_of_shards"]),
        replicas=int(settings["index.number_of_replicas"]),
        auto_expand_replicas=None if expanded == "false" else expanded,
    )


def chosen(client: OpenSearch, name: str) -> tuple[Version, list[Version]]:
    """The version that a name means, and all versions of its index.

    Raises:
        UsageError: ``name`` cannot be an index's name.
        ClusterError: there is no such index, it is not langshift's, or it cannot be read.
    """
    check_name(name)
    found = listed(client, alias_of(name))
    if any(one.version == name for one in found):
        index: str | None = name
    elif (alias := index_health.broken_alias(client, name, found)) is not None:
        if alias.right is None:
            raise ClusterError(alias.in_words())
        index = alias.right.version
    elif (index := version_behind(client, name)) is not None:
        found = found if any(one.version == index for one in found) else listed(client, alias_of(index))
        if all(one.version != index for one in found):
            raise MissingIndexError(name, f"{name} points to {index}, which is not a version created by langshift.")
    elif not found:
        raise MissingIndexError(name, f"There is no index {name}: `langshift index list` lists the existing indices.")
    one = next((one for one in found if one.version == index), found[-1])
    if isinstance(one, UnreadableVersion):
        raise metadata.MetadataError(one.version, one.error)
    return one, [other for other in found if isinstance(other, Version)]


def _counts(client: OpenSearch, index: str, fields: FieldNames, texts: Sequence[str]) -> dict[str, Any]:
    """How many documents there are by language, without a vector, and with each text field."""
    aggregations: dict[str, Any] = {
        "documents": {"filter": {"match_all": {}}},
        "languages": {"terms": {"field": fields.language, "missing": UNDETERMINED, "size": _LANGUAGES}},
        "without_vector": {"filter": {"bool": {"must_not": [{"exists": {"field": fields.vector}}]}}},
    }
    if texts:
        aggregations["texts"] = {"filters": {"filters": [_filled(field, fields) for field in texts]}}
    return dict(search_recovered(client, index, {"size": 0, "aggs": aggregations})["aggregations"])


def _filled(field: str, fields: FieldNames) -> dict[str, Any]:
    """Documents with a text in a field; of another view of it, which all have, those that are searched by it."""
    name, _, tag = field.rpartition(".")
    exists = {"exists": {"field": field}}
    if name in fields.texts and tag in fields.analyzed:
        return {"bool": {"filter": [exists, {"term": {fields.language: tag}}]}}
    return exists


def _analyzers(
    mappings: Mapping[str, Any], settings: Mapping[str, Any], fields: FieldNames
) -> Iterator[tuple[str, str]]:
    """The text fields that a word search looks into, each with its analyzer."""
    named = any(name.startswith("index.analysis.analyzer.default.") for name in settings)
    usual = "default" if named else "standard"
    paths = [*fields.texts, *(f"{path}.{tag}" for path in fields.texts for tag in fields.analyzed)]
    if fields.split:
        known = ((field, mapped(mappings, field).get("properties", {})) for field in fields.text_fields)
        paths = [f"{field}.{tag}" for field, tags in known for tag in tags]
    for path in paths:
        if found := mapped(mappings, path, views=True):
            yield path, str(found.get("analyzer", usual))


_UNKNOWN, _SHORT = "-", 8


def first_lines(found: Description) -> list[str]:
    """What a version is and what it holds, in sentences."""
    one, fields = found.version, found.fields
    unknown = found.share(UNDETERMINED)
    chunked = []
    if fields.parent is not None:
        how = f"langshift ingest --chunk {fields.chunking}" if fields.chunking else "whoever made the adopted index"
        place = f", and its place there in {CHUNK}" if fields.chunking else ""
        chunked = [f"Its documents were cut by {how}: each chunk names its document in {fields.parent}{place}."]
    return [
        f"{one.version} is {_state(one)}{_origin(one)}.",
        f"It holds {found.count}, {unknown:.1%} of them in an unknown language (und), {found.without_vector:,} without "
        "a vector.",
        *chunked,
    ]


def _state(one: Version) -> str:
    phrases = {"live": f"the version that {one.name} points to", "kept": f"a kept version of {one.name}"}
    return phrases.get(one.state, f"an unfinished version of {one.name}")


def in_words(made: Fingerprint) -> list[str]:
    """What made an index, in sentences."""
    norm = "norm 1" if made.normalised else "any norm"
    both = {"query": made.query_prefix, "document": made.document_prefix}
    prefixes = [f"{prefix!r} for each {what}" for what, prefix in both.items() if prefix]
    put = f", prefix {' and '.join(prefixes)}" if prefixes else ""
    put += f", {made.pooling} pooling" if made.pooling else ""
    put += f", {made.max_tokens:,} tokens of each text" if made.max_tokens else ""
    revision = f" (revision {made.revision})" if made.revision else ""
    limited = f", limited to {join_words(made.languages)}" if made.languages else ""
    return [
        f"Its vectors were computed by the encoder {made.encoder}{revision}: {made.dimension} dimensions, {norm}{put}.",
        _moved(made),
        f"Languages were detected by {made.detector}{limited}; the index was built by langshift {made.langshift}.",
    ]


def _moved(made: Fingerprint) -> str:
    if made.vectors is None:
        return "No document was shifted: the index has no language vectors."
    by = f"the language vectors {made.vectors} (pivot {made.pivot})"
    if not made.moves:
        return f"No document was shifted (alpha 0); the index has {by}."
    return f"Each document was shifted with {made.scales} and {by}."


def storage(found: Description) -> list[str]:
    """How a version is kept, in sentences."""
    one, fields, vector = found.version, found.fields, found.vector
    how = f"engine {vector.engine}, {vector.space or 'model-defined'} space" if vector else "not a vector field"
    pipeline = "no default pipeline"
    if found.default_pipeline is not None:
        whose = "langshift's own" if found.default_pipeline == name_for(one.version) else "not langshift's"
        pipeline = f"the default pipeline {found.default_pipeline} ({whose})"
    expanded = f", auto-expanded to {found.auto_expand_replicas}" if found.auto_expand_replicas else ""
    texts = "" if fields.split else f", texts in {', '.join(fields.texts)}"
    # Of a load with fields of its own the options name the groups.
    by = USUAL.group if fields.by_language else fields.group_filter
    groups = f", groups in {by}" if by != USUAL.group else ""
    where = f"languages in {fields.language}, stamps in {fields.stamp}{texts}{groups}"
    return [
        f"Vectors are in {fields.vector} ({how}), {where}.",
        *(f"{in_words_of(kept)[0].upper()}{in_words_of(kept)[1:]} are in {kept.field}." for kept in one.beside),
        *([f"Documents were loaded with {fields.as_options()}."] if fields.as_options() else []),
        *of_declarations(fields),
        f"It takes up {_size(one)} in {pluralize(found.shards, 'shard')} with {pluralize(found.replicas, 'replica')} "
        f"each{expanded}; "
        f"it has {pipeline}; writes are {'blocked' if one.write_blocked else 'accepted'}.",
    ]


def of_declarations(fields: FieldNames) -> list[str]:
    """Where clients name a document's language, as a sentence; none where it is the usual field."""
    field = fields.declared_language or fields.language
    if field == USUAL.language:
        return []
    fallback = f" (or in {USUAL.language}, where that is empty or no language)" if fields.declared_language else ""
    return [f"Clients that write documents name their language in {field}{fallback}."]


def unreadable(one: UnreadableVersion) -> str:
    """Why a version cannot be read, in a table's words."""
    return f"cannot be read: {one.error}"


def short_name(one: AnyVersion) -> str:
    """``v0001``: a version beside the name of its index."""
    return one.version.removeprefix(f"{one.name}-")


def held(one: AnyVersion) -> list[str]:
    """State, documents and size, in a table's words."""
    documents = _UNKNOWN if one.documents is None else f"{one.documents:,}"
    if one.chunks is not None:
        documents += f" in {pluralize(one.chunks, 'chunk')}"
    # A version that is kept is blocked as a rule, and nobody misses that.
    blocked = one.write_blocked and one.state == "live"
    return [f"{one.state}, blocked" if blocked else one.state, documents, _size(one)]


def short_scales(one: Version) -> str:
    """The scale of the shift, no longer than fits into a table: ``0.6 (th 0.3)``, ``1, gamma 0.97``."""
    made = one.fingerprint
    if len(made.alphas) < 2:
        return made.scales.removeprefix("alpha ")
    common = scales_in_words(0, {}, made.gamma, made.own).removeprefix("alpha 0")
    return f"{made.alpha:g} ({len(made.alphas)} others){common}"


def encoders(one: Version) -> str:
    """The encoders of a version, in a table's words: ``e5-small, sparse st:NAME``."""
    return ", ".join([one.fingerprint.encoder, *(f"{kept.option[2:]} {kept.encoder}" for kept in one.beside)])


def _size(one: AnyVersion) -> str:
    return _UNKNOWN if one.bytes is None else decimal(one.bytes)


def _origin(one: Version) -> str:
    """What made a version, and of what, as the end of a sentence; empty where it does not say."""
    if one.origin is None:
        return ""
    kind, other = one.origin["kind"], one.origin.get("from")
    if kind == "adopt":
        return f", adopted from {other}" if other else ", adopted"
    suffix = f" {'in place of' if kind == 'load' else 'of'} {other}" if other else ""
    return f", created by a {kind}{suffix}"


def source(one: Version) -> str:
    """What made a version, in a table's words; what a load took the place of is the row above."""
    if one.origin is None:
        return _UNKNOWN
    kind, other = one.origin["kind"], one.origin.get("from")
    return kind if kind == "load" or not other else f"{kind} of {other.removeprefix(f'{one.name}-')}"


def remarks(found: Description) -> list[str]:
    """Sentences on a version and those beside it; none where all is well."""
    alias = None if found.alias is None else found.alias.in_words()
    block = index_health.block_remark(found.version, found.versions)
    parts = ([alias], _of_documents(found), _of_the_engine(found), [block], index_health.remarks(found.versions))
    return [sentence for part in parts for sentence in part if sentence is not None]


def _of_documents(found: Description) -> Iterator[str]:
    name, made = found.version.name, found.version.fingerprint
    if found.masked:
        yield f"No vector of {found.version.version} can be read, so its shift cannot be changed: {found.masked}."
    if found.without_vector:
        entries = f"{found.fields.entry}s"
        yield f"{_have(found, found.without_vector)} no vector: dense search finds only {entries} with a vector."
    for kept in found.version.beside:
        sampled, lacking = found.lacking[kept.field]
        if lacking:
            remedy = "load such documents again with what they bring"
            if not is_given(kept.encoder):
                remedy = f"`langshift reencode {name} {kept.option} {kept.encoder}` makes them"
            entries = pluralize(sampled, found.fields.entry)
            yield f"{lacking:,} of a sample of {entries} with a vector have no {kept.what}: {remedy}."
    yield from unread_in_words(made.encoder, found.unread, found.fields.entry)
    stamps = found.stamps
    if stamps is None:
        yield "The index does not record which language vectors it has, so the documents' stamps were not checked."
        return
    if stamps.without:
        yield (
            f"{_have(found, stamps.without)} a vector but no stamp, so it is unknown whether the vector was shifted: "
            f"index such documents again, with `langshift ingest` or after `langshift pipeline install {name}`."
        )
    if stamps.other_vectors:
        how = f"by language vectors other than the index's ({made.vectors})"
        how = how if made.vectors else "although the index has no language vectors"
        yield f"{_were(found, stamps.other_vectors)} shifted {how}, and cannot be retuned: index such documents again."
    if stamps.other_scale:
        yield (
            f"{_were(found, stamps.other_scale)} shifted with a scale other than the index's: "
            f"`langshift retune {name} {index_health.scale_options(made)}` gives all documents the same scale."
        )


def _of_the_engine(found: Description) -> Iterator[str]:
    if found.vector is not None and found.vector.comes_back_normalised:
        yield (
            f"The engine {found.vector.engine} returns vectors with norm 1, whatever was written, so the index cannot "
            "be retuned: create it again with langshift's default settings or the engine lucene."
        )


def _have(found: Description, number: int) -> str:
    return f"{pluralize(number, found.fields.entry)} {'has' if number == 1 else 'have'}"


def _were(found: Description, number: int) -> str:
    return f"{pluralize(number, found.fields.entry)} {'was' if number == 1 else 'were'}"

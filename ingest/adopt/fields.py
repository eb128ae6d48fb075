"""The fields of an index that is adopted: those that are named are checked, and those that it gets are chosen."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, cast

import langcodes
import msgspec

from langshift.errors import UsageError
from langshift.ingest.adopt.reader import OldIndex
from langshift.ingest.adopt.transform import declared_tag, document_of, strings_at
from langshift.ingest.config import EmbeddingPipeline
from langshift.ingest.documents import Document
from langshift.ingest.transform import detect_language
from langshift.languages import UNDETERMINED, analyzers, parse_tag, text_language
from langshift.plugin.index_body import COSINE, engine_of, mapped
from langshift.plugin.metadata import USUAL, FieldNames, value_at
from langshift.plugin.raw_documents import decode_hit, parse_source
from langshift.reporting import note
from langshift.wording import beginning, join_words, pluralize


def free_fields(old: OldIndex, there: FieldNames, unmapped: Collection[str]) -> FieldNames:
    """The names of the new version's fields: langshift's own are called otherwise where the old index has them.

    Args:
        old: the index.
        there: the names of the fields that the old index has.
        unmapped: fields that documents have beside those that the mapping knows.

    Raises:
        UsageError: the other names are taken, too.
    """
    taken = {*old.mappings.get("properties", {}), *unmapped}

    def free(usual: str) -> str:
        for name in (usual, f"langshift_{usual}"):
            if name not in taken:
                return name
        raise UsageError(
            f"Index {old.index} has fields named {usual!r} and 'langshift_{usual}', and langshift needs one of these "
            "names: copy the index with _reindex, renaming one of them, and adopt the copy."
        )

    own = {part: free(getattr(USUAL, part)) for part in ("language", "confidence", "stamp")}
    return msgspec.structs.replace(there, **own)


_ANALYZED = {"text", "match_only_text"}
_EXACT = {"keyword", "constant_keyword", "wildcard", "long", "integer", "short", "byte", "unsigned_long"}
# Of these alone the server collapses hits to one.
_COLLECTED = {"keyword", "long", "integer", "short", "byte"}
_TEXTS = {"text", "keyword", "match_only_text", "wildcard", "constant_keyword"}
# With vectors of one length, all of these rank alike.
_SPACES = {COSINE, "l2", "innerproduct"}


def checked_fields(old: OldIndex, there: FieldNames) -> FieldNames:
    """Check the fields of an index that are named, and say by which views of them groups and documents are collected.

    Args:
        old: the index.
        there: its fields, ``group`` empty where none is named.

    Raises:
        UsageError: one is not there, or of a type that cannot be used; saying which.
    """
    _require_vector(old, there.vector)
    for text in there.texts:
        _require_string(old, text, "--text-field")
        if outer := _nested_in(old, text):
            note(f"Word search does not look into {text!r}, inside the nested field {outer!r}: it tells languages.")
    if there.declared_language is not None:
        _require_string(old, there.declared_language, "--language-field")
    if there.sparse is not None:
        _require_weights(old, there.sparse)
    group = there.group or USUAL.group
    if there.group:
        _require_exact(old, group, "--group-field", _EXACT)
    views = {"group_keyword": _keyword_view(old, group)}
    if there.parent is not None:
        _require_exact(old, there.parent, "--parent-field", _COLLECTED)
        views["parent_keyword"] = _keyword_view(old, there.parent)
    return msgspec.structs.replace(there, group=group, **views)


def _keyword_view(old: OldIndex, name: str) -> str | None:
    """The view of a text that has its exact value; None where the field itself has it, or nothing does."""
    found = mapped(old.mappings, name)
    views = found.get("fields", {})
    by = sorted((view for view in views if views[view].get("type") == "keyword"), key=lambda view: view != "keyword")
    return f"{name}.{by[0]}" if found.get("type") in _ANALYZED and by else None


def _found(old: OldIndex, name: str, option: str, *, inside_nested: bool = False) -> Mapping[str, Any]:
    """What the mapping says of a field that an option names.

    Raises:
        UsageError: it says nothing, or the field is inside a nested one and must not be.
    """
    found = mapped(old.mappings, name)
    if not found:
        raise UsageError(f"Index {old.index} has no field {name!r}: give {option} a field that its documents have.")
    if not inside_nested and (outer := _nested_in(old, name)):
        raise UsageError(
            f"The field {name!r} of {old.index} is inside the nested field {outer!r}: give {option} a field of the "
            "document itself."
        )
    return found


def _require_exact(old: OldIndex, name: str, option: str, kinds: Collection[str]) -> None:
    kind = _found(old, name, option).get("type", "object")
    if kind not in kinds and _keyword_view(old, name) is None:
        raise UsageError(
            f"The field {name!r} of {old.index} is of type {kind}, which cannot be searched by its exact value: give "
            f"{option} a keyword field, or a text field that has a keyword view."
        )


def _require_vector(old: OldIndex, name: str) -> None:
    found, index = mapped(old.mappings, name), old.index
    if semantic := _semantic_over(old.mappings, name):
        raise UsageError(
            f"The vectors in {name!r} of {index} belong to the semantic field {semantic!r}, whose own pipeline would "
            "write over a shifted vector at every write: load the original documents with `langshift ingest`."
        )
    # The field itself may be the nested one.
    nested = _nested_in(old, f"{name}.vector")
    if nested is not None and any(_vectors({"properties": {name: found}}, "")):
        raise UsageError(
            f"The vectors of {index} are inside the nested field {nested!r}, so a document may have several: "
            f"{one_vector_each(nested)}."
        )
    if not found:
        raise UsageError(f"Index {index} has no field {name!r}: {_vectors_there(old)}.")
    if found.get("type") != "knn_vector":
        kind = found.get("type", "object")
        raise UsageError(f"The field {name!r} of {index} is of type {kind}, not knn_vector: {_vectors_there(old)}.")
    kind = str(found.get("data_type", "float")).lower()
    if "dimension" not in found or kind not in ("float", "byte"):
        problem = f"are of the data type {kind}" if "dimension" in found else "belong to a trained model"
        raise UsageError(f"The vectors in {name!r} of {index} {problem}: only float and byte vectors can be shifted.")
    vector_field = engine_of(old.mappings, old.settings, name)
    assert vector_field is not None  # noqa: S101 - it is a knn_vector
    if vector_field.space not in _SPACES:
        raise UsageError(
            f"The vectors in {name!r} of {index} are compared by {vector_field.space}, but langshift uses "
            "cosine similarity, and shifted vectors differ in length. Copy the index with _reindex into one whose "
            f'mapping has "space_type": "{COSINE}" (nothing is encoded again), and adopt the copy.'
        )


def _require_weights(old: OldIndex, name: str) -> None:
    if (kind := _found(old, name, "--sparse-field").get("type", "object")) != "rank_features":
        raise UsageError(
            f"The field {name!r} of {old.index} is of type {kind}: give --sparse-field a field of type rank_features."
        )


def _semantic_over(mappings: Mapping[str, Any], name: str) -> str | None:
    """The semantic field that a field is, or whose vectors it holds; None where it is of no such field."""
    parts = name.split(".")
    for depth in range(len(parts)):
        outer = ".".join(parts[:depth])
        for sibling, found in (mapped(mappings, outer) if outer else mappings).get("properties", {}).items():
            info = found.get("semantic_info_field_name") or f"{sibling}_semantic_info"
            if found.get("type") == "semantic" and parts[depth] in (sibling, info):
                return f"{outer}.{sibling}".lstrip(".")
    return None


def one_vector_each(field: str) -> str:
    """What to do where documents hold vectors in a list of objects."""
    return (
        "load the original documents with `langshift ingest --chunk auto`, or write each object in "
        f"{field!r} as a document of its own, with the id of the document that it is from, and adopt that index with "
        "--parent-field"
    )


def _nested_in(old: OldIndex, name: str) -> str | None:
    parents = accumulate(name.split(".")[:-1], "{}.{}".format)
    return next((part for part in parents if mapped(old.mappings, part).get("type") == "nested"), None)


def _require_string(old: OldIndex, name: str, option: str) -> None:
    kind = _found(old, name, option, inside_nested=True).get("type", "object")
    if kind not in _TEXTS:
        raise UsageError(f"The field {name!r} of {old.index} is of type {kind}: give {option} a text or keyword field.")


def _vectors_there(old: OldIndex) -> str:
    names = sorted(_vectors(old.mappings, ""))
    if not names:
        return "it has no knn_vector field, so there is nothing to shift"
    return f"its knn_vector {'field is' if len(names) == 1 else 'fields are'} {', '.join(names)}"


def _vectors(part: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, found in part.get("properties", {}).items():
        if found.get("type") == "knn_vector":
            yield f"{place}{name}"
        yield from _vectors(found, f"{place}{name}.")


# What a field with the language of a document is often called.
_OF_LANGUAGES = ("language", "lang", "locale")


def require_used(old: OldIndex, sample: Sequence[bytes], fields: FieldNames) -> None:
    """Refuse fields that no document fills, and note a field that tells languages and was not named.

    Args:
        old: the index.
        sample: documents as a search gives them.
        fields: the names of their fields.

    Raises:
        UsageError: a field that was named is empty in all.
    """
    sources = [parse_source(decode_hit(hit).source) for hit in sample]
    named = {name: "--title-field" if name == fields.title else "--text-field" for name in fields.texts}
    others = {fields.declared_language: "--language-field", fields.parent: "--parent-field"}
    others |= {fields.sparse: "--sparse-field"}
    others |= {fields.group: "--group-field"} if fields.group != USUAL.group else {}
    for name, option in (named | others).items():
        # What is the same in all documents stands in the mapping alone.
        if name is None or mapped(old.mappings, name).get("type") == "constant_keyword":
            continue
        if not any(value_at(source, name) or any(map(str.strip, strings_at(source, name))) for source in sources):
            there = sorted({one for source in sources for one, value in source.items() if value not in (None, "", [])})
            raise UsageError(
                f"None of the first documents of {old.index} has {name}, which {option} names: they have "
                f"{join_words(there)}."
            )
    for name in _OF_LANGUAGES if fields.declared_language is None else ():
        tags = [declared_tag(source, name) for source in sources if any(strings_at(source, name))]
        if 2 * sum(tag is not None for tag in tags) > len(tags):
            note(
                f"Languages are detected, although documents name one in {name!r}: give --language-field {name} to "
                "take that."
            )


# A text is surely in another language than its document says where the detector gives one so much that is so far from
# it, by CLDR's distances: 12 for Norwegian and Danish, 59 for Croatian and Serbian, 80 and more where none knows both.
_SURE, _FAR = 0.9, 60
# Languages of fewer documents of the sample, and of less of it, get no analyzer of their own.
_FEW, _LITTLE = 5, 0.01


def sampled_languages(
    old: OldIndex, sample: Sequence[bytes], fields: FieldNames, pipeline: EmbeddingPipeline
) -> Counter[str]:
    """Count a sample's documents by language, and see that the field that declares it does.

    Ordinary words are codes of languages (``art``, ``law``, ``it``): what a text is surely not in counts as none.

    Args:
        old: the index.
        sample: documents as a search gives them.
        fields: the names of their fields.
        pipeline: detects languages.

    Raises:
        UsageError: most documents with a value in the field name no language there.
    """
    dimension = pipeline.encoder.dimension
    languages: Counter[str] = Counter()
    values: Counter[str] = Counter()
    contradicted: Counter[str] = Counter()
    for hit in sample:
        document = document_of(hit, fields, dimension)
        if not isinstance(document, Document):
            continue
        languages[text_language(detect_language(document, pipeline).language)] += 1
        value = " ".join(strings_at(parse_source(decode_hit(hit).source), fields.declared_language or "")).strip()
        if value:
            values[value] += 1
            read, sureness = pipeline.detector.detect(document.text)
            contradicted[value] += sureness >= _SURE and _distance(value, read) > _FAR
    if fields.declared_language is not None:
        _require_tags(old, fields.declared_language, values, contradicted)
    return languages


@cache
def _distance(value: str, language: str) -> int:
    tag = parse_tag(value)
    return 0 if tag is None else langcodes.tag_distance(tag, language)


def _require_tags(old: OldIndex, field: str, values: Counter[str], contradicted: Counter[str]) -> None:
    total = values.total()
    if not total:
        note(f"No document of a sample has a value in {field!r}: languages are detected.")
        return
    no_tags = [value for value, _ in values.most_common() if parse_tag(value) is None and value.lower() != UNDETERMINED]
    wrong = [*no_tags, *(value for value, _ in values.most_common() if 2 * contradicted[value] > values[value])]
    fitting = total - sum(values[value] for value in wrong)
    if 2 * fitting < total:
        raise UsageError(
            f"The field {field!r} of {old.index} does not tell languages: of {pluralize(total, 'document')} of a "
            f"sample with a value there, {fitting / total:.0%} have a language tag that their text does not contradict "
            f"(such a value is {beginning(wrong[0])!r}). Give --language-field the field with the language, or "
            "leave it out to have languages detected."
        )
    if no_tags:
        count = sum(values[value] for value in no_tags)
        note(
            f"{count:,} of {pluralize(total, 'document')} of a sample have no language tag in {field!r}, but "
            f"{beginning(no_tags[0])!r}, for example: for such documents a tag in the field 'language' is taken, and "
            "without one the language is detected."
        )


def analyzed_languages(old: OldIndex, fields: FieldNames, languages: Counter[str]) -> FieldNames:
    """The names of fields with the languages, most frequent first, whose analyzers the texts are to get.

    Args:
        old: the index.
        fields: the names of its fields.
        languages: documents of a sample by language.

    Raises:
        UsageError: a text has a view of a language's name already.
    """
    least = min(_FEW, max(1.0, _LITTLE * languages.total()))
    some = [tag for tag, count in sorted(languages.items(), key=lambda one: (-one[1], one[0])) if count >= least]
    analyzed = tuple(tag for tag in some if analyzers().get(tag, _STANDARD) != _STANDARD)
    for name in fields.texts:
        found = mapped(old.mappings, name)
        for tag in analyzed:
            if found.get("fields", {}).get(tag, _view(tag)) != _view(tag):
                raise UsageError(
                    f"The field {name!r} of {old.index} has a view {tag!r} already, the name that --analyze needs for "
                    f"the analyzer {analyzers()[tag]}: leave --analyze out, or copy the index with _reindex into one "
                    "without that view, and adopt the copy."
                )
    named = ", ".join(f"{tag} ({analyzers()[tag]})" for tag in analyzed)
    note(f"Analyzers of {', '.join(fields.texts)}: {named or 'no language of the sample has one of its own'}.")
    return msgspec.structs.replace(fields, analyzed=analyzed)


_STANDARD = "standard"


def _view(tag: str) -> dict[str, str]:
    return {"type": "text", "analyzer": analyzers()[tag]}


def add_views(mappings: Mapping[str, Any], fields: FieldNames) -> None:
    """Give each of the texts a view ``<name>.<language>`` for each analyzed language.

    Args:
        mappings: of the new version; changed in place.
        fields: the names of its fields.
    """
    for name in fields.texts:
        found = cast("dict[str, Any]", mapped(mappings, name))
        if fields.analyzed and found["type"] in {*_ANALYZED, "keyword"}:
            found.setdefault("fields", {}).update({tag: _view(tag) for tag in fields.analyzed})

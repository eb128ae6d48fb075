"""A person's own settings and mappings: merged over langshift's, and checked for what they must leave alone."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opensearchpy.exceptions import RequestError

from langshift.errors import ClusterError, UsageError, special_file
from langshift.files import load_json, not_utf8
from langshift.languages import parse_tag, text_language
from langshift.plugin import index_body
from langshift.plugin.metadata import CHUNK, PARENT, USUAL, FieldNames, is_on
from langshift.server_errors import reason

TOP = ("settings", "mappings", "analyzers")
# Name of a setting -> the only value that it may have, None for no value at all, and why.
_SETTINGS: dict[str, tuple[str | None, str]] = {
    "knn": ("true", "vector search would not work"),
    "knn.derived_source.enabled": ("false", "vectors might be returned changed, and could not be shifted again"),
    "derived_source.enabled": ("false", "documents would not be returned as they were written"),
    "append_only.enabled": ("false", "langshift writes documents by their _id, and may write them again"),
    "hidden": ("false", "langshift would not find the version"),
    "default_pipeline": (None, "a pipeline would change what langshift writes (see langshift pipeline)"),
    "final_pipeline": (None, "a pipeline would change what langshift writes (see langshift pipeline)"),
}
_SCALES = (("method", "parameters", "m"), ("method", "parameters", "ef_construction"))


class InvalidTemplate(Exception):
    """A template that cannot be used; the message says why and what to do.

    Attributes:
        place: where in the file, such as ``mappings.properties.shift``; empty for all of it.
    """

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place = place


def _require(holds: bool, place: str, why: str) -> None:
    if not holds:
        raise InvalidTemplate(place, why)


def check_top(content: object) -> Mapping[str, Any]:
    """Refuse what has not the form of a template.

    Args:
        content: the file's.

    Returns:
        The same.

    Raises:
        InvalidTemplate: it is none.
    """
    content = _object(content, "")
    for name in content:
        _require(name in TOP, name, f"is not a known name; use one of {', '.join(TOP)}.")
        _object(content[name], name)
    for tag, analyzer in content.get("analyzers", {}).items():
        _check_tag(tag, f"analyzers.{tag}")
        named = isinstance(analyzer, str) and analyzer != ""
        _require(named, f"analyzers.{tag}", 'must be the name of an analyzer, as in {"ja": "kuromoji"}.')
    return content


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that would change what langshift relies on.

    Args:
        settings: flat, by names less ``index.``.

    Raises:
        InvalidTemplate: they would.
    """
    for name, value in settings.items():
        place = f"settings.index.{name}"
        _require(not name.startswith("blocks."), place, "langshift could not write to the index; leave it out.")
        wanted, why = _SETTINGS.get(name, ("", ""))
        if wanted != "" and (wanted is None or str(value).lower() != wanted):
            remedy = "leave it out" if wanted is None else f"leave it out, or set it to {wanted}"
            raise InvalidTemplate(place, f"{why}; {remedy}.")


def is_of_texts(template: Mapping[str, Any], fields: FieldNames) -> bool:
    """Whether a dynamic template is for an index's texts by language, by its ``path_match``."""
    (rule,) = template.values()
    found, texts = rule.get("path_match"), tuple(f"{name}." for name in fields.text_fields)
    return any(str(path).startswith(texts) for path in (found if isinstance(found, list) else [found]))


def check_mappings(mappings: Mapping[str, Any], fields: FieldNames = USUAL) -> None:
    """Refuse mappings that would change what langshift relies on.

    Args:
        mappings: with fields within each other instead of names with dots.
        fields: the index's names of fields.

    Raises:
        InvalidTemplate: they would.
    """
    source = _object(mappings.get("_source", {}), "mappings._source")
    whole = is_on(source.get("enabled", True)) and not any(source[name] for name in source if name != "enabled")
    _require(whole, "mappings._source", "langshift reads whole documents from the index; leave it out.")
    routed = is_on(_object(mappings.get("_routing", {}), "mappings._routing").get("required", False))
    _require(not routed, "mappings._routing.required", "langshift writes documents without routing; leave it out.")
    _require(is_on(mappings.get("enabled", True)), "mappings.enabled", "no field would be searchable; leave it out.")
    for name in _object(mappings.get("_meta", {}), "mappings._meta"):
        why = "names that begin with langshift are reserved; rename it."
        _require(not name.startswith("langshift"), f"mappings._meta.{name}", why)
    _check_dynamic(mappings.get("dynamic_templates", []), fields)
    _check_fields(mappings, "mappings", fields)


def _check_fields(mappings: Mapping[str, Any], place: str, fields: FieldNames, outer: str = "") -> None:
    for name, field in _object(mappings.get("properties", {}), f"{place}.properties").items():
        at = f"{place}.properties.{name}"
        _check_field(f"{outer}{name}", _object(field, at), at, fields)


def _check_field(name: str, field: Mapping[str, Any], place: str, fields: FieldNames) -> None:
    ours = index_body.own_mappings()["properties"]
    if name in fields.text_fields:
        _check_texts(field, place)
    elif any(text.startswith(f"{name}.") for text in fields.text_fields):
        _check_fields(field, place, fields, f"{name}.")
    elif name == "embedding":
        _check_embedding(field, place, ours[name])
    elif name == fields.group:
        is_keyword = field.get("type", "keyword") == "keyword"
        _require(is_keyword, f"{place}.type", "langshift needs a keyword field; leave it out.")
    elif name in ours or name in (fields.sparse, fields.tokens) or (fields.chunking and name in (CHUNK, PARENT)):
        same = name in ours and not any(_differences(field, ours[name]))
        _require(same, place, "langshift writes this field itself; leave it out.")


def _check_embedding(field: Mapping[str, Any], place: str, ours: Mapping[str, Any]) -> None:
    for path in _differences(field, ours):
        at = ".".join((place, *path))
        _require(path != ("method", "engine"), at, "is set by --engine; leave it out.")
        why = "langshift sets this itself; only method.parameters.m and ef_construction may be set."
        _require(path in _SCALES, at, why)


def _check_texts(field: Mapping[str, Any], place: str) -> None:
    for name, value in field.items():
        usual = (name == "type" and value == "object") or (name == "dynamic" and is_on(value))
        why = f"langshift stores texts by language, as in {place.rpartition('.')[2]}.en: set the analyzer there."
        _require(name == "properties" or usual, f"{place}.{name}", why)
    for tag, mapping in _object(field.get("properties", {}), f"{place}.properties").items():
        at = f"{place}.properties.{tag}"
        _check_tag(tag, at)
        _check_text(_object(mapping, at), at)


def _check_text(mapping: Mapping[str, Any], place: str) -> None:
    why = "must be text, or lexical search finds nothing; other types can be added under fields."
    _require(mapping.get("type", "text") == "text", f"{place}.type", why)
    indexed = is_on(mapping.get("index", True))
    _require(indexed, f"{place}.index", "lexical search would find nothing; leave it out.")


def _check_tag(tag: str, place: str) -> None:
    known = parse_tag(tag) if tag != "und" else tag
    if known is None:
        raise InvalidTemplate(place, f"{tag!r} is not a valid language: use a BCP 47 tag such as ja.")
    goes = text_language(known)
    _require(goes == tag, place, f"texts in {tag} are stored in the fields of {goes}: use {goes}.")


def _check_dynamic(templates: object, fields: FieldNames) -> None:
    place = "mappings.dynamic_templates"
    if not isinstance(templates, list):
        raise InvalidTemplate(place, "must be a list.")
    for number, template in enumerate(templates):
        at = f"{place}[{number}]"
        _require(len(_object(template, at)) == 1, at, "must be an object with one name.")
        ((name, rule),) = template.items()
        mapping = _object(_object(rule, f"{at}.{name}").get("mapping", {}), f"{at}.{name}.mapping")
        if is_of_texts(template, fields):
            _check_text(mapping, f"{at}.{name}.mapping")


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where they say something that we do not."""
    for name, value in theirs.items():
        mine = ours.get(name, {})
        if value and isinstance(value, Mapping) and isinstance(mine, Mapping):
            yield from ((name, *path) for path in _differences(value, mine))
        elif name not in ours or value != mine:
            yield (name,)


def _object(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidTemplate(place, "must be a JSON object.")
    return value


# What OpenSearch's own plugins call their analyzers, tokenizers and filters.
_PLUGINS = {
    "analysis-kuromoji": "kuromoji kuromoji_tokenizer kuromoji_baseform kuromoji_part_of_speech kuromoji_readingform "
    "kuromoji_stemmer kuromoji_number kuromoji_completion kuromoji_iteration_mark ja_stop",
    "analysis-nori": "nori nori_tokenizer nori_part_of_speech nori_readingform nori_number",
    "analysis-smartcn": "smartcn smartcn_tokenizer smartcn_stop",
    "analysis-icu": "icu_analyzer icu_tokenizer icu_normalizer icu_folding icu_collation icu_transform "
    "icu_collation_keyword",
    "analysis-phonetic": "phonetic",
    "analysis-stempel": "polish polish_stem polish_stop",
    "analysis-ukrainian": "ukrainian",
}
# The server's words for what it lacks: analyzer [x] has not been configured, Unknown filter type [x], failed to find
# tokenizer under name [x].
_LACKING = re.compile(r"(?:\banalyzer|\btype|\bname) \[(\w+)\]")


class Template(NamedTuple):
    """What a file of a person's own says.

    Attributes:
        path: the file.
        settings: flat, by names less ``index.``.
        mappings: with fields within each other instead of names with dots.
    """

    path: Path
    settings: Mapping[str, Any]
    mappings: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, fields: FieldNames = USUAL) -> Template:
        """Read a file with the ``settings``, ``mappings`` and ``analyzers`` of an index with these names of fields.

        Raises:
            UsageError: it cannot be read, or would change what langshift relies on.
        """
        if special := special_file(path):
            raise UsageError(f"{special}: write the template to a file.")
        try:
            text = path.read_text(encoding="utf-8-sig")
            # For its words where it is none.
            json.loads(text)
            content = load_json(text.encode())
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}.") from error
        except json.JSONDecodeError as error:
            where = f"{path}, line {error.lineno}, column {error.colno}"
            raise UsageError(f"{where}: is not valid JSON ({error.msg}); correct it.") from None
        except (UnicodeDecodeError, RecursionError):
            if fault := not_utf8(path.read_bytes()):
                raise UsageError(f"{path}: is {fault}.") from None
            raise UsageError(f"{path}: is not valid JSON; correct it.") from None
        try:
            content = check_top(content)
            settings, mappings = flat(content.get("settings", {})), nested(content.get("mappings", {}))
            check_settings(settings)
            check_mappings(mappings, fields)
        except InvalidTemplate as error:
            raise UsageError(f"{path}, {error.place}: {error}" if error.place else f"{path}: {error}") from None
        of_languages = {tag: {"analyzer": analyzer} for tag, analyzer in content.get("analyzers", {}).items()}
        texts = {field: {"properties": of_languages} for field in fields.text_fields} if of_languages else {}
        return cls(path, settings, _merged(nested({"properties": texts}), mappings))

    @property
    def hash(self) -> str:
        """Names the content; another order of keys makes no difference."""
        return hashlib.sha256(json.dumps([self.settings, self.mappings], sort_keys=True).encode()).hexdigest()

    def merge_into(self, body: dict[str, Any]) -> None:
        """Merge it over the body of an index that is about to be made, as ``index_body`` gives it."""
        settings, mappings = body["settings"]["index"], body["mappings"]
        fields = FieldNames.from_meta(mappings["_meta"])
        if "number_of_replicas" in self.settings and "auto_expand_replicas" not in self.settings:
            # Would have its way over any number.
            settings.pop("auto_expand_replicas", None)
        settings.update(self.settings)
        templates = in_order(self.mappings.get("dynamic_templates", []), mappings["dynamic_templates"], fields)
        body["mappings"] = {**_merged(mappings, self.mappings), "dynamic_templates": templates}
        for field in fields.text_fields:
            for mapping in index_body.mapped(body["mappings"], field)["properties"].values():
                mapping.setdefault("type", "text")

    def refused(self, error: RequestError) -> ClusterError:
        """What the server says against it, as one sentence with the remedy."""
        message = _reason(error)
        lacking = set(_LACKING.findall(message))
        plugin = next((plugin for plugin, names in _PLUGINS.items() if lacking.intersection(names.split())), None)
        remedy = "correct the file"
        if plugin:
            remedy = f"install the plugin {plugin} on every node (`opensearch-plugin install {plugin}`) and restart it"
        return ClusterError(f"The cluster cannot create an index from {self.path}: {message}; {remedy}.")


class IndexOptions(NamedTuple):
    """How a version is made; nothing of it counts for one that is there.

    Attributes:
        template: settings and mappings of a person's own.
        engine: what indexes the vectors; None for Lucene.
        dates: fields that hold dates.
        shards: into how many it is cut, where the template does not say it.
    """

    template: Template | None = None
    engine: index_body.Engine | None = None
    dates: tuple[str, ...] = ()
    shards: int = 1

    @property
    def given(self) -> list[str]:
        """The options with which a person says it."""
        options = {"--template": self.template, "--engine": self.engine, "--date-field": self.dates or None}
        return [name for name, value in options.items() if value is not None]

    def applied(self, body: dict[str, Any], field_types: index_body.FieldTypes | None = None) -> dict[str, Any]:
        """The body of an index that is about to be made, as ``index_body`` gives it, changed in place.

        Args:
            body: the body.
            field_types: what the first documents tell.
        """
        known = {
            **(field_types or index_body.FieldTypes()).mappings(),
            **dict.fromkeys(self.dates, index_body.DECLARED_DATE),
        }
        templates = body["mappings"]["dynamic_templates"]
        # No properties: whatever a person's template says of a field, by its name or by a pattern, comes first.
        templates[:0] = [{f"type of {path}": {"path_match": path, "mapping": known[path]}} for path in known]
        if self.engine is not None and self.engine != index_body.LUCENE:
            embedding = body["mappings"]["properties"]["embedding"]
            embedding["method"]["engine"] = "faiss"
            embedding["compression_level"] = index_body.COMPRESSION[self.engine]
            # What is read would have norm 1 otherwise, and every later change of alpha would be wrong without a word.
            body["settings"]["index"][index_body.DERIVED] = False
        body["settings"]["index"]["number_of_shards"] = self.shards
        if self.template is not None:
            self.template.merge_into(body)
        return body


DEFAULT_INDEX_OPTIONS = IndexOptions()


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their whole names, less ``index.``."""
    made: dict[str, Any] = {}
    for name, value in settings.items():
        whole = f"{prefix}{name}"
        made.update(flat(value, f"{whole}.") if isinstance(value, Mapping) else {whole: value})
    return made if prefix else {name.removeprefix("index."): value for name, value in made.items()}


def nested(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Fields within each other, where a name with dots stands for that."""
    made = dict(mapping)
    if isinstance(properties := mapping.get("properties"), Mapping):
        fields: dict[str, Any] = {}
        for name, field in properties.items():
            first, _, rest = name.partition(".")
            inner = {"properties": {rest: field}} if rest else field
            fields = _merged(fields, {first: nested(inner) if isinstance(inner, Mapping) else inner})
        made["properties"] = fields
    return made


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two objects as one; where both have a value that is no object, the other's counts."""
    made = dict(one)
    for name, value in other.items():
        mine = made.get(name)
        made[name] = _merged(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return made


def in_order(theirs: list[dict[str, Any]], ours: list[dict[str, Any]], fields: FieldNames) -> list[dict[str, Any]]:
    """Dynamic templates, of which the first that fits counts: theirs before ours.

    One of theirs for all strings must not make something else of a text in a language that has no field yet.
    """
    names = {name for template in theirs for name in template}
    kept = [template for template in ours if names.isdisjoint(template)]
    # Those that are alike stay in their order.
    return sorted([*theirs, *kept], key=lambda template: is_of_texts(template, fields), reverse=True)


def _reason(error: RequestError) -> str:
    """The server's words; where it failed to build analyzers, why."""
    cause = error.info.get("error") if isinstance(error.info, dict) else None
    suppressed = cause.get("suppressed") if isinstance(cause, dict) else None
    message = str(suppressed[0].get("reason") or "") if suppressed else ""
    return " ".join(message.split()).rstrip(".") or reason(error)

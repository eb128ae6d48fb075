"""What a template of a person's own must leave alone, since langshift relies on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langshift.languages import parse_tag, text_language
from langshift.plugin.template import own_mappings

TOP = ("settings", "mappings", "analyzers")
_TEXTS = ("title", "text")
# Name of a setting -> the only value that it may have, None for no value at all, and why.
_SETTINGS: dict[str, tuple[str | None, str]] = {
    "knn": ("true", "no index can be searched by vectors without it"),
    "knn.derived_source.enabled": ("false", "vectors might come back changed, and none could be moved again"),
    "derived_source.enabled": ("false", "documents would not come back as they were written"),
    "append_only.enabled": ("false", "langshift writes documents by their _id, also again"),
    "hidden": ("false", "langshift would not find the version"),
    "default_pipeline": (None, "langshift's documents have to arrive as it makes them: see langshift pipeline"),
    "final_pipeline": (None, "langshift's documents have to arrive as it makes them: see langshift pipeline"),
}
_SCALES = (("method", "parameters", "m"), ("method", "parameters", "ef_construction"))


class Refused(Exception):
    """A template that cannot be used; the message says why and what to do.

    Attributes:
        place: where in the file, such as ``mappings.properties.shift``; empty for all of it.
    """

    def __init__(self, place: str, why: str) -> None:
        super().__init__(why)
        self.place = place


def check_top(content: object) -> Mapping[str, Any]:
    """Refuse what has not the form of a template.

    Args:
        content: the file's.

    Returns:
        The same.

    Raises:
        Refused: it is none.
    """
    content = _object(content, "")
    for name in content:
        if name not in TOP:
            raise Refused(name, f"is unknown; what may stand there is {', '.join(TOP)}.")
        _object(content[name], name)
    for tag, analyzer in content.get("analyzers", {}).items():
        _check_tag(tag, f"analyzers.{tag}")
        if not isinstance(analyzer, str) or not analyzer:
            raise Refused(f"analyzers.{tag}", 'must be the name of an analyzer, as in {"ja": "kuromoji"}.')
    return content


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that would change what langshift relies on.

    Args:
        settings: flat, by names less ``index.``.

    Raises:
        Refused: they would.
    """
    for name, value in settings.items():
        place = f"settings.index.{name}"
        if name.startswith("blocks."):
            raise Refused(place, "langshift could not write; leave it out.")
        wanted, why = _SETTINGS.get(name, ("", ""))
        if wanted != "" and (wanted is None or str(value).lower() != wanted):
            remedy = "leave it out" if wanted is None else f"leave it out, or make it {wanted}"
            raise Refused(place, f"{why}; {remedy}.")


def is_of_texts(template: Mapping[str, Any]) -> bool:
    """Whether a dynamic template is for fields of ``title`` or ``text``, by its ``path_match``."""
    (rule,) = template.values()
    found = rule.get("path_match")
    return any(str(path).startswith(("title.", "text.")) for path in (found if isinstance(found, list) else [found]))


def check_mappings(mappings: Mapping[str, Any]) -> None:
    """Refuse mappings that would change what langshift relies on.

    Args:
        mappings: with fields within each other instead of names with dots.

    Raises:
        Refused: they would.
    """
    _check_whole(mappings)
    _check_dynamic(mappings.get("dynamic_templates", []))
    for name, field in _object(mappings.get("properties", {}), "mappings.properties").items():
        _check_field(name, _object(field, f"mappings.properties.{name}"), f"mappings.properties.{name}")


def _check_whole(mappings: Mapping[str, Any]) -> None:
    source = _object(mappings.get("_source", {}), "mappings._source")
    if any(value for name, value in source.items() if name != "enabled") or not _is(source.get("enabled", True), True):
        raise Refused("mappings._source", "langshift reads whole documents again; leave it out.")
    if _is(_object(mappings.get("_routing", {}), "mappings._routing").get("required", False), True):
        raise Refused("mappings._routing.required", "langshift writes without a routing; leave it out.")
    if not _is(mappings.get("enabled", True), True):
        raise Refused("mappings.enabled", "no field could be searched; leave it out.")
    for name in _object(mappings.get("_meta", {}), "mappings._meta"):
        if name.startswith("langshift"):
            raise Refused(f"mappings._meta.{name}", "langshift keeps its own things under such names; rename it.")


def _check_field(name: str, field: Mapping[str, Any], place: str) -> None:
    ours = own_mappings()["properties"]
    if name in _TEXTS:
        _check_texts(field, place)
    elif name == "embedding":
        _check_embedding(field, place, ours[name])
    elif name == "group":
        if field.get("type", "keyword") != "keyword":
            raise Refused(f"{place}.type", "langshift needs a keyword there; leave it out.")
    elif name in ours and any(_differences(field, ours[name])):
        raise Refused(place, "langshift writes this field itself; leave it out.")


def _check_embedding(field: Mapping[str, Any], place: str, ours: Mapping[str, Any]) -> None:
    for path in _differences(field, ours):
        if path in _SCALES:
            continue
        at = ".".join((place, *path))
        if path == ("method", "engine"):
            raise Refused(at, "is chosen by --engine; leave it out.")
        raise Refused(at, "langshift sets this itself; only method.parameters.m and ef_construction may be set.")


def _check_texts(field: Mapping[str, Any], place: str) -> None:
    for name, value in field.items():
        usual = (name == "type" and value == "object") or (name == "dynamic" and _is(value, True))
        if name != "properties" and not usual:
            why = f"langshift keeps texts by language, as in {place.rpartition('.')[2]}.en: set the analyzer there."
            raise Refused(f"{place}.{name}", why)
    for tag, mapping in _object(field.get("properties", {}), f"{place}.properties").items():
        at = f"{place}.properties.{tag}"
        _check_tag(tag, at)
        _check_text(_object(mapping, at), at)


def _check_text(mapping: Mapping[str, Any], place: str) -> None:
    if mapping.get("type", "text") != "text":
        raise Refused(f"{place}.type", "must be text, or word search finds nothing; other types can go into fields.")
    if not _is(mapping.get("index", True), True):
        raise Refused(f"{place}.index", "word search finds nothing without it; leave it out.")


def _check_tag(tag: str, place: str) -> None:
    known = parse_tag(tag) if tag != "und" else tag
    if known is None:
        raise Refused(place, f"{tag!r} is no language: use a BCP 47 tag such as ja.")
    if (goes := text_language(known)) != tag:
        raise Refused(place, f"texts in {tag} go to the fields of {goes}: use {goes}.")


def _check_dynamic(templates: object) -> None:
    place = "mappings.dynamic_templates"
    if not isinstance(templates, list):
        raise Refused(place, "must be a list.")
    for number, template in enumerate(templates):
        at = f"{place}[{number}]"
        if len(template := _object(template, at)) != 1:
            raise Refused(at, "must be an object with one name.")
        ((name, rule),) = template.items()
        mapping = _object(_object(rule, f"{at}.{name}").get("mapping", {}), f"{at}.{name}.mapping")
        if is_of_texts(template):
            _check_text(mapping, f"{at}.{name}.mapping")


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where they say something that we do not."""
    for name, value in theirs.items():
        mine = ours.get(name, {})
        if value and isinstance(value, Mapping) and isinstance(mine, Mapping):
            yield from ((name, *path) for path in _differences(value, mine))
        elif name not in ours or value != mine:
            yield (name,)


def _is(value: object, wanted: bool) -> bool:
    return str(value).lower() == str(wanted).lower()


def _object(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(place, "must be a JSON object.")
    return value

"""The cluster's own index templates: a version is created under them only where they leave it what it must be."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError, OpenSearchException, RequestError

from langshift.errors import ClusterError
from langshift.plugin import versions
from langshift.plugin.index_body import mapped
from langshift.plugin.metadata import FieldNames, is_on
from langshift.plugin.user_template import InvalidTemplate, check_mappings, check_settings, flat, in_order, nested
from langshift.server_errors import NO_ANSWER, reason
from langshift.wording import join_words

#: What the server calls it where an index is there already.
ALREADY_EXISTS = "resource_already_exists_exception"
# langshift's own writes pass by the one; what the other does to them is looked at in the answers. The third is on
# wherever nothing else is said, and off wherever that matters.
_LEFT_TO_OTHERS = {"default_pipeline", "final_pipeline", "knn.derived_source.enabled"}
_TOP = ("_source", "_routing", "enabled")


class TemplatePart(NamedTuple):
    """A template that applies to an index, or a component of one.

    Attributes:
        label: what it is, for messages, such as ``the index template logs``.
        content: its ``settings``, ``mappings`` and ``aliases``.
        streams: whether it makes data streams instead of indices.
    """

    label: str
    content: Mapping[str, Any]
    streams: bool = False

    def says(self, place: str) -> bool:
        """Whether it sets something, such as ``mappings._source`` or ``settings.index.hidden``."""
        part, _, path = place.partition(".")
        if part == "settings":
            return path.removeprefix("index.") in flat(self.content.get("settings", {}))
        found: Any = nested(self.content.get("mappings", {}))
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found is not None


def templates_for(client: OpenSearch, index: str) -> list[TemplatePart] | None:
    """The templates that the cluster applies to an index of this name, the last of which has its way.

    Of composable templates only the one with the highest priority applies, after its components; legacy ones apply,
    all that fit, only where no composable one does.

    Returns:
        None where this user may not read them.
    """
    try:
        found = client.indices.get_index_template()["index_templates"]
        fitting = [one for one in found if _fits(index, one["index_template"])]
        if not fitting:
            legacy = [item for item in client.indices.get_template().items() if _fits(index, item[1])]
            legacy.sort(key=lambda item: int(item[1].get("order") or 0))
            return [TemplatePart(f"the legacy index template {name}", content) for name, content in legacy]
        one = max(fitting, key=lambda one: int(one["index_template"].get("priority") or 0))
        content = one["index_template"]
        whole = TemplatePart(_label(one), content.get("template", {}), "data_stream" in content)
        return [*_components(client, one), whole]
    except NO_ANSWER:
        return None


def _fits(index: str, template: Mapping[str, Any]) -> bool:
    # To OpenSearch a star alone is special; fnmatch does not try all ways in which several stars may match.
    patterns = (pattern.replace("[", "[[]").replace("?", "[?]") for pattern in template["index_patterns"])
    return any(fnmatchcase(index, pattern) for pattern in patterns)


def _components(client: OpenSearch, found: Mapping[str, Any]) -> Iterator[TemplatePart]:
    for name in found["index_template"].get("composed_of", ()):
        answer = client.cluster.get_component_template(name=name)["component_templates"]
        for one in answer:
            label = f"the component template {name} of {_label(found)}"
            yield TemplatePart(label, one["component_template"]["template"])


def _label(found: Mapping[str, Any]) -> str:
    return f"the index template {found['name']}"


def create_version(
    client: OpenSearch, name: str, index: str, body: Mapping[str, Any], is_own: Callable[[], bool]
) -> str:
    """Create the index of a version, unless an index template would make something else of it.

    What a template adds to it stays, where langshift can do with it.

    Args:
        client: the cluster.
        name: the alias, which the version gets when it is finished and never before.
        index: the version.
        body: of the index.
        is_own: whether an index of that name that is there already was created by this very call, whose answer was
            lost.

    Returns:
        Its id.

    Raises:
        ClusterError: a template gives it the alias of a version, or takes away what langshift needs; nothing is left of
            it.
        RequestError: the cluster refuses it otherwise; see ``ALREADY_EXISTS``.
    """
    parts = templates_for(client, index)
    for part in parts or ():
        if part.streams:
            raise ClusterError(
                f"No index {index} can be created, because {part.label} makes data streams of such names: change its "
                "index_patterns, or choose another index name."
            )
        for alias in part.content.get("aliases", {}):
            _require_free(client, name, index, alias, part.label)
    try:
        client.indices.create(index=index, body=body)
    except RequestError as error:
        if error.error == ALREADY_EXISTS:
            if not is_own():
                raise
        elif parts and any(part.content.get("settings") or part.content.get("mappings") for part in parts):
            raise ClusterError(
                f"The cluster cannot create index {index} under {_named(parts, '')}: {reason(error)}; correct the "
                "template, or change its index_patterns."
            ) from error
        else:
            raise
    try:
        return _require_whole(client, name, index, body, parts)
    except ClusterError:
        _remove(client, index)
        raise


def _require_free(client: OpenSearch, name: str, index: str, alias: str, label: str) -> None:
    """Refuse an alias that only langshift may set."""
    if alias != name and not _is_of_versions(client, alias):
        return
    raise ClusterError(
        f"Index {index} cannot be created, because {label} would give it the alias {alias} at once, and searches would "
        "find it before it is finished: remove the alias from the template (langshift sets it itself), or change its "
        "index_patterns."
    )


def _is_of_versions(client: OpenSearch, alias: str) -> bool:
    """Whether an alias is the name of another index of langshift's."""
    try:
        return "{" not in alias and bool(versions.versions_of(client, alias))
    except AuthorizationException:
        return False


def _require_whole(
    client: OpenSearch, name: str, index: str, body: Mapping[str, Any], parts: Sequence[TemplatePart] | None
) -> str:
    """Look at what the cluster has made of a body, which no request tells beforehand; gives the index's id."""
    made = client.indices.get(index=index, params={"flat_settings": "true"})[index]
    for alias in made.get("aliases", {}):
        _require_free(client, name, index, alias, _named(parts, ""))
    wanted, mappings = body["mappings"], made["mappings"]
    fields = FieldNames.from_meta(wanted["_meta"])
    given = _LEFT_TO_OTHERS.union(flat(body["settings"]["index"]))
    settings = {name.removeprefix("index."): value for name, value in made["settings"].items()}
    try:
        check_settings({name: value for name, value in settings.items() if name not in given})
        check_mappings(
            {part: mappings[part] for part in _TOP if part in mappings and mappings[part] != wanted.get(part)}, fields
        )
        check_mappings({"dynamic_templates": _rules_beside(mappings, wanted)}, fields)
        check_mappings({"_meta": dict.fromkeys(_added(mappings["_meta"], wanted["_meta"]))}, fields)
        _check_objects(mappings, wanted, "mappings")
        if fields.split:
            check_mappings(_texts_beside(mappings, wanted, fields), fields)
    except InvalidTemplate as error:
        why = str(error).rpartition("; ")[0]
        raise ClusterError(
            f"Index {index} cannot be created because of {_named(parts, error.place)} ({error.place}): {why}; change "
            "the template, or its index_patterns."
        ) from None
    _restore_dynamic(client, index, mappings, wanted, fields)
    return str(settings["uuid"])


def _named(parts: Sequence[TemplatePart] | None, place: str) -> str:
    """Which templates say something; all that apply, where it is none in particular."""
    if not parts:
        return "an index template of the cluster"
    return join_words([part.label for part in parts if place and part.says(place)] or [part.label for part in parts])


def _added(made: object, wanted: object, name: str = "") -> Iterator[str]:
    """Names of what langshift keeps in ``_meta`` to which something was added that it did not write."""
    if isinstance(made, Mapping) and isinstance(wanted, Mapping):
        for key, value in made.items():
            if name or key.startswith("langshift"):
                inner = list(_added(value, wanted[key], name or key)) if key in wanted else [name or key]
                yield from inner
    elif isinstance(made, list) and isinstance(wanted, list) and len(made) != len(wanted):
        yield name


def _check_objects(made: Mapping[str, Any], wanted: Mapping[str, Any], place: str) -> None:
    """Refuse objects of fields that are not indexed; a field itself is always as it was wanted."""
    for name, field in wanted.get("properties", {}).items():
        there, at = made["properties"][name], f"{place}.properties.{name}"
        if "properties" in field:
            if "enabled" not in field and not is_on(there.get("enabled", True)):
                raise InvalidTemplate(f"{at}.enabled", "nothing in this field would be searchable; leave it out.")
            _check_objects(there, field, at)


def _texts_beside(made: Mapping[str, Any], wanted: Mapping[str, Any], fields: FieldNames) -> dict[str, Any]:
    """Mappings of texts in languages that were not asked for."""
    found: dict[str, Any] = {}
    for path in fields.text_fields:
        theirs, ours = (mapped(mappings, path).get("properties", {}) for mappings in (made, wanted))
        found[path] = {"properties": {tag: one for tag, one in theirs.items() if tag not in ours}}
    return nested({"properties": found})


def _rules_beside(made: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Dynamic templates that were not asked for."""
    names = {name for one in wanted.get("dynamic_templates", []) for name in one}
    return [one for one in made.get("dynamic_templates", []) if names.isdisjoint(one)]


def _restore_dynamic(
    client: OpenSearch, index: str, made: Mapping[str, Any], wanted: Mapping[str, Any], fields: FieldNames
) -> None:
    """Have new fields mapped as in any version: by a template's rules first, but for texts, and never refused."""
    changes: dict[str, Any] = {}
    if theirs := _rules_beside(made, wanted):
        changes["dynamic_templates"] = in_order(theirs, wanted.get("dynamic_templates", []), fields)
    if "dynamic" not in wanted and not is_on(made.get("dynamic", True)):
        changes["dynamic"] = True
    if changes:
        client.indices.put_mapping(index=index, body=changes)


def _remove(client: OpenSearch, index: str) -> None:
    with suppress(OpenSearchException):
        # Behind this block an index cannot be deleted.
        client.indices.put_settings(index=index, body={"index": {"blocks.read_only": None}})
    with suppress(NotFoundError):
        client.indices.delete(index=index)

"""What takes the place of the OpenSearch plugin's processor where the plugin is to go: pipelines in Painless."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import metadata, pipelines, stored_shift
from langshift.plugin.metadata import FieldNames
from langshift.plugin.user_template import flat
from langshift.wording import join_words

_KINDS: Final = ("default", "final")


class NativePipelines(NamedTuple):
    """Where the plugin's processor is.

    Attributes:
        pipelines: those that have it.
        indices: those of langshift's whose default pipeline is that processor alone.
        stuck: index, or template of indices -> the pipeline through which documents come that does more than that, or
            that new indices get by that template.
    """

    pipelines: list[str]
    indices: list[str]
    stuck: dict[str, str]


def find_native(client: OpenSearch) -> NativePipelines:
    """Look for the plugin's processor in all pipelines, and for what uses these."""
    # Where there is none at all, the server says that there is no such thing.
    bodies = client.ingest.get_pipeline(params={"ignore": 404})
    bodies = {name: body for name, body in bodies.items() if isinstance(body, dict) and "processors" in body}
    native = {name for name, body in bodies.items() if pipelines.has_native_step(body)}
    using = {name for name in bodies if native and native & pipelines.reached(client, name)}
    found = NativePipelines(sorted(native), [], {})
    if not using:
        return found
    every = client.indices.get_settings(index="*", params={"expand_wildcards": "all", "flat_settings": "true"})
    for index, one in sorted(every.items()):
        named = [one["settings"].get(f"index.{kind}_pipeline") for kind in _KINDS]
        through = [name for name in named if name in using]
        if through and named[1] not in using and pipelines.native_step(bodies[through[0]]) is not None:
            found.indices.append(index)
        elif through:
            found.stuck[index] = through[0]
    for label, settings in _templates(client):
        through = [name for kind in _KINDS if (name := settings.get(f"{kind}_pipeline")) in using]
        if through:
            found.stuck[label] = through[0]
    return found


def _templates(client: OpenSearch) -> Iterator[tuple[str, dict[str, Any]]]:
    """What each of the cluster's templates is called, and the settings that it gives new indices, less ``index.``."""
    for one in client.indices.get_index_template()["index_templates"]:
        yield f"index template {one['name']}", flat(one["index_template"].get("template", {}).get("settings", {}))
    for one in client.cluster.get_component_template()["component_templates"]:
        yield f"component template {one['name']}", flat(one["component_template"]["template"].get("settings", {}))
    for name, one in client.indices.get_template().items():
        yield f"legacy index template {name}", flat(one.get("settings", {}))


def put_painless_back(client: OpenSearch) -> NativePipelines:
    """Give each index that the plugin's processor shifts documents of the pipeline that langshift installs.

    Returns:
        Where the processor was; of its indices none uses it any more.

    Raises:
        ClusterError: the pipeline of an index cannot be replaced; then nothing was changed.
    """
    found = find_native(client)
    if found.stuck:
        named = join_words([f"{index} (pipeline {pipeline})" for index, pipeline in found.stuck.items()])
        raise ClusterError(
            f"The plugin's processor is a part of pipelines that langshift cannot replace: {named}; give these "
            "other pipelines before the plugin is removed, or their indices refuse every document."
        )
    metas = {index: metadata.read_metadata(client, index) for index in found.indices}
    shifts = {index: stored_shift.from_metadata(meta, index) for index, meta in metas.items()}
    for index, shift in shifts.items():
        first = pipelines.first_of(client, index, None)
        pipelines.install(client, index, shift, FieldNames.from_meta(metas[index]), first)
    return found

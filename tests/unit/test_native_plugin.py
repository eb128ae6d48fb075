"""The OpenSearch plugin is packed to the byte alike, and linked beside the plugins of the distribution."""

import zipfile

from langshift import __version__
from langshift.embedded.node import Node
from langshift.plugin import native
from langshift.plugin.native_nodes import NAME, SEARCH


def a_zip(folder):
    packed = folder / "langshift.zip"
    native._pack(packed, {"langshift.jar": b"jar", "plugin-descriptor.properties": native.descriptor(NAME).encode()})
    return packed


def test_the_same_content_gives_the_same_bytes(tmp_path):
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
    assert a_zip(first).read_bytes() == a_zip(second).read_bytes()
    assert {entry.date_time for entry in zipfile.ZipFile(a_zip(first)).infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_descriptor_names_the_versions_that_it_runs_on():
    lines = {name: dict(line.split("=") for line in native.descriptor(name).splitlines()) for name in (NAME, SEARCH)}
    what = "Language-fair vector search: one query for all search modes"
    assert lines[NAME] == {
        "name": "langshift",
        "description": f"{what}, and the shift of documents",
        "version": __version__,
        "opensearch.version": "[3.3.2,3.8.99]",
        "java.version": "21",
        "classname": "org.langshift.opensearch.LangshiftPlugin",
    }
    own = {"name": "langshift-search", "classname": "org.langshift.opensearch.LangshiftSearchPlugin"}
    assert lines[SEARCH] == lines[NAME] | {"description": what} | own


def test_a_node_has_the_plugins_of_the_distribution_and_those_of_its_home(tmp_path):
    distribution, node = tmp_path / "distribution", Node(tmp_path)
    for name in ("lib", "modules", "agent", "plugins/opensearch-knn"):
        (distribution / name).mkdir(parents=True)
    node.lay_out(distribution, {}, None)
    assert {one.name for one in (node.folder / "plugins").iterdir()} == {"opensearch-knn"}
    placed = native.unpack(a_zip(tmp_path), node.installed)
    assert {one.name: one.stat().st_mode & 0o777 for one in placed.iterdir()} == {
        "langshift.jar": 0o644,
        "plugin-descriptor.properties": 0o644,
    }
    for _ in range(2):
        node.lay_out(distribution, {}, None)
        assert {one.name for one in (node.folder / "plugins").iterdir()} == {"opensearch-knn", "langshift"}
        assert (node.folder / "plugins" / "langshift" / "langshift.jar").read_bytes() == b"jar"

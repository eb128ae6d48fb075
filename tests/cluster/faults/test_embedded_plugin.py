"""The embedded OpenSearch is given the plugin and gives it back: it starts anew each time."""

import json

from command_line import langshift
from documents import PLUGIN, blocks, served_elsewhere
from native_plugin import has_plugin
from piped_index import made_shift, make_index, raw_vector

from langshift import embedded
from langshift.client import open_cluster
from langshift.plugin import native
from langshift.plugin.native import find_native


def written(client):
    """What becomes of a document."""
    client.index(index="own", id="1", body={"embedding": raw_vector(), "language": "de", "text": "Ebbe"})
    return client.get(index="own", id="1")["_source"]


def test_the_embedded_opensearch_is_given_the_plugin_and_gives_it_back(new_home, quick_java, plugin_zip, monkeypatch):
    home = new_home()
    monkeypatch.setattr(native, "build", lambda *_, **__: plugin_zip)
    monkeypatch.setenv("LANGSHIFT_HOME", str(home))
    monkeypatch.delenv("OPENSEARCH_URL", raising=False)
    with quick_java():
        done = langshift("plugin", "install")
        assert done.stdout.startswith("Installed the plugin langshift. OpenSearch")
        client = open_cluster()
        client.ingest.put_pipeline(id="own", body={"processors": [{"langshift": {}}]})
        index = make_index(client, "own", made_shift(alpha=0.75))
        client.indices.put_settings(index=index, body={"index.default_pipeline": "own"})
        before = written(client)
        done = langshift("plugin", "remove", "--json")
        found = find_native(client := open_cluster())
        assert json.loads(done.stdout) == {"removed": True, "indices": [index], "pipelines": found.pipelines}
        assert not has_plugin(client)
        assert (found.indices, written(client)) == ([], before)
        assert langshift("plugin", "remove").stdout == "The plugin langshift is not installed: nothing to remove.\n"
        embedded.down(home)


def test_the_query_alone_answers_a_search_page(new_home, quick_java, plugin_zip, tmp_path):
    home = new_home()
    native.unpack(plugin_zip.search, embedded.plugins_folder(home))
    with quick_java():
        server = embedded.up(home)
        try:
            with served_elsewhere(tmp_path, server.url) as run_block:
                for block in blocks(PLUGIN):
                    if block.kind == "sh":
                        run_block(PLUGIN, block)
        finally:
            embedded.down(home)

"""The commands of ``langshift plugin``, and what doctor and ``index describe`` say of the plugin."""

import json
import zipfile
from contextlib import contextmanager

import pytest
from command_line import langshift
from native_plugin import has_plugin
from piped_index import made_shift, make_index, raw_vector
from tls_proxy import proxy

from langshift import __version__
from langshift.plugin import native, pipelines

SHIFT = made_shift(alpha=0.75, alphas={"th": 0.5}, gamma=0.9)


@pytest.fixture
def away(cluster_url, index_name):
    """A function that gives a context with the address of the cluster, which shows a test its own things only."""

    def own(found):
        return {name: one for name, one in found.items() if name.startswith((index_name, f"langshift-{index_name}"))}

    def opened(rows=lambda rows: rows):
        def rewrite(path, status, body):
            beginnings = {"/_ingest/pipeline?": own, "/*/_settings": own, "/_cat/plugins": rows}
            for beginning, change in beginnings.items():
                if status == 200 and path.startswith(beginning):
                    return status, json.dumps(change(json.loads(body))).encode()
            return status, body

        return proxy(cluster_url, rewrite=rewrite)

    return opened


@pytest.fixture(autouse=True)
def _plugin(request):
    if "client" in request.fixturenames and not has_plugin(request.getfixturevalue("client")):
        pytest.skip("the cluster does not have the plugin langshift")


def write_pipelines(client, name):
    """Pipelines that have the processor alone, behind another, and among others."""
    bodies = {
        "alone": [{"langshift": {}}],
        "first": [{"set": {"field": "seen", "value": "yes"}}],
        "behind": [{"langshift": {"pipeline": f"{name}-first"}}],
        "among": [{"set": {"field": "x", "value": 1}}, {"langshift": {}}],
        "calling": [{"pipeline": {"name": f"{name}-alone"}}],
    }
    for one, steps in bodies.items():
        client.ingest.put_pipeline(id=f"{name}-{one}", body={"processors": steps})


def let_through(client, index, **pipelines):
    """Let documents for an index come through pipelines."""
    client.indices.put_settings(
        index=index, body={"index": {f"{kind}_pipeline": one for kind, one in pipelines.items()}}
    )


@contextmanager
def template_of(client, name, pipeline):
    """A template that gives new indices a pipeline, as messages call it."""
    body = {"index_patterns": [f"{name}-new*"], "template": {"settings": {"index.default_pipeline": pipeline}}}
    client.indices.put_index_template(name=name, body=body)
    try:
        yield f"index template {name}"
    finally:
        client.indices.delete_index_template(name=name)


def written(client, name):
    """What becomes of a document."""
    client.index(index=name, id="1", body={"embedding": raw_vector(), "language": "de", "text": "Ebbe"})
    return client.get(index=name, id="1")["_source"]


@pytest.mark.usefixtures("pipelines")
def test_painless_takes_the_processors_place_or_nothing_is_removed(client, away, index_name):
    write_pipelines(client, index_name)
    plain, after, odd = (make_index(client, f"{index_name}-{name}", SHIFT) for name in ("plain", "after", "odd"))
    let_through(client, plain, default=f"{index_name}-alone")
    let_through(client, after, default=f"{index_name}-behind")
    before = {index: written(client, index) for index in (plain, after)}
    with away() as (url, _):
        for kind, pipeline in (("default", "among"), ("default", "calling"), ("final", "alone")):
            let_through(client, odd, **{"default": None, kind: f"{index_name}-{pipeline}"})
            done = langshift("plugin", "remove", url=url)
            assert (done.returncode, done.stdout) == (1, "")
            assert f"cannot replace: {odd} (pipeline {index_name}-{pipeline}); give these" in done.stderr
            assert pipelines.default(client, plain) == f"{index_name}-alone"
        let_through(client, odd, default=None, final=None)
        with template_of(client, index_name, f"{index_name}-alone") as label:
            done = langshift("plugin", "remove", url=url)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"cannot replace: {label} (pipeline {index_name}-alone); give these" in done.stderr
        done = langshift("plugin", "remove", url=url)
    assert done.returncode == 0
    assert "bin/opensearch-plugin remove langshift\n\nand restart it." in done.stdout
    assert f"Documents for {after} and {plain} are shifted by pipelines in Painless now" in done.stderr
    assert f"3 pipelines with the plugin's processor stay, and refuse documents: {index_name}-alone" in done.stderr
    assert pipelines.installed(client, after).first == pipelines.PrecedingPipeline(f"{index_name}-first", False)
    assert {index: written(client, index) for index in (plain, after)} == before


@pytest.mark.usefixtures("pipelines")
def test_a_pipeline_is_installed_in_the_processors_place_and_never_behind_it(client, cluster_url, index_name):
    write_pipelines(client, index_name)
    index = make_index(client, index_name, SHIFT)
    let_through(client, index, default=f"{index_name}-among")
    for more in ((), ("--after", f"{index_name}-calling")):
        done = langshift("pipeline", "install", index_name, *more, url=cluster_url)
        assert done.returncode == 2
        assert "which shifts vectors, so they would be shifted twice" in done.stderr or "--after" in done.stderr
    let_through(client, index, default=f"{index_name}-alone")
    before = written(client, index)
    assert langshift("pipeline", "install", index_name, url=cluster_url).returncode == 0
    assert pipelines.installed(client, index).first is None
    assert written(client, index) == before


def test_elsewhere_it_is_said_how_the_plugin_is_installed(away, cluster_url, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "compile_sources", lambda _lock, _downloads, classes, _name: classes.mkdir())
    with away() as (url, _):
        done = langshift("plugin", "install", url=url, cwd=tmp_path)
    packed = tmp_path / f"langshift-{__version__}.zip"
    assert (done.returncode, done.stderr) == (0, "")
    assert f"  bin/opensearch-plugin install --batch {packed.as_uri()}\n" in done.stdout
    assert f"  COPY {packed.name} /tmp/\n  RUN bin/opensearch-plugin install" in done.stdout
    assert f'    general:\n      pluginsList: ["https://HOST/{packed.name}"]\n' in done.stdout
    assert "lid.176.LICENSE" in zipfile.ZipFile(packed).namelist()

    for number, runs in {"3.3.1": False, "3.3.2": True, "3.8.7": True, "3.9.0": False}.items():

        def other(path, status, body, number=number):
            if path != "/":
                return status, body
            told = json.loads(body)
            told["version"]["number"] = number
            return status, json.dumps(told).encode()

        with proxy(cluster_url, rewrite=other) as (url, _):
            done = langshift("plugin", "install", url=url, cwd=tmp_path)
        assert done.returncode == (0 if runs else 1)
        assert (f"runs OpenSearch {number}, but the plugin runs on OpenSearch 3.3.2 to 3.8:" in done.stderr) is not runs


def test_only_versions_whose_files_are_known_are_compiled_against(tmp_path, monkeypatch):
    seen = []

    def compiled(lock, _downloads, classes, _name):
        seen.append(lock.version)
        classes.mkdir()

    monkeypatch.setattr(native, "compile_sources", compiled)
    for version in ("3.3.2", "3.8.0"):
        done = langshift("plugin", "build", "--opensearch", version, "--json", cwd=tmp_path)
        told = json.loads(done.stdout)
        assert told["zip"] == str(tmp_path / f"langshift-{__version__}.zip")
        assert told["search_zip"] == str(tmp_path / f"langshift-search-{__version__}.zip")
    assert seen == ["3.3.2"] * 2 + ["3.8.0"] * 2
    done = langshift("plugin", "build", "--opensearch", "3.5.0", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2,
        "Error: The files of OpenSearch 3.5.0 are not known: compile against one of 3.3.2, 3.6.0 and 3.8.0; the same "
        "zips run on 3.3.2 to 3.8.\n",
    )


def test_a_node_without_the_plugin_is_named(client, away, index_name):
    make_index(client, index_name, SHIFT)

    def two(rows):
        return rows + [row | {"name": "lonely"} for row in rows if row["component"] != "langshift"]

    def none(rows):
        return [row for row in rows if row["component"] != "langshift"]

    for change, words, wrong in ((two, "; missing on lonely", True), (none, "not installed", False), (list, "", False)):
        with away(change) as (url, _):
            findings = json.loads(langshift("doctor", "--json", url=url).stdout)["findings"]
            described = json.loads(langshift("index", "describe", index_name, "--json", url=url).stdout)
            said = langshift("index", "describe", index_name, url=url)
        (finding,) = (one for one in findings if one["name"] == "plugin langshift")
        assert words in finding["value"]
        assert finding["status"] == ("warning" if wrong else "ok")
        assert described["plugin"]["in_words"] == finding["value"]
        assert f"The cluster's plugin langshift: {finding['value']}." in said.stderr
        assert ("The plugin langshift is not the same on every node" in said.stderr) is wrong
        assert (finding["remedy"] in described["remarks"]) is wrong

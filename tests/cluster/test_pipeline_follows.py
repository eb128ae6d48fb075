"""A load that makes a new version of an index whose live version shifts what other clients write."""

import numpy as np
import pytest
from given_data import run
from native_plugin import has_plugin
from opensearchpy.exceptions import AuthorizationException
from shifted_index import Corpus, language_vectors, refused, saved
from stamps import stamp_of

from langshift.plugin import pipelines as pipelines_module
from langshift.plugin.pipelines import PrecedingPipeline, install, installed

pytestmark = pytest.mark.usefixtures("cluster_env")
KNOWN = language_vectors(alpha=0.75, alphas={"th": 0.5})


@pytest.fixture
def corpus(tmp_path):
    return Corpus(tmp_path, each=1)


@pytest.fixture
def vectors(tmp_path):
    return saved(tmp_path, KNOWN)


@pytest.fixture
def name(pipelines, corpus, vectors):
    corpus.ingest(pipelines, "--vectors", vectors)
    return pipelines


def load(corpus, name, *options):
    done = run("ingest", corpus.path, "--index", name, "--encoder", "given", *options)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stderr


def said(name, number):
    return f"{name}-v000{number} shifts what other clients write, as {name}-v000{number - 1} did."


def require_shifted(client, name, alpha):
    client.index(index=name, id="theirs", body={"language": "de", "embedding": [1.0] * 6})
    source = client.get(index=name, id="theirs")["_source"]
    assert stamp_of(source) == {"vectors": KNOWN.hash, "alpha": alpha, "language": "de"}
    assert np.abs(np.array(source["embedding"]) - (1 - alpha * KNOWN.vectors["de"])).max() < 1e-6


@pytest.mark.parametrize("kind", ["replace", "new-version"])
def test_other_clients_documents_go_on_being_shifted_by_the_new_versions_scales(client, name, corpus, vectors, kind):
    options = ("--vectors", vectors, "--if-exists", kind)
    assert "shifts what other clients write" not in load(corpus, name, *options)
    assert run("pipeline", "install", name).exit_code == 0
    told = load(corpus, name, *options, "--alpha", 1)
    assert told.splitlines().count(said(name, 3)) == 1
    require_shifted(client, name, 1.0)
    there = set(client.ingest.get_pipeline(id=f"langshift-{name}-*"))
    assert there == {f"langshift-{name}-v000{n}" for n in ((3,) if kind == "replace" else (2, 3))}


def test_what_runs_before_the_shift_goes_on_running(client, name, corpus, vectors):
    step = {"set": {"field": "seen", "value": True}}
    client.ingest.put_pipeline(id=f"{name}-first", body={"processors": [step]})
    assert run("pipeline", "install", name, "--after", f"{name}-first").exit_code == 0
    load(corpus, name, "--vectors", vectors, "--if-exists", "new-version")
    assert installed(client, f"{name}-v0002").first == PrecedingPipeline(f"{name}-first", was_default=False)
    require_shifted(client, name, 0.75)
    assert client.get(index=name, id="theirs")["_source"]["seen"]


def test_a_pipeline_of_the_plugin_serves_the_new_version_too(client, name, corpus, vectors):
    if not has_plugin(client):
        pytest.skip("the cluster does not have the plugin langshift")
    client.ingest.put_pipeline(id=f"{name}-any", body={"processors": [{"langshift": {}}]})
    client.indices.put_settings(index=name, body={"index": {"default_pipeline": f"{name}-any"}})
    told = load(corpus, name, "--vectors", vectors, "--if-exists", "new-version", "--alpha", 1)
    assert said(name, 2) in told.splitlines()
    require_shifted(client, name, 1.0)


def test_a_load_that_breaks_off_there_goes_on(client, name, corpus, vectors, monkeypatch):
    assert run("pipeline", "install", name).exit_code == 0
    whole = install

    def refuse(client, index, *rest):
        whole(client, index, *rest)
        raise AuthorizationException(403, "security_exception", {"error": {"reason": "no permissions for [x/put]"}})

    options = ("--index", name, "--encoder", "given", "--vectors", vectors, "--if-exists", "new-version", "--alpha", 1)
    pipeline = pipelines_module.name_for(f"{name}-v0001")
    before = client.ingest.get_pipeline(id=pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(pipelines_module, "install", refuse)
        sentence, code = refused(run("ingest", corpus.path, *options))
    assert code == 1
    assert "x/put" in sentence
    assert sentence.endswith("--resume.")
    # Nothing is written to the live version: it would not be replaced then.
    assert client.ingest.get_pipeline(id=pipeline) == before
    done = run("ingest", corpus.path, *options, "--resume")
    assert done.exit_code == 0, done.exception
    assert said(name, 2) in done.stderr.splitlines()
    require_shifted(client, name, 1.0)

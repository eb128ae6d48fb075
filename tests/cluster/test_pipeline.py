"""``langshift pipeline install`` and ``remove``: what is put into the cluster, what is kept, and what is said."""

import json

import pytest
from click.testing import CliRunner
from command_line import langshift, refusal
from piped_index import made_shift, make_index, raw_vector

from langshift import __version__
from langshift.commands.pipeline import pipeline as command
from langshift.errors import ClusterError, UsageError
from langshift.plugin import shift_script
from langshift.plugin.metadata import USUAL
from langshift.plugin.pipelines import PrecedingPipeline, default, install, installed, name_for, read
from langshift.plugin.stored_shift import StoredShift

SHIFT = made_shift(alpha=0.75, alphas={"th": 0.5})


@pytest.fixture
def index(client, pipelines):
    return make_index(client, pipelines, SHIFT)


@pytest.fixture
def own(client, pipelines):
    """Makes a pipeline of somebody's own, which writes its name into documents."""

    def make(end, *steps):
        name = f"{pipelines}-{end}"
        step = {"set": {"field": end, "value": True}}
        client.ingest.put_pipeline(id=name, body={"processors": [*steps, step]})
        return name

    return make


def run(cluster_env, *arguments):
    """Standard output and standard error of ``langshift pipeline``; a refusal is raised."""
    done = CliRunner().invoke(command, arguments, env={"OPENSEARCH_URL": cluster_env}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout, done.stderr


def put_default(client, index, name):
    client.indices.put_settings(index=index, body={"index": {"default_pipeline": name}})


def test_to_install_puts_the_pipeline_and_makes_it_the_default(client, cluster_env, index, index_name):
    name = f"langshift-{index}"
    said, noted = run(cluster_env, "install", index_name)
    assert (said, noted) == (f"Installed {name}, the default pipeline of {index}.\n", "")
    assert default(client, index) == name
    found = client.ingest.get_pipeline(id=name)[name]
    assert found["description"] == (
        f"Shifts documents for {index} by their language: alpha 0.75 (th 0.5), language vectors {SHIFT.hash}. "
        f"Made by langshift {__version__}."
    )
    _, step = found["processors"]
    assert step == {
        "script": {
            "id": shift_script.script_id(),
            "params": json.loads(json.dumps(shift_script.params(SHIFT, SHIFT, USUAL, pipeline=True))),
        }
    }
    assert client.get_script(id=step["script"]["id"])["script"]["source"] == shift_script.source()
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    assert "final_pipeline" not in settings


def pipeline_state(client, index):
    """The metadata of an index and its pipelines; other tests change those of theirs meanwhile."""
    metadata = client.cluster.state(metric="metadata")["metadata"]
    pipelines = [one for one in metadata["ingest"]["pipeline"] if index in one["id"]]
    assert pipelines
    return metadata["indices"][index], pipelines


def test_to_install_again_changes_nothing_and_says_so(client, cluster_env, index, index_name):
    run(cluster_env, "install", index_name)
    before = pipeline_state(client, index)
    said, noted = run(cluster_env, "install", index)
    assert (said, noted) == (f"Already up to date: langshift-{index}, the default pipeline of {index}.\n", "")
    assert pipeline_state(client, index) == before


@pytest.mark.usefixtures("script_of_its_own")
def test_what_has_changed_is_brought_up_to_date(client, cluster_env, index, index_name):
    install(client, index, made_shift(alpha=0.1), USUAL, None)
    client.delete_script(id=shift_script.script_id())
    said, _ = run(cluster_env, "install", index_name)
    assert said == f"Updated langshift-{index}, the default pipeline of {index}.\n"
    client.index(index=index_name, id="1", body={"language": "de", "embedding": raw_vector()})
    assert client.get(index=index, id="1")["_source"]["shift"]["alpha"] == 0.75


def test_with_a_version_that_a_load_replaces_goes_its_pipeline(client, index, index_name):
    install(client, index, SHIFT, USUAL, None)
    replaced = make_index(client, index_name, SHIFT, if_exists="replace")
    assert replaced != index
    assert read(client, name_for(index)) is None


@pytest.mark.usefixtures("script_of_its_own")
def test_a_script_that_was_deleted_comes_back(client, cluster_env, index, index_name):
    run(cluster_env, "install", index_name)
    client.delete_script(id=shift_script.script_id())
    said, _ = run(cluster_env, "install", index_name)
    assert said == f"Updated langshift-{index}, the default pipeline of {index}.\n"
    assert shift_script.is_stored(client)


def test_as_json(client, cluster_env, index, index_name, own):
    first = own("first")
    put_default(client, index, first)
    expected = {
        "index": index,
        "pipeline": f"langshift-{index}",
        "first": {"name": first, "was_default": True},
        "vectors": SHIFT.hash,
        "alpha": 0.75,
        "alphas": {"th": 0.5},
        "gamma": 0.0,
        "own": 0.0,
    }
    for done in ("installed", "unchanged"):
        said, noted = run(cluster_env, "install", index_name, "--json")
        assert (json.loads(said), noted) == ({**expected, "done": done}, "")
    said, noted = run(cluster_env, "remove", index_name, "--json")
    removed = {"index": index, "removed": f"langshift-{index}", "default_pipeline": first}
    assert (json.loads(said), noted) == (removed, "")
    said, _ = run(cluster_env, "remove", index_name, "--json")
    assert json.loads(said) == {**removed, "removed": None}


def test_what_was_the_default_before_runs_first_and_comes_back(client, cluster_env, index, index_name, own):
    first = own("first")
    put_default(client, index, first)
    client.indices.put_settings(index=index, body={"index": {"final_pipeline": own("last")}})
    _, noted = run(cluster_env, "install", index_name)
    assert noted == f"The pipeline {first}, the previous default pipeline, runs before it.\n"
    assert run(cluster_env, "install", index_name, "--after", first)[0].startswith("Already up to date: ")
    client.index(index=index_name, id="1", body={"language": "de", "embedding": raw_vector()})
    found = client.get(index=index, id="1")["_source"]
    assert (found["first"], found["last"], found["shift"]["language"]) == (True, True, "de")
    said, noted = run(cluster_env, "remove", index_name)
    assert (said, noted) == (
        f"Removed langshift-{index}: {index} now has the default pipeline {first} again. "
        "Its documents are not changed.\n",
        "",
    )
    assert default(client, index) == first
    assert f"langshift-{index}" not in client.ingest.get_pipeline(params={"ignore": 404})
    assert client.get(index=index, id="1")["_source"] == found


def test_a_pipeline_that_is_asked_for_runs_first_and_goes_with_the_shift(client, cluster_env, index, index_name, own):
    first, second = own("first"), own("second")
    _, noted = run(cluster_env, "install", index_name, "--after", first)
    assert noted == f"The pipeline {first} runs before it.\n"
    # It stays where another install does not name it, and makes room where that names another.
    assert run(cluster_env, "install", index_name)[0].startswith("Already up to date: ")
    assert run(cluster_env, "install", index_name, "--after", second)[0].startswith("Updated ")
    assert installed(client, index).first == PrecedingPipeline(second, was_default=False)
    said, _ = run(cluster_env, "remove", index_name)
    assert said == f"Removed langshift-{index}: {index} now has no default pipeline. Its documents are not changed.\n"
    assert default(client, index) is None
    assert second in client.ingest.get_pipeline(params={"ignore": 404})


def test_there_is_nothing_to_remove(client, cluster_env, index, index_name, own):
    said, _ = run(cluster_env, "remove", index_name)
    assert said == f"{index} has no langshift pipeline: there is nothing to remove.\n"
    first = own("first")
    put_default(client, index, first)
    assert run(cluster_env, "remove", index_name)[0] == said
    assert default(client, index) == first


def test_a_removal_that_was_cut_off_is_made_up_for(client, cluster_env, index, index_name):
    install(client, index, SHIFT, USUAL, None)
    put_default(client, index, None)
    run(cluster_env, "remove", index_name)
    assert f"langshift-{index}" not in client.ingest.get_pipeline(params={"ignore": 404})


def test_a_pipeline_of_somebody_that_runs_langshifts_is_left_working(client, cluster_env, index, index_name, own):
    install(client, index, SHIFT, USUAL, None)
    inner = own("inner", {"pipeline": {"name": f"langshift-{index}"}})
    outer = own("outer", {"foreach": {"field": "xs", "processor": {"pipeline": {"name": inner}}}})
    put_default(client, index, outer)
    with pytest.raises(UsageError) as refused:
        run(cluster_env, "install", index_name)
    assert str(refused.value) == (
        f"The pipeline {outer} runs langshift-{index}, which would run {outer} in turn: remove langshift-{index} first."
    )
    run(cluster_env, "remove", index_name)
    assert f"langshift-{index}" in client.ingest.get_pipeline(params={"ignore": 404})


def test_the_pipeline_of_another_version_is_not_run_before_this_ones(client, cluster_env, index, index_name, own):
    first = own("first")
    install(client, index, SHIFT, USUAL, PrecedingPipeline(first, was_default=True))
    second = make_index(client, index_name, SHIFT, if_exists="new-version")
    put_default(client, second, f"langshift-{index}")
    run(cluster_env, "install", index_name)
    assert installed(client, second).first == PrecedingPipeline(first, was_default=True)
    assert default(client, index) == f"langshift-{index}"


def test_what_cannot_run_first_is_refused_and_nothing_is_changed(client, cluster_env, index, index_name, own):
    def refused(*more):
        with pytest.raises(UsageError) as caught:
            run(cluster_env, "install", index_name, *more)
        assert f"langshift-{index}" not in client.ingest.get_pipeline(params={"ignore": 404})
        return str(caught.value)

    missing = f"{index_name}-none"
    nothing = f"There is no ingest pipeline {missing}: create it first, or give another name."
    assert refused("--after", missing) == nothing
    put_default(client, index, missing)
    assert refused() == nothing
    first = own("first")
    put_default(client, index, first)
    assert refused("--after", own("second")) == (
        f"{index} has the default pipeline {first}, which continues to run first: add {index_name}-second to it, or "
        "leave --after out."
    )


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("skip", [True, False])
def test_a_pipeline_that_copies_vectors_of_the_index_is_refused(cluster_env, index_name, own, skip):
    """The copy is shifted already, and comes without a stamp where a whole document is sent again."""
    embedding = {"model_id": "m", "field_map": {"passage": "embedding"}, "skip_existing": skip}
    inner = own("inner", {"text_embedding": embedding})
    outer = own("outer", {"pipeline": {"name": inner}})
    if not skip:
        assert run(cluster_env, "install", index_name, "--after", outer)[0].startswith("Installed ")
        return
    with pytest.raises(UsageError) as refused:
        run(cluster_env, "install", index_name, "--after", outer)
    assert str(refused.value) == (
        f"The pipeline {inner} has a processor with skip_existing, which copies vectors that are already shifted, so "
        "they would be shifted twice: set skip_existing to false first."
    )


def test_an_index_that_is_not_there_is_refused(cluster_env, pipelines):
    with pytest.raises(ClusterError) as missing:
        run(cluster_env, "install", pipelines)
    assert str(missing.value) == (
        f"There is no index {pipelines}: create it with `langshift ingest CORPUS --index {pipelines}`."
    )


def test_an_index_without_language_vectors_has_its_documents_stamped(client, cluster_env, pipelines):
    index = make_index(client, pipelines, StoredShift())
    said, noted = run(cluster_env, "install", pipelines)
    assert said == f"Installed langshift-{index}, the default pipeline of {index}.\n"
    assert noted == f"{index} has no language vectors: documents get a stamp, but their vectors are not shifted.\n"
    assert client.ingest.get_pipeline(id=f"langshift-{index}")[f"langshift-{index}"]["description"] == (
        f"Shifts documents for {index} by their language: there are no language vectors, so nothing moves. "
        f"Made by langshift {__version__}."
    )


def test_from_the_command_line(cluster_env, index, index_name):
    def call(*arguments):
        return langshift("pipeline", *arguments, url=cluster_env)

    done = call("install", index_name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Installed langshift-{index}, the default pipeline of {index}.\n"
    assert refusal(call("install", index_name, "--after", "-")) == (
        "There is no ingest pipeline -: create it first, or give another name."
    )
    done = call("verify", index_name)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"0 documents of {index} with a vector, none of which can be compared.\n",
        "",
    )
    assert call("remove", index_name).returncode == 0
    assert refusal(call("verify", index_name)) == (
        f"{index} has no langshift pipeline: install one with `langshift pipeline install {index_name}`."
    )


def test_a_load_goes_past_the_pipeline(client, cluster_env, index_name, pipelines, tmp_path):
    """What langshift writes itself is shifted already, and does not even meet the pipeline that runs first."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text('{"_id": "1", "text": "Ebbe und Flut am Meer", "language": "de"}\n')

    def ingest(*more):
        done = langshift("ingest", corpus, "--index", index_name, *more, url=cluster_env)
        assert done.returncode == 0, done.stderr
        client.indices.refresh(index=index_name)
        return client.get(index=index_name, id="1")["_source"]

    before = ingest()
    client.ingest.put_pipeline(
        id=f"{pipelines}-fails", body={"processors": [{"fail": {"message": "langshift's documents come here"}}]}
    )
    run(cluster_env, "install", index_name, "--after", f"{pipelines}-fails")
    assert ingest("--if-exists", "append") == before

"""``langshift pipeline verify``: the cluster's shift against NumPy's, and stamps that do not agree with the index."""

import copy
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from piped_index import made_shift, make_foreign_index, make_index, raw_vector, shifted_by

from langshift.commands.pipeline import pipeline as command
from langshift.plugin.metadata import USUAL, FieldNames, encoded
from langshift.plugin.pipelines import PrecedingPipeline, body, install
from langshift.plugin.shift_script import reason

SHIFT = made_shift(alpha=0.75, alphas={"th": 0.5, "zh": 0.0}, gamma=0.97)
LANGUAGES = ("de", "de-AT", "th", "zh", "zh-TW", "en", "vi", "und")


@pytest.fixture
def index(client, pipelines):
    made = make_index(client, pipelines, SHIFT)
    install(client, made, SHIFT, USUAL, None)
    return made


def write(client, index, count=40, norm=5.0, **parameters):
    lines = []
    for i in range(count):
        language = LANGUAGES[i % len(LANGUAGES)]
        lines += [{"index": {"_id": str(i)}}, {"language": language, "embedding": raw_vector(i, norm)}]
    done = client.bulk(body=lines, index=index, params={"refresh": "true", **parameters})
    assert not done["errors"]


def verify(cluster_env, index_name, *more):
    """The exit code, what was said, and the sentences about what is wrong."""
    arguments, env = ["verify", index_name, *more], {"OPENSEARCH_URL": cluster_env}
    done = CliRunner().invoke(command, arguments, env=env, catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr.splitlines()


@pytest.mark.parametrize("norm", [1, 7, 50])
def test_what_the_pipeline_does_agrees_with_numpy(client, cluster_env, index, index_name, norm):
    write(client, index, norm=norm)
    code, said, wrong = verify(cluster_env, index_name)
    assert (code, wrong) == (0, [])
    figures = re.fullmatch(
        rf"langshift-{index} on 40 of 40 documents of {index} with a vector: the cluster's results are within (\S+) of "
        r"NumPy's, the stored vectors within (\S+) \(as fractions of a vector's norm\)\.\n"
        r"5 documents \(12\.5%\) in an unknown language \(und\), not shifted by any: if a client wrote them, have it "
        r"name the language in language \(a tag such as de\), and write them again\.\n",
        said,
    )
    assert float(figures[1]) <= 2e-7
    assert float(figures[2]) <= 1e-6


def test_as_json_of_a_sample(client, cluster_env, index):
    write(client, index)
    code, said, _ = verify(cluster_env, index, "--sample", "7", "--json")
    told = json.loads(said)
    assert (code, told["wrong"]) == (0, [])
    assert told["compared"].pop("cluster") <= 2e-7
    assert told["compared"].pop("stored") <= 1e-6
    assert told["compared"].pop("worst") in {str(i) for i in range(40)}
    assert told == {
        "index": index,
        "pipeline": f"langshift-{index}",
        "first": None,
        "compared": {
            "documents": 7,
            "parentless": 0,
            "other_language": 0,
            "renamed": None,
            "off_norm": None,
            "strange": None,
            "refused": 0,
            "refusal": None,
        },
        "stamps": {"vectors": 40, "without": 0, "other_vectors": 0, "other_scale": 0},
        "und": 5,
        "wrong": [],
    }


def test_no_more_documents_are_asked_for_than_the_index_gives_at_a_time(client, cluster_env, index):
    write(client, index)
    client.indices.put_settings(index=index, body={"index": {"max_result_window": 5}})
    code, said, _ = verify(cluster_env, index, "--json")
    assert (code, json.loads(said)["compared"]["documents"]) == (0, 5)


def test_a_pipeline_that_runs_first_is_left_out_and_may_fail(client, cluster_env, index, index_name, pipelines):
    write(client, index)
    client.ingest.put_pipeline(id=f"{pipelines}-fails", body={"processors": [{"fail": {"message": "no model"}}]})
    first = PrecedingPipeline(f"{pipelines}-fails", was_default=False)
    install(client, index, SHIFT, USUAL, first)
    code, _, wrong = verify(cluster_env, index_name)
    assert (code, wrong) == (0, [])


def test_stamps_that_do_not_agree_are_counted_with_what_to_do(client, cluster_env, index, index_name):
    write(client, index)
    past = {"pipeline": "_none"}

    def put(name, stamp):
        stamped = {} if stamp is None else {"shift": stamp}
        language = (stamp or {}).get("language", "de")
        client.index(
            index=index, id=name, body={"language": language, "embedding": raw_vector(), **stamped}, params=past
        )

    put("raw-1", None)
    put("raw-2", {"vectors": SHIFT.hash})
    put("scale-1", {"vectors": SHIFT.hash, "alpha": 1.0, "language": "de"})
    put("scale-2", {"vectors": SHIFT.hash, "alpha": 0.75, "language": "th"})
    put("scale-3", {"vectors": "f" * 16, "alpha": 0.0, "language": "de"})
    put("vectors", {"vectors": "f" * 16, "alpha": 0.75, "language": "de"})
    client.index(index=index, id="none", body={"language": "de"}, params={**past, "refresh": "true"})
    code, said, wrong = verify(cluster_env, index_name)
    assert code == 1
    assert said.startswith(f"langshift-{index} on 40 of 46 documents of {index} with a vector: ")
    request = f"`POST /{index}/_update_by_query`"
    assert wrong == [
        f"2 documents with a vector but no stamp in shift: if the vectors are raw, {request} with "
        '{"query": {"bool": {"must_not": {"exists": {"field": "shift.alpha"}}}}} shifts them.',
        f"3 documents shifted with a scale other than the index's: {request} with "
        '{"query": {"exists": {"field": "shift.alpha"}}} corrects them.',
        "1 document shifted by language vectors other than the index's: index such documents again with their raw "
        "vectors and without shift.",
    ]
    told = json.loads(verify(cluster_env, index_name, "--json")[1])
    assert told["stamps"] == {"vectors": 46, "without": 2, "other_vectors": 1, "other_scale": 3}
    assert told["wrong"] == wrong
    # What is advised helps.
    client.delete(index=index, id="vectors")
    for sentence in wrong[:2]:
        body = json.loads(re.search(r" with (\{.*\}) ", sentence)[1])
        done = client.update_by_query(index=index, body=body, params={"refresh": "true"})
        assert done["failures"] == []
    assert verify(cluster_env, index_name)[::2] == (0, [])


def test_a_vector_that_was_replaced_without_its_stamp_shows_by_its_norm(client, cluster_env, pipelines):
    """Only where the encoder gives norm 1: otherwise nothing tells such a vector from one that is shifted."""
    index = make_index(client, pipelines, SHIFT, normalised=True)
    install(client, index, SHIFT, USUAL, None)
    write(client, index, norm=1)
    assert verify(cluster_env, pipelines)[0] == 0
    # The pipeline does not run then.
    body = [{"update": {"_id": "2"}}, {"doc": {"embedding": raw_vector(99, 1)}}]
    assert not client.bulk(index=index, body=body, params={"refresh": "true"})["errors"]
    code, _, wrong = verify(cluster_env, pipelines)
    assert code == 1
    assert wrong == [
        "1 document of the sample without the encoder's norm once the shift is undone (document 2): the vector was "
        "replaced but the stamp was not. Index such documents again with their raw vectors.",
    ]


def test_a_language_that_was_changed_without_the_vector_is_found(client, cluster_env, index, index_name):
    write(client, index)
    client.update(index=index, id="2", body={"doc": {"language": "de"}}, params={"refresh": "true"})
    code, _, wrong = verify(cluster_env, index_name)
    assert code == 1
    assert wrong == [
        "1 document of the sample would now be shifted by a language other than their stamp's (document 2): index such "
        "documents again with their raw vectors."
    ]


def test_a_pipeline_that_was_changed_is_found(client, cluster_env, index, index_name):
    write(client, index)
    name = f"langshift-{index}"
    body = copy.deepcopy(client.ingest.get_pipeline(id=name)[name])
    body["processors"][-1]["script"]["params"]["new"]["vectors"] |= encoded({"de": SHIFT.vectors["th"]})
    client.ingest.put_pipeline(id=name, body=body)
    code, _, (outdated, differs) = verify(cluster_env, index_name)
    assert code == 1
    assert outdated == (
        f"{name} differs from the pipeline that this version of langshift creates: "
        f"run `langshift pipeline install {index_name}` again."
    )
    assert re.fullmatch(
        r"The cluster's shift differs from NumPy's \(document \d+\): install the pipeline again with "
        rf"`langshift pipeline install {index_name}`, and report a bug if that does not help\.",
        differs,
    )


def test_a_pipeline_that_refuses_is_told_with_its_reason(client, cluster_env, index, index_name):
    write(client, index, count=2)
    name = f"langshift-{index}"
    body = copy.deepcopy(client.ingest.get_pipeline(id=name)[name])
    body["processors"][-1]["script"]["params"]["dimension"] = 3
    client.ingest.put_pipeline(id=name, body=body)
    code, _, wrong = verify(cluster_env, index_name)
    assert code == 1
    assert re.fullmatch(
        r"The pipeline refused 2 documents of the sample: Document [01] has a vector of dimension 8 in embedding, not "
        r"3: give it one of this index's encoder\.",
        wrong[1],
    )


def test_an_index_with_fields_of_its_own(client, cluster_env, pipelines):
    fields = FieldNames("vectors.body", "detected", "sure", "ls", ("body",), "lang")
    properties = {
        "vectors": {
            "properties": {
                "body": {
                    "type": "knn_vector",
                    "dimension": 8,
                    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
                }
            }
        },
        "detected": {"type": "keyword"},
        "ls": {
            "properties": {
                "vectors": {"type": "keyword"},
                "alpha": {"type": "float"},
                "language": {"type": "keyword"},
            }
        },
    }
    index = make_foreign_index(client, pipelines, SHIFT, fields, properties)
    install(client, index, SHIFT, fields, None)
    for i, language in enumerate(("deu", "th", "en", "zh_TW", None)):
        told = {} if language is None else {"lang": language}
        client.index(index=index, id=str(i), body={"vectors": {"body": raw_vector(i)}, **told})
    client.indices.refresh(index=index)
    code, said, wrong = verify(cluster_env, pipelines)
    assert (code, wrong) == (0, [])
    assert " on 5 of 5 documents of " in said
    assert said.splitlines()[1] == (
        "1 document (20.0%) in an unknown language (und), not shifted by any: if a client wrote them, have it name the "
        "language in lang (a tag such as de), and write them again."
    )
    body = {"vectors": {"body": raw_vector()}, "lang": "de"}
    client.index(index=index, id="raw", body=body, params={"pipeline": "_none", "refresh": "true"})
    code, _, (sentence,) = verify(cluster_env, pipelines)
    assert (code, sentence.partition(":")[0]) == (1, "1 document with a vector but no stamp in ls")


def test_what_is_taken_back_is_what_was_sent(client, index):
    """The test's own measure: NumPy's shift of the vectors that were sent, against what the cluster holds."""
    write(client, index)
    for hit in client.search(index=index, body={"size": 40})["hits"]["hits"]:
        raw, source = raw_vector(int(hit["_id"])), hit["_source"]
        tag = source["shift"].get("language")
        assert np.abs(np.float32(source["embedding"]) - shifted_by(raw, SHIFT, tag)).max() <= 2e-7 * 5


def simulated(client, made):
    """Why a pipeline refuses a document."""
    sent = {"_index": "of-nobody", "_id": "1", "_source": {"embedding": raw_vector(), "language": "de"}}
    (answer,) = client.ingest.simulate(body={"pipeline": made, "docs": [sent]})["docs"]
    return reason(answer["error"])


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("place", ["normal form", "parent", "language", "stamp", "texts"])
def test_a_pipeline_that_somebody_has_changed_writes_to_no_other_document(client, place):
    made = json.loads(json.dumps(body("of-nobody", SHIFT, FieldNames(parent="parent", chunking="words:9"), None)))
    normal, shift = (step["script"]["params"] for step in made["processors"])
    field = "_routing" if place == "stamp" else "_id"
    lists = {"normal form": normal["texts"], "texts": shift["texts"]}
    if place in lists:
        lists[place].append(field)
    else:
        shift["fields"][place] = field
    assert simulated(client, made) == (
        f"The pipeline would change {field}, one of OpenSearch's own fields: install it again with `langshift pipeline "
        "install`."
    )


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("name", ["vectors", "common", "directions"])
def test_a_pipeline_with_a_vector_of_another_dimension_refuses_documents(client, name):
    made = json.loads(json.dumps(body("of-nobody", SHIFT, USUAL, None)))
    short = encoded({"de": np.ones(2, np.float32)})
    made["processors"][-1]["script"]["params"]["new"][name] = short if name == "vectors" else short["de"]
    assert simulated(client, made) == (
        "The parameters of the shift have a vector of another dimension than 8: install the pipeline again with "
        "`langshift pipeline install`."
    )

"""A new version judged by a dataset before it goes live, and kept from it where it is worse."""

import json

import pytest
from given_data import Made, run
from shifted_index import printed, refused

from langshift.plugin import versions

pytestmark = pytest.mark.usefixtures("cluster_env")


@pytest.fixture
def data(tmp_path):
    made = Made(tmp_path)
    made.fit()
    return made


@pytest.fixture
def name(index_name, data):
    """An index whose languages lie apart, since nothing is shifted."""
    options = ("--encoder", "given", "--vectors", data.vectors, "--alpha", 0)
    done = run("ingest", data.data / "corpus.jsonl", "--index", index_name, *options)
    assert done.exit_code == 0, done.exception
    return index_name


def test_a_better_version_passes_and_a_worse_one_is_removed(client, name, data):
    gate = ("--gate", data.data, "--fail-if", "nDCG@3 < 0", "--fail-if", "value R@3 in en < 0.5")
    done = run("retune", name, "--alpha", 1, *gate)
    assert done.exit_code == 0, done.exception
    head, columns, *rows = done.stdout.splitlines()
    assert head == f"6 queries of {data.data} in {name}-v0001 and {name}-v0002"
    assert columns.split() == ["measure", f"{name}-v0001", f"{name}-v0002", "change"]
    assert [row.split()[0] for row in rows[:6]] == ["nDCG@20", "R@20", "TLR@20", "SLR@20", "nDCG@3", "R@3"]
    assert rows[4].split()[2:] == ["1.0000", f"+{rows[4].split()[3][1:]}"]
    conditions = rows[rows.index("Conditions") + 1 :]
    assert conditions[0].startswith("- passes: nDCG@3 changes by +.")
    assert conditions[1:] == [
        "- passes: R@3 for queries in en is 1.0000.",
        "",
        f"{name} now points to {name}-v0002 with alpha 1: 18 documents, 0 caught up, checked. "
        f"The previous version, {name}-v0001, is kept: `langshift rollback {name}` returns to it.",
    ]
    done = run("retune", name, "--alpha", 0, *gate)
    sentence, code = refused(done)
    told = [line for line in done.stdout.splitlines() if line.startswith("- FAILS: ")]
    assert code == 1
    assert sentence == f"{name} still points to {name}-v0002, and the new version was removed: " + " ".join(
        line.removeprefix("- FAILS: ") for line in told
    )
    assert told[0].endswith(" from 1.0000 to " + told[0].split()[9] + " (fails if 'nDCG@3 < 0').")
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001", f"{name}-v0002"]
    assert versions.live(client, name).fingerprint.alpha == 1


def test_json(name, data):
    told = printed(run("retune", name, "--alpha", 1, "--gate", data.data, "--fail-if", "nDCG@3 < 0", "--json"))
    (verdict,) = told["gate"]
    assert (verdict["condition"], verdict["failed"], told["changed"]) == ("nDCG@3 < 0", False, True)
    done = run("retune", name, "--alpha", 0, "--gate", data.data, "--fail-if", "nDCG@3 < 0", "--json")
    assert refused(done)[1] == 1
    told = json.loads(done.stdout)
    (verdict,) = told.pop("gate")
    assert verdict["failed"]
    assert verdict["says"].endswith(" (fails if 'nDCG@3 < 0').")
    assert told == {"name": name, "index": f"{name}-v0002", "before": f"{name}-v0002", "changed": False}


def test_an_encoder_that_is_not_here_is_told_before_anything_is_made(client, name, data):
    sentence, code = refused(
        run("retune", name, "--alpha", 1, "--gate", data.data, "--fail-if", "nDCG@3 < 0", "--encoder", "use-m")
    )
    assert sentence.startswith(f"Index {name} was built with encoder given, not use-m, ")
    assert code == 1
    assert list(versions.versions_of(client, name)) == [f"{name}-v0001"]


def test_a_dataset_of_other_documents_is_refused_before_anything_is_made(client, name, data):
    for identifier in list(data_ids(data)):
        client.delete(index=name, id=identifier)
    client.indices.refresh(index=name)
    done = run("retune", name, "--alpha", 1, "--gate", data.data, "--fail-if", "nDCG@3 < 0")
    relevant = len(data_ids(data))
    assert refused(done) == (
        f"The gate cannot be evaluated: none of the {relevant:,} relevant documents of {data.data} is in {name}-v0001. "
        "Use a dataset whose documents are in the index, with the same _id.",
        2,
    )
    assert versions.versions_of(client, name) == [f"{name}-v0001"]


def data_ids(data):
    """The documents that are relevant for any query."""
    rows = (data.data / "qrels" / "test.tsv").read_text().splitlines()[1:]
    return {row.split("\t")[1] for row in rows if int(row.split("\t")[2]) > 0}

"""A new version judged by a dataset before it goes live, and kept from it where it is worse."""

import json
import re

import pytest
from given_data import Made, run, write_lines
from shifted_index import printed, refused

from langshift.evaluate.compare.gate import Gate
from langshift.evaluate.measures import DEFAULT_MEASURES
from langshift.plugin import versions
from langshift.retrieval.calibration.stored import store_calibration

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
    assert (columns.split()[0], columns.split()[-1]) == ("measure", "change")
    names = [*DEFAULT_MEASURES, "nDCG@3", "R@3"]
    assert [row.split()[0] for row in rows[: len(names)]] == names
    assert rows[7].split()[2:] == ["1.0000", f"+{rows[7].split()[3][1:]}"]
    conditions = rows[rows.index("Conditions") + 1 :]
    assert (
        conditions[0]
        == "- passes: none of the verdict's 4 conditions shows a loss, 4 of them with too few questions to tell."
    )
    assert conditions[1].startswith("- passes: nDCG@3 changes by +.")
    assert conditions[4].startswith("Too few questions to tell: over 6 questions, nDCG@20 goes from .")
    assert [conditions[place] for place in (2, 3, 5, 6)] == [
        "- passes: R@3 for queries in en is 1.0000.",
        "",
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
    assert (told.pop("verdict")["kind"], told.pop("loss_accepted")) == ("too few", False)
    assert told == {"name": name, "index": f"{name}-v0002", "before": f"{name}-v0002", "changed": False}


def many_questions(data):
    """Each question ten times, so that a loss is more than chance."""
    path = data.data / "queries.jsonl"
    rows = [json.loads(row) | {"article": f"{number}"} for number, row in enumerate(path.read_text().splitlines() * 10)]
    judged = (data.data / "qrels" / "test.tsv").read_text().splitlines()
    write_lines(path, [row | {"_id": f"{row['_id']}-{row['article']}"} for row in rows])
    pairs = [line.split("\t") for line in judged[1:]]
    lines = [f"{row['_id']}-{row['article']}\t{d}\t{g}" for row in rows for query, d, g in pairs if query == row["_id"]]
    (data.data / "qrels" / "test.tsv").write_text("\n".join([judged[0], *lines, ""]))


def test_the_verdicts_own_conditions_refuse_a_loss_unless_it_is_accepted(name, data):
    many_questions(data)
    told = printed(run("retune", name, "--alpha", 1, "--gate", data.data, "--json"))
    assert (told["gate"], told["verdict"]["kind"], told["loss_accepted"]) == ([], "shift", False)
    worse = ("retune", name, "--alpha", 0, "--gate", data.data)
    done = run(*worse)
    sentence, code = refused(done)
    lost = re.compile(
        f"{name} still points to {name}-v0002, and the new version was removed: nDCG@20 falls from 1.000 to (\\.\\d+) "
        r"\(corrected p below .001\)\. To take the new version all the same, add --accept-loss\."
    ).fullmatch(sentence)
    assert (code, bool(lost)) == (1, True)
    assert f"- FAILS: nDCG@20 falls from 1.000 to {lost[1]} (corrected p below .001)." in done.stdout.splitlines()
    verdict = done.stdout.splitlines()[-1]
    assert verdict.startswith(
        f"Keep {name}-v0002 rather than {name}-v0003: over 60 questions, nDCG@20 falls from 1.000 to {lost[1]}; chance "
    )
    # What is accepted is the verdict's, not what --fail-if names.
    accepted = (*worse, "--accept-loss")
    assert refused(run(*accepted, "--fail-if", "nDCG@20 < 0"))[1] == 1
    done = run(*accepted)
    assert (done.exit_code, done.stderr) == (0, "")
    assert f"- accepted: nDCG@20 falls from 1.000 to {lost[1]} (corrected p below .001)." in done.stdout.splitlines()


def test_without_a_gate_it_says_that_nothing_was_measured(name):
    done = run("retune", name, "--alpha", 1)
    assert (done.exit_code, done.stderr) == (
        0,
        "Nothing was measured: --gate DATASET replays judged queries on both versions before the new one goes live, "
        "and keeps the old one if anything is lost.\n",
    )


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


def test_both_versions_are_searched_as_calibration_chose_for_the_live_one(client, name, data):
    live = versions.live(client, name)
    store_calibration(
        client, live, {"spread": 0.1, "strength": 0.5, "mode": "anchored", "lexical_weight": None, "rerank": {}}
    )
    assert run("retune", name, "--alpha", 1).exit_code == 0
    found = Gate(data.data).judge(client, f"{name}-v0001", f"{name}-v0002")
    assert (found.before.setting.mode, found.after.setting.mode) == ("anchored", "anchored")

"""``langshift demo`` with other names for its indices: on this cluster somebody may keep theirs."""

import json
import uuid
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from langshift import parameters
from langshift.commands.serve import demo
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.evaluate.demo import PREFERENCE
from langshift.plugin.inventory import drop_all

WAYS = ("plain", "shifted", "preferred", "both")


@contextmanager
def demo_names(client):
    """The names of the demo's three indices meanwhile; all are removed afterwards."""
    own = f"langshift-test-{uuid.uuid4().hex[:8]}"
    names = (f"{own}-plain", f"{own}-shifted", f"{own}-both")
    with pytest.MonkeyPatch.context() as patch:
        for module in ("evaluate.demo", "commands.serve"):
            for constant, name in zip(("PLAIN", "SHIFTED", "BOTH"), names, strict=True):
                patch.setattr(f"langshift.{module}.{constant}", name)
        yield names
    for name in names:
        drop_all(client, name)


def demo_document(names, dataset, output):
    """The JSON document of a demo of a dataset, after checking that it holds together and is what the files hold."""
    plain, shifted, both = names
    said = CliRunner().invoke(demo, ["--json", "--output", str(output)], catch_exceptions=False)
    document = json.loads(said.stdout)
    assert set(document) == {*WAYS, "own_language_share", "words", "example", "report", "seconds"}
    assert document["report"] == str(output / "report.html")
    assert f"<td>{plain}</td>" in (output / "report.html").read_text(encoding="utf-8")
    advice = LanguageVectors.load(shipped(parameters.default_encoder())).both_sides
    indices, alphas = (plain, shifted, shifted, both), (0.0, 1.0, 1.0, advice.alpha)
    for name, index, alpha in zip(WAYS, indices, alphas, strict=True):
        result = document[name]
        assert result == json.loads((output / name / "result.json").read_text())
        assert (result["index"], result["fingerprint"]["alpha"]) == (index, alpha)
        assert (result["errors"], result["warnings"]) == (0, [])
        assert result["queries"]["asked"] == len(dataset.queries)
        assert set(result["by_language"]) == {query.language for query in dataset.queries}
        assert 0 < document["own_language_share"][name] < 1
    # The shift is there to be seen: the two indices answer differently.
    assert document["plain"]["measures"] != document["shifted"]["measures"]
    # The preference is what differs between the second and the third, and it gives back answers in the own language.
    assert [document[name]["setting"]["preference"] for name in WAYS] == [0, 0, PREFERENCE, advice.preference]
    own = [document[name]["measures"]["SLR@20"] for name in WAYS]
    assert own[2] >= own[1]
    both_sides = document["both"]
    assert both_sides["fingerprint"]["gamma"] == advice.gamma
    assert both_sides["shift_queries"] == advice.shift_queries
    assert document["words"][0].startswith("Of the answers in other languages, questions find ")
    assert document["words"][1].startswith(f"Over all {len(dataset.queries):,} questions, nDCG@20 ")
    example = document["example"]
    assert example["query"]["language"] == "en"
    assert [hit["id"] for hit in example["before"]] != [hit["id"] for hit in example["after"]]
    assert any(hit["relevant"] for hit in example["before"] + example["after"])
    return document

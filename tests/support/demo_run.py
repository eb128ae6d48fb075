"""``langshift demo`` with other names for its indices: on this cluster somebody may keep theirs."""

import json
import uuid
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from langshift import parameters
from langshift.commands.demo import demo
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.plugin.inventory import drop_all

WAYS = ("plain", "paper", "shifted")


@contextmanager
def demo_names(client):
    """The names of the demo's three indices meanwhile; all are removed afterwards."""
    own = f"langshift-test-{uuid.uuid4().hex[:8]}"
    names = (f"{own}-plain", f"{own}-paper", f"{own}-shifted")
    with pytest.MonkeyPatch.context() as patch:
        for module in ("evaluate.demo", "commands.demo"):
            for constant, name in zip(("PLAIN", "PAPER", "SHIFTED"), names, strict=True):
                patch.setattr(f"langshift.{module}.{constant}", name)
        yield names
    for name in names:
        drop_all(client, name)


def demo_document(names, dataset, output):
    """The JSON document of a demo of a dataset, after checking that it holds together and is what the files hold."""
    plain, paper, shifted = names
    said = CliRunner().invoke(demo, ["--json", "--output", str(output)], catch_exceptions=False)
    document = json.loads(said.stdout)
    assert set(document) == {*WAYS, "words", "example", "report", "seconds"}
    assert document["report"] == str(output / "report.html")
    assert f"<td>{plain}</td>" in (output / "report.html").read_text(encoding="utf-8")
    known = LanguageVectors.load(shipped(parameters.default_encoder()))
    # Every topic is there in every language.
    recommended = (known.recommendation.alpha, known.recommendation.gamma, known.recommended_own(1))
    scales = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), recommended
    for name, index, made in zip(WAYS, (plain, paper, shifted), scales, strict=True):
        result = document[name]
        assert result == json.loads((output / name / "result.json").read_text())
        fingerprint = result["fingerprint"]
        assert (result["index"], tuple(fingerprint[scale] for scale in ("alpha", "gamma", "own"))) == (index, made)
        assert (result["errors"], result["warnings"]) == (0, [])
        assert result["queries"]["asked"] == len(dataset.queries)
        assert set(result["by_language"]) == {query.language for query in dataset.queries}
        most = result["most_shown"]["MostShown@20"]
        assert most["shown"] == result["measures"]["MostShown@20"] >= most["fair"] == pytest.approx(1 / 12)
    # The shift is there to be seen: the indices answer differently, unless the paper's shift is what is recommended.
    plain, paper, shifted = (document[name]["measures"] for name in WAYS[:3])
    assert plain != paper
    assert (paper != shifted) == (scales[1] != scales[2])
    assert document["words"][0].startswith("The first hit is the right page for ")
    assert document["words"][1].startswith("Question by question, nDCG@20 is better for ")
    example = document["example"]
    assert example["query"]["language"] == "en"
    assert [hit["id"] for hit in example["before"]] != [hit["id"] for hit in example["after"]]
    assert any(hit["relevant"] for hit in example["before"] + example["after"])
    return document

"""``langshift demo`` with other names for its indices: on this cluster somebody may keep theirs."""

import json
import uuid
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from langshift.commands.serve import demo
from langshift.plugin.inventory import drop_all


@contextmanager
def demo_names(client):
    """The names of the plain and of the shifted index meanwhile; both are removed afterwards."""
    own = f"langshift-test-{uuid.uuid4().hex[:8]}"
    names = (f"{own}-plain", f"{own}-shifted")
    with pytest.MonkeyPatch.context() as patch:
        for module in ("evaluate.demo", "commands.serve"):
            patch.setattr(f"langshift.{module}.PLAIN", names[0])
            patch.setattr(f"langshift.{module}.SHIFTED", names[1])
        yield names
    for name in names:
        drop_all(client, name)


def demo_document(names, dataset, output):
    """The JSON document of a demo of a dataset, after checking that it holds together and is what the files hold."""
    plain, shifted = names
    said = CliRunner().invoke(demo, ["--json", "--output", str(output)], catch_exceptions=False)
    document = json.loads(said.stdout)
    assert set(document) == {"plain", "shifted", "own_language_share", "words", "example", "report", "seconds"}
    assert document["report"] == str(output / "report.html")
    assert f"<td>{plain}</td>" in (output / "report.html").read_text(encoding="utf-8")
    for name, index, alpha in (("plain", plain, 0.0), ("shifted", shifted, 1.0)):
        result = document[name]
        assert result == json.loads((output / name / "result.json").read_text())
        assert (result["index"], result["fingerprint"]["alpha"]) == (index, alpha)
        assert (result["errors"], result["warnings"]) == (0, [])
        assert result["queries"]["asked"] == len(dataset.queries)
        assert set(result["by_language"]) == {query.language for query in dataset.queries}
        assert 0 < document["own_language_share"][name] < 1
    # The shift is there to be seen: the two indices answer differently.
    assert document["plain"]["measures"] != document["shifted"]["measures"]
    assert document["words"][0].startswith(f"Over all {len(dataset.queries):,} questions, nDCG@20 ")
    example = document["example"]
    assert example["query"]["language"] == "en"
    assert [hit["id"] for hit in example["before"]] != [hit["id"] for hit in example["after"]]
    assert any(hit["relevant"] for hit in example["before"] + example["after"])
    return document

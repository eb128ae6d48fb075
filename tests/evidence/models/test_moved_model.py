"""An index by a model of sentence-transformers that lies elsewhere when the index is searched."""

import json

import pytest
from command_line import langshift, refusal
from tiny_model import require_transformers, save_tiny_model

require_transformers()
pytestmark = pytest.mark.xdist_group("torch")


def test_a_model_that_has_moved_is_named_and_another_is_refused(client, cluster_env, index_name, tmp_path):
    here = save_tiny_model(tmp_path / "here")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"_id": f"d{row}", "text": f"word {'abc' * row}"}) + "\n" for row in range(9)))
    ingest = ("ingest", corpus, "--index", index_name, "--if-exists", "append", "--alpha", "0", "--encoder")
    done = langshift(*ingest, f"st:{here}", url=cluster_env)
    assert done.returncode == 0, done.stderr
    there = here.rename(tmp_path / "there")

    def search(*more):
        return langshift("search", index_name, "word abcabc", "--size", "1", "--json", *more, url=cluster_env)

    assert str(here) in refusal(search())
    found = search("--encoder", f"st:{there}")
    assert found.returncode == 0, found.stderr
    (best,) = json.loads(found.stdout)["hits"]
    assert best["id"] == "d2"
    # It is the same encoder for adding documents, too.
    assert langshift(*ingest, f"st:{there}", url=cluster_env).returncode == 0
    assert client.count(index=index_name)["count"] == 9
    other = save_tiny_model(tmp_path / "other", seed=1)
    assert refusal(search("--encoder", f"st:{other}")).startswith(
        f"Index {index_name} was built with encoder st:{here}"
    )
    assert refusal(search("--encoder", "use-m")).startswith(
        f"Index {index_name} was built with encoder st:{here}, not use-m, revision "
    )

"""`langshift vectors methods`: what it writes, for which commands."""

import json

import numpy as np
import pytest
from command_line import langshift, refusal

from langshift.debias.vectors import LanguageVectors
from langshift_lab.methods.vectors import MethodVectors


@pytest.fixture
def folder(tmp_path):
    """Given vectors in three languages."""
    made, random = tmp_path / "pairs", np.random.default_rng(1)
    made.mkdir()
    shared = random.standard_normal((60, 8))
    for tag in ("de", "en", "th"):
        np.save(made / f"{tag}.npy", (shared + random.standard_normal((60, 8))).astype(np.float32))
    return made


def test_the_file_is_that_of_vectors_fit_and_more(folder, tmp_path):
    given = ("--pairs", folder, "--encoder", "given", "--pivot", "en,de")
    done = langshift("vectors", "methods", *given, "--methods", "lir,affine", "--output", tmp_path / "more", "--json")
    langshift("vectors", "fit", *given, "--output", tmp_path / "bare")
    assert [document["pivot"] for document in json.loads(done.stdout)["files"]] == ["en", "de"]
    for pivot, others in (("en", {"de", "th"}), ("de", {"en", "th"})):
        name = f"{pivot}.safetensors"
        made = MethodVectors.load(tmp_path / "more" / name)
        assert made.hash == LanguageVectors.load(tmp_path / "bare" / name).hash
        assert (set(made.means), set(made.directions), set(made.maps)) == (
            {"de", "en", "th"},
            {"de", "en", "th"},
            others,
        )
        assert MethodVectors.load(tmp_path / "bare" / name).means == {}


def test_a_method_that_there_is_not(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    done = langshift(
        "vectors", "methods", "--pairs", folder, "--encoder", "given", "--output", output, "--methods", "shift,mean"
    )
    assert refusal(done) == "The method 'mean' cannot be fitted; choose one of shift, centering, lir, affine."
    assert not output.exists()

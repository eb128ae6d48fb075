"""``langshift vectors fit`` and ``show``."""

import json
import subprocess
from dataclasses import asdict, replace

import numpy as np
import pytest
from command_line import LANGSHIFT, langshift, refusal

from langshift.debias.vectors import LanguageVectors, Recommendation


@pytest.fixture
def folder(tmp_path):
    """Given vectors in three languages; five rows have no Thai."""
    random = np.random.default_rng(0)
    said = random.standard_normal((60, 8))
    path = tmp_path / "pairs"
    path.mkdir()
    for tag in ("de", "en", "th"):
        rows = (said + random.standard_normal(8) + 0.3 * random.standard_normal((60, 8))).astype(np.float32)
        if tag == "th":
            rows[10:15] = np.nan
        np.save(path / f"{tag}.npy", rows)
    return path


def fit(folder, output, *more):
    return langshift("vectors", "fit", "--pairs", folder, "--encoder", "given", "--output", output, *more)


def test_fitting_writes_a_file_and_shows_it(folder, tmp_path):
    output = tmp_path / "new" / "v.safetensors"
    done = fit(folder, output)
    vectors = LanguageVectors.load(output)
    norms = {tag: float(np.linalg.norm(vector)) for tag, vector in vectors.vectors.items()}
    assert [line.rstrip() for line in done.stdout.splitlines()] == [
        f"{output}: 2 language vectors towards en, hash {vectors.hash}",
        "encoder given, 8 dimensions; fitted on pairs",
        "3 directions of queries, 3 preference vectors; alpha 1 (default: not tuned)",
        "language  pairs  missing   norm",
        f"de           60        0  {norms['de']:.3f}",
        f"th           55        5  {norms['th']:.3f}",
    ]
    assert done.stderr == f"Use it: langshift ingest CORPUS --index NAME --encoder given --vectors {output}\n"
    assert langshift("vectors", "check", output).stdout.startswith(f"{done.stdout}\nEvidence from pairs\n")


def test_several_pivots_are_written_to_a_folder(folder, tmp_path):
    output = tmp_path / "made"
    done = fit(folder, output, "--pivot", "en,deu", "--json")
    documents = json.loads(done.stdout)["files"]
    assert [document["pivot"] for document in documents] == ["en", "de"]
    assert [document["file"] for document in documents] == [str(output / f"{tag}.safetensors") for tag in ("en", "de")]
    assert sorted(path.name for path in output.iterdir()) == ["de.safetensors", "en.safetensors"]
    for document in documents:
        vectors = LanguageVectors.load(output / f"{document['pivot']}.safetensors")
        assert document["hash"] == vectors.hash
        assert document["languages"].keys() == vectors.vectors.keys()
    assert langshift("vectors", "check", output / "en.safetensors").stdout.splitlines()[2] == (
        "3 directions of queries, 3 preference vectors; alpha 1 (default: not tuned)"
    )


def test_the_pivot_need_not_be_among_the_languages(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    assert json.loads(fit(folder, output, "--languages", "tha", "--json").stdout)["languages"].keys() == {"th"}


def test_what_is_recommended_is_shown(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    fit(folder, output)
    made = LanguageVectors.load(output)
    advice = Recommendation(0.95, {"th": 0.25}, gamma=0.97)
    replace(made, recommendation=advice, query_vectors={"de": made.vectors["de"]}).with_rank(2).save(output)
    shown = langshift("vectors", "check", output).stdout.partition("\n\nEvidence")[0]
    lines = [line.rstrip() for line in shown.splitlines()]
    norms = {tag: f"{np.linalg.norm(vector):.3f}" for tag, vector in made.vectors.items()}
    assert lines[2:] == [
        "2 directions of queries, 3 preference vectors",
        "recommended: alpha 0.95, gamma 0.97",
        "language  pairs  missing   norm  query norm  alpha",
        f"de           60        0  {norms['de']}       {norms['de']}",
        f"th           55        5  {norms['th']}               0.25",
    ]
    document = json.loads(langshift("vectors", "check", output, "--json").stdout)
    assert document["recommendation"] == asdict(advice)
    assert document["directions"] == 2
    thai = {name: document["languages"]["th"][name] for name in ("pairs", "missing", "norm", "alpha", "verdict")}
    norm = pytest.approx(float(norms["th"]), abs=1e-3)
    assert thai == {"pairs": 55, "missing": 5, "norm": norm, "alpha": 0.25, "verdict": thai["verdict"]}
    nothing = {"recommendation": Recommendation(0.0), "query_directions": None, "own_vectors": {}}
    replace(made, **nothing, pairs={"de": 0, "th": 0}, evidence={}).save(output)
    lines = [line.rstrip() for line in langshift("vectors", "check", output).stdout.splitlines()]
    assert lines[2:4] == ["0 directions of queries, 0 preference vectors", "recommended: alpha 0"]
    assert lines[4].split() == ["language", "norm"]


def test_so_many_directions_are_fitted_as_are_asked_for(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    assert json.loads(fit(folder, output, "--directions", 2, "--json").stdout)["directions"] == 2
    assert LanguageVectors.load(output).query_directions.shape == (2, 8)
    assert "2 directions of queries" in langshift("vectors", "check", output).stdout.splitlines()[2]
    assert refusal(fit(folder, output, "--directions", 4)) == (
        "--directions 4 is too many: 3 languages and 8 dimensions have 3 at most."
    )
    for tag in ("de", "en", "th"):
        np.save(folder / f"{tag}.npy", np.load(folder / f"{tag}.npy")[:, :2])
    assert refusal(fit(folder, output, "--directions", 3)) == (
        "--directions 3 is too many: 3 languages and 2 dimensions have 2 at most."
    )


def test_languages_of_one_mean_have_one_direction(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    for tag, scale in (("de", np.float32(2)), ("th", np.float32(3))):
        np.save(folder / f"{tag}.npy", scale * np.load(folder / "en.npy"))
    assert json.loads(fit(folder, output, "--json").stdout)["directions"] == 1
    assert refusal(fit(folder, output, "--directions", 2)) == (
        "2 directions were asked for, but the means of queries in 3 languages and 8 dimensions span only 1: ask for no "
        "more, or fit more languages, with texts that differ."
    )


def test_places_that_cannot_be_written_are_refused_before_the_work(folder, tmp_path):
    assert refusal(fit(folder, tmp_path)) == (
        f"{tmp_path} is a folder: --output takes the name of a file, such as mine.safetensors."
    )
    notes = tmp_path / "notes.txt"
    notes.write_text("something")
    assert refusal(fit(folder, notes)) == f"{notes} exists and does not contain language vectors: name another file."
    assert refusal(fit(folder, notes, "--pivot", "en,de")) == (
        f"{notes} is a file: with several pivots, --output takes the name of a folder."
    )
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "de.safetensors").write_text("something")
    assert refusal(fit(folder, tmp_path / "made", "--pivot", "en,de")) == (
        f"{tmp_path / 'made' / 'de.safetensors'} exists and does not contain language vectors: name another file."
    )
    assert refusal(fit(folder, notes / "v.safetensors")) == (
        f"{notes / 'v.safetensors'} cannot be written: {notes} is not a writable folder."
    )


def test_texts_need_an_encoder_and_given_vectors_none(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    assert refusal(langshift("vectors", "fit", "--pairs", folder, "--output", output)) == (
        f"{folder} contains vectors, which use-m cannot encode; fit them with --encoder given."
    )
    assert refusal(fit(folder, output, "--documents", "ids")) == (
        "--documents marks where joined passages end: add --join-lines."
    )
    assert not output.exists()


def test_what_a_terminal_would_take_for_a_command_is_not_shown(folder, tmp_path):
    output = tmp_path / "v.safetensors"
    fit(folder, output)
    replace(LanguageVectors.load(output), source="\x1b[2Ja\nb").save(output)
    assert langshift("vectors", "check", output).stdout.splitlines()[1] == (
        r"encoder given, 8 dimensions; fitted on \x1b[2Ja\nb"
    )
    assert "\nEvidence from \\x1b[2Ja\\nb\n" in langshift("vectors", "check", output).stdout


def test_a_disk_that_is_full_leaves_nothing_and_is_told_with_the_file(folder, tmp_path):
    output = tmp_path / "made" / "v.safetensors"
    # A file of over 512 bytes is refused while it is written, as on a full disk.
    limited = 'ulimit -f 1 && exec "$@"'
    command = [LANGSHIFT, "vectors", "fit", "--pairs", folder, "--encoder", "given", "--output", output]
    done = subprocess.run(
        ["/bin/sh", "-c", limited, "sh", *map(str, command)], capture_output=True, text=True, check=False, timeout=60
    )
    assert refusal(done) == f"File too large: {output}."
    assert list(output.parent.iterdir()) == []

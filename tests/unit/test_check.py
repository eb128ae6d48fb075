"""``langshift vectors check``: a verdict on every language vector, and why."""

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import langshift, refusal
from parallel_source import Vectors, given_encoder

from langshift.debias.fitting.alignment import Alignment
from langshift.debias.fitting.fit import fit
from langshift.debias.fitting.reliability import (
    HALVES_ENOUGH,
    HALVES_LEAST,
    LanguageEvidence,
    Reliability,
    assess_vectors,
)
from langshift.debias.vectors import LanguageVectors

SURE = Reliability(0.9, 0.88, 0.92, 0.03, 0.97, 300, ((1, 0.2), (1000, 0.98)))
ALIGNED = Alignment(1000, 2.4, True, 0, ())
EVIDENCE = LanguageEvidence(1000, 0, 1.0, 1.0, SURE, ALIGNED)
DIMENSION = 64


def verdict(evidence, norm=0.15, fitted=None):
    vector = np.zeros(8, np.float32)
    vector[0] = norm
    held = {} if evidence is None else {"th": evidence.to_json()}
    vectors = LanguageVectors("en", {"th": vector}, {"th": 1000}, "toy", "1", "", 8, False, "made up", evidence=held)
    if fitted is not None:
        fitted = replace(vectors, vectors={"th": np.array([*fitted, 0, 0, 0, 0, 0, 0], np.float32)})
    (judged,) = assess_vectors(vectors, fitted)
    return judged.verdict, judged.reason


def test_a_vector_on_which_the_pairs_agree_is_for_use():
    assert verdict(EVIDENCE) == ("use", "two halves of the pairs agree on it")


@pytest.mark.parametrize("norm", [1.0, 30.0])
def test_a_vector_that_is_short_beside_the_embeddings_does_nothing_whatever_their_norm(norm):
    noisy = replace(EVIDENCE, norm=norm, reliability=replace(SURE, split_half=0.1))
    assert verdict(noisy, norm=0.009 * norm) == (
        "use", "it is only 0.9% as long as the embeddings and changes almost nothing"
    )  # fmt: skip
    assert verdict(noisy, norm=0.011 * norm)[0] == "do not use"


@pytest.mark.parametrize(
    ("halves", "enough", "word", "reason"),
    [
        (HALVES_LEAST - 0.01, 9000, "do not use", "hardly agree (0.32); about 9,000 pairs would be enough"),
        (0.0, None, "do not use", "hardly agree (0.00); no number of such pairs would be enough"),
        (HALVES_LEAST + 0.01, 4000, "use with care", "agree only a little (0.34); about 4,000 pairs would be enough"),
        (HALVES_ENOUGH - 0.01, 1100, "use with care", "agree only a little (0.81); about 1,100 pairs would be enough"),
        (HALVES_ENOUGH + 0.01, 999, "use", "agree on it"),
    ],
)
def test_halves_of_the_pairs_must_agree(halves, enough, word, reason):
    unsure = replace(EVIDENCE, reliability=replace(SURE, split_half=halves, enough=enough))
    assert verdict(unsure) == (word, f"two halves of the pairs {reason}")


def test_a_few_pairs_are_too_few():
    assert verdict(replace(EVIDENCE, pairs=9)) == ("do not use", "9 pairs are too few for a verdict; fit on more")
    assert verdict(replace(EVIDENCE, pairs=10))[0] == "use"


def test_misaligned_pairs_ask_for_care():
    assert verdict(replace(EVIDENCE, alignment=replace(ALIGNED, count=50)))[0] == "use"
    assert verdict(replace(EVIDENCE, alignment=replace(ALIGNED, count=70))) == (
        "use with care",
        "7% of the pairs look misaligned, which the shift tolerates, but the method affine and tuning do not",
    )
    assert verdict(replace(EVIDENCE, alignment=Alignment(1000, 0.4, False, 0, ()))) == (
        "do not use",
        "translations are no nearer than other texts: the encoder toy cannot read this language, or the pairs are not "
        "translations",
    )
    assert verdict(replace(EVIDENCE, alignment=Alignment(1000, 0.9, False, 0, ()))) == (
        "use with care",
        "the encoder toy hardly distinguishes texts of this language, or they are not translations: "
        "misaligned pairs cannot be detected",
    )
    # Too few pairs to compare are no fault of the encoder.
    assert verdict(replace(EVIDENCE, alignment=Alignment(0, 0.0, False, 0, ())))[0] == "use"


def test_other_text_may_point_elsewhere():
    for fitted, word, reason in (
        ((1, 0.1), "use", "two halves of the pairs agree on it"),
        (
            (1, 0.8),
            "use with care",
            "the given text points slightly elsewhere (cosine 0.78); fit on similar text",
        ),
        ((1, 2), "do not use", "the given text points elsewhere (cosine 0.45); fit on similar text"),
    ):
        assert verdict(EVIDENCE, fitted=fitted) == (word, reason)


def test_all_doubts_are_told_together():
    doubtful = LanguageEvidence(1000, 0, 1.0, 1.0, replace(SURE, split_half=0.5), replace(ALIGNED, count=500))
    assert verdict(doubtful) == (
        "use with care",
        "two halves of the pairs agree only a little (0.50); about 300 pairs would be enough; "
        "50% of the pairs look misaligned, which the shift tolerates, but the method affine and tuning do not",
    )


def test_without_evidence_there_is_no_verdict():
    assert verdict(None) == (None, "there is no evidence: give parallel text in this language with --pairs")


@pytest.fixture(scope="module")
def sides():
    """Given vectors: German is well fitted, Thai noise, Russian moved by one row in a part, Japanese hardly known."""
    random = np.random.default_rng(0)
    said = random.standard_normal((600, DIMENSION))
    offset = random.standard_normal((4, DIMENSION))
    noise = random.standard_normal((4, 600, DIMENSION))
    russian = 0.5 * offset[2] + 0.9 * said + 0.4 * noise[2]
    russian[100:180] = russian[101:181]
    made = {
        "en": said,
        "de": 0.5 * offset[0] + 0.9 * said + 0.4 * noise[0],
        "th": 0.012 * offset[1] + 0.9 * said + 0.4 * noise[1],
        "ru": russian,
        "ja": 0.5 * offset[3] + 0.1 * said + noise[3],
    }
    return {tag: rows.astype(np.float32) for tag, rows in made.items()}


@pytest.fixture(scope="module")
def fitted(sides, tmp_path_factory):
    """A file of vectors fitted on them all, with the evidence of that."""
    folder = tmp_path_factory.mktemp("fitted") / "pairs"
    folder.mkdir()
    for tag, rows in sides.items():
        np.save(folder / f"{tag}.npy", rows)
    file = folder.with_name("v.safetensors")
    done = langshift("vectors", "fit", "--pairs", folder, "--encoder", "given", "--output", file)
    assert done.returncode == 0, done
    return file


@pytest.fixture
def folder(sides, tmp_path):
    path = tmp_path / "pairs"
    path.mkdir()
    for tag, rows in sides.items():
        np.save(path / f"{tag}.npy", rows)
    return path


def test_a_file_is_judged_by_what_was_gathered_when_it_was_made(fitted):
    done = langshift("vectors", "check", fitted)
    assert (done.returncode, done.stderr) == (
        0, "The first 10 pairs of each language are listed; --json contains the worst 50 of each.\n"
    )  # fmt: skip
    about, _, verdicts = done.stdout.partition("\n\nEvidence from pairs\n")
    assert about.splitlines()[0].startswith(f"{fitted}: 4 language vectors towards en, hash ")
    assert "4 directions of queries" in about.splitlines()[2]
    head, *rows = verdicts.splitlines()
    assert head.split() == ["language", "pairs", "norm", "halves", "needed", "suspect", "verdict"]
    words = {row.split()[0]: " ".join(row.split()[7:]) for row in rows[:4]}
    assert words == {"de": "use", "ja": "do not use", "ru": "use with care", "th": "do not use"}
    assert rows[4] == (
        "ja: translations are no nearer than other texts: the encoder given cannot read this language, or the pairs "
        "are not translations."
    )
    assert rows[5].startswith("ru: 1")
    assert rows[5].endswith(
        "% of the pairs look misaligned, which the shift tolerates, but the method affine and tuning do not."
    )
    assert rows[6].startswith("th: two halves of the pairs hardly agree (")
    assert rows[8].rstrip() == "Pairs that look misaligned"
    assert rows[9].split() == ["language", "pair", "fits", "better", "margin"]
    assert len(rows) == 20
    assert {row.split()[0] for row in rows[10:]} == {"ru"}
    for row in rows[10:]:
        place, fits = int(row.split()[2]), int(row.split()[4])
        assert 101 <= place <= 180
        assert fits == place + 1


def test_a_file_is_judged_on_other_text(fitted, tmp_path, sides):
    other = tmp_path / "other"
    other.mkdir()
    for tag in ("de", "en", "th"):
        np.save(other / f"{tag}.npy", sides[tag][:300])
    document = json.loads(langshift("vectors", "check", fitted, "--pairs", other, "--json").stdout)
    assert document["evidence_of"] == str(other)
    german, thai, russian = (document["languages"][tag] for tag in ("de", "th", "ru"))
    assert (german["verdict"], russian["verdict"]) == ("use", None)
    assert german["agreement"] > 0.98 > thai["agreement"]
    assert german["evidence"]["pairs"] == 300
    judged = {"agreement", "evidence", "norm", "reason", "share", "verdict"}
    assert judged < german.keys()
    assert (russian["agreement"], russian["evidence"]) == (None, None)
    table = langshift("vectors", "check", fitted, "--pairs", other).stdout
    assert "cosine" in table
    assert "ru: there is no evidence: give parallel text in this language with --pairs." in table


def test_what_cannot_be_judged_is_refused(folder, tmp_path, sides):
    assert refusal(langshift("vectors", "check", "none.safetensors")) == (
        "The language-vector file none.safetensors does not exist; create one with `langshift vectors fit`."
    )
    file = tmp_path / "v.safetensors"
    made = fit(Vectors({tag: sides[tag] for tag in ("de", "en")}), ["en"], given_encoder())["en"]
    replace(made, evidence={}).save(file)
    done = langshift("vectors", "check", file)
    assert (done.returncode, done.stdout.splitlines()[3].split()) == (0, ["language", "pairs", "norm"])
    assert done.stderr == (
        f"{file} contains no evidence of how it was fitted: for a verdict, give parallel text with --pairs.\n"
    )
    replace(made, evidence={"de": {"pairs": 3}}).save(file)
    assert refusal(langshift("vectors", "check", file)) == (
        f"{file} contains damaged evidence: give parallel text with --pairs to gather it again."
    )
    assert refusal(langshift("vectors", "check", file, "--join-lines", "3")) == (
        "--join-lines and --documents only apply to --pairs: give --pairs too."
    )
    assert refusal(langshift("vectors", "check", file, "--documents", "ids", "--pairs", folder)) == (
        "--documents marks where joined passages end: add --join-lines."
    )
    (folder / "de.npy").unlink()
    assert refusal(langshift("vectors", "check", file, "--pairs", folder)) == (
        f"{folder} must contain the pivot en and another language of the vectors (de); it has en, ja, ru, th."
    )
    texts = tmp_path / "texts"
    texts.mkdir()
    for tag in ("de", "en"):
        (texts / f"{tag}.txt").write_text("1\n2\n")
    assert refusal(langshift("vectors", "check", file, "--pairs", texts, "--encoder", "use-m")) == (
        f"{file} contains vectors of {DIMENSION} dimensions, but use-m returns 512; use the encoder given."
    )
    made = fit(Vectors({tag: sides[tag][:, :-1] for tag in ("de", "en")}), ["en"], given_encoder())["en"]
    made.save(file)
    for tag in ("de", "en"):
        np.save(folder / f"{tag}.npy", sides[tag])
    assert refusal(langshift("vectors", "check", file, "--pairs", folder)) == (
        f"{file} contains vectors of {DIMENSION - 1} dimensions, but given returns {DIMENSION}; "
        "it is not the model that they were fitted with."
    )

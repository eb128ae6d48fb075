"""The shift in a real index: what is written, what its stamps take back, what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from advice import advised
from command_line import langshift, refusal
from stamps import stamp_of
from toy_encoder import ToyEncoder

from langshift.debias.debiaser import Debiaser, undo
from langshift.debias.detector import open_detector
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import FingerprintError, UsageError
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata
from langshift.plugin.stored_shift import StoredShift

TEXTS = {
    "en": "The sea rises and falls twice a day because the Moon pulls at it.",
    "de": "Das Meer steigt und fällt zweimal am Tag, weil der Mond an ihm zieht.",
    "th": "ทะเลขึ้นและลงวันละสองครั้งเพราะดวงจันทร์ดึงดูดน้ำ",
    "vi": "Biển dâng lên và hạ xuống hai lần một ngày vì Mặt Trăng hút nó.",
    "unclear": "Hotel Bar",
    "none": "123",
}
TAGS = ("de", "nl", "th")
APPEND = LoadOptions(if_exists="append")


@pytest.fixture(scope="module")
def detector():
    return open_detector()


@pytest.fixture(scope="module")
def known():
    """Vectors of 8 dimensions and norms of 3 to 5 for the toy encoder, with two directions of queries."""
    random = np.random.default_rng(5)

    return LanguageVectors(
        pivot="en",
        vectors={tag: (2 * random.standard_normal(8)).astype(np.float32) for tag in TAGS},
        pairs=dict.fromkeys(TAGS, 9),
        encoder="toy",
        revision="1",
        document_prefix="passage: ",
        dimension=8,
        normalised=False,
        source="made up",
        common={side: random.standard_normal(8).astype(np.float32) for side in ("documents", "queries")},
    ).with_rank(2)


@pytest.fixture
def file(known, tmp_path):
    """Writes the vectors, with other fields where they are given."""

    def write(**fields):
        path = tmp_path / "toy.safetensors"
        replace(known, **advised(fields)).save(path)
        return path

    return write


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    lines = [{"_id": name, "text": text} for name, text in TEXTS.items()]
    lines.append({"_id": "named", "text": TEXTS["en"], "language": "de-AT"})
    lines.append({"_id": "und", "text": TEXTS["de"], "language": "und"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def sources(client, index):
    found = client.search(index=index, body={"size": 50, "sort": ["_doc"]})["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in found}


def embedding(source):
    # Written with as many digits as tell one float32 from the next.
    return np.array(source["embedding"], np.float32).astype(np.float64)


def raw(norm):
    """The encoder's own vectors, by document."""
    texts = {**TEXTS, "named": TEXTS["en"], "und": TEXTS["de"]}
    made = ToyEncoder(norm).encode_documents(list(texts.values())).astype(np.float64)
    return dict(zip(texts, made, strict=True))


def rounding(norm):
    """A few units of float32's last place, for vectors of about this norm."""
    return 4 * np.finfo(np.float32).eps * (norm + 5)


@pytest.mark.parametrize("norm", [1, 7, 50])
def test_a_shift_with_scales_of_single_languages(client, index_name, corpus, detector, known, file, norm):
    making = build_pipeline(ToyEncoder(norm), detector, file(alpha=0.75, alphas={"th": 0.5, "nl": 0.0}), None)
    summary = load(client, corpus, index_name, making)
    assert (summary.shifted, summary.without_vector) == (3, {"vi": 1})
    assert summary.to_dict()["alphas"] == {"nl": 0.0, "th": 0.5}
    found, z = sources(client, index_name), raw(norm)
    moved = {"de": ("de", 0.75), "named": ("de", 0.75), "th": ("th", 0.5)}
    for name, source in found.items():
        if name not in moved:
            assert stamp_of(source) == {"vectors": known.hash, "alpha": 0.0}
            assert (embedding(source) == z[name]).all()
            continue
        language, alpha = moved[name]
        tag = {"tag": "de-AT"} if name == "named" else {}
        assert stamp_of(source) == {"vectors": known.hash, "alpha": alpha, "language": language, **tag}
        step = alpha * known.vectors[language].astype(np.float64)
        assert np.abs(embedding(source) - (z[name] - step)).max() <= rounding(norm)
        assert np.abs(embedding(source) + step - z[name]).max() <= rounding(norm)


def test_who_is_not_moved_only_for_its_scale_keeps_what_would_move_it(
    client, index_name, corpus, detector, known, file
):
    summary = load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, file(alphas={"th": 0.5}), 0.0))
    assert (summary.shifted, summary.without_vector) == (0, {})
    found = sources(client, index_name)
    plain = {"vectors": known.hash, "alpha": 0.0}
    assert stamp_of(found["th"]) == {**plain, "language": "th"}
    assert stamp_of(found["named"]) == {**plain, "language": "de", "tag": "de-AT"}
    assert [stamp_of(found[name]) for name in ("en", "vi", "und", "none")] == [plain] * 4
    kept = StoredShift.from_meta(metadata.read_metadata(client, f"{index_name}-v0001"))
    assert {tag: (vector == known.vectors[tag]).all() for tag, vector in kept.vectors.items()} == dict.fromkeys(
        TAGS, True
    )


@pytest.mark.parametrize("norm", [1, 7, 50])
def test_a_gamma_moves_every_document_whatever_its_language(client, index_name, corpus, detector, known, file, norm):
    making = build_pipeline(ToyEncoder(norm), detector, file(alpha=0.75, alphas={"th": 0.5}, gamma=0.97), None)
    summary = load(client, corpus, index_name, making)
    assert (summary.shifted, summary.without_vector) == (8, {"vi": 1})
    assert summary.to_dict()["gamma"] == 0.97
    found, z = sources(client, index_name), raw(norm)
    debias = Debiaser(known, 0.75, {"th": 0.5}, 0.97)
    keys = {"de": "de", "named": "de", "th": "th"}
    for name, source in found.items():
        key, stamp = keys.get(name), stamp_of(source)
        language = {"language": key} if key else {}
        tag = {"tag": "de-AT"} if name == "named" else {}
        alpha = debias.scale(key) if key else 0.0
        assert stamp == {"vectors": known.hash, "alpha": alpha, **language, "gamma": 0.97, **tag}
        (expected,) = debias.documents(z[name].astype(np.float32)[None], [key or "und"])
        assert np.abs(embedding(source) - expected).max() <= 1e-6 * norm
        back = undo(np.float32(embedding(source)), stamp, known)
        assert np.abs(back - z[name]).max() <= 1e-6 * max(norm, 5)
    kept = StoredShift.from_meta(metadata.read_metadata(client, f"{index_name}-v0001")).step
    assert (kept.mean == known.step.mean).all()
    assert (kept.directions == known.step.directions).all()


def test_other_scales_are_refused_with_both(client, index_name, corpus, detector, file):
    load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, file(alphas={"th": 0.5}), None))
    with pytest.raises(FingerprintError, match=r" was built with alphas \{'th': 0\.5\}, not \{\}: use the settings"):
        load(
            client,
            corpus,
            index_name,
            build_pipeline(ToyEncoder(), detector, file(alphas={"th": 0.5}), 1.0),
            options=APPEND,
        )


def test_a_gamma_that_cannot_be_used_is_refused_with_the_reason(detector, known, file, tmp_path):
    for gamma in (0.8, 0.99, 1.0):
        with pytest.raises(UsageError) as refused:
            build_pipeline(ToyEncoder(), detector, file(), None, gamma=gamma)
        assert str(refused.value) == (
            f"gamma {gamma:g} cannot be used: it must be 0, or 0.9 to 0.98. Values between find less than either, and "
            "what 1 takes out of a vector cannot be put back."
        )
    replace(known, query_directions=None).save(path := tmp_path / "plain.safetensors")
    with pytest.raises(UsageError, match="contain no directions of queries for a gamma: fit them anew with"):
        build_pipeline(ToyEncoder(), detector, path, None, gamma=0.97)


def test_the_command_line_says_what_was_done(cluster_env, index_name, corpus, tmp_path):
    def ingest(name, *more):
        return langshift("ingest", corpus, "--index", f"{index_name}-{name}", *more, url=cluster_env)

    path, use_m = tmp_path / "scaled.safetensors", LanguageVectors.load(shipped("use-m"))
    scales = {"alpha": 0.5, "alphas": {"th": 0.25}, "gamma": 0.97}
    replace(use_m, own_vectors={}, scatter=[], **advised(scales)).save(path)
    made = json.loads(ingest("plain", "--json").stdout)
    assert "alphas" not in made
    scaled = ingest("scaled", "--vectors", path)
    assert "8 of them shifted with alpha 0.5 (th 0.25), gamma 0.97." in scaled.stdout
    assert scaled.stderr.splitlines() == [
        "3 documents without a clear language: not shifted by language.",
        "No language vector for vi (1 document): not shifted by language.",
    ]
    # Beside an alpha that is given, gamma is 0 unless it is given, too.
    for more, told in (((), "alpha 0.75"), (("--gamma", 0.9), "alpha 0.75, gamma 0.9")):
        assert f"shifted with {told}." in ingest(f"given-{len(more)}", "--vectors", path, "--alpha", 0.75, *more).stdout
    assert refusal(ingest("other", "--gamma", 0.5)).startswith(
        "gamma 0.5 cannot be used: it must be 0, or 0.9 to 0.98."
    )

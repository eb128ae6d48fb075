"""Methods other than the plain shift in a real index: what is written, what its stamps take back, what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from advice import advised
from command_line import langshift, refusal
from toy_encoder import ToyEncoder

from langshift.debias.detector import open_detector
from langshift.debias.vectors import LanguageVectors, shipped
from langshift.errors import FingerprintError, UsageError
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.ingest.resume import LoadOptions
from langshift.plugin import metadata, version_writer, versions
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
    """Vectors of 8 dimensions and norms of 3 to 5 for the toy encoder, with maps that are far from the identity."""
    random = np.random.default_rng(5)

    def table(*shape):
        return {tag: random.standard_normal(shape).astype(np.float32) for tag in TAGS}

    return LanguageVectors(
        pivot="en",
        vectors={tag: 2 * vector for tag, vector in table(8).items()},
        pairs=dict.fromkeys(TAGS, 9),
        encoder="toy",
        revision="1",
        document_prefix="passage: ",
        dimension=8,
        normalised=False,
        source="made up",
        means=table(8) | {"en": np.zeros(8, np.float32)},
        maps={tag: np.eye(8, dtype=np.float32) + map_ / 10 for tag, map_ in table(8, 8).items()},
    )


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
            assert source["shift"] == {"vectors": known.hash, "alpha": 0.0}
            assert (embedding(source) == z[name]).all()
            continue
        language, alpha = moved[name]
        tag = {"tag": "de-AT"} if name == "named" else {}
        assert source["shift"] == {"vectors": known.hash, "alpha": alpha, "language": language, **tag}
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
    assert found["th"]["shift"] == {**plain, "language": "th"}
    assert found["named"]["shift"] == {**plain, "language": "de", "tag": "de-AT"}
    assert [found[name]["shift"] for name in ("en", "vi", "und", "none")] == [plain] * 4
    kept = StoredShift.from_meta(metadata.read_metadata(client, f"{index_name}-v0001"))
    assert {tag: (vector == known.vectors[tag]).all() for tag, vector in kept.vectors.items()} == dict.fromkeys(
        TAGS, True
    )


def test_a_soft_shift_keeps_languages_of_scale_0(client, index_name, corpus, detector, file):
    path = file(alpha=0.5, alphas={"de": 0.0, "nl": 0.0})
    summary = load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, path, None, soft=True))
    found, z = sources(client, index_name), raw(7)
    named = found["named"]
    assert named["shift"]["alpha"] == 0.0
    assert (named["shift"]["languages"], "alphas" in named["shift"]) == ({"de": 1.0}, False)
    assert (embedding(named) == z["named"]).all()
    # Moved by Thai alone, though that is not the likeliest.
    unclear = found["unclear"]["shift"]
    assert (set(unclear["languages"]), unclear["language"], unclear["alpha"]) == (set(TAGS), unclear["language"], 0.0)
    assert unclear["alphas"] == {"th": 0.5}
    moved = [name for name in found if not (embedding(found[name]) == z[name]).all()]
    assert summary.shifted >= len(moved) > 0
    assert {"th", "unclear"} <= set(moved)


@pytest.mark.parametrize("norm", [1, 7, 50])
def test_an_affine_map(client, index_name, corpus, detector, known, file, norm):
    # What a file recommends was measured for the shift: the map is not scaled by it.
    path = file(alpha=0.75, alphas={"th": 0.5})
    summary = load(client, corpus, index_name, build_pipeline(ToyEncoder(norm), detector, path, None, method="affine"))
    assert (summary.shifted, summary.without_vector) == (3, {"vi": 1})
    assert summary.to_dict()["method"] == "affine"
    found, z = sources(client, index_name), raw(norm)
    for name, language in (("de", "de"), ("named", "de"), ("th", "th")):
        stamp = {"vectors": known.hash, "alpha": 1.0, "language": language, "method": "affine"}
        assert found[name]["shift"] == (stamp if name != "named" else {**stamp, "tag": "de-AT"})
        mean, map_ = (table[language].astype(np.float64) for table in (known.means, known.maps))
        # The pivot's mean over that language's pairs, in float32 as the file's tensors are.
        pivot = (known.means[language] - known.vectors[language]).astype(np.float64)
        assert np.abs(embedding(found[name]) - ((z[name] - mean) @ map_ + pivot)).max() <= rounding(norm)
        before = np.linalg.solve(map_.T, embedding(found[name]) - pivot) + mean
        assert np.abs(before - z[name]).max() <= rounding(norm) * np.linalg.cond(map_)
    for name in ("en", "vi", "und", "none"):
        assert (embedding(found[name]) == z[name]).all()


@pytest.mark.parametrize("norm", [1, 7, 50])
def test_a_soft_shift(client, index_name, corpus, detector, known, file, norm):
    making = build_pipeline(ToyEncoder(norm), detector, file(alpha=0.75, alphas={"th": 0.5}), None, soft=True)
    summary = load(client, corpus, index_name, making)
    assert summary.to_dict()["soft"] is True
    assert (summary.languages["und"], summary.without_vector) == (3, {"vi": 1})
    found, z = sources(client, index_name), raw(norm)
    scales = {"de": 0.75, "nl": 0.75, "th": 0.5}
    for name, source in found.items():
        if name == "named":
            assert source["shift"].pop("tag") == "de-AT"
        posterior = {"named": {"de": 1.0}, "und": {}}.get(name) if name not in TEXTS else None
        if posterior is None:
            posterior = {tag: p for tag, p in detector.posteriors(TEXTS[name]).items() if tag in TAGS}
        stamp = source["shift"]
        if not posterior:
            assert stamp == {"vectors": known.hash, "alpha": 0.0}
            assert (embedding(source) == z[name]).all()
            continue
        # The very numbers that were used, and all that it takes to undo the shift.
        assert stamp["languages"] == posterior
        assert stamp["language"] == next(iter(posterior))
        step = sum(p * scales[tag] * known.vectors[tag].astype(np.float64) for tag, p in posterior.items())
        assert np.abs(embedding(source) - (z[name] - step)).max() <= rounding(norm)
        alphas = {tag: stamp.get("alphas", {}).get(tag, stamp["alpha"]) for tag in stamp["languages"]}
        assert alphas == {tag: scales[tag] for tag in posterior}
        back = sum(p * alphas[tag] * known.vectors[tag].astype(np.float64) for tag, p in stamp["languages"].items())
        assert np.abs(embedding(source) + back - z[name]).max() <= rounding(norm)
    # What nobody could name is moved by all that it may be in; and so, a little, is what somebody could.
    assert found["unclear"]["language"] == "und"
    assert set(found["unclear"]["shift"]["languages"]) == set(TAGS)
    assert found["unclear"]["shift"]["alphas"] == {"th": 0.5}
    assert found["de"]["shift"]["languages"]["nl"] > 0.001


def test_posteriors_are_kept_in_the_stamp_and_make_no_fields(client, index_name, corpus, detector, file):
    load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, file(), None, soft=True))
    mapping = client.indices.get_mapping(index=index_name)[f"{index_name}-v0001"]["mappings"]["properties"]["shift"]
    assert mapping["properties"]["languages"] == {"type": "object", "enabled": False}
    by_language = {"term": {"shift.language": "th"}}
    assert client.count(index=index_name, body={"query": by_language})["count"] == 1
    # A script that changes documents, such as a reindex has, finds them.
    script = "ctx._source.seen = ctx._source.shift.languages.entrySet().stream().mapToDouble(e -> e.getValue()).sum()"
    body = {"script": {"source": script}, "query": {"ids": {"values": ["unclear"]}}}
    client.update_by_query(index=index_name, body=body, params={"refresh": "true"})
    source = sources(client, index_name)["unclear"]
    assert source["seen"] == pytest.approx(sum(source["shift"]["languages"].values()), abs=1e-12)


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        ({}, {"method": "affine"}, "method shift, not affine"),
        ({"method": "affine"}, {}, "method affine, not shift"),
        ({}, {"soft": True}, "soft False, not True"),
    ],
)
def test_another_method_is_refused(client, index_name, corpus, detector, file, first, then, told):
    path = file()
    load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, path, None, **first))
    before = sources(client, index_name)
    with pytest.raises(FingerprintError) as refused:
        load(client, corpus, index_name, build_pipeline(ToyEncoder(), detector, path, None, **then), options=APPEND)
    assert str(refused.value) == (
        f"Index {index_name} was built with {told}: use the settings it was built with, or choose another index name."
    )
    assert sources(client, index_name) == before


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


def test_an_index_made_before_there_were_methods_takes_more_documents(client, index_name, corpus, detector, file):
    making = build_pipeline(ToyEncoder(), detector, file(), None)
    old = making.fingerprint().to_dict()
    for name in ("method", "soft", "alphas"):
        del old[name]
    target = version_writer.open_for_writing(client, index_name, making.fingerprint())
    meta = client.indices.get_mapping(index=target.index)[target.index]["mappings"]["_meta"]
    client.indices.put_mapping(index=target.index, body={"_meta": {**meta, "langshift": old}})
    version_writer.publish(client, target)
    assert load(client, corpus, index_name, making, options=APPEND).documents == 8
    assert versions.live(client, index_name).fingerprint == making.fingerprint()


def test_methods_that_an_index_cannot_have(detector, file):
    for method in ("centering", "lir"):
        with pytest.raises(UsageError) as refused:
            build_pipeline(ToyEncoder(), detector, file(), None, method=method)
        assert str(refused.value) == (
            f"The method {method} changes queries too, which an index cannot do: choose shift or affine, "
            f"or try {method} with `langshift evaluate offline --method {method}`."
        )
    with pytest.raises(UsageError, match=r"^Only the method shift can be soft, not affine\.$"):
        build_pipeline(ToyEncoder(), detector, file(), None, method="affine", soft=True)


def test_the_command_line_says_what_was_done(cluster_env, index_name, corpus, tmp_path):
    def ingest(name, *more):
        return langshift("ingest", corpus, "--index", f"{index_name}-{name}", *more, url=cluster_env)

    plain = json.loads(ingest("plain", "--json").stdout)
    assert not {"method", "soft", "alphas"} & set(plain)
    soft = ingest("soft", "--soft")
    assert soft.returncode == 0, soft.stderr
    assert "softly shifted with alpha 1." in soft.stdout
    assert soft.stderr.splitlines() == [
        "3 documents without a clear language: shifted by all their possible languages.",
        "No language vector for vi (1 document): not shifted by their own language.",
    ]
    assert refusal(ingest("affine", "--method", "affine")) == (
        "The language vectors contain nothing for the method affine: fit them with "
        "`langshift vectors fit --methods affine`."
    )
    for method in ("lsar", "none"):
        assert refusal(ingest("other", "--method", method)) == (
            f"There is no method '{method}' for an index: choose shift or affine, "
            "or --alpha 0 to leave documents as they are."
        )
    use_m = LanguageVectors.load(shipped("use-m"))
    identity = dict.fromkeys(use_m.vectors, np.eye(512, dtype=np.float32))
    path = tmp_path / "maps.safetensors"
    replace(use_m, means=dict(use_m.vectors), maps=identity, **advised({"alpha": 0.5, "alphas": {"th": 0.25}})).save(
        path
    )
    affine = ingest("affine", "--method", "affine", "--vectors", path)
    assert "mapped with alpha 1." in affine.stdout
    assert "No map for vi (1 document): not mapped." in affine.stderr
    scaled = ingest("scaled", "--vectors", path)
    assert "shifted with alpha 0.5 (th 0.25)." in scaled.stdout
    assert "shifted with alpha 0.75." in ingest("given", "--vectors", path, "--alpha", "0.75").stdout

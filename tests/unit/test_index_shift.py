"""The shift that an index knows: as documents bring it, as it is found again, and what stamps say was subtracted."""

import json
from dataclasses import replace

import numpy as np
import pytest
from advice import advised
from hypothesis import given
from hypothesis import strategies as st
from langcodes.data_dicts import LANGUAGE_ALPHA3, MACROLANGUAGES

from langshift.debias.debiaser import Debiaser, shifted, undo
from langshift.debias.fingerprint import FORMAT, Fingerprint
from langshift.debias.vectors import CommonStep, LanguageVectors
from langshift.errors import ClusterError
from langshift.languages import document_language, folds, parse_tag, primary, text_language
from langshift.plugin import stored_shift
from langshift.plugin.metadata import USUAL, FieldNames, checked_metadata, encoded
from langshift.plugin.pipeline_check import difference
from langshift.plugin.shift_script import matching_stamp_query, params, reason
from langshift.plugin.stored_shift import StoredShift

KNOWN = ["de", "zh", "zh-TW", "ar", "no", "nn", "arz", "pt-BR", "en-GB", "sr", "sr-RS", "sr-Latn", "zh-HK", "fil"]
CODES = [*KNOWN, *LANGUAGE_ALPHA3, *LANGUAGE_ALPHA3.values(), *MACROLANGUAGES, "und", "mul"]
PRIMARY = st.sampled_from(CODES).map(primary)
SCRIPTS = st.sampled_from(["", "", "-Hant", "-Hans", "-Latn", "-Cyrl"])
REGIONS = st.sampled_from(["", "", "-TW", "-HK", "-CN", "-GB", "-BR", "-419", "-RS", "-ME", "-MO"])
TAGS = st.builds("{}{}{}".format, PRIMARY, SCRIPTS, REGIONS)
NUMBERS = np.array([0.1, -1e-30, 3e30], np.float32)
DIRECTIONS = np.array([[0.6, 0.8, 0], [0, 0, 1]], np.float32)
STEP = {"common": {"documents": NUMBERS, "queries": -NUMBERS}, "query_directions": DIRECTIONS}


def vectors(*tags):
    return {tag: NUMBERS + np.float32(place) for place, tag in enumerate(tags)}


def file(pivot="en", tags=("de", "zh-TW"), **fields):
    return LanguageVectors(pivot, vectors(*tags), {}, "toy", "1", "", 3, False, "made up", **advised(fields))


def made_by(known, **fields):
    return Fingerprint("toy", "1", "", "", 3, False, known.pivot, 0.5, known.hash, "lid", "0.1.0", **fields)


def looked_up(tag, keys):
    low = tag.lower()
    language, *parts = low.split("-")
    written = f"{language}-{parts[0]}" if parts and len(parts[0]) == 4 else language
    return keys.get(low, keys.get(written, keys.get(language, ""))) or None


@given(TAGS, st.sets(st.sampled_from(KNOWN)), st.sampled_from(["en", "en-GB", "zh", "no", "ar"]))
def test_a_language_takes_the_vector_that_it_takes_in_numpy(text, tags, pivot):
    tag = document_language(text)
    known = file(pivot, sorted({"de", *tags} - {pivot}))
    shift = stored_shift.of_debias(Debiaser(known))
    assert shift.key(tag) == known.key(tag)
    assert looked_up(tag, shift.keys) == known.key(tag)


@given(PRIMARY)
def test_folds_are_what_a_load_makes_of_a_language(text):
    tag = parse_tag(text)
    if tag is not None:
        assert folds().get(primary(tag), primary(tag)) == text_language(tag)


def test_how_others_spell_languages():
    told = {"pt_BR": "pt-BR", "EN": "en", "zho-Hant": "zh-TW", "ara": "ar", "English": "und", "": "und", None: "und"}
    assert {text: document_language(text) for text in (*told, "xx")} == {**told, "xx": "und"}
    lists = [(["th"], "th"), (["th", "de"], "und"), ([], "und"), ([["th"]], "und"), ([7], "und")]
    assert all(document_language(told) == tag for told, tag in lists)
    assert folds()["nn"] == "no"


def test_the_vectors_are_kept_bit_for_bit():
    known = file(**STEP)
    shift = stored_shift.of_debias(Debiaser(known, alpha=0.5, alphas={"de": 0.25, "zh-TW": 0.5}, gamma=0.95))
    assert (shift.hash, shift.pivot, shift.alpha, shift.alphas) == (known.hash, "en", 0.5, {"de": 0.25})
    assert (shift.scale("de"), shift.scale("zh-TW")) == (0.25, 0.5)
    made = made_by(known, alphas={"de": 0.25}, gamma=0.95)
    meta = {"langshift": made.to_dict(), "langshift_vectors": json.loads(json.dumps(shift.to_dict()))}
    assert checked_metadata("i", {"_meta": meta}) == meta
    back = StoredShift.from_meta(meta)
    assert replace(back, vectors={}, step=None) == replace(shift, vectors={}, step=None)
    assert (back.step.mean.tolist(), back.step.directions.tolist()) == (NUMBERS.tolist(), DIRECTIONS.tolist())
    debias = stored_shift.of_documents(meta, "i")
    assert (debias.vectors.hash, debias.alpha, debias.gamma) == (known.hash, 0.5, 0.95)
    for tag, vector in known.vectors.items():
        assert back.vectors[tag].dtype == np.float32
        assert (back.vectors[tag] == vector).all()
    # Vectors of another name are none of this index's.
    assert StoredShift.from_meta({**meta, "langshift": {**made.to_dict(), "vectors": "other"}}) is None
    assert StoredShift.from_meta({"langshift": made.to_dict()}) is None
    assert StoredShift.from_meta({"langshift": {**made.to_dict(), "vectors": None}}) == StoredShift()


def test_what_a_new_index_keeps():
    assert set(stored_shift.to_metadata(Debiaser(file(), alpha=0.0))) == {"langshift_vectors"}
    assert stored_shift.to_metadata(Debiaser(None, alpha=0.0)) == {}


def test_what_cannot_be_had_is_refused():
    with pytest.raises(ClusterError) as refused:
        stored_shift.from_metadata({"langshift": replace(made_by(file()), vectors="abc").to_dict()}, "i")
    assert str(refused.value) == "Index i does not contain its language vectors (abc): index the corpus again."
    with pytest.raises(ClusterError) as refused:
        stored_shift.from_metadata({}, "i")
    assert str(refused.value) == "Index i has no langshift fingerprint: it was not created by langshift."


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"directions": None}, "_meta.langshift_vectors is wrong (the mean or the directions that its scales need are "
         "missing)"),
        ({"directions": "AAAAAA=="}, "_meta.langshift_vectors.directions is wrong (4 bytes, not 3 numbers)"),
    ],
)  # fmt: skip
def test_wrong_directions_are_refused(change, told):
    known = file(**STEP)
    entry = {**stored_shift.of_debias(Debiaser(known, gamma=0.95)).to_dict(), **change}
    meta = {
        "langshift": made_by(known, gamma=0.95).to_dict(),
        "langshift_vectors": {name: value for name, value in entry.items() if value is not None},
    }
    with pytest.raises(ClusterError) as refused:
        checked_metadata("i", {"_meta": meta})
    assert str(refused.value).startswith(f"Index i cannot be read: {told}.")


def test_a_script_is_told_the_same_numbers():
    known = file()
    old, new = (stored_shift.of_debias(Debiaser(known, alpha=alpha)) for alpha in (1.0, 0.5))
    told = json.loads(
        json.dumps(params(old, new, FieldNames(vector="a.b", declared_language="lang", texts=("t",)), pipeline=False))
    )
    assert (told["same"], told["old"], told["dimension"], told["texts"]) == (
        True,
        {"hash": known.hash},
        3,
        [],
    )
    assert (told["fields"]["vector"], told["fields"]["told"]) == ("a.b", "lang")
    assert told["new"]["vectors"] == encoded(known.vectors)
    assert "tags" not in told
    other = params(old, replace(new, hash="other"), USUAL, pipeline=True)
    assert (other["same"], set(other["old"]["vectors"]), other["fields"]["told"]) == (
        False,
        {"de", "zh-TW"},
        "language",
    )


def test_the_reason_of_an_error_is_its_innermost():
    inner = {"type": "illegal_argument_exception", "reason": "Document 1 has none."}
    assert reason({"type": "script_exception", "reason": "runtime error", "caused_by": inner}) == "Document 1 has none."
    assert reason({"type": "a"}) == "a"


VECTORS = {"de": np.float32([1, 2]), "th": np.float32([4, -8])}
SHIFT = StoredShift("0123", "en", VECTORS, 0.5, {"th": 0.25})


@pytest.mark.parametrize(
    ("stamp", "moved"),
    [
        ({"alpha": 0.0}, [0, 0]),
        ({"alpha": 0.0, "language": "de"}, [0, 0]),
        ({"alpha": 0.5, "language": "de"}, [0.5, 1]),
        ({"alpha": 0.25, "language": "th", "tag": "th-TH"}, [1, -2]),
        # Whatever the scale is now, it is the stamp's that counts.
        ({"alpha": 1.0, "language": "th"}, [4, -8]),
        ({"alpha": None, "language": None}, [0, 0]),
    ],
)
def test_what_a_stamp_says_was_subtracted(stamp, moved):
    raw = np.float32([3, 5])
    assert (shifted(raw, stamp, SHIFT) == raw - np.float32(moved)).all()
    assert (undo(raw - np.float32(moved), stamp, SHIFT) == raw).all()
    assert shifted(raw, stamp, SHIFT).dtype == undo(raw, stamp, SHIFT).dtype == np.float32


@pytest.mark.parametrize("gamma", [0, 0.9, 0.97, 0.98])
@pytest.mark.parametrize("norm", [1, 50])
def test_there_and_back_is_exact_to_float32(norm, gamma):
    random = np.random.default_rng(3)

    def drawn():
        vector = random.standard_normal(512)
        return (norm * vector / np.linalg.norm(vector)).astype(np.float32)

    vectors = {"de": drawn()}
    step = CommonStep(drawn(), np.linalg.qr(random.standard_normal((512, 16)))[0].T.astype(np.float32))
    stamp = {"alpha": 0.75, "language": "de", "gamma": gamma}
    for own in ({}, {"own": {"weight": 0.02 * norm, "language": "th"}}):
        shift = StoredShift(vectors=vectors, step=step, own_vectors={"th": drawn()})
        for _ in range(50):
            raw = drawn()
            assert difference(undo(shifted(raw, stamp | own, shift), stamp | own, shift), raw, raw) <= 1e-6


def test_a_difference_is_relative_to_the_norm_of_the_vector():
    raw = np.float32([3, 4])
    assert difference(np.float32([1, 2]), np.float32([1, 3]), raw) == pytest.approx(0.2)
    assert difference(raw, raw, raw) == 0
    assert difference(np.float32([0, 1]), np.float32([0, 0]), np.float32([0, 0])) == 1


NO_GAMMA = {"bool": {"must_not": [{"exists": {"field": "shift.gamma"}}]}}


def test_agreeing_documents_have_the_scale_of_their_language():
    query = matching_stamp_query(SHIFT, USUAL)["bool"]["filter"]
    preferred = {"range": {"shift.own.weight": {"gt": 0}}}
    strange = {"bool": {"filter": [preferred], "must_not": []}}
    same = {"bool": {"filter": [{"term": {"shift.vectors": "0123"}}], "must_not": [strange]}}
    assert query[:2] == [{"exists": {"field": "embedding"}}, same]
    assert query[4] == {"bool": {"must_not": [preferred]}}
    assert query[2] == {"bool": {"should": [{"term": {"shift.gamma": 0}}, NO_GAMMA], "minimum_should_match": 1}}
    _, german, thai = query[3]["bool"]["should"]
    assert german["bool"]["filter"] == [{"terms": {"shift.language": ["de"]}}, {"term": {"shift.alpha": 0.5}}]
    assert thai["bool"]["filter"] == [{"terms": {"shift.language": ["th"]}}, {"term": {"shift.alpha": 0.25}}]
    common = replace(SHIFT, gamma=0.95)
    assert matching_stamp_query(common, USUAL)["bool"]["filter"][2] == {"term": {"shift.gamma": 0.95}}
    own = matching_stamp_query(StoredShift(), FieldNames(vector="v", stamp="ls"))["bool"]["filter"]
    assert own[0] == {"exists": {"field": "v"}}
    assert own[1]["bool"]["must_not"][1] == {"exists": {"field": "ls.vectors"}}


def test_what_a_later_version_made_is_refused():
    meta = {"langshift": made_by(file(), format=FORMAT + 1).to_dict()}
    with pytest.raises(ClusterError) as refused:
        checked_metadata("i", {"_meta": meta})
    assert str(refused.value) == "Index i was made by a later version of langshift: upgrade langshift to use it."

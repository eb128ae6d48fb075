"""The evidence that a fit gathers: how far pairs agree, and which of them look misaligned."""

import json

import numpy as np
import pytest
from parallel_source import Texts, Vectors, given_encoder

from langshift.debias.encoders import open_encoder
from langshift.debias.fitting import sums as sums_module
from langshift.debias.fitting.alignment import AlignmentCheck, Histogram
from langshift.debias.fitting.fit import fit
from langshift.debias.fitting.reliability import LanguageEvidence, reliability
from langshift.debias.fitting.sums import Blocks
from langshift.evaluate.demo import FOLDER

DIMENSION = 128


def pairs(rows, kept=0.8, seed=0, topics=None):
    """Vectors of texts and of their translations, which keep so much of what the texts say."""
    random = np.random.default_rng(seed)
    said = random.standard_normal((rows, DIMENSION)) if topics is None else topics
    offset = random.standard_normal(DIMENSION)
    other = random.standard_normal((rows, DIMENSION))
    return said.astype(np.float32), (offset + kept * said + np.sqrt(1 - kept**2) * other).astype(np.float32)


def evidence(pivot, language):
    made = fit(Vectors({"en": pivot, "th": language}), ["en"], given_encoder())["en"]
    return LanguageEvidence.from_json(made.evidence["th"])


def places(alignment):
    return {int(suspect.place.removeprefix("row ")) - 1 for suspect in alignment.worst}


def shuffled(rows, block, swaps):
    """An order in which a block of rows is moved by one and others are swapped, and the rows that are not in place."""
    order = np.arange(rows)
    order[block[0] : block[1]] = np.roll(order[block[0] : block[1]], -1)
    for one, other in swaps:
        order[[one, other]] = order[[other, one]]
    return order, set(np.flatnonzero(order != np.arange(rows)).tolist())


def test_blocks_hold_all_pairs_however_many_there_are():
    language, pivot = pairs(5000)
    differences = (language.astype(np.float64) - pivot).cumsum(axis=0)
    for rows in (1, 63, 64, 65, 694, 5000):
        blocks = Blocks(DIMENSION)
        for start in range(0, rows, 100):
            part = slice(start, min(start + 100, rows))
            blocks.add(language[part], pivot[part])
        assert blocks.pairs == blocks.counts.sum() == rows
        assert len(blocks.counts) <= 64
        assert rows <= 64 or len(blocks.counts) > 32
        # Contiguous, and all of one size but for the last.
        assert len(set(blocks.counts[:-1].tolist())) <= 1
        ends = np.cumsum(blocks.counts) - 1
        assert np.abs(np.cumsum(blocks.sums, axis=0) - differences[ends]).max() < 1e-3
        assert np.abs(blocks.difference - differences[rows - 1]).max() < 1e-3


def test_the_curve_foretells_how_near_so_many_pairs_come_to_the_true_vector():
    random = np.random.default_rng(1)
    true = random.standard_normal(DIMENSION)
    noise = 8 * random.standard_normal((4000, DIMENSION))
    rows = np.zeros((4000, DIMENSION), np.float32)
    found = evidence(rows, (true + noise).astype(np.float32)).reliability
    cosines = dict(found.curve)
    for step in (20, 200, 2000):
        means = true + noise.reshape(-1, step, DIMENSION).mean(axis=1)
        seen = means @ true / np.linalg.norm(means, axis=1) / np.linalg.norm(true)
        assert cosines[step] == pytest.approx(seen.mean(), abs=0.03)
    assert found.enough == pytest.approx(0.95**2 / (1 - 0.95**2) * 64, rel=0.15)
    assert found.noise == pytest.approx(8 * np.sqrt(DIMENSION / 4000), rel=0.1)
    assert found.low < found.split_half < found.high
    # Two halves, with half of the pairs each, agree less than the whole agrees with the truth.
    assert found.split_half == pytest.approx(found.cosine**2 / (2 - found.cosine**2), abs=0.02)


def test_pairs_that_are_alike_in_stretches_count_for_less():
    random = np.random.default_rng(2)
    pivot = np.zeros((2000, DIMENSION), np.float32)
    alone = random.standard_normal((2000, DIMENSION))
    stretches = np.repeat(random.standard_normal((100, DIMENSION)), 20, axis=0)
    loose, tight = (evidence(pivot, (0.3 + rows).astype(np.float32)).reliability for rows in (alone, stretches))
    assert tight.noise > 3 * loose.noise
    assert tight.enough > 9 * loose.enough


def test_no_number_of_pairs_is_enough_where_there_is_nothing_but_noise():
    random = np.random.default_rng(3)
    rows = random.standard_normal((600, DIMENSION)).astype(np.float32)
    found = evidence(np.zeros_like(rows), rows - rows.mean(axis=0)).reliability
    assert (found.enough, found.cosine) == (None, 0)
    assert all(cosine == 0 for _, cosine in found.curve)
    same = evidence(rows, rows)
    assert (same.reliability.split_half, same.reliability.noise, same.reliability.enough) == (0, 0, None)


def test_two_pairs_have_two_halves():
    sums = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = reliability(sums, np.array([1, 1]))
    assert (found.split_half, found.low, found.high) == (0, 0, 0)


def test_pairs_out_of_place_are_found():
    pivot, language = pairs(1000)
    clean = evidence(pivot, language).alignment
    assert (clean.told, clean.count, clean.checked) == (True, 0, 1000)
    order, wrong = shuffled(1000, (300, 351), [(10 * i + 1, 10 * i + 7) for i in range(20)])
    found = evidence(pivot, language[order]).alignment
    assert len(wrong) == 91
    assert found.count >= 87
    assert len(found.worst) == 50
    assert places(found) <= wrong
    assert [int(one.place.removeprefix("row ")) for one in found.worst] == sorted(place + 1 for place in places(found))
    for one in found.worst:
        assert int(one.fits.removeprefix("row ")) - 1 == order[int(one.place.removeprefix("row ")) - 1]
        assert one.margin < 0


def test_a_line_lost_puts_all_that_follow_out_of_place():
    pivot, language = pairs(1000)
    found = evidence(pivot[:-1], np.delete(language, 300, axis=0)).alignment
    assert found.told
    assert found.count == pytest.approx(699, abs=20)


def test_texts_of_another_subject_have_no_place():
    pivot, language = pairs(1000)
    language[500:520] = pairs(20, seed=9)[1]
    found = evidence(pivot, language).alignment
    assert found.count >= 18
    assert places(found) <= set(range(500, 520))


def test_repetitions_and_templates_are_no_evidence():
    random = np.random.default_rng(4)
    topics = random.standard_normal((1000, DIMENSION))
    # "Page 7", "All rights reserved": the same text again and again, and forty texts of one template.
    topics[100:400:3] = topics[100]
    topics[600:640] = topics[600] + 0.3 * random.standard_normal((40, DIMENSION))
    found = evidence(*pairs(1000, topics=topics)).alignment
    assert (found.told, found.count) == (True, 0)


def test_an_encoder_that_hardly_knows_the_language_tells_nothing():
    order, _ = shuffled(1000, (300, 351), [])
    for kept in (0.0, 0.25):
        pivot, language = pairs(1000, kept)
        found = evidence(pivot, language[order]).alignment
        assert (found.told, found.count, found.worst) == (False, 0, ())
        assert found.sharpness < 1.2


def test_too_few_pairs_are_not_compared():
    found = evidence(*pairs(7)).alignment
    assert (found.checked, found.told, found.sharpness) == (0, False, 0)


def test_of_many_given_vectors_an_eighth_is_looked_at_closely(monkeypatch):
    monkeypatch.setattr(sums_module, "_CLOSELY", 2000)
    pivot, language = pairs(20_000)
    found = evidence(pivot, language)
    # Batches of 4,096: the first is looked at whole.
    assert found.alignment.checked == 4096 + 3 * 512 + (20_000 - 4 * 4096) // 8
    assert found.pairs == 20_000
    assert found.norm == pytest.approx(np.linalg.norm(language, axis=1).mean(), rel=0.01)


def test_windows_take_in_every_pair():
    for rows in (8, 63, 64, 65, 128, 130, 1000):
        pivot, language = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in pairs(rows))
        check = AlignmentCheck()
        check.add(language, pivot, [str(row) for row in range(rows)], np.arange(rows))
        assert check.result().checked == rows


def test_medians_and_tails_of_a_stream():
    values = np.random.default_rng(5).uniform(-1, 1, 10_000)
    histogram = Histogram()
    for part in np.array_split(values, 7):
        histogram.add(part)
    assert histogram.total == 10_000
    assert histogram.median == pytest.approx(np.median(values), abs=0.002)
    count, limit = histogram.below(-0.5)
    assert limit == pytest.approx(-0.5, abs=0.002)
    assert count == pytest.approx((values < limit).sum(), abs=2)
    assert Histogram().median == 0


def test_evidence_lives_in_json():
    pivot, language = pairs(1000)
    found = evidence(pivot, language[shuffled(1000, (300, 351), [])[0]])
    document = json.loads(json.dumps(found.to_json()))
    again = LanguageEvidence.from_json(document)
    assert again.to_json() == document
    assert again == found
    assert len(json.dumps(document)) < 6000
    found, alignment = document["reliability"], document["alignment"]
    for damaged in (
        {},
        {**document, "pairs": "many"},
        {**document, "pairs": True},
        {**document, "missing": -1},
        {**document, "norm": -1.0},
        {**document, "reliability": {**found, "split_half": 1e308}},
        {**document, "reliability": {**found, "enough": 2.5}},
        {**document, "alignment": {**alignment, "checked": 0}},
        {**document, "alignment": {**alignment, "told": 1}},
        {**document, "alignment": None},
        {**document, "more": 1},
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - any reason will do
            LanguageEvidence.from_json(damaged)


def test_real_translations_out_of_place_are_found_and_those_in_place_are_not():
    languages = dict(line.split("\t") for line in (FOLDER / "languages.tsv").read_text().splitlines()[1:])
    texts = {"de": {}, "en": {}, "th": {}}
    with (FOLDER / "corpus.jsonl").open(encoding="utf-8") as corpus:
        for line in corpus:
            document = json.loads(line)
            if (tag := languages[document["_id"]]) in texts:
                texts[tag][document["group"]] = document["text"]
    rows = {tag: [of[group] for group in sorted(of)] for tag, of in texts.items()}
    order, wrong = shuffled(44, (20, 30), [(3, 9)])
    rows["de"] = [rows["de"][row] for row in order]
    made = fit(Texts(rows), ["en"], open_encoder("use-m"))["en"]
    german, thai = (LanguageEvidence.from_json(made.evidence[tag]).alignment for tag in ("de", "th"))
    assert (german.told, german.count, thai.told, thai.count) == (True, 12, True, 0)
    assert {int(one.place.removeprefix("line ")) - 1 for one in german.worst} == wrong

"""Which languages an encoder reads, by lists and by vectors."""

import numpy as np
import pytest

from langshift.debias.encoder_languages import FEWEST, LanguageSample, collapsed, unread, unread_in_words

WORDS = [f"{first}{middle}{last}" for first in "bdfghk" for middle in "aeiou" for last in ("lmo", "rnu", "sti")]


def sample(seed, *, noise=1.0, documents=40, text=None):
    """Documents of one language: a direction that all have, and as much of one that each has alone."""
    rng = np.random.default_rng(seed)
    common, own = rng.standard_normal(64), rng.standard_normal((documents, 64))
    texts = [" ".join(rng.choice(WORDS, 20)) if text is None else text.format(row) for row in range(documents)]
    return LanguageSample((common + noise * own).astype(np.float32), texts)


def test_a_language_whose_unrelated_texts_get_nearly_the_same_vector_is_not_read():
    assert collapsed({"en": sample(1), "de": sample(2, noise=2), "th": sample(3, noise=0.2)}) == ["th"]


def test_a_model_whose_vectors_all_lie_in_a_narrow_cone_reads_its_languages():
    narrow = {tag: sample(seed, noise=0.2) for seed, tag in enumerate(("en", "de", "th"))}
    assert collapsed(narrow) == []


def test_texts_of_one_template_may_be_alike():
    forecast = "The forecast of station number {}: clear until the evening, then light rain from the west."
    assert collapsed({"en": sample(1), "th": sample(3, noise=0.05, text=forecast)}) == []


@pytest.mark.parametrize(("noise", "found"), [(0.1, ["th"]), (0.5, [])])
def test_a_language_alone_is_judged_by_itself(noise, found):
    assert collapsed({"th": sample(3, noise=noise)}) == found


def test_few_documents_say_nothing():
    assert collapsed({"en": sample(1), "th": sample(3, noise=0.01, documents=FEWEST - 1)}) == []
    assert collapsed({}) == []


def test_what_was_measured_counts_before_what_was_seen():
    counts = {"th": 9, "hi": 5, "fi": 20, "und": 7}
    assert unread("use-m", counts) == {"hi": 5}
    assert unread("use-m", counts, {"th", "fi", "sw"}) == {"fi": 20, "hi": 5}
    assert unread("e5-small", counts, {"th"}) == {}
    assert unread("other", counts, {"th"}) == {"th": 9}


def test_the_sentence_counts_the_documents():
    assert unread_in_words("use-m", {}) == []
    assert unread_in_words("use-m", {"hi": 1}) == [
        "1 document in hi can be found by words only: the encoder use-m cannot read that language."
    ]
    assert unread_in_words("use-m", {"hi": 1200, "ta": 34}) == [
        "1,234 documents in hi (1,200) and ta (34) can be found by words only: the encoder use-m cannot read those "
        "languages."
    ]

"""Items sampled from parallel text, and the questions cut out of them."""

from dataclasses import replace

import numpy as np
import pytest
from planted import InMemory, PlantedEncoder, direction, known, parallel_text

from langshift.errors import LangshiftError, UsageError
from langshift_lab.tune.task import (
    default_sample,
    held_out_vectors,
    make_task,
    question,
    question_share,
    sample_items,
    well_covered,
)


def numbered(count, tags=("en", "de")):
    return InMemory({tag: [f"{tag}{row}" for row in range(count)] for tag in tags})


@pytest.mark.parametrize("count", [100, 150, 199, 200, 201, 1_000, 5_000])
def test_items_are_evenly_spread_over_the_text(count):
    items = sample_items(numbered(count), "en", ["de"], 150)
    rows = [int(text[2:]) for text in items.texts["en"]]
    assert len(rows) == min(count, 150)
    assert rows == sorted(set(rows))
    assert [text[2:] for text in items.texts["de"]] == [text[2:] for text in items.texts["en"]]
    steps = np.diff(rows)
    assert steps.max() <= 2 * steps.min()
    assert rows[0] == 0
    assert rows[-1] >= count - 2 * steps.max()
    assert items.pairs == {"de": count}


def test_rows_without_the_pivot_or_any_other_language_are_left_aside():
    texts = parallel_text(["en", "de", "th"], items=300)
    texts["en"][:50] = [""] * 50
    texts["de"][40:130] = [""] * 90
    texts["th"][100:] = [""] * 200
    items = sample_items(InMemory(texts), "en", ["de", "th"], 600)
    assert items.pivot == "en"
    assert items.count == 300 - 50 - 30
    assert items.pairs == {"de": 170, "th": 50}
    # Of Thai there are 50 items, too few: those that are Thai and English alone go with it.
    kept, few = well_covered(items)
    assert (few, list(kept.texts), kept.count) == (["th"], ["en", "de"], 170)


def test_too_few_items_are_refused():
    with pytest.raises(UsageError) as refused:
        sample_items(numbered(99), "en", ["de"], 600)
    assert str(refused.value) == (
        "made up: only 99 items have text in en and another language of the vectors, and at least 100 "
        "are needed: give more parallel text, or join fewer lines."
    )
    texts = parallel_text(["en", "de", "th"], items=160)
    texts["de"][:80], texts["th"][80:] = [""] * 80, [""] * 80
    with pytest.raises(UsageError) as refused:
        well_covered(sample_items(InMemory(texts), "en", ["de", "th"], 600))
    assert str(refused.value) == (
        "Of the 160 items sampled, too few have text to cut a query from in en and another language (160 in en, "
        "80 in de, 80 in th; at least 100 are needed): raise --sample, or give more parallel text."
    )


def test_texts_of_which_nothing_is_left_to_find_are_not_asked_for():
    """A word of one character is itself the shortest question."""
    texts = parallel_text(["en", "de", "zh"], items=120)
    texts["zh"] = [chr(0x4E00 + row) for row in range(120)]
    kept, few = well_covered(sample_items(InMemory(texts), "en", ["de", "zh"], 600))
    assert (few, list(kept.texts)) == (["zh"], ["en", "de"])
    with pytest.raises(UsageError) as refused:
        well_covered(sample_items(InMemory(texts), "zh", ["de", "en"], 600))
    assert str(refused.value) == (
        "Of the 120 items sampled, too few have text to cut a query from in zh and another language (0 in zh, "
        "120 in de, 120 in en; at least 100 are needed): raise --sample, or give more parallel text."
    )


def test_the_more_languages_the_fewer_items():
    assert [default_sample(languages) for languages in (2, 8, 9, 16, 100)] == [600, 600, 533, 300, 100]


def test_a_question_is_about_ten_words_in_the_language_with_the_most():
    texts = {"en": ["one two three four"] * 5, "de": ["eins " * 25] * 5, "zh": ["一二三四五"] * 5}
    items = sample_items(InMemory({tag: of * 30 for tag, of in texts.items()}), "en", ["de", "zh"], 600)
    assert question_share(items) == 0.4
    short = sample_items(InMemory({tag: ["one two"] * 100 for tag in ("en", "de")}), "en", ["de"], 600)
    assert question_share(short) == 0.5


@pytest.mark.parametrize(
    ("text", "share", "cut"),
    [
        ("one two three four five six seven eight nine", 1 / 3, "four five six"),
        ("Donaudampfschifffahrtsgesellschaft fährt ab", 0.5, "schifffahrtsgesellschaft"),
        ("中文没有空格所以在字之间切开", 0.3, "空格所以在"),
        # The cut does not part a Thai vowel sign from its consonant.
        ("กีกีกีกีกีกี", 0.5, "กีกีกี"),
        ("ab", 0.5, "a"),
        ("a", 0.5, None),
        ("", 0.5, None),
    ],
)
def test_a_question_is_cut_out_of_the_middle(text, share, cut):
    assert question(text, share) == cut


def test_an_item_answers_in_every_language_that_it_has():
    texts = parallel_text(["en", "de", "th"], items=110)
    texts["th"][7] = ""
    texts["de"][3] = "x"
    encoder = PlantedEncoder({})
    encoder._vector = lambda text, _: np.full(48, len(text) + 1.0)
    done = []
    task = make_task(sample_items(InMemory(texts), "en", ["de", "th"], 600), encoder, on_texts=done.append)
    assert task.encoded.dataset.qrels["7 de"] == {"7 en": 1, "7 de": 1}
    assert task.encoded.dataset.qrels["8 th"] == {"8 en": 1, "8 de": 1, "8 th": 1}
    assert task.encoded.documents.shape == (329, 48)
    # One letter cannot be cut: it is found, but not asked for.
    asked = [query.id for query in task.encoded.dataset.queries]
    assert len(asked) == 328
    assert "3 de" in task.encoded.ids
    assert "3 de" not in asked
    assert sum(done) == 329 + 328
    assert task.encoded.languages.queries["8 th"] == "th"
    # Folds are stretches of the text made of whole blocks of ten.
    assert sorted(set(task.blocks)) == list(range(11))
    by_item = dict(zip(task.items.tolist(), task.folds.tolist(), strict=True))
    assert [by_item[item] for item in range(110)] == sorted(by_item.values())
    assert {by_item[item] for item in range(30)} == {0}
    assert set(by_item.values()) == {0, 1, 2, 3, 4}


def test_an_unusable_vector_is_refused():
    texts = parallel_text(["en", "de"], items=100)
    encoder = PlantedEncoder({"de": np.full(48, np.nan)})
    with pytest.raises(LangshiftError) as refused:
        make_task(sample_items(InMemory(texts), "en", ["de"], 600), encoder)
    first = texts["de"][0][:60]
    assert str(refused.value) == f"The encoder planted gives no usable vector for an item in de: {first!r}."


def test_without_a_fold_vectors_are_those_of_a_fit_on_the_others():
    texts = parallel_text(["en", "de", "th"], items=130)
    texts["th"][20:40] = [""] * 20
    task = make_task(
        sample_items(InMemory(texts), "en", ["de", "th"], 600),
        PlantedEncoder({"de": direction(3), "th": 2 * direction(4)}),
    )
    rows = {name: task.encoded.documents[row].astype(np.float64) for row, name in enumerate(task.encoded.ids)}
    fold = dict(zip(task.document_items.tolist(), task.document_folds.tolist(), strict=True))

    def fit(tag, kept):
        return np.mean([rows[f"{i} {tag}"] - rows[f"{i} en"] for i in kept if f"{i} {tag}" in rows], axis=0)

    fitted = known({tag: fit(tag, range(130)) for tag in ("de", "th")})
    fitted = type(fitted)(**{**vars(fitted), "pairs": {"de": 130, "th": 110}})
    for left_out in range(5):
        found = held_out_vectors(fitted, task, left_out)
        for tag in ("de", "th"):
            expected = fit(tag, [item for item in range(130) if fold[item] != left_out])
            assert np.abs(found.vectors[tag] - expected).max() < 1e-6
    # Of vectors fitted on very much more, a fold's share is small.
    large = known({"de": direction(3), "th": direction(4)}, pairs=10**9)
    assert np.abs(held_out_vectors(large, task, 0).vectors["de"] - large.vectors["de"]).max() < 1e-6


def test_without_a_fold_that_has_none_or_all_of_a_language():
    texts = parallel_text(["en", "de", "es", "th"], items=600)
    texts["es"][480:] = [""] * 120
    texts["th"][120:] = [""] * 480
    items = sample_items(InMemory(texts), "en", ["de", "es", "th"], 600)
    offsets = {"de": direction(3), "es": direction(4), "th": direction(5)}
    task = make_task(items, PlantedEncoder(offsets))
    fitted = replace(known(offsets), pairs=items.pairs)
    without = [held_out_vectors(fitted, task, fold).vectors for fold in range(5)]
    assert np.array_equal(without[4]["es"], fitted.vectors["es"])
    assert not without[0]["th"].any()
    for fold in range(1, 5):
        assert np.array_equal(without[fold]["th"], fitted.vectors["th"])


def test_vectors_of_queries_are_held_out_as_those_of_documents():
    items = sample_items(InMemory(parallel_text(["en", "de"], items=100)), "en", ["de"], 600)
    task = make_task(items, PlantedEncoder({"de": direction(3)}, noise=2.0))
    fitted = known({"de": direction(3)}, pairs=100, query_vectors={"de": direction(4).astype(np.float32)})
    found = held_out_vectors(fitted, task, 2)
    share = found.vectors["de"] - fitted.vectors["de"]
    assert np.linalg.norm(share) > 0.01
    assert np.abs(found.query_vectors["de"] - fitted.query_vectors["de"] - share).max() < 1e-6


def test_common_means_are_held_out_as_the_texts_of_the_pivot():
    items = sample_items(InMemory(parallel_text(["en", "de"], items=100)), "en", ["de"], 600)
    task = make_task(items, PlantedEncoder({}, noise=2.0))
    english = task.encoded.documents[task.document_languages == "en"].astype(np.float64)
    mean = english.mean(axis=0).astype(np.float32)
    fitted = known({"de": direction(3)}, pairs=100, common={"documents": mean, "queries": 2 * mean})
    found = held_out_vectors(fitted, task, 1).common
    rest = english[task.document_folds[task.document_languages == "en"] != 1]
    assert np.abs(found["documents"] - rest.mean(axis=0)).max() < 1e-5
    assert np.abs(found["queries"] - mean - found["documents"]).max() < 1e-6

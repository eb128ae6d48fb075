"""Each slider moved by key, by mouse and by hand: ranks and link follow, rightly, and the cluster is left alone."""

import re

import numpy as np
import pytest
from console_page import address, drag, hits, ids, question, scores, settled, slider
from playwright.sync_api import expect
from searched import ADVICE, a_name, drop, with_gamma

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load
from langshift.retrieval.searcher import Searcher

WORDS = question("en")


@pytest.fixture(scope="module")
def stored(client, demo):
    """Ids, and their vectors as they are stored in the plain and in the shifted index, each of shape (n, dimension)."""
    vectors = []
    for name in (demo.plain, demo.shifted):
        answer = client.search(index=name, body={"size": 1000, "_source": ["embedding"]}, timeout=60)
        vectors.append({hit["_id"]: hit["_source"]["embedding"] for hit in answer["hits"]["hits"]})
    names = sorted(vectors[0])
    return names, *(np.array([side[name] for name in names]) for side in vectors)


@pytest.fixture(scope="module")
def asked(client, demo):
    """The question's vector, of length 1."""
    (vector,) = Searcher(client, demo.plain).encode([WORDS]).astype(np.float64)
    return vector / np.linalg.norm(vector)


def at(alpha, stored, asked):
    """Ids and scores of the first ten at an alpha: of alpha 1 a language's vector is what sets both indices apart.

    The page rounds scores that were reckoned in single precision.
    """
    names, plain, shifted = stored
    moved = plain + alpha * (shifted - plain)
    found = (1 + moved @ asked / np.linalg.norm(moved, axis=1)) / 2
    return [(names[place], pytest.approx(found[place], abs=6e-5)) for place in np.argsort(-found)[:10]]


def shown(page, place):
    return list(zip(ids(page, place), map(float, scores(page, place)), strict=True))


def opened(page, *given, **more):
    """The search page once the vectors that alpha needs are there."""
    with page.expect_response(lambda answer: "/search/vectors" in answer.url) as vectors:
        page.goto(address(*given, **more))
    assert vectors.value.status == 204


def test_alpha_moved_by_keys_ranks_as_the_vectors_say(page, demo, way, stored, asked):
    opened(page, demo, WORDS)
    assert shown(page, "right") == at(1, stored, asked)
    before = shown(page, "left")
    way.count()
    slider(page, "right", "alpha").focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    settled(page, "right.alpha=0.97")
    assert shown(page, "right") == at(0.97, stored, asked)
    page.keyboard.press("Home")
    settled(page, "right.alpha=0")
    # The shift is taken back whole, and both sides say the same.
    assert shown(page, "right") == at(0, stored, asked) == shown(page, "left") == before
    expect(hits(page, "right").locator(".change.same")).to_have_count(10)
    page.keyboard.press("End")
    expect(page).not_to_have_url(re.compile(r"right\.alpha"))
    assert shown(page, "right") == at(1, stored, asked)
    assert way.asked == []


def test_alpha_moved_by_mouse_and_by_hand(page, demo, way, stored, asked):
    opened(page, demo, WORDS)
    way.count()
    handle = slider(page, "right", "alpha")
    drag(page, handle, 0.8, 0.5)
    value = handle.input_value()
    assert 0.4 < float(value) < 0.6
    expect(page.locator("output[for=right-alpha-slider]")).to_have_text(value)
    settled(page, f"right.alpha={value}")
    assert shown(page, "right") == at(float(value), stored, asked)
    expect(page.locator("#right-heading")).to_contain_text(f"alpha {value} (as indexed: 1)")
    # The plain index moved all the way is the shifted one.
    slider(page, "left", "alpha").fill("1")
    settled(page, "left.alpha=1")
    assert shown(page, "left") == at(1, stored, asked)
    assert way.asked == []


def test_the_language_preference(page, demo, way, found):
    opened(page, demo, WORDS, size=30)
    way.count()
    handle = slider(page, "left", "prefer")
    handle.focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    settled(page, "left.prefer=0.03")
    preferred = found(demo.plain, WORDS, size=30, prefer_language=0.03)
    assert ids(page, "left") == [hit.id for hit in preferred]
    drag(page, handle, 0.3, 0)
    settled(page, "left.prefer=-0.2")
    spread = found(demo.plain, WORDS, size=30, spread=0.2)
    assert ids(page, "left") == [hit.id for hit in spread]
    assert [hit.id for hit in preferred] != [hit.id for hit in spread]
    assert way.asked == []


@pytest.fixture(scope="module")
def taken(client, demo, tmp_path_factory):
    """Name of an index of the same documents, which lost what all queries have in common."""
    path, name = tmp_path_factory.mktemp("gamma") / "v.safetensors", a_name()
    with_gamma().save(path)
    pipeline = build_pipeline(open_encoder("use-m"), open_detector(), path, None)
    load(client, str(demo.dataset / "corpus.jsonl"), name, pipeline)
    yield name
    drop(client, name)


def test_gamma_is_a_list_that_ranks_anew(page, demo, taken, way, found):
    opened(page, demo, WORDS, right=taken)
    indexed = ids(page, "right")
    assert indexed == [hit.id for hit in found(taken, WORDS)]
    way.count()
    gamma = page.locator("#right-gamma")
    lists = {}
    for value in ("0", "0.9"):
        gamma.select_option(value)
        settled(page, f"right.gamma={value}")
        expect(page.locator("#right-heading")).to_contain_text(f"gamma {value} (as indexed: 0.5, gamma 0.95)")
        lists[value] = ids(page, "right")
    assert len({tuple(one) for one in (indexed, *lists.values())}) > 1
    gamma.select_option(f"{ADVICE.gamma}")
    expect(page).not_to_have_url(re.compile("gamma"))
    assert ids(page, "right") == indexed
    assert way.asked == []
    # An index that is chosen brings its own.
    page.locator("#left-index").select_option(taken)
    settled(page, f"left={taken}")
    expect(page.locator("#left-gamma")).to_have_value(f"{ADVICE.gamma}")
    assert ids(page, "left") == indexed


def test_the_share_of_the_words_in_hybrid(page, demo, way, found):
    opened(page, demo, WORDS, right_mode="hybrid")
    way.count()
    handle, lists = slider(page, "right", "weight"), []
    expect(slider(page, "left", "weight")).to_be_hidden()
    drag(page, handle, 0.6, 1)
    settled(page, "right.weight=1")
    for weight, key in ((0.99, "ArrowLeft"), (0, "Home")):
        handle.press(key)
        settled(page, f"right.weight={weight}")
        expected = found(demo.shifted, WORDS, mode="hybrid", lexical_weight=weight)
        assert ids(page, "right") == [hit.id for hit in expected]
        assert scores(page, "right") == [f"{hit.score:.4f}" for hit in expected]
        lists.append(ids(page, "right"))
    assert lists[0] != lists[-1]
    page.locator("#right-fusion").select_option("rrf")
    settled(page, "right.fusion=rrf")
    expected = found(demo.shifted, WORDS, mode="hybrid", lexical_weight=0, fusion="rrf")
    assert ids(page, "right") == [hit.id for hit in expected]
    assert way.asked == []


def test_a_slider_that_runs_ends_at_what_was_last(page, demo, stored, asked):
    opened(page, demo, WORDS)
    handle = slider(page, "right", "alpha")
    handle.focus()
    for _ in range(40):
        page.keyboard.press("ArrowLeft")
    settled(page, "right.alpha=0.6")
    assert shown(page, "right") == at(0.6, stored, asked)
    assert handle.evaluate("one => one === document.activeElement")

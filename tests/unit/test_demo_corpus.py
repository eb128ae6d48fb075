"""The bundled corpus: whole, parallel, and with questions that do not give their passage away."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import pytest

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER

# A full stop after a letter or two digits at most is an abbreviation's or an ordinal's ("12. Jahrhundert").
SENTENCE_END = re.compile(r"[。！？]|(?<!\s\w)(?<!\s\d\d)[.!?؟]+(?=[\s»”\"')]|$)")
RARE = 2  # a term in no more passages of its language than this says what a passage is about
UNSPACED = {"ja", "zh"}


@pytest.fixture(scope="module")
def dataset():
    return load_dataset(FOLDER)


@pytest.fixture(scope="module")
def passages() -> list[dict]:
    return [json.loads(line) for line in (FOLDER / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]


def terms(language: str, text: str) -> set[str]:
    """Beginnings of words; pairs of characters in Japanese and Chinese, runs of five in Thai."""
    text = text.casefold()
    if language in UNSPACED:
        runs = re.findall(r"[\u30a0-\u30ff\u4e00-\u9fff]{2,}", text)
        return {run[start : start + 2] for run in runs for start in range(len(run) - 1)}
    if language == "th":
        run = re.sub(r"[\s?]", "", text)
        return {run[start : start + 5] for start in range(len(run) - 4)}
    kept, shortest = (2, 2) if language == "ko" else (5, 4)
    return {word[:kept] for word in re.findall(r"[^\W\d_]+", text) if len(word) >= shortest}


def sentences(text: str) -> int:
    """How many sentences end in a text: where the next word begins in lower case, none does."""
    rests = (text[end.end() :].lstrip(" »”\"')") for end in SENTENCE_END.finditer(text))
    return sum(not rest[:1].islower() for rest in rests)


def test_every_topic_is_there_in_every_language_with_two_questions(dataset):
    topics = {document.group for document in dataset.documents.values()}
    languages = {document.language for document in dataset.documents.values()}
    assert len(topics) >= 40
    assert len(languages) >= 10
    both = sorted((topic, language) for topic in topics for language in languages)
    assert sorted((document.group, document.language) for document in dataset.documents.values()) == both
    asked = Counter((query.group, query.language) for query in dataset.queries)
    assert asked == Counter(dict.fromkeys(both, 2))
    assert len({query.text for query in dataset.queries}) == len(dataset.queries)


def test_all_versions_of_a_topic_answer_its_questions(dataset):
    versions = defaultdict(dict)
    for name, document in dataset.documents.items():
        versions[document.group][name] = 1
    assert dataset.qrels == {query.id: versions[query.group] for query in dataset.queries}


def test_languages_are_left_to_be_detected(passages):
    assert all(set(passage) == {"_id", "title", "text", "group"} for passage in passages)
    assert all(passage["title"] and passage["text"] for passage in passages)
    assert len({passage["text"] for passage in passages}) == len(passages)


def test_passages_have_three_to_five_sentences(dataset, passages):
    # Thai has no mark at the end of a sentence that could be counted.
    counted = [passage for passage in passages if dataset.documents[passage["_id"]].language != "th"]
    assert counted
    lengths = {passage["_id"]: sentences(passage["text"]) for passage in counted}
    assert {name: length for name, length in lengths.items() if not 3 <= length <= 5} == {}


def test_questions_do_not_repeat_the_words_of_their_passage(dataset, passages):
    held, frequency = {}, defaultdict(Counter)
    for passage in passages:
        language, group = (dataset.documents[passage["_id"]].language, passage["group"])
        held[language, group] = terms(language, f"{passage['title']} {passage['text']}")
        frequency[language].update(held[language, group])
    repeated = defaultdict(list)
    for query in dataset.queries:
        shared = terms(query.language, query.text) & held[query.language, query.group]
        if any(frequency[query.language][term] <= RARE for term in shared):
            repeated[query.language].append(query.id)
    # The rest are runs of characters across words, and function words that few passages happen to have.
    assert sum(len(names) for names in repeated.values()) <= 0.04 * len(dataset.queries), dict(repeated)
    for language, names in repeated.items():
        asked = sum(query.language == language for query in dataset.queries)
        assert len(names) <= 0.12 * asked, (language, names)

"""LAURA's labels, worked by hand; the generators are functions."""

import pytest

from langshift.errors import UsageError
from langshift_lab.generation.generators import Answer
from langshift_lab.rerank.labels import (
    LabelQuestion,
    Labels,
    label,
    oracle_distribution,
    read_labels,
    write_labels,
)

# abcdefg has five 3-grams.
ANSWER = "abcdefg"
LANGUAGES = {"e1": "en", "e2": "en", "d1": "de", "d2": "de", "t1": "th", "x1": None}
PASSAGES = {name: f"<{name}>" for name in LANGUAGES}


def generator(alone, together=None):
    """One that answers by the passages in the prompt; ``alone`` and ``together`` say how, by the names of these."""

    def generate(prompts):
        generate.prompts += prompts
        given = [tuple(name for name in sorted(PASSAGES) if PASSAGES[name] in prompt) for prompt in prompts]
        return [Answer({**alone, **(together or {})}.get(names, "?"), "stop") for names in given]

    generate.prompts = []
    return generate


def question(*candidates, name="q", language="de"):
    return LabelQuestion(name, "Wo?", language, (ANSWER,), candidates)


def test_the_best_language_is_kept_and_its_documents_are_judged_alone():
    first = generator(
        {("d1",): "abcdefg", ("d2",): "abcd", ("t1",): "abc"}, {("d1", "d2"): "abcdefg", ("e1", "e2"): "abcd"}
    )
    second = generator({("d1",): "abcdefg", ("d2",): "abcdefg"}, {("d1", "d2"): "abcde", ("e1", "e2"): "abcdefg"})
    (found,) = label([question("e1", "d2", "t1", "d1", "e2")], PASSAGES, LANGUAGES, [first, second])
    # en (2/5 + 1) / 2 = .7, de (1 + 3/5) / 2 = .8, th (1/5 + 0) / 2 = .1; alone d1 1, d2 (2/5 + 1) / 2 = .7.
    assert found == Labels(
        "q",
        "de",
        ["e1", "d2", "t1", "d1", "e2"],
        pytest.approx({"en": 0.7, "th": 0.1, "de": 0.8}),
        pytest.approx({"d1": 1.0, "d2": 0.7}),
        ["d1"],
    )
    # Three languages together, then two documents alone.
    assert len(first.prompts) == len(second.prompts) == 5


def test_all_languages_on_ties_stay():
    same = generator({("d1",): ANSWER, ("t1",): ANSWER, ("e1",): "x", ("x1",): ANSWER})
    (found,) = label([question("t1", "e1", "x1", "d1")], PASSAGES, LANGUAGES, [same])
    assert found.languages == {"th": 1, "en": 0, "und": 1, "de": 1}
    assert found.utilities == {"t1": 1, "x1": 1, "d1": 1}
    assert found.positives == ["t1", "x1", "d1"]


def test_where_no_answer_is_right_all_languages_tie_and_nothing_is_positive():
    (found,) = label([question("e1", "d1")], PASSAGES, LANGUAGES, [generator({})])
    assert (found.languages, found.positives) == ({"en": 0, "de": 0}, [])
    assert found.utilities == {"e1": 0, "d1": 0}


def test_positive_is_above_point_8_and_not_at_it():
    # abcdef has four of the five.
    (found,) = label([question("d1", "e1")], PASSAGES, LANGUAGES, [generator({("d1",): "abcdef", ("e1",): "ab"})])
    assert (found.utilities, found.positives) == ({"d1": 0.8}, [])


def test_the_first_five_of_a_language_are_kept():
    names = [f"n{number}" for number in range(7)]
    prompts = []

    def generate(given):
        prompts.extend(given)
        return [Answer(ANSWER, "stop")] * len(given)

    passages, tags = {name: f"<{name}>" for name in names}, dict.fromkeys(names, "en")
    (found,) = label([question(*names)], passages, tags, [generate])
    assert list(found.utilities) == names[:5]
    assert found.candidates == names
    assert [prompt.count("<n") for prompt in prompts] == [5, 1, 1, 1, 1, 1]


def test_questions_do_not_mix_and_one_without_candidates_has_no_labels():
    same = generator({("d1",): ANSWER, ("e1",): "abc"})
    found = label([question("d1", name="a"), question(name="b"), question("e1", name="c")], PASSAGES, LANGUAGES, [same])
    assert [(one.query, one.languages, one.positives) for one in found] == [
        ("a", {"de": 1.0}, ["d1"]),
        ("b", {}, []),
        ("c", {"en": 0.2}, []),
    ]


def test_the_oracles_languages():
    def one(name, language, languages):
        return Labels(name, language, [], languages, {}, [])

    assert oracle_distribution(
        [one("a", "de", {"en": 0.5, "de": 0.5, "th": 0.1}), one("b", "de", {"en": 1.0, "de": 0.2}), one("c", "th", {})]
    ) == {"de": {"en": 0.75, "de": 0.25}}


def test_labels_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "labels.jsonl"
    labels = [Labels("q", "de", ["d1", "e1"], {"de": 1.0}, {"d1": 0.9}, ["d1"]), Labels("r", "und", [], {}, {}, [])]
    write_labels(path, labels)
    assert path.read_text().splitlines()[0] == (
        '{"query":"q","language":"de","candidates":["d1","e1"],"languages":{"de":1.0},"utilities":{"d1":0.9},'
        '"positives":["d1"]}'
    )
    assert read_labels(path) == labels


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "holds no labels (Input data was truncated): write the file anew with rerank label."),
        (
            '{"query": "q"}',
            "holds no labels (Object missing required field `language`): write the file anew with rerank label.",
        ),
        (
            '{"query":"r","language":"de","candidates":[],"languages":{},"utilities":{"e9":1},"positives":[]}',
            "labels 'e9', which is no candidate: correct or remove the line.",
        ),
        (
            '{"query":"q","language":"de","candidates":[],"languages":{},"utilities":{},"positives":[]}',
            "labels the query 'q' a second time: keep one of the two lines.",
        ),
    ],
)
def test_files_that_hold_no_labels(tmp_path, line, expected):
    path = tmp_path / "labels.jsonl"
    write_labels(path, [Labels("q", "de", [], {}, {}, [])])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(UsageError) as caught:
        read_labels(path)
    assert str(caught.value) == f"{path}, line 2, {expected}"


def test_no_file_and_an_empty_one(tmp_path):
    path = tmp_path / "labels.jsonl"
    for expected in (f"There is no file {path}: langshift rerank label writes it.",
                     f"{path} is empty: write it anew with langshift rerank label."):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            read_labels(path)
        assert str(caught.value) == expected
        path.touch()

"""Judgements to and from the Search Relevance Workbench, and clicks as judgements."""

import json

import pytest
from click.testing import CliRunner

from langshift.commands.dataset import dataset as command
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import write_corpus, write_questions
from langshift.evaluate.convert.ubi import LEAST, read_ubi
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.files import json_lines

WORDS = ['rote "Schuhe", groß', "=HYPERLINK(1)", "two\nlines", "tides"]
HOSTILE = "<script>alert(1)</script> \x1b[31m"


def invoked(*arguments):
    return CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)


def refused(*arguments):
    with pytest.raises(UsageError) as caught:
        command.main(list(map(str, arguments)), standalone_mode=False)
    return str(caught.value)


@pytest.fixture
def judged(tmp_path):
    """A dataset of four queries with grades, one of them below 0."""
    folder = tmp_path / "judged"
    folder.mkdir()
    write_corpus(folder, [{"_id": f"d{n}", "title": "", "text": f"text {n} {HOSTILE}"} for n in range(5)])
    queries = [{"_id": f"q-{n}", "text": text, "language": "de"} for n, text in enumerate(WORDS)]
    write_questions(
        folder, queries, [("q-0", "d0", 2), ("q-0", "d1", 0), ("q-1", "d1", 1), ("q-2", "d3", 3), ("q-3", "d4", 1)]
    )
    return folder


def exported(judged, out):
    said = invoked("convert", "beir", judged, out, "--to", "srw")
    assert said.exit_code == 0
    (out / "corpus.jsonl").write_bytes((judged / "corpus.jsonl").read_bytes())
    return " ".join(said.stderr.split())


@pytest.mark.parametrize("left", [".csv", ".json"])
def test_words_ids_and_grades_survive_the_way_to_the_workbench_and_back(judged, tmp_path, left):
    told = exported(judged, tmp_path / "srw")
    assert told.endswith("The workbench's files do not hold documents and languages.")
    for path in list((tmp_path / "srw").iterdir()):
        if path.name != "corpus.jsonl" and path.suffix not in (left, ".ndjson" if left == ".json" else left):
            path.unlink()
    assert invoked("convert", "srw", tmp_path / "srw", tmp_path / "back").exit_code == 0
    before, after = load_dataset(judged), load_dataset(tmp_path / "back")
    assert after.qrels == before.qrels
    assert {one.id: one.text for one in after.queries} == {one.id: one.text for one in before.queries}


def test_judgements_as_the_workbench_takes_them(judged, tmp_path):
    exported(judged, tmp_path / "srw")
    document = json.loads((tmp_path / "srw" / "judgments.json").read_text())
    assert document["type"] == "IMPORT_JUDGMENT"
    assert document["judgmentRatings"][0] == {
        "query": WORDS[0], "ratings": [{"docId": "d0", "rating": "2.0"}, {"docId": "d1", "rating": "0.0"}],
    }  # fmt: skip
    assert (tmp_path / "srw" / "judgments.csv").read_text().splitlines()[-1] == "tides,d4,1.0"
    assert (tmp_path / "srw" / "query-set.ndjson").read_text().splitlines()[
        -1
    ] == '{"queryText":"tides","queryId":"q-3"}'


def test_what_the_workbench_cannot_hold_is_named(judged, tmp_path):
    lines = (judged / "queries.jsonl").read_text() + '{"_id": "again", "text": "tides", "group": "g"}\n'
    (judged / "queries.jsonl").write_text(lines)
    (judged / "answers.jsonl").write_text('{"query": "q-3", "answers": ["the moon", "and the sun"]}\n')
    told = exported(judged, tmp_path / "srw")
    assert told.endswith(
        "The workbench's files do not hold documents, languages, groups and articles and further reference answers. "
        "Left out, since the workbench knows queries by their words: 1 query with the words of an earlier one (again)."
    )
    assert '"referenceAnswer":"the moon"' in (tmp_path / "srw" / "query-set.ndjson").read_text()


HEAD = "query,docid,rating\n"
LISTS = '{"judgmentRatings": [{"query": TEXT, "ratings": [{"docId": ID, "rating": NUMBER}, ...]}, ...]}'


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("csv", "query,doc\n", ", line 1, has the columns query, doc: it must have query, docid and rating."),
        ("csv", f"{HEAD}tides,d0\n", ", line 2, has 2 fields, and the first line has 3: correct or remove the line."),
        ("csv", f"{HEAD},d0,1\n", ", line 2, has no query: correct or remove it."),
        ("csv", f"{HEAD}tides,d0,good\n", ", line 2, has the rating 'good': it must be a number such as 3.0."),
        (
            "csv",
            f"{HEAD}tides,d0,1\ntides,d0,2\n",
            ", line 3, grades 'd0' differently from an earlier one: keep one of them.",
        ),
        ("json", "{}", f" is not a list of judgements: it must be {LISTS}."),
        (
            "csv",
            f"{HEAD}tides,gone,1\n",
            ", line 2, judges the document 'gone', which is not in the corpus: fetch the whole corpus, or remove the "
            "line.",
        ),
    ],
)
def test_judgements_that_cannot_be_used_are_refused_by_their_line(judged, tmp_path, name, content, told):
    source = tmp_path / "srw"
    source.mkdir()
    (source / "corpus.jsonl").write_bytes((judged / "corpus.jsonl").read_bytes())
    (source / f"judgments.{name}").write_text(content)
    assert refused("convert", "srw", source, tmp_path / "out") == f"{source}/judgments.{name}{told}"
    assert not (tmp_path / "out").exists()


def test_ratings_that_are_not_whole_are_rounded_and_counted(judged, tmp_path):
    source = tmp_path / "srw"
    source.mkdir()
    (source / "corpus.jsonl").write_bytes((judged / "corpus.jsonl").read_bytes())
    (source / "judgments.csv").write_text("query,docid,rating\ntides,d0,1.53\ntides,d1,0.2\n")
    assert invoked("convert", "srw", source, tmp_path / "out").exit_code == 0
    assert load_dataset(tmp_path / "out").qrels == {"q1": {"d0": 2, "d1": 0}}


def event(action, query, document, rank, **more):
    attributes = {"object": {"object_id": document}, "position": {"ordinal": rank}}
    return {"action_name": action, "query_id": query, "event_attributes": attributes, "client_id": "anna", **more}


def clicks(folder, corpus, queries, events):
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes((corpus / "corpus.jsonl").read_bytes())
    (folder / "ubi_queries.ndjson").write_bytes(json_lines({"_source": one} for one in queries))
    (folder / "ubi_events.ndjson").write_bytes(json_lines(events))
    return folder


def searches(count, words="tides", **more):
    return [{"query_id": f"{words}-{n}", "user_query": words, "client_id": "anna", **more} for n in range(count)]


def test_clicks_are_divided_by_those_expected_at_their_rank(judged, tmp_path):
    """Of 20 searches d0 stands first and is clicked 10 times, d1 second and 10 times, d2 third, and never.

    Another query shows d3 first, never clicked, d4 second, never clicked: rank 1 has 10 clicks in 40, rank 2 too.
    So d0 and d1 have 10 of 5 expected, a COEC of 2; rank 3 is never clicked, so d2 is not judged.
    """
    events = []
    for n in range(20):
        events += [event("impression", f"tides-{n}", f"d{rank}", rank) for rank in range(3)]
        events += [event("impression", f"floods-{n}", f"d{rank + 3}", rank) for rank in range(2)]
        events += [event("click", f"tides-{n}", f"d{rank}", rank) for rank in range(2) if n % 2] * 2
    source = clicks(tmp_path / "ubi", judged, [*searches(20), *searches(20, "floods")], events)
    judged_by = {one.text: one.judged for one in read_ubi(source, None).questions}
    assert judged_by == {"tides": {"d0": 2, "d1": 2}, "floods": {"d3": 0, "d4": 0}}
    said = invoked("convert", "ubi", source, tmp_path / "out", "--json")
    assert json.loads(said.stdout)["left_out"] == {"passages": 0, "queries": 1, "judgements": 0}
    assert load_dataset(tmp_path / "out").qrels == {"q1": {"d0": 2, "d1": 2}}
    assert "anna" not in "".join(path.read_text() for path in (tmp_path / "out").rglob("*.*"))


def test_a_click_far_down_counts_more_than_one_at_the_top(judged, tmp_path):
    """Everybody clicks what is first, one in ten what is second; only for tides the second is clicked as often."""
    events = []
    for words, low in (("tides", 10), ("floods", 1), ("storms", 1)):
        for n in range(20):
            events += [event("impression", f"{words}-{n}", f"d{rank}", rank + 1) for rank in range(2)]
            events += [event("click", f"{words}-{n}", "d0", 1)] * (n < 10)
            events += [event("click", f"{words}-{n}", "d1", 2)] * (n < low)
    queries = [one for words in ("tides", "floods", "storms") for one in searches(20, words)]
    found = {
        one.text: one.judged for one in read_ubi(clicks(tmp_path / "ubi", judged, queries, events), None).questions
    }
    assert found == {"tides": {"d0": 1, "d1": 2}, "floods": {"d0": 1, "d1": 0}, "storms": {"d0": 1, "d1": 0}}


@pytest.mark.parametrize(("shown", "judges"), [(LEAST, True), (LEAST - 1, False)])
def test_what_was_shown_too_rarely_is_not_judged(judged, tmp_path, shown, judges):
    queries = searches(shown, query_response_hit_ids=["d0", "d1"])
    events = [event("click", f"tides-{n}", "d0", 7) for n in range(shown)]
    source = clicks(tmp_path / "ubi", judged, queries, events)
    if judges:
        assert [one.judged for one in read_ubi(source, None).questions] == [{"d0": 1}]
    else:
        assert refused("convert", "ubi", source, tmp_path / "out") == (
            f"{source} has no document that was shown 10 times for the same query, so clicks judge none: give a longer "
            "log."
        )


def test_events_that_cannot_be_used(judged, tmp_path):
    source = clicks(tmp_path / "ubi", judged, searches(1), [event("click", "tides-0", "d0", -1)])
    assert refused("convert", "ubi", source, tmp_path / "out") == (
        f"{source}/ubi_events.ndjson, line 1, has the position -1: it must be a whole number from 0."
    )
    (source / "ubi_events.ndjson").unlink()
    assert refused("convert", "ubi", source, tmp_path / "out") == (
        f"{source} has no ubi_events.ndjson: export the index ubi_events, a document on each line."
    )

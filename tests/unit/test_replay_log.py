"""Logs of queries, and the options that go with them."""

import json
import sys

import pytest

from langshift.commands.replay import replay
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery
from langshift.evaluate.datasets.logs import FORMS, QueryLog
from langshift.evaluate.replay import plan
from langshift.evaluate.replay.plan import LoggedQuery, merged, read_log


def log(folder, *lines):
    path = folder / "log.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def refused(path):
    with pytest.raises(UsageError) as caught:
        read_log(QueryLog(path))
    return str(caught.value)


def test_times_in_every_form_and_any_order(tmp_path):
    path = log(
        tmp_path,
        {"timestamp": "2026-03-01T08:30:02.5Z", "text": "third", "language": "zh-TW", "_id": "a"},
        {"timestamp": "2026-03-01T09:30:00+01:00", "text": "first"},
        {"timestamp": 1772353801, "text": "second", "language": "und"},
        "",
        {"timestamp": "2026-03-01T08:30:03", "text": "fourth, in UTC"},
    )
    found = read_log(QueryLog(path))
    assert [time - 1772353800 for time, _ in found] == [0, 1, 2.5, 3]
    assert [query for _, query in found] == [
        DatasetQuery("2", "first", None, None),
        DatasetQuery("3", "second", None, None),
        DatasetQuery("a", "third", "zh", None, tag="zh-TW"),
        DatasetQuery("5", "fourth, in UTC", None, None),
    ]


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        (1714557600.0, 1714557600.5, 0.5),
        (1714557600000, 1714557600500, 0.5),
        (1714557600000000, 1714557600500000, 0.5),
        (1714557600000000000, 1714557600500000000, 0.5),
        (1714557600, 1714557600500, 0.5),  # another unit in each line
        ("1714557600", "1714557600500.0", 0.5),
        ("2024-05-01T10:00:00Z", 1714557600500, 0.5),
        ("2024-05-01T10:00:00.123456789z", "2024-05-01T12:00:00,623456789+02:00", 0.5),
        ("2024-05-01 10:00", "20240502T100000" if sys.version_info >= (3, 11) else "2024-05-02 10:00", 86400),
        (0, 2.5, 2.5),
        ("2024-05-01T10:00:00,250+0000", "2024-05-01T12:00:01+0200", 0.75),
    ],
)
def test_each_time_tells_its_unit(tmp_path, first, second, seconds):
    path = log(tmp_path, {"timestamp": first, "text": "x"}, {"timestamp": second, "text": "y"})
    one, other = read_log(QueryLog(path))
    assert other.time - one.time == pytest.approx(seconds, abs=1e-5)


@pytest.mark.parametrize(
    "time", [1e11, 63_850_154_400, 133_590_312_000_000_000, 1e300, -1, "-1714557600", "1e9", "", [1]]
)
def test_a_number_that_is_a_time_in_no_unit_is_refused(tmp_path, time):
    path = log(tmp_path, {"timestamp": 0, "text": "x"}, {"timestamp": time, "text": "y"})
    told = (
        f"{path}, line 2, has the timestamp {time!r}: give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970."
    )
    assert refused(path) == told


@pytest.mark.parametrize(
    ("second", "speed", "days"),
    [(1714557600000, 1.0, "19,844"), ("2024-05-01", 1000.0, "20"), (8 * 86_400, 1.0, "8"), (86_400, 0.1, "10")],
)
def test_what_would_be_sent_after_more_than_a_week_is_named(tmp_path, second, speed, days):
    path = log(tmp_path, {"timestamp": second, "text": "late"}, {"timestamp": 0, "text": "early"})
    with pytest.raises(UsageError) as caught:
        read_log(QueryLog(path), speed)
    assert str(caught.value) == (
        f"{path}, line 1, would be sent {days} days after line 2, and a replay may last 7: correct the timestamp, "
        "split the log, or raise --speed."
    )
    assert len(read_log(QueryLog(path), 1e6)) == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"text": "x"}, "has the timestamp None: give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970."),
        (
            {"timestamp": True, "text": "x"},
            "has the timestamp True: give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970.",
        ),
        (
            {"timestamp": "noon", "text": "x"},
            "has the timestamp 'noon': give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970.",
        ),
        ({"timestamp": 1, "text": " "}, "has no text: give the query one, or remove the line."),
        (
            {"timestamp": 1, "words": "x"},
            "has no text: name the field with the query by --query-field (fields: timestamp, words).",
        ),
        (
            {"timestamp": 1, "text": "x", "_id": "q"},
            "repeats the _id 'q' of an earlier line: every _id must be unique.",
        ),
        (
            {"timestamp": 1, "text": "x", "language": "klingonish"},
            "has the language 'klingonish', which is not a valid tag: use a tag such as en or zh.",
        ),
        ("[]", "is not a JSON object: correct or remove the line."),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path, line, told):
    path = log(tmp_path, {"timestamp": 0, "text": "good", "_id": "q"}, line)
    assert refused(path) == f"{path}, line 2, {told}"


def test_no_file_no_query_and_too_many(tmp_path, monkeypatch):
    missing = tmp_path / "none.jsonl"
    assert refused(missing) == f"There is no file {missing}: give a log, which is {FORMS}."
    path = log(tmp_path)
    assert refused(path) == f"{path} is empty: give a log, which is {FORMS}."
    monkeypatch.setattr(plan, "MOST_QUERIES", 2)
    path = log(tmp_path, *({"timestamp": n, "text": "x"} for n in range(3)))
    assert refused(path) == f"{path} has more than 2 queries: split it, and replay the parts in turn."


def test_a_logs_query_takes_what_the_dataset_knows_of_its_id(tmp_path):
    dataset = Dataset(
        tmp_path, {}, (DatasetQuery("q1", "old", "en", "g", "a"), DatasetQuery("q2", "never asked", "en", None)), {}
    )
    asked = [
        LoggedQuery(1.0, DatasetQuery("q1", "new", None, None)),
        LoggedQuery(2.0, DatasetQuery("q9", "other", "de", None)),
    ]
    assert merged(asked, dataset) == [
        DatasetQuery("q1", "new", "en", "g", "a"),
        DatasetQuery("q9", "other", "de", None),
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["D", "--index", "a", "--index", "a"], "--index names an index twice: the indices must be unique."),
        (["D", "--index", "a", "--speed", "2"], "--speed only applies to a log: give one with --queries."),
        (["D", "--index", "a", "--time-field", "t"], "--time-field is about a log: give one with --queries."),
        (["D", "--index", "a", "--redact", "t"], "--redact is about a log: give one with --queries."),
        (["D", "--index", "a", "--resume"], "--resume continues a replay from its folder: name it with --output."),
        (["--index", "a"], "There is nothing to replay: name a DATASET, a log with --queries, or both."),
    ],
)
def test_options_that_do_not_go_together(options, told):
    with pytest.raises(UsageError) as caught:
        replay.main(options, standalone_mode=False)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("line", "options", "told"),
    [
        ({"text": "x"}, ["--speed", "2"], "{} has no times for --speed: name their field by --time-field."),
        (
            {"timestamp": 1, "text": "x"},
            ["--rate", "1"],
            "--rate and the times of {} both determine when queries are sent: leave --rate out.",
        ),
    ],
)
def test_times_of_a_log_and_options_go_together(tmp_path, line, options, told):
    path = log(tmp_path, line)
    with pytest.raises(UsageError) as caught:
        replay.main(["--queries", str(path), "--index", "a", *options], standalone_mode=False)
    assert str(caught.value) == told.format(path)


def test_a_log_without_times_is_in_the_order_of_its_lines(tmp_path):
    assert read_log(QueryLog(log(tmp_path, {"text": "b"}, {"text": "a"}))) == [
        LoggedQuery(None, DatasetQuery("1", "b", None, None)),
        LoggedQuery(None, DatasetQuery("2", "a", None, None)),
    ]


def test_a_query_that_no_search_takes_is_refused_by_its_line(tmp_path):
    path = log(tmp_path, {"text": "fine"}, {"text": "x" * 1_000_000})
    assert refused(path) == (
        f"{path}, line 2, has a query of 1,000,000 characters, and a search takes at most 10,000: shorten or remove "
        "the line."
    )


def test_measures_need_judgements(tmp_path):
    path = log(tmp_path, {"timestamp": 1, "text": "x"})
    with pytest.raises(UsageError) as caught:
        replay.main(["--queries", str(path), "--index", "a", "--measures", "nDCG@20"], standalone_mode=False)
    assert str(caught.value) == "--measures needs judgements: name the DATASET that the log's queries are from."

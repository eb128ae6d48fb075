"""Replays of the console, as far as they need no cluster: what is on disk, and who is alive."""

import json
import subprocess
import sys
import time

import orjson
import psutil
import pytest

from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.demo import FOLDER
from langshift.retrieval.settings import USUAL, SearchSettings
from langshift.web.evaluations.jobs import AnsweredQueries, Job, Jobs, Process, read_job, write_job
from langshift.web.evaluations.results import settings_from_form


def line(query, *, reached=True):
    return orjson.dumps({"query": query, "ranking": [], "reached": reached}) + b"\n"


@pytest.fixture
def results(tmp_path):
    (tmp_path / "news-1").mkdir()
    return tmp_path


@pytest.fixture
def replaying(results):
    """A process that looks like the replay of ``news-1``, and what a console wrote of it."""
    folder = results / "news-1"
    command = [sys.executable, "-c", "import time; time.sleep(600)", str(folder)]
    with subprocess.Popen(command, start_new_session=True) as process:
        # For a moment a new process has no command yet.
        while str(folder) not in psutil.Process(process.pid).cmdline():
            time.sleep(0.01)
        write_job(folder, Job("demo", "news", "dense", 3, time.time(), Process.of(psutil.Process(process.pid))))
        # Only what was begun is kept when it ends.
        (folder / "unfinished.json").write_text("{}")
        yield process
        process.kill()


def test_a_journal_is_counted_on_from_where_it_was_read_to(tmp_path):
    path = tmp_path / "per-query.jsonl"
    answered = AnsweredQueries(path)
    assert answered.count() == 0
    path.write_bytes(line("a") + line("b", reached=False) + b"damaged\n" + line("c")[:-5])
    assert answered.count() == 1

    path.write_bytes(path.read_bytes() + line("c")[-5:] + line("b"))
    assert answered.count() == 3

    # Begun anew.
    path.write_bytes(line("d"))
    assert answered.count() == 1


def test_a_form_is_a_setting():
    assert settings_from_form({}) == USUAL
    assert settings_from_form({"mode": "lexical", "prefer": "", "fusion": "rrf", "weight": "0.5"}) == SearchSettings(
        mode="lexical"
    )
    assert settings_from_form(
        {"mode": "hybrid", "prefer": "-.1", "fusion": "rrf", "weight": "0.5", "one": "1"}
    ) == SearchSettings("hybrid", -0.1, "rrf", 0.5, one_per_group=True)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (
            {"mode": "magic"},
            "There is no search mode 'magic': choose one of auto, dense, lexical, hybrid, balanced, anchored.",
        ),
        ({"prefer": "much"}, "Language preference is 'much', but it must be a number from 0 to 2."),
        ({"prefer": "nan"}, "Language preference is 'nan', but it must be a number from 0 to 2."),
        ({"prefer": "--1"}, "Language preference is '-1', but it must be a number from 0 to 2."),
        ({"mode": "hybrid", "weight": "2"}, "Lexical weight is '2', but it must be a number from 0 to 1."),
        ({"mode": "hybrid", "fusion": "cold"}, "There is no fusion 'cold': choose one of min-max, rrf."),
    ],
)
def test_a_form_that_cannot_be_used_is_a_sentence(form, sentence):
    with pytest.raises(UsageError) as refused:
        settings_from_form(form)
    assert str(refused.value) == sentence


def test_only_datasets_of_the_console_are_replayed(tmp_path):
    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "queries.jsonl").write_text("{}")
    (strange / "dataset.json").write_text('{"judged": "badly"}')
    results = tmp_path / "results"
    jobs = Jobs(results, {"demo": FOLDER, "gone": tmp_path / "gone", "strange": strange})

    for name, sentence in (
        ("strange", f"{strange}/dataset.json cannot be read: it must be "),
        ("/etc", "There is no dataset '/etc': choose one of demo, gone, strange."),
        (
            "gone",
            f"{tmp_path}/gone/queries.jsonl cannot be read (No such file or directory): a dataset folder contains ",
        ),
    ):
        with pytest.raises(UsageError) as refused:
            jobs.start(name, "news", USUAL)
        assert str(refused.value).startswith(sentence)
    assert list(results.iterdir()) == []


def test_a_console_that_was_started_again_knows_the_replay_that_lives(results, replaying):
    jobs = Jobs(results, {"demo": FOLDER})
    (results / "news-1" / "per-query.jsonl").write_bytes(line("a") + line("b"))

    running = jobs.running()
    assert running is not None
    assert (running.name, running.answered, running.text) == ("news-1", 2, "2 of 3 queries")
    with pytest.raises(UsageError, match=r"^The replay news-1 is running: wait until it is done, or cancel it.$"):
        jobs.start("demo", "news", USUAL)

    jobs.cancel("news-1")

    assert not psutil.pid_exists(replaying.pid)
    assert jobs.running() is None
    assert jobs.last_message == (
        "The replay news-1 was interrupted; 2 of 3 queries are answered and saved. It was cancelled."
    )
    assert jobs.why(results / "news-1") == "It was cancelled."
    with pytest.raises(UsageError, match=r"^The replay 'news-1' is no longer running: there is nothing to cancel.$"):
        jobs.cancel("news-1")


def test_a_console_that_closes_ends_the_replay_of_one_that_is_gone(results, replaying):
    Jobs(results, {}).close()

    assert not psutil.pid_exists(replaying.pid)
    job = read_job(results / "news-1")
    assert job is not None
    assert job.ended == "The console was closed."


def test_the_replay_of_a_console_that_lives_is_left_alone(results, replaying):
    folder = results / "news-1"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as console:
        job = orjson.loads((folder / "console.json").read_bytes())
        started = psutil.Process(console.pid).create_time()
        (folder / "console.json").write_bytes(orjson.dumps(job | {"console": {"pid": console.pid, "started": started}}))
        Jobs(results, {}).close()
        console.kill()

    assert replaying.poll() is None


def test_a_process_that_has_the_number_of_an_earlier_one_is_nobody_s(results, replaying):
    folder = results / "news-1"
    job = orjson.loads((folder / "console.json").read_bytes())
    for process in (
        {"pid": replaying.pid, "started": job["process"]["started"] - 60},
        {"pid": 2**31 - 1, "started": 0.0},
        {"pid": 2**70, "started": 0.0},
        {"pid": -1, "started": 0.0},
        # A living process, but none that replays here.
        {"pid": psutil.Process().pid, "started": psutil.Process().create_time()},
    ):
        (folder / "console.json").write_bytes(json.dumps(job | {"process": process}).encode())
        assert Jobs(results, {}).running() is None
    assert replaying.poll() is None


@pytest.mark.parametrize("name", ["", ".", "..", "../news-1", "news-1/..", "/", "a\0", "missing", "link", "x" * 300])
def test_only_a_folder_of_the_console_s_own_is_gone_on_with(tmp_path, name):
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "news-1").mkdir()
    write_job(tmp_path / "news-1", Job("demo", "news", "dense", 3, 0.0))
    (tmp_path / "news-1" / "unfinished.json").write_text("{}")
    (results / "link").symlink_to(tmp_path / "news-1")

    with pytest.raises(UsageError) as refused:
        Jobs(results, {"demo": FOLDER}).resume(name)
    assert str(refused.value) == f"{name!r} is not an interrupted replay of this console: start a new one."


def test_a_setting_that_somebody_wrote_into_the_file_is_no_command(results):
    folder = results / "news-1"
    (folder / "unfinished.json").write_text("{}")
    write_job(folder, Job("demo", "news", "dense --output /tmp/elsewhere", 3, 0.0))

    with pytest.raises(LangshiftError, match=r"^The setting 'dense --output /tmp/elsewhere' cannot be used: "):
        Jobs(results, {"demo": FOLDER}).resume("news-1")


def test_the_command_measures_what_the_judgements_allow(tmp_path):
    job = Job("demo", "news", "hybrid --spread 0.02", 3, 0.0)
    usual = job.command(tmp_path, tmp_path / "out", resume=False)
    assert usual[3:] == [
        *("evaluate", "replay", str(tmp_path), "--index", "news", "--mode", "hybrid", "--spread", "0.02"),
        *("--measures", "nDCG@20 R@20 TLR@20 SLR@20 MostShown@20 LPR", "--output", str(tmp_path / "out"), "--json"),
    ]

    (tmp_path / "dataset.json").write_text('{"judged": "per-language"}')
    apart = job.command(tmp_path, tmp_path / "out", resume=True)
    assert apart[apart.index("--measures") + 1] == "nDCG@20 R@20 SLR@20 MostShown@20"
    assert apart[-1] == "--resume"

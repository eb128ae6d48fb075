"""``langshift dead-letters list`` and, as far as no cluster is needed, ``ingest --dead-letters``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from langshift.commands.dead_letters import dead_letters
from langshift.commands.ingest import ingest
from langshift.errors import UsageError
from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters, grouped, kind_of
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.bulk.writer import ActionResult, BulkAction
from langshift.ingest.dead_letter_replay import Verdicts

LETTER = DeadLetter(
    b'{"text": "a"}', 3, "d3", "mapper_parsing_exception", "no", "write", "2026-01-02T03:04:05+00:00", "c.jsonl", 1003
)


def letter(line: int, **changed: Any) -> DeadLetter:
    return LETTER._replace(line=line, id=f"d{line}", version=1000 + line)._replace(**changed)


def unparsed(line: int, value: str) -> DeadLetter:
    reason = (
        f"failed to parse field [year] of type [long] in document with id 'd{line}'. "
        f"Preview of field's value: '{value}' (For input string: \"{value}\")"
    )
    return letter(line, reason=reason)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANGSHIFT_HOME", str(tmp_path))
    # Whoever asks for a cluster gets none.
    monkeypatch.setenv("OPENSEARCH_URL", "http://127.0.0.1:9")
    return tmp_path


def place(home: Path, name: str, *letters: DeadLetter, cluster: str = "c1") -> Path:
    path = LoadWorkspace(home / "loads" / cluster / name, name).dead_letters
    DeadLetters(path).add(letters)
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(ingest if "--dead-letters" in arguments else dead_letters, arguments)


def words(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_like_goes_with_like_the_most_frequent_first(home: Path) -> None:
    bad = [letter(n, id=None, type="invalid_json", stage="read", reason=f"not valid JSON (at {n}).") for n in (1, 2)]
    path = place(home, "news", *bad, *(unparsed(n, f"it's {n}") for n in range(5, 1205)))
    done = run("list")
    assert done.exit_code == 0
    assert words(done.stdout) == [
        "count stage type reason example",
        "1,200 write mapper_parsing_exception failed to parse field [year] of type [long] in document with id 'd5'. "
        "Preview of field's value: 'it's 5' (For input string: \"it's 5\") c.jsonl, line 5",
        "2 read invalid_json not valid JSON (at 1). c.jsonl, line 1",
        f"1,202 dead letters of news in {path}",
        "Repair what is wrong, then send them again: `langshift ingest --dead-letters --index news`.",
    ]


def test_machines_get_one_json_document(home: Path) -> None:
    path = place(home, "news", unparsed(5, "MMXX"), unparsed(6, "soon"))
    done = run("list", "--index", "news", "--json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {
        "total": 2,
        "groups": [
            {
                "type": "mapper_parsing_exception",
                "reason": kind_of(unparsed(5, "MMXX")),
                "stage": "write",
                "count": 2,
                "example": {
                    "corpus": "c.jsonl",
                    "line": 5,
                    "_id": "d5",
                    "reason": "failed to parse field [year] of type [long] in document with id 'd5'. "
                    "Preview of field's value: 'MMXX' (For input string: \"MMXX\")",
                },
            }
        ],
        "files": [str(path)],
    }


def test_the_letters_of_every_index_and_cluster_are_listed_unless_one_is_named(home: Path) -> None:
    one, two = place(home, "news", letter(1)), place(home, "news", letter(2), letter(3), cluster="c2")
    other = place(home, "blogs", letter(4))
    assert json.loads(run("list", "--json").stdout)["files"] == [str(other), str(one), str(two)]
    named = json.loads(run("list", "--index", "news", "--json").stdout)
    assert (named["total"], named["files"]) == (3, [str(one), str(two)])
    assert words(run("list").stdout)[-4:] == [
        f"1 dead letter of blogs in {other}",
        f"1 dead letter of news in {one}",
        f"2 dead letters of news in {two}",
        "Repair what is wrong, then send them again: `langshift ingest --dead-letters --index blogs`, "
        "`langshift ingest --dead-letters --index news`.",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list"], "There are no dead letters.\n"),
        (["list", "--index", "news"], "There are no dead letters of news.\n"),
        (["--dead-letters", "--index", "news"], "There are no dead letters of news.\n"),
        (
            ["list", "--index", "newz"],
            "There are no dead letters of newz: nothing was loaded into an index of that name from here.\n",
        ),
    ],
)
def test_none_is_no_error_and_needs_no_cluster(home: Path, arguments: list[str], said: str) -> None:
    place(home, "news").parent.mkdir(parents=True)
    place(home, "blogs", *([letter(1)] if "--index" in arguments else []))
    done = run(*arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.usefixtures("home")
def test_none_in_json() -> None:
    assert json.loads(run("list", "--json").stdout) == {"total": 0, "groups": [], "files": []}
    counts = {"replayed": 0, "indexed": 0, "superseded": 0, "left": 0}
    assert json.loads(run("--dead-letters", "--index", "news", "--json").stdout) == counts


def test_what_a_document_holds_gives_no_commands_to_the_terminal(home: Path) -> None:
    place(home, "news", letter(1, type="a\x1b[2Jb", reason="first\nsecond\x1b]0;title\x07[red]", corpus="c\x1b.jsonl"))
    done = run("list")
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert words(done.stdout)[1] == "1 write a [2Jb first second ]0;title [red] c .jsonl, line 1"


def test_a_damaged_file_is_named_with_the_line(home: Path) -> None:
    path = place(home, "news", letter(1))
    path.write_bytes(path.read_bytes() + b"what is this\n")
    done = run("list")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(f"{path}, line 2, is not a valid dead letter (")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("command", ["list", "--dead-letters"])
def test_a_name_that_no_index_can_have_is_refused(command: str) -> None:
    done = run(command, "--index", "../news")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("'../news' is not a valid index name: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["corpus.jsonl"], "--dead-letters sends again what a load could not index: leave CORPUS out."),
        (
            ["--if-exists", "append", "--resume"],
            "--dead-letters does not go with --if-exists and --resume: leave one or the other out.",
        ),
        (
            ["--text-field", "body", "--alpha", "1"],
            "--dead-letters does not go with --text-field and --alpha: leave one or the other out.",
        ),
    ],
)
def test_what_is_about_a_load_does_not_go_with_dead_letters(given: list[str], said: str) -> None:
    done = run("--dead-letters", "--index", "news", *given)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == said


def test_a_load_needs_a_corpus_or_dead_letters() -> None:
    done = CliRunner().invoke(ingest, ["--index", "news"])
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (2, "Error: Missing argument 'CORPUS...'.")


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("the field 'title' must be a string, but is a number.", None),
        (
            "failed to parse date field [soon] with format [strict_date||epoch_millis]",
            "failed to parse date field ... with format [strict_date||epoch_millis]",
        ),
        ("Failed to parse value [ja] as only [true] or [false]", "Failed to parse value ... as only [true] or [false]"),
        ("the field name 'a.b' is reserved for langshift; rename it.", None),
        ('immense term in field="body" (32766)', 'immense term in field="body" (...)'),
        ("Limit of total fields [1000] has been exceeded", "Limit of total fields [...] has been exceeded"),
        ("at character 17: line 3, column 4.5e-7", "at character ...: line ..., column ..."),
        ("mapping set to strict, dynamic introduction of [foo]", None),
        ("the shard 7 of d9 says d9x and d90", "the shard ... of ... says d9x and d90"),
        ("numbers -1, 2 and [1:2:3]", "numbers ... and [...]"),
        ("no value for v2 of int64", None),
    ],
)
def test_what_is_a_single_documents_is_taken_out_of_a_reason(reason: str, kind: str | None) -> None:
    assert kind_of(letter(9, reason=reason)) == (reason if kind is None else kind)


def test_a_long_reason_is_cut_in_the_list() -> None:
    (group,) = grouped([letter(1, reason="word " * 100), letter(2, reason="word " * 100 + "end")])
    assert group.count == 2
    assert group.reason == "word " * 60 + " ..."


def test_stages_and_types_are_told_apart() -> None:
    letters = [letter(1), letter(2, stage="read"), letter(3, type="other"), letter(4)]
    assert [(group.type, group.stage, group.count) for group in grouped(letters)] == [
        ("mapper_parsing_exception", "write", 2),
        ("mapper_parsing_exception", "read", 1),
        ("other", "write", 1),
    ]


def test_a_letter_goes_only_when_its_document_was_confirmed() -> None:
    verdicts = Verdicts()
    done, superseded, dead, refused, never_sent = (letter(n) for n in range(5))
    items = [
        BulkAction(one.version or 0, f"new{one.line}", "index", b"", one.document) for one in (done, superseded, dead)
    ]
    unread = BulkAction(refused.version or 0, "", "index", b"", b"")
    verdicts.settle(
        [
            ActionResult(items[0], "done", "created"),
            ActionResult(items[1], "superseded"),
            ActionResult(items[2], "dead", "", "other_exception", "worse"),
            ActionResult(unread, "dead", "", "invalid_json", "still none", "read"),
        ]
    )
    assert verdicts.revised(done) is verdicts.revised(superseded) is None
    assert verdicts.revised(never_sent) is never_sent
    again, still = verdicts.revised(dead), verdicts.revised(refused)
    assert again is not None
    assert still is not None
    expected = dead._replace(id="new2", type="other_exception", reason="worse", time=again.time)
    assert again == expected
    assert still == refused._replace(type="invalid_json", reason="still none", stage="read", time=still.time)
    assert again.time > dead.time
    assert (verdicts.indexed, verdicts.superseded, verdicts.wrong) == (1, 1, 2)

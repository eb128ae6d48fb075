"""Whatever data holds, a terminal shows it: no channel lets a command, a style or a second line through."""

import json
import re

import click
import pytest
from command_line import langshift
from hostile import HOSTILE, require_harmless, terminal

from langshift import cli, output
from langshift.errors import ClusterError


def progress(text):
    with output.progress() as bars:
        bars.add_task(text, total=2, rate=text)
        bars.refresh()


def traced(text):
    try:
        raise KeyError(text)
    except KeyError as error:
        cli._unexpected(error)


CHANNELS = {
    "note": output.note,
    "line": output.line,
    "line below a gap": lambda text: output.line(f"\n{text}"),
    "heading": output.heading,
    "warning": lambda text: output.warn([text]),
    "title": lambda text: output.table(text, ["one"], [["1"]]),
    "head": lambda text: output.table(None, [text, "two"], [["1", "2"]]),
    "cell": lambda text: output.table(None, ["one", "two"], [[text, "2"]]),
    "prose": lambda text: output.table(None, ["one", "two"], [[text, "2"]], prose={"one"}),
    "print": lambda text: output.out.print(text),
    "progress": progress,
    "traceback": traced,
    "click": lambda text: cli._show(click.BadParameter(text)),
}


@pytest.mark.parametrize("styled", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
@pytest.mark.parametrize("channel", CHANNELS)
def test_no_channel_lets_a_command_through(channel, text, styled, monkeypatch):
    monkeypatch.setenv("LANGSHIFT_DEBUG", "1")
    with terminal(styled=styled) as written:
        CHANNELS[channel](text)
    shown = written.getvalue()
    require_harmless(shown, styled=styled)
    if channel != "progress" or styled:
        assert "a" in shown
    if channel in ("note", "line", "heading", "warning", "click"):
        assert "\n" not in shown.rstrip("\n")
    if text == HOSTILE["markup"] and channel not in ("progress", "traceback"):
        assert text in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "⚠" not in shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_json_reads_as_before_and_commands_nothing(text, capsysbinary):
    output.emit_json({"text": text, text: 1})
    shown = capsysbinary.readouterr().out.decode()
    require_harmless(shown)
    assert json.loads(shown) == {"text": text, text: 1}


def test_what_people_write_with_joiners_and_marks_stays_as_it_is():
    text = "می‌خواهم क्‍ष \u200fשלום 日本　語 👩‍👩‍👧 café\u00a0!"
    with terminal(styled=False) as written:
        output.line(text)
        output.note(text)
        output.table(None, ["one"], [[text]])
    assert written.getvalue().count(text) == 3


@pytest.mark.parametrize(
    "text", [text for text in HOSTILE.values() if "\0" not in text], ids=lambda text: repr(text)[:30]
)
@pytest.mark.parametrize(
    "command",
    [
        ("vectors", "check", "{}"),
        ("dataset", "check", "{}"),
        ("compare", "{}", "{}"),
        ("evaluate", "compare", "{}", "{}"),
        ("ingest", "{}", "--index", "news"),
        ("ingest", "x.jsonl", "--index", "{}"),
        ("search", "{}", "words"),
        ("search", "news", "words", "--language", "{}"),
        ("search", "news", "words", "--mode", "{}"),
        ("index", "describe", "{}"),
        ("{}",),
        ("index", "{}"),
        ("index", "list", "--{}"),
        ("retune", "news", "--alpha", "{}"),
        ("dead-letters", "list", "--index", "{}"),
        ("serve", "--host", "{}"),
    ],
    ids=" ".join,
)
def test_what_is_refused_is_told_without_a_command(command, text, tmp_path):
    arguments = [part.replace("{}", text) for part in command]
    done = langshift(*arguments, LANGSHIFT_HOME=str(tmp_path), OPENSEARCH_URL="http://127.0.0.1:1")
    assert done.returncode in (0, 1, 2)
    for shown in (done.stdout, done.stderr):
        require_harmless(shown)
    assert "unexpected error" not in done.stderr, done.stderr
    assert sum(line.startswith("Error: ") for line in done.stderr.splitlines()) <= 1


def test_the_end_of_a_log_stands_below_the_sentence(monkeypatch):
    def fail(**_):
        raise ClusterError("OpenSearch exited; the end of its log:", log=["one\x1b[2J", "two"])

    monkeypatch.setattr(cli, "root", fail)
    with terminal(styled=False) as written, pytest.raises(SystemExit):
        cli.main()
    assert written.getvalue() == "Error: OpenSearch exited; the end of its log:\none\\x1b[2J\ntwo\n"

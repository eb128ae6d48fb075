"""What langshift is with the laboratory and without: its commands, formats and figures."""

import pytest
from command_line import langshift, refusal

from langshift import extensions
from langshift.cli import COMMANDS
from langshift.extensions import FORMATS, LAB

REMEDY = "belongs to langshift-lab, which is not installed: pip install langshift-lab."


@pytest.fixture
def alone(monkeypatch):
    """Langshift without the laboratory."""
    monkeypatch.setattr(extensions, "entry_points", lambda group: ())  # noqa: ARG005 - called by its name


@pytest.mark.parametrize("group", LAB)
def test_the_names_are_those_that_the_laboratory_has(group):
    found = extensions.found(group)
    assert {name for name in found if name not in ("rerank fit", "rerank label")} == set(LAB[group])
    assert all(entry.load() for entry in found.values())


@pytest.mark.parametrize("words", LAB[extensions.COMMANDS])
@pytest.mark.parametrize("more", [(), ("--help",), ("results", "--alpha", "1")])
@pytest.mark.usefixtures("alone")
def test_without_the_laboratory_its_commands_say_how_it_is_installed(words, more):
    done = langshift(*words.split(), *more)
    assert (done.returncode, refusal(done)) == (2, f"langshift {words} {REMEDY}")


@pytest.mark.parametrize("name", LAB[FORMATS])
@pytest.mark.parametrize("more", [(), ("--articles",)])
@pytest.mark.usefixtures("alone")
def test_without_the_laboratory_its_formats_say_how_it_is_installed(name, more, tmp_path):
    done = langshift("dataset", "convert", name, tmp_path, tmp_path / "out", *more)
    assert (done.returncode, refusal(done)) == (2, f"langshift dataset convert {name} {REMEDY}")
    done = langshift("dataset", "convert", "--keep", 2, name, tmp_path, tmp_path / "out")
    assert (done.returncode, refusal(done)) == (2, f"langshift dataset convert {name} {REMEDY}")


@pytest.mark.usefixtures("alone")
def test_without_the_laboratory_no_figures_are_written_for_mteb(tmp_path):
    done = langshift("evaluate", "compare", tmp_path, "--mteb", tmp_path / "mteb.json")
    assert (done.returncode, refusal(done)) == (2, f"--mteb {REMEDY}")


@pytest.mark.usefixtures("alone")
def test_without_the_laboratory_titles_ask_and_no_model_writes_questions(tmp_path):
    done = langshift("dataset", "make", "news", tmp_path / "own", "--generator", "http:http://localhost:1#model")
    assert (done.returncode, refusal(done)) == (2, f"--generator {REMEDY}")
    assert listed("dataset") == ["check", "convert", "make"]


def listed(*words):
    """The commands in a group's help."""
    done = langshift(*words, "--help")
    assert done.returncode == 0
    return [line.split()[0] for line in done.stdout.partition("\nCommands:\n")[2].splitlines() if line[2:3].strip()]


@pytest.mark.usefixtures("alone")
def test_without_the_laboratory_help_lists_what_there_is():
    assert listed() == list(COMMANDS)
    assert listed("evaluate") == ["compare", "replay"]
    assert "tune" not in listed("vectors")
    formats = langshift("dataset", "convert", "--help").stdout
    assert "  beir  " in formats
    assert not any(name in formats for name in LAB[FORMATS])
    said = langshift("evaluate", "bord").stderr
    assert "No such command 'bord'." in said


def test_with_the_laboratory_help_lists_its_commands_too():
    assert listed() == [*COMMANDS, "rerank"]
    assert listed("evaluate") == ["board", "compare", "offline", "rag", "replay"]
    assert listed("rerank") == ["fit", "label"]
    formats = langshift("dataset", "convert", "--help").stdout
    assert all(f"  {name}  " in formats for name in LAB[FORMATS])
    assert "Did you mean 'board'?" in langshift("evaluate", "bord").stderr

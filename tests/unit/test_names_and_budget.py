"""The checks of names and size that `make lint` runs find what they are there for."""

import json

import click
import pytest
import source_budget
from check_names import defined_twice, forbidden
from documents import ROOT
from plant_faults import FAULTS
from source_budget import code_lines, main, may_not_rise, measure, measure_commands, modules_of

SOURCE = '''"""A module."""

# A comment.
from json import dumps


class Ledger:
    """A class."""

    def add(self, told, *, size=1):
        """Add.

        More.
        """
        return dumps(
            told,
        )


def left_behind(): ...
'''


@pytest.fixture
def tree(tmp_path):
    for place in ("ingest/ledger.py", "plugin/making.py"):
        path = tmp_path / place
        path.parent.mkdir()
        path.write_text(SOURCE if path.stem == "ledger" else "class Ledger: ...\nclass GivenUp: ...\ndef away(): ...\n")
    (tmp_path / "ingest" / "__init__.py").touch()
    return tmp_path


def test_a_class_name_that_stands_for_two_is_found(tree):
    assert defined_twice(tree) == ["class Ledger in plugin/making.py:1, ingest/ledger.py:7"]


def test_words_of_the_old_vocabulary_are_found_whole_and_as_parts(tree):
    assert forbidden(tree) == [
        "plugin/making.py: module making",
        "plugin/making.py:2: class GivenUp",
        "ingest/ledger.py:10: parameter told",
        "ingest/ledger.py:20: function left_behind",
    ]


def test_lines_of_code_are_those_without_comments_docstrings_and_blanks(tree):
    assert code_lines(SOURCE) == 7
    java = (
        '/** A class. */\nclass A {\n\n    // "{"\n    String b = "// no comment"; /* but\n        this is one */\n}\n'
    )
    assert code_lines(java, "java") == 3
    assert code_lines("// A comment.\nif (a == 'b') {\n  c = \"d\"; // e\n}\n", "java") == 3
    assert code_lines("/* A\n   comment. */\na { b: c }\n\nd {\n  e: f\n}\n", "css") == 4
    assert code_lines("// A comment.\nconst a = `b\n\n// c`;\n", "javascript") == 2
    page = "<!doctype html>\n{# A\ncomment. #}\n<!-- Another. -->\n{% if a %}\n<p>{{ b }}</p>\n\n{% endif %}\n"
    assert code_lines(page, "html+jinja") == 4
    found = measure(tree)
    assert found["core: lines of the largest file"] == 20
    assert found["core: modules"] == 2


def test_lines_are_counted_by_room_and_language_and_the_laboratory_apart(tree):
    for place, text in (("plugin/java/A.java", "class A {\n}\n"), ("lab/langshift_lab/board.py", SOURCE)):
        (tree / place).parent.mkdir(parents=True)
        (tree / place).write_text(text)
    found = {name: count for name, count in measure(tree).items() if name[0] != "c"}
    assert found == {"plugin: Python": 3, "plugin: Java": 2, "ingest: Python": 7, "lab: Python": 7}
    sums = measure(tree)
    assert (sums["core: Python"], sums["core: Java"]) == (10, 2)


def test_commands_of_the_laboratory_are_counted_apart():
    def here(): ...

    def there(): ...

    there.__module__ = "langshift_lab.board"
    root = click.Group(commands={"one": click.Command("one", callback=here, params=[click.Option(["--a"])])})
    assert measure_commands(root) == {"core: commands": 1, "core: options": 1}
    root.add_command(click.Group("evaluate", commands={"board": click.Command("board", callback=there)}))
    assert measure_commands(root) == {"core: commands": 1, "core: options": 1, "lab: commands": 1, "lab: options": 0}


LIMITS = {"plugin: Python": 50, "web: Python": 40, "plugin: Java": 30, "lab: Python": 20, "core: commands": 4}


@pytest.mark.parametrize(
    ("change", "more", "sentences"),
    [
        ({"plugin: Python": 60, "web: Python": 30}, 0, []),
        ({"plugin: Python": 45, "lab: Python": 25}, 0, []),
        ({"plugin: Python": 60}, 0, ["core: 100 lines of Python, of 90: delete 10"]),
        ({"plugin: Python": 60}, 10, []),
        ({"lab: Python": 32}, 10, ["core and lab: 122 lines of Python, of 110: delete 2"]),
        # What the laboratory loses is not the core's to take.
        ({"plugin: Python": 60, "lab: Python": 10}, 0, ["core: 100 lines of Python, of 90: delete 10"]),
        # Nor is what another language loses, or one issue may add in Python.
        ({"web: Python": 20, "plugin: Java": 31}, 400, ["core: 31 lines of Java, of 30: delete 1"]),
        ({"core: commands": 3, "core: options": 9}, 0, []),
        (
            {"core: commands": 5},
            0,
            ["core: commands: 5 of 4: to raise this, edit source_budget.json, and say why in the commit"],
        ),
    ],
)
def test_a_limit_rises_only_with_a_deletion_as_large_in_the_same_language(change, more, sentences):
    assert may_not_rise(LIMITS, LIMITS | change, more) == sentences


def test_what_is_above_its_limit_fails_and_limits_are_set_to_what_is_there(tmp_path, monkeypatch, capsys):
    budget = tmp_path / "source_budget.json"
    monkeypatch.setattr(source_budget, "BUDGET", budget)
    monkeypatch.setattr(source_budget, "ROOT", tmp_path)
    monkeypatch.setattr(source_budget, "measure", lambda _: {"web: Python": 40})
    monkeypatch.setattr(source_budget, "measure_commands", lambda _: {"core: commands": 4})
    budget.write_text('{"web: Python": 39, "core: commands": 5}')
    assert main([]) == 1
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["web:", "Python", "40", "of", "39", "1", "above"],
        ["core:", "commands", "4", "of", "5"],
    ]
    assert main(["--set"]) == 1
    assert json.loads(budget.read_text())["core: commands"] == 5
    assert main(["--set", "--more", "1"]) == 0
    assert json.loads(budget.read_text()) == {"web: Python": 40, "core: commands": 4}
    assert main([]) == 0
    with pytest.raises(SystemExit):
        main(["--set", "--more", "401"])


def test_the_modules_of_a_way_are_those_of_its_list():
    page = "# A\n\n<!-- way of a query -->\n1. `a/b.py`: this\n2. `c.py`: `d.py`\n\n3. `e.py`: no\n"
    assert modules_of("query", page) == ["a/b.py", "c.py"]
    assert modules_of("replay", page) == []


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_every_fault_can_still_be_put_into_the_code(fault):
    assert (ROOT / fault.file).read_text().count(fault.right) == 1
    assert all(any(ROOT.glob(place)) for place in fault.tests.split())

"""The checks of names and size that `make lint` runs find what they are there for."""

import pytest
from check_names import defined_twice, forbidden
from documents import ROOT
from plant_faults import FAULTS
from source_budget import code_lines, measure, modules_of

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
    found = measure(tree)
    assert (found["lines of code"], found["lines of the largest file"]) == (10, 20)


def test_the_modules_of_a_way_are_those_of_its_list():
    page = "# A\n\n<!-- way of a query -->\n1. `a/b.py`: this\n2. `c.py`: `d.py`\n\n3. `e.py`: no\n"
    assert modules_of("query", page) == ["a/b.py", "c.py"]
    assert modules_of("replay", page) == []


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_every_fault_can_still_be_put_into_the_code(fault):
    assert (ROOT / fault.file).read_text().count(fault.right) == 1
    assert all(any(ROOT.glob(place)) for place in fault.tests.split())

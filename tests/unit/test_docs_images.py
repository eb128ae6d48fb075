"""Every picture that the documents show is there, small, and described for who does not see it."""

import re
from pathlib import Path

import pytest
from screenshots import IMAGES, MOST_BYTES, PICTURES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
MOST_TOGETHER = 900_000
# Shorter than this says no more than the file's name.
LEAST_WORDS = 5


def shown():
    """(Document, alt text, file) of every picture that a document shows."""
    return [
        (document, words, (document.parent / place).resolve())
        for document in DOCUMENTS
        for words, place in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", document.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("document", "words", "file"), shown(), ids=lambda one: getattr(one, "name", None))
def test_a_picture_is_there_and_described(document, words, file):
    assert file.is_file(), f"{document.name} shows {file.name}, which is not there"
    assert len(words.split()) >= LEAST_WORDS


def test_pictures_are_small_and_all_of_them_are_shown():
    sizes = {file: file.stat().st_size for file in IMAGES.iterdir()}
    assert {file.name for file in sizes} == {f"{picture.name}.png" for picture in PICTURES}
    assert set(sizes) <= {file for _, _, file in shown()}
    assert max(sizes.values()) <= MOST_BYTES
    assert sum(sizes.values()) <= MOST_TOGETHER

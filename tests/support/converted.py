"""Datasets made by ``dataset convert``, and what a reader of a collection refuses."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from langshift.commands.dataset import dataset as command
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import JudgedQuestion, PoolOptions, PoolPassage, PoolSource, build

TAGS = ["ar", "de", "en", "zh"]


def parallel(groups: int = 40, tags=TAGS, backwards: bool = False) -> PoolSource:
    """Groups of one passage a language, two groups an article, one question in each language."""
    numbers = list(range(groups))

    def passages():
        for n in reversed(numbers) if backwards else numbers:
            for tag in reversed(tags) if backwards else tags:
                yield PoolPassage(f"g{n}-{tag}", f"{tag} text {n}", tag, f"g{n}", f"article {n // 2}")

    questions = [
        JudgedQuestion(f"q{n}", f"{tag} {n}?", tag, {f"g{n}-{one}": 1 for one in tags}, f"g{n}", f"article {n // 2}")
        for tag in tags
        for n in numbers
    ]
    return PoolSource(Path("made-up"), tags, questions, passages)


def convert(kind: str, source: Path, out: Path, *options: str) -> dict:
    said = CliRunner().invoke(command, ["convert", kind, str(source), str(out), *options, "--json"])
    assert said.exit_code == 0, said.exception
    return json.loads(said.stdout)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def ids(path: Path) -> list[str]:
    return [line["_id"] for line in lines(path)]


def refusal(tmp_path: Path, source, choice: PoolOptions = PoolOptions()) -> str:  # noqa: B008 - frozen
    out = tmp_path / "taken-by-nobody"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        build(out, source if callable(source) else lambda: source, choice)
    assert sorted(tmp_path.rglob("*")) == before
    return str(caught.value)


def damage(path: Path, old: str, new: str) -> Path:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def require_named_by_its_lines(tmp_path, folder: Path, read, name: str, first: int | None) -> None:
    """Add a document of a collection once more, and fail where the refusal does not name both of its lines."""
    path = folder / name
    read_bytes, write_bytes = (gzip.open, gzip.open) if path.suffix == ".gz" else (open, open)
    with read_bytes(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    again = lines[first or 0]
    with write_bytes(path, "wb") as file:
        file.writelines([*lines, again])
    told = refusal(tmp_path, lambda: read(folder), PoolOptions(pivots=None))
    match = re.fullmatch(
        r"(.*), line (\d+), repeats the document '(.*)' of (.*), line (\d+): every id must be unique, "
        r"so remove one of the two\.",
        told,
    )
    assert match, told
    assert (match[1], match[4]) == (str(path), str(path))
    assert (int(match[2]), int(match[5])) == (len(lines) + 1, (first or 0) + 1)

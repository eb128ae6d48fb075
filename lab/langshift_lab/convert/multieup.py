"""MultiEuP v2 (Yang et al., 2024) as in Shift (Jang et al., 2026), section 4.2.

A debate's title is a query, and every speech in that debate is relevant, in whatever language.

Layout (unimelb-nlp/MultiEup-v2 on the Hugging Face Hub): ``clean_all_with_did_qid.MEP.csv``, a speech a
row: ``did``, ``TEXT``, ``LANGUAGE`` (``EN``), and for each of 24 languages ``title_EN`` and ``qid_EN``, the
debate's title in that language and its id. The file is read twice, row by row. Speeches are no
translations of each other, so there are no groups; a debate is its questions' article.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from langshift.errors import UsageError, no_file
from langshift.evaluate.convert.common import Chosen
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.files import identifier
from langshift_lab.convert.chosen_languages import choose, tagged

_NAME = "clean_all_with_did_qid.MEP.csv"
_LAYOUT = "MultiEuP has did, TEXT, LANGUAGE, and title_EN and qid_EN for each language"
_TITLE, _ID = "title_", "qid_"
_LONGEST = 2**31 - 1  # bytes in a field; a speech can be longer than the csv module expects


def read_multieup(source: Path, languages: Chosen) -> PoolSource:
    """MultiEuP as a source of pools.

    Args:
        source: the file, or the folder that holds it.
        languages: of the speeches and titles; None takes all.

    Raises:
        UsageError: no such file, a language that it lacks, or a row of another layout.
    """
    path = source / _NAME if source.is_dir() else source
    if not path.is_file():
        raise UsageError(f"{no_file(path)}: name MultiEuP's {_NAME}, or the folder that contains it.")
    columns = next((fields for _, fields in _rows(path)), [])
    codes = [name.removeprefix(_TITLE) for name in columns if name.startswith(_TITLE)]
    available = tagged(code for code in codes if f"{_ID}{code}" in columns)
    if not available or not {"did", "TEXT", "LANGUAGE"} <= set(columns):
        raise UsageError(f"{path} is not a MultiEuP file: {_LAYOUT}.")
    chosen = choose(available, languages, path, "no titles in")
    return PoolSource(path, list(chosen.values()), _questions(path, chosen), lambda: _passages(path, chosen))


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Each row with its place, the names of the columns first."""
    csv.field_size_limit(_LONGEST)
    with path.open(encoding="utf-8-sig", newline="") as file:
        table = csv.reader(file)
        try:
            for row in table:
                yield f"{path}, line {table.line_num}", row
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{path} is not UTF-8 after line {table.line_num}: fetch the file again, or convert it with iconv."
            ) from error
        except csv.Error as error:
            raise UsageError(
                f"{path}, line {table.line_num}, cannot be read ({error}): fetch the file again."
            ) from error


def _speeches(path: Path, chosen: dict[str, str]) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Place, document id, tag and row of every speech in a chosen language."""
    rows = _rows(path)
    _, columns = next(rows)
    for where, fields in rows:
        if not fields:
            continue
        if len(fields) != len(columns):
            raise UsageError(f"{where}, ends a row with more or fewer fields than the header: {_LAYOUT}.")
        row = dict(zip(columns, fields, strict=True))
        code = row["LANGUAGE"].strip().upper()
        if code in chosen:
            yield where, identifier(row["did"].strip(), where, "did"), chosen[code], row


def _questions(path: Path, chosen: dict[str, str]) -> list[JudgedQuestion]:
    questions: dict[tuple[str, str], JudgedQuestion] = {}
    judged: dict[tuple[str, str], dict[str, int]] = {}
    for where, document, _, row in _speeches(path, chosen):
        first = ""
        for code, tag in chosen.items():
            name, title = "_".join(row[f"{_ID}{code}"].split()), row[f"{_TITLE}{code}"].strip()
            if not name or not title:
                continue
            first = first or name
            grades = judged.setdefault((tag, name), {})
            grades[document] = 1
            questions.setdefault((tag, name), JudgedQuestion(name, title, tag, grades, None, first, where=where))
    order = list(chosen.values())
    return sorted(questions.values(), key=lambda one: order.index(one.language or ""))


def _passages(path: Path, chosen: dict[str, str]) -> Iterator[PoolPassage]:
    for where, document, tag, row in _speeches(path, chosen):
        yield PoolPassage(document, row["TEXT"].strip(), tag, where=where)

"""PosIR (Zeng et al., 2026): BEIR's layout, and where in its document each question's evidence stands.

Layout (infgrad/PosIR-Benchmark-v1 on the Hugging Face Hub, read by Ziyang1060/PosIR's eval.py):
``<language>/<domain>/corpus.parquet``, ``queries.parquet`` and ``qrels/test.parquet``, with languages
such as ``eng-Latn``. Queries have ``_id``, ``text``, and of the one relevant document
``pos_char_span`` (first and last character), ``pos_char_length`` and ``pos_token_length``. JSON Lines
and BEIR's TSV with the same fields are read too.

English was translated into the other languages and shares ids, judgements and positions with them,
so a document and its translations are one group; Chinese is a corpus of its own. Positions and
lengths are the English original's, as the paper counts them (section 4.1). Relevant to a question is
every version of its document in the pool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert.common import choose, collect, located, require_folder, tagged
from langshift.evaluate.convert.pool import JudgedQuestion, Passage, PoolSource
from langshift.files import identifier, string

_CODE = re.compile(r"[a-z]{3}[-_][A-Z][a-z]{3}")
_NATIVE = ("cmn-Hans", "zho-Hans", "cmn_Hans", "zho_Hans")  # written in its language, not translated
_NATIVE_PREFIX = "cmn"
_TABLES = (".parquet", ".jsonl", ".jsonl.gz")
_LAYOUT = "PosIR has <language>/<domain>/corpus.parquet, queries.parquet and qrels/test.parquet"
_SPAN = "give pos_char_span (first and last character) and pos_char_length"


def read_posir(
    folder: Path, languages: Sequence[str] | None, pivots: Sequence[str] | None, domains: Sequence[str] | None
) -> PoolSource:
    """PosIR as a source of pools.

    Args:
        folder: holds a folder for each language, with one for each domain.
        languages: PosIR's codes or tags (``zh`` is ``cmn-Hans``); None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.
        domains: the domains to pool; None takes all.

    Raises:
        UsageError: a language or domain that is not there, or a row of another layout.
    """
    require_folder(folder, _LAYOUT)
    codes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _CODE.fullmatch(path.name))
    if not codes:
        raise UsageError(f"{folder} holds no folder of a language: {_LAYOUT}.")
    chosen = choose(tagged(codes), languages, pivots, folder, "no folder for")
    homes = {(code, domain): folder / code / domain for code in chosen for domain in _domains(folder, code, domains)}
    # With several domains an id may stand in two of them.
    several = len({domain for _, domain in homes}) > 1

    def named(code: str, domain: str, name: str) -> str:
        own = f"{_NATIVE_PREFIX}-{name}" if code in _NATIVE else name
        return f"{'_'.join(domain.split())}-{own}" if several else own

    def passages() -> Iterator[Passage]:
        for (code, domain), home in homes.items():
            for where, row in located(_table(home, "corpus")):
                group = named(code, domain, identifier(row.get("_id"), where))
                title, text = str(row.get("title") or ""), str(row.get("text") or "")
                yield Passage(f"{group}-{chosen[code]}", text, chosen[code], group, None, title)

    questions = []
    for (code, domain), home in homes.items():
        versions = [chosen[other] for other in chosen if (other in _NATIVE) == (code in _NATIVE)]
        judged = _judged(home)
        for where, row in located(_table(home, "queries")):
            name = identifier(row.get("_id"), where)
            text = string(row, "text", where, "give the question one, or remove it")
            groups = {named(code, domain, document): grade for document, grade in judged.get(name, {}).items()}
            grades = {f"{group}-{tag}": grade for group, grade in groups.items() for tag in versions}
            at = _position(row, where)
            evidence = {document: at for document, grade in grades.items() if grade > 0} if at else None
            group = next((group for group, grade in groups.items() if grade > 0), None)
            name = named(code, domain, name)
            questions.append(JudgedQuestion(name, text, chosen[code], grades, group, None, evidence))
    return PoolSource(folder, list(chosen.values()), questions, passages, whole=False)


def _domains(folder: Path, code: str, wanted: Sequence[str] | None) -> list[str]:
    found = sorted(path.name for path in (folder / code).iterdir() if path.is_dir())
    for domain in wanted or ():
        if domain not in found:
            raise UsageError(f"{folder / code} has no domain {domain!r}: it has {', '.join(found) or 'none'}.")
    if not found:
        raise UsageError(f"{folder / code} holds no domain: {_LAYOUT}.")
    return list(wanted) if wanted else found


def _table(home: Path, name: str) -> Path:
    for ending in _TABLES:
        if (path := home / f"{name}{ending}").is_file():
            return path
    raise UsageError(f"{home} has no {name}.parquet: {_LAYOUT}.")


def _judged(home: Path) -> Mapping[str, Mapping[str, int]]:
    if (plain := home / "qrels" / "test.tsv").is_file():
        return collect([plain])
    judged: dict[str, dict[str, int]] = {}
    for where, row in located(_table(home / "qrels", "test")):
        try:
            judged.setdefault(str(row["query-id"]), {})[str(row["corpus-id"])] = int(row["score"])
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{where}, cannot be read: give query-id, corpus-id and score.") from None
    return judged


def _position(row: Mapping[str, Any], where: str) -> tuple[float, int | None] | None:
    """The middle of the evidence by the document's length, and that length in tokens; None where not given."""
    span, length, tokens = row.get("pos_char_span"), row.get("pos_char_length"), row.get("pos_token_length")
    if span is None and length is None:
        return None
    try:
        first, last = span  # type: ignore[misc]  # checked by unpacking
        middle = (float(first) + float(last)) / 2
        if float(length) <= 0 or middle < 0:  # type: ignore[arg-type]  # checked by calling
            raise ValueError
        return min(1.0, middle / float(length)), None if tokens is None else int(tokens)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"{where}, has no evidence that can be read: {_SPAN}.") from None

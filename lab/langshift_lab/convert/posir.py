"""PosIR (Zeng et al., 2026): BEIR's layout, and where in its document each question's evidence stands.

Layout (infgrad/PosIR-Benchmark-v1 on the Hugging Face Hub, read by Ziyang1060/PosIR's eval.py):
``<language>/<domain>/corpus.parquet``, ``queries.parquet`` and ``qrels/test.parquet``, with languages
such as ``eng-Latn``. Queries have ``_id``, ``text``, and of the one relevant document
``pos_char_span`` (first and last character), ``pos_char_length`` and ``pos_token_length``. JSON Lines
and BEIR's TSV with the same fields are read too.

English was translated into the other languages and shares ids, judgements and positions with them,
so a document and its translations are one group; Chinese is a corpus of its own. Positions and
lengths are the English original's, as the paper counts them (section 4.1), and only documents in the
original have ``start`` and ``end``. Relevant to a question is
every version of its document in the pool.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert.common import TABLES, Chosen, collect, located, require_folder
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets.annotations import Evidence
from langshift.evaluate.datasets.dataset import Qrels
from langshift.files import identifier, string
from langshift_lab.convert.chosen_languages import choose, tagged

_CODE = re.compile(r"[a-z]{3}[-_][A-Z][a-z]{3}")
_NATIVE = ("cmn-Hans", "zho-Hans", "cmn_Hans", "zho_Hans")  # written in its language, not translated
_NATIVE_PREFIX, _ORIGINAL = "cmn", "en"
_POSIR = "PosIR has <language>/<domain>/corpus.parquet, queries.parquet and qrels/test.parquet"
_SPAN = "give pos_char_span (first and last character) and pos_char_length"


def read_posir(folder: Path, languages: Chosen, domains: Chosen = None, pivots: Chosen = None) -> PoolSource:
    """PosIR as a source of pools.

    Args:
        folder: holds a folder for each language, with one for each domain.
        languages: PosIR's codes or tags (``zh`` is ``cmn-Hans``); None takes all that ``folder`` has.
        domains: the domains to pool; None takes all.
        pivots: languages of questions beside ``languages``: those of a language whose documents are not pooled are
            translations, asked of the documents that are.

    Raises:
        UsageError: a language or domain that is not there, or a row of another layout.
    """
    require_folder(folder, _POSIR)
    codes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _CODE.fullmatch(path.name))
    if not codes:
        raise UsageError(f"{folder} contains no language folders: {_POSIR}.")
    chosen = choose(tagged(codes), languages, folder, "no folder for")
    asking = chosen | choose(tagged(codes), [*chosen, *(pivots or ())], folder, "no folder for")
    homes = {(code, domain): folder / code / domain for code in asking for domain in _domains(folder, code, domains)}
    # With several domains an id may stand in two of them.
    several = len({domain for _, domain in homes}) > 1

    def named(code: str, domain: str, name: str) -> str:
        own = f"{_NATIVE_PREFIX}-{name}" if code in _NATIVE else name
        return f"{'_'.join(domain.split())}-{own}" if several else own

    def passages() -> Iterator[PoolPassage]:
        pooled = (item for item in homes.items() if item[0][0] in chosen)
        for (code, domain), home in pooled:
            for where, row in located(_table(home, "corpus")):
                group = named(code, domain, identifier(row.get("_id"), where))
                title, text = str(row.get("title") or ""), str(row.get("text") or "")
                more = {"domain": domain}
                yield PoolPassage(f"{group}-{chosen[code]}", text, chosen[code], group, None, title, more, where)

    questions = []
    for (code, domain), home in homes.items():
        versions = [chosen[other] for other in chosen if (other in _NATIVE) == (code in _NATIVE)]
        judged = _judgements(home)
        for where, row in located(_table(home, "queries")):
            name = identifier(row.get("_id"), where)
            text = string(row, "text", where, "give the query one, or remove it")
            groups = {named(code, domain, document): grade for document, grade in judged.get(name, {}).items()}
            grades = {f"{group}-{tag}": grade for group, grade in groups.items() for tag in versions}
            at = _position(row, where)
            relevant = [(group, tag) for group, grade in groups.items() if grade > 0 for tag in versions]
            original = asking[code] if code in _NATIVE else _ORIGINAL
            # The characters are those of the original's text.
            evidence = at and {f"{g}-{tag}": at if tag == original else at._replace(span=None) for g, tag in relevant}
            group = next((group for group, grade in groups.items() if grade > 0), None)
            name = named(code, domain, name)
            more = {"domain": domain}
            asked = JudgedQuestion(name, text, asking[code], grades, group, None, evidence, where=where, more=more)
            questions.append(asked)
    return PoolSource(folder, list(chosen.values()), questions, passages, whole=False)


def _domains(folder: Path, code: str, wanted: Chosen) -> list[str]:
    found = sorted(path.name for path in (folder / code).iterdir() if path.is_dir())
    for domain in wanted or ():
        if domain not in found:
            raise UsageError(f"{folder / code} has no domain {domain!r}: it has {', '.join(found) or 'none'}.")
    if not found:
        raise UsageError(f"{folder / code} contains no domains: {_POSIR}.")
    return list(wanted) if wanted else found


def _table(home: Path, name: str) -> Path:
    for ending in TABLES:
        if (path := home / f"{name}{ending}").is_file():
            return path
    raise UsageError(f"{home} has no {name}.parquet: {_POSIR}.")


def _judgements(home: Path) -> Qrels:
    plain = home / "qrels" / "test.tsv"
    return collect([plain if plain.is_file() else _table(home / "qrels", "test")])


def _position(row: Mapping[str, Any], where: str) -> Evidence | None:
    """Where in the original the evidence is; None where not given."""
    span, length, tokens = row.get("pos_char_span"), row.get("pos_char_length"), row.get("pos_token_length")
    if span is None and length is None:
        return None
    try:
        first, last = map(int, span)  # type: ignore[arg-type]  # checked by unpacking
        if float(length) <= 0 or first + last < 0:  # type: ignore[arg-type]  # checked by calling
            raise ValueError
        return Evidence(
            min(1.0, (first + last) / 2 / float(length)),  # type: ignore[arg-type]
            None if tokens is None else int(tokens),
            (first, last) if 0 <= first < last else None,
        )
    except (TypeError, ValueError):
        raise UsageError(f"{where}, has no valid evidence position: {_SPAN}.") from None

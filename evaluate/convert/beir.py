"""Any folder in BEIR's layout, and PosIR, which has that and where in its documents the evidence stands."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert import common
from langshift.evaluate.convert.common import Chosen, choose, collect, located
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets import dataset
from langshift.evaluate.datasets.dataset import (
    ANSWERS,
    CORPUS,
    EVIDENCE,
    FACTS,
    LANGUAGES,
    QUERIES,
    Evidence,
    EvidencePositions,
    Qrels,
)
from langshift.files import identifier, read_columns, string
from langshift.languages import parse_tag, primary

# Any folder in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` (plain or ``.gz``), ``qrels/<split>.tsv``.
#
# Every field is kept. Where lines name ``language`` and ``group``, as langshift's own folders do, a
# pool can be cut from it: some languages, one pivot, K translations a group. Queries that the split
# does not judge are left out.
_OWN = {"_id", "text", "title", "language", "group", "article"}


def read_beir(folder: Path, languages: Chosen, split: str) -> PoolSource:
    """A folder in BEIR's layout as a source of pools.

    Args:
        folder: the folder.
        languages: tags of the documents to take; None takes all, also those that name none.
        split: which file of ``qrels``.

    Raises:
        UsageError: a missing file, a language that no document has, or a line of another layout.
    """
    common.require_folder(folder, f"a BEIR folder contains {CORPUS}, {QUERIES} and qrels/{split}.tsv")
    corpus, queries, qrels = _find(folder, CORPUS), _find(folder, QUERIES), folder / "qrels" / f"{split}.tsv"
    if not qrels.is_file():
        found = ", ".join(sorted(path.stem for path in qrels.parent.glob("*.tsv"))) or "none"
        raise UsageError(f"{folder} has no qrels/{split}.tsv: name another --split (available: {found}).")
    wanted = _tags(languages)
    judged = collect([qrels])
    evidence, answers = dataset.read_evidence(folder / EVIDENCE), dataset.read_answers(folder / ANSWERS)
    document_languages = _read_languages(folder / LANGUAGES)
    return PoolSource(
        folder,
        wanted or [],
        [*_questions(queries, judged, evidence, answers)],
        lambda: _passages(corpus, document_languages, wanted),
        whole=wanted is None,
        judged=dataset.read_judged(folder / FACTS),
        place=lambda name: common.place_of([qrels], name),
    )


def _find(folder: Path, name: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise UsageError(f"{folder} has no {name}: a BEIR folder contains {CORPUS}, {QUERIES} and qrels/test.tsv.")


def _tags(languages: Chosen) -> list[str] | None:
    if languages is None:
        return None
    tags = {language: parse_tag(language) for language in languages}
    if strange := [language for language, tag in tags.items() if tag is None]:
        raise UsageError(f"{strange[0]!r} is not a valid language tag: use tags such as en or zh.")
    return [tag for tag in tags.values() if tag]


def _read_languages(path: Path) -> dict[str, str]:
    """Document id -> language, from a ``languages.tsv``."""
    if not path.is_file():
        return {}
    return {columns[0]: columns[1] for line, columns in read_columns(path) if len(columns) == 2 and line > 1}


def _questions(
    path: Path, judged: Qrels, evidence: EvidencePositions, answers: Mapping[str, tuple[str, ...]]
) -> Iterator[JudgedQuestion]:
    query_ids = set()
    for where, record in located(path):
        name = identifier(record.get("_id"), where)
        query_ids.add(name)
        if name in judged:
            text = string(record, "text", where, f"give the query {name!r} one, or remove it")
            spans = evidence.spans.get(name, {})
            at = {
                document: Evidence(position, evidence.lengths.get(document), spans.get(document))
                for document, position in evidence.positions.get(name, {}).items()
            }
            tag = dataset.optional_tag(record.get("language"), where)
            known = answers.get(name, ())
            yield JudgedQuestion(name, text, tag, judged[name], *_group_and_article(record), at or None, known, where)
    if unknown := judged.keys() - query_ids:
        raise UsageError(f"{path} has no query {min(unknown)!r}, which has judgements: fetch the file again.")


def _group_and_article(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return dataset.optional_word(record, "group"), dataset.optional_word(record, "article")


def _passages(path: Path, document_languages: Mapping[str, str], wanted: Chosen) -> Iterator[PoolPassage]:
    present: set[str] = set()
    for where, record in located(path):
        name = identifier(record.get("_id"), where)
        tag = dataset.optional_tag(record.get("language"), where) or document_languages.get(name)
        if wanted is not None:
            if tag is None:
                raise UsageError(f"{where}, names no language, so languages cannot be selected: leave --languages out.")
            present.add(tag)
            if tag not in wanted and primary(tag) not in wanted:
                continue
        title, text = common.title_and_text(record, where, "correct or remove the line")
        more = {field: value for field, value in record.items() if field not in _OWN}
        yield PoolPassage(name, text, tag, *_group_and_article(record), title, more, where)
    if missing := [tag for tag in wanted or () if tag not in present and tag not in {primary(one) for one in present}]:
        raise UsageError(f"{path} has no document in the language {missing[0]!r}: it has {', '.join(sorted(present))}.")


# PosIR (Zeng et al., 2026): BEIR's layout, and where in its document each question's evidence stands.
#
# Layout (infgrad/PosIR-Benchmark-v1 on the Hugging Face Hub, read by Ziyang1060/PosIR's eval.py):
# ``<language>/<domain>/corpus.parquet``, ``queries.parquet`` and ``qrels/test.parquet``, with languages
# such as ``eng-Latn``. Queries have ``_id``, ``text``, and of the one relevant document
# ``pos_char_span`` (first and last character), ``pos_char_length`` and ``pos_token_length``. JSON Lines
# and BEIR's TSV with the same fields are read too.
#
# English was translated into the other languages and shares ids, judgements and positions with them,
# so a document and its translations are one group; Chinese is a corpus of its own. Positions and
# lengths are the English original's, as the paper counts them (section 4.1), and only documents in the
# original have ``start`` and ``end``. Relevant to a question is
# every version of its document in the pool.
_CODE = re.compile(r"[a-z]{3}[-_][A-Z][a-z]{3}")
_NATIVE = ("cmn-Hans", "zho-Hans", "cmn_Hans", "zho_Hans")  # written in its language, not translated
_NATIVE_PREFIX, _ORIGINAL = "cmn", "en"
_TABLES = (".parquet", ".jsonl", ".jsonl.gz")
_POSIR = "PosIR has <language>/<domain>/corpus.parquet, queries.parquet and qrels/test.parquet"
_SPAN = "give pos_char_span (first and last character) and pos_char_length"


def read_posir(folder: Path, languages: Chosen, pivots: Chosen, domains: Chosen) -> PoolSource:
    """PosIR as a source of pools.

    Args:
        folder: holds a folder for each language, with one for each domain.
        languages: PosIR's codes or tags (``zh`` is ``cmn-Hans``); None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.
        domains: the domains to pool; None takes all.

    Raises:
        UsageError: a language or domain that is not there, or a row of another layout.
    """
    common.require_folder(folder, _POSIR)
    codes = sorted(path.name for path in folder.iterdir() if path.is_dir() and _CODE.fullmatch(path.name))
    if not codes:
        raise UsageError(f"{folder} contains no language folders: {_POSIR}.")
    chosen = choose(common.tagged(codes), languages, pivots, folder, "no folder for")
    homes = {(code, domain): folder / code / domain for code in chosen for domain in _domains(folder, code, domains)}
    # With several domains an id may stand in two of them.
    several = len({domain for _, domain in homes}) > 1

    def named(code: str, domain: str, name: str) -> str:
        own = f"{_NATIVE_PREFIX}-{name}" if code in _NATIVE else name
        return f"{'_'.join(domain.split())}-{own}" if several else own

    def passages() -> Iterator[PoolPassage]:
        for (code, domain), home in homes.items():
            for where, row in located(_table(home, "corpus")):
                group = named(code, domain, identifier(row.get("_id"), where))
                title, text = str(row.get("title") or ""), str(row.get("text") or "")
                yield PoolPassage(f"{group}-{chosen[code]}", text, chosen[code], group, None, title, None, where)

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
            original = chosen[code] if code in _NATIVE else _ORIGINAL
            # The characters are those of the original's text.
            evidence = at and {f"{g}-{tag}": at if tag == original else at._replace(span=None) for g, tag in relevant}
            group = next((group for group, grade in groups.items() if grade > 0), None)
            name = named(code, domain, name)
            asked = JudgedQuestion(name, text, chosen[code], grades, group, None, evidence, where=where)
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
    for ending in _TABLES:
        if (path := home / f"{name}{ending}").is_file():
            return path
    raise UsageError(f"{home} has no {name}.parquet: {_POSIR}.")


def _judgements(home: Path) -> Qrels:
    if (plain := home / "qrels" / "test.tsv").is_file():
        return collect([plain])
    judged: dict[str, dict[str, int]] = {}
    for where, row in located(_table(home / "qrels", "test")):
        try:
            judged.setdefault(str(row["query-id"]), {})[str(row["corpus-id"])] = int(row["score"])
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{where}, cannot be read: give query-id, corpus-id and score.") from None
    return judged


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

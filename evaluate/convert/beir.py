"""Any folder in BEIR's layout: ``corpus.jsonl``, ``queries.jsonl`` (plain or ``.gz``), ``qrels/<split>.tsv``.

Each may be Parquet, too, as the Hugging Face Hub has BEIR and MTEB: ``corpus.parquet``, ``corpus-0-of-2.parquet`` or
any Parquet in a folder ``corpus``; likewise ``queries``; of judgements ``test.parquet``, ``test-0-of-1.parquet`` or a
folder ``test``, in ``qrels``, ``default`` or ``data``. What is called ``id`` there is ``_id``.

Every field is kept. Where lines name ``language`` and ``group``, as langshift's own folders do, a
pool can be cut from it: some languages, one pivot, K translations a group. Queries that the split
does not judge are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert import common
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets import dataset
from langshift.evaluate.datasets.annotations import Evidence, EvidencePositions, read_answers, read_evidence
from langshift.evaluate.datasets.dataset import ANSWERS, CORPUS, EVIDENCE, FACTS, LANGUAGES, QUERIES, Qrels
from langshift.files import identifier, read_columns, string
from langshift.languages import primary, require_tag

_OWN = {"_id", "text", "title", "language", "group", "article"}


def read_beir(folder: Path, languages: common.Chosen, split: str = "test") -> PoolSource:
    """A folder in BEIR's layout as a source of pools.

    Args:
        folder: the folder.
        languages: tags of the documents to take; None takes all, also those that name none.
        split: which file of ``qrels``.

    Raises:
        UsageError: a missing file, a language that no document has, or a line of another layout.
    """
    common.require_folder(folder, f"a BEIR folder contains {CORPUS}, {QUERIES} and qrels/{split}.tsv")
    corpus, queries, qrels = find(folder, CORPUS), find(folder, QUERIES), _qrels(folder, split)
    wanted = None if languages is None else list(map(require_tag, languages))
    judged = common.collect(qrels)
    placed, answers = folder / EVIDENCE, read_answers(folder / ANSWERS)
    evidence = read_evidence(placed) if placed.is_file() else EvidencePositions()
    document_languages = _read_languages(folder / LANGUAGES)
    return PoolSource(
        folder,
        wanted or [],
        [*_questions(queries, judged, evidence, answers)],
        lambda: passages(corpus, document_languages, wanted),
        whole=wanted is None,
        facts=dataset.read_facts(folder / FACTS),
        place=lambda name: common.place_of(qrels, name),
    )


def find(folder: Path, name: str) -> list[Path]:
    """Return a file of a folder, plain or ``.gz``, or the files of Parquet that stand in its place.

    Raises:
        UsageError: it is not there.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return [path]
    if found := _parquet(folder, name.removesuffix(".jsonl")):
        return found
    raise UsageError(
        f"{folder} has no {name}: a BEIR folder contains {CORPUS}, {QUERIES} and qrels/test.tsv, or Parquet of these "
        "names."
    )


def _parquet(folder: Path, name: str) -> list[Path]:
    """The files of Parquet that are called so, or that lie in a folder of that name; sorted."""
    whole = folder / f"{name}{common.PARQUET}"
    parts = [whole] if whole.is_file() else sorted(folder.glob(f"{name}-[0-9]*{common.PARQUET}"))
    return parts or sorted((folder / name).rglob(f"*{common.PARQUET}"))


# Where the Hub has judgements; the last two are what a dataset's only or first part is called.
_JUDGED_IN = ("qrels", "default", "data")


def _qrels(folder: Path, split: str) -> list[Path]:
    for path in (folder / "qrels" / f"{split}{ending}" for ending in (".tsv", ".jsonl", ".jsonl.gz")):
        if path.is_file():
            return [path]
    for home in (folder / name for name in _JUDGED_IN):
        if found := _parquet(home, split):
            return found
    there = (path for name in _JUDGED_IN if (folder / name).is_dir() for path in (folder / name).iterdir())
    splits = ", ".join(sorted({re.split(r"-\d|\.", path.name)[0] for path in there})) or "none"
    raise UsageError(f"{folder} has no qrels/{split}.tsv: name another --split (available: {splits}).")


def _records(paths: Sequence[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lines or rows of files, see ``located``."""
    for path in paths:
        for where, record in common.located(path):
            if "_id" not in record and "id" in record:
                record["_id"] = record.pop("id")
            yield where, record


def _read_languages(path: Path) -> dict[str, str]:
    """Document id -> language, from a ``languages.tsv``."""
    if not path.is_file():
        return {}
    return {columns[0]: columns[1] for line, columns in read_columns(path) if len(columns) == 2 and line > 1}


def _questions(
    paths: Sequence[Path], judged: Qrels, evidence: EvidencePositions, answers: Mapping[str, tuple[str, ...]]
) -> Iterator[JudgedQuestion]:
    query_ids = set()
    for where, record in _records(paths):
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
            more = {field: value for field, value in record.items() if field not in _OWN}
            group = _group_and_article(record)
            yield JudgedQuestion(name, text, tag, judged[name], *group, at or None, known, where, more)
    if unknown := judged.keys() - query_ids:
        raise UsageError(f"{paths[0]} has no query {min(unknown)!r}, which has judgements: fetch the file again.")


def _group_and_article(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return dataset.optional_word(record, "group"), dataset.optional_word(record, "article")


def passages(
    paths: Sequence[Path], document_languages: Mapping[str, str], wanted: common.Chosen
) -> Iterator[PoolPassage]:
    """Yield the documents of a ``corpus.jsonl``, or of the Parquet in its place.

    Args:
        paths: the files.
        document_languages: document id -> language, of those whose lines name none.
        wanted: tags of the languages to take; None takes all.

    Raises:
        UsageError: a line of another layout, or a language that no document has.
    """
    present: set[str] = set()
    for where, record in _records(paths):
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
        raise UsageError(
            f"{paths[0]} has no document in the language {missing[0]!r}: it has {', '.join(sorted(present))}."
        )

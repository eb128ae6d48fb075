"""NeuCLIR (TREC 2022 to 2024, and HC4, which has the same form): news in Chinese, Persian and Russian.

Layout: documents as NeuCLIR/download-collection writes them (``<language>/docs.jsonl``) or as the
Hugging Face Hub has them (``data/<language>-00000-of-00001.jsonl.gz``), languages ``zho``, ``fas``
and ``rus``, fields ``id``, ``title``, ``text``; topics as JSON Lines (``*topics*.jsonl``) with
``topic_id`` and ``topics[]`` of ``lang``, ``source``, ``topic_title``, ``topic_description``; and
TREC judgements in files with ``qrels`` in their names, or in a folder of that name.

A query is title and description, as in the track's main runs; a translation by people is taken
before one by machine. Documents are judged for a topic whatever their language. Where not all
languages are pooled, judgements of documents in the others are left out, and counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.convert import common
from langshift.evaluate.convert.common import Chosen, collect, located
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets.dataset import Qrels
from langshift.files import identifier, string
from langshift.languages import parse_tag
from langshift_lab.convert.chosen_languages import choose, tagged

_SHARD = re.compile(r"([a-z]{3})-\d{5}-of-\d{5}\.jsonl(?:\.gz)?")
_DOCS = ("docs.jsonl", "docs.jsonl.gz")
_PACKED = {".gz", ".tgz", ".tar", ".zip", ".jsonl"}
_NEUCLIR = "NeuCLIR has <language>/docs.jsonl for zho, fas and rus, topics in *topics*.jsonl, and TREC qrels"
_ORIGINAL, _HUMAN = "original", "human translation"


def read_neuclir(folder: Path, languages: Chosen) -> PoolSource:
    """NeuCLIR as a source of pools.

    Args:
        folder: holds documents, topics and judgements.
        languages: the documents' languages; None takes all that ``folder`` has.

    Raises:
        UsageError: a language without documents, no topics or judgements, or a line of another layout.
    """
    common.require_folder(folder, _NEUCLIR)
    files = _documents(folder)
    chosen = choose(tagged(files), languages, folder, "no documents in")
    qrels = _qrels(folder)
    topics = sorted([*folder.glob("*topics*.jsonl"), *folder.glob("topics/*.jsonl")])
    if not topics:
        raise UsageError(f"{folder} contains no topics: {_NEUCLIR}.")
    judged = collect(qrels)
    questions = [question for path in topics for question in _neuclir_questions(path, judged)]
    return PoolSource(
        folder,
        list(chosen.values()),
        questions,
        lambda: _neuclir_docs(files, chosen),
        whole=len(chosen) == len(files),
        place=lambda name: common.place_of(qrels, name),
    )


def _documents(folder: Path) -> dict[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for home in sorted(path for path in folder.iterdir() if path.is_dir() and parse_tag(path.name)):
        if paths := [home / name for name in _DOCS if (home / name).is_file()]:
            files[home.name] = paths[:1]
    for place in (folder, folder / "data"):
        for path in sorted(place.iterdir()) if place.is_dir() else []:
            if (match := _SHARD.fullmatch(path.name)) and match[1] not in files.keys() - {match[1]}:
                files.setdefault(match[1], []).append(path)
    if not files:
        raise UsageError(f"{folder} contains no documents: {_NEUCLIR}.")
    return files


def _qrels(folder: Path) -> list[Path]:
    paths = [path for path in [*folder.glob("*qrels*"), *folder.glob("*qrels*/*")] if path.is_file()]
    paths = sorted(path for path in paths if path.suffix not in _PACKED and not path.name.startswith("."))
    if not paths:
        raise UsageError(f"{folder} contains no judgements: {_NEUCLIR}.")
    return paths


def _neuclir_questions(path: Path, judged: Qrels) -> Iterator[JudgedQuestion]:
    for where, record in located(path):
        name = identifier(record.get("topic_id"), where, "topic_id")
        versions: dict[str, tuple[int, str]] = {}
        for topic in record.get("topics") or ():
            tag = parse_tag(str(topic.get("lang"))) if isinstance(topic, dict) else None
            if tag is None:
                raise UsageError(f"{where}, has a topic without a language: each of topics[] has lang and topic_title.")
            rank = {_ORIGINAL: 0, _HUMAN: 1}.get(str(topic.get("source")), 2)
            if tag not in versions or rank < versions[tag][0]:
                versions[tag] = (rank, _words(topic, where))
        if not versions:
            raise UsageError(f"{where}, has no topics[]: each has lang, source, topic_title and topic_description.")
        for tag, (_, words) in versions.items():
            yield JudgedQuestion(name, words, tag, judged.get(name, {}), where=where)


def _words(topic: Mapping[str, Any], where: str) -> str:
    title = string(topic, "topic_title", where, "give each of topics[] one")
    return " ".join(f"{title} {topic.get('topic_description') or ''}".split())


def _neuclir_docs(files: Mapping[str, Sequence[Path]], chosen: Mapping[str, str]) -> Iterator[PoolPassage]:
    for code, tag in chosen.items():
        for path in files[code]:
            for where, record in located(path):
                title, text = common.title_and_text(record, where, "fetch the file again")
                yield PoolPassage(identifier(record.get("id"), where, "id"), text, tag, title=title, where=where)

"""MIRACL (Zhang et al., 2023) in one language or several.

Its passages were judged for questions in their own language alone, never across languages, so a pool
of several says nothing about passages in other languages (Shift, Appendix A). ``dataset.json`` says
so, for measures that must then be refused.

Layout (miracl/miracl and miracl/miracl-corpus on the Hugging Face Hub)::

    miracl-v1.0-<l>/topics/topics.miracl-v1.0-<l>-<split>.tsv    id and question, parted by a tab
    miracl-v1.0-<l>/qrels/qrels.miracl-v1.0-<l>-<split>.tsv      TREC, four columns
    miracl-corpus-v1.0-<l>/docs-<n>.jsonl.gz                     docid, title, text

Ids are unique within a language only (``39#0`` is the first passage of article 39), so they get it as
a suffix: ``39#0-en``. A corpus has up to 33 million passages; it is read line by line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from langshift.errors import UsageError, no_file
from langshift.evaluate.convert.common import Chosen, collect, located, place_of, title_and_text
from langshift.evaluate.convert.pool import JudgedQuestion, PoolPassage, PoolSource
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, DatasetFacts, Qrels
from langshift.files import identifier, read_columns
from langshift.languages import parse_tag
from langshift_lab.convert.chosen_languages import choose, find_by_code

_TOPICS, _CORPUS = re.compile(r"miracl-v1\.0-([a-z]{2})"), "miracl-corpus-v1.0-{}"
_MIRACL = "MIRACL has miracl-v1.0-<language>/topics and /qrels, and miracl-corpus-v1.0-<language>/docs-0.jsonl.gz"


def read_miracl(folder: Path, languages: Chosen, split: str = "dev") -> PoolSource:
    """MIRACL as a source of pools.

    Args:
        folder: holds both collections' folders, or ``miracl`` and ``miracl-corpus`` with them.
        languages: the languages; None takes all whose topics are there.
        split: ``dev`` or ``train``; the test splits' judgements are not published.

    Raises:
        UsageError: a language without topics, judgements or corpus, or a line of another layout.
    """
    homes = find_by_code(folder, ("", "miracl"), _TOPICS, _MIRACL, f"topics: {_MIRACL}")
    chosen = choose({code: parse_tag(code) or code for code in homes}, languages, folder, "no topics in")
    corpora = {code: _corpus(folder, code) for code in chosen}
    qrels = {code: _file(homes[code], "qrels", code, split) for code in chosen}
    questions = [
        question
        for code, tag in chosen.items()
        for question in _miracl_questions(_file(homes[code], "topics", code, split), collect([qrels[code]]), code, tag)
    ]

    def place(name: str) -> str:
        document, _, code = name.rpartition("-")
        return place_of([qrels[code]], document)

    tags = list(chosen.values())
    facts = DatasetFacts(PER_LANGUAGE)
    return PoolSource(folder, tags, questions, lambda: _miracl_docs(corpora, chosen), facts=facts, place=place)


def _file(home: Path, kind: str, code: str, split: str) -> Path:
    path = home / kind / f"{kind}.miracl-v1.0-{code}-{split}.tsv"
    if not path.is_file():
        raise UsageError(f"{no_file(path)}: fetch it, or name another --split.")
    return path


def _corpus(folder: Path, code: str) -> list[Path]:
    for place in (folder, folder / "miracl-corpus"):
        home = place / _CORPUS.format(code)
        found = [(int(match[1]), path) for path in home.glob("docs-*") if (match := re.match(r"docs-(\d+)", path.name))]
        if found:
            return [path for _, path in sorted(found)]
    raise UsageError(f"{folder} contains no corpus in the language {code!r}: {_MIRACL}.")


def _miracl_questions(path: Path, judged: Qrels, code: str, tag: str) -> Iterator[JudgedQuestion]:
    for line, columns in read_columns(path):
        where = f"{path}, line {line}"
        if len(columns) != 2 or not columns[1].strip():
            raise UsageError(f"{where}, cannot be read: give an id and a question, separated by a tab.")
        name = identifier(columns[0], where, "id")
        grades = {f"{document}-{code}": grade for document, grade in judged.get(name, {}).items()}
        yield JudgedQuestion(f"{name}-{code}", columns[1].strip(), tag, grades, where=where)


def _miracl_docs(corpora: Mapping[str, Sequence[Path]], chosen: Mapping[str, str]) -> Iterator[PoolPassage]:
    for code, paths in corpora.items():
        for path in paths:
            for where, record in located(path):
                name = identifier(record.get("docid"), where, "docid")
                title, text = title_and_text(record, where, "fetch the file again")
                article = f"{name.partition('#')[0]}-{code}" if "#" in name else None
                yield PoolPassage(f"{name}-{code}", text, chosen[code], None, article, title, where=where)

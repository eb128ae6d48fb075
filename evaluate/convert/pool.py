"""Pools as the papers build them, from what any format yields: passages, questions, judgements.

One pool holds passages of many languages; relevant to a question is what its source judges so, in
every language of the pool (Shift, Jang et al., 2026, section 4.2; MLAIRE, section 3.1).

* One source language (``pivots``) asks the questions; several make a set each (Shift, section 5.3).
  Where a collection is not fully parallel, its pool then holds only the groups that have a passage
  in that language, which is how Shift's Table 7 counts MLQA.
* ``pivots=None`` asks in every language of one pool (Shift, Appendix J). An id that several
  languages share then gets its language as a suffix.
* ``keep=K`` makes pools that are not fully parallel: of each translation group, the K languages
  stay whose hash with the group's id is smallest. So what stays depends on nothing but group,
  languages and K: not on order, pivot or machine, and K + 1 keeps what K keeps. Nothing favours the
  question's language: it stays in about K of N groups.
* ``by_article`` writes two sets over the same corpus, ``dev`` with the questions of every even
  article (the first is 0) and ``test`` with those of the odd ones, so that what is tuned on
  one half is reported on passages that it never saw.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from langshift.errors import UsageError
from langshift.evaluate.convert.choosing import halves, pivots, rank, unique
from langshift.evaluate.convert.dataset_files import new_folder, write_corpus, write_questions
from langshift.evaluate.convert.source import Passage, Question, Source
from langshift.evaluate.datasets.dataset import CORPUS, EVIDENCE, FACTS, LANGUAGES, POOLED
from langshift.evaluate.datasets.evidence import write_evidence

_STEP = 1000  # passages between two reports of progress


@dataclass(frozen=True)
class Choice:
    """What a person chose; see the module's head.

    Attributes:
        pivots: languages of the questions, each a set of its own; None takes all in one set.
        keep: how many translations of each group stay; None keeps all.
        by_article: whether to write ``dev`` and ``test``.
        with_language: whether ``corpus.jsonl`` names languages, or ``languages.tsv`` does.
    """

    pivots: Sequence[str] | None = ("en",)
    keep: int | None = None
    by_article: bool = False
    with_language: bool = True


@dataclass(frozen=True)
class Converted:
    """What was written: the folder and how much is in it.

    Attributes:
        folder: the dataset folder.
        languages: of its documents.
        pivot: of its queries; None where they are in several.
        documents: in ``corpus.jsonl``.
        queries: in ``queries.jsonl``.
        judgements: in ``qrels/test.tsv``.
        left_out: passages without text, queries without a relevant document, judgements of documents
            that the collection as it is here lacks. What was chosen away is not counted.
    """

    folder: str
    languages: list[str]
    pivot: str | None
    documents: int
    queries: int
    judgements: int
    left_out: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object; ``left_out`` stands there only where something was."""
        whole = asdict(self)
        if not any(self.left_out.values()):
            del whole["left_out"]
        return whole


def build(
    out: Path, read: Callable[[], Source], choice: Choice, on_passage: Callable[[int], None] = lambda _: None
) -> list[Converted]:
    """Write the pools of a collection: all of them, or nothing.

    Args:
        out: the folder to make; must not exist, or be empty.
        read: opens the collection.
        choice: which pools.
        on_passage: called with the number of passages read since the last call.

    Returns:
        One for each dataset folder: ``out`` itself, or those in it where there are several pivots or halves.

    Raises:
        UsageError: ``out`` is taken, a pivot that nobody asks in, or a collection that gives no pool.
    """
    made = []
    with new_folder(out) as partial:
        source = read()
        asked: Sequence[str | None] = [None] if choice.pivots is None else pivots(source, choice.pivots)
        for pivot in asked:
            place = Path(pivot) if len(asked) > 1 and pivot else Path()
            (partial / place).mkdir(exist_ok=True)
            made += _Pool(source, choice, pivot, on_passage).write(partial / place, out / place)
    return made


class _Pool:
    """One pool: the questions of one pivot, or of all, and the passages that stand with them."""

    def __init__(self, source: Source, choice: Choice, pivot: str | None, on_passage: Callable[[int], None]) -> None:
        self.source, self.choice, self.pivot, self.on_passage = source, choice, pivot, on_passage
        self.asked = unique(source, [one for one in source.questions if pivot in (None, one.language)])
        self.judged = {name for question in self.asked for name in question.judged}
        self.seen: set[str] = set()
        self.kept: set[str] = set()
        self.languages: dict[str, int] = {}
        self.documents = self.empty = 0
        self.groups = self._groups() if choice.keep or (source.partly_parallel and pivot) else None

    def _groups(self) -> dict[str, frozenset[str]]:
        """Translation group -> the languages of it that stay; groups without the pivot are not there."""
        present: dict[str, set[str]] = {}
        for passage in self.source.passages():
            if passage.group is not None:
                present.setdefault(passage.group, set()).add(passage.language or "")
        if not present:
            raise UsageError(
                f"{self.source.where} has no translation groups, so no translations can be chosen: leave --keep out."
            )
        if self.source.partly_parallel and self.pivot:
            present = {group: tags for group, tags in present.items() if self.pivot in tags}
        keep = self.choice.keep
        return {
            group: frozenset(sorted(tags, key=lambda tag: rank(group, tag))[:keep]) for group, tags in present.items()
        }

    def write(self, partial: Path, out: Path) -> list[Converted]:
        """Fill ``partial``, which will be ``out``."""
        parts = halves(self.source, self.asked) if self.choice.by_article else {"": self.asked}
        made = []
        written: Path | None = None
        for name, asked in parts.items():
            folder = partial / name
            folder.mkdir(exist_ok=True)
            if written is None:
                write_corpus(folder, self._documents(), with_language=self.choice.with_language)
                self._check()
                written = folder
            else:
                _link(written, folder)
            made.append(self._write_questions(folder, out / name, asked))
        return made

    def _documents(self) -> Iterator[dict[str, Any]]:
        number = 0
        for number, passage in enumerate(self.source.passages(), 1):
            if number % _STEP == 0:
                self.on_passage(_STEP)
            if passage.id in self.judged:
                self.seen.add(passage.id)
            if not self._stays(passage):
                continue
            if not passage.text.strip() and not passage.title.strip():
                self.empty += 1
                continue
            self.documents += 1
            if passage.language:
                self.languages[passage.language] = self.languages.get(passage.language, 0) + 1
            if passage.id in self.judged:
                self.kept.add(passage.id)
            yield _record(passage)
        self.on_passage(number % _STEP)

    def _stays(self, passage: Passage) -> bool:
        if self.groups is None or passage.group is None:
            return True
        return (passage.language or "") in self.groups.get(passage.group, ())

    def _check(self) -> None:
        if not self.documents:
            raise UsageError(f"{self.source.where} gives no passage at all: nothing was written.")
        unknown = self.judged - self.seen
        if unknown and self.source.whole:
            name = min(unknown)
            place = self.source.place(name) if self.source.place else f"{self.source.where}"
            raise UsageError(
                f"{place} judges the passage {name!r}, which the corpus lacks: fetch all of it, or remove the line."
            )

    def _write_questions(self, folder: Path, out: Path, asked: Sequence[Question]) -> Converted:
        judged = {one.id: {name: grade for name, grade in one.judged.items() if name in self.kept} for one in asked}
        stay = [one for one in asked if any(grade > 0 for grade in judged[one.id].values())]
        if not stay:
            raise UsageError(
                f"{self.source.where} gives no question with a relevant passage for {out}: nothing was written."
            )
        rows = [(one.id, name, grade) for one in stay for name, grade in judged[one.id].items()]
        write_questions(folder, map(_query, stay), rows)
        if any(one.evidence for one in stay):
            write_evidence(
                folder / EVIDENCE,
                ((one.id, name, *at) for one in stay for name, at in (one.evidence or {}).items() if name in self.kept),
            )
        if self.source.judged != POOLED:
            (folder / FACTS).write_bytes(orjson.dumps({"judged": self.source.judged}, option=orjson.OPT_APPEND_NEWLINE))
        left_out = {
            "passages": self.empty,
            "queries": len(asked) - len(stay),
            "judgements": sum(name not in self.seen for one in stay for name in one.judged),
        }
        named = [tag for tag in self.source.languages if tag in self.languages]
        named += [tag for tag in self.languages if tag not in named]
        return Converted(str(out), named, self.pivot, self.documents, len(stay), len(rows), left_out)


def _link(written: Path, folder: Path) -> None:
    """The same corpus in another folder, without its bytes where the file system allows it."""
    for name in (CORPUS, LANGUAGES):
        if (written / name).is_file():
            try:
                os.link(written / name, folder / name)
            except OSError:
                shutil.copyfile(written / name, folder / name)


def _record(passage: Passage) -> dict[str, Any]:
    record = {"_id": passage.id, "title": passage.title, "text": passage.text}
    told = {"language": passage.language, "group": passage.group, "article": passage.article}
    return {**(passage.more or {}), **record, **{name: value for name, value in told.items() if value is not None}}


def _query(question: Question) -> dict[str, Any]:
    told = {"language": question.language, "group": question.group, "article": question.article}
    return {
        "_id": question.id,
        "text": question.text,
        **{name: value for name, value in told.items() if value is not None},
    }

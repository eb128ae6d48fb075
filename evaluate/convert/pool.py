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
* What is written is what ``dataset check`` accepts, or nothing is: a folder is checked before it is put in its place.
* A source may have its questions in several sets over the same corpus (``PoolSource.parts``).
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from langshift.errors import UsageError
from langshift.evaluate.convert.common import pick
from langshift.evaluate.datasets import dataset
from langshift.evaluate.datasets.annotations import Evidence, write_evidence
from langshift.evaluate.datasets.check import SHARED_GROUP, DuplicateFinder, check_dataset, too_many_words
from langshift.files import json_lines, link_or_copy, write_table


class PoolPassage(NamedTuple):
    """One document of a collection; ``more`` holds fields that are kept as they came, ``where`` is file and line."""

    id: str
    text: str
    language: str | None
    group: str | None = None
    article: str | None = None
    title: str = ""
    more: Mapping[str, Any] | None = None
    where: str = ""


class JudgedQuestion(NamedTuple):
    """One query, with the grades of the passages that were judged for it.

    ``evidence`` says where in a passage its answer is, by passage; ``answers`` are its reference answers; ``where`` is
    file and line; ``more`` holds fields that are kept as they came.
    """

    id: str
    text: str
    language: str | None
    judged: Mapping[str, int]
    group: str | None = None
    article: str | None = None
    evidence: Mapping[str, Evidence] | None = None
    answers: Sequence[str] = ()
    where: str = ""
    more: Mapping[str, Any] | None = None


class PoolSource(NamedTuple):
    """A collection, as its format reads it.

    Attributes:
        where: the folder or file, for messages.
        languages: tags of its passages, in the order in which they are to be named.
        questions: all questions in the chosen languages.
        passages: starts a new pass over the passages; they are never held together.
        partly_parallel: whether some groups lack some languages, so that the pool depends on the pivot.
        whole: whether ``passages`` has all that the judgements name; if not, others are left out.
        facts: how it was judged, and what its questions can say.
        place: file and line that judge a passage, for messages; None where judgements have no file.
        parts: divides the chosen questions into several sets, by the folder of each; None makes one set of them.
    """

    where: Path
    languages: Sequence[str]
    questions: Sequence[JudgedQuestion]
    passages: Callable[[], Iterator[PoolPassage]]
    partly_parallel: bool = False
    whole: bool = True
    facts: dataset.DatasetFacts = dataset.DatasetFacts()
    place: Callable[[str], str] | None = None
    parts: Callable[[Sequence[JudgedQuestion]], Mapping[str, Sequence[JudgedQuestion]]] | None = None


def pivots(source: PoolSource, wanted: Sequence[str]) -> list[str | None]:
    """The tags of the languages that are to ask.

    Raises:
        UsageError: nobody asks in one of them.
    """
    available = {question.language: question.language for question in source.questions if question.language}
    tags = []
    for language in wanted:
        if (tag := pick(available, language)) is None:
            names = ", ".join(sorted(available)) or "none is known"
            raise UsageError(
                f"{source.where} has no questions in the language {language!r} among the languages chosen ({names}): "
                "add it to --languages, or name another --pivot."
            )
        tags.append(tag)
    return list(dict.fromkeys(tags))


def unique(source: PoolSource, questions: list[JudgedQuestion]) -> list[JudgedQuestion]:
    """The questions, those of a shared id told apart by their language.

    Raises:
        UsageError: two questions in one language have one id.
    """
    seen: dict[tuple[str, str | None], str] = {}
    for one in questions:
        key = one.id, one.language
        if key in seen:
            raise UsageError(_repeated(source, "query", one.id, seen[key], one.where))
        seen[key] = one.where
    if len({one.id for one in questions}) < len(questions):
        questions = [one._replace(id=f"{one.id}-{one.language}") for one in questions]
    return questions


def _repeated(source: PoolSource, what: str, name: str, first: str, again: str) -> str:
    """Say that an id is there twice, and where, as far as that is known."""
    where = f"{again}, repeats the {what} {name!r}" if again else f"{source.where} has the {what} {name!r} twice"
    return f"{where}{f' of {first}' if again and first else ''}: every id must be unique, so remove one of the two."


Record = Mapping[str, Any]


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes ``out`` when the block ends well and vanishes when it does not.

    A new one is for the owner alone; an empty ``out`` that was there already leaves its mode.

    Raises:
        UsageError: ``out`` is a file or holds something.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: name a folder that does not exist yet.")
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty: name a folder that does not exist yet, or empty this one.")
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=out.parent))
    try:
        yield partial
        if out.is_dir():
            partial.chmod(out.stat().st_mode & 0o777)
            out.rmdir()
        partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_corpus(folder: Path, documents: Iterable[Record], *, with_language: bool = True) -> None:
    """Write ``corpus.jsonl``, one document at a time.

    Args:
        folder: an existing folder.
        documents: the lines.
        with_language: whether the lines name languages; if not, ``languages.tsv`` does, if any is known.
    """
    with ExitStack() as files:
        corpus = files.enter_context((folder / dataset.CORPUS).open("wb"))
        tags = None
        for document in documents:
            line = dict(document)
            language = None if with_language else line.pop("language", None)
            if language is not None:
                if tags is None:
                    tags = files.enter_context((folder / dataset.LANGUAGES).open("w", encoding="utf-8", newline="\n"))
                    tags.write("corpus-id\tlanguage\n")
                tags.write(f"{line['_id']}\t{language}\n")
            corpus.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def write_questions(folder: Path, queries: Iterable[Record], judgements: Iterable[tuple[str, str, int]]) -> None:
    """Write ``queries.jsonl`` and ``qrels/test.tsv``."""
    (folder / dataset.QUERIES).write_bytes(json_lines(queries))
    write_table(
        folder / dataset.QRELS, dataset.QRELS_HEADER, ((query, name, f"{grade}") for query, name, grade in judgements)
    )


_STEP = 1000  # passages between two reports of progress
_OnPassage = Callable[[int], None]


class PoolOptions(NamedTuple):
    """What a person chose; see the module's head.

    Attributes:
        pivots: languages of the questions, each a set of its own; None takes all in one set.
        keep: how many translations of each group stay; None keeps all.
        with_language: whether ``corpus.jsonl`` names languages, or ``languages.tsv`` does.
    """

    pivots: Sequence[str] | None = ("en",)
    keep: int | None = None
    with_language: bool = True


@dataclass(frozen=True)
class ConvertedDataset:
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
        too_long: ids of queries that were left out for having too many words for a lexical search.
    """

    folder: str
    languages: list[str]
    pivot: str | None
    documents: int
    queries: int
    judgements: int
    left_out: dict[str, int] = field(default_factory=dict)
    too_long: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object; ``left_out`` and ``too_long`` stand there only where something was."""
        shown = {"left_out": any(self.left_out.values()), "too_long": bool(self.too_long)}
        return {name: value for name, value in asdict(self).items() if shown.get(name, True)}


def build(
    out: Path, read: Callable[[], PoolSource], choice: PoolOptions, on_passage: _OnPassage = lambda _: None
) -> list[ConvertedDataset]:
    """Write the pools of a collection: all of them, or nothing.

    Args:
        out: the folder to make; must not exist, or be empty.
        read: opens the collection.
        choice: which pools.
        on_passage: called with the number of passages read since the last call.

    Returns:
        One for each dataset folder: ``out`` itself, or those in it where there are several pivots or parts.

    Raises:
        UsageError: ``out`` is taken, a pivot that nobody asks in, or a collection that gives no pool, or one that
            ``dataset check`` would not accept.
    """
    made = []
    with new_folder(out) as partial:
        source = read()
        chosen_pivots: Sequence[str | None] = [None] if choice.pivots is None else pivots(source, choice.pivots)
        for pivot in chosen_pivots:
            place = Path(pivot) if len(chosen_pivots) > 1 and pivot else Path()
            (partial / place).mkdir(exist_ok=True)
            made += _Pool(source, choice, pivot, on_passage).write(partial / place, out / place)
    return made


class _Pool:
    """One pool: the questions of one pivot, or of all, and the passages that stand with them."""

    def __init__(self, source: PoolSource, choice: PoolOptions, pivot: str | None, on_passage: _OnPassage) -> None:
        self.source, self.choice, self.pivot, self.on_passage = source, choice, pivot, on_passage
        self.questions = unique(source, [one for one in source.questions if pivot in (None, one.language)])
        self.judged = {name for question in self.questions for name in question.judged}
        self.seen: set[str] = set()
        self.included: set[str] = set()
        # In the order in which they come.
        self.languages: dict[str, None] = {}
        self.documents = self.empty = 0
        self.ids = DuplicateFinder()
        self.groups = self._groups() if choice.keep or (source.partly_parallel and pivot) else None

    def _groups(self) -> dict[str, list[str]]:
        """Translation group -> the languages of it that stay; groups without the pivot are not there."""
        present: dict[str, set[str]] = {}
        for passage in self.source.passages():
            if passage.group is not None:
                present.setdefault(passage.group, set()).add(passage.language or "")
        if not present:
            raise UsageError(
                f"{self.source.where} has no translation groups, so translations cannot be selected: leave --keep out."
            )
        if self.source.partly_parallel and self.pivot:
            present = {group: tags for group, tags in present.items() if self.pivot in tags}
        keep = self.choice.keep
        return {group: sorted(tags, key=lambda tag: _rank(group, tag))[:keep] for group, tags in present.items()}

    def write(self, partial: Path, out: Path) -> list[ConvertedDataset]:
        """Fill ``partial``, which will be ``out``."""
        parts = self.source.parts(self.questions) if self.source.parts else {"": self.questions}
        first, *others = (partial / name for name in parts)
        first.mkdir(exist_ok=True)
        write_corpus(first, self._documents(), with_language=self.choice.with_language)
        self._check()
        for other in others:
            other.mkdir()
            _link(first, other)
        return [self._write_questions(partial / name, out / name, questions) for name, questions in parts.items()]

    def _documents(self) -> Iterator[dict[str, Any]]:
        number = 0
        for number, passage in enumerate(self.source.passages(), 1):
            if number % _STEP == 0:
                self.on_passage(_STEP)
            if passage.id in self.judged:
                self.seen.add(passage.id)
            if not self._stays(passage):
                continue
            if not _has_text(passage):
                self.empty += 1
                continue
            self.documents += 1
            if passage.language:
                self.languages[passage.language] = None
            if passage.id in self.judged:
                self.included.add(passage.id)
            self.ids.add(passage.id)
            record = {"_id": passage.id, "title": passage.title, "text": passage.text}
            yield {**(passage.more or {}), **record, **_labels(passage)}
        self.on_passage(number % _STEP)

    def _stays(self, passage: PoolPassage) -> bool:
        if self.groups is None or passage.group is None:
            return True
        return (passage.language or "") in self.groups.get(passage.group, ())

    def _check(self) -> None:
        if not self.documents:
            raise UsageError(f"{self.source.where} contains no documents: nothing was written.")
        written = ((one.id, one.where) for one in self.source.passages() if self._stays(one) and _has_text(one))
        for name, first, again in self.ids.again(written):
            raise UsageError(_repeated(self.source, "document", name, first, again))
        unknown = self.judged - self.seen
        if unknown and self.source.whole:
            name = min(unknown)
            place = self.source.place(name) if self.source.place else f"{self.source.where}"
            raise UsageError(
                f"{place} judges the document {name!r}, which is not in the corpus: "
                "fetch the whole corpus, or remove the line."
            )

    def _write_questions(self, folder: Path, out: Path, questions: Sequence[JudgedQuestion]) -> ConvertedDataset:
        judged = {one.id: {name: one.judged[name] for name in one.judged if name in self.included} for one in questions}
        answered = [one for one in questions if any(grade > 0 for grade in judged[one.id].values())]
        too_long = [one.id for one in answered if too_many_words(one.text)]
        left_aside = frozenset(too_long)
        stay = [one for one in answered if one.id not in left_aside]
        if not stay:
            raise UsageError(
                f"{self.source.where} has no question with a relevant document for {out}: nothing was written."
            )
        rows = [(one.id, name, grade) for one in stay for name, grade in judged[one.id].items()]
        queries = ({**(one.more or {}), "_id": one.id, "text": one.text, **_labels(one)} for one in stay)
        write_questions(folder, queries, rows)
        if any(one.evidence for one in stay):
            rows_of_evidence = ((one.id, *pair) for one in stay for pair in (one.evidence or {}).items())
            write_evidence(folder / dataset.EVIDENCE, (row for row in rows_of_evidence if row[1] in self.included))
        if answers := [{"query": one.id, "answers": list(one.answers)} for one in stay if one.answers]:
            (folder / dataset.ANSWERS).write_bytes(json_lines(answers))
        if self.source.facts != dataset.DatasetFacts():
            (folder / dataset.FACTS).write_bytes(msgspec.json.encode(self.source.facts) + b"\n")
        left_out = {
            "passages": self.empty,
            "queries": len(questions) - len(answered),
            "judgements": sum(name not in self.seen for one in stay for name in one.judged),
        }
        _require_accepted(folder, self.source)
        named = list(dict.fromkeys([*(tag for tag in self.source.languages if tag in self.languages), *self.languages]))
        return ConvertedDataset(str(out), named, self.pivot, self.documents, len(stay), len(rows), left_out, too_long)


def _require_accepted(folder: Path, source: PoolSource) -> None:
    """Refuse what ``dataset check`` would not accept; whether texts are in their languages is not looked at.

    Raises:
        UsageError: what is wrong, and where.
    """
    problems = [one for one in check_dataset(folder, None).problems if one.problem != SHARED_GROUP]
    if problems:
        one = problems[0]
        more = f" and {one.count - 1:,} more" if one.count > 1 else ""
        raise UsageError(
            f"{source.where} gives no dataset that can be used, and nothing was written: {one.problem} in {one.file} "
            f"({one.examples[0]}{more}). Correct it in the source."
        )


def _has_text(passage: PoolPassage) -> bool:
    return bool(passage.text.strip() or passage.title.strip())


def _rank(group: str, language: str) -> bytes:
    """Where a language stands among those of its group that ``keep`` chooses from; nothing else matters for it."""
    return blake2b(f"{group}\n{language}".encode(), digest_size=16).digest()


def _link(written: Path, folder: Path) -> None:
    """The same corpus in another folder, without its bytes where the file system allows it."""
    for name in (dataset.CORPUS, dataset.LANGUAGES):
        if (written / name).is_file():
            link_or_copy(written / name, folder / name)


def _labels(one: PoolPassage | JudgedQuestion) -> dict[str, str]:
    labels = {"language": one.language, "group": one.group, "article": one.article}
    return {name: value for name, value in labels.items() if value is not None}

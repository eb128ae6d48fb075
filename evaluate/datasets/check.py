"""Check a dataset folder: everything that is wrong with it, not only the first thing.

The corpus is read twice at most and never held; what grows with it is 16 bytes a document.
A text is out of step with its language where the detector is sure that it is in another one, so only
texts of 40 characters or more are heard, and only a posterior of .9 or more counts. XQuAD's passages
all pass; of its 14,280 questions three do not, which are indeed English ones in the Greek file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from langshift.debias.detector import LanguageDetector
from langshift.errors import UsageError
from langshift.evaluate.convert.common import split_judgement
from langshift.evaluate.datasets.dataset import (
    CORPUS,
    EVIDENCE,
    FACTS,
    HEADER,
    HOLDS,
    LANGUAGES,
    QRELS,
    QUERIES,
    parse_evidence,
    read_judged,
)
from langshift.files import identifier, numbered_raw_lines, parse_record
from langshift.languages import UNDETERMINED, macrolanguage, parse_tag, primary

_SHOWN = 5  # examples kept of each kind of problem


@dataclass
class Problem:
    """One kind of problem in one file.

    Attributes:
        problem: what is wrong.
        file: where, within the dataset folder.
        count: how often.
        language: of the texts, where the problem is one of a language.
        examples: the first of them, each with its line where it has one.
    """

    problem: str
    file: str
    count: int = 0
    language: str | None = None
    examples: list[str] = field(default_factory=list)


class DatasetProblems:
    """Problems by kind, in the order in which the kinds were first met."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, str | None], Problem] = {}

    def add(self, problem: str, file: str, example: str, language: str | None = None) -> None:
        """Count one more; its example is kept where there are few."""
        found = self._problems.setdefault((problem, file, language), Problem(problem, file, 0, language))
        found.count += 1
        if len(found.examples) < _SHOWN:
            found.examples.append(example)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._problems.values())


@dataclass
class LanguageCount:
    """What a dataset holds in one language.

    Attributes:
        language: the primary tag; None where lines name none.
        documents: in it.
        queries: in it.
        heard: texts long enough for the detector to be sure of.
        out_of_step: those of them that it is sure are in another language.
        detected: these languages, and how many texts each.
    """

    language: str | None
    documents: int = 0
    queries: int = 0
    heard: int = 0
    out_of_step: int = 0
    detected: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetCheck:
    """The outcome of a check.

    Attributes:
        folder: the dataset.
        documents: how many its corpus has.
        queries: how many it asks.
        judgements: how many it holds.
        languages: counted one by one, most documents first.
        problems: all that was found.
    """

    folder: str
    documents: int
    queries: int
    judgements: int
    languages: list[LanguageCount]
    problems: list[Problem]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return {"clean": self.clean, **asdict(self)}


class DuplicateFinder:
    """Finds keys that come twice, in 8 bytes a key: a corpus can have 30 million."""

    def __init__(self) -> None:
        self._hashes = array("Q")

    def add(self, key: str) -> None:
        """Take note of a key."""
        self._hashes.append(_hash(key))

    def suspects(self) -> frozenset[int]:
        """Hashes that came more than once."""
        hashes = np.sort(np.frombuffer(self._hashes, dtype=np.uint64)) if self._hashes else np.empty(0, np.uint64)
        return frozenset(int(one) for one in np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))


def find_duplicates(keys: Iterable[tuple[str, str]], suspects: frozenset[int]) -> Iterator[tuple[str, str, str]]:
    """Key, its first place and its place, for every key that is there again.

    Args:
        keys: every key with its place, in a second pass.
        suspects: hashes of keys that can come twice.
    """
    first: dict[str, str] = {}
    for key, place in keys:
        if _hash(key) in suspects:
            if key in first:
                yield key, first[key], place
            first.setdefault(key, place)


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


class DatasetFiles:
    """The files of a dataset folder; lines that cannot be read are told to ``found`` and passed over."""

    def __init__(self, folder: Path, found: DatasetProblems) -> None:
        self.folder, self.found = folder, found

    def columns(self, name: str) -> Iterator[tuple[str, list[str]]]:
        """Place and tab-parted columns of each line of a file, if it is there."""
        for place, line in self.lines(name):
            try:
                yield place, line.decode("utf-8").split("\t")
            except UnicodeDecodeError:
                self.found.add("line that cannot be read", name, f"{place}: not UTF-8")

    def records(self, name: str, *, quiet: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
        """Place and JSON object of each line; ``quiet`` tells nothing, for a second pass."""
        for place, line in self.lines(name, quiet=quiet):
            try:
                record = parse_record(line, place)
            except UsageError:
                if not quiet:
                    self.found.add("line that is no JSON object", name, place)
                continue
            yield place, record

    def lines(self, name: str, *, quiet: bool = False) -> Iterator[tuple[str, bytes]]:
        """Place and bytes of each line."""
        if not (self.folder / name).is_file():
            return
        try:
            for number, line in numbered_raw_lines(self.folder / name):
                yield f"line {number}", line
        except UsageError as error:
            if not quiet:
                self.found.add("cannot be read", name, str(error))


_HEARD = 40  # characters
_SURE = 0.9  # posterior
_STEP = 1000  # documents between two reports of progress
_QRELS_HEADER, _LANGUAGES_HEADER = ["query-id", "corpus-id", "score"], ["corpus-id", "language"]


def check_dataset(
    folder: Path, detector: LanguageDetector, on_document: Callable[[int], None] = lambda _: None
) -> DatasetCheck:
    """Check a dataset folder.

    Args:
        folder: the folder.
        detector: says which language a text is in.
        on_document: called with the number of documents read since the last call.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no dataset folder {folder}: {HOLDS}.")
    return _Check(folder, detector, on_document).run()


class _Check:
    def __init__(self, folder: Path, detector: LanguageDetector, on_document: Callable[[int], None]) -> None:
        self.folder, self.detector, self.on_document = folder, detector, on_document
        self.found = DatasetProblems()
        self.files = DatasetFiles(folder, self.found)
        self.languages: dict[str | None, LanguageCount] = {}
        self.judged: dict[str, dict[str, int]] = {}
        # Documents that a file names and the corpus has yet to show: id -> file and place.
        self.missing: dict[str, list[tuple[str, str]]] = {}
        self.query_ids: set[str] = set()
        self.listed_tags: dict[str, str | None] = {}
        self.documents = self.judgements = 0

    def run(self) -> DatasetCheck:
        for name in (CORPUS, QUERIES, QRELS):
            if not (self.folder / name).is_file():
                self.found.add("file missing", name, HOLDS)
        self._facts()
        self._queries()
        self._qrels()
        self._table(LANGUAGES, _LANGUAGES_HEADER, self._language_row)
        self._table(EVIDENCE, list(HEADER), self._evidence_row)
        if (self.folder / CORPUS).is_file():
            self._corpus()
        if (self.folder / QRELS).is_file():
            for query in sorted(self.query_ids):
                if not any(grade > 0 for grade in self.judged.get(query, {}).values()):
                    self.found.add("query without a relevant document", QUERIES, repr(query))
        counts = sorted(self.languages.values(), key=lambda one: (-one.documents, -one.queries, one.language or "~"))
        return DatasetCheck(
            str(self.folder), self.documents, len(self.query_ids), self.judgements, counts, list(self.found)
        )

    def _facts(self) -> None:
        try:
            read_judged(self.folder / FACTS)
        except UsageError as error:
            self.found.add("cannot be read", FACTS, str(error))

    def _queries(self) -> None:
        for place, record in self.files.records(QUERIES):
            name = self._id(record, QUERIES, place)
            if name is not None:
                if name in self.query_ids:
                    self.found.add("id there twice", QUERIES, f"{place}: {name!r}")
                self.query_ids.add(name)
            text = record.get("text")
            text = text if isinstance(text, str) else ""
            if not text.strip():
                self.found.add("empty text", QUERIES, f"{place}: {name!r}")
            count = self._count(self._tag(record, QUERIES, place))
            count.queries += 1
            self._listen(count, text, QUERIES, f"{place}: {name!r}")

    def _corpus(self) -> None:
        ids, versions = DuplicateFinder(), DuplicateFinder()
        for place, record in self.files.records(CORPUS):
            self.documents += 1
            if self.documents % _STEP == 0:
                self.on_document(_STEP)
            name = self._id(record, CORPUS, place)
            if name is not None:
                ids.add(name)
                self.missing.pop(name, None)
            tag = self._tag(record, CORPUS, place) or self.listed_tags.get(name or "")
            text, title = (value if isinstance(value := record.get(field), str) else "" for field in ("text", "title"))
            if not text.strip() and not title.strip():
                self.found.add("empty text", CORPUS, f"{place}: {name!r}")
            count = self._count(tag)
            count.documents += 1
            self._listen(count, text or title, CORPUS, f"{place}: {name!r}")
            if (version := _version(record, tag)) is not None:
                versions.add(version)
        self.on_document(self.documents % _STEP)
        self._repeats(ids.suspects(), versions.suspects())
        for name, places in self.missing.items():
            for file, place in places:
                self.found.add("document that corpus.jsonl lacks", file, f"{place}: {name!r}")

    def _repeats(self, ids: frozenset[int], versions: frozenset[int]) -> None:
        """Name what came twice, in a second pass; there is none where nothing did."""
        if ids:
            names = ((self._name(record), place) for place, record in self.files.records(CORPUS, quiet=True))
            for name, first, place in find_duplicates(((name, place) for name, place in names if name), ids):
                self.found.add("id there twice", CORPUS, f"{place}: {name!r}, as {first}")
        if versions:
            keys: Iterator[tuple[str, str]] = (
                (version, f"{place}: {self._name(record)!r}")
                for place, record in self.files.records(CORPUS, quiet=True)
                if (
                    version := _version(
                        record, self._known_tag(record) or self.listed_tags.get(self._name(record) or "")
                    )
                )
            )
            for version, first, place in find_duplicates(keys, versions):
                group, _, tag = version.partition("\n")
                self.found.add(
                    "group with several passages in one language", CORPUS, f"{group!r} in {tag}: {first} and {place}"
                )

    def _qrels(self) -> None:
        for place, columns in self.files.columns(QRELS):
            if columns == _QRELS_HEADER:
                continue
            parts = split_judgement(columns)
            grade = _number(parts[2]) if parts else None
            if parts is None or grade is None:
                self.found.add("line that cannot be read", QRELS, place)
                continue
            query, document, _ = parts
            self.judgements += 1
            grades = self.judged.setdefault(query, {})
            if document in grades:
                self.found.add("pair judged twice", QRELS, f"{place}: {query!r} and {document!r}")
            grades[document] = max(grade, grades.get(document, grade))
            if query not in self.query_ids:
                self.found.add("query that queries.jsonl lacks", QRELS, f"{place}: {query!r}")
            self._await(document, QRELS, place)

    def _language_row(self, columns: list[str], place: str) -> None:
        tag = parse_tag(columns[1]) if len(columns) == 2 else None
        if tag is None:
            self.found.add("line that cannot be read", LANGUAGES, place)
            return
        self.listed_tags[columns[0]] = primary(tag)
        self._await(columns[0], LANGUAGES, place)

    def _evidence_row(self, columns: list[str], place: str) -> None:
        try:
            query, document, _, _ = parse_evidence(columns, place)
        except UsageError:
            self.found.add("line that cannot be read", EVIDENCE, place)
            return
        if query not in self.query_ids:
            self.found.add("query that queries.jsonl lacks", EVIDENCE, f"{place}: {query!r}")
        self._await(document, EVIDENCE, place)

    def _await(self, document: str, file: str, place: str) -> None:
        """Expect a document in the corpus; the first place of each file that names it is kept."""
        places = self.missing.setdefault(document, [])
        if all(known != file for known, _ in places):
            places.append((file, place))

    def _table(self, name: str, header: list[str], take: Callable[[list[str], str], None]) -> None:
        for number, (place, columns) in enumerate(self.files.columns(name)):
            if number or columns != header[: len(columns)]:
                take(columns, place)

    def _id(self, record: dict[str, Any], file: str, place: str) -> str | None:
        name = self._name(record)
        if name is None:
            self.found.add("no id, or one with white space", file, f"{place}: {record.get('_id')!r}")
        return name

    @staticmethod
    def _name(record: dict[str, Any]) -> str | None:
        try:
            return identifier(record.get("_id"), "")
        except UsageError:
            return None

    def _tag(self, record: dict[str, Any], file: str, place: str) -> str | None:
        value = record.get("language")
        tag = self._known_tag(record)
        if tag is None and value not in (None, "", UNDETERMINED):
            self.found.add("language that is none", file, f"{place}: {value!r}")
        return tag

    @staticmethod
    def _known_tag(record: dict[str, Any]) -> str | None:
        value = record.get("language")
        tag = parse_tag(value) if isinstance(value, str) and value not in ("", UNDETERMINED) else None
        return None if tag is None else primary(tag)

    def _count(self, tag: str | None) -> LanguageCount:
        return self.languages.setdefault(tag, LanguageCount(tag))

    def _listen(self, count: LanguageCount, text: str, file: str, example: str) -> None:
        """Compare a text with the language that it is said to be in."""
        if count.language is None or len(text) < _HEARD:
            return
        count.heard += 1
        heard = self.detector.detect(text)
        if heard.confidence < _SURE or _same(heard.language, count.language):
            return
        count.out_of_step += 1
        count.detected[heard.language] = count.detected.get(heard.language, 0) + 1
        shown = f"{example} is {heard.language} ({heard.confidence:.2f})"
        self.found.add("text in another language", file, shown, count.language)


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _same(one: str, other: str) -> bool:
    return one == other or macrolanguage(one) == other or macrolanguage(other) == one


def _version(record: dict[str, Any], tag: str | None) -> str | None:
    """Group and language of a document, where both are known."""
    group = record.get("group")
    return None if group is None or tag is None else f"{group}\n{tag}"

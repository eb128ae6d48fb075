"""Check a dataset folder: everything that is wrong with it, not only the first thing.

The corpus is read twice at most and never held; what grows with it is 16 bytes a document.
A text is out of step with its language where the detector is sure that it is in another one, so only
texts of 40 characters or more are heard, and only a posterior of .9 or more counts. XQuAD's passages
all pass; of its 14,280 questions three do not, which are indeed English ones in the Greek file.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from langshift.debias.detector import LanguageDetector
from langshift.errors import UsageError
from langshift.evaluate.datasets import annotations, dataset
from langshift.evaluate.datasets.dataset import ANSWERS, CORPUS, EVIDENCE, FACTS, HOLDS, LANGUAGES, QRELS, QUERIES
from langshift.files import identifier, not_utf8, numbered_raw_lines, parse_record
from langshift.ingest.documents import Document, InvalidDocument, parse_fields
from langshift.languages import UNDETERMINED, macrolanguage, parse_tag, primary
from langshift.retrieval import dsl

_SHOWN = 5  # examples kept of each kind of problem
#: What some collections are by nature.
SHARED_GROUP = "group with several documents in one language"


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


class DatasetProblems(dict[tuple[str, str, str | None], Problem]):
    """Problems by kind, in the order in which the kinds were first met."""

    def add(self, problem: str, file: str, example: str, language: str | None = None) -> None:
        """Count one more; its example is kept where there are few."""
        found = self.setdefault((problem, file, language), Problem(problem, file, 0, language))
        found.count += 1
        if len(found.examples) < _SHOWN:
            found.examples.append(example)


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


@dataclass
class DatasetCheck:
    """The outcome of a check.

    Attributes:
        folder: the dataset.
        documents: how many its corpus has.
        queries: how many it asks.
        judgements: how many it holds.
        languages: counted one by one, most documents first.
        problems: all that was found.
        own_documents: how many queries are documents of the same id, which is then left out of what is found for them.
        same_ids: how many more have the id of a document, which counts like any other: it has another text, or is
            judged relevant.
    """

    folder: str
    documents: int = 0
    queries: int = 0
    judgements: int = 0
    languages: list[LanguageCount] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    own_documents: int = 0
    same_ids: int = 0

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

    def again(self, keys: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, str, str]]:
        """Key, its first place and its place, for every key that is there again.

        Args:
            keys: every key with its place, in a second pass; not read where no key can come twice.
        """
        hashes = np.sort(np.array(self._hashes, dtype=np.uint64))
        suspects = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        first: dict[str, str] = {}
        for key, place in keys if suspects else ():
            if key is not None and _hash(key) in suspects:
                if key in first:
                    yield key, first[key], place
                first.setdefault(key, place)


def _hash(key: str) -> int:
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")


_HEARD = 40  # characters
_SURE = 0.9  # posterior
_STEP = 1000  # documents between two reports of progress
# Place, JSON object, id and language of a line; None where it has none, or one that is told as a problem.
_Line = tuple[str, dict[str, Any], str | None, str | None]


def check_dataset(
    folder: Path, detector: LanguageDetector | None, on_document: Callable[[int], None] = lambda _: None
) -> DatasetCheck:
    """Check a dataset folder.

    Args:
        folder: the folder.
        detector: says which language a text is in; None leaves that open.
        on_document: called with the number of documents read since the last call.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"There is no dataset folder {folder}: {HOLDS}.")
    return _Check(folder, detector, on_document).run()


class _Check:
    def __init__(self, folder: Path, detector: LanguageDetector | None, on_document: Callable[[int], None]) -> None:
        self.folder, self.detector, self.on_document = folder, detector, on_document
        self.found = DatasetProblems()
        self.languages: dict[str | None, LanguageCount] = {}
        self.judged: dict[str, dict[str, int]] = {}
        # Documents that a file names and the corpus has yet to show: id -> file and place.
        self.missing: dict[str, list[tuple[str, str]]] = {}
        self.query_texts: dict[str, str] = {}
        self.listed_tags: dict[str, str | None] = {}
        self.outcome = DatasetCheck(str(folder))

    def run(self) -> DatasetCheck:
        for name in (CORPUS, QUERIES, QRELS):
            if not (self.folder / name).is_file():
                self.found.add("file missing", name, HOLDS)
        try:
            dataset.read_facts(self.folder / FACTS)
        except UsageError as error:
            self.found.add("cannot be read", FACTS, str(error))
        self._queries()
        self._table(QRELS, dataset.QRELS_HEADER, self._judgement)
        self._table(LANGUAGES, dataset.LANGUAGES_HEADER, self._language_row)
        self._table(EVIDENCE, annotations.HEADER, self._evidence_row)
        self._answers()
        if (self.folder / CORPUS).is_file():
            self._corpus()
        if (self.folder / QRELS).is_file():
            for query in sorted(self.query_texts):
                if not any(grade > 0 for grade in self.judged.get(query, {}).values()):
                    self.found.add("query without a relevant document", QUERIES, repr(query))
        self.outcome.queries, self.outcome.problems = len(self.query_texts), list(self.found.values())
        self.outcome.languages = sorted(
            self.languages.values(), key=lambda one: (-one.documents, -one.queries, one.language or "~")
        )
        return self.outcome

    def _queries(self) -> None:
        for place, record, name, tag in self._records(QUERIES, self.found):
            text = record.get("text")
            text = text if isinstance(text, str) else ""
            if name is not None:
                if name in self.query_texts:
                    self.found.add("duplicate id", QUERIES, f"{place}: {name!r}")
                self.query_texts[name] = text
            if not text.strip():
                self.found.add("empty text", QUERIES, f"{place}: {name!r}")
            if too_many_words(text):
                self.found.add("query with too many words for a lexical search", QUERIES, f"{place}: {name!r}")
            self._listen(tag, text, QUERIES, f"{place}: {name!r}").queries += 1

    def _corpus(self) -> None:
        ids, versions = DuplicateFinder(), DuplicateFinder()
        for place, record, name, tag in self._corpus_lines(self.found):
            self.outcome.documents += 1
            if self.outcome.documents % _STEP == 0:
                self.on_document(_STEP)
            if name is not None:
                ids.add(name)
                self.missing.pop(name, None)
            text, title = (value if isinstance(value := record.get(field), str) else "" for field in ("text", "title"))
            if not text.strip() and not title.strip():
                self.found.add("empty text", CORPUS, f"{place}: {name!r}")
            elif name is not None and (fault := _fault(record)):
                self.found.add("line that is no document", CORPUS, f"{place}: {fault}")
            if name in self.query_texts:
                self._same_id(name, record)
            self._listen(tag, text or title, CORPUS, f"{place}: {name!r}").documents += 1
            if (version := _version(record, tag)) is not None:
                versions.add(version)
        self.on_document(self.outcome.documents % _STEP)
        self._repeats(ids, versions)
        for name, places in self.missing.items():
            for file, place in places:
                self.found.add("document not in corpus.jsonl", file, f"{place}: {name!r}")

    def _same_id(self, name: str, record: dict[str, Any]) -> None:
        """Count a document that has the id of a query."""
        relevant = self.judged.get(name, {}).get(name, 0) > 0
        own = not relevant and dataset.is_own_document(self.query_texts[name], record)
        self.outcome.own_documents += own
        self.outcome.same_ids += not own

    def _repeats(self, ids: DuplicateFinder, versions: DuplicateFinder) -> None:
        """Name what came twice, in further passes; there are none where nothing did."""
        known = DatasetProblems()  # the first pass has told them
        names = ((name, place) for place, _, name, _ in self._corpus_lines(known))
        for name, first, place in ids.again(names):
            self.found.add("duplicate id", CORPUS, f"{place}: {name!r}, first on {first}")
        lines = self._corpus_lines(known)
        keys = ((_version(record, tag), f"{place}: {name!r}") for place, record, name, tag in lines)
        for version, first, place in versions.again(keys):
            group, _, tag = version.partition("\n")
            example = f"{group!r} in {tag}: {first} and {place}"
            self.found.add(SHARED_GROUP, CORPUS, example)

    def _corpus_lines(self, found: DatasetProblems) -> Iterator[_Line]:
        """Place, JSON object, id and language of each document."""
        for place, record, name, tag in self._records(CORPUS, found):
            yield place, record, name, tag or self.listed_tags.get(name or "")

    def _judgement(self, columns: list[str], place: str) -> None:
        query, document, text = dataset.split_judgement(columns)
        grade = dataset.parse_grade(text)
        self.outcome.judgements += 1
        grades = self.judged.setdefault(query, {})
        if document in grades:
            self.found.add("pair judged twice", QRELS, f"{place}: {query!r} and {document!r}")
        grades[document] = max(grade, grades.get(document, grade))
        self._name_both(query, document, QRELS, place)

    def _language_row(self, columns: list[str], place: str) -> None:
        document, language = columns
        tag = parse_tag(language)
        if tag is None:
            raise ValueError(language)
        self.listed_tags[document] = primary(tag)
        self._await(document, LANGUAGES, place)

    def _evidence_row(self, columns: list[str], place: str) -> None:
        query, document, _ = annotations.parse_evidence(columns, place)
        self._name_both(query, document, EVIDENCE, place)

    def _answers(self) -> None:
        answered: set[str] = set()
        for place, line in self._lines(ANSWERS, self.found):
            try:
                query, _ = annotations.parse_answers(parse_record(line, place), place)
            except UsageError:
                self.found.add("line that cannot be read", ANSWERS, place)
                continue
            self._require_query(query, ANSWERS, place)
            if query in answered:
                self.found.add("query answered twice", ANSWERS, f"{place}: {query!r}")
            answered.add(query)

    def _name_both(self, query: str, document: str, file: str, place: str) -> None:
        """Look for a query, and expect a document in the corpus."""
        self._require_query(query, file, place)
        self._await(document, file, place)

    def _require_query(self, query: str, file: str, place: str) -> None:
        if query not in self.query_texts:
            self.found.add("query not in queries.jsonl", file, f"{place}: {query!r}")

    def _await(self, document: str, file: str, place: str) -> None:
        """Expect a document in the corpus; the first place of each file that names it is kept."""
        places = self.missing.setdefault(document, [])
        if all(known != file for known, _ in places):
            places.append((file, place))

    def _table(self, name: str, head: Sequence[str], take: Callable[[list[str], str], None]) -> None:
        """Take each line of a file but its head, as far as that is written; ``take`` raises what cannot be read."""
        for number, (place, line) in enumerate(self._lines(name, self.found)):
            if fault := not_utf8(line):
                self.found.add("line that cannot be read", name, f"{place}: {fault}")
                continue
            columns = line.decode("utf-8").split("\t")
            if number or columns != [*head[: len(columns)]]:
                try:
                    take(columns, place)
                except (UsageError, ValueError):
                    self.found.add("line that cannot be read", name, place)

    def _records(self, file: str, found: DatasetProblems) -> Iterator[_Line]:
        """The lines that are JSON objects; what is wrong with a line, its id or its language is told to ``found``."""
        for place, line in self._lines(file, found):
            if fault := not_utf8(line):
                found.add("line that cannot be read", file, f"{place}: {fault}")
                continue
            try:
                record = parse_record(line, place)
            except UsageError:
                found.add("line that is not a JSON object", file, place)
                continue
            name = tag = None
            try:
                name = identifier(record.get("_id"), "")
            except UsageError:
                found.add("missing id, or id with white space", file, f"{place}: {record.get('_id')!r}")
            try:
                tag = dataset.primary_language(record.get("language"), "")
            except UsageError:
                found.add("invalid language tag", file, f"{place}: {record['language']!r}")
            yield place, record, name, tag

    def _lines(self, name: str, found: DatasetProblems) -> Iterator[tuple[str, bytes]]:
        """Place and bytes of each line."""
        if not (self.folder / name).is_file():
            return
        try:
            for number, line in numbered_raw_lines(self.folder / name):
                yield f"line {number}", line
        except UsageError as error:
            found.add("cannot be read", name, str(error))

    def _listen(self, tag: str | None, text: str, file: str, example: str) -> LanguageCount:
        """Compare a text with the language that it is said to be in, and give what is counted in that."""
        count = self.languages.setdefault(tag, LanguageCount(tag))
        if self.detector is None or tag is None or len(text) < _HEARD:
            return count
        count.heard += 1
        heard = self.detector.detect(text)
        same = primary(heard.language) in (tag, macrolanguage(tag)) or macrolanguage(heard.language) == tag
        if heard.confidence < _SURE or same:
            return count
        count.out_of_step += 1
        count.detected[heard.language] = count.detected.get(heard.language, 0) + 1
        shown = f"{example} detected as {heard.language} ({heard.confidence:.2f})"
        self.found.add("text in another language", file, shown, tag)
        return count


def too_many_words(text: str) -> bool:
    """Whether a query cannot be asked by its words in an index that has titles and texts."""
    try:
        dsl.matching(text, UNDETERMINED)
    except UsageError:
        return True
    return False


def _fault(record: dict[str, Any]) -> str | None:
    """Why a line of the corpus is no document, beside its language; None where it is one."""
    try:
        found = parse_fields({**record, "language": None}, "ignored")
    except InvalidDocument as error:
        return str(error).rstrip(".")
    return None if isinstance(found, Document) else "it deletes or updates a document, which only an index has"


def _version(record: dict[str, Any], tag: str | None) -> str | None:
    """Group and language of a document, where both are known."""
    group = record.get("group")
    return None if group is None or tag is None else f"{group}\n{tag}"

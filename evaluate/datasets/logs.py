"""Logs of queries, in whatever form they are: one reader for replays, calibration and audits.

=====================  =============================================================================================
form                   how it is known
=====================  =============================================================================================
search slow log        the first line begins as OpenSearch's does, ``[time][LEVEL][index.search.slowlog.query] …``,
                       or is an object with that ``type`` or with such a line as its ``message``
CSV                    a name that ends with ``.csv`` or ``.tsv``
JSON Lines             a name that ends with ``.jsonl``, ``.ndjson`` or ``.json``, or a first line that begins with {
plain text             any other: a query on each line
=====================  =============================================================================================

An object may be a hit as exports have it, with its fields under ``_source``. What User Behavior Insights keeps in
``ubi_queries`` (``user_query``, ``query_id``, ``timestamp``) is known by ``user_query``.
"""

import csv
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import UsageError, no_file
from langshift.evaluate.datasets.dataset import QueryLine, QueryParser
from langshift.files import LONGEST_LINE, decode_line, lines_of, parse_record, text_lines
from langshift.plugin.metadata import value_at
from langshift.reporting import note
from langshift.wording import pluralize

TEXT, TIME = "text", "timestamp"
USER_QUERY, QUERY_ID, ACTION = "user_query", "query_id", "action_name"
#: What a log is, for messages.
FORMS = "JSON Lines, CSV, plain text with a query on each line, a search slow log or ubi_queries"


class LogFields(NamedTuple):
    """Which fields of a log are read.

    Attributes:
        query: the field with the words; None for ``text``, or ``user_query`` where that is there.
        time: the field with the time; None for ``timestamp``, which a log need not have.
        redact: fields that are read as if they were not there; of the one with the words, nothing is kept.
    """

    query: str | None = None
    time: str | None = None
    redact: Collection[str] = ()


_USUAL = LogFields()


class QueryLog:
    """A log, read line by line.

    Attributes:
        path: the file.
        words_kept: whether the words may be written anywhere; known once the lines are read.
    """

    def __init__(self, path: Path, fields: LogFields = _USUAL) -> None:
        self.path, self.fields, self.words_kept = path, fields, True
        self._seen: set[str] = set()
        self._left_out: dict[str, int] = {}

    def lines(self) -> Iterator[QueryLine]:
        """Yield each query with the number of its line; a query without an id has that number as one.

        Raises:
            UsageError: no such file, no query, or a line that cannot be used; named by file and line.
        """
        if not self.path.is_file():
            raise UsageError(f"{no_file(self.path)}: give a log, which is {FORMS}.")
        first = next((line for _, line in lines_of(self.path)), None)
        if first is None:
            raise UsageError(f"{self.path} is empty: give a log, which is {FORMS}.")
        found = 0
        for line in self._read(first):
            found += 1
            yield line
        for what, count in self._left_out.items():
            note(f"{self.path}: {pluralize(count, 'line')} left out, {what}.")
        if unknown := [name for name in self.fields.redact if name not in self._seen]:
            raise UsageError(f"{self.path} has no field {unknown[0]!r} to redact: correct --redact.")
        if not found:
            raise UsageError(f"{self.path} has no query: give a log, which is {FORMS}.")

    def _read(self, first: bytes) -> Iterator[QueryLine]:
        name = re.sub(r"\.(gz|zst)$", "", self.path.name.lower())
        if _SLOW.match(first):
            return self._slow_lines()
        if name.endswith((".csv", ".tsv")):
            return self._rows("\t" if name.endswith(".tsv") else None)
        if name.endswith((".jsonl", ".ndjson", ".json")) or first.lstrip().startswith(b"{"):
            return self._objects()
        return self._plain()

    def leave_out(self, why: str) -> None:
        """Count a line that is no query of its own."""
        self._left_out[why] = self._left_out.get(why, 0) + 1

    def query(
        self, parser: QueryParser, record: Mapping[str, Any], number: int, words: str, identity: str = "_id"
    ) -> QueryLine:
        """The query of a line whose words are in the field ``words``."""
        where, time = f"{self.path}, line {number}", self.fields.time or TIME
        self._seen.update(record)
        self._seen.update(name for name in self.fields.redact if value_at(record, name) is not None)
        self.words_kept = words not in self.fields.redact
        if self.fields.query is not None and value_at(record, words) is None:
            raise UsageError(f"{where}, has no {words}: correct --query-field, or remove the line.")
        if self.fields.time is not None and value_at(record, time) is None:
            raise UsageError(f"{where}, has no {time}: correct --time-field, or remove the line.")
        kept = {name: value for name, value in record.items() if name not in self.fields.redact}
        text = value_at(record, words)
        if words == TEXT and text is None and self.fields.query is None:
            has = ", ".join(sorted(record)[:_NAMED]) or "none"
            raise UsageError(f"{where}, has no text: name the field with the query by --query-field (fields: {has}).")
        given = {**kept, TEXT: text, "_id": kept.get(identity)}
        when = None if time in self.fields.redact else value_at(record, time)
        return parser.parse({name: value for name, value in given.items() if name != TIME}, number, where, when)

    def _objects(self) -> Iterator[QueryLine]:
        parser, slow, known = QueryParser(), _SlowLog(self), set[str]()
        for number, line in lines_of(self.path):
            where = f"{self.path}, line {number}"
            record = unwrap(parse_record(line, where))
            if self.fields.query is None and (of_slow_log := _slow_fields(record)) is not None:
                yield from slow.read(*of_slow_log, number)
                continue
            if self.fields.query is not None or TEXT in record or not record.keys() & {USER_QUERY, ACTION}:
                yield self.query(parser, record, number, self.fields.query or TEXT)
                continue
            if ACTION in record:
                raise UsageError(
                    f"{where}, is an event of User Behavior Insights, not a query: give the lines of ubi_queries; "
                    "`langshift dataset convert ubi` makes judgements of ubi_events."
                )
            text, name = record[USER_QUERY], record.get(QUERY_ID)
            if text is None or (isinstance(text, str) and not text.strip()):
                self.leave_out("which have no words")
            elif isinstance(name, str) and name in known:
                self.leave_out("which are further pages of a query")
            else:
                known.add(str(name))
                yield self.query(parser, record, number, USER_QUERY, QUERY_ID)

    def _rows(self, delimiter: str | None) -> Iterator[QueryLine]:
        parser, words = QueryParser(), self.fields.query or TEXT
        rows = csv_rows(self.path, delimiter)
        number, heads = next(rows, (0, []))
        for name in filter(None, (words, self.fields.time)):
            if heads and name not in heads:
                option = "--query-field" if name == words else "--time-field"
                raise UsageError(
                    f"{self.path}, line {number}, has no column {name}: name it by {option} "
                    f"(columns: {', '.join(heads)})."
                )
        for number, row in rows:
            yield self.query(parser, {**dict.fromkeys(heads), **_filled(heads, row)}, number, words)

    def _plain(self) -> Iterator[QueryLine]:
        if self.fields.query is not None or self.fields.time is not None:
            option = "--query-field" if self.fields.query is not None else "--time-field"
            raise UsageError(f"{self.path} is plain text, which has no fields: leave {option} out.")
        parser = QueryParser()
        for number, line in lines_of(self.path):
            yield self.query(parser, {TEXT: decode_line(line, f"{self.path}, line {number}")}, number, TEXT)

    def _slow_lines(self) -> Iterator[QueryLine]:
        slow = _SlowLog(self)
        for number, line in lines_of(self.path):
            yield from slow.read(decode_line(line, f"{self.path}, line {number}"), None, number)


_NAMED = 10


def _filled(heads: list[str], row: list[str]) -> dict[str, str]:
    """The columns of a row that are not empty."""
    return {head: value for head, value in zip(heads, row, strict=True) if value}


def unwrap(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a line that may be a hit, as exports of an index have it."""
    source = record.get("_source")
    if not isinstance(source, dict):
        return record
    return {**({"_id": record["_id"]} if "_id" in record else {}), **source}


def csv_rows(path: Path, delimiter: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the last line and the fields of each row that is not blank.

    Args:
        path: the file.
        delimiter: what parts fields; None takes the first of comma, semicolon and tab that is in the first line.

    Raises:
        UsageError: a line that is not UTF-8, or a row that is damaged or has more or fewer fields than the first.
    """
    csv.field_size_limit(LONGEST_LINE)
    if delimiter is None:
        head = next(text_lines(path), "")
        delimiter = next((one for one in ",;\t" if one in head), ",")
    rows = csv.reader((f"{line}\n" for line in text_lines(path)), delimiter=delimiter, strict=True)
    width = 0
    try:
        for row in filter(None, rows):
            width = width or len(row)
            if len(row) != width:
                raise UsageError(
                    f"{path}, line {rows.line_num}, has {pluralize(len(row), 'field')}, and the first line has "
                    f"{width}: correct or remove the line."
                )
            yield rows.line_num, row
    except csv.Error as error:
        raise UsageError(f"{path}, line {rows.line_num}, is not valid CSV ({error}): correct the line.") from None


# Log4j may write a logger by its first letters: [i.s.s.query    ].
_SLOW = re.compile(
    rb"\[[^\]]+\]\s*\[\s*[A-Z]+\s*\]\s*\[\s*(?:index\.search\.slowlog|i\.s\.s)\.(?:query|fetch)\S*\s*\]", re.ASCII
)
_SLOW_HEAD = re.compile(r"\[([^\]]+)\]\s*\[[^\]]*\]\s*\[([^\]]*)\]")
_SHARD = re.compile(r"\[[^\[\]]*\]\[\d+\]")
_SOURCE = re.compile(r"\bsource\[(?=\{)")
# What is the same search in another shard is logged at nearly the same time.
_TOGETHER = 100


def _slow_fields(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None] | None:
    """The line of a slow log that an object holds, or its fields; None where it is none."""
    message = record.get("message")
    if isinstance(message, str) and _SLOW.match(message.encode(errors="replace")):
        return message, None
    if str(record.get("type", "")).endswith("search_slowlog") or "search.slowlog" in str(record.get("component", "")):
        return "", record
    return None


class _SlowLog:
    """The queries of a search slow log: of each search one, though every shard that is slow logs it."""

    def __init__(self, log: QueryLog) -> None:
        self._log, self._parser, self._decoder = log, QueryParser(), json.JSONDecoder()
        # Words -> the number of the last line that has them, and the shards that have logged them.
        self._recent: dict[str, tuple[int, set[str]]] = {}

    def read(self, line: str, record: Mapping[str, Any] | None, number: int) -> Iterator[QueryLine]:
        """Yield the query of a line, or nothing.

        Args:
            line: as log4j writes it.
            record: its fields, where it is JSON.
            number: of the line.

        Raises:
            UsageError: it is of another form.
        """
        time, logger, shard, source = self._parts(line, number) if record is None else self._fields(record, number)
        if ".fetch" in logger:
            self._log.leave_out("which are about fetching what was found")
            return
        text = words_of(source.get("query"))
        if text is None:
            self._log.leave_out("which are no searches by words")
            return
        last, shards = self._recent.get(text, (number, set[str]()))
        again = bool(shards) and shard not in shards and number - last <= _TOGETHER
        self._recent[text] = number, {*shards, shard} if again else {shard}
        if again:
            self._log.leave_out("which are further shards of a search")
            return
        yield self._log.query(self._parser, {TEXT: text, TIME: time}, number, TEXT)

    def _parts(self, line: str, number: int) -> tuple[str, str, str, Mapping[str, Any]]:
        head, place = _SLOW_HEAD.match(line), _SOURCE.search(line)
        where, took, _ = line[head.end() if head else 0 :].partition("took[")
        if head is None or place is None or not took:
            raise self._refused(number)
        try:
            source, _ = self._decoder.raw_decode(line, place.end())
        except (ValueError, RecursionError):
            raise self._refused(number) from None
        shards = _SHARD.findall(where)
        return head[1], head[2], shards[-1] if shards else where.strip(), source

    def _fields(self, record: Mapping[str, Any], number: int) -> tuple[str, str, str, Mapping[str, Any]]:
        try:
            source = self._decoder.decode(str(record.get("source")))
        except (ValueError, RecursionError):
            source = None
        if not isinstance(source, dict):
            raise self._refused(number)
        return str(record.get(TIME)), str(record.get("component")), str(record.get("message")), source

    def _refused(self, number: int) -> UsageError:
        return UsageError(
            f"{self._log.path}, line {number}, is not as a search slow log has it, with source[{{...}}]: correct or "
            "remove the line."
        )


# Of what a search consists of, where its words stand.
_BY_FIELD = {"match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "neural", "neural_sparse"}
_BY_QUERY = {"multi_match", "query_string", "simple_query_string", "combined_fields", "langshift"}
_WORDS = ("query", "query_text", "text")
# What restricts a search says nothing of what was asked.
_ASIDE = {"must_not", "filter", "negative", "script", "functions"}
# ... but where it is all there is.
_FILTER_ALONE = "constant_score"


def words_of(query: object) -> str | None:
    """Return the words that a query of OpenSearch searches for; None where it has none.

    They stand in ``match`` and its kin, ``multi_match``, ``query_string``, ``simple_query_string``,
    ``combined_fields``, ``neural``, ``neural_sparse`` and langshift's own query, also within other queries, but in
    filters. The first that come count.
    """
    waiting = [query]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += reversed(one)
        elif isinstance(one, dict):
            for name, content in one.items():
                parts = (content,) if name in _BY_QUERY else ()
                if name in _BY_FIELD and isinstance(content, dict):
                    parts = tuple(content.values())
                if (words := next(filter(None, map(_own_words, parts)), None)) is not None:
                    return words
            inner = [
                content.get("filter") if name == _FILTER_ALONE and isinstance(content, dict) else content
                for name, content in one.items()
                if name not in _ASIDE
            ]
            waiting += reversed([content for content in inner if isinstance(content, (dict, list))])
    return None


def _own_words(content: object) -> str | None:
    if isinstance(content, dict):
        content = next((content[name] for name in _WORDS if isinstance(content.get(name), str)), None)
    return content if isinstance(content, str) and content.strip() else None

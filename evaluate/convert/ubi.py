"""Weak judgements from clicks, as User Behavior Insights logs them, by COEC: clicks over expected clicks.

::

    ubi_queries.ndjson   query_id and user_query on each line, as hits or their _source
    ubi_events.ndjson    action_name, query_id, event_attributes.object.object_id and event_attributes.position.ordinal
    corpus.jsonl         the documents, as a dataset folder has them

People click what stands at the top, good or not. So a document's clicks for a query are divided by those that are
expected of it: for each time that it was shown, the share of what was shown at that rank, whatever the query, that was
clicked (Zhang and Jones, 2007; the Search Relevance Workbench counts so, too). 1 is as many as usual.

* Shown is what has an event ``impression``. In a log without any, it is what ``query_response_hit_ids`` lists.
* A document counts as shown, and as clicked, once for each ``query_id``. The first 20 ranks count.
* Judged is what was shown at least ``LEAST`` times for the same words: grade 2 from a COEC of 1.5, 1 from .5, else 0.
* Queries of the same words are one, named ``q1``, ``q2`` ... in order: no client, session or time is read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from langshift.errors import UsageError
from langshift.evaluate.convert.beir import find, passages
from langshift.evaluate.convert.common import Chosen, require_folder
from langshift.evaluate.convert.pool import JudgedQuestion, PoolSource
from langshift.evaluate.datasets.dataset import CORPUS
from langshift.evaluate.datasets.logs import ACTION, QUERY_ID, USER_QUERY, unwrap
from langshift.files import records
from langshift.reporting import note
from langshift.wording import pluralize

QUERIES, EVENTS = "ubi_queries", "ubi_events"
_SUFFIXES = (".ndjson", ".jsonl", ".json")
#: A document is judged for a query that was shown so often for it; and ranks below this one are not looked at.
LEAST, DEEPEST = 10, 20
#: From so many clicks, by those expected, the grade is 2, or 1.
GRADES = ((1.5, 2), (0.5, 1))
_CLICK, _IMPRESSION = "click", "impression"


class _Event(NamedTuple):
    """A document shown or clicked.

    Attributes:
        query: the ``query_id``.
        words: of the query.
        document: its id.
        rank: where it stood.
    """

    query: str
    words: str
    document: str
    rank: int


#: Query id and document -> what was seen.
_Seen = dict[tuple[str, str], _Event]


def read_ubi(folder: Path, languages: Chosen) -> PoolSource:
    """A log of clicks as a source of pools.

    Args:
        folder: the folder.
        languages: tags of the documents to take; None takes all, also those that name none.

    Raises:
        UsageError: a missing file, a line of another layout, or no document that was shown often enough.
    """
    require_folder(folder, f"name one with {CORPUS}, {QUERIES}.ndjson and {EVENTS}.ndjson")
    corpus = find(folder, CORPUS)
    words, responses = _queries(_file(folder, QUERIES))
    shown, clicked = _events(_file(folder, EVENTS), words, responses)
    judged = coec(shown, clicked)
    if not judged:
        raise UsageError(
            f"{folder} has no document that was shown {LEAST} times for the same query, so clicks judge none: give a "
            "longer log."
        )
    questions = [JudgedQuestion(f"q{n}", text, None, grades) for n, (text, grades) in enumerate(judged.items(), 1)]
    return PoolSource(folder, list(languages or []), questions, lambda: passages(corpus, {}, languages), whole=False)


def coec(
    shown: Mapping[tuple[str, str], _Event], clicked: Mapping[tuple[str, str], _Event]
) -> dict[str, dict[str, int]]:
    """Words of a query -> document -> grade, of what was shown often enough.

    Args:
        shown: query and document -> where it was shown.
        clicked: the same of what was clicked; what was not shown does not count.
    """
    clicks = [shown[key] for key in clicked if key in shown]
    at, clicked_at = Counter(one.rank for one in shown.values()), Counter(one.rank for one in clicks)
    expected: dict[tuple[str, str], float] = defaultdict(float)
    times = Counter((one.words, one.document) for one in shown.values())
    found = Counter((one.words, one.document) for one in clicks)
    for one in shown.values():
        expected[one.words, one.document] += clicked_at[one.rank] / at[one.rank]
    judged: dict[str, dict[str, int]] = {}
    for (words, document), usual in expected.items():
        # Where nobody clicks at all, that nobody clicked says nothing.
        if times[words, document] >= LEAST and usual > 0:
            ratio = found[words, document] / usual
            grade = next((grade for least, grade in GRADES if ratio >= least), 0)
            judged.setdefault(words, {})[document] = grade
    return judged


def _file(folder: Path, name: str) -> Path:
    places = [folder / f"{name}{suffix}{packed}" for suffix in _SUFFIXES for packed in ("", ".gz")]
    path = next((path for path in places if path.is_file()), None)
    if path is None:
        raise UsageError(f"{folder} has no {name}.ndjson: export the index {name}, a document on each line.")
    return path


def _queries(path: Path) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Query id -> its words, and query id -> the documents of its response."""
    words: dict[str, str] = {}
    responses: dict[str, list[str]] = {}
    for number, line in records(path):
        record = unwrap(line)
        name, text = record.get(QUERY_ID), record.get(USER_QUERY)
        if not isinstance(name, str) or not name:
            raise UsageError(f"{path}, line {number}, has no {QUERY_ID}: give the lines of {QUERIES}.")
        if isinstance(text, str) and text.strip():
            words.setdefault(name, " ".join(text.split()))
        hits = record.get("query_response_hit_ids")
        if isinstance(hits, list):
            responses.setdefault(name, list(map(str, hits)))
    return words, responses


def _events(path: Path, words: Mapping[str, str], responses: Mapping[str, list[str]]) -> tuple[_Seen, _Seen]:
    """What was shown, and what was clicked: each query and document once, at the first place."""
    shown, clicked = _Seen(), _Seen()
    unused = 0
    for action, event in _parsed(path, words):
        if event is None:
            unused += 1
        elif event.rank <= DEEPEST:
            (shown if action == _IMPRESSION else clicked).setdefault((event.query, event.document), event)
    if unused:
        note(f"{path}: {pluralize(unused, 'event')} left out, without a known query, a document or a position.")
    if not shown:
        for query, documents in responses.items():
            for rank, document in enumerate(documents[:DEEPEST], 1):
                if query in words:
                    shown.setdefault((query, document), _Event(query, words[query], document, rank))
    return shown, clicked


def _parsed(path: Path, words: Mapping[str, str]) -> Iterator[tuple[str, _Event | None]]:
    """Each impression and click; None where something is missing."""
    for number, line in records(path):
        record = unwrap(line)
        action, query = str(record.get(ACTION, "")).lower(), record.get(QUERY_ID)
        if not action:
            raise UsageError(f"{path}, line {number}, has no {ACTION}: give the lines of {EVENTS}.")
        if action not in (_CLICK, _IMPRESSION):
            continue
        attributes = record.get("event_attributes")
        document, rank = _inner(attributes, "object", "object_id"), _inner(attributes, "position", "ordinal")
        text = words.get(str(query)) or record.get(USER_QUERY)
        if isinstance(rank, bool) or not (rank is None or isinstance(rank, int)) or (rank is not None and rank < 0):
            raise UsageError(f"{path}, line {number}, has the position {rank!r}: it must be a whole number from 0.")
        if (
            not isinstance(query, str)
            or not isinstance(text, str)
            or not text.strip()
            or document is None
            or rank is None
        ):
            yield action, None
        else:
            yield action, _Event(str(query), " ".join(str(text).split()), str(document), rank)


def _inner(attributes: Any, first: str, second: str) -> Any:  # noqa: ANN401 - any JSON
    inner = attributes.get(first) if isinstance(attributes, dict) else None
    return inner.get(second) if isinstance(inner, dict) else None

"""What a replay asks: the plan, and the requests made from it before the first is sent."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from msgspec import to_builtins
from numpy.typing import NDArray

from langshift.debias.encoders.sparse import TokenWeights
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import Dataset, DatasetQuery, QueryLine, unique_id
from langshift.evaluate.datasets.logs import QueryLog
from langshift.evaluate.datasets.texts import query_languages, query_tags
from langshift.evaluate.replay.journal import Identity, ReplayJournal, begin, resume, unfinished
from langshift.evaluate.replay.requests import (
    TOP_K,
    LoadProfile,
    PreparedQuery,
    alternating,
    encode,
    encode_weights,
    prepare,
)
from langshift.evaluate.runs import command, require_room
from langshift.evaluate.within import SearchedPart
from langshift.languages import UNDETERMINED, text_language
from langshift.retrieval.calibration.stored import ModeChoice
from langshift.retrieval.filters import IndexFilter
from langshift.retrieval.question import AnchorModel, SearchQuery
from langshift.retrieval.request import MOST_CHARACTERS, MOST_HITS, RECOMMENDED, SearchSettings, format_settings
from langshift.retrieval.searcher import Searcher

MOST_QUERIES = 100_000


class LoggedQuery(NamedTuple):
    """One query of a log.

    Attributes:
        time: when it came, in seconds since 1970; None in a log without times.
        query: what was asked.
    """

    time: float | None
    query: DatasetQuery


def read_log(log: QueryLog, speed: float = 1.0) -> list[LoggedQuery]:
    """Read a log, in the order of its times; one in which no line has a time, in the order of its lines.

    Args:
        log: the log. A time is ISO 8601, in UTC without an offset, or seconds, milliseconds, micro- or nanoseconds
            since 1970.
        speed: how much faster than it came it will be sent.

    Raises:
        UsageError: no file, no query, too many, or a line that cannot be used, or that would be sent more than a week
            after the first; named by file and line.
    """
    path, lines = log.path, dict[str, QueryLine]()
    for line in log.lines():
        if len(lines) == MOST_QUERIES:
            raise UsageError(f"{path} has more than {MOST_QUERIES:,} queries: split it, and replay the parts in turn.")
        characters = len(line.query.text)
        if characters > MOST_CHARACTERS:
            raise UsageError(
                f"{path}, line {line.number}, has a query of {characters:,} characters, and a search takes at most "
                f"{MOST_CHARACTERS:,}: shorten or remove the line."
            )
        lines[unique_id(line.query.id, path, line.number, lines)] = line
    if all(line.timestamp is None for line in lines.values()):
        return [LoggedQuery(None, line.query) for line in lines.values()]
    timed = [(_time(line.timestamp, f"{path}, line {line.number}"), line) for line in lines.values()]
    timed.sort(key=itemgetter(0))
    first, earliest = timed[0]
    for time, line in timed:
        if (waits := (time - first) / speed) > MOST_SECONDS:
            raise UsageError(
                f"{path}, line {line.number}, would be sent {waits / _DAY:,.0f} days after line {earliest.number}, and "
                f"a replay may last {MOST_SECONDS // _DAY}: correct the timestamp, split the log, or raise --speed."
            )
    return [LoggedQuery(time, line.query) for time, line in timed]


# Nobody waits longer for a replay.
_DAY = 86_400
MOST_SECONDS = 7 * _DAY
# No two units have a time between these two years in common, so that each number tells its own.
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # 2000 and 2100, in seconds since 1970
_PER_SECOND = (1_000, 1_000_000, 1_000_000_000)


def _time(value: object, where: str) -> float:
    """A time in seconds since 1970.

    Raises:
        UsageError: beginning with ``where``, that it is none.
    """
    text = str(value).strip()
    try:
        if isinstance(value, (int, float)) or re.fullmatch(r"-?\d{9,}(\.\d+)?", text, re.ASCII):
            return _seconds(float(text))
        # Python 3.10 reads no Z, no offset without a colon, and no fraction but of three or six digits.
        text = re.sub(r"(?<=:\d\d)[.,](\d+)", lambda found: f".{found[1]:0<6.6}", re.sub("[zZ]$", "+00:00", text))
        read = datetime.fromisoformat(re.sub(r"(?<=\d)([+-]\d\d)(\d\d)$", r"\1:\2", text))
        return (read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{where}, has the timestamp {value!r}: give one such as 2026-03-01T08:30:00.250Z, or seconds since 1970."
        ) from None


def _seconds(number: float) -> float:
    """A number of seconds, milliseconds, micro- or nanoseconds as seconds.

    Raises:
        ValueError: it is a likely time in none of these units.
    """
    if 0 <= number < _LATEST:
        return number
    for unit in _PER_SECOND:
        if _EARLIEST <= number / unit < _LATEST:
            return number / unit
    raise ValueError(number)


@dataclass(frozen=True)
class ReplayOptions:
    """How to replay.

    Attributes:
        settings: how to search; every index is searched in each.
        load: how queries are sent.
        measures: what to measure; the default measures if None.
        log: what is asked, and when it came; the dataset's own queries if None.
        group_scores: whether to ask for the scores of whole translation groups, where the dataset has such.
        depth: how many hits of each query, 1 to ``MOST_HITS``.
    """

    settings: Sequence[SearchSettings] = (RECOMMENDED,)
    load: LoadProfile = field(default_factory=LoadProfile)
    measures: Sequence[str] | None = None
    log: Sequence[LoggedQuery] | None = None
    group_scores: bool = False
    depth: int = TOP_K

    @property
    def times(self) -> list[float] | None:
        """When each query of the log came; None without a log, and of one without times."""
        times = [one.time for one in self.log or () if one.time is not None]
        return times or None


class ReplayTarget(NamedTuple):
    """One index searched in one setting: what a replay tells apart.

    Attributes:
        searcher: over the index.
        setting: how it is to be searched; it may be in the mode ``auto``.
        chosen: how it is searched.
        questions: each query as it is asked.
        part: what each query searches, with ``within``; None where all is searched.
    """

    searcher: Searcher
    setting: SearchSettings
    chosen: ModeChoice
    questions: Sequence[SearchQuery]
    part: SearchedPart | None = None

    @property
    def trust(self) -> AnchorModel | None:
        """What ``anchored`` reckons with in the index; None in other modes."""
        return self.searcher.trust if self.chosen.setting.mode == "anchored" else None


@dataclass(frozen=True)
class ReplayPlan:
    """The requests of a replay, and what they are made of.

    Attributes:
        targets: every index in every setting, the settings of the first index first.
        dataset: the judgements, and the documents.
        queries: what is asked.
        languages: query id -> language, None where unknown; the same for all indices.
        scored: query id -> the documents whose scores are asked for beside the ranking; empty where none are.
        requests: each query in each way, in the order of sending.
    """

    targets: Sequence[ReplayTarget]
    dataset: Dataset
    queries: Sequence[DatasetQuery]
    languages: Mapping[str, str | None]
    scored: Mapping[str, Sequence[str]]
    requests: Sequence[PreparedQuery]

    @classmethod
    def of(
        cls,
        searchers: Sequence[Searcher],
        dataset: Dataset,
        options: ReplayOptions,
        on_batch: Callable[[int], None] = lambda _: None,
    ) -> ReplayPlan:
        """Detect languages, encode the queries, once for each encoder, and prepare the requests.

        Args:
            searchers: over the indices.
            dataset: the judgements, and the queries where the plan has none.
            options: how to replay.
            on_batch: called with the number of queries encoded after each batch.

        Raises:
            UsageError: a query that cannot be asked, too much for the memory, or a field that ``within`` names and an
                index lacks.
            ClusterError: the cluster does not tell which judged documents a query searches.
        """
        queries = dataset.queries if options.log is None else merged(options.log, dataset)
        require_room(len(queries) * len(searchers) * len(options.settings), options.depth)
        # Detect.
        tags = query_tags(queries)
        languages = query_languages(queries, tags)
        # As the index writes languages: nn as no, arz as ar.
        written = [text_language(languages[query.id] or UNDETERMINED) for query in queries]
        # Encode.
        encoded: dict[tuple[object, ...], NDArray[np.float32]] = {}
        parts: dict[tuple[str, str], SearchedPart] = {}
        replay_targets = []
        for searcher in searchers:
            own: NDArray[np.float32] | None = None
            chosen = [searcher.resolve(setting) for setting in options.settings]
            weights: Sequence[TokenWeights | None] = [None] * len(queries)
            if any(one.setting.needs_weights for one in chosen):
                weights = encode_weights(searcher, queries, on_batch)
            if any(setting.needs_vector for setting in options.settings):
                encoder = searcher.encoder
                # Equal for two indices whose encoders give queries the same vectors.
                key = encoder.id, encoder.revision, encoder.query_prefix, encoder.dimension
                if key not in encoded:
                    encoded[key] = encode(searcher, queries, on_batch)
                own = encoded[key]
            for setting, choice in zip(options.settings, chosen, strict=True):
                vectors = own if own is not None and setting.needs_vector else [None] * len(queries)
                asked = zip(queries, written, vectors, weights, strict=True)
                questions = [SearchQuery(query.text, *known) for query, *known in asked]
                within, part = setting.within, None
                if within is not None:
                    place = searcher.index.index, within
                    if place not in parts:
                        parts[place] = SearchedPart.of(searcher, within, queries, languages, dataset)
                    part = parts[place]
                replay_targets.append(ReplayTarget(searcher, setting, choice, questions, part))
        # Prepare.
        groups = queries if options.group_scores and dataset.members else ()
        wanted = ((query.id, dataset.target_group(query.id, query.group)) for query in groups)
        scored = {query: documents for query, documents in wanted if documents}
        known: dict[bytes, bytes] = {}
        # As many are left where the query's own document is left out.
        sizes = [min(options.depth + (query.id in dataset.own_documents), MOST_HITS) for query in queries]
        content = [
            prepare(target.searcher, target.chosen.setting, target.questions, known, sizes, filters_of(target, queries))
            for target in replay_targets
        ]
        names = [target.searcher.index.index for target in replay_targets]
        due = options.load.due(len(queries), options.times)
        requests = list(alternating(names, queries, content, due, scored))
        return cls(replay_targets, dataset, queries, languages, scored, requests)


def filters_of(target: ReplayTarget, queries: Sequence[DatasetQuery]) -> list[IndexFilter | str] | None:
    """What the hits of each query must match, or why it cannot be asked; None where all is searched."""
    part = target.part
    if part is None:
        return None
    return [part.filters.get(query.id) or part.values.refusals[query.id] for query in queries]


def merged(log: Sequence[LoggedQuery], dataset: Dataset) -> list[DatasetQuery]:
    """The queries of a log, with what the dataset knows of those of the same id."""
    queries = {query.id: query for query in dataset.queries}
    found = []
    for _, logged in log:
        known = queries.get(logged.id, logged)
        # A vector that the dataset brings is that of its own words.
        embedding = known.embedding if logged.text == known.text else logged.embedding
        named = logged if logged.language else known
        fields = {**known.fields, **logged.fields}
        known = known._replace(text=logged.text, language=named.language, tag=named.tag)
        found.append(known._replace(embedding=embedding, fields=fields))
    return found


def detection_warnings(replay_plan: ReplayPlan) -> list[str]:
    """Say how many queries named no language, so that theirs were detected."""
    unnamed = [query.id for query in replay_plan.queries if query.language is None]
    if not unnamed:
        return []
    unclear = sum(replay_plan.languages[query] is None for query in unnamed)
    left = f"; {unclear:,} without a clear language are left out of the measures by language" if unclear else ""
    return [f"{len(unnamed):,} of {len(replay_plan.queries):,} queries name no language, so it was detected{left}."]


def run_names(indices: Sequence[str], settings: Sequence[SearchSettings]) -> list[str]:
    """What the run of each index in each setting is called: ``news``, ``hybrid-prefer-language-0.02``, or both."""
    if len(settings) == 1:
        return list(indices)
    how = [re.sub(r"[\s/\\]+(--)?", "-", format_settings(setting)) for setting in settings]
    return how if len(indices) == 1 else [f"{index}-{name}" for index in indices for name in how]


def folders_of(output: Path, names: Sequence[str]) -> list[Path]:
    """Where the files of each run go: ``output``, or folders there of their names where there are several."""
    return [output / name for name in names] if len(names) > 1 else [output]


def check_resume(output: Path, names: Sequence[str], *, resume: bool) -> None:
    """Refuse what cannot be gone on with, and to begin anew over what can.

    Args:
        output: the folder.
        names: of the runs.
        resume: whether to go on.

    Raises:
        UsageError: there is something to go on with and nobody says so, or nothing.
    """
    begun = [folder for folder in folders_of(output, names) if unfinished(folder)]
    if begun and not resume:
        raise UsageError(
            f"{begun[0]} contains an unfinished replay: resume it with --resume, name another --output, "
            "or remove the folder to start again."
        )
    if resume and not begun:
        raise UsageError(f"{output} contains no unfinished replay: leave --resume out to start one.")


def open_journals(output: Path, replay_plan: ReplayPlan, options: ReplayOptions) -> list[ReplayJournal]:
    """Open the journal of each run: go on with one that was cut off, and begin the others.

    Nothing is written or removed before all is checked.

    Args:
        output: the folder.
        replay_plan: what is replayed.
        options: how.

    Raises:
        UsageError: a journal is of something else.
    """
    indices = list(dict.fromkeys(target.searcher.index.name for target in replay_plan.targets))
    folders = folders_of(output, run_names(indices, options.settings))
    identities = [_identity(target, replay_plan, options) for target in replay_plan.targets]
    replays = dict(zip(folders, identities, strict=True))
    resumed = {folder: resume(folder, identity) for folder, identity in replays.items() if unfinished(folder)}
    return [resumed.get(folder) or begin(folder, identity, command()) for folder, identity in replays.items()]


def _identity(target: ReplayTarget, replay_plan: ReplayPlan, options: ReplayOptions) -> Identity:
    """What must be the same for answers to belong together: queries, index, setting, and how they are sent."""
    index = target.searcher.index
    vectors = [None if query.embedding is None else _digest(query.embedding.tobytes()) for query in replay_plan.queries]
    queries = [
        [query.id, query.text, replay_plan.languages[query.id], vector]
        for query, vector in zip(replay_plan.queries, vectors, strict=True)
    ]
    sent = {name: value for name, value in options.load.to_dict().items() if name != "warm_up"}
    values = [] if target.part is None else [target.part.values.texts]
    return {
        "queries": _digest(orjson.dumps([queries, options.times, *values])),
        "index": index.index,
        "documents": index.documents,
        "setting": to_builtins(target.setting),
        "resolved": to_builtins(target.chosen.setting),
        "trust": None if target.trust is None else target.trust.to_dict(),
        "top_k": options.depth,
        "indices": [one.searcher.index.name for one in replay_plan.targets],
        "load": sent,
        "fingerprint": index.fingerprint.to_dict(),
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]

"""Replay: every query of a dataset or a log against live indices, scored by the dataset's judgements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from opensearchpy import OpenSearch

from langshift.debias.encoder_languages import unread_in_words
from langshift.debias.fingerprint import Fingerprint
from langshift.errors import LangshiftError
from langshift.evaluate import within
from langshift.evaluate.datasets.dataset import Dataset
from langshift.evaluate.datasets.texts import DatasetLanguages, document_languages, indexed_languages, misfits
from langshift.evaluate.measures import default_measures
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20
from langshift.evaluate.replay.journal import ReplayJournal
from langshift.evaluate.replay.load_generator import LoadStats, send
from langshift.evaluate.replay.plan import ReplayOptions, ReplayPlan, ReplayTarget, detection_warnings
from langshift.evaluate.replay.requests import TOP_K, LoadProfile, QueryResult
from langshift.evaluate.runs import by_language, scored, too_shallow
from langshift.plugin.index_sample import count_languages
from langshift.plugin.metadata import USUAL, FieldNames
from langshift.retrieval.calibration.stored import ModeChoice
from langshift.retrieval.filters import NO_FILTER
from langshift.retrieval.plans import execute_many
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import SearchSettings

# As deep as MostShown@20 looks.
_SHOWN = 20
#: Query id -> every document of its target -> score, None where it has none.
GroupScores = Mapping[str, Mapping[str, "float | None"]]


@dataclass(frozen=True)
class ReplayResult:
    """What a replay found.

    Attributes:
        index: what was searched, an alias or a version.
        version: the version.
        setting: how it was to be searched; it may be in the mode ``auto``.
        chosen: how it was searched, and why; None for as it was to be.
        fingerprint: what made the index.
        languages: query id -> language, None where unknown.
        answers: one for each query, in the order of the dataset or log.
        scores: measure -> figures.
        warnings: sentences on what makes the figures less than they seem.
        load: how the queries were sent.
        sending: how that went.
        group_scores: query id -> every document of its target -> score, None where it has none; empty if not
            asked for.
        dataset: what was replayed; with ``within``, without the judgements of what a query did not search.
        documents: document id -> language, None where unknown.
        fields: the index's names of fields.
        trust: what ``anchored`` reckoned with; None in other modes.
        unread: languages of the index that its encoder does not read, with their documents.
        values: query id -> its value of the field that ``within`` names; empty where all was searched.
        depth: how many hits of each query were requested.
    """

    index: str
    version: str
    setting: SearchSettings
    fingerprint: Fingerprint
    languages: Mapping[str, str | None]
    answers: Sequence[QueryResult]
    scores: Mapping[str, Scores]
    warnings: Sequence[str]
    load: LoadProfile = field(default_factory=LoadProfile)
    sending: LoadStats = field(default_factory=LoadStats)
    group_scores: GroupScores = field(default_factory=dict, repr=False)
    dataset: Dataset | None = field(default=None, repr=False, compare=False)
    documents: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    fields: FieldNames = USUAL
    trust: AnchorModel | None = None
    unread: Mapping[str, int] = field(default_factory=dict)
    chosen: ModeChoice | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    depth: int = TOP_K

    @property
    def failed(self) -> Sequence[QueryResult]:
        """The queries that failed; each counts as an empty answer."""
        return [answer for answer in self.answers if answer.error is not None]

    @property
    def refused(self) -> Sequence[QueryResult]:
        """Those of them that could not be asked at all, such as one of too many words."""
        return [answer for answer in self.failed if answer.reached and not answer.sent]

    @property
    def complete(self) -> bool:
        """Whether the cluster was there for every query, be it with an error."""
        return all(answer.reached for answer in self.answers)

    def by_language(self) -> dict[str, dict[str, Scores]]:
        """Query language -> measure -> figures, sorted by language."""
        return by_language(self.scores, self.languages)


#: How many queries a message names.
_NAMED = 10


def failures(found: ReplayResult, *, resumable: bool = False) -> str:
    """Say how many queries failed, and why the first did.

    Args:
        found: a replay with failed queries.
        resumable: whether the answers are on disk, so that the rest can be sent later.
    """
    first = found.failed[0]
    message = (
        f"{len(found.failed):,} of {len(found.answers):,} queries failed and count as empty answers; "
        f"the first, {first.query}: {first.error}"
    )
    if others := [answer.query for answer in found.refused if answer is not first]:
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        message += f" Others that cannot be asked: {', '.join(others[:_NAMED])}{more}."
    if found.complete or not resumable:
        return message
    missing = sum(not answer.reached for answer in found.answers)
    return (
        f"{message} The result is marked as incomplete: run the same command with --resume to send the {missing:,} "
        "queries that did not reach the cluster."
    )


def replay_all(
    clients: Sequence[OpenSearch],
    replay_plan: ReplayPlan,
    options: ReplayOptions,
    *,
    journals: Sequence[ReplayJournal] = (),
    on_answer: Callable[[], None] = lambda: None,
) -> list[ReplayResult]:
    """Send every query to every index in every setting, in alternation, and score the answers.

    Args:
        clients: the cluster; queries that are under way at once are spread over them.
        replay_plan: the queries, made into requests.
        options: how.
        journals: one for each way, where answers are to be kept on disk; queries that they have are not sent.
        on_answer: called after each query.

    Raises:
        ClusterError: the cluster fails outside of the queries; failed queries are part of the result.
    """
    opened = {target.searcher.index.index: target.searcher for target in replay_plan.targets}
    known = {name: document_languages(clients[0], one.index, replay_plan.dataset) for name, one in opened.items()}
    # Read before anything is sent: the cluster may be gone in the end.
    remarks = [_remarks(target) for target in replay_plan.targets]
    # Send.
    answers, sendings = send(clients, replay_plan.requests, len(replay_plan.targets), options.load, journals, on_answer)
    # Score.
    found = []
    for target, heard, sending, notes in zip(replay_plan.targets, answers, sendings, remarks, strict=True):
        dataset, part = replay_plan.dataset, target.part
        if part is not None:
            dataset = dataset.within(part.outside)
        searcher, index = target.searcher, target.searcher.index
        documents, unnamed = known[index.index]
        in_order = [_without_own(dataset, heard[query.id], options.depth) for query in replay_plan.queries]
        run = {answer.query: dict(answer.hits) for answer in in_order}
        group_scores, lacking = _group_scores(clients[0], replay_plan, target, heard)
        names = default_measures(dataset.judged) if options.measures is None else options.measures
        held: Mapping[str, int] | None = None
        if not dataset.qrels:
            # Which languages are shown is all that can be told, beside what the index holds of each.
            names = [MOST_SHOWN_20] if all(answer.reached for answer in in_order) else []
            shown = dict.fromkeys(name for answer in in_order for name, _ in answer.hits[:_SHOWN] if names)
            documents = {**documents, **indexed_languages(clients[0], index.index, index.fields, shown)}
            held = count_languages(clients[0], index.index, index.fields) if names else None
        matched = {query: {n: s for n, s in its.items() if s is not None} for query, its in group_scores.items()}
        languages = DatasetLanguages({}, documents, replay_plan.languages, ())
        places = {answer.query: answer.places for answer in in_order}
        scores = scored(names, dataset, languages, run, matched, passages=places, held=held)
        warnings = [*dataset.remarks, *misfits(searcher, dataset, run), *detection_warnings(replay_plan)]
        warnings += [*unnamed, *notes, *lacking, *too_shallow(names, options.depth, len(dataset.documents))]
        if part is not None:
            warnings += within.remarks(target.setting.within, dataset)
        result = ReplayResult(
            index=index.name,
            version=index.index,
            setting=target.setting,
            fingerprint=index.fingerprint,
            languages=replay_plan.languages,
            answers=in_order,
            scores=scores,
            warnings=warnings + [f"{name}: {measured.note}" for name, measured in scores.items() if measured.note],
            load=options.load,
            sending=sending,
            group_scores=group_scores,
            dataset=dataset,
            documents=documents,
            fields=index.fields,
            unread=index.unread if target.setting.needs_vector else {},
            trust=target.trust,
            chosen=target.chosen,
            values={} if part is None else part.values.texts,
            depth=options.depth,
        )
        found.append(result)
    return found


def _without_own(dataset: Dataset, answer: QueryResult, depth: int) -> QueryResult:
    """The answer without the document that the query itself is, for which one hit more was asked for."""
    return answer._replace(hits=tuple(islice(dataset.without_own(answer.query, answer.hits), depth)))


def _remarks(target: ReplayTarget) -> list[str]:
    """Say what makes figures of this setting less than they seem, whatever is found."""
    index = target.searcher.index
    asked = target.chosen.origin == "asked"
    remarks = target.searcher.remarks(target.setting) if asked else []
    if target.setting.needs_vector:
        remarks += unread_in_words(index.fingerprint.encoder, index.unread, index.fields.entry)
    if not target.setting.one_per_group:
        return remarks
    # A ranking that shows one document of a translation group lacks the others.
    return [*remarks, "Only one document of each translation group counts as found, so recall of the others is low."]


def _group_scores(
    client: OpenSearch, replay_plan: ReplayPlan, target: ReplayTarget, heard: Mapping[str, QueryResult]
) -> tuple[GroupScores, list[str]]:
    """The scores of target groups, and sentences on those that could not be had."""
    if not replay_plan.scored or not all(answer.reached for answer in heard.values()):
        return {}, []
    scores, errors = fetch_group_scores(client, replay_plan, target, heard)
    if not errors:
        return scores, []
    first = next(iter(errors))
    return scores, [
        f"The group scores of {len(errors):,} of {len(replay_plan.scored):,} queries are not available, and LPR leaves "
        f"these queries out; the first, {first}: {errors[first]}"
    ]


# Whether a searcher's language is preferred (LPR) is a question about the translations of one passage among
# themselves, and some of these may be far below the hundred best. So each query is asked again over these
# alone, in the setting of its own run and with what the run knows of its scores (``how``): each leg is scored
# apart, and one that the run normalised by its lowest and highest score is normalised by the same two, not by
# those of the group. A passage that the search does not match has no score (null in the file): it is behind
# every passage that has one.
def fetch_group_scores(
    client: OpenSearch, replay_plan: ReplayPlan, target: ReplayTarget, heard: Mapping[str, QueryResult]
) -> tuple[GroupScores, dict[str, str]]:
    """Ask for the scores, many queries to a request.

    Args:
        client: the cluster.
        replay_plan: which documents to score.
        target: how the run was searched.
        heard: query id -> the answer of the run, which says how its scores were put together.

    Returns:
        The scores, and query id -> reason for those that could not be had. Nothing is asked for a query that failed
        in the run: as it has no answer, its documents have no score.
    """
    wanted, searcher, part = replay_plan.scored, target.searcher, target.part
    if part is not None:
        inside = ((query, part.outside.get(query, ()), names) for query, names in wanted.items())
        wanted = {query: [name for name in names if name not in outside] for query, outside, names in inside}
    questions = {query.id: question for query, question in zip(replay_plan.queries, target.questions, strict=True)}
    scores: dict[str, Mapping[str, float | None]] = {query: dict.fromkeys(names) for query, names in wanted.items()}
    errors = {}
    answered = [query for query in wanted if heard[query].error is None]
    exchanges = (
        searcher.scores(
            questions[query],
            target.chosen.setting,
            heard[query].how,
            wanted[query],
            NO_FILTER if part is None else part.filters[query],
        )
        for query in answered
    )
    for query, found in zip(answered, execute_many(client, searcher.index.index, exchanges), strict=True):
        if isinstance(found, LangshiftError):
            errors[query] = str(found)
            del scores[query]
        else:
            scores[query] = found
    return scores, errors

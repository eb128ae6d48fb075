"""The command ``anchors calibrate``."""

from collections.abc import Callable
from itertools import islice
from typing import Final

import click
from opensearchpy import OpenSearch

from langshift.client import open_cluster
from langshift.commands.log_options import log_options
from langshift.commands.search_options import search_options
from langshift.debias.encoders.base import Encoder, is_given
from langshift.errors import UsageError
from langshift.evaluate.datasets.logs import QueryLog
from langshift.languages import text_language
from langshift.output import emit_json, line, note, progress, table
from langshift.parameters import JSON, CommandGroup, option
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo, live
from langshift.plugin.whole_view import require_whole_view
from langshift.retrieval import dsl
from langshift.retrieval.calibration import calibrate as calibrating
from langshift.retrieval.calibration.calibrate import Calibration, CalibrationRun, LoggedWords
from langshift.retrieval.calibration.changes import INTERVAL, Prediction, gain, loss
from langshift.retrieval.calibration.stored import NoAnswer, resolve_auto, store_calibration, weight_remarks
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import MOST_CHARACTERS
from langshift.retrieval.searcher import Searcher
from langshift.wording import format_change, format_score, join_words


@click.group(cls=CommandGroup)
def anchors() -> None:
    """Calibrate anchored search (langshift search --mode anchored) for an index.

    \b
    Example:
      langshift anchors calibrate news
    """


@anchors.command()
@click.argument("name")
@option(
    "--sample N",
    "How many documents to sample, evenly from every language.",
    click.IntRange(30, 2000),
    default=calibrating.SAMPLE,
)
@log_options(
    "A log of what people asked: only queries are made then that are about as vague as these and repeat as many words."
)
@search_options
@JSON
def calibrate(name: str, sample: int, log: QueryLog | None, search: SearchOptions, as_json: bool) -> None:
    """Find the best mode for searches of the index NAME (an alias or a version), and how far words may lead them.

    No judgements are needed: queries are made of documents of the index, clear and vague, in their words and in words
    of which half or all are replaced, with and without an answer in the query's language. How hard real queries are is
    not known without a log of them (--queries). So the strength of anchored search and the weight of words in hybrid
    search are the highest found at which it is sure, for each kind of these queries, that they lose next to nothing
    compared with dense search; at strength 0 anchored search is dense.

    The result is stored in the index's mapping, where searches find it: mode auto uses the best mode. No document is
    changed. The same index gives the same result. A retune carries it over, and says that a new one is due.

    \b
    Example:
      langshift anchors calibrate news
    """
    client = open_cluster()
    index = live(client, name)
    calibration = calibrate_index(client, index, sample, search, log)
    if as_json:
        emit_json({"index": index.index, **calibration.to_dict()})
    else:
        _show_calibration(index, calibration)


# More say no more of how people ask.
_MOST_LOGGED: Final = 2_000


def read_log(log: QueryLog, searcher: Searcher) -> list[LoggedWords]:
    """Logged queries, the first 2,000 of them; a language that is not named is detected.

    One that has too many words for the index is left out, and named.

    Raises:
        UsageError: as ``QueryLog.lines``; or no query can be asked.
    """
    found = []
    for number, query, named, _ in islice(log.lines(), _MOST_LOGGED):
        words = query.text[:MOST_CHARACTERS]
        tag = query.tag or query.language or searcher.language(words).language
        try:
            dsl.matching(words, text_language(tag), fields=searcher.index.fields)
        except UsageError as error:
            note(f"{log.path}, line {number}, is left out: {error}")
            continue
        found.append(LoggedWords(words, tag, query.id if named else None))
    if not found:
        raise UsageError(f"{log.path} has no query that can be asked: shorten its queries, or give another log.")
    return found


_ANSWERS = {"own": "in the query's language", "other": "in others only"}
_STRENGTHS = {0.0: "exactly dense", 1.0: "the most"}


def _show_calibration(index: IndexInfo, calibration: Calibration) -> None:
    rows = [
        [
            _ANSWERS[one.answer],
            "any" if one.vagueness is None else f"{one.vagueness:.0%}",
            one.overlap,
            f"{one.questions:,}",
            format_score(one.dense),
            format_change(one.ndcg),
            format_score(INTERVAL * one.error),
            format_change(one.tlr),
            format_change(one.own),
        ]
        for one in calibration.changes
    ]
    columns = ["answer", "heard", "words", "queries", "dense", "anchored", "±", "TLR", "own@3"]
    table(None, columns, rows, right={"heard", *columns[3:]})
    strength, trust = calibration.trust.strength, calibration.trust
    for sentence in (
        "",
        "heard: how much of a sentence a query's vector is made of; the less, the vaguer. words: how many of its words",
        "are the document's; the others are replaced. dense: nDCG@20 of dense search. anchored, ±, TLR: the change by",
        "anchored search with the strength below, half of its 95% interval (by document or group); that of TLR, recall",
        "of answers in other languages (the mean of TLR@15 to TLR@25); that of own@3, how often an answer in the",
        "query's language is among the first three hits.",
        "",
        f"{index.index}: mode auto is {calibration.mode}. {reason(calibration)}",
        f"Strength of anchored search: {strength:g}{f' ({_STRENGTHS[strength]})' if strength in _STRENGTHS else ''}; "
        f"spread of cosines: {trust.spread:.4f}.",
        f"Hybrid search with words weighing {calibration.lexical_weight:g} loses no more than "
        f"{format_score(calibrating.tolerated(calibration.translated))} in any part of these queries (95% confidence)."
        if calibration.lexical_weight is not None
        else weight_remarks(index.name, None, 0)[0],
        *(
            [f"Beside that, weights of tokens may weigh {calibration.sparse_weight:g}."]
            if calibration.sparse_weight is not None
            else []
        ),
        *(_rerank_in_words(mode, calibration) for mode in calibration.rerank),
        _no_answer_in_words(calibration.no_answer),
        *([_TRANSLATED] if calibration.translated >= calibrating.ALL_TRANSLATED else ()),
    ):
        line(sentence)
    by_language = [one for one in calibration.predicted if one.language]
    if by_language and calibration.mode != "dense":
        rows = [[str(one.language), f"{one.questions:,}", *_ends(one)] for one in by_language]
        columns = ["language", "queries", "from", "to"]
        table("\nChange of nDCG@20 by mode auto", columns, rows, right=set(columns[1:]))


_TRANSLATED: Final = (
    "Nearly all documents are there in every language, so what queries without an answer in theirs would lose does not "
    "count."
)


def _ends(one: Prediction) -> tuple[str, str]:
    return format_change(one.lowest), format_change(one.highest)


def _rerank_in_words(mode: str, calibration: Calibration) -> str:
    strength = calibration.rerank[mode]
    if not strength:
        return f"Reranking (--rerank features) would cost answers in mode {mode}, so it leaves the order as it is."
    change = format_change(gain(calibration.reranked[mode]))
    return f"Reranking (--rerank features) may go {strength:g} of its way in mode {mode} (nDCG@20 {change} on average)."


def _no_answer_in_words(found: NoAnswer) -> str:
    if not found.tells:
        caught = f"{found.caught:.0%} caught"
        return f"How near the nearest document is tells too little of whether anything answers ({caught})."
    return (
        f"A query whose nearest document has a cosine below {found.below:.4f} probably has no answer here: that "
        f"catches {found.caught:.0%} of made-up queries without one."
    )


def reason(calibration: Calibration) -> str:
    """Why a calibration chose its mode, in a sentence: what was measured, and how sure that is."""
    if calibration.mode != "dense":
        where = {"own": "an answer is in the query's language", "other": "none is"}
        between = [
            f"between {' and '.join(_ends(one))} where {where[one.answer]}"
            for one in calibration.predicted
            if one.answer
        ]
        hard = "about as hard as those of the log" if calibration.overlap is not None else "from clear to vague"
        return (
            f"With queries made of {calibration.cost.documents:,} documents, {hard}, it changes nDCG@20 by something "
            f"{join_words(between)} (the outermost ends of their 95% intervals, by document or group)."
        )
    full = calibration.full_strength
    found, lost = gain(full), loss(calibrating.counted(full, calibration.translated))
    if found < calibrating.WORTH_WHILE:
        return f"Words tell too little here (nDCG@20 {format_change(found)} at full strength) for a search led by them."
    return f"Words may cost too much here: up to {format_score(lost)} at full strength."


def calibration_due(index: IndexInfo) -> str | None:
    """Say that an index is to be calibrated; None where its calibration holds, or where none can be made."""
    choice = resolve_auto(index) if index.calibratable else None
    return choice.reason if choice is not None and choice.origin == "default" else None


def calibrate_index(
    client: OpenSearch,
    index: IndexInfo,
    sample: int,
    search: SearchOptions,
    log: QueryLog | None = None,
    opened: dict[str, Encoder] | None = None,
    on_progress: Callable[[], None] = lambda: None,
) -> Calibration:
    """Calibrate an index and keep what is found in its mapping; standard error shows how far it is.

    Args:
        client: the cluster.
        index: the index.
        sample: how many documents to ask for at most.
        search: where its encoder is.
        log: what people asked; None where nobody knows.
        opened: encoders by name that are open already.
        on_progress: called whenever something begins or is done; what it raises ends the calibration.

    Raises:
        UsageError: its vectors were given, so that no query can be encoded, or no query of the log can be asked.
        ClusterError: the index cannot be calibrated, or its user sees a part of it.
        LangshiftError: its encoder fails.
        OpenSearchException: the cluster refuses, or does not answer.
    """
    require_whole_view(client, index.index, "a calibration")
    calibrating.require_languages(index)
    encoder = search.encoder or index.fingerprint.encoder
    if is_given(encoder):
        raise UsageError(
            f"The encoder {encoder} of {index.name} cannot encode queries, since its model is not available, and a "
            "calibration needs queries: anchored search continues with default values."
        )
    # Whoever may not write what is found learns it before the time that it takes.
    metadata.change(client, index.index, {})
    searcher = Searcher(client, index, search, opened)
    logged = [] if log is None else read_log(log, searcher)
    run = CalibrationRun(searcher, sample)
    cost = run.cost
    note(
        f"Calibrating {index.index} with {cost.documents:,} documents: {cost.encoded + len(logged):,} texts to encode, "
        f"and about {cost.searches:,} searches."
    )
    with progress() as bars:
        stage = bars.add_task("Drawing documents", total=None, rate="")

        def on_stage(what: str, total: int) -> None:
            bars.reset(stage, description=what, total=total or None)
            on_progress()

        def on_search(done: int) -> None:
            bars.advance(stage, done)
            on_progress()

        calibration = run.measure(logged, on_stage=on_stage, on_search=on_search)
    store_calibration(client, index, calibration.to_dict())
    return calibration

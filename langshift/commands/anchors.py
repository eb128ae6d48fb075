"""The command ``anchors calibrate``."""

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.client import open_cluster
from langshift.commands.search_options import search_options
from langshift.debias.encoders.base import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import read_queries
from langshift.languages import text_language
from langshift.output import emit_json, line, note, progress, table
from langshift.parameters import PATH, CommandGroup, json_or_tables, option
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo, live
from langshift.retrieval import dsl
from langshift.retrieval.calibration.calibrate import (
    WORTH_WHILE,
    Calibration,
    CalibrationRun,
    LoggedWords,
    gain,
    loss,
    require_languages,
)
from langshift.retrieval.calibration.stored import resolve_auto, store_calibration, weight_remarks
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import MOST_CHARACTERS, SearchOptions
from langshift.wording import format_change, format_score


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
    "--sample N", "How many documents to sample, evenly from every language.", click.IntRange(30, 2000), default=400
)
@option(
    "--queries FILE",
    "What people asked, one JSON object with text (and language) on each line: the queries made then repeat as much of "
    "the documents' words as these.",
    PATH,
)
@option("--seed N", "Draw other documents and words.", click.IntRange(0), default=0, rare=True)
@search_options
@json_or_tables
def calibrate(name: str, sample: int, queries: Path | None, seed: int, search: SearchOptions, as_json: bool) -> None:
    """Find the best mode for searches of the index NAME (an alias or a version), and how far words may lead them.

    No judgements are needed: queries are made of documents of the index, in their words and in words of which half or
    all are replaced, and each is searched twice, once in the whole index and once with its document hidden, as if that
    did not exist in the query's language. The strength of anchored search and the weight of words in hybrid search are
    the highest found at which nothing is lost compared with dense search; at strength 0 anchored search is dense.

    The result is stored in the index's mapping, where searches find it: mode auto uses the best mode. No document is
    changed. The same index gives the same result. A retune carries it over, and says that a new one is due.

    \b
    Example:
      langshift anchors calibrate news
    """
    client = open_cluster()
    index = live(client, name)
    require_languages(index)
    encoder = search.encoder or index.fingerprint.encoder
    if is_given(encoder):
        raise UsageError(
            f"The encoder {encoder} of {index.name} cannot encode queries, since its model is not available, and a "
            "calibration needs queries: anchored search continues with default values."
        )
    # Whoever may not write what is found learns it before the minutes that it takes.
    metadata.change(client, index.index, {})
    searcher = Searcher(client, index, search)
    log = [] if queries is None else read_log(queries, searcher)
    run = CalibrationRun(searcher, sample, seed)
    cost = run.cost
    note(
        f"Calibrating {index.index} with {cost.documents:,} documents: {cost.encoded + len(log):,} texts to encode, "
        f"and about {cost.searches:,} searches."
    )
    with progress() as bars:
        stage = bars.add_task("Drawing documents", total=None, rate="")
        calibration = run.measure(
            log,
            on_stage=lambda what, total: bars.reset(stage, description=what, total=total or None),
            on_search=lambda done: bars.advance(stage, done),
        )
    store_calibration(client, index, calibration.to_dict())
    if as_json:
        emit_json({"index": index.index, **calibration.to_dict()})
    else:
        _show_calibration(index, calibration)


# More say no more of how people ask.
_MOST_LOGGED: Final = 2_000


def read_log(path: Path, searcher: Searcher) -> list[LoggedWords]:
    """Logged queries, the first 2,000 of them; a language that is not named is detected.

    One that has too many words for the index is left out, and named.

    Raises:
        UsageError: as ``read_queries``; or no query can be asked.
    """
    found = []
    for number, query, named, _ in islice(read_queries(path), _MOST_LOGGED):
        words = query.text[:MOST_CHARACTERS]
        tag = query.tag or query.language or searcher.language(words).language
        try:
            dsl.matching(words, text_language(tag), fields=searcher.index.fields)
        except UsageError as error:
            note(f"{path}, line {number}, is left out: {error}")
            continue
        found.append(LoggedWords(words, tag, query.id if named else None))
    if not found:
        raise UsageError(f"{path} has no query that can be asked: write JSON Lines, each with the text of a query.")
    return found


_ANSWERS = {"own": "in the query's language", "other": "in others only"}
_STRENGTHS = {0.0: "exactly dense", 1.0: "the most"}


def _show_calibration(index: IndexInfo, calibration: Calibration) -> None:
    rows = [
        [
            _ANSWERS[one.answer],
            one.overlap,
            f"{one.questions:,}",
            format_score(one.dense),
            format_change(one.ndcg),
            format_change(one.tlr),
        ]
        for one in calibration.changes
    ]
    columns = ["answer", "words kept", "queries", "dense nDCG@20", "anchored", "TLR@20"]
    table(None, columns, rows, right=set(columns[2:]))
    strength, trust = calibration.trust.strength, calibration.trust
    for sentence in (
        "",
        "words kept: how many of the query's words are the document's; the others are replaced. anchored, TLR@20: how",
        "much anchored search with the strength below changes nDCG@20 and the recall of answers in other languages.",
        "",
        f"{index.index}: mode auto is {calibration.mode}. {reason(calibration)}",
        f"Strength of anchored search: {strength:g}{f' ({_STRENGTHS[strength]})' if strength in _STRENGTHS else ''}; "
        f"spread of cosines: {trust.spread:.4f}.",
        f"Hybrid search loses nothing with words weighing {calibration.lexical_weight:g}."
        if calibration.lexical_weight is not None
        else weight_remarks(index.name, None, 0)[0],
        *(_rerank_in_words(mode, calibration) for mode in calibration.rerank),
    ):
        line(sentence)


def _rerank_in_words(mode: str, calibration: Calibration) -> str:
    strength = calibration.rerank[mode]
    if not strength:
        return f"Reranking (--rerank features) would cost answers in mode {mode}, so it leaves the order as it is."
    change = format_change(gain(calibration.reranked[mode]))
    return f"Reranking (--rerank features) may go {strength:g} of its way in mode {mode} (nDCG@20 {change} on average)."


def reason(calibration: Calibration) -> str:
    """Why a calibration chose its mode, in a sentence."""
    if calibration.mode != "dense":
        change = format_change(gain(calibration.hybrid if calibration.mode == "hybrid" else calibration.changes))
        return f"It finds answers in the query's language better (nDCG@20 {change} on average), and nothing is lost."
    found, lost = gain(calibration.full_strength), loss(calibration.full_strength)
    if found < WORTH_WHILE:
        return f"Words tell too little here (nDCG@20 {format_change(found)} at full strength) for a search led by them."
    return f"Words would cost too much here: up to {format_score(lost)} at full strength."


def calibration_due(index: IndexInfo) -> str | None:
    """Say that an index is to be calibrated; None where its calibration holds, or where none can be made."""
    choice = resolve_auto(index) if index.calibratable else None
    return choice.reason if choice is not None and choice.origin == "default" else None


def note_calibration_due(client: OpenSearch, name: str) -> None:
    """Say so of an index that was changed; what cannot be read now is told by the next search."""
    with suppress(LangshiftError, OpenSearchException):
        if sentence := calibration_due(live(client, name)):
            note(sentence)

"""The commands ``search`` and ``anchors calibrate``."""

import textwrap
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from rich.text import Text

from langshift.client import open_cluster
from langshift.debias.encoders import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import optional_tag
from langshift.files import records, string
from langshift.languages import require_tag, text_language
from langshift.output import emit_json, line, note, out, progress, table, write_json
from langshift.parameters import PATH, Command, CommandGroup, flag, json_or_tables, option
from langshift.plugin import metadata
from langshift.plugin.versions import IndexInfo, check_name, live
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
from langshift.retrieval.hits import Hit, Other, Passage, SearchResult
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import (
    MOST_CHARACTERS,
    MOST_PASSAGES,
    SearchOptions,
    SearchSettings,
    require_query,
    search_options,
    setting_options,
)
from langshift.wording import format_change, format_score, pluralize


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
    log = [] if queries is None else read_queries(queries, searcher)
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


def read_queries(path: Path, searcher: Searcher) -> list[LoggedWords]:
    """Logged queries, the first 2,000 of them; a language that is not named is detected.

    One that has too many words for the index is left out, and named.

    Raises:
        UsageError: no such file, none in it, or a line that cannot be used; named by file and line.
    """
    if not path.is_file():
        raise UsageError(
            f"There is no file {path}: --queries takes a file with one JSON object with text on each line."
        )
    found = []
    for number, record in islice(records(path), _MOST_LOGGED):
        where = f"{path}, line {number}"
        words = string(record, "text", where, "give the query one, or remove the line")[:MOST_CHARACTERS]
        tag = optional_tag(record.get("language"), where)
        name = record.get("_id")
        logged = LoggedWords(words, tag or searcher.language(words).language, None if name is None else str(name))
        try:
            dsl.matching(words, text_language(logged.language), fields=searcher.index.fields)
        except UsageError as error:
            note(f"{where}, is left out: {error}")
            continue
        found.append(logged)
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


@click.command(cls=Command)
@click.argument("name")
@click.argument("words")
@setting_options("auto")
@option("--language TAG", "The query's language. [default: detected]")
@option("--size N", "How many hits to show.", click.IntRange(1, 1000), default=10)
@option(
    "--filter FIELD=VALUE",
    "Only documents with this value; can be repeated, of one field for alternatives.",
    dest="filters",
    multiple=True,
)
@option(
    "--passages N",
    "Further passages of each hit to show.",
    click.IntRange(0, MOST_PASSAGES),
    default=0,
)
@flag("--explain", "Show where scores come from, and what the shift did.")
@flag("--show-request", "Print the requests first, for Dev Tools and curl.")
@search_options
@json_or_tables
def search(
    name: str,
    words: str,
    setting: SearchSettings,
    language: str | None,
    size: int,
    filters: tuple[str, ...],
    passages: int,
    explain: bool,
    show_request: bool,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Search the index NAME for WORDS.

    \b
    --mode auto      what calibration found to be best for the index, dense without one
    --mode dense     by vectors
    --mode lexical   by words (BM25)
    --mode hybrid    by both
    --mode balanced  by vectors, the best 5 of each language
    --mode anchored  by vectors, guided by words to the same content in every language

    \b
    Example:
      langshift search news "how do tides come about" --filter language=th --filter language=de
      langshift search news "how do tides come about" --mode hybrid --prefer-language .02 --explain
    """
    check_name(name)
    kept = parse_filters(filters)
    require_query(words, size)
    if language is not None:
        require_tag(language)
    searcher = Searcher(open_cluster(), name, search)
    result = searcher.search(
        words, setting, language=language, size=size, filters=kept, explain=explain, passages=passages
    )
    if as_json:
        requests = [request.to_dict() for request in result.requests] if show_request else None
        emit_json(result.to_dict() | {"requests": requests})
        return
    for request in result.requests if show_request else ():
        write_json(request.in_dev_tools_and_for_curl)
    _show_hits(name, result, setting)
    if explain and result.hits:
        show(result)


_NONE = "-"
_LEGS = "{}: the score from this leg of the search, and the rank in it, if there is one."
_MOVED = (
    "dense: by the query's own vector; moved: by the vector that the anchors moved it to; lexical: by words; each with "
    "the rank among the hits. The score is that of moved, plus the bonus and what words in other languages add."
)
_COMPARED = (
    "similarity: the cosine of query and document, before → after the shift; by vector: the rank by it among {}, "
    "the hits and the nearest after the shift."
)
_REMOVED = (
    "removed: how much of which language vector was subtracted from the document's vector; gamma: how much of what all "
    "queries have in common was taken out of it."
)
_TRUST = (
    "trust: how likely the document is to answer the query, judged by words (their BM25), by its cosine with the "
    "query's own vector, and by whether it is in the query's language; weight: how much of its vector was added to "
    "the query's."
)


def show(result: SearchResult) -> None:
    """Print each hit's legs, its bonus and what the shift did, what that means, the mode and why, and the anchors."""
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    heads = [*legs, *(["bonus"] if result.bonus else []), "similarity", "by vector"]
    removed = any(hit.shift is not None and (hit.shift.alpha or hit.shift.gamma) for hit in result.hits)
    rows = []
    for rank, hit in enumerate(result.hits, start=1):
        bonus = [f"{result.bonus_of(hit):+.4f}"] if result.bonus else []
        lost = [_removed(hit)] if removed else []
        rows.append([str(rank), hit.language, *(_leg(hit, leg) for leg in legs), *bonus, *_shift(hit), hit.id, *lost])
    out.print()
    columns = ["rank", "language", *heads, "_id", *(["removed"] if removed else [])]
    table(None, columns, rows, right={"rank", *heads})
    if legs:
        out.print(Text(_MOVED if "moved" in legs else _LEGS.format(", ".join(legs))))
    if result.compared:
        kind = "passage" if result.hits[0].passage else "document"
        out.print(Text(_COMPARED.format(pluralize(result.compared, kind))))
    if removed:
        out.print(Text(_REMOVED))
    out.print(Text(result.mode_reason))
    if result.anchors:
        out.print()
        _anchors(result)


def _removed(hit: Hit) -> str:
    """``th 0.8, gamma 0.97``."""
    if hit.shift is None:
        return _NONE
    scales = {hit.shift.language: hit.shift.alpha, "gamma": hit.shift.gamma}
    return ", ".join(f"{name} {scale:g}" for name, scale in scales.items() if scale) or _NONE


def _anchors(result: SearchResult) -> None:
    names = list(dict.fromkeys(name for anchor in result.anchors for name in anchor.evidence))
    rows = []
    for anchor in result.anchors:
        evidence = [f"{anchor.evidence[name]:.3g}" if name in anchor.evidence else _NONE for name in names]
        rows.append([anchor.id, f"{anchor.trust:.3f}", f"{anchor.weight:.3f}", *evidence])
    heads = ["trust", "weight", *names]
    out.print("Anchors, which the query was moved towards:")
    table(None, ["_id", *heads], rows, right=set(heads))
    out.print(Text(_TRUST))


def _leg(hit: Hit, name: str) -> str:
    leg = hit.legs.get(name)
    if leg is None:
        return _NONE
    return f"{leg.score:.4f}" if leg.rank is None else f"{leg.score:.4f} ({leg.rank})"


def _shift(hit: Hit) -> list[str]:
    """The similarity and the rank by it, before and after the shift."""
    shift = hit.shift
    if shift is None:
        return [_NONE, _NONE]
    similarity = "?" if shift.similarity_before is None else f"{shift.similarity_before:.4f}"
    rank = "?" if shift.rank_before is None else shift.rank_before
    return [f"{similarity} → {shift.similarity_after:.4f}", f"{rank} → {shift.rank_after}"]


_SHOWN_CHARACTERS = 70


def _show_hits(name: str, result: SearchResult, setting: SearchSettings) -> None:
    for message in result.notes:
        note(message)
    if not result.hits:
        note(f"Nothing in {name} matches.")
        return
    columns = ["rank", "language", "score", "title", "_id"]
    in_chunks = any(hit.passage is not None for hit in result.hits)
    if in_chunks:
        columns.insert(4, "passage")
    if setting.one_per_group:
        columns.append("translations")
    rows = []
    for rank, hit in enumerate(result.hits, start=1):
        inside = ["; ".join(map(brief, hit.others))] if setting.one_per_group else []
        best = [] if hit.passage is None else [excerpt(hit.passage)]
        rows.append([str(rank), hit.language, f"{hit.score:.4f}", headline(hit), *best, hit.id, *inside])
        for one in hit.passages:
            score = "" if one.score is None else f"{one.score:.4f}"
            rows.append(["", one.language, score, "", excerpt(one), "", *([""] * len(inside))])
    table(None, columns, rows, right={"rank", "score"}, prose={"title", "passage", "translations"})


def parse_filters(given: tuple[str, ...]) -> dict[str, list[str]]:
    """``("language=th", "language=de")`` as ``{"language": ["th", "de"]}``.

    Raises:
        UsageError: one that is not ``FIELD=VALUE``, or not UTF-8 text.
    """
    filters: dict[str, list[str]] = {}
    for text in given:
        field, equals, value = text.partition("=")
        if not equals or not field or not value:
            raise UsageError(f"--filter takes FIELD=VALUE, such as language=th, not {text!r}.")
        filters.setdefault(field, []).append(value)
    return filters


def headline(hit: Hit) -> str:
    """The title of a hit, or the beginning of its text; where the passage has a column of its own, the title alone."""
    return hit.title or ("" if hit.passage else _beginning(hit.text))


def excerpt(passage: Passage) -> str:
    """Where a passage stands in its document, and how it begins."""
    return f"{passage.where.removeprefix('passage ')}: {_beginning(passage.text)}"


def _beginning(text: str) -> str:
    return textwrap.shorten(text, _SHOWN_CHARACTERS, placeholder=" …") or text[:_SHOWN_CHARACTERS]


def brief(other: Other) -> str:
    """A translation by its language, with its score and id."""
    score = "" if other.score is None else f" {other.score:.4f}"
    return f"{other.language}{score} {other.id}"

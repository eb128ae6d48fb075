"""The commands ``search`` and ``anchors calibrate``."""

import textwrap
from contextlib import suppress

import click
from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException
from rich.text import Text

from langshift.client import open_cluster
from langshift.debias.debiaser import COMMON
from langshift.debias.encoders import is_given
from langshift.errors import LangshiftError, UsageError
from langshift.languages import require_tag
from langshift.output import emit_json, note, out, pluralize, table
from langshift.parameters import Command, CommandGroup, flag, json_or_tables, option
from langshift.plugin.versions import IndexInfo, check_name, live
from langshift.retrieval.anchored import USUAL_WORDS
from langshift.retrieval.calibration.calibrate import calibrate as calibrate_index
from langshift.retrieval.calibration.calibrate import require_languages
from langshift.retrieval.calibration.fit import Calibration, FirstHits
from langshift.retrieval.calibration.stored import resolve_auto, store_calibration
from langshift.retrieval.hits import Hit, Other, SearchResult
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import (
    SearchOptions,
    SearchSettings,
    encoder_options,
    require_query,
    search_options,
    setting_options,
)


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
@encoder_options
@json_or_tables
def calibrate(name: str, sample: int, search: SearchOptions, as_json: bool) -> None:
    """Measure how far anchored search may trust words in the index NAME (an alias or a version), and store the result.

    No judgements are needed: queries are cut out of documents of the index, and each is searched twice, once in the
    whole index and once with its document hidden, as if that did not exist in the query's language. The weight of
    words is fitted so that the query's document is trusted in the first search, and no other document of its language
    in the second.

    The result is stored in the index's mapping, where searches find it; no document is changed. The same index gives
    the same result. A retune carries it over. Without a calibration, default values are used.

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
    calibration = calibrate_index(Searcher(client, index, search), sample)
    store_calibration(client, index, calibration)
    if as_json:
        emit_json({"index": index.index, **calibration.to_dict()})
    else:
        _show_calibration(index, calibration)
    for sentence in remarks(index.name, calibration):
        note(sentence)


def _show_calibration(index: IndexInfo, calibration: Calibration) -> None:
    rows = [
        [one.language, f"{one.questions:,}", f"{one.found:.3f}", f"{one.deceived:.3f}", f"{one.prior:+.2f}"]
        for one in calibration.languages
    ]
    columns = ["language", "queries", "found", "false trust", "prior"]
    table(None, columns, rows, right=set(columns[1:]))
    trust = calibration.trust
    hidden = calibration.hidden
    message = "no translations are known." if hidden is None else f"it is a translation: {_first_hit_shares(hidden)}."
    for sentence in (
        "",
        "found: the share of queries whose own document is trusted most. false trust: how far others of its language",
        "are trusted when it is hidden, at a prior of 0 at most. prior: log-odds that what is searched for exists in",
        "this language, by the translation groups, less 2: above 0 only where nearly everything exists.",
        "",
        f"{index.index}: words k {trust.words:g} (default {USUAL_WORDS:g}), spread of cosines {trust.spread:.4f} "
        f"(queries: {calibration.questions:,}).",
        f"The first hit is the query's own document: {_first_hit_shares(calibration.there)}.",
        f"Where that is hidden, {message}",
    ):
        out.print(sentence, soft_wrap=True)


def _first_hit_shares(first: FirstHits) -> str:
    return f"dense {first.dense:.3f}, anchored {first.anchored:.3f} (queries: {first.questions:,})"


def calibration_due(index: IndexInfo) -> str | None:
    """Say that an index is to be calibrated; None where its calibration holds, or where none can be made."""
    choice = resolve_auto(index) if index.calibratable else None
    return choice.reason if choice is not None and choice.origin == "default" else None


def note_calibration_due(client: OpenSearch, name: str) -> None:
    """Say so of an index that was changed; what cannot be read now is told by the next search."""
    with suppress(LangshiftError, OpenSearchException):
        if sentence := calibration_due(live(client, name)):
            note(sentence)


def remarks(name: str, calibration: Calibration) -> list[str]:
    """What a person should know of a calibration of the index ``name`` beside its figures."""
    if calibration.fitted is None:
        return []
    words, fitted = calibration.trust.words, calibration.fitted
    if calibration.lost:
        return [
            f"Anchored search of {name} loses translations that dense search finds, even with the lowest k "
            f"({words:g}; {fitted:g} was fitted): where documents often do not exist in the searcher's language, "
            "search with --mode dense."
        ]
    return [
        f"With the fitted k of {fitted:g}, anchored search of {name} would lose translations that dense search finds, "
        f"so k is {words:g}, the highest value tried at which nothing is lost."
    ]


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
@flag("--explain", "Show for each hit where its score comes from, and what the shift did.")
@flag("--show-request", "Print the requests of the search first, for Dev Tools and curl.")
@search_options
@json_or_tables
def search(
    name: str,
    words: str,
    setting: SearchSettings,
    language: str | None,
    size: int,
    filters: tuple[str, ...],
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

    All modes but lexical prefer the query's language as much as the index recommends; --prefer-language 0 turns that
    off.

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
    result = searcher.search(words, setting, language=language, size=size, filters=kept, explain=explain)
    if as_json:
        requests = [request.to_dict() for request in result.requests] if show_request else None
        emit_json(result.to_dict() | {"requests": requests})
        return
    for request in result.requests if show_request else ():
        # As it is: neither broken into lines nor taken for markup.
        out.file.write(f"{request.in_dev_tools_and_for_curl}\n")
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
_SUBTRACTED = "subtracted: how much of which language vector was subtracted from the document's vector"
_BOTH_SIDES = ", and how much of the common mean, which the query lost too."
_RECOMMENDED = "Language preference {:g}, as the index recommends; --prefer-language 0 turns it off."
_TRUST = (
    "trust: how likely the document is to answer the query, judged by words (their BM25), by its cosine with the "
    "query's own vector, and by whether it is in the query's language; weight: how much of its vector was added to "
    "the query's."
)


def show(result: SearchResult) -> None:
    """Print each hit's legs, its bonus and what the shift did, what that means, the mode and why, and the anchors."""
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    heads = [*legs, *(["bonus"] if result.bonus else []), "similarity", "by vector"]
    subtracted = any(hit.shift is not None and hit.shift.moved for hit in result.hits)
    rows = []
    for rank, hit in enumerate(result.hits, start=1):
        bonus = [f"{result.bonus_of(hit):+.4f}"] if result.bonus else []
        lost = [_subtracted(hit)] if subtracted else []
        rows.append([str(rank), hit.language, *(_leg(hit, leg) for leg in legs), *bonus, *_shift(hit), hit.id, *lost])
    out.print()
    columns = ["rank", "language", *heads, "_id", *(["subtracted"] if subtracted else [])]
    table(None, columns, rows, right={"rank", *heads})
    if legs:
        out.print(Text(_MOVED if "moved" in legs else _LEGS.format(", ".join(legs))))
    if result.compared:
        out.print(Text(_COMPARED.format(pluralize(result.compared, "document"))))
    if subtracted:
        out.print(Text(_SUBTRACTED + (_BOTH_SIDES if result.gamma else ".")))
    if result.preference_from == "index":
        out.print(Text(_RECOMMENDED.format(result.setting.preference)))
    out.print(Text(result.mode_reason))
    if result.anchors:
        out.print()
        _anchors(result)


def _subtracted(hit: Hit) -> str:
    """``th 0.8, common mean 0.7``."""
    moved = {} if hit.shift is None else hit.shift.moved
    return ", ".join(f"{'common mean' if tag == COMMON else tag} {scale:g}" for tag, scale in moved.items()) or _NONE


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
    rows = [[str(rank), h.language, f"{h.score:.4f}", headline(h), h.id] for rank, h in enumerate(result.hits, start=1)]
    if setting.one_per_group:
        columns.append("translations")
        rows = [[*row, "; ".join(map(brief, hit.others))] for row, hit in zip(rows, result.hits, strict=True)]
    table(None, columns, rows, right={"rank", "score"}, prose={"title", "translations"})


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
    """The title of a hit, or the beginning of its text."""
    return hit.title or textwrap.shorten(hit.text, _SHOWN_CHARACTERS, placeholder=" …") or hit.text[:_SHOWN_CHARACTERS]


def brief(other: Other) -> str:
    """A translation by its language, with its score and id."""
    score = "" if other.score is None else f" {other.score:.4f}"
    return f"{other.language}{score} {other.id}"

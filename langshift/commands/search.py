"""The command ``search``."""

import textwrap

import click
from rich.text import Text

from langshift.client import open_cluster
from langshift.commands.search_options import search_arguments, search_options
from langshift.languages import require_tag
from langshift.output import emit_json, note, out, table, write_json
from langshift.parameters import JSON, Command, flag
from langshift.plugin.versions import check_name
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import SearchArguments, require_query
from langshift.retrieval.result import Hit, Other, Passage, SearchResult
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.snippets import Snippet
from langshift.wording import pluralize, printable


@click.command(cls=Command)
@click.argument("name")
@click.argument("words")
@search_arguments
@flag("--show-request", "Print the requests first, for Dev Tools and curl.")
@search_options
@JSON
def search(
    name: str, words: str, arguments: SearchArguments, show_request: bool, search: SearchOptions, as_json: bool
) -> None:
    """Search the index NAME for WORDS.

    \b
    --mode auto      what calibration found to be best for the index, dense without one
    --mode dense     by vectors
    --mode lexical   by words (BM25)
    --mode sparse    by the weights of tokens that `ingest --sparse` keeps
    --mode hybrid    by vectors and words, and by weights of tokens with --sparse-weight
    --mode balanced  by vectors, the best 5 of each language
    --mode anchored  by vectors, guided by words to the same content in every language

    \b
    Example:
      langshift search news "how do tides come about" --filter language=th --filter language=de
      langshift search news "how do tides come about" --mode hybrid --prefer-language .02 --explain
      langshift search news "how do tides come about" --json --fields title,url
    """
    check_name(name)
    require_query(words)
    if arguments.language is not None:
        require_tag(arguments.language)
    result = Searcher(open_cluster(), name, search).search(words, arguments.but(snippets=True))
    if as_json:
        requests = [one.to_dict() for one in result.requests] if show_request else None
        emit_json(result.to_dict() | {"requests": requests})
        return
    for one in result.requests if show_request else ():
        write_json(one.in_dev_tools_and_for_curl)
    _show_hits(name, result, arguments.one_per_group)
    _show_facets(result)
    if arguments.explain and result.hits:
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
_ADDED = "own: how much of the preference vector of the document's language was added to it."
_TRUST = (
    "trust: how likely the document is to answer the query, judged by words (their BM25), by its cosine with the "
    "query's own vector, and by whether it is in the query's language; weight: how much of its vector was added to "
    "the query's."
)


def show(result: SearchResult) -> None:
    """Print each hit's legs, its bonus and what the shift did, what that means, the mode and why, and the anchors."""
    legs = list(dict.fromkeys(leg for hit in result.hits for leg in hit.legs))
    heads = [*legs, *(["bonus"] if result.bonus else []), "similarity", "by vector"]
    removed = any(
        hit.shift is not None and (hit.shift.alpha or hit.shift.gamma or hit.shift.own) for hit in result.hits
    )
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
    if any(hit.shift is not None and hit.shift.own for hit in result.hits):
        out.print(Text(_ADDED))
    out.print(Text(result.mode_reason))
    if result.anchors:
        out.print()
        _anchors(result)


def _removed(hit: Hit) -> str:
    """``th 0.8, gamma 0.97, own 0.01``."""
    if hit.shift is None:
        return _NONE
    scales = {hit.shift.language: hit.shift.alpha, "gamma": hit.shift.gamma, "own": round(hit.shift.own, 4)}
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


def _show_hits(name: str, result: SearchResult, one_per_group: bool) -> None:
    for message in result.notes:
        note(message)
    if not result.hits:
        note(f"Nothing in {name} matches.")
        return
    text = "passage" if any(hit.passage is not None for hit in result.hits) else "text"
    titled = any(hit.title for hit in result.hits)
    columns = ["rank", "language", "score", *(["title"] if titled else []), text, "_id"]
    if one_per_group:
        columns.append("translations")
    rows = list[list[str | Text]]()
    for rank, hit in enumerate(result.hits, start=(result.from_ or 0) + 1):
        inside = ["; ".join(map(brief, hit.others))] if one_per_group else []
        title = [hit.title] if titled else []
        rows.append([str(rank), hit.language, f"{hit.score:.4f}", *title, marked(hit), hit.id, *inside])
        for one in hit.passages:
            score = "" if one.score is None else f"{one.score:.4f}"
            rows.append(["", one.language, score, *([""] * len(title)), excerpt(one), "", *([""] * len(inside))])
    table(None, columns, rows, right={"rank", "score"}, prose={"title", text, "translations"})
    if result.sorted:
        which = "all that match" if result.sorted == "all" else f"the {result.sorted_count:,} hits found"
        out.print(Text(f"Sorted: {which}."))
    end = (result.from_ or 0) + len(result.hits)
    if end < result.depth:
        note(f"{end:,} of {result.depth:,} hits; for the next: --from {end} --point-in-time {result.point_in_time}")


def _show_facets(result: SearchResult) -> None:
    for name, facet in result.facets.items():
        rows = [[str(one.value), f"{one.count:,}"] for one in facet.values]
        rows += [["(other)", f"{facet.other:,}"]] if facet.other else []
        out.print()
        table(None, [name, "documents"], rows, right={"documents"})


def marked(hit: Hit) -> Text:
    """What is shown of a hit's text, with its marks, and where its passage stands in the document."""
    where = f"{hit.passage.where.removeprefix('passage ')}: " if hit.passage else ""
    shown = hit.snippet or Snippet("")
    # That puts one character in the place of another.
    text = Text(where + printable(shown.text))
    for begin, end in shown.marks:
        text.stylize("bold", len(where) + begin, len(where) + end)
    return text


def excerpt(passage: Passage) -> str:
    """Where a passage stands in its document, and how it begins."""
    text = passage.text
    begin = textwrap.shorten(text, _SHOWN_CHARACTERS, placeholder=" …") or text[:_SHOWN_CHARACTERS]
    return f"{passage.where.removeprefix('passage ')}: {begin}"


def brief(other: Other) -> str:
    """A translation by its language, with its score and id."""
    score = "" if other.score is None else f" {other.score:.4f}"
    return f"{other.language}{score} {other.id}"

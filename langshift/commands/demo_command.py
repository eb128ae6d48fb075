"""What ``langshift demo`` does and prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from opensearchpy import OpenSearch

from langshift import console, extra
from langshift.cluster import open_cluster
from langshift.commands.replay_command import replay_with_bars
from langshift.errors import LangshiftError
from langshift.evaluate.compare.comparison import Comparison, in_words, side_by_side
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import FOLDER, PLAIN, SHIFTED, Example, example, index_twice
from langshift.evaluate.measures.scores import Scores
from langshift.evaluate.replay.asked import Plan
from langshift.evaluate.replay.replayed import failures
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.run import command
from langshift.retrieval.search import Searcher
from langshift.settings import Settings
from langshift.shown import heading

_COLUMNS = ("nDCG@20", "TLR@20", "SLR@20")
_LEGEND = (
    "nDCG@20: how well the first 20 hits are ranked. TLR@20: how many of the passages that answer in other "
    "languages are among them. SLR@20: how many in the question's own language, what a shift may cost."
)


def run(output: Path | None, *, as_json: bool) -> None:
    """Index, replay, compare and tell.

    Raises:
        LangshiftError: queries failed; the figures are printed all the same.
    """
    start = perf_counter()
    output = output or Settings.from_env().home / "results" / "demo"
    check_output(output)
    dataset = load_dataset(FOLDER)
    client = open_cluster()
    console.note(f"Indexing {len(dataset.documents):,} passages twice: {PLAIN} and {SHIFTED}.")
    with console.progress() as bars:
        indexing = bars.add_task("Indexing", total=2 * len(dataset.documents), rate="")
        index_twice(client, lambda done: bars.advance(indexing, done))
    searchers = [Searcher(client, name) for name in (PLAIN, SHIFTED)]
    console.note(f"Asking {len(dataset.queries):,} questions of both.")
    # Both in turn, query by query: their latencies are of the same moments.
    before, after = replay_with_bars(client, searchers, dataset, Plan(group_scores=True))
    compared = Comparison(dataset, before, after)
    shown = example(compared, *searchers)
    document = _document(compared, shown, client)
    places = [output / name for name in ("plain", "shifted")]
    for replayed, place in zip((before, after), places, strict=True):
        write_files(place, replayed, document[place.name])
    page = _report(places, output)
    document |= {"report": None if page is None else str(page), "seconds": round(perf_counter() - start, 1)}
    if as_json:
        console.emit_json(document)
    else:
        show(compared, shown)
        _show_report(page)
        console.out.print(f"\nAll of it took {document['seconds']:.0f} s.")
    for replayed in (before, after):
        if replayed.failed:
            raise LangshiftError(f"{replayed.index}: {failures(replayed)}")


def _document(compared: Comparison, shown: Example | None, client: OpenSearch) -> dict[str, Any]:
    server = server_version(client)
    return {
        "plain": result(compared.before, server),
        "shifted": result(compared.after, server),
        "own_language_share": {
            "plain": compared.own_language_share(compared.before),
            "shifted": compared.own_language_share(compared.after),
        },
        "words": in_words(compared),
        "example": shown.to_dict() if shown else None,
    }


def _report(places: Sequence[Path], output: Path) -> Path | None:
    """Make the report; None where its extra is not installed."""
    if not extra.installed():
        return None
    console.note("Making the report.")
    from langshift.evaluate.report.building import build
    from langshift.evaluate.report.files import write

    return write(build(places, command=command()), output)[0]


def _show_report(page: Path | None) -> None:
    """Name the report, and the command that shows the two indices side by side."""
    if page is None:
        note = "A report with figures, and the console, need an extra: pip install 'langshift[console]'"
        console.out.print(f"\n{note}", markup=False, soft_wrap=True)
        return
    heading("\nTo look at")
    for told in (f"the report: {page}", f"search, side by side: {console.program()} serve"):
        console.out.print(f"  {told}", markup=False, soft_wrap=True)


def show(compared: Comparison, shown: Example | None) -> None:
    """Print the comparison for a person."""
    _show_figures(compared)
    heading("\nWhat changed")
    for line in in_words(compared):
        console.out.print(f"- {line}", markup=False)
    if shown is not None:
        _show_example(shown)
    words = shown.query.text if shown else compared.dataset.queries[0].text
    heading("\nTo try next")
    langshift = console.program()
    for told in (
        f'{langshift} search {SHIFTED} "{words}"',
        f'{langshift} search {PLAIN} "{words}"',
        f"{langshift} ingest CORPUS --index NAME",
    ):
        console.out.print(f"  {told}", markup=False, soft_wrap=True)


def _show_figures(compared: Comparison) -> None:
    before, after = compared.before, compared.after
    rows = [
        [language, f"{measures['nDCG@20'].queries}", *_cells(measures, after.by_language()[language])]
        for language, measures in before.by_language().items()
    ]
    rows.append(["all", f"{len(before.answers):,}", *_cells(before.scores, after.scores)])
    title = f"Before and after the shift, by the question's language ({PLAIN} → {SHIFTED})"
    heading("\n" + title)
    console.table(None, ["language", "n", *_COLUMNS], rows, right={"n", *_COLUMNS})
    console.out.print(_LEGEND, markup=False)


def _cells(before: Mapping[str, Scores], after: Mapping[str, Scores]) -> list[str]:
    return [side_by_side(before[name], after[name]) for name in _COLUMNS]


def _show_example(shown: Example) -> None:
    topic = shown.query.group
    rows = []
    for rank, (old, new) in enumerate(zip(shown.before, shown.after, strict=False), 1):
        cells = [(hit.language, ("* " if hit.group == topic else "  ") + hit.title) for hit in (old, new)]
        rows.append([str(rank), *cells[0], *cells[1]])
    heading(f"\nThe question in {shown.query.language} whose first hits changed most, before and after")
    console.out.print(f'"{shown.query.text}" (* answers it)', markup=False)
    console.table(None, ["", "", "before", "", "after"], rows)

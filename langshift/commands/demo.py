"""The command ``demo``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from opensearchpy import OpenSearch

from langshift import errors, parameters
from langshift import output as terminal
from langshift.client import open_cluster
from langshift.commands.replay import replay_with_bars
from langshift.debias.encoders import open_encoder
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import (
    FOLDER,
    PAPER,
    PLAIN,
    READERS,
    RIGHT_PAGE,
    SHIFTED,
    DemoExample,
    OnceEncoder,
    ReplayPair,
    describe_changes,
    example,
    index_variants,
    short_figure,
    side_by_side,
)
from langshift.evaluate.measures import DEFAULT_MEASURES
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.measures.most_shown import MOST_SHOWN_20, format_figure, language_shares
from langshift.evaluate.replay.plan import ReplayOptions
from langshift.evaluate.replay.replay import ReplayResult, failures
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.runs import command
from langshift.parameters import JSON, Command, option
from langshift.retrieval.searcher import Searcher
from langshift.settings import Settings, ensure_home
from langshift.wording import program

_WAYS = {"plain": "plain", "paper": "the paper's shift", "shifted": "as recommended"}
_COLUMNS = ("nDCG@20", "TLR@20", "SLR@20")
_ALL_COLUMNS = (RIGHT_PAGE, READERS, "own@1", "own@3", *_COLUMNS)
_LEGEND = (
    "P@1: for how many questions the first hit is the right page, in whatever language. LPR: for how many its "
    "translation into the question's language is the first of it, so that a search that shows each page once shows "
    "that. own@1, own@3: for how many that translation is the first hit, and for how many it is among the first three. "
    "nDCG@20: how well the first 20 hits are ranked. TLR@20: how many of the relevant documents in other languages "
    "are among them. SLR@20: how many of those in the question's own language. Shown most: the language that has the "
    "most of all first 20 hits, and its share; of what is relevant, each of the {languages} languages has {even}."
)


@click.command(cls=Command)
@option(
    "--output FOLDER", "Write the runs of all indices and the report here. [default: results/demo in LANGSHIFT_HOME]"
)
@JSON
def demo(output: Path | None, as_json: bool) -> None:
    """Index the bundled corpus plain, with the paper's shift, and as recommended, and compare them.

    The corpus has 44 topics in 12 languages, with two questions on each topic in every language. It is written
    to the indices langshift-demo-plain, langshift-demo-paper (the paper's shift alone) and langshift-demo-shifted
    (the defaults of a load), which are replaced. At the end a report is written (its page is
    `report` of the JSON document, null without the extra console), and `langshift serve` searches them side by side.

    \b
    Example:
      langshift demo
    """
    start = perf_counter()
    if output is None:
        home = Settings.from_env().home
        ensure_home(home)
        output = home / "results" / "demo"
    check_output(output)
    dataset = load_dataset(FOLDER)
    client = open_cluster()
    encoder = OnceEncoder(open_encoder(parameters.default_encoder()))
    terminal.note(f"Indexing {len(dataset.documents):,} documents three times, to {PLAIN}, {PAPER} and {SHIFTED}.")
    with terminal.progress() as bars:
        indexing = bars.add_task("Indexing", total=3 * len(dataset.documents), rate="")
        index_variants(client, encoder, lambda done: bars.advance(indexing, done))
    searchers = [Searcher(client, name, opened={encoder.id: encoder}) for name in (PLAIN, PAPER, SHIFTED)]
    terminal.note(f"Searching them with {len(dataset.queries):,} questions.")
    # All in turn, query by query: their latencies are of the same moments.
    asked = ReplayOptions(group_scores=True, measures=(*DEFAULT_MEASURES, RIGHT_PAGE, READERS))
    replays = dict(zip(_WAYS, replay_with_bars(client, searchers, dataset, asked), strict=True))
    compared = ReplayPair(dataset, replays["plain"], replays["shifted"])
    shown = example(compared, searchers[0], searchers[2])
    document = _document(compared, replays, shown, client)
    places = [output / name for name in replays]
    for replayed, place in zip(replays.values(), places, strict=True):
        write_files(place, replayed, document[place.name])
    page = _report(places, output)
    document |= {"report": None if page is None else str(page), "seconds": round(perf_counter() - start, 1)}

    if as_json:
        terminal.emit_json(document)
    else:
        show(compared, replays, shown)
        _show_report(page)
        terminal.out.print(f"\nFinished in {document['seconds']:.0f} s.")
    for replayed in replays.values():
        if replayed.failed:
            raise errors.LangshiftError(f"{replayed.index}: {failures(replayed)}")


def _document(
    compared: ReplayPair, replays: Mapping[str, ReplayResult], shown: DemoExample | None, client: OpenSearch
) -> dict[str, Any]:
    server = server_version(client)
    return {
        **{name: result(side, server) for name, side in replays.items()},
        "words": [in_a_sentence(replays), *describe_changes(compared)],
        "example": shown.to_dict() if shown else None,
    }


def _report(places: Sequence[Path], output: Path) -> Path | None:
    """Make the report; None where its extra is not installed."""
    if not errors.installed(*errors.REPORT):
        return None
    terminal.note("Generating the report.")
    from langshift.evaluate.compare.findings import compare_places, findings
    from langshift.evaluate.report.report import build
    from langshift.evaluate.report.tables import HITS
    from langshift.evaluate.report.writers import write

    return write(build(findings(compare_places(places, None), HITS), command()), output)[0]


def _show_report(page: Path | None) -> None:
    """Name the report, and the command that shows the two indices side by side."""
    if page is None:
        terminal.line("\nThe report and the console need an extra: pip install 'langshift[console]'")
        return
    terminal.heading("\nSee the results")
    terminal.line(f"  report: {page}")
    terminal.line(f"  search side by side: {program()} serve")


def show(compared: ReplayPair, replays: Mapping[str, ReplayResult], shown: DemoExample | None) -> None:
    """Print the comparison for a person."""
    _show_ways(replays)
    _show_figures(compared)
    terminal.heading("\nWhat changed")
    for line in describe_changes(compared):
        terminal.out.print(f"- {line}")
    if shown is not None:
        _show_example(shown)
    words = shown.query.text if shown else compared.dataset.queries[0].text
    terminal.heading("\nTry next")
    langshift = program()
    terminal.line(f'  {langshift} search {SHIFTED} "{words}"')
    terminal.line(f'  {langshift} search {PLAIN} "{words}"')
    terminal.line(f"  {langshift} ingest CORPUS --index NAME")


def in_a_sentence(replays: Mapping[str, ReplayResult]) -> str:
    """What the shift gains by pages and in other languages, and what it costs in the question's own."""

    def shares_of(name: str, of: str = "") -> str:
        plain, paper, shifted = (f"{replays[way].scores[name].mean or 0.0:.0%}" for way in _WAYS)
        return f"{plain}{of} without a shift, {paper} with the paper's and {shifted} as recommended"

    return (
        f"The first hit is the right page for {shares_of(RIGHT_PAGE, ' of the questions')}. Of the answers in other "
        f"languages, questions find {shares_of('TLR@20')}. The cost: where each page is shown once, the right one is "
        f"shown in the question's language for {shares_of(READERS)}."
    )


def _show_ways(replays: Mapping[str, ReplayResult]) -> None:
    """The figures of each index, with the language that is shown most, after what they are."""
    rows = [
        [
            words,
            *(short_figure(replays[key].scores[name].mean or 0.0) for name in _ALL_COLUMNS),
            format_figure(replays[key].scores[MOST_SHOWN_20], 3),
        ]
        for key, words in _WAYS.items()
    ]
    plain = replays["plain"]
    languages = len(language_shares(plain.scores[MOST_SHOWN_20]))
    terminal.heading(f"\nAll {len(plain.answers):,} questions")
    terminal.out.print(_LEGEND.format(languages=languages, even=short_figure(1 / languages)))
    heads = [*_ALL_COLUMNS, "shown most"]
    terminal.table(None, ["index", *heads], rows, right={*heads})
    terminal.out.print(f"\n{in_a_sentence(replays)}")


def _show_figures(compared: ReplayPair) -> None:
    before, after = compared.before, compared.after
    rows = [
        [language, f"{measures['nDCG@20'].queries}", *_cells(measures, after.by_language()[language])]
        for language, measures in before.by_language().items()
    ]
    rows.append(["all", f"{len(before.answers):,}", *_cells(before.scores, after.scores)])
    terminal.heading(f"\nPlain and as recommended, by the question's language ({PLAIN} → {SHIFTED})")
    terminal.table(None, ["language", "n", *_COLUMNS], rows, right={"n", *_COLUMNS})


def _cells(before: Mapping[str, Scores], after: Mapping[str, Scores]) -> list[str]:
    return [side_by_side(before[name], after[name]) for name in _COLUMNS]


def _show_example(shown: DemoExample) -> None:
    topic = shown.query.group
    rows = []
    for rank, (old, new) in enumerate(zip(shown.before, shown.after, strict=False), 1):
        cells = [(hit.language, ("* " if hit.group == topic else "  ") + hit.title) for hit in (old, new)]
        rows.append([str(rank), *cells[0], *cells[1]])
    terminal.heading(f"\nThe question in {shown.query.language} whose first hits changed most, before and after")
    terminal.out.print(f'"{shown.query.text}" (* answers it)')
    terminal.table(None, ["", "", "before", "", "after"], rows)

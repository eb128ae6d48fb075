"""The commands ``serve`` and ``demo``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from opensearchpy import OpenSearch

from langshift import errors, parameters
from langshift import output as terminal
from langshift.client import open_cluster
from langshift.commands.evaluate import replay_with_bars
from langshift.debias.encoders import open_encoder
from langshift.evaluate.compare.summary import ReplayPair, describe_changes, short_figure, side_by_side
from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.demo import (
    BOTH,
    FOLDER,
    PLAIN,
    PREFERENCE,
    SHIFTED,
    DemoExample,
    OnceEncoder,
    example,
    index_variants,
)
from langshift.evaluate.measures.base import Scores
from langshift.evaluate.replay.plan import ReplayOptions
from langshift.evaluate.replay.replay import ReplayResult, failures
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.runs import command
from langshift.parameters import JSON, Command, json_or_tables, option
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchSettings
from langshift.settings import Settings, ensure_home

_PREFERRED = f"{PREFERENCE:g}".removeprefix("0")
_BAR = 40
_COLUMNS = ("nDCG@20", "TLR@20", "SLR@20")
_LEGEND = (
    "nDCG@20: how well the first 20 hits are ranked. TLR@20: how many of the relevant documents in other "
    "languages are among them. SLR@20: how many of those in the question's own language, which a shift lowers and a "
    "preference raises."
)


@click.command(cls=Command)
@option(
    "--output FOLDER", "Write the runs of all indices and the report here. [default: results/demo in LANGSHIFT_HOME]"
)
@json_or_tables
def demo(output: Path | None, as_json: bool) -> None:
    """Index the bundled corpus without the shift, with it, and as recommended, and show what changes.

    The corpus has 44 topics in 12 languages, with two questions on each topic in every language. It is written
    to the indices langshift-demo-plain, langshift-demo-shifted (the paper's shift of documents) and
    langshift-demo-both (documents and queries), which are replaced. At the end a report is written (its page is
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
    terminal.note(f"Indexing {len(dataset.documents):,} documents three times, to {PLAIN}, {SHIFTED} and {BOTH}.")
    with terminal.progress() as bars:
        indexing = bars.add_task("Indexing", total=3 * len(dataset.documents), rate="")
        index_variants(client, encoder, lambda done: bars.advance(indexing, done))
    plain, shifted, both = (Searcher(client, name, opened={encoder.id: encoder}) for name in (PLAIN, SHIFTED, BOTH))
    terminal.note(f"Searching them with {len(dataset.queries):,} questions, the last two with a language preference.")
    # Both in turn, query by query: their latencies are of the same moments.
    before, after = replay_with_bars(client, [plain, shifted], dataset, ReplayOptions(group_scores=True))
    # A replay takes no preference unasked, so the recommended one is asked for, too.
    settings = {"preferred": (shifted, PREFERENCE), "both": (both, both.index.preference)}
    replays = {"plain": before, "shifted": after}
    for name, (searcher, preference) in settings.items():
        asked = ReplayOptions([SearchSettings(preference=preference)], group_scores=True)
        (replays[name],) = replay_with_bars(client, [searcher], dataset, asked)
    compared = ReplayPair(dataset, before, after)
    shown = example(compared, plain, shifted)
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
        "own_language_share": {name: compared.own_language_share(side) for name, side in replays.items()},
        "words": [in_a_sentence(replays), *describe_changes(compared)],
        "example": shown.to_dict() if shown else None,
    }


def _report(places: Sequence[Path], output: Path) -> Path | None:
    """Make the report; None where its extra is not installed."""
    if not errors.installed(*errors.REPORT):
        return None
    terminal.note("Generating the report.")
    from langshift.evaluate.report.report import build
    from langshift.evaluate.report.writers import write

    return write(build(places, command=command()), output)[0]


def _show_report(page: Path | None) -> None:
    """Name the report, and the command that shows the two indices side by side."""
    if page is None:
        terminal.line("\nThe report with figures and the console need an extra: pip install 'langshift[console]'")
        return
    terminal.heading("\nSee the results")
    terminal.line(f"  report: {page}")
    terminal.line(f"  search side by side: {terminal.program()} serve")


def show(compared: ReplayPair, replays: Mapping[str, ReplayResult], shown: DemoExample | None) -> None:
    """Print the comparison for a person."""
    _show_ways(compared, replays)
    _show_figures(compared)
    terminal.heading("\nWhat changed")
    for line in describe_changes(compared):
        terminal.out.print(f"- {line}")
    if shown is not None:
        _show_example(shown)
    words = shown.query.text if shown else compared.dataset.queries[0].text
    terminal.heading("\nTry next")
    langshift = terminal.program()
    terminal.line(f'  {langshift} search {BOTH} "{words}"')
    terminal.line(f'  {langshift} search {PLAIN} "{words}"')
    terminal.line(f"  {langshift} ingest CORPUS --index NAME")


def in_a_sentence(replays: Mapping[str, ReplayResult]) -> str:
    """What the shift gains in other languages, what it costs in the question's own, and what both sides make of it."""
    other, own = (
        [f"{replay.scores[name].mean or 0.0:.0%}" for replay in replays.values()] for name in ("TLR@20", "SLR@20")
    )
    return (
        f"Of the answers in other languages, questions find {other[0]} without the shift, {other[1]} with it, "
        f"{other[2]} with --prefer-language {_PREFERRED} as well, and {other[3]} with both sides as recommended; of "
        f"those in the question's own language {own[0]}, {own[1]}, {own[2]} and {own[3]}."
    )


def _show_ways(compared: ReplayPair, replays: Mapping[str, ReplayResult]) -> None:
    """The figures of each way to search, and a bar of the languages among the first hits."""
    ways = ("plain", "shifted", f"shifted, --prefer-language {_PREFERRED}", "both sides, as recommended")
    names = dict(zip(replays, ways, strict=True))
    rows, bars = [], []
    for key, replay in replays.items():
        share = compared.own_language_share(replay)
        rows.append([names[key], *(short_figure(replay.scores[name].mean or 0.0) for name in _COLUMNS)])
        bars.append([names[key], "█" * round(share * _BAR) + "░" * (_BAR - round(share * _BAR)), short_figure(share)])
    terminal.table(f"\nAll {len(compared.dataset.queries):,} questions", ["index", *_COLUMNS], rows, right={*_COLUMNS})
    terminal.out.print(_LEGEND)
    title = "\nThe first 20 hits: solid in the question's own language, shaded in others"
    terminal.table(title, ["index", "hits", "own"], bars, right={"own"})
    terminal.out.print(f"\n{in_a_sentence(replays)}")


def _show_figures(compared: ReplayPair) -> None:
    before, after = compared.before, compared.after
    rows = [
        [language, f"{measures['nDCG@20'].queries}", *_cells(measures, after.by_language()[language])]
        for language, measures in before.by_language().items()
    ]
    rows.append(["all", f"{len(before.answers):,}", *_cells(before.scores, after.scores)])
    terminal.heading(f"\nBefore and after the shift, by the question's language ({PLAIN} → {SHIFTED})")
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


@click.command(cls=Command)
@option(
    "--host",
    "The address to listen on. If other machines can reach it, they need the token.",
    default="127.0.0.1",
)
@option("--port", "The port to listen on; 0 for any free port.", click.IntRange(0, 65535), default=8365)
@option(
    "--results FOLDER",
    "The folder of the results of replays, also for those started here. [default: results in LANGSHIFT_HOME]",
)
@option(
    "--dataset FOLDER",
    "A dataset that can be replayed, besides the bundled one; can be repeated.",
    dest="datasets",
    multiple=True,
)
@JSON
def serve(host: str, port: int, results: Path | None, datasets: tuple[Path, ...], as_json: bool) -> None:
    """Explore indices in a browser: search side by side, vary alpha, see who gains and who loses.

    The console runs until it is stopped with Ctrl-C. By default only this machine can reach it; with --host for another
    address a token is generated, which is part of the address that is printed. --json prints that address and the
    token.

    \b
    Example:
      langshift serve
      langshift serve --results results --dataset xquad-en
    """
    from langshift.web.app import run

    run(host, port, results, datasets, as_json=as_json)

"""What ``langshift evaluate modes`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from langshift import console
from langshift.cluster import open_cluster
from langshift.commands.replay_command import replay_with_bars
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.compare.modes_document import document
from langshift.evaluate.compare.settled import settle
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, load_dataset
from langshift.evaluate.measures import parse_measure
from langshift.evaluate.replay.asked import Plan
from langshift.evaluate.replay.replayed import failures
from langshift.evaluate.replay.result import check_output, result, server_version, write_files
from langshift.evaluate.report.modes_tables import show
from langshift.evaluate.scoring import parse_names
from langshift.retrieval.opening import SearchOptions
from langshift.retrieval.options import read_setting, written
from langshift.retrieval.search import Searcher
from langshift.retrieval.wanted import MODES, Setting

USUAL = [*(Setting(mode) for mode in MODES), Setting(preference=0.02), Setting(preference=-0.02)]
MEASURES = ("nDCG@20", "TLR@20", "SLR@20", "LPR", "Lang_nDCG@20", "Top1")


@dataclass(frozen=True)
class Options:
    """The command's options.

    Attributes:
        folder: the dataset.
        names: the indices.
        settings: as they were given; none for the usual ones.
        measures: names of measures as given, or None.
        output: where to write, or None.
        search: how the indices are opened.
        as_json: whether to print JSON.
    """

    folder: Path
    names: Sequence[str]
    settings: Sequence[str]
    measures: str | None
    output: Path | None
    search: SearchOptions
    as_json: bool


def run(options: Options) -> None:
    """Replay a dataset in every setting, print the table, and write the files if asked to.

    Raises:
        LangshiftError: queries failed; the figures are printed and written all the same.
    """
    settings = _settings(options.settings)
    dataset = load_dataset(options.folder)
    names = _measures(options.measures, dataset)
    if options.output is not None:
        check_output(options.output)
    client = open_cluster()
    server = server_version(client)
    opened: dict[str, Encoder] = {}
    searchers = [Searcher(client, name, options.search, opened) for name in options.names]
    wanted = options.output is not None or "LPR" in names
    found = replay_with_bars(client, searchers, dataset, Plan(settings, measures=names, group_scores=wanted))
    settled = settle(dataset, found)
    for row in settled.rows:
        for warning in row.replay.warnings:
            console.note(f"Warning: {row.name}: {warning}")
    if options.output is not None:
        for row in settled.rows:
            write_files(options.output / row.folder, row.replay, result(row.replay, server))
    if options.as_json:
        console.emit_json(document(settled))
    else:
        show(settled)
    if options.output is not None:
        console.note(
            f"Wrote a folder for each row to {options.output}: {', '.join(row.folder for row in settled.rows)}."
        )
    troubles = [f"{row.name}: {failures(row.replay)}" for row in settled.rows if row.replay.failed]
    if troubles:
        raise LangshiftError(" ".join(troubles))


def _settings(given: Sequence[str]) -> list[Setting]:
    """The settings, the usual ones where none are given.

    Raises:
        UsageError: one that is none, or that is there twice.
    """
    found: list[Setting] = []
    for text in given:
        setting = read_setting(text)
        if setting in found:
            raise UsageError(f"--setting {text!r} is {written(setting)!r}, which is there already: give each once.")
        found.append(setting)
    return found or list(USUAL)


def _measures(given: str | None, dataset: Dataset) -> list[str]:
    if given is not None:
        return parse_names(given, dataset)
    # Those that compare languages are refused where documents were judged per language.
    alone = dataset.judged == PER_LANGUAGE
    return [name for name in MEASURES if not (alone and parse_measure(name).family.across)]

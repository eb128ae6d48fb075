"""What ``langshift evaluate replay`` does and prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift import console
from langshift.cluster import open_cluster
from langshift.errors import LangshiftError
from langshift.evaluate.dataset import Dataset, load_dataset
from langshift.evaluate.replay import Mode, Replay, encode_queries, replay
from langshift.evaluate.result import check_output, result, server_version, write_files
from langshift.ingest.search import Searcher


def run(folder: Path, name: str, *, mode: Mode, output: Path | None, as_json: bool) -> None:
    """Replay a dataset, print the figures, and write the files if asked to.

    Raises:
        LangshiftError: queries failed; their figures are printed and written all the same.
    """
    dataset = load_dataset(folder)
    if output is not None:
        check_output(output)
    client = open_cluster()
    server = server_version(client)
    found = replay_with_progress(client, Searcher(client, name), dataset, mode=mode)
    document = result(found, server)
    if output is not None:
        write_files(output, found, document)
    for warning in found.warnings:
        console.note(f"Warning: {warning}")
    if as_json:
        console.emit_json(document)
    else:
        show(found, document)
        if output is not None:
            console.note(f"Wrote run.trec, per-query.jsonl and result.json to {output}.")
    if found.failed:
        raise LangshiftError(failures(found))


def replay_with_progress(
    client: OpenSearch,
    searcher: Searcher,
    dataset: Dataset,
    *,
    mode: Mode,
    vectors: NDArray[np.float32] | None = None,
) -> Replay:
    """Replay with a progress bar for searching, and one for encoding where vectors are wanted and not given."""
    total = len(dataset.queries)
    with console.progress() as bars:
        if mode == "dense" and vectors is None:
            encoding = bars.add_task("Encoding queries", total=total, rate="")
            vectors = encode_queries(searcher, dataset, lambda done: bars.advance(encoding, done))
        searching = bars.add_task(f"Searching {searcher.index.name}", total=total, rate="")
        return replay(client, searcher, dataset, mode=mode, vectors=vectors, on_answer=lambda: bars.advance(searching))


def failures(found: Replay) -> str:
    """Say how many queries failed, and why the first did."""
    first = found.failed[0]
    return (
        f"{len(found.failed):,} of {len(found.answers):,} queries failed and count as empty answers; "
        f"the first, {first.query}: {first.error}"
    )


def show(found: Replay, document: Mapping[str, Any]) -> None:
    """Print measures, by query language where there are several, and times."""
    names = list(found.scores)
    heading(f"{found.index}: {len(found.answers):,} queries, {found.mode}, alpha {found.fingerprint.alpha:g}")
    rows = [[name, figure(scores.mean), f"{scores.queries:,}"] for name, scores in found.scores.items()]
    console.table(None, ["measure", "mean", "queries"], rows, right={"mean", "queries"})
    languages = found.by_language()
    if len(languages) > 1:
        rows = [
            [language, *(figure(measures[name].mean) for name in names), f"{measures[names[0]].queries:,}"]
            for language, measures in languages.items()
        ]
        heading("\nBy query language")
        console.table(None, ["language", *names, "queries"], rows, right={*names, "queries"})
    times = document["latency_ms"]
    rows = [[clock, *(milliseconds(times[clock][p]) for p in ("p50", "p95"))] for clock in ("took", "wall")]
    heading("\nMilliseconds a query, one at a time")
    console.table(None, ["", "p50", "p95"], rows, right={"p50", "p95"})


def heading(text: str) -> None:
    """Print a line above a table."""
    console.out.print(text, markup=False, style="bold", soft_wrap=True)


def figure(value: float | None, digits: int = 4) -> str:
    """A figure between 0 and 1 as ``.7802``; ``-`` where there is none."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def milliseconds(value: float | None) -> str:
    """A time in milliseconds as ``12.3``."""
    return "-" if value is None else f"{value:.1f}"

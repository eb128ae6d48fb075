"""The commands of ``rerank``."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
import msgspec

from langshift.client import open_cluster
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.rerank.feature_training import (
    RerankSlice,
    TrainingPool,
    collect_pools,
    drawn_queries,
    judge,
    refused,
    train,
    training_lists,
)
from langshift.files import write_json
from langshift.output import emit_json, format_change, format_score, line, note, progress, table
from langshift.parameters import PATH, Command, CommandGroup, json_or_tables, option
from langshift.retrieval.calibration.calibrate import RERANK_STRENGTHS
from langshift.retrieval.rerank.features import FeatureModel
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchOptions, search_options


@click.group(cls=CommandGroup)
def rerank() -> None:
    """Train rerankers for searches (langshift search --rerank).

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
    """


@rerank.command(cls=Command)
@click.argument("dataset", type=PATH)
@option(
    "--index NAME",
    "An index of DATASET's documents; can be repeated, such as for several encoders.",
    dest="names",
    required=True,
    multiple=True,
)
@option("--output FILE", "Where to write the model; searches use it with --rerank features:FILE.", PATH, required=True)
@search_options
@json_or_tables
def fit(dataset: Path, names: tuple[str, ...], output: Path, search: SearchOptions, as_json: bool) -> None:
    """Train the reranker features on the questions and judgements of DATASET, which live indices are asked.

    Each question is learnt from three times, with one, two and four translations of each passage left among its
    candidates: with all of them a reranker would learn to avoid the reader's own language.

    What it changes is shown for questions about articles (or groups) that it was not trained on, with all translations,
    two and one, with and without an answer in the question's language, and for each strength that calibration
    (langshift anchors calibrate) chooses from. A model that loses anywhere at strength .1, that of an index without a
    calibration, is not written.

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
      langshift search news "rising rents" --rerank features:own.json
    """
    data = load_dataset(dataset)
    queries = drawn_queries(data)
    client, opened = open_cluster(), dict[str, Encoder]()
    searchers = [Searcher(client, name, search, opened) for name in names]
    note(f"Training on {len(queries):,} questions in {' and '.join(names)}.")
    pools: dict[str, list[TrainingPool]] = {}
    with progress() as bars:
        for searcher in searchers:
            bar = bars.add_task(searcher.index.name, total=len(queries), rate="")
            pools[searcher.index.name] = collect_pools(searcher, data, queries, partial(bars.advance, bar))
    together = [pool for found in pools.values() for pool in found]
    halves = [[pool for pool in together if pool.half == half] for half in (0, 1)]
    # Each half is judged by what was learnt from the other.
    models = [_trained(data, halves[1 - half]) for half in (0, 1)]
    slices = [one for name, found in pools.items() for one in judge(name, found, data, models)]
    model = _trained(data, together)
    if as_json:
        emit_json({"model": msgspec.to_builtins(model), "slices": [one.to_dict() for one in slices]})
    else:
        _show(model, slices)
    if losses := refused(slices):
        first = losses[0]
        raise LangshiftError(
            f"The model is not written: at strength {first.strength:g} it loses in {len(losses)} parts of the "
            f"questions, such as {first.index} with {_translations(first)} and the answer in "
            f"{'the question' if first.answer == 'own' else 'another'} language ({format_change(first.ndcg)} nDCG@20)."
        )
    write_json(output, msgspec.to_builtins(model))
    note(f"Wrote {output}.")


def _trained(data: Dataset, pools: Sequence[TrainingPool]) -> FeatureModel:
    return train(training_lists(pools, data), data.folder.name)


def _translations(one: RerankSlice) -> str:
    return "all translations" if one.translations is None else f"{one.translations} translations of each passage"


def _show(model: FeatureModel, slices: Sequence[RerankSlice]) -> None:
    """The weights, and a table for each strength."""
    weights = [[name, f"{weight:.4f}"] for name, weight in model.weights.items()]
    table(None, ["feature", "weight"], weights, right={"weight"})
    line(f"Loss {model.loss:.4f} over {model.queries:,} lists of candidates.")
    for strength in RERANK_STRENGTHS:
        rows = [
            [
                one.index,
                "all" if one.translations is None else str(one.translations),
                one.answer,
                f"{one.questions:,}",
                format_score(one.before),
                format_change(one.ndcg),
                "-" if one.tlr is None else format_change(one.tlr),
                format_score(one.error),
                "yes" if one.lost else "",
            ]
            for one in slices
            if one.strength == strength
        ]
        columns = ["index", "translations", "answer", "questions", "nDCG@20", "change", "TLR@20", "error", "loses"]
        table(f"Strength {strength:g}, on articles that were not learnt from", columns, rows, right={*columns[3:8]})

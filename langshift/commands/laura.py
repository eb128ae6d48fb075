"""The command ``evaluate laura``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from langshift.commands.rerank import (
    FEATURES,
    MODEL,
    TRAINING,
    check_model,
    held_out,
    labelled,
    passages_of,
    pools_of,
    trained_cross_encoder,
)
from langshift.evaluate.datasets.dataset import Dataset, identity, load_dataset
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.evaluate.measures.fairness import Distribution
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.rerank.cross_encoder_training import PARTS, CrossEncoderTraining, text_scorer
from langshift.evaluate.rerank.feature_training import feature_scorer, train_features
from langshift.evaluate.rerank.labels import oracle_distribution, read_labels
from langshift.evaluate.rerank.laura import (
    FIGURES,
    LauraRow,
    language_heatmap,
    laura_row,
    relevant_languages,
    top_positive,
)
from langshift.evaluate.rerank.pools import (
    Array,
    Labeller,
    Scorer,
    TrainingPool,
    judged_positive,
    labelled_lists,
)
from langshift.evaluate.runs import command, versions
from langshift.files import write_bytes, write_json
from langshift.output import emit_json, line, note, table
from langshift.parameters import PATH, Command, json_or_tables, option
from langshift.retrieval.rerank.features import read_model
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.settings import SearchOptions, search_options
from langshift.wording import format_score

_JUDGEMENTS, _UTILITIES = "judgements", "utilities (LAURA)"


@click.command("laura", cls=Command)
@click.argument("dataset", type=PATH)
@option("--index NAME", "An index of DATASET's documents.", required=True)
@MODEL
@option(
    "--labels FILE",
    "Labels of langshift rerank label: what is positive, and which languages answer best. [default: DATASET's "
    "judgements, and the languages of relevant documents]",
    PATH,
)
@TRAINING
@option("--output FOLDER", "Write laura.json and a heatmap of each order here.")
@search_options
@json_or_tables
def laura(
    dataset: Path,
    index: str,
    model: str,
    labels: Path | None,
    training: CrossEncoderTraining,
    output: Path | None,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Compare rerankers that were trained on the same candidates with other labels, as LAURA does.

    \b
    search                the order of a dense search
    untrained             the model as it is
    self-training         trained on its own first five as if they were right
    same-language labels  trained on relevant passages in the question's language
    judgements            trained on relevant passages of all languages
    utilities (LAURA)     the same by --labels

    They are trained on four fifths of the articles (or groups) and measured on the others: P@5, P@10, nDCG@5, nDCG@10
    and PEER, and how far the languages of the first five are from the oracle's (JS, KL), with their entropy.

    \b
    Example:
      langshift evaluate laura xquad8 --index news --labels labels.jsonl --output results/laura
    """
    check_model(model)
    if output is not None:
        check_output(output)
    data = load_dataset(dataset)
    if labels is not None:
        data = labelled(data, labels)
    languages = DatasetLanguages.of(data)
    features = model == FEATURES
    (pools,) = pools_of(data, [index], search, parts=PARTS, vectors=features).values()
    apart = [pool.only(None) for pool in held_out(pools)]
    oracle = _oracle(labels, apart, data, languages)
    learnt = [pool for pool in pools if pool.part]
    by_labels = _UTILITIES if labels is not None else _JUDGEMENTS
    rows = [
        laura_row(name, apart, scorer, data, languages.documents, oracle, loss)
        for name, (scorer, loss) in (
            _of_features(learnt, data, by_labels)
            if features
            else _of_cross_encoder(model, learnt, apart, data, by_labels, training, search)
        ).items()
    ]
    document = {
        "dataset": identity(data),
        "index": index,
        "model": model,
        "labels": labels and str(labels),
        "questions": len(apart),
        "trained_on": len(learnt),
        "rows": [row.to_dict() for row in rows],
        "oracle": oracle,
        "versions": versions(),
        "command": command(),
    }
    if as_json:
        emit_json(document)
    else:
        _show(rows, len(apart), len(learnt))
    if output is not None:
        for name, shares in {**{row.name: row.languages for row in rows}, "oracle": oracle}.items():
            file = name.partition(" (")[0].replace(" ", "-")
            write_bytes(output / f"{file}.svg", language_heatmap(name, shares).encode())
        write_json(output / "laura.json", document)
        note(f"Wrote laura.json and {len(rows) + 1} heatmaps to {output}.")


def _oracle(
    labels: Path | None, apart: Sequence[TrainingPool], data: Dataset, languages: DatasetLanguages
) -> dict[str, Distribution]:
    """Language of questions -> the languages that answer best, of the questions that are measured."""
    if labels is None:
        return relevant_languages(apart, data, languages.documents)
    measured = {pool.query for pool in apart}
    return oracle_distribution([one for one in read_labels(labels) if one.query in measured])


#: Name of an order -> what gives it, and the loss of its training.
_Orders = Mapping[str, tuple[Scorer, Sequence[float]]]


def _labellers(untrained: Scorer, data: Dataset, by_labels: str) -> dict[str, Labeller]:
    """Name of an order -> the labels that it is trained on."""
    return {
        "self-training": top_positive(untrained),
        "same-language labels": judged_positive(data, same_language=True),
        by_labels: judged_positive(data),
    }


def _search(pool: TrainingPool) -> Array:
    return pool.numbers.cosines


def _of_features(learnt: Sequence[TrainingPool], data: Dataset, by_labels: str) -> _Orders:
    untrained = feature_scorer(read_model())
    orders: dict[str, tuple[Scorer, Sequence[float]]] = {"search": (_search, ()), "untrained": (untrained, ())}
    for name, positive in _labellers(untrained, data, by_labels).items():
        model = train_features(learnt, data, data.folder.name, positive)
        orders[name] = feature_scorer(model), [model.loss]
    return orders


def _of_cross_encoder(
    model: str,
    learnt: Sequence[TrainingPool],
    apart: Sequence[TrainingPool],
    data: Dataset,
    by_labels: str,
    training: CrossEncoderTraining,
    search: SearchOptions,
) -> _Orders:
    passages = passages_of(data, [*learnt, *apart])
    untrained = text_scorer(open_reranker(model, trust_remote_code=search.trust_remote_code), passages)
    orders: dict[str, tuple[Scorer, Sequence[float]]] = {"search": (_search, ()), "untrained": (untrained, ())}
    for name, positive in _labellers(untrained, data, by_labels).items():
        lists = labelled_lists(learnt, data, positive)
        with TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            loss = trained_cross_encoder(model, lists, passages, folder, training, search)
            trained = text_scorer(open_reranker(f"st:{folder}"), passages)
            orders[name] = trained, loss
    return orders


def _show(rows: Sequence[LauraRow], questions: int, trained_on: int) -> None:
    line(f"{questions:,} questions, about articles that were not learnt from; {trained_on:,} were learnt from.")
    cells = [[row.name, *(format_score(row.to_dict()[figure], 3) for figure in FIGURES)] for row in rows]
    table("LAURA's measures", ["order", *FIGURES], cells, right={*FIGURES})

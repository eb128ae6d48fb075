"""The command ``rerank fit``."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from langshift.client import open_cluster
from langshift.commands.search_options import search_options
from langshift.debias.encoders.base import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import Dataset, identity, load_dataset
from langshift.evaluate.replay.result import check_output
from langshift.evaluate.runs import command, versions
from langshift.files import write_bytes, write_json
from langshift.output import emit_json, line, note, progress, table
from langshift.parameters import JSON, PATH, Command, FiniteRange, flag, option, option_group, refuse_beside
from langshift.retrieval.calibration.stored import USUAL_RERANK
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.rerank.features import FeatureModel, read_model
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.searcher import Searcher
from langshift.wording import format_change, format_score
from langshift_lab.rerank import laura
from langshift_lab.rerank.cross_encoder_training import (
    PARTS,
    CrossEncoderTraining,
    candidate_passages,
    fit_cross_encoder,
    held_out,
    text_scorer,
    training_queries,
)
from langshift_lab.rerank.cross_encoder_training import QUESTIONS as CROSS_ENCODER_QUESTIONS
from langshift_lab.rerank.feature_training import QUESTIONS as FEATURE_QUESTIONS
from langshift_lab.rerank.feature_training import feature_scorer, judge_features, train_features
from langshift_lab.rerank.labels import Labels, read_labels, with_labels
from langshift_lab.rerank.pools import (
    Array,
    Labeller,
    Mask,
    RerankSlice,
    Scorer,
    TrainingPool,
    collect_pools,
    drawn_queries,
    judged_positive,
    labelled_lists,
    measure_changes,
    refused,
)

FEATURES = "features"


_MODEL = option(
    "--model NAME", "What is trained: features, or st:NAME_OR_PATH, a cross-encoder to begin with.", default="features"
)
_TRAINING = option_group(
    "training",
    CrossEncoderTraining,
    option(
        "--epochs N",
        "How often st: learns from each passage.",
        click.IntRange(min=1),
        default=CrossEncoderTraining.epochs,
    ),
    option(
        "--negatives N",
        "How many passages stand beside each positive one for st:, drawn anew each time.",
        click.IntRange(min=1),
        default=CrossEncoderTraining.negatives,
    ),
    option(
        "--learning-rate RATE",
        "Of AdamW, for st:.",
        FiniteRange(0, 1, min_open=True),
        default=CrossEncoderTraining.learning_rate,
    ),
)


@click.command("fit", cls=Command)
@click.argument("dataset", type=PATH)
@option(
    "--index NAME",
    "An index of DATASET's documents; can be repeated, such as for several encoders.",
    dest="names",
    required=True,
    multiple=True,
)
@_MODEL
@option(
    "--labels FILE",
    "Labels of langshift rerank label, whose positives are learnt from instead of DATASET's judgements.",
    PATH,
)
@_TRAINING
@flag("--compare-labels", "Write no model, but compare models that were trained with other labels, as LAURA does.")
@option(
    "--train-on FOLDER",
    "With --compare-labels: another dataset, which one more model learns from, as from mMARCO in LAURA.",
)
@option("--train-index NAME", "The index of the documents of --train-on.")
@option(
    "--output PATH",
    "Where to write the model: a file for searches with --rerank features:FILE, or a folder for st:FOLDER; of "
    "--compare-labels a folder for laura.json and languages.csv.",
    required=True,
)
@search_options
@JSON
def fit(
    dataset: Path,
    names: tuple[str, ...],
    model: str,
    labels: Path | None,
    training: CrossEncoderTraining,
    compare_labels: bool,
    train_on: Path | None,
    train_index: str | None,
    output: Path,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Train a reranker on the questions and judgements of DATASET, which live indices are asked.

    Each question is learnt from three times, with one, two and four translations of each passage left among its
    candidates: with all of them a reranker would learn to avoid the reader's own language.

    What it changes is shown for questions about articles (or groups) that it was not trained on, with all translations,
    two and one, with and without an answer in the question's language. features is compared with the order of the
    search, at each strength that calibration (langshift anchors calibrate) chooses from; st: with the model that it
    began with, on a fifth of the articles. A model that loses anywhere is not written; of features that is said of
    strength .1, that of an index without a calibration.

    With --compare-labels rerankers are trained on the same candidates with different labels, on four fifths of the
    articles, and measured on the others: P@5, P@10, nDCG@5, nDCG@10 and PEER, and how far the languages of the first
    five are from the oracle's (JS, KL; by --labels those that answer best, else those of relevant documents), with
    their entropy.

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
      langshift search news "rising rents" --rerank features:own.json
      langshift rerank fit xquad8 --index news --labels labels.jsonl --compare-labels --output results/laura
    """
    _check_model(model)
    if compare_labels:
        check_output(output)
        if len(names) > 1:
            raise UsageError("--compare-labels takes one --index: compare labels in each index on its own.")
        if (train_on is None) is not (train_index is None):
            raise UsageError("--train-on needs --train-index, the index of its documents, and the other way round.")
    elif train_on or train_index:
        raise UsageError("--train-on and --train-index go with --compare-labels: add it.")
    elif model != FEATURES and output.exists():
        raise UsageError(f"{output} exists: name a new folder for the model, or remove it.")
    data, known = load_dataset(dataset), None
    if labels is not None:
        known = list(read_labels(labels))
        data = with_labels(data, known, labels)
    if compare_labels:
        other = None if train_on is None or train_index is None else (load_dataset(train_on), train_index)
        compared = _compare_labels(data, names[0], search, model, training, known, other)
        document = {
            "dataset": identity(data),
            "index": names[0],
            "model": model,
            "labels": labels and str(labels),
            "train_on": other and identity(other[0]),
            "train_index": train_index,
            **compared.to_dict(),
            "versions": versions(),
            "command": command(),
        }
        write_bytes(output / "languages.csv", compared.language_table().encode())
        write_json(output / "laura.json", document)
        if as_json:
            emit_json(document)
        else:
            _show_comparison(compared)
        note(f"Wrote laura.json and languages.csv to {output}.")
        return
    if model == FEATURES:
        _fit_features(data, names, search, output, as_json=as_json)
    else:
        _fit_cross_encoder(data, names, search, model, training, output, as_json=as_json)
    note(f"Wrote {output}.")


def _check_model(model: str) -> None:
    """Refuse what cannot be trained.

    Raises:
        UsageError: it is neither ``features`` nor ``st:``, or stands beside options of the other.
    """
    if model == FEATURES:
        refuse_beside(f"--model {FEATURES}", "epochs", "negatives", "learning_rate")
    elif not model.startswith("st:"):
        raise UsageError(f"--model {model} cannot be trained: give features, or st: and a cross-encoder to begin with.")


def _pools(
    data: Dataset, names: Sequence[str], search: SearchOptions, *, parts: int, vectors: bool = True
) -> dict[str, list[TrainingPool]]:
    """Index -> the candidates of the questions that a model is trained on and judged by.

    Args:
        data: the questions.
        names: of the indices.
        search: how they are opened.
        parts: into how many parts the articles or groups are dealt out.
        vectors: whether candidates need their vectors, as for features; many questions would not fit with them.

    Raises:
        UsageError: the questions are all about one article or group.
        LangshiftError: a search failed.
    """
    queries = drawn_queries(data, FEATURE_QUESTIONS if vectors else CROSS_ENCODER_QUESTIONS)
    client, opened = open_cluster(), dict[str, Encoder]()
    searchers = [Searcher(client, name, search, opened) for name in names]
    note(f"Training on {len(queries):,} questions in {' and '.join(names)}.")
    pools: dict[str, list[TrainingPool]] = {}
    with progress() as bars:
        for searcher in searchers:
            bar = bars.add_task(searcher.index.name, total=len(queries), rate="")
            advance = partial(bars.advance, bar)
            pools[searcher.index.name] = collect_pools(searcher, data, queries, advance, parts=parts, vectors=vectors)
    return pools


def _fit_features(data: Dataset, names: Sequence[str], search: SearchOptions, output: Path, *, as_json: bool) -> None:
    """Train on all questions, judge what those of each half change in the other, and write what loses nothing."""
    pools = _pools(data, names, search, parts=2)
    together = [pool for found in pools.values() for pool in found]
    models = [train_features([pool for pool in together if pool.part != half], data) for half in (0, 1)]
    slices = [one for index, found in pools.items() for one in judge_features(index, found, data, models)]
    fitted = train_features(together, data)
    _show({"model": msgspec.to_builtins(fitted)}, slices, as_json=as_json, show=partial(_show_weights, fitted))
    _refuse(slices, USUAL_RERANK)
    write_json(output, msgspec.to_builtins(fitted))


def _fit_cross_encoder(
    data: Dataset,
    names: Sequence[str],
    search: SearchOptions,
    model: str,
    training: CrossEncoderTraining,
    output: Path,
    *,
    as_json: bool,
) -> None:
    """Train on most articles, judge on the others beside the model that it began with, and write what loses nothing."""
    before = open_reranker(model)
    pools = _pools(data, names, search, parts=PARTS, vectors=False)
    passages = candidate_passages(data, chain(*pools.values()))
    learnt = [pool for found in pools.values() for pool in found if pool.part]
    output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{output.name}-", dir=output.absolute().parent) as temporary:
        folder = Path(temporary) / "model"
        lists = labelled_lists(learnt, data, judged_positive(data))
        losses = _train_cross_encoder(model, lists, passages, folder, training)
        trained = open_reranker(f"st:{folder}")
        slices = []
        for index, found in pools.items():
            old, new = text_scorer(before, passages), text_scorer(trained, passages)
            slices += measure_changes(index, held_out(found), data, old, partial(_full_strength, new))
        _show({"model": before.name, "loss": losses}, slices, as_json=as_json, show=partial(_show_losses, losses))
        _refuse(slices, 1.0)
        folder.rename(output)


def _full_strength(scorer: Scorer, pool: TrainingPool) -> dict[float, Array]:
    return {1.0: scorer(pool)}


def _train_cross_encoder(
    model: str,
    lists: Sequence[tuple[TrainingPool, Mask]],
    passages: Mapping[str, str],
    folder: Path,
    training: CrossEncoderTraining,
) -> list[float]:
    """Train under a bar of progress; the loss of each epoch."""
    queries = training_queries(lists, passages)
    with progress() as bars:
        total = training.epochs * sum(len(query.positives) for query in queries)
        bar = bars.add_task("Training", total=total, rate="")
        return fit_cross_encoder(model, queries, folder, training, on_list=partial(bars.advance, bar))


def _compare_labels(
    data: Dataset,
    name: str,
    search: SearchOptions,
    model: str,
    training: CrossEncoderTraining,
    labels: Sequence[Labels] | None,
    other: tuple[Dataset, str] | None,
) -> laura.LabelComparison:
    """Train the model with each kind of labels, and on another dataset in its index, and measure the orders."""
    vectors = model == FEATURES
    (pools,) = _pools(data, [name], search, parts=PARTS, vectors=vectors).values()
    passages = {} if vectors else candidate_passages(data, pools)

    def train_on(
        dataset: Dataset, texts: Mapping[str, str], learnt: Sequence[TrainingPool], positive: Labeller
    ) -> tuple[Scorer, Sequence[float]]:
        if model == FEATURES:
            fitted = train_features(learnt, dataset, positive)
            return feature_scorer(fitted), [fitted.loss]
        with TemporaryDirectory() as temporary:
            folder = Path(temporary) / "model"
            lists = labelled_lists(learnt, dataset, positive)
            losses = _train_cross_encoder(model, lists, texts, folder, training)
            return text_scorer(open_reranker(f"st:{folder}"), passages), losses

    untrained = feature_scorer(read_model()) if vectors else text_scorer(open_reranker(model), passages)
    trained = {}
    if other is not None:
        dataset, index = other
        (learnt,) = _pools(dataset, [index], search, parts=1, vectors=vectors).values()
        texts = {} if vectors else candidate_passages(dataset, learnt)
        trained[f"trained on {dataset.folder.name}"] = train_on(dataset, texts, learnt, judged_positive(dataset))
    return laura.compare_labels(pools, data, untrained, partial(train_on, data, passages), labels, trained)


def _show_comparison(compared: laura.LabelComparison) -> None:
    questions = f"{compared.measured:,} questions, about articles that were not learnt from"
    line(f"{questions}; {compared.learnt:,} were learnt from.")
    cells = [[row.name, *(format_score(row.figures[figure], 3) for figure in laura.FIGURES)] for row in compared.rows]
    table("LAURA's measures", ["order", *laura.FIGURES], cells, right={*laura.FIGURES})
    for sentence in compared.warnings:
        line(sentence)


def _show(
    document: Mapping[str, Any], slices: Sequence[RerankSlice], *, as_json: bool, show: Callable[[], None]
) -> None:
    if as_json:
        emit_json({**document, "slices": [one.to_dict() for one in slices]})
    else:
        show()
        _show_slices(slices)


def _refuse(slices: Sequence[RerankSlice], strength: float) -> None:
    """Refuse a model that loses somewhere.

    Raises:
        LangshiftError: where, and how much.
    """
    if losses := refused(slices, strength):
        one = losses[0]
        left = f"{one.translations} translations of each passage" if one.translations else "all translations"
        at = f"at strength {strength:g} it loses" if strength < 1 else "it loses"
        raise LangshiftError(
            f"The model is not written: {at} in {len(losses)} parts of the "
            f"questions, such as {one.index} with {left} and the answer in "
            f"{'the question' if one.answer == 'own' else 'another'} language ({format_change(one.ndcg)} nDCG@20)."
        )


def _show_weights(model: FeatureModel) -> None:
    weights = [[name, f"{weight:.4f}"] for name, weight in model.weights.items()]
    table(None, ["feature", "weight"], weights, right={"weight"})
    line(f"Loss {model.loss:.4f} over {model.queries:,} lists of candidates.")


def _show_losses(losses: Sequence[float]) -> None:
    rows = [[str(number), f"{loss:.4f}"] for number, loss in enumerate(losses, 1)]
    table(None, ["epoch", "loss"], rows, right={"epoch", "loss"})


def _show_slices(slices: Sequence[RerankSlice]) -> None:
    """A table for each strength."""
    for strength in dict.fromkeys(one.strength for one in slices):
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
        columns = ["index", "translations", "answer", "questions", "nDCG@20", "change", "TLR", "error", "loses"]
        table(f"Strength {strength:g}, on articles that were not learnt from", columns, rows, right={*columns[3:8]})

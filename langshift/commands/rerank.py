"""The commands of ``rerank``."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec

from langshift.client import open_cluster
from langshift.commands.rag import generated_by, load_answered, search_queries
from langshift.debias.encoders import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import Dataset, load_dataset
from langshift.evaluate.datasets.texts import DatasetLanguages, read_texts
from langshift.evaluate.generation.evaluation import passage_text
from langshift.evaluate.generation.generators import Generator
from langshift.evaluate.rerank.cross_encoder_training import (
    JUDGED,
    PARTS,
    CrossEncoderTraining,
    fit_cross_encoder,
    text_scorer,
    training_queries,
)
from langshift.evaluate.rerank.cross_encoder_training import QUESTIONS as CROSS_ENCODER_QUESTIONS
from langshift.evaluate.rerank.feature_training import QUESTIONS as FEATURE_QUESTIONS
from langshift.evaluate.rerank.feature_training import judge_features, train_features
from langshift.evaluate.rerank.labels import (
    CANDIDATES,
    LabelQuestion,
    label,
    oracle_distribution,
    read_labels,
    write_labels,
)
from langshift.evaluate.rerank.pools import (
    Array,
    Mask,
    RerankSlice,
    Scorer,
    TrainingPool,
    collect_pools,
    drawn_queries,
    judge,
    judged_positive,
    labelled_lists,
    refused,
)
from langshift.files import write_json
from langshift.languages import UNDETERMINED
from langshift.output import emit_json, line, note, progress, table
from langshift.parameters import (
    PATH,
    Command,
    CommandGroup,
    FiniteRange,
    json_or_tables,
    option,
    option_group,
    refuse_beside,
)
from langshift.retrieval.calibration.stored import USUAL_RERANK
from langshift.retrieval.rerank.features import FeatureModel
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import USUAL, SearchOptions, search_options
from langshift.wording import format_change, format_score

FEATURES = "features"


@click.group(cls=CommandGroup)
def rerank() -> None:
    """Train rerankers for searches (langshift search --rerank).

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
    """


@rerank.command("label", cls=Command)
@click.argument("dataset", type=PATH)
@option("--index NAME", "The index to search for candidates.", dest="name", required=True)
@option(
    "--generator NAME",
    "A model that answers, http:URL#MODEL; can be repeated, and utilities are means over all of them.",
    dest="generators",
    required=True,
    multiple=True,
)
@option("--output FILE", "Where to write the labels; FILE.answers.sqlite keeps the answers.", PATH, required=True)
@search_options
@json_or_tables
def label_(
    dataset: Path, name: str, generators: tuple[str, ...], output: Path, search: SearchOptions, as_json: bool
) -> None:
    """Label what passages are worth for the answers to the questions of DATASET, whatever language they are in.

    As in LAURA, the 100 best documents of a dense search are split by language, and every generator answers from the
    best five of each language. The languages of the best answers are kept; then every generator answers from each of
    their documents alone. A document's utility is the mean 3-gram recall of these answers; above .8 it is positive.

    DATASET needs reference answers (answers.jsonl). The same command again asks nothing twice, also after a crash.

    \b
    Example:
      langshift rerank label xquad8 --index news --generator http:http://localhost:8000#org/model --output labels.jsonl
      langshift rerank fit xquad8 --index news --labels labels.jsonl --output own.json
    """
    data = load_answered(dataset)
    if len(set(generators)) < len(generators):
        raise UsageError("--generator names a model twice: the generators must be different.")
    models = [Generator(one) for one in generators]
    found = {one.query: one for one in search_queries(data, name, USUAL, search)[0].answers}
    languages = DatasetLanguages.of(data)
    questions = [
        LabelQuestion(
            query.id,
            query.text,
            languages.queries[query.id] or UNDETERMINED,
            data.answers[query.id],
            [hit for hit, _ in found[query.id].hits if hit in data.documents][:CANDIDATES],
        )
        for query in data.queries
        if query.id in data.answers
    ]
    questions = [one for one in questions if one.candidates]
    documents = read_texts(data, {document for one in questions for document in one.candidates})
    passages = {document: passage_text(text, None) for document, text in documents.items()}
    cache = output.with_name(f"{output.name}.answers.sqlite")
    answering = [generated_by(model, cache, resumable=True) for model in models]
    labels = label(questions, passages, languages.documents, answering)
    write_labels(output, labels)
    positive = sum(map(bool, (one.positives for one in labels)))
    oracle = oracle_distribution(labels)
    if as_json:
        emit_json({"queries": len(labels), "with_positives": positive, "oracle": oracle})
    else:
        _show_oracle(oracle)
        line(f"{positive:,} of {len(labels):,} questions have a passage of utility above .8.")
    note(f"Wrote {output}.")


MODEL = option(
    "--model NAME",
    "What is trained: features, or st:NAME_OR_PATH, a cross-encoder to begin with.",
    default="features",
)
TRAINING = option_group(
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


@rerank.command(cls=Command)
@click.argument("dataset", type=PATH)
@option(
    "--index NAME",
    "An index of DATASET's documents; can be repeated, such as for several encoders.",
    dest="names",
    required=True,
    multiple=True,
)
@MODEL
@option(
    "--labels FILE",
    "Labels of langshift rerank label, whose positives are learnt from instead of DATASET's judgements.",
    PATH,
)
@TRAINING
@option(
    "--output PATH",
    "Where to write the model: a file for searches with --rerank features:FILE, or a folder for st:FOLDER.",
    required=True,
)
@search_options
@json_or_tables
def fit(
    dataset: Path,
    names: tuple[str, ...],
    model: str,
    labels: Path | None,
    training: CrossEncoderTraining,
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

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
      langshift search news "rising rents" --rerank features:own.json
    """
    check_model(model)
    if model != FEATURES and output.exists():
        raise UsageError(f"{output} exists: name a new folder for the model, or remove it.")
    data = load_dataset(dataset)
    if labels is not None:
        data = labelled(data, labels)
    if model == FEATURES:
        _fit_features(data, names, search, output, as_json=as_json)
    else:
        _fit_cross_encoder(data, names, search, model, training, output, as_json=as_json)
    note(f"Wrote {output}.")


def check_model(model: str) -> None:
    """Refuse what cannot be trained.

    Raises:
        UsageError: it is neither ``features`` nor ``st:``, or stands beside options of the other.
    """
    if model == FEATURES:
        refuse_beside(f"--model {FEATURES}", "epochs", "negatives", "learning_rate")
    elif not model.startswith("st:"):
        raise UsageError(f"--model {model} cannot be trained: give features, or st: and a cross-encoder to begin with.")


def pools_of(
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
    pools = pools_of(data, names, search, parts=2)
    together = [pool for found in pools.values() for pool in found]
    name = data.folder.name
    models = [train_features([pool for pool in together if pool.part != half], data, name) for half in (0, 1)]
    slices = [one for index, found in pools.items() for one in judge_features(index, found, data, models)]
    fitted = train_features(together, data, name)
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
    before = open_reranker(model, trust_remote_code=search.trust_remote_code)
    pools = pools_of(data, names, search, parts=PARTS, vectors=False)
    passages = passages_of(data, chain(*pools.values()))
    learnt = [pool for found in pools.values() for pool in found if pool.part]
    output.absolute().parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{output.name}-", dir=output.absolute().parent) as temporary:
        folder = Path(temporary) / "model"
        lists = labelled_lists(learnt, data, judged_positive(data))
        losses = trained_cross_encoder(model, lists, passages, folder, training, search)
        trained = open_reranker(f"st:{folder}")
        slices = []
        for index, found in pools.items():
            after = text_scorer(trained, passages)
            slices += judge(index, held_out(found), data, text_scorer(before, passages), partial(_full_strength, after))
        _show({"model": before.name, "loss": losses}, slices, as_json=as_json, show=partial(_show_losses, losses))
        _refuse(slices, 1.0)
        folder.rename(output)
    note(f"Wrote {output}.")


def _full_strength(scorer: Scorer, pool: TrainingPool) -> dict[float, Array]:
    return {1.0: scorer(pool)}


def held_out(pools: Sequence[TrainingPool]) -> list[TrainingPool]:
    """The candidates of questions that were not learnt from, and that a model is judged by."""
    return [pool for pool in pools if not pool.part][:JUDGED]


def passages_of(data: Dataset, pools: Iterable[TrainingPool]) -> dict[str, str]:
    """Id -> text of the candidates that the dataset has, as searches give them to rerankers."""
    documents = read_texts(data, {name for pool in pools for name in pool.documents})
    return {name: ". ".join(filter(None, (text.title, text.text))) for name, text in documents.items()}


def trained_cross_encoder(
    model: str,
    lists: Sequence[tuple[TrainingPool, Mask]],
    passages: Mapping[str, str],
    folder: Path,
    training: CrossEncoderTraining,
    search: SearchOptions,
) -> list[float]:
    """Train under a bar of progress; the loss of each epoch."""
    queries = training_queries(lists, passages)
    with progress() as bars:
        total = training.epochs * sum(len(query.positives) for query in queries)
        bar = bars.add_task("Training", total=total, rate="")
        return fit_cross_encoder(
            model,
            queries,
            folder,
            training,
            trust_remote_code=search.trust_remote_code,
            on_list=partial(bars.advance, bar),
        )


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
        at = f"at strength {strength:g} it loses" if strength < 1 else "it loses"
        raise LangshiftError(
            f"The model is not written: {at} in {len(losses)} parts of the "
            f"questions, such as {one.index} with {_translations(one)} and the answer in "
            f"{'the question' if one.answer == 'own' else 'another'} language ({format_change(one.ndcg)} nDCG@20)."
        )


def _show_oracle(oracle: Mapping[str, Mapping[str, float]]) -> None:
    """A row for each language of questions: which languages the best answers were from."""
    tags = sorted({tag for shares in oracle.values() for tag in shares})
    rows = [[tag, *(format_score(shares.get(one), 2) for one in tags)] for tag, shares in oracle.items()]
    table("Languages of the best answers, by that of the question", ["question", *tags], rows, right={*tags})


def labelled(data: Dataset, path: Path) -> Dataset:
    """The questions that labels have a positive document for, with these as its judgements.

    Raises:
        UsageError: the labels are of another dataset, or none is positive.
    """
    found = {one.query: dict.fromkeys(one.positives, 1) for one in read_labels(path) if one.positives}
    known = {query.id for query in data.queries}
    if strange := {*found} - known or {name for names in found.values() for name in names} - data.documents.keys():
        other = f"{min(strange)!r}, which is not in {data.folder}"
        raise UsageError(f"{path} labels {other}: give the labels of this dataset.")
    if not found:
        raise UsageError(f"{path} has no positive document, so there is nothing to learn: label more questions.")
    return replace(data, queries=tuple(query for query in data.queries if query.id in found), qrels=found)


def _translations(one: RerankSlice) -> str:
    return "all translations" if one.translations is None else f"{one.translations} translations of each passage"


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
        columns = ["index", "translations", "answer", "questions", "nDCG@20", "change", "TLR@20", "error", "loses"]
        table(f"Strength {strength:g}, on articles that were not learnt from", columns, rows, right={*columns[3:8]})

"""The commands of ``rerank``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

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
from langshift.evaluate.rerank.labels import (
    CANDIDATES,
    LabelQuestion,
    label,
    oracle_distribution,
    read_labels,
    write_labels,
)
from langshift.files import write_json
from langshift.languages import UNDETERMINED
from langshift.output import emit_json, format_change, format_score, line, note, progress, table
from langshift.parameters import PATH, Command, CommandGroup, json_or_tables, option
from langshift.retrieval.calibration.calibrate import RERANK_STRENGTHS
from langshift.retrieval.rerank.features import FeatureModel
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import USUAL, SearchOptions, search_options


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


@rerank.command(cls=Command)
@click.argument("dataset", type=PATH)
@option(
    "--index NAME",
    "An index of DATASET's documents; can be repeated, such as for several encoders.",
    dest="names",
    required=True,
    multiple=True,
)
@option(
    "--labels FILE",
    "Labels of langshift rerank label, whose positives are learnt from instead of DATASET's judgements.",
    PATH,
)
@option("--output FILE", "Where to write the model; searches use it with --rerank features:FILE.", PATH, required=True)
@search_options
@json_or_tables
def fit(
    dataset: Path,
    names: tuple[str, ...],
    labels: Path | None,
    output: Path,
    search: SearchOptions,
    as_json: bool,
) -> None:
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
    if labels is not None:
        data = _labelled(data, labels)
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
    lists = [training_lists([pool for pool in together if pool.half == half], data) for half in (0, 1)]
    # Each half is judged by what was learnt from the other.
    models = [train(lists[1 - half], data.folder.name) for half in (0, 1)]
    slices = [one for name, found in pools.items() for one in judge(name, found, data, models)]
    model = train([*lists[0], *lists[1]], data.folder.name)
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


def _show_oracle(oracle: Mapping[str, Mapping[str, float]]) -> None:
    """A row for each language of questions: which languages the best answers were from."""
    tags = sorted({tag for shares in oracle.values() for tag in shares})
    rows = [[tag, *(format_score(shares.get(one), 2) for one in tags)] for tag, shares in oracle.items()]
    table("Languages of the best answers, by that of the question", ["question", *tags], rows, right={*tags})


def _labelled(data: Dataset, path: Path) -> Dataset:
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

"""The command ``rerank label``."""

from collections.abc import Mapping
from pathlib import Path

import click

from langshift.commands.search_options import search_options
from langshift.errors import UsageError
from langshift.evaluate.datasets.texts import DatasetLanguages, read_texts
from langshift.languages import UNDETERMINED
from langshift.output import emit_json, line, note, table
from langshift.parameters import JSON, PATH, Command, option
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import USUAL
from langshift.wording import format_score, pluralize
from langshift_lab.commands.answering import generate_shown, search_shown
from langshift_lab.generation.answering import load_answered
from langshift_lab.generation.evaluation import passage_text
from langshift_lab.generation.generators import Generator
from langshift_lab.rerank.labels import (
    CANDIDATES,
    LabelQuestion,
    best_by_language,
    label,
    oracle_distribution,
    write_labels,
)


@click.command("label", cls=Command)
@click.argument("dataset", type=PATH)
@option("--index NAME", "The index to search for candidates.", dest="name", required=True)
@option(
    "--generator NAME",
    "A model that answers, http:URL#MODEL; can be repeated, and utilities are means over all of them.",
    dest="generators",
    required=True,
    multiple=True,
)
@option(
    "--rerank NAME",
    "The reranker that picks the five of each language: features, st:NAME_OR_PATH or http:URL#MODEL; without it they "
    "are the nearest.",
)
@option("--output FILE", "Where to write the labels; FILE.answers.sqlite keeps the answers.", PATH, required=True)
@search_options
@JSON
def label_(
    dataset: Path,
    name: str,
    generators: tuple[str, ...],
    rerank: str | None,
    output: Path,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Label what passages are worth for the answers to the questions of DATASET, whatever language they are in.

    As in LAURA, the 100 best documents of a dense search are split by language, --rerank picks the best five of each
    language, and every generator answers from these. The languages of the best answers are kept; then every generator
    answers from each of their documents alone. A document's utility is the mean 3-gram recall of these answers; above
    .8 it is positive.

    DATASET needs reference answers (answers.jsonl). The same command again asks nothing twice, also after a crash.

    \b
    Example:
      langshift rerank label xquad8 --index news --generator http:http://localhost:8000#org/model \\
        --rerank st:BAAI/bge-reranker-v2-m3 --output labels.jsonl
      langshift rerank fit xquad8 --index news --labels labels.jsonl --output own.json
    """
    data = load_answered(dataset)
    if len(set(generators)) < len(generators):
        raise UsageError("--generator names a model twice: the generators must be different.")
    models = [Generator(one) for one in generators]
    # The reranker puts all candidates in its order: what it does within each language is the same.
    setting = USUAL if rerank is None else USUAL.but(rerank=rerank, rerank_depth=CANDIDATES, rerank_per_language=0)
    found = {one.query: one for one in search_shown(data, name, setting, search)[0].answers}
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
    best = best_by_language(questions, languages.documents)
    sizes = [[*map(len, found.values())] for found in best if found]
    # A prompt for each language, and mostly one for each passage of the language that answers best.
    prompts = len(models) * sum(len(each) + max(each) for each in sizes)
    judged = f"{pluralize(len(questions), 'question')}, {pluralize(sum(map(sum, sizes)), 'passage')} to judge"
    note(f"{judged}: about {pluralize(prompts, 'prompt')}, of which none is sent twice.")
    cache = output.with_name(f"{output.name}.answers.sqlite")
    answering = [generate_shown(model, cache, resumable=True) for model in models]
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


def _show_oracle(oracle: Mapping[str, Mapping[str, float]]) -> None:
    """A row for each language of questions: which languages the best answers were from."""
    tags = sorted({tag for shares in oracle.values() for tag in shares})
    rows = [[tag, *(format_score(shares.get(one), 2) for one in tags)] for tag, shares in oracle.items()]
    table("Languages of the best answers, by that of the question", ["question", *tags], rows, right={*tags})

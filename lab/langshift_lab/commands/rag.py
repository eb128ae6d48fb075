"""The command ``evaluate rag``."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from langshift.commands.search_options import search_options
from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import identity
from langshift.evaluate.replay.replay import ReplayResult
from langshift.evaluate.replay.result import check_output, provenance
from langshift.evaluate.report.tables import probability
from langshift.evaluate.runs import command, versions
from langshift.output import emit_json, heading, line, note, table, warn
from langshift.parameters import JSON, PATH, Command, option
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import read_setting
from langshift.wording import format_change, format_score
from langshift_lab.commands.answering import generate_shown, search_shown
from langshift_lab.generation.answering import load_answered
from langshift_lab.generation.evaluation import RagEvaluation
from langshift_lab.generation.generators import Generator
from langshift_lab.generation.rag import PRESENT, parse_context

_CACHE = "answers.sqlite"
#: What is measured without a generator rewards the overlap of words.
_OVERLAP = (
    f'Without a --generator no answer was generated: "{PRESENT}" looks for the words of a reference answer in the '
    "passages, so it rewards the overlap of words, above all in the question's own language, and is no accuracy."
)


@click.command("rag", cls=Command)
@click.argument("dataset", type=PATH)
@option("--index NAME", "The index to search.")
@option(
    "--context CONTEXT",
    "What answers are generated from; can be repeated.",
    dest="contexts",
    required=True,
    multiple=True,
)
@option("--generator NAME", "The chat model that answers: http:URL#MODEL.")
@option(
    "--setting SETTING",
    "How to search: a mode and options of `langshift search`, such as 'hybrid --prefer-language .02'.",
    default="dense",
)
@option("--output FOLDER", "Write rag.json and the answers here.")
@search_options
@JSON
def rag(
    dataset: Path,
    index: str | None,
    contexts: tuple[str, ...],
    generator: str | None,
    setting: str,
    output: Path | None,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Have the questions of DATASET answered, and measure what the answers are worth.

    \b
    --context gold-en          the passage that answers, in English
    --context gold-own         the same in the question's language
    --context retrieved:K      the K best documents of a search
    --context language-wise:K  the K best of each language among the 50 best: an
                               answer for each language, of which the best counts
    --context none             nothing: what the model knows by itself

    DATASET needs reference answers. Without --generator it is only looked whether these stand in what was found.

    \b
    Example:
      langshift evaluate rag xquad8 --context gold-en --context gold-own \\
        --index news --context retrieved:5 --output results/rag \\
        --generator http:http://localhost:8000#org/model
    """
    parsed, how = list(dict.fromkeys(map(parse_context, contexts))), read_setting(setting)
    searched = [context for context in parsed if context.search_depth]
    if searched and index is None:
        raise UsageError(f"--context {searched[0]} needs a search: name the index with --index.")
    if generator is None and any(context.kind == "none" for context in parsed):
        raise UsageError("--context none needs a generator: name one with --generator, or leave the context out.")
    data = load_answered(dataset)
    if output is not None:
        check_output(output)
    model = None if generator is None else Generator(generator)
    found, server = search_shown(data, index, how, search) if searched and index is not None else (None, None)
    ranked = {} if found is None else {answer.query: answer for answer in found.answers}
    with tempfile.TemporaryDirectory() as temporary:
        cache = (output or Path(temporary)) / _CACHE
        generate = None if model is None else generate_shown(model, cache, resumable=output is not None)
        evaluation = RagEvaluation.of(data, parsed, ranked, generate, open_detector())
    document = {
        "dataset": identity(data),
        "generator": model and model.name,
        **_searched(found, server),
        **evaluation.to_dict(),
    }
    document["warnings"] = [*(found.warnings if found else ()), *evaluation.languages.warnings]
    warn(document["warnings"])
    if output is not None:
        evaluation.write(output, document)
    if as_json:
        emit_json(document)
    else:
        _show(document)
    if model is None:
        note(_OVERLAP)
    if output is not None:
        folders = ", ".join(context.folder for context in parsed)
        note(f"Wrote rag.json and the answers to {output}: {folders}.")


def _searched(found: ReplayResult | None, server: str | None) -> dict[str, Any]:
    """How was searched, as ``rag.json`` has it."""
    if found is None:
        return {"index": None, "setting": None, "versions": versions(), "command": command()}
    chosen = found.setting if found.chosen is None else found.chosen.setting
    return {
        "index": found.index,
        "version": found.version,
        "setting": to_builtins(found.setting),
        "resolved": to_builtins(chosen),
        **provenance(found.fingerprint, server),
    }


_COUNTS = {"asked": "answers", "empty": "empty", "cut_off": "cut off", "refused": "refused"}
#: Keys of a condition that are no measures.
_NO_MEASURES = {"queries", "undecided", "left_out", "answers", "by_language", "correlation", "oracle"}


def _show(document: Mapping[str, Any]) -> None:
    """Print the figures of the contexts, what was left out, the tests, the correlation and the oracle's languages."""
    conditions: Mapping[str, Mapping[str, Any]] = document["conditions"]
    without = document["queries"]["without_answers"]
    heading(f"{document['queries']['asked']:,} queries with reference answers, {without:,} without are not asked")
    languages = sorted({tag for one in conditions.values() for tag in one["by_language"]})
    for measure in dict.fromkeys(key for one in conditions.values() for key in one if key not in _NO_MEASURES):
        heading(f"\n{measure[0].upper()}{measure[1:]}")
        rows = [
            [
                name,
                *(
                    format_score(part.get(measure))
                    for part in (one, *(one["by_language"].get(tag, {}) for tag in languages))
                ),
            ]
            for name, one in conditions.items()
            if measure in one
        ]
        table(None, ["context", "all", *languages], rows, right={"all", *languages})
    heading("\nQueries and answers")
    rows = [
        [
            name,
            f"{one['queries']:,}",
            f"{one['left_out']:,}",
            *(f"{one['answers'][key]:,}" for key in _COUNTS),
            format_score(one.get("undecided"), 3),
        ]
        for name, one in conditions.items()
    ]
    columns = ["context", "queries", "left out", *_COUNTS.values(), "language undecided"]
    table(None, columns, rows, right=set(columns[1:]))
    _show_tests(document)
    for name, one in conditions.items():
        if one["correlation"] is not None:
            _show_correlation(name, one["correlation"])
        if one["oracle"] is not None:
            _show_oracle(name, one["oracle"])


def _show_tests(document: Mapping[str, Any]) -> None:
    if not document["differences"]:
        return
    basis = document["test"]
    heading(
        f"\nDifferences, tested over {basis['clusters']:,} clusters by {basis['clustered_by']}, corrected after Holm"
    )
    rows = [
        [
            f"{one['before']} → {one['after']}",
            one["measure"],
            format_change(one["difference"]),
            f"{one['queries']:,}",
            probability(one["randomisation"]),
            probability(one["corrected"]),
        ]
        for one in document["differences"]
    ]
    columns = ["contexts", "measure", "difference", "queries", "p", "corrected p"]
    table(None, columns, rows, right=set(columns[2:]))


def _show_correlation(name: str, found: Mapping[str, Any]) -> None:
    if found["pearson"] is None:
        line(f"\n{name}: mean score and 3-gram recall have no correlation, since one of them is always the same.")
        return
    line(
        f"\n{name}: mean score and 3-gram recall correlate by {format_change(found['pearson'], 3)} (Pearson; "
        f"p {probability(found['p'])}, {found['queries']:,} queries)."
    )


def _show_oracle(name: str, found: Mapping[str, Any]) -> None:
    heading(f"\n{name}: languages of the documents retrieved, and the oracle's")
    rows = [
        [
            tag,
            f"{row['queries']:,}",
            *(format_score(row[key], 3) for key in ("JS", "KL", "entropy_retrieved", "entropy_oracle")),
            *(
                ", ".join(f"{one} {format_score(share, 2)}" for one, share in row[key].items())
                for key in ("retrieved", "oracle")
            ),
        ]
        for tag, row in found["by_language"].items()
    ]
    means = [format_score(found[key], 3) for key in ("JS", "KL", "entropy_retrieved", "entropy_oracle")]
    columns = ["language", "queries", "JS", "KL", "entropy", "oracle's entropy", "retrieved", "oracle"]
    table(None, columns, [*rows, ["mean", "", *means, "", ""]], right=set(columns[1:6]), prose=set(columns[6:]))
    if found["all_zero"]:
        line(f"{found['all_zero']:,} queries have no answer above 0 in any language, so their weight is spread evenly.")

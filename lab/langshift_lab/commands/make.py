"""The command ``dataset make``."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from langshift.client import open_cluster
from langshift.commands.search_options import search_options
from langshift.debias.detector import LanguageDetector, open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.languages import require_tag, text_language
from langshift.output import emit_json, line, note, progress, table
from langshift.parameters import JSON, PATH, Command, option, parse_list
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import SearchOptions, by_features
from langshift.wording import join_words, pluralize
from langshift_lab.commands.answering import generate_shown
from langshift_lab.construct.construct import (
    QuestionTally,
    confirm,
    draw_passages,
    source,
    thirds,
    translate,
    write_questions,
)
from langshift_lab.construct.contrast import SpanContrast
from langshift_lab.construct.questions import MOST_TOKENS, REASONS
from langshift_lab.construct.snapshot import IndexSnapshot
from langshift_lab.generation.generators import Generator


@click.command("make", cls=Command)
@click.argument("name", metavar="INDEX")
@click.argument("out", type=PATH)
@option("--generator NAME", "The chat model that writes the questions: http:URL#MODEL.", required=True)
@option("--rerank NAME", "The reranker that checks them: st:NAME_OR_PATH or http:URL#MODEL.", required=True)
@option(
    "--count N", "How many documents to draw: a question is asked on each.", click.IntRange(1, 100_000), default=500
)
@option("--seed N", "Another one draws other documents.", click.IntRange(min=0), default=0)
@option(
    "--translate LIST",
    "Have each question in these languages, too, such as de,th.",
    dest="translations",
    callback=parse_list,
)
@search_options
@JSON
def make(
    name: str,
    out: Path,
    generator: str,
    rerank: str,
    count: int,
    seed: int,
    translations: list[str] | None,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Make a test set OUT from the documents of INDEX.

    As in PosIR, documents of all languages and lengths are drawn, and a chat model writes a question on the first,
    middle or last third of each, with the words that answer it. A question stays if these words are there, if the
    reranker prefers the document with them to that without, and if no other document answers as well.

    OUT.answers.sqlite keeps the answers: after an interruption, the same command sends no prompt twice.

    \b
    Example:
      langshift dataset make news own --generator http:http://localhost:8000#org/model \\
        --rerank st:BAAI/bge-reranker-v2-m3 --translate en,th
    """
    if by_features(rerank):
        raise UsageError(f"--rerank {rerank} reads no texts: name st:NAME_OR_PATH or http:URL#MODEL.")
    detector = open_detector()
    languages = _languages(translations or [], detector)
    cache = out.absolute().with_name(f"{out.absolute().name}.answers.sqlite")
    report: dict[str, Any] = {}

    # Nothing is opened before it is clear that OUT can be written.
    def read() -> PoolSource:
        client = open_cluster()
        searcher = Searcher(client, name, search)
        model = Generator(generator, MOST_TOKENS)
        reranker = open_reranker(rerank)
        with progress() as bars:
            task = bars.add_task(f"Reading {name}", total=None, rate="")
            snapshot = IndexSnapshot.of(client, searcher.index, partial(bars.advance, task))
        passages = draw_passages(snapshot, name, count, seed)
        note(f"{pluralize(len(passages), 'document')} drawn: a prompt for each, and one for each translation.")
        generate = generate_shown(model, cache, resumable=True)
        tally = QuestionTally(len(passages))
        written = write_questions(passages, generate, detector, tally)
        with progress() as bars:
            task = bars.add_task("Comparing documents", total=len(written), rate="")
            drafts = confirm(written, SpanContrast(searcher, reranker), tally, partial(bars.advance, task))
        translated, of_translations = translate(drafts, languages, generate, detector)
        report.update(tally.to_dict(), thirds=thirds(drafts), translations=of_translations.to_dict())
        return source(name, snapshot, drafts, translated)

    (made,) = build(out, read, PoolOptions(pivots=None))
    if as_json:
        emit_json({**made.to_dict(), "construction": report})
        return
    _show("questions", report)
    if report["translations"]["prompts"]:
        _show("translations", report["translations"])
    line(f"Answers in the {join_words([f'{third} third: {number:,}' for third, number in report['thirds'].items()])}.")
    note(f"Wrote {out}: {made.documents:,} documents, {made.queries:,} questions, {made.judgements:,} judgements.")


def _languages(given: list[str], detector: LanguageDetector) -> list[str]:
    """Primary tags of languages that the detector can check.

    Raises:
        UsageError: it does not know one of them.
    """
    tags = [text_language(require_tag(one)) for one in given]
    if unknown := [one for one, tag in zip(given, tags, strict=True) if tag not in detector.known]:
        raise UsageError(
            f"--translate {join_words(unknown)}: the detector does not know the language, so no translation could be "
            "checked. Leave it out."
        )
    return list(dict.fromkeys(tags))


def _show(what: str, tally: Mapping[str, Any]) -> None:
    """Print what share of the questions was left out, and why."""
    total, dropped = tally["prompts"], tally["dropped"]
    counts = {**{REASONS[reason]: dropped[reason] for reason in REASONS}, "used": tally["questions"]}
    rows = [[why, f"{number:,}", f"{number / total:.1%}"] for why, number in counts.items() if number]
    table(f"{total:,} {what}", ["outcome", "number", "share"], rows, right={"number", "share"}, prose={"outcome"})

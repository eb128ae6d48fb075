"""Questions of ``dataset make`` that a chat model writes and a reranker checks: its option ``--generator``."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langshift.client import open_cluster
from langshift.commands.dataset import read_index
from langshift.debias.detector import LanguageDetector, open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.languages import require_tag, text_language
from langshift.output import emit_json, line, note, progress, table
from langshift.retrieval.question import SearchOptions
from langshift.retrieval.request import by_features
from langshift.retrieval.rerank.rerankers import open_reranker
from langshift.retrieval.searcher import Searcher
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
from langshift_lab.generation.generators import Generator

# The passage with its answer and without, ten others, and mostly a second window of some.
_TEXTS_A_QUESTION = 20


def make_by_model(
    name: str,
    out: Path,
    generator: str,
    rerank: str,
    count: int,
    seed: int,
    translations: Sequence[str],
    search: SearchOptions,
    *,
    as_json: bool,
) -> None:
    """Make a test set ``out`` from the documents of an index, with questions that a chat model writes, as in PosIR.

    Args:
        name: the index.
        out: the folder.
        generator: the chat model.
        rerank: the reranker that checks the questions.
        count: how many documents to draw.
        seed: chooses them.
        translations: further languages of each question.
        search: where the index's encoder is.
        as_json: whether one JSON document is printed.

    Raises:
        LangshiftError: something fails, or no question is left.
        UsageError: what cannot be used.
    """
    if by_features(rerank):
        raise UsageError(f"--rerank {rerank} reads no texts: name st:NAME_OR_PATH or http:URL#MODEL.")
    detector = open_detector()
    languages = _languages(translations, detector)
    cache = out.absolute().with_name(f"{out.absolute().name}.answers.sqlite")
    report: dict[str, Any] = {}

    # Nothing is opened before it is clear that OUT can be written.
    def read() -> PoolSource:
        client = open_cluster()
        searcher = Searcher(client, name, search)
        model = Generator(generator, MOST_TOKENS)
        reranker = open_reranker(rerank)
        snapshot = read_index(client, searcher.index)
        passages = draw_passages(snapshot, name, count, seed)
        # Of a question that is used, each language has its own; the others take none.
        prompts, texts = len(passages) * (1 + len(languages)), len(passages) * _TEXTS_A_QUESTION
        drawn = f"{pluralize(len(passages), 'document')} drawn, a question on each"
        note(f"{drawn}: up to {pluralize(prompts, 'prompt')}, and about {texts:,} texts for the reranker to judge.")
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


def _languages(given: Sequence[str], detector: LanguageDetector) -> list[str]:
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

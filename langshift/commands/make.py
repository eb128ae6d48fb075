"""The command ``dataset make``."""

from functools import partial
from pathlib import Path

import click
from opensearchpy import OpenSearch

from langshift import extensions
from langshift.client import open_cluster
from langshift.commands.search_options import search_options
from langshift.errors import UsageError
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.evaluate.convert.snapshot import IndexSnapshot
from langshift.evaluate.convert.titles import NOTE, TitleQuestions, read_titles
from langshift.output import emit_json, note, progress
from langshift.parameters import JSON, PATH, Command, option, parse_list
from langshift.plugin.versions import IndexInfo, live
from langshift.retrieval.settings import SearchOptions
from langshift.wording import join_words, pluralize


@click.command("make", cls=Command)
@click.argument("name", metavar="INDEX")
@click.argument("out", type=PATH)
@option("--count N", "Questions at most; of --generator, documents to draw.", click.IntRange(1, 100_000), default=500)
@option("--seed N", "Another one draws other documents.", click.IntRange(min=0), default=0)
@option("--generator NAME", "The chat model that writes the questions, http:URL#MODEL. [default: titles ask]")
@option("--rerank NAME", "With --generator, the reranker that checks them: st:NAME_OR_PATH or http:URL#MODEL.")
@option(
    "--translate LIST",
    "With --generator, have each question in these languages, too, such as de,th.",
    dest="translations",
    callback=parse_list,
)
@search_options
@JSON
def make(
    name: str,
    out: Path,
    count: int,
    seed: int,
    generator: str | None,
    rerank: str | None,
    translations: list[str] | None,
    search: SearchOptions,
    as_json: bool,
) -> None:
    """Make a test set OUT from the documents of INDEX, which nobody has to judge.

    The title of a document asks, or its first sentence where it has no title, in each language of its translation
    group, and the documents of the group answer; where it names no group, it answers alone. Every language asks about
    as often, about the same groups where it can. A title that several groups have is left out. Such questions tell
    whether the same is found in every language, but nobody has asked them, and they repeat the documents' words: modes
    that match words look better by them than they are.

    With --generator (langshift-lab), documents of all languages and lengths are drawn, as in PosIR, and a chat model
    writes a question on the first, middle or last third of each, with the words that answer it. A question stays if
    these words are there, if the reranker prefers the document with them to that without, and if no other document
    answers as well. OUT.answers.sqlite keeps the answers: after an interruption, the same command sends no prompt
    twice.

    \b
    Example:
      langshift dataset make news titles
      langshift evaluate replay titles --index news-plain --index news
      langshift dataset make news own --generator http:http://localhost:8000#org/model \\
        --rerank st:BAAI/bge-reranker-v2-m3 --translate en,th
    """
    if generator is not None:
        by_model = extensions.load(extensions.QUESTIONS, "generator", "--generator")
        if rerank is None:
            raise UsageError("--generator writes questions that a reranker has to check: name it with --rerank.")
        by_model(name, out, generator, rerank, count, seed, translations or [], search, as_json=as_json)
        return
    beside = {"--rerank": rerank, "--translate": translations, "--encoder": search.encoder}
    if given := [option for option, value in beside.items() if value]:
        raise UsageError(
            f"{join_words(given)} would change nothing where titles ask: name a --generator that writes the questions, "
            f"or leave {'them' if len(given) > 1 else 'it'} out."
        )
    found: list[TitleQuestions] = []

    # Nothing is opened before it is clear that OUT can be written.
    def read() -> PoolSource:
        client = open_cluster()
        found.append(read_titles(name, read_index(client, live(client, name)), count, seed))
        return found[0].source

    (made,) = build(out, read, PoolOptions(pivots=None))
    shared = found[0].shared
    if as_json:
        emit_json({**made.to_dict(), "shared_titles": shared, "note": NOTE})
        return
    if shared:
        note(f"Left out: {pluralize(shared, 'title')} that several documents or groups share.")
    note(NOTE)
    note(f"Wrote {out}: {made.documents:,} documents, {made.queries:,} questions, {made.judgements:,} judgements.")


def read_index(client: OpenSearch, index: IndexInfo) -> IndexSnapshot:
    """Read all documents of an index, with progress.

    Raises:
        LangshiftError: it cannot be read to its end.
    """
    with progress() as bars:
        task = bars.add_task(f"Reading {index.name}", total=None, rate="")
        return IndexSnapshot.of(client, index, partial(bars.advance, task))

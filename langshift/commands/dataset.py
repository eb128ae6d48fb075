"""The group ``dataset``, and its commands ``convert``, ``check`` and ``make``."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from opensearchpy import OpenSearch

from langshift import extensions
from langshift.client import open_cluster
from langshift.commands.search_options import search_options
from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.evaluate.convert.snapshot import IndexSnapshot
from langshift.evaluate.convert.srw import read_srw, write_srw
from langshift.evaluate.convert.titles import NOTE, TitleQuestions, read_titles
from langshift.evaluate.convert.ubi import read_ubi
from langshift.evaluate.datasets.check import DatasetCheck, check_dataset
from langshift.evaluate.datasets.dataset import describe_own_documents, load_dataset
from langshift.output import emit_json, line, note, out, progress, table
from langshift.parameters import JSON, PATH, Command, CommandGroup, Option, flag, option, parse_list, refuse_beside
from langshift.plugin.versions import IndexInfo, live
from langshift.retrieval.question import SearchOptions
from langshift.wording import join_words, pluralize


class CollectionFormat(NamedTuple):
    """A format as ``dataset convert`` knows it.

    Attributes:
        read: reads it, given SOURCE, languages, and the values of ``options`` by their names.
        source: what SOURCE is, for the help.
        options: those of the command that only some formats know.
        pivot: the language of the questions where ``--pivot`` is not given; None takes those in all languages.
        reads_pivots: whether ``read`` takes the languages of ``--pivot``, too, as ``pivots``.
    """

    read: Callable[..., PoolSource]
    source: str
    options: Sequence[Option] = ()
    pivot: str | None = "en"
    reads_pivots: bool = False

    @property
    def help(self) -> str:
        """What the help of the command says of it."""
        return self.source if self.pivot is None else f"{self.source}; --pivot {self.pivot}"


#: Which part of a collection is read.
SPLIT = Option(["--split"], metavar="NAME", help="Which split to read, where there are several.")
_TO = Option(
    ["--to"],
    type=click.Choice(["srw"]),
    metavar="TOOL",
    help="Of beir: write queries and judgements for another tool, srw, and no dataset folder.",
)

_OWN = {
    "beir": CollectionFormat(
        read_beir,
        "corpus.jsonl, queries.jsonl (or .gz) and qrels/test.tsv; or Parquet, as on the Hugging Face Hub; --split test",
        (SPLIT, _TO),
        None,
    ),
    "srw": CollectionFormat(
        read_srw,
        "corpus.jsonl, judgments.csv (or .json) and query-set.ndjson of the Search Relevance Workbench",
        pivot=None,
    ),
    "ubi": CollectionFormat(
        read_ubi, "corpus.jsonl, ubi_queries.ndjson and ubi_events.ndjson: clicks become weak judgements", pivot=None
    ),
}


def formats() -> dict[str, CollectionFormat]:
    """Name -> format, by the alphabet, of all that is installed."""
    added = {name: entry.load() for name, entry in extensions.found(extensions.FORMATS).items()}
    return dict(sorted((added | _OWN).items()))


def open_format(name: str) -> CollectionFormat:
    """The format of that name.

    Raises:
        UsageError: it belongs to langshift-lab, which is not installed.
        BadParameter: there is none of that name.
    """
    known: CollectionFormat | None = _OWN.get(name) or extensions.load(
        extensions.FORMATS, name, f"langshift dataset convert {name}"
    )
    if known is None:
        raise click.BadParameter(f"{name!r} is not one of {join_words([*formats()])}.", param_hint="FORMAT")
    return known


@click.group(cls=CommandGroup)
def dataset() -> None:
    """Create and check dataset folders: a corpus, queries, and which document answers which query.

    \b
    Example:
      langshift dataset convert ubi clicks judged
      langshift dataset check judged
      langshift dataset make news titles
    """


_NAMED = 10
_LEFT = {
    "passages": "passages without text",
    "queries": "questions without a relevant passage in the pool",
    "judgements": "judgements of passages that are not in SOURCE or not in the chosen languages",
}


class ConvertCommand(Command):
    """The command ``dataset convert``, with the options of all formats that are installed, and a list of these."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse a format that is not installed before an option of its own is taken for a slip."""
        if args and args[0] in extensions.LAB[extensions.FORMATS]:
            open_format(args[0])
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The command's own parameters, and those of the formats."""
        added = {of.name: of for one in formats().values() for of in one.options}
        *own, help_ = super().get_params(ctx)
        return [*own, *added.values(), help_]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the formats before them."""
        with formatter.section("Formats, with their SOURCE and defaults"):
            formatter.write_dl([(name, one.help) for name, one in formats().items()])
        super().format_options(ctx, formatter)


@dataset.command("convert", cls=ConvertCommand)
@click.argument("format_", metavar="FORMAT")
@click.argument("source", type=PATH)
@click.argument("out", type=PATH)
@option("--languages LIST", "Languages to pool, such as ar,de,en. [default: all in SOURCE]", callback=parse_list)
@option(
    "--pivot LIST",
    "The language of the questions; with several, each gets a set of its own in OUT/<language>. "
    "[default: as above, else all in SOURCE]",
    callback=parse_list,
)
@flag("--multilingual-queries", "Use the questions in every language, not only in --pivot.", dest="every")
@option(
    "--keep K",
    "Keep K translations of each passage, chosen by a hash of its group and languages.",
    click.IntRange(min=1),
)
@flag(
    "--no-language",
    "Leave languages out of corpus.jsonl, so that ingest detects them; languages.tsv keeps them for evaluation.",
)
@JSON
def convert(
    format_: str,
    source: Path,
    out: Path,
    languages: list[str] | None,
    pivot: list[str] | None,
    every: bool,
    keep: int | None,
    no_language: bool,
    as_json: bool,
    **own: Any,  # noqa: ANN401 - the options of some formats
) -> None:
    """Create the dataset folder OUT from SOURCE, which has one of the formats below.

    A passage's versions in all languages are relevant to its questions, where the collection is parallel.
    A dataset folder is of the format beir itself. With --to srw, its queries and judgements are written to OUT as
    judgments.csv and judgments.json, query-set.csv and query-set.ndjson of the Search Relevance Workbench.

    \b
    Example:
      langshift dataset convert beir scifact own --keep 2
      langshift dataset convert beir own workbench --to srw
    """
    known = open_format(format_)
    given = {name: value for name, value in own.items() if value}
    for name in given:
        if name not in {of.name for of in known.options}:
            knowing = [other for other, one in formats().items() if name in {of.name for of in one.options}]
            raise UsageError(f"--{name.replace('_', '-')} is for {join_words(knowing)}: leave it out with {format_}.")
    if given.pop("to", None):
        refuse_beside("--to", "languages", "pivot", "every", "keep", "no_language", "split")
        _write_srw(source, out, as_json=as_json)
        return
    if known.reads_pivots and languages and pivot:
        given["pivots"] = pivot
    pivots = pivot or (None if known.pivot is None else [known.pivot])
    choice = PoolOptions(None if every else pivots, keep, not no_language)
    with progress() as shown:
        task = shown.add_task("passages", total=None, rate="")
        read = partial(known.read, source, languages, **given)
        made = build(out, read, choice, lambda passages: shown.advance(task, passages))
    if as_json:
        emit_json(made[0].to_dict() if len(made) == 1 else {"sets": [one.to_dict() for one in made]})
        return
    for one in made:
        several = f" in {pluralize(len(one.languages), 'language')}" if one.languages else ""
        questions = f"{pluralize(one.queries, 'question')}{f' in {one.pivot}' if one.pivot else ''}"
        passages, judgements = pluralize(one.documents, "passage"), pluralize(one.judgements, "judgement")
        note(f"Wrote {one.folder}: {passages}{several}, {questions}, {judgements}.")
        for what, count in one.left_out.items():
            if count:
                note(f"Left out of {one.folder}: {count:,} {_LEFT[what]}.")
        if one.too_long:
            more = ", …" if len(one.too_long) > _NAMED else ""
            note(
                f"Left out of {one.folder}: {pluralize(len(one.too_long), 'question')} with too many words for a "
                f"lexical search ({', '.join(one.too_long[:_NAMED])}{more})."
            )


def _write_srw(folder: Path, out: Path, *, as_json: bool) -> None:
    lost = write_srw(load_dataset(folder), out)
    if as_json:
        emit_json({"folder": str(out), "lost": lost})
        return
    note(f"Wrote judgments.csv, judgments.json, query-set.csv and query-set.ndjson to {out}.")
    for sentence in lost:
        note(sentence)


@dataset.command("check")
@click.argument("folder", type=PATH)
@JSON
@click.pass_context
def check(context: click.Context, folder: Path, as_json: bool) -> None:
    """Find every problem in the dataset FOLDER, not only the first.

    The check finds duplicate ids, judgements without their document or query, queries without a
    relevant document or with too many words for a lexical search, empty texts, texts that are clearly
    in another language than the one given, and translation groups with several documents in one
    language. Exit code 1 if there is any problem. It also says how many queries are documents of the
    same id, which evaluations leave out of what is found for them.

    In the table, detected counts the texts long enough to detect their language, and mismatched those
    of them that are in another language.

    \b
    Example:
      langshift dataset check xquad8
    """
    with progress() as shown:
        task = shown.add_task("documents", total=None, rate="")
        checked = check_dataset(folder, open_detector(), lambda documents: shown.advance(task, documents))
    if as_json:
        emit_json(checked.to_dict())
    else:
        _print(checked)
    context.exit(0 if checked.clean else 1)


def _print(checked: DatasetCheck) -> None:
    rows = [
        [one.language or "(not given)", *map("{:,}".format, (one.documents, one.queries, one.heard, one.out_of_step))]
        for one in checked.languages
    ]
    columns = ["language", "documents", "queries", "detected", "mismatched"]
    table(None, columns, rows, right=set(columns[1:]))
    size = f"{checked.documents:,} documents, {checked.queries:,} queries, {checked.judgements:,} judgements"
    for remark in _same_ids(checked):
        line(remark)
    if checked.clean:
        out.print(f"Clean: {size}.", soft_wrap=True)
        return
    out.print()
    rows = []
    for one in checked.problems:
        first = [f"{one.problem}{f', not {one.language}' if one.language else ''}", one.file, f"{one.count:,}"]
        for number, example in enumerate([*one.examples, *(["..."] if one.count > len(one.examples) else [])]):
            rows.append([*(["", "", ""] if number else first), example])
    table("Problems", ["problem", "file", "count", "examples"], rows, right={"count"}, prose={"problem", "examples"})
    total = sum(one.count for one in checked.problems)
    out.print(f"{pluralize(total, 'problem')} in {checked.folder}: {size}.", soft_wrap=True)


def _same_ids(checked: DatasetCheck) -> list[str]:
    """Say how many queries have the id of a document, and what becomes of it."""
    remarks = describe_own_documents(checked.own_documents, checked.queries)
    if checked.same_ids:
        remarks.append(
            f"{checked.same_ids:,} of {checked.queries:,} queries have the id of a document that has another text or "
            "is judged relevant for them: it counts like any other."
        )
    return remarks


@dataset.command("make", cls=Command)
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

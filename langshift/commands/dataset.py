"""The group ``dataset``, and its commands ``convert`` and ``check``."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from langshift import extensions
from langshift.commands.make import make
from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.evaluate.convert.srw import read_srw, write_srw
from langshift.evaluate.convert.ubi import read_ubi
from langshift.evaluate.datasets.check import DatasetCheck, check_dataset
from langshift.evaluate.datasets.dataset import describe_own_documents, load_dataset
from langshift.output import emit_json, line, note, out, progress, table
from langshift.parameters import JSON, PATH, Command, CommandGroup, Option, flag, option, parse_list, refuse_beside
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


dataset.add_command(make)
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

"""The commands ``dataset convert`` and ``dataset check``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from langshift.debias.detector import open_detector
from langshift.evaluate.convert.beir import read_beir, read_posir
from langshift.evaluate.convert.multieup import read_multieup
from langshift.evaluate.convert.parallel import read_belebele, read_mlqa, read_xquad
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.evaluate.convert.trec import read_miracl, read_neuclir
from langshift.evaluate.datasets.check import DatasetCheck, check_dataset
from langshift.evaluate.datasets.dataset import describe_own_documents
from langshift.output import emit_json, line, note, out, progress, table
from langshift.parameters import JSON, PATH, CommandGroup, Decorator, flag, json_or_tables, option, parse_list
from langshift.wording import pluralize


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


_NAMED = 10
_LEFT = {
    "passages": "passages without text",
    "queries": "questions without a relevant passage in the pool",
    "judgements": "judgements of passages that are not in SOURCE or not in the chosen languages",
}


def run_convert(
    out: Path,
    read: Callable[[Sequence[str] | None], PoolSource],
    *,
    as_json: bool,
    pivot: Sequence[str] | None = None,
    every: bool = False,
    keep: int | None = None,
    by_article: bool = False,
    no_language: bool = False,
) -> None:
    """Make the pools, and say what was written.

    ``read`` is given the languages of the questions, None for all. One set is printed as one JSON object; several, as
    ``{"sets": [...]}``.
    """
    choice = PoolOptions(None if every else pivot, keep, by_article, not no_language)
    with progress() as shown:
        task = shown.add_task("passages", total=None, rate="")
        made = build(out, lambda: read(choice.pivots), choice, lambda passages: shown.advance(task, passages))
    if as_json:
        emit_json(made[0].to_dict() if len(made) == 1 else {"sets": [one.to_dict() for one in made]})
        return
    for one in made:
        languages = f" in {pluralize(len(one.languages), 'language')}" if one.languages else ""
        questions = f"{one.queries:,} questions{f' in {one.pivot}' if one.pivot else ''}"
        note(f"Wrote {one.folder}: {one.documents:,} passages{languages}, {questions}, {one.judgements:,} judgements.")
        for what, count in one.left_out.items():
            if count:
                note(f"Left out of {one.folder}: {count:,} {_LEFT[what]}.")
        if one.too_long:
            more = ", …" if len(one.too_long) > _NAMED else ""
            note(
                f"Left out of {one.folder}: {pluralize(len(one.too_long), 'question')} with too many words for a "
                f"lexical search ({', '.join(one.too_long[:_NAMED])}{more})."
            )


_LANGUAGES = option(
    "--languages LIST", "Languages to pool, such as ar,de,en. [default: all in SOURCE]", callback=parse_list
)
_PIVOT = option(
    "--pivot LIST",
    "The language of the questions; with several, each gets a set of its own in OUT/<language>.",
    default="en",
    callback=parse_list,
)
_EVERY = flag("--multilingual-queries", "Use the questions in every language, not only in --pivot.", dest="every")
_KEEP = option(
    "--keep K",
    "Keep K translations of each passage, chosen by a hash of its group and languages.",
    click.IntRange(min=1),
)
_ARTICLES = flag(
    "--split-by-article",
    "Write OUT/dev with the questions on every second article and OUT/test with the others.",
    dest="by_article",
)
_NO_LANGUAGE = flag(
    "--no-language",
    "Leave languages out of corpus.jsonl, so that ingest detects them; languages.tsv keeps them for evaluation.",
)


def _split(default: str, *names: str) -> Decorator:
    kind = click.Choice(names) if names else click.STRING
    return option("--split", "Which split to read.", kind, default=default)


def _options(*options: Decorator) -> Decorator:
    """SOURCE, OUT, the options in the order given, and --json."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for one in (JSON, *reversed(options), click.argument("out", type=PATH), click.argument("source", type=PATH)):
            command = one(command)
        return command

    return decorate


@click.group(cls=CommandGroup)
def dataset() -> None:
    """Create and check dataset folders: a corpus, queries, and which document answers which query.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift dataset check xquad8
    """


@dataset.group()
def convert() -> None:
    """Create a dataset folder from a published collection.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
    """


@convert.command("xquad")
@_options(
    _LANGUAGES,
    _PIVOT,
    _EVERY,
    _KEEP,
    flag("--articles", "Make a document of each article, not of each paragraph, and write evidence.tsv."),
    _ARTICLES,
    _NO_LANGUAGE,
)
def xquad(source: Path, out: Path, languages: list[str] | None, articles: bool, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the pooled multilingual set OUT from XQuAD's files in SOURCE.

    SOURCE contains en.json, de.json and so on, or xquad.en.json. The corpus contains every language's
    version of each paragraph, and all versions of a paragraph are relevant to its questions. With
    --articles documents are long: each is an article's paragraphs with blank lines between them, and
    evidence.tsv records where in it each question's answer is.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh --pivot en
      langshift dataset convert xquad XQUAD sources --pivot zh,vi,hi
      langshift dataset convert xquad XQUAD articles --languages en --articles
    """
    run_convert(out, lambda pivots: read_xquad(source, languages, pivots, articles=articles), **options)


@convert.command("mlqa")
@_options(_LANGUAGES, _PIVOT, _EVERY, _KEEP, _ARTICLES, _split("test", "test", "dev"), _NO_LANGUAGE)
def mlqa(source: Path, out: Path, languages: list[str] | None, split: str, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the pooled multilingual set OUT from MLQA's files in SOURCE.

    SOURCE is the unpacked MLQA_V1. A question exists in about four of seven languages, and its
    passages in all of them are relevant; the pool contains what exists in the questions' language.

    \b
    Example:
      langshift dataset convert mlqa MLQA_V1 mlqa-zh --pivot zh
    """
    run_convert(out, lambda pivots: read_mlqa(source, languages, pivots, split), **options)


@convert.command("belebele")
@_options(_LANGUAGES, _PIVOT, _EVERY, _KEEP, _ARTICLES, _NO_LANGUAGE)
def belebele(source: Path, out: Path, languages: list[str] | None, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the pooled multilingual set OUT from Belebele's files in SOURCE.

    SOURCE contains eng_Latn.jsonl and so on, or a folder data with them. Languages are named by
    FLORES-200 code or by tag: zh is zho_Hans; zho_Hant has to be named by its code.

    \b
    Example:
      langshift dataset convert belebele BELEBELE bele14 --languages ar,de,en,es,fr,hi,id,it,ja,nl,pt,ru,vi,zh
    """
    run_convert(out, lambda pivots: read_belebele(source, languages, pivots), **options)


@convert.command("miracl")
@_options(_LANGUAGES, _split("dev", "dev", "train"), _NO_LANGUAGE)
def miracl(source: Path, out: Path, languages: list[str] | None, split: str, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the set OUT from MIRACL's topics, judgements and corpora in SOURCE.

    SOURCE contains miracl-v1.0-sw and miracl-corpus-v1.0-sw and so on. Passages were judged only for
    questions in their own language; OUT records this, and measures across languages are refused.

    \b
    Example:
      langshift dataset convert miracl MIRACL miracl-sw --languages sw
    """
    run_convert(out, lambda _: read_miracl(source, languages, split), every=True, **options)


@convert.command("posir")
@_options(
    _LANGUAGES,
    _PIVOT,
    _EVERY,
    _KEEP,
    option("--domains LIST", "Domains to pool. [default: all]", callback=parse_list),
    _NO_LANGUAGE,
)
def posir(source: Path, out: Path, languages: list[str] | None, domains: list[str] | None, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the pooled multilingual set OUT from PosIR's folders in SOURCE.

    SOURCE contains eng-Latn/Law/corpus.parquet and so on. The file evidence.tsv records where in its
    document each question's evidence is, with the document's length.

    \b
    Example:
      langshift dataset convert posir PosIR-Benchmark-v1 posir-law --languages en,de --domains Law
    """
    run_convert(out, lambda pivots: read_posir(source, languages, pivots, domains), **options)


@convert.command("neuclir")
@_options(_LANGUAGES, _PIVOT, _EVERY, _NO_LANGUAGE)
def neuclir(source: Path, out: Path, languages: list[str] | None, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the set OUT from NeuCLIR's documents, topics and judgements in SOURCE.

    SOURCE contains zho/docs.jsonl (or data/zho-00000-of-00001.jsonl.gz), fas and rus, topics in
    *topics*.jsonl, and TREC judgements in *qrels*. --languages are the languages of the documents.

    \b
    Example:
      langshift dataset convert neuclir NEUCLIR neuclir-2 --languages zh,ru --pivot en
    """
    run_convert(out, lambda _: read_neuclir(source, languages), **options)


@convert.command("multieup")
@_options(_LANGUAGES, _PIVOT, _EVERY, _ARTICLES, _NO_LANGUAGE)
def multieup(source: Path, out: Path, languages: list[str] | None, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the set OUT from MultiEuP v2: SOURCE is its file, or a folder that contains it.

    The file is clean_all_with_did_qid.MEP.csv. A debate's title is a query, and every speech in
    that debate is relevant, whatever its language. For --split-by-article, a debate is an article.

    \b
    Example:
      langshift dataset convert multieup MULTIEUP eup6 --languages de,en,es,fr,it,pt
    """
    run_convert(out, lambda pivots: read_multieup(source, languages, pivots), **options)


@convert.command("beir")
@_options(
    _LANGUAGES,
    option("--pivot LIST", "The language of the queries. [default: all]", callback=parse_list),
    _KEEP,
    _ARTICLES,
    _split("test"),
    _NO_LANGUAGE,
)
def beir(source: Path, out: Path, languages: list[str] | None, split: str, **options: Any) -> None:  # noqa: ANN401 - the shared options
    """Create the set OUT from any folder in BEIR's layout, SOURCE.

    SOURCE contains corpus.jsonl, queries.jsonl (or .gz) and qrels/test.tsv. --languages, --pivot,
    --keep and --split-by-article need lines that name their language, group and article.

    \b
    Example:
      langshift dataset convert beir scifact scifact-set
      langshift dataset convert beir xquad8 xquad8-two --keep 2
    """
    run_convert(out, lambda _: read_beir(source, languages, split), every=options["pivot"] is None, **options)


@dataset.command("check")
@click.argument("folder", type=PATH)
@json_or_tables
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

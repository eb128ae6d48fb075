"""The commands ``dataset convert``, ``dataset export`` and ``dataset check``, and the group with ``dataset make``."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from langshift.commands.constructing import make
from langshift.debias.detector import open_detector
from langshift.errors import UsageError
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.belebele import read_belebele
from langshift.evaluate.convert.miracl import read_miracl
from langshift.evaluate.convert.multieup import read_multieup
from langshift.evaluate.convert.neuclir import read_neuclir
from langshift.evaluate.convert.pool import PoolOptions, PoolSource, build
from langshift.evaluate.convert.posir import read_posir
from langshift.evaluate.convert.squad import read_mlqa, read_xquad
from langshift.evaluate.convert.srw import read_srw, write_srw
from langshift.evaluate.convert.ubi import read_ubi
from langshift.evaluate.datasets.check import DatasetCheck, check_dataset
from langshift.evaluate.datasets.dataset import describe_own_documents, load_dataset
from langshift.output import emit_json, line, note, out, progress, table
from langshift.parameters import JSON, PATH, CommandGroup, flag, option, parse_list
from langshift.wording import join_words, pluralize


@click.group(cls=CommandGroup)
def dataset() -> None:
    """Create and check dataset folders: a corpus, queries, and which document answers which query.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh
      langshift dataset check xquad8
    """


dataset.add_command(make)


_NAMED = 10
_LEFT = {
    "passages": "passages without text",
    "queries": "questions without a relevant passage in the pool",
    "judgements": "judgements of passages that are not in SOURCE or not in the chosen languages",
}


_FORMATS: dict[str, Callable[..., PoolSource]] = {
    "xquad": read_xquad,
    "mlqa": read_mlqa,
    "belebele": read_belebele,
    "miracl": read_miracl,
    "posir": read_posir,
    "neuclir": read_neuclir,
    "multieup": read_multieup,
    "beir": read_beir,
    "srw": read_srw,
    "ubi": read_ubi,
}
# Those whose questions are taken in all languages where --pivot is not given.
_EVERY_LANGUAGE = ("miracl", "beir", "srw", "ubi")
# What only some of them know; what the others cannot do is refused by what is in SOURCE.
_KNOWN_BY = {"split": ("mlqa", "miracl", "beir"), "articles": ("xquad",), "domains": ("posir",)}


@dataset.command()
@click.argument("format_", metavar="FORMAT", type=click.Choice(list(_FORMATS)))
@click.argument("source", type=PATH)
@click.argument("out", type=PATH)
@option("--languages LIST", "Languages to pool, such as ar,de,en. [default: all in SOURCE]", callback=parse_list)
@option(
    "--pivot LIST",
    "The language of the questions; with several, each gets a set of its own in OUT/<language>. "
    "[default: en; of miracl, beir, srw and ubi: all]",
    callback=parse_list,
)
@flag("--multilingual-queries", "Use the questions in every language, not only in --pivot.", dest="every")
@option(
    "--keep K",
    "Keep K translations of each passage, chosen by a hash of its group and languages.",
    click.IntRange(min=1),
)
@flag(
    "--split-by-article",
    "Write OUT/dev with the questions on every second article and OUT/test with the others.",
    dest="by_article",
)
@flag(
    "--no-language",
    "Leave languages out of corpus.jsonl, so that ingest detects them; languages.tsv keeps them for evaluation.",
)
@option("--split NAME", "Which split to read, of mlqa, miracl and beir. [default: test; of miracl: dev]")
@flag("--articles", "Of xquad: a document is an article, not a paragraph, and evidence.tsv is written.")
@option("--domains LIST", "Of posir: domains to pool. [default: all]", callback=parse_list)
@JSON
def convert(
    format_: str,
    source: Path,
    out: Path,
    languages: list[str] | None,
    pivot: list[str] | None,
    every: bool,
    keep: int | None,
    by_article: bool,
    no_language: bool,
    as_json: bool,
    **own: Any,  # noqa: ANN401 - the options of some formats
) -> None:
    """Create the dataset folder OUT from SOURCE, a published collection of one of these formats.

    \b
    FORMAT    SOURCE
    xquad     en.json, de.json and so on, or xquad.en.json
    mlqa      the unpacked MLQA_V1
    belebele  eng_Latn.jsonl and so on, or a folder data with them; zh is zho_Hans
    miracl    miracl-v1.0-sw, miracl-corpus-v1.0-sw and so on, judged in each language alone
    posir     eng-Latn/Law/corpus.parquet and so on; evidence.tsv is written; --pivot may be outside --languages
    neuclir   zho/docs.jsonl (or data/zho-00000-of-00001.jsonl.gz), fas, rus; *topics*.jsonl, *qrels*
    multieup  clean_all_with_did_qid.MEP.csv, or a folder with it: titles find their debates' speeches
    beir      corpus.jsonl, queries.jsonl (or .gz) and qrels/test.tsv; or Parquet, as on the Hugging Face Hub
    srw       corpus.jsonl, judgments.csv (or .json) and query-set.ndjson of the Search Relevance Workbench
    ubi       corpus.jsonl, ubi_queries.ndjson and ubi_events.ndjson: clicks become weak judgements

    A passage's versions in all languages are relevant to its questions, where the collection is parallel.

    \b
    Example:
      langshift dataset convert xquad XQUAD xquad8 --languages ar,de,en,es,ru,th,tr,zh --pivot en
      langshift dataset convert xquad XQUAD sources --pivot zh,vi,hi
      langshift dataset convert beir xquad8 xquad8-two --keep 2
    """
    given = {name: value for name, value in own.items() if value}
    for name in given:
        if format_ not in _KNOWN_BY[name]:
            raise UsageError(f"--{name} is for {join_words(_KNOWN_BY[name])}: leave it out with {format_}.")
    # PosIR's questions in any language are translations of one another, whichever documents are pooled.
    if format_ == "posir" and languages and pivot:
        given["pivots"] = pivot
    pivots = pivot or (None if format_ in _EVERY_LANGUAGE else ["en"])
    choice = PoolOptions(None if every else pivots, keep, by_article, not no_language)
    with progress() as shown:
        task = shown.add_task("passages", total=None, rate="")
        read = partial(_FORMATS[format_], source, languages, **given)
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


@dataset.command("export")
@click.argument("format_", metavar="FORMAT", type=click.Choice(["srw"]))
@click.argument("folder", metavar="DATASET", type=PATH)
@click.argument("out", type=PATH)
@JSON
def export(format_: str, folder: Path, out: Path, as_json: bool) -> None:  # noqa: ARG001 - there is one format
    """Write the queries and judgements of DATASET to the folder OUT, as another tool takes them.

    FORMAT is srw, the Search Relevance Workbench: judgments.csv and judgments.json, query-set.csv and
    query-set.ndjson. `langshift dataset convert srw` reads them back.

    \b
    Example:
      langshift dataset export srw judged workbench
    """
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

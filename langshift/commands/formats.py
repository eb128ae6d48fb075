"""The formats that ``dataset convert`` reads: langshift's own, and those that other distributions add."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import click

from langshift import extensions
from langshift.evaluate.convert.beir import read_beir
from langshift.evaluate.convert.pool import PoolSource
from langshift.evaluate.convert.srw import read_srw
from langshift.evaluate.convert.ubi import read_ubi
from langshift.parameters import Option
from langshift.wording import join_words


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

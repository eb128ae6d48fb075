"""What ``langshift ingest`` does and prints."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out, table
from langshift.debias.encoders import Brought, is_given
from langshift.errors import ClusterError, UsageError
from langshift.ingest.bulk.place import LoadPlace
from langshift.ingest.documents import Embeddings
from langshift.ingest.load import load_source
from langshift.ingest.making_options import MakingOptions
from langshift.ingest.opened_load import LoadOptions
from langshift.ingest.remarks import last_line, moved_in_words, unfinished_versions
from langshift.ingest.shown_load import ShownLoad, tell_end
from langshift.ingest.source import open_source
from langshift.ingest.summary import STAGES, Summary, unwatched
from langshift.plugin.versions import check_name, live
from langshift.settings import Settings
from langshift.terminated import terminated_like_interrupted

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """The command's options.

    Attributes:
        corpus: a file, or ``-`` for standard input.
        name: the index.
        making: how documents are made.
        load: how the load is done.
        as_json: whether to print JSON.
    """

    corpus: str
    name: str
    making: MakingOptions
    load: LoadOptions
    as_json: bool


def run(options: Options) -> int:
    """Check what was given before anything is started; then load and tell.

    Returns:
        The exit code: 0, or 3 where documents went to dead letters.
    """
    name = options.name
    check_name(name)
    # Vectors that come with the corpus are known when it is read, everything else before.
    making = None if is_given(options.making.encoder) else options.making.open(None)
    embeddings: Embeddings = "refused" if making else "needed"
    with ExitStack() as stack:
        stack.enter_context(terminated_like_interrupted())
        source = stack.enter_context(open_source(options.corpus, embeddings=embeddings))
        if not source.resumable:
            _tell_that_it_cannot_be_resumed(source.shown, options.load)
        making = making or options.making.open(source.brought or _held(name))
        client = open_cluster()
        for sentence in unfinished_versions(client, name):
            note(sentence)
        place = LoadPlace.of(Settings.from_env().home, client, name)
        watch = stack.enter_context(ShownLoad(options.corpus, options.making, place))
        summary = load_source(client, source, name, making, unwatched, options.load, watch)
        last = last_line(summary)
        _log.info("%s", last)
    if options.as_json:
        emit_json(summary.to_dict())
    else:
        _print(summary)
    return tell_end(summary, making, last, as_json=options.as_json)


def _tell_that_it_cannot_be_resumed(shown: str, load: LoadOptions) -> None:
    """Say so at the start, while there is still a choice.

    Raises:
        UsageError: it is to be resumed.
    """
    told = f"{shown[:1].upper()}{shown[1:]} cannot be resumed"
    if load.resume:
        raise UsageError(f"{told}: give a file, or leave --resume out.")
    note(f"{told}: should this load be cut off, it has to begin again; a file can be gone on with.")


def _held(name: str) -> Brought | None:
    """What vectors an index holds, for a corpus that brings none since it only deletes; None without an index."""
    try:
        made = live(open_cluster(), name).fingerprint
    except ClusterError:
        return None
    return Brought(made.dimension, made.normalised)


def _print(summary: Summary) -> None:
    rows = [[tag, f"{count:,}"] for tag, count in summary.languages.most_common()]
    table(None, ["language", "documents"], rows, right={"documents"})
    # Of this run: what earlier ones did took no time in it.
    if (documents := min(summary.documents, summary.lines - summary.resumed)) > 0 and summary.seconds["encode"]:
        timed = [(stage, max(summary.seconds[stage], 1e-9)) for stage in STAGES if stage != "read"]
        rates = ", ".join(f"{stage} {documents / seconds:,.0f}/s" for stage, seconds in timed)
        out.print(f"Speed of each stage: {rates}.", soft_wrap=True)
    out.print(
        f"Indexed {counted(summary.documents, 'document')} into {summary.name} ({summary.index}), "
        f"{summary.shifted:,} of them {moved_in_words(summary.made)}.",
        soft_wrap=True,
    )

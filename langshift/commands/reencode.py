"""The command ``reencode``."""

from typing import Any

import click

from langshift import output
from langshift.client import open_cluster
from langshift.commands.load_calibration import NO_CALIBRATION, calibrate_loaded, known
from langshift.commands.pipeline_options import make_pipeline_options
from langshift.commands.transfer_display import TransferReporter, counted, note_aliases_left, replaced
from langshift.debias.fingerprint import scales_in_words
from langshift.errors import UsageError
from langshift.ingest import reencode as reencoding
from langshift.ingest.config import PipelineOptions
from langshift.ingest.publication import MAX_REFUSED
from langshift.ingest.reencode import ReencodeResult
from langshift.parameters import (
    ALPHA,
    GAMMA,
    JSON,
    OWN,
    PATIENCE,
    READING,
    SHARE,
    SPARSE,
    TOKENS,
    VECTORS,
    Command,
    option,
    option_group,
)
from langshift.wording import join_words


def _make_wanted(encoder: str | None, **values: Any) -> PipelineOptions:  # noqa: ANN401 - what click has checked
    wanted = make_pipeline_options(encoder=encoder or "", **values)
    if encoder is None:
        if wanted.sparse is None and wanted.tokens is None:
            raise UsageError("There is nothing to encode: give --encoder, --sparse or --tokens.")
        if wanted != PipelineOptions("", sparse=wanted.sparse, tokens=wanted.tokens):
            raise UsageError(
                "Without --encoder, vectors stay as they are: name it to have them made otherwise, or change their "
                "shift alone with `langshift retune`."
            )
    return wanted


@click.command(cls=Command)
@click.argument("name")
@option_group(
    "wanted",
    _make_wanted,
    option("--encoder NAME", "The new encoder: e5-small, use-m, st:NAME_OR_PATH or http:URL. [default: the index's]"),
    *(SPARSE, TOKENS, *READING, VECTORS, ALPHA, GAMMA, OWN),
)
@option(
    "--max-refused SHARE", "Replace nothing if more documents lose their vector.", SHARE, default=MAX_REFUSED, rare=True
)
@NO_CALIBRATION
@PATIENCE
@JSON
def reencode(
    name: str, wanted: PipelineOptions, max_refused: float, no_calibration: bool, patience: float, as_json: bool
) -> None:
    """Encode the texts of the index NAME again, with another encoder.

    A new version is created from the texts in the live one, checked, and put in its place. Everything but the
    vectors stays as it is; so do they without --encoder. Writes that arrive in the meantime are carried over; searches
    are not affected. The old version is kept for `langshift rollback NAME`. If the command
    ends early, the old version stays live: run the same command again, and it encodes only what is still missing.

    \b
    Example:
      langshift reencode news --encoder st:intfloat/multilingual-e5-large
      langshift reencode news --sparse e5-small
    """
    client = open_cluster()
    try:
        with output.progress() as bars:
            watch = TransferReporter(bars).update
            made = reencoding.reencode(client, name, wanted, max_refused=max_refused, patience=patience, watch=watch)
        made = made._replace(done=counted(client, made.done))
    except KeyboardInterrupt:
        output.note(f"{name} stays available; run the same command to resume where this one stopped.")
        raise
    if as_json:
        output.emit_json({**made.done.to_dict(), "without_vector": made.without_vector})
    (output.note if as_json else output.line)(reencoded(made))
    for sentence in made.notes:
        output.note(sentence)
    if made.done.changed:
        note_aliases_left(client, made.done.before)
        before = known(client, made.done.before)
        calibrate_loaded(client, name, before, wanted.encoder, needless=no_calibration, as_json=as_json)


def reencoded(made: ReencodeResult) -> str:
    """What a reencode did, in a sentence."""
    done = made.done
    asked = done.requested or {}
    kept = join_words(made.beside)
    if not done.changed:
        encoded = f"is already encoded with {asked['encoder']}, with the same shift"
        return f"{done.name} ({done.index}) {f'already keeps {kept}' if kept else encoded}: nothing was changed."
    without = f" ({made.without_vector:,} without a vector)" if made.without_vector else ""
    scales = scales_in_words(asked["alpha"], {}, asked.get("gamma", 0.0), asked.get("own", 0.0))
    encoded = f", encoded with {asked['encoder']} and {scales}" if made.encoded else ""
    return replaced(done, f"{encoded}{f', with {kept}' if kept else ''}", without)

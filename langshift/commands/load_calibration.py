"""The calibration at the end of a load, where none holds: it never fails the load, which is live by then."""

from time import monotonic
from typing import Final

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.commands.anchors import calibrate_index, reason
from langshift.debias.encoders.base import Encoder, is_given
from langshift.errors import LangshiftError, UnavailableError
from langshift.output import line, note
from langshift.parameters import option
from langshift.plugin.versions import FEWEST_CALIBRATED, IndexInfo, live
from langshift.retrieval.calibration.calibrate import SAMPLE
from langshift.retrieval.calibration.stored import resolve_auto
from langshift.retrieval.question import SearchOptions
from langshift.server_errors import failure
from langshift.settings import Settings

# Seconds: nobody may be there to interrupt what a slow server would take hours over.
_LONGEST: Final = 600.0

NO_CALIBRATION = option(
    "--no-calibration",
    "Do not calibrate the index at the end.",
    is_flag=True,
    envvar="LANGSHIFT_NO_CALIBRATION",
    rare=True,
)


def known(client: OpenSearch, name: str) -> IndexInfo | None:
    """What stands behind a name; None where nothing does, or nobody can tell."""
    try:
        return live(client, name)
    except (LangshiftError, OpenSearchException):
        return None


def calibrate_loaded(
    client: OpenSearch,
    name: str,
    before: IndexInfo | None,
    encoder: str,
    opened: Encoder | None = None,
    *,
    needless: bool,
    as_json: bool,
) -> None:
    """Calibrate an index where no calibration holds, and say what was found, or in a sentence why nothing was.

    Args:
        client: the cluster.
        name: the alias.
        before: what stood behind it before the load; None where nothing did.
        encoder: the encoder as it was named; empty where the index alone names it.
        opened: the same, where it is open.
        needless: whether nobody wants it.
        as_json: whether standard output holds JSON, and nothing else.
    """
    if needless:
        return
    mode: str = "dense"
    try:
        index = live(client, name)
        choice = resolve_auto(index)
        mode = choice.setting.mode
        if choice.origin == "default":
            if not index.calibratable:
                # Of one that a load has only changed, it was told when it was made.
                if before is None or before.index != index.index:
                    note(f"{_uncalibrated(name)}: {_why_not(index)}.")
            else:
                mode = _calibrate(client, index, encoder, opened, as_json=as_json)
    except KeyboardInterrupt:
        note(f"{name} is complete, but not calibrated, so mode auto is dense: `langshift anchors calibrate {name}`.")
        raise
    except Exception as error:  # whatever it is, the load is done
        note(f"{_uncalibrated(name)}; `langshift anchors calibrate {name}` tries again: {_in_words(error)}")
    if before is not None and (was := resolve_auto(before).setting.mode) != mode:
        note(f"Searches of {name} in mode auto change from {was} to {mode}.")


def _calibrate(client: OpenSearch, index: IndexInfo, encoder: str, opened: Encoder | None, *, as_json: bool) -> str:
    """The mode that the index is searched best in, once that is told."""
    latest = monotonic() + _LONGEST

    def on_progress() -> None:
        if monotonic() > latest:
            raise UnavailableError(f"It was not done after {_LONGEST / 60:.0f} minutes.")

    search, there = SearchOptions(encoder=encoder or None), {} if opened is None else {encoder: opened}
    found = calibrate_index(client, index, SAMPLE, search, opened=there, on_progress=on_progress)
    (note if as_json else line)(f"{index.index}: mode auto is {found.mode}. {reason(found)}")
    return found.mode


def _uncalibrated(name: str) -> str:
    return f"{name} is not calibrated, so mode auto is dense"


def _why_not(index: IndexInfo) -> str:
    if is_given(index.fingerprint.encoder):
        return "its vectors were given, and a calibration has to encode queries"
    return f"a calibration takes {FEWEST_CALIBRATED} documents or more, in two languages or more"


def _in_words(error: Exception) -> str:
    if isinstance(error, OpenSearchException):
        error = failure(error, Settings.from_env().url)
    if isinstance(error, LangshiftError):
        return error.sentence
    return f"An unexpected error occurred ({type(error).__name__}: {' '.join(str(error).split())})."

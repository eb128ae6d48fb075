"""The options of commands that make documents' vectors, or replace one version by another."""

import math
from typing import Any

from langshift.debias.encoders.base import READING_NAMES, Reading
from langshift.errors import UsageError
from langshift.ingest import publication
from langshift.ingest.config import LEAST_CONFIDENCE, PipelineOptions
from langshift.parameters import ALPHA, GAMMA, OWN, READING, SHARE, VECTORS, Decorator, option, option_group, parse_list

_LANGUAGES = option(
    "--languages L,...",
    "Detect only these languages. [default: all]",
    callback=lambda context, parameter, given: parse_list(context, parameter, given, "en,fr,ms") or [],
)


LID_MODEL = option("--lid-model FILE", "Another fastText model that detects languages.", rare=True)
_MIN_CONFIDENCE = option(
    "--min-confidence P",
    "Shift only by languages this certain.",
    SHARE,
    dest="least_confidence",
    default=LEAST_CONFIDENCE,
    rare=True,
)


#: How an encoder reads texts; a command is given it as ``reading``.
reading_options = option_group("reading", Reading, *READING)


def make_pipeline_options(**values: Any) -> PipelineOptions:  # noqa: ANN401 - what click has checked
    """How documents are made, from the values of options by their names, all those of ``READING`` among them."""
    reading = Reading(**{name: values.pop(name) for name in READING_NAMES})
    return PipelineOptions(**values, reading=reading)


def pipeline_options(encoder: Decorator, *beside: Decorator) -> Decorator:
    """The options of a command that makes documents' vectors; it is given them as ``pipeline``.

    Args:
        encoder: the option that names the encoder.
        beside: those for what is made of texts beside their vectors.
    """
    usual = (encoder, *READING, *beside, VECTORS, ALPHA, GAMMA, OWN)
    return option_group("pipeline", make_pipeline_options, *usual, _LANGUAGES, LID_MODEL, _MIN_CONFIDENCE)


MAX_REFUSED = option(
    "--max-refused SHARE", "Replace only if no more is refused.", SHARE, default=publication.MAX_REFUSED, rare=True
)


def weighted_field(given_as: str, given: str) -> tuple[str, float]:
    """A field and its weight in a word search, of ``FIELD`` or ``FIELD^WEIGHT``.

    Args:
        given_as: the option, for messages.
        given: what it was given.

    Raises:
        UsageError: the weight is not a number above 0.
    """
    name, caret, weight = given.rpartition("^")
    if not caret:
        return given, 1.0
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not (name and number > 0 and math.isfinite(number)):
        raise UsageError(f"{given_as} {given}: the weight after ^ must be a number above 0, as in {name or 'body'}^2.")
    return name, number

"""In what shape a load has made its version, for a run that goes on with it."""

from __future__ import annotations

from langshift.errors import UsageError
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.place import LoadPlace
from langshift.plugin.engine import LUCENE
from langshift.plugin.merged_template import USUAL_SHAPE, Shape


def noted(shape: Shape) -> dict[str, str | None]:
    """What the journal keeps of it."""
    return {"template": shape.template.hash if shape.template else None, "engine": shape.engine or LUCENE}


def require_same_shape(journal: Journal, place: LoadPlace, shape: Shape) -> None:
    """Refuse to go on with a load whose version was made in another shape than the one that is given now.

    Args:
        journal: of the load that was cut off.
        place: its files.
        shape: what is given now; nothing need be given, as the version is there.

    Raises:
        UsageError: another was given.
    """
    begun, given = journal.fact("shape") or noted(USUAL_SHAPE), noted(shape)
    differing = [
        option
        for option, name, value in (("--template", "template", shape.template), ("--engine", "engine", shape.engine))
        if value is not None and begun[name] != given[name]
    ]
    if differing:
        told = " and ".join(differing)
        raise UsageError(
            f"The load into {place.name} that was cut off has made its version with another {told}: leave {told} out "
            f"to go on with it, or remove {place.journal} to give it up."
        )

"""The ingest pipeline of a version: it shifts the documents of any client by their language."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException, NotFoundError

from langshift.debias.debiaser import Debiaser
from langshift.debias.fingerprint import scales_in_words
from langshift.errors import UsageError
from langshift.normal_form import SPELLINGS
from langshift.plugin import metadata, shift_script
from langshift.plugin.index_body import asset, map_page, vectors_come_back_normalised
from langshift.plugin.metadata import FieldNames
from langshift.plugin.native_nodes import NAME
from langshift.plugin.stored_shift import StoredShift, of_debias
from langshift.plugin.versions import Target
from langshift.reporting import note
from langshift.settings import VERSION


def read_body(client: OpenSearch, name: str) -> dict[str, Any] | None:
    """The body of a pipeline; None where there is none of that name."""
    try:
        return dict(client.ingest.get_pipeline(id=name)[name])
    except (NotFoundError, KeyError):
        return None


def require_runnable(client: OpenSearch, first: str, name: str) -> None:
    """Refuse a pipeline that cannot run before the pipeline ``name``.

    Raises:
        UsageError: it does not exist, would run ``name`` in a circle, copies vectors that are shifted already, or
            shifts them itself.
    """
    if read_body(client, first) is None:
        raise UsageError(f"There is no ingest pipeline {first}: create it first, or give another name.")
    if name in reached(client, first):
        raise UsageError(f"The pipeline {first} runs {name}, which would run {first} in turn: remove {name} first.")
    for one in sorted(reached(client, first)):
        found = read_body(client, one)
        if has_native_step(found):
            raise UsageError(
                f"The pipeline {one} has the processor langshift of the OpenSearch plugin, which shifts vectors, so "
                "they would be shifted twice: leave it out."
            )
        # neural-search's processors take the vector of the document that is in the index for the new one then.
        if any(step.get("skip_existing") for step in _inner(found)):
            raise UsageError(
                f"The pipeline {one} has a processor with skip_existing, which copies vectors that are already "
                "shifted, so they would be shifted twice: set skip_existing to false first."
            )


def reached(client: OpenSearch, first: str) -> set[str]:
    """All pipelines that run when one does, with itself."""
    met: set[str] = set()
    todo = [first]
    while todo:
        one = todo.pop()
        if one not in met:
            met.add(one)
            # However deep in it the processors are that run others.
            run = (step.get("pipeline") for step in _inner(read_body(client, one)))
            todo += [inner["name"] for inner in run if isinstance(inner, dict) and isinstance(inner.get("name"), str)]
    return met


def _inner(value: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - any JSON
    """All objects in a JSON value, itself first."""
    if isinstance(value, dict):
        yield value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _inner(part)


def has_native_step(body: dict[str, Any] | None) -> bool:
    """Whether a pipeline's body has the processor of the OpenSearch plugin, however deep."""
    return any(isinstance(step.get(NAME), dict) for step in _inner(body))


def native_step(body: dict[str, Any] | None) -> dict[str, Any] | None:
    """The processor of the OpenSearch plugin, where a pipeline's body has that alone; else None."""
    steps = [] if body is None or "on_failure" in body else body["processors"]
    alone = len(steps) == 1 and set(steps[0]) == {NAME} and set(steps[0][NAME]) <= {"pipeline", "tag", "description"}
    return dict(steps[0][NAME]) if alone else None


# Tells a pipeline that was there before from one that was asked for with --after.
_WAS_DEFAULT = "the default pipeline before langshift's"
_BEFORE = "langshift_before"  # drop_stamp.painless names it too


class PrecedingPipeline(NamedTuple):
    """The pipeline that runs before the shift.

    Attributes:
        name: its name.
        was_default: whether it was the version's default pipeline before, and becomes that again by ``remove``.
    """

    name: str
    was_default: bool


def steps(first: PrecedingPipeline, fields: FieldNames) -> list[dict[str, Any]]:
    """The processors that run it, and remove the stamp of a document whose vector it has made."""
    *within, stamp = fields.stamp.split(".")
    params = {"vector": fields.vector.split("."), "within": within, "stamp": stamp}
    copied = {"source_field": fields.vector, "target_field": _BEFORE, "ignore_missing": True, "override_target": True}
    return [
        {"copy": copied},
        {"pipeline": {"name": first.name, **({"description": _WAS_DEFAULT} if first.was_default else {})}},
        # A vector that was made anew is raw, whatever the stamp says that came with the document.
        {"script": {"source": asset("drop_stamp.painless"), "params": params}},
    ]


def _text_steps(fields: FieldNames) -> list[dict[str, Any]]:
    """The processor that puts a document's texts into the form in which they are asked for."""
    # By numbers, since nobody sees most of them.
    params = {
        "texts": list(fields.text_fields),
        "spellings": {letters: list(map(ord, characters)) for letters, characters in SPELLINGS.items()},
    }
    return [{"script": {"source": asset("normal_form.painless"), "params": params}}]


def found_in(processors: list[dict[str, Any]]) -> PrecedingPipeline | None:
    """What runs before the shift, by the processors of a pipeline of langshift's."""
    runs = (step["pipeline"] for step in processors if "pipeline" in step)
    return next((PrecedingPipeline(one["name"], one.get("description") == _WAS_DEFAULT) for one in runs), None)


def name_for(index: str) -> str:
    """How the pipeline of a version is called."""
    return f"langshift-{index}"


def makes_units(client: OpenSearch, index: str, fields: FieldNames) -> bool:
    """Whether the encoder of an index makes vectors of norm 1, and an update has what was written, be it another."""
    normalised = metadata.read_metadata(client, index)[metadata.FINGERPRINT]["normalised"]
    return bool(normalised) and not vectors_come_back_normalised(client, index, fields.vector)


def body(
    index: str, shift: StoredShift, fields: FieldNames, first: PrecedingPipeline | None, *, unit: bool = False
) -> dict[str, Any]:
    """The body of ``PUT /_ingest/pipeline/langshift-<version>``.

    Args:
        index: the version.
        shift: how its documents are shifted.
        fields: the names of its fields.
        first: what runs before the shift.
        unit: as ``makes_units`` says.
    """
    # What runs before the shift may encode the texts, or make them.
    texts = _text_steps(fields)
    before = texts if first is None else [*texts, *steps(first, fields), *texts]
    # A document is taken as it is: nothing was done to it that would have to be taken back.
    params = shift_script.params(shift, shift, fields, pipeline=True, unit=unit)
    own = {"script": {"id": shift_script.script_id(), "params": params}}
    return {"description": _description(index, shift), "processors": [*before, own]}


def shift_steps(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The processors of a pipeline's body that shift; one of langshift's has one, and any other none."""
    processors = found.get("processors", [])
    return [step for step in processors if str(step.get("script", {}).get("id")).startswith(shift_script.PREFIX)]


def _description(index: str, shift: StoredShift) -> str:
    if shift.hash is None:
        how = "there are no language vectors, so nothing moves"
    else:
        how = f"{scales_in_words(shift.alpha, shift.alphas, shift.gamma, shift.own)}, language vectors {shift.hash}"
    return f"Shifts documents for {index} by their language: {how}. Made by langshift {VERSION}."


_SETTING = "default_pipeline"
# What an index says that has no pipeline.
_NONE = "_none"


class InstalledPipeline(NamedTuple):
    """The pipeline of a version, as the cluster has it.

    Attributes:
        name: its name.
        first: what runs before the shift; None where nothing does.
        body: the whole of it.
    """

    name: str
    first: PrecedingPipeline | None
    body: dict[str, Any]


def installed(client: OpenSearch, index: str) -> InstalledPipeline | None:
    """The pipeline through which documents for a version go; None where it is not langshift's.

    Raises:
        NotFoundError: there is no such index.
    """
    name = name_for(index)
    return read(client, name) if default(client, index) == name else None


def read(client: OpenSearch, name: str) -> InstalledPipeline | None:
    """A pipeline of langshift's; None where there is none of that name, or somebody else made it."""
    found = read_body(client, name)
    if found is None or not shift_steps(found):
        return None
    return InstalledPipeline(name, found_in(found["processors"]), found)


def install(
    client: OpenSearch, index: str, shift: StoredShift, fields: FieldNames, first: PrecedingPipeline | None
) -> Literal["installed", "updated", "unchanged"]:
    """Put the pipeline of a version, with its script, and make it the version's default.

    May be called again, also where it was cut off: what is there already stays.

    Args:
        client: the cluster.
        index: the version.
        shift: how its documents are shifted.
        fields: the names of its fields.
        first: what runs before the shift.

    Raises:
        UsageError: what is to run first does not exist, or runs this pipeline itself.
    """
    name = name_for(index)
    if first is not None:
        require_runnable(client, first.name, name)
    stored = shift_script.is_stored(client)
    if not stored:
        shift_script.install(client)
    map_page(client, index, fields)
    wanted = body(index, shift, fields, first, unit=makes_units(client, index, fields))
    before = installed(client, index)
    if before is not None and before.body == wanted:
        return "unchanged" if stored else "updated"
    client.ingest.put_pipeline(id=name, body=wanted)
    # Last, as the index must never name a pipeline that is not there: every write to it would fail.
    try:
        client.indices.put_settings(index=index, body={"index": {_SETTING: name}})
    except AuthorizationException:
        if before is None:
            forget(client, index)
        raise
    return "installed" if before is None else "updated"


def remove(client: OpenSearch, index: str) -> InstalledPipeline | None:
    """Take the pipeline of a version away, and put back the default pipeline that was there before.

    Returns:
        What was removed; None where there was nothing.

    Raises:
        NotFoundError: there is no such index.
    """
    found = installed(client, index)
    if found is not None:
        back = found.first.name if found.first and found.first.was_default else None
        client.indices.put_settings(index=index, body={"index": {_SETTING: back}})
    now = default(client, index)
    # Somebody may have put it into a pipeline of his own, which would fail without it.
    if now is None or name_for(index) not in reached(client, now):
        forget(client, index)
    return found


def forget(client: OpenSearch, index: str) -> None:
    """Delete the pipeline of a version that is gone or does not name it any more; one of its name may be another's."""
    if read(client, name_for(index)) is not None:
        client.ingest.delete_pipeline(id=name_for(index), params={"ignore": 404})


def forget_where_allowed(client: OpenSearch, index: str) -> bool:
    """As ``forget``; False where this user may not see pipelines, and one may be left, which does no harm."""
    try:
        forget(client, index)
    except AuthorizationException:
        return False
    return True


def default(client: OpenSearch, index: str) -> str | None:
    """The default pipeline of an index.

    Raises:
        NotFoundError: there is no such index.
    """
    found: str | None = metadata.read_settings(client, index).get(_SETTING)
    return None if found == _NONE else found


def inherit_pipeline(client: OpenSearch, before: str, version: str, shift: StoredShift, fields: FieldNames) -> bool:
    """Give a version a pipeline where another has one; of the plugin's processor, which suits any index, the same one.

    May be called again, also where it was cut off.

    Args:
        client: the cluster.
        before: the version that documents go to now.
        version: the one that is to take its place.
        shift: how documents of that are shifted.
        fields: the names of its fields.

    Returns:
        Whether the other has one.

    Raises:
        UsageError: what runs before the shift does not exist any more.
    """
    now = default(client, before)
    if now is not None and native_step(read_body(client, now)) is not None:
        client.indices.put_settings(index=version, body={"index": {_SETTING: now}})
        return True
    there = read(client, now) if now is not None and now == name_for(before) else None
    if there is not None:
        install(client, version, shift, fields, there.first)
    return there is not None


def inherit_pipeline_on_load(client: OpenSearch, live: str, target: Target, debias: Debiaser) -> None:
    """Give a version that a load has made a pipeline where the live version has one, and say so.

    Args:
        client: the cluster.
        live: the live version.
        target: the version that the load has made, which is not live yet.
        debias: how the load moves documents.
    """
    version = target.index
    # Somebody may have deleted one of them, which stops the load where the alias is to change.
    with suppress(NotFoundError):
        if inherit_pipeline(client, live, version, of_debias(debias), target.fields):
            note(f"{version} shifts what other clients write, as {live} did.")


def first_of(client: OpenSearch, index: str, after: str | None) -> PrecedingPipeline | None:
    """Return what is to run before the shift: what runs before it already, or is the default pipeline now, stays.

    Args:
        client: the cluster.
        index: the version.
        after: the pipeline that is asked for; None for none.

    Raises:
        UsageError: the default pipeline would no longer run first.
    """
    now = default(client, index)
    first = None if now is None else _first_in(client, now)
    if after is None or (first is not None and first.name == after):
        return first
    if first is not None and first.was_default:
        raise UsageError(
            f"{index} has the default pipeline {first.name}, which continues to run first: add {after} to it, "
            "or leave --after out."
        )
    return PrecedingPipeline(after, was_default=False)


def _first_in(client: OpenSearch, now: str) -> PrecedingPipeline | None:
    """What runs before the shift where this is the default pipeline: itself, unless it shifts and is to be replaced."""
    found = read_body(client, now)
    # The pipeline of another version would only shift before this one does.
    if found is not None and shift_steps(found):
        return found_in(found["processors"])
    if (step := native_step(found)) is not None:
        return PrecedingPipeline(step["pipeline"], was_default=False) if "pipeline" in step else None
    return PrecedingPipeline(now, was_default=True)

"""The ingest pipeline of a version: it shifts the documents of any client by their language."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException

from langshift.plugin import index_settings
from langshift.plugin import script as shift_script
from langshift.plugin.body import body, name_for, shift_step
from langshift.plugin.chain import reached, read_body, require_runnable
from langshift.plugin.fields import Fields
from langshift.plugin.first import First, found_in
from langshift.plugin.shift_index_shift import IndexShift
from langshift.plugin.versions import read_fingerprint

__all__ = [
    "First",
    "Installed",
    "body",
    "default",
    "forget",
    "forget_where_allowed",
    "install",
    "installed",
    "is_current",
    "name_for",
    "read",
    "remove",
]

_SETTING = "default_pipeline"
# What an index says that has no pipeline.
_NONE = "_none"


class Installed(NamedTuple):
    """The pipeline of a version, as the cluster has it.

    Attributes:
        name: its name.
        first: what runs before the shift; None where nothing does.
        body: the whole of it.
    """

    name: str
    first: First | None
    body: dict[str, Any]

    @property
    def shift_step(self) -> dict[str, Any]:
        """The processor that shifts."""
        step = shift_step(self.body)
        assert step is not None  # noqa: S101
        return step


def installed(client: OpenSearch, index: str) -> Installed | None:
    """The pipeline through which documents for a version go; None where it is not langshift's.

    Raises:
        NotFoundError: there is no such index.
    """
    name = name_for(index)
    return read(client, name) if default(client, index) == name else None


def read(client: OpenSearch, name: str) -> Installed | None:
    """A pipeline of langshift's; None where there is none of that name, or somebody else made it."""
    found = read_body(client, name)
    if found is None or shift_step(found) is None:
        return None
    return Installed(name, found_in(found["processors"]), found)


def is_current(client: OpenSearch, index: str, shift: IndexShift, fields: Fields, found: Installed) -> bool:
    """Whether an installed pipeline is what ``install`` would put now."""
    return found.body == _wanted(client, index, shift, fields, found.first)


def install(
    client: OpenSearch, index: str, shift: IndexShift, fields: Fields, first: First | None
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
    wanted = _wanted(client, index, shift, fields, first)
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


def remove(client: OpenSearch, index: str) -> Installed | None:
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
    found: str | None = index_settings.read(client, index).get(_SETTING)
    return None if found == _NONE else found


def _wanted(client: OpenSearch, index: str, shift: IndexShift, fields: Fields, first: First | None) -> dict[str, Any]:
    soft = read_fingerprint(client, index).soft
    return body(index, shift, fields, first, shift_script.script_id(), soft=soft)

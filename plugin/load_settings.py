"""Settings that make a load faster, and how they go back whatever becomes of the load.

What they were is kept in the index itself, with the mark of an unfinished version: the next run finds it there,
also on another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.plugin import meta

_QUICK = {"refresh_interval": "-1"}
# The nodes would expand the replicas again if they were only set to 0.
_FAST = {**_QUICK, "auto_expand_replicas": "false", "number_of_replicas": "0"}


def quickened(settings: dict[str, Any], fast: bool, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Set the load's settings in those of an index that is about to be made.

    Args:
        settings: the ``index`` part of its settings; changed in place.
        fast: whether to do without replicas too.
        more: further settings for the time of the load.

    Returns:
        What to note with the unfinished version, for ``restore``.
    """
    wanted = {**_wanted(fast), **more}
    before = {name: settings.get(name) for name in wanted}
    settings.update(wanted)
    return {"restore": before}


def quicken(client: OpenSearch, index: str, fast: bool, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Set the load's settings in an unfinished version; those of an earlier run that are not wanted go back.

    Args:
        client: the cluster.
        index: the version.
        fast: whether to do without replicas too.
        more: further settings for the time of the load.
    """
    wanted = {**_wanted(fast), **more}
    noted = meta.unfinished(client, index) or {}
    now = client.indices.get_settings(index=index, params={"flat_settings": "true"})[index]["settings"]
    before = {name: now.get(f"index.{name}") for name in wanted} | noted.get("restore", {})
    # Noted first: a run that is killed between the two leaves something that can be restored.
    meta.note_unfinished(client, index, {**noted, "restore": before})
    client.indices.put_settings(index=index, body={"index": {**before, **wanted}})


def restore(client: OpenSearch, index: str) -> None:
    """Put back what a load has changed in an unfinished version; it stays unfinished.

    May be called at any time and any number of times: nothing happens where nothing was changed, and where the index
    is gone.
    """
    try:
        noted = meta.unfinished(client, index)
        if noted and noted.get("restore"):
            client.indices.put_settings(index=index, body={"index": noted["restore"]})
            meta.note_unfinished(client, index, {**noted, "restore": {}})
    except NotFoundError:
        return


def _wanted(fast: bool) -> dict[str, str]:
    return _FAST if fast else _QUICK

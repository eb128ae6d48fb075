"""The version before the live one made live again, with what was written since a retune."""

from __future__ import annotations

from dataclasses import replace

from opensearchpy import OpenSearch

from langshift.plugin import index_shift, meta
from langshift.plugin.following import follow
from langshift.plugin.retunable import require_copied_from_primaries
from langshift.plugin.transfer import transfer
from langshift.plugin.transfer.left_behind import finish_left_behind
from langshift.plugin.transfer.plan import RolledBack, Watch, Way
from langshift.plugin.versions import live, version_behind
from langshift.plugin.way import shift_of, shift_way


def roll_back(client: OpenSearch, name: str, *, patience: float = 300, watch: Watch = lambda _: None) -> RolledBack:
    """Let an alias stand for the version before the live one again.

    Args:
        client: the cluster.
        name: the alias.
        patience: seconds to wait for a cluster that takes nothing.
        watch: told how far it is.

    Raises:
        ClusterError: there is no version before, or the cluster does not do its part.
    """
    # A version that is named by itself is refused.
    version_behind(client, name)
    done = finish_left_behind(client, name)
    if not isinstance(done, RolledBack):
        done = transfer.roll_back(client, name, _way(client, name), watch=watch, patience=patience)
    return done if done.documents else replace(done, documents=live(client, name).documents)


def _way(client: OpenSearch, name: str) -> Way | None:
    """How documents of the live version go back to the shift of the version before; None where none do.

    Where a pipeline shifts what clients write to the live version, one of the version before is made ready too.
    """
    index, version, came = transfer.previous(client, name)
    if came.kind != "retune":
        return None
    require_copied_from_primaries(client, index)
    now = index_shift.read(client, index)
    before, fields = shift_of(meta.read(client, version), version, now), live(client, index).fields
    # Clients go on sending raw vectors through the alias, also where the live one alone has got a pipeline.
    follow(client, index, version, before, fields)
    return shift_way(client, now, before, fields)

"""Names that stand for several indices, or for one that is no version: found, and put right."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.inventory import AnyVersion, Version, find_version, listed
from langshift.plugin.transfer.cutover import UNBLOCKED
from langshift.plugin.versions import broken_in_words, indices_behind, live, version_behind


class BrokenAlias(NamedTuple):
    """An alias that does not stand for one version of its index.

    Attributes:
        name: the alias.
        indices: what it stands for, sorted.
        right: the version that it is to stand for; None where it stands for no finished one.
    """

    name: str
    indices: Sequence[str]
    right: Version | None

    def in_words(self) -> str:
        """What is wrong and what to do, as a sentence."""
        return broken_in_words(self.name, self.indices)


@dataclass(frozen=True)
class AliasPointed:
    """A name that stands for one version again.

    Attributes:
        name: the alias.
        index: the version.
        removed_from: the indices that the alias was taken away from.
        documents: how many documents the version holds, and
        chunks: how many entries they are cut into, both as ``inventory.Version`` has them.
    """

    name: str
    index: str
    removed_from: Sequence[str]
    documents: int | None
    chunks: int | None


def broken_alias(client: OpenSearch, name: str, versions: Sequence[AnyVersion]) -> BrokenAlias | None:
    """What is wrong with the alias of an index; None where it stands for one of its versions, or there is none.

    Args:
        client: the cluster.
        name: the index's name.
        versions: all versions of it, the oldest first.
    """
    return _judged(client, name, sorted(indices_behind(client, name)), versions)


def broken_aliases(client: OpenSearch, versions: Sequence[AnyVersion]) -> list[BrokenAlias]:
    """All that is wrong with the aliases of indices.

    Args:
        client: the cluster.
        versions: all versions of all indices.
    """
    by_name: dict[str, list[AnyVersion]] = defaultdict(list)
    for one in versions:
        by_name[one.name].append(one)
    if not by_name:
        return []
    wanted = {"expand_wildcards": "all", "filter_path": "*.aliases"}
    behind: dict[str, list[str]] = defaultdict(list)
    for index, found in sorted(client.indices.get(index="*", params=wanted).items()):
        for alias in found["aliases"]:
            behind[alias].append(index)
    judged = (_judged(client, name, behind[name], of_name) for name, of_name in by_name.items())
    return [one for one in judged if one is not None]


def _judged(client: OpenSearch, name: str, behind: Sequence[str], versions: Sequence[AnyVersion]) -> BrokenAlias | None:
    there = {one.version for one in versions}
    if not there or not behind or (len(behind) == 1 and behind[0] in there):
        return None
    readable = [one for one in versions if isinstance(one, Version)]
    finished = [one for one in readable if one.version in behind and metadata.unfinished(client, one.version) is None]
    # What another version has replaced is blocked; of those that are not, the last was made to be live.
    finished.sort(key=lambda one: not one.write_blocked)
    return BrokenAlias(name, behind, finished[-1] if finished else None)


def point_alias(client: OpenSearch, name: str, to: str) -> AliasPointed | None:
    """Let a name that stands for no version, for several indices or for a foreign one stand for a version alone.

    Nothing is carried over, as nobody knows what was live; no index is removed.

    Args:
        client: the cluster.
        name: the alias.
        to: the version, such as ``news-v0003``, ``v0003`` or ``3``.

    Returns:
        What was done; None where the name stands for one of its versions, or there is none.

    Raises:
        UsageError: there is no version ``to``.
        ClusterError: it is not finished or cannot be read; ``name`` is an index.
    """
    behind = sorted(indices_behind(client, name))
    # Refuses what is an index.
    if not behind and version_behind(client, name) is not None:
        return None
    found = listed(client, name)
    if not found or (len(behind) == 1 and behind[0] in {one.version for one in found}):
        return None
    one = find_version(name, to, found)
    version = one.version
    # What cannot be read cannot be searched either.
    live(client, version, also_unfinished=True)
    if metadata.unfinished(client, version) is not None:
        raise ClusterError(f"Version {version} is not finished: name one that is (see `langshift index list`).")
    # A retune may have left it behind a block.
    client.indices.put_settings(index=version, body=UNBLOCKED)
    others = [index for index in behind if index != version]
    actions = [{"remove": {"index": index, "alias": name, "must_exist": True}} for index in others]
    if version not in behind:
        actions.append({"add": {"index": version, "alias": name}})
    client.indices.update_aliases(body={"actions": actions})
    return AliasPointed(name, version, others, one.documents, one.chunks)

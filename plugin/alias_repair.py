"""Names that stand for several indices, or for one that is no version: found, and put right."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from opensearchpy import OpenSearch

from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.inventory import AnyVersion, Version, in_short, listed
from langshift.plugin.versions import broken_in_words, indices_behind
from langshift.wording import join_words


class BrokenAlias(NamedTuple):
    """An alias that does not stand for one version of its index.

    Attributes:
        name: the alias.
        indices: what it stands for, sorted.
        right: the version that it is to stand for; None where it stands for no finished one.
        kept: versions that are finished, the oldest first.
    """

    name: str
    indices: Sequence[str]
    right: Version | None
    kept: Sequence[Version]

    @property
    def wrong(self) -> list[str]:
        """The indices that it is to be taken away from."""
        return [index for index in self.indices if self.right is None or index != self.right.version]

    def in_words(self) -> str:
        """What is wrong and what to do, as a sentence."""
        return broken_in_words(self.name, self.indices)

    def outcome(self) -> str:
        """What is so after the repair, as the end of a sentence."""
        if self.right is not None:
            return f"{self.name} points to {in_short(self.right)} alone"
        if self.kept:
            kept = ", ".join(in_short(one) for one in self.kept)
            return (
                f"{self.name} points to no version until you make one live with `langshift rollback {self.name} --to "
                f"VERSION`; it has {kept}"
            )
        return f"{self.name} points to no version, and has none that is finished"

    def repair_in_words(self) -> str:
        """What a repair takes away and what is so then, as a sentence without its beginning and end."""
        return f"the alias {self.name} away from {join_words(self.wrong)}; then {self.outcome()}"


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
    finished = [one for one in readable if metadata.unfinished(client, one.version) is None]
    # What another version has replaced is blocked; of those that are not, the last was made to be live.
    candidates = sorted((one for one in finished if one.version in behind), key=lambda one: not one.write_blocked)
    return BrokenAlias(name, behind, candidates[-1] if candidates else None, finished)


def plan_repair(client: OpenSearch, name: str) -> tuple[str | None, BrokenAlias | None]:
    """What would let a name stand for one of its versions again, or for none; nothing is changed, yet.

    Returns:
        The version that it then stands for, None where that is none; and what is wrong with it, None where nothing is.

    Raises:
        ClusterError: langshift has made no index of that name.
    """
    versions = listed(client, name)
    if not versions:
        raise ClusterError(f"There is no index {name}: `langshift index list` lists the existing indices.")
    alias = broken_alias(client, name, versions)
    if alias is not None:
        return None if alias.right is None else alias.right.version, alias
    return next((one.version for one in versions if one.state == "live"), None), None


def repair(client: OpenSearch, alias: BrokenAlias) -> None:
    """Take the name away from all but the version that it is to stand for."""
    actions = [{"remove": {"index": index, "alias": alias.name, "must_exist": True}} for index in alias.wrong]
    client.indices.update_aliases(body={"actions": actions})

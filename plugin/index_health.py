"""What is not as it should be with the versions of an index: its alias, blocks of writes, and what is not finished."""

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import AuthorizationException

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.inventory import AnyVersion, Version, find_version, listed, versions_of
from langshift.plugin.transfer.cutover import UNBLOCKED
from langshift.plugin.transfer.state import is_running
from langshift.plugin.versions import broken_in_words, indices_behind, live, version_behind
from langshift.server_errors import INDEX_BLOCKS, lacks_permission, unblocking
from langshift.wording import join_words


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


def remarks(versions: Sequence[Version], *, loads: bool = True) -> Iterator[str]:
    """Sentences on the versions of one index that are not finished, each with the command that finishes it.

    Args:
        versions: all of the index.
        loads: whether to tell of those that loads are making, too.
    """
    for one in versions:
        if one.unfinished == "load" and loads:
            yield (
                f"{one.version} is not finished: a load is still writing it or was interrupted. Run that again with "
                f"--resume, or remove the version with `langshift index drop {one.name} --version {one.version}`."
            )
        elif one.unfinished not in (None, "load"):
            yield _of_transfer(one, versions)


def _of_transfer(one: Version, versions: Sequence[Version]) -> str:
    """Whether a retune, reencode or rollback still runs, as far as is known, and how to finish it."""
    what = f"{one.name} to {one.version}{f', which began at {one.begun},' if one.begun else ''}"
    running = is_running(one.process)
    if running and one.process is not None:
        return f"The {one.unfinished} of {what} is still running, as process {one.process['pid']} of this machine."
    rest = f"finish it with {_command(one, versions)}"
    if one.unfinished != "rollback":
        rest += f", or abandon it with `langshift index drop {one.name} --version {one.version}`"
    if running is None:
        where = f" on {one.process['host']}" if one.process else ""
        return f"The {one.unfinished} of {what} is still running{where} or was interrupted: in that case, {rest}."
    return f"The {one.unfinished} of {what} was interrupted: {rest}."


def _command(one: Version, versions: Sequence[Version]) -> str:
    if one.unfinished == "rollback":
        return f"`langshift rollback {one.name}`"
    if one.unfinished == "reencode":
        encoder = shlex.quote(one.fingerprint.encoder)
        return f"`langshift reencode {one.name} --encoder {encoder}` and its other options"
    same = all(other.fingerprint.vectors == one.fingerprint.vectors for other in versions if other.state == "live")
    others = "" if same else " and the same --vectors"
    return f"`langshift retune {one.name} {scale_options(one.fingerprint)}`{others}"


def scale_options(made: Fingerprint) -> str:
    """The options of ``langshift retune`` that give an index the scales of a fingerprint."""
    single = (f"--alpha-for {shlex.quote(f'{tag}={alpha:g}')}" for tag, alpha in made.alphas.items())
    common = [f"--{name} {scale:g}" for name, scale in (("gamma", made.gamma), ("own", made.own)) if scale]
    return " ".join([f"--alpha {made.alpha:g}", *common, *single])


def block_remark(one: Version, versions: Sequence[Version]) -> str | None:
    """Why nothing can be written to a version, in a sentence; None where something can.

    Args:
        one: the version.
        versions: all of its index.
    """
    if not one.write_blocked:
        return None
    if by := _blocking(one, versions):
        how = f"the {by.unfinished} to {by.version} has blocked it for its last step"
        last = f". {next(remarks([by]))}" if by.unfinished == "load" else "."
        return f"Nothing can be written to {one.version}: {how}{last}"
    if one.state == "kept":
        return f"Nothing can be written to {one.version}: it is kept as it was when another version replaced it."
    return f"Nothing can be written to {one.version}: an administrator or a full disk has blocked it (index.blocks)."


def _blocking(one: Version, versions: Sequence[Version]) -> Version | None:
    return next((other for other in versions if other.blocks == one.version and other.state == "unfinished"), None)


def blocks_of(settings: Mapping[str, Any], *, appending: bool) -> list[str]:
    """The blocks of an index with which nothing can be added to it, or with which its alias cannot be moved.

    Args:
        settings: the ``index`` part of its settings.
        appending: whether a block of writes alone counts.
    """
    there = settings.get("blocks", {})
    names = INDEX_BLOCKS if appending else INDEX_BLOCKS[:-1]
    return [f"index.blocks.{name}" for name in names if metadata.is_on(there.get(name))]


def require_unblocked(
    client: OpenSearch, name: str, index: str, settings: Mapping[str, Any], *, appending: bool
) -> None:
    """Refuse at once to load where nothing could be written, or published, for as long as a person leaves a block.

    A block that another command has set for its last step is gone in a moment, or is told of by ``explain_block``.

    Args:
        client: the cluster.
        name: the index's name.
        index: the live version, or the one that a load which was cut off writes to.
        settings: the ``index`` part of its settings.
        appending: whether the load writes to this one; else another is to take its place.

    Raises:
        ClusterError: naming the blocks, and how to remove them.
    """
    if not (blocks := blocks_of(settings, appending=appending)):
        if appending:
            try:
                # Changes nothing, and is refused where the whole cluster is blocked.
                client.indices.put_mapping(index=index, body={"properties": {}})
            except AuthorizationException as error:
                if not lacks_permission(error):
                    raise
        return
    versions = versions_of(client, name)
    one = next((one for one in versions if one.version == index), None)
    if one is not None and _blocking(one, versions) is not None:
        explain_block(client, name, index)
        return
    effect = "nothing can be written to it" if appending else "no other version can take its place"
    raise ClusterError(
        f"Index {index} has the block {join_words(blocks)}, so {effect}: {unblocking(index, blocks)}, then run the "
        "command again."
    )


def explain_block(client: OpenSearch, name: str, index: str) -> str:
    """Why nothing can be written to a version at this moment, with what to do; empty where that is not known.

    Args:
        client: the cluster.
        name: the index's name, and
        index: the version.

    Raises:
        ClusterError: a retune, reencode or rollback has blocked it that was interrupted, so that waiting is of no use.
    """
    versions = versions_of(client, name)
    one = next((one for one in versions if one.version == index), None)
    remark = None if one is None else block_remark(one, versions)
    if one is None or remark is None:
        return ""
    by = _blocking(one, versions)
    if by is not None and by.unfinished == "load":
        return remark
    if by is None:
        return f"{remark} Lift the block with PUT /{index}/_settings when the cause is gone, and run the command again."
    sentence = f"{remark} {_of_transfer(by, versions)} Then run this command again."
    if is_running(by.process) is False:
        raise ClusterError(sentence)
    return sentence

"""What ``langshift index drop`` removes: versions of one index, with their pipelines."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import click
from opensearchpy import OpenSearch
from rich.filesize import decimal

from langshift.cluster import open_cluster
from langshift.console import counted, emit_json, note, out
from langshift.errors import ClusterError, UsageError
from langshift.plugin import pipeline, versions
from langshift.plugin.listing import Version, versions_of
from langshift.plugin.meta import uuid_of
from langshift.plugin.transfer.left_behind import release_left_behind
from langshift.plugin.versions import alias_of, check_name


@dataclass(frozen=True)
class Drop:
    """What is to be removed.

    Attributes:
        name: the index.
        versions: those that go, the live one last: until then the index serves.
        whole: whether nothing is left of it.
    """

    name: str
    versions: Sequence[Version]
    whole: bool

    def in_words(self) -> str:
        """What goes, as a sentence without its end."""
        told = ", ".join(f"{one.version} ({_held(one)})" for one in self.versions)
        return f"the index {self.name} with {told}" if self.whole else told


def run_drop(name: str, version: str | None, *, yes: bool, as_json: bool) -> int:
    """Ask, and remove.

    Returns:
        The exit code: 0, or 1 where the answer is no.

    Raises:
        UsageError: ``name`` cannot be an index's name, there is no such version or it is the live one, or nobody can
            be asked.
        ClusterError: there is no such index, or it is not langshift's.
    """
    check_name(name)
    client = open_cluster()
    wanted = planned(client, name, version)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"This would remove {wanted.in_words()}: without a terminal to ask at, say so with --yes.")
        note(f"This removes {wanted.in_words()}.")
        if not click.confirm("Remove it?", err=True):
            note("Nothing was removed.")
            return 1
    drop(client, wanted)
    if as_json:
        emit_json({"name": name, "whole": wanted.whole, "removed": [one.to_dict() for one in wanted.versions]})
    else:
        out.print(f"Removed {wanted.in_words()}.", soft_wrap=True, markup=False)
    return 0


def planned(client: OpenSearch, name: str, version: str | None) -> Drop:
    """What is to be removed; nothing is, yet.

    Args:
        client: the cluster.
        name: the index.
        version: the one version that is to go, such as ``news-v0001``, ``v0001`` or ``1``; None for all.

    Raises:
        UsageError: ``name`` cannot be an index's name, there is no such version, or it is the live one.
        ClusterError: there is no such index, or it is not langshift's.
    """
    if alias_of(name) != name and any(one.version == name for one in versions_of(client, alias_of(name))):
        raise UsageError(
            f"{name} is a version of {alias_of(name)}: remove it by `langshift index drop {alias_of(name)} "
            f"--version {name}`."
        )
    live = versions.version_behind(client, name)
    found = versions_of(client, name)
    if live is not None and live not in [one.version for one in found]:
        raise ClusterError(f"{name} stands for {live}, which is no version of that name: nothing was removed.")
    if not found:
        raise ClusterError(f"There is no index {name}: `langshift index list` names those that there are.")
    if version is None:
        return Drop(name, sorted(found, key=lambda one: one.state == "live"), whole=True)
    one = _named(name, version, found)
    if one.state == "live":
        raise UsageError(
            f"{one.version} is what {name} stands for: go back to another version first (langshift rollback {name}), "
            f"or remove all by `langshift index drop {name}`."
        )
    return Drop(name, [one], whole=False)


def drop(client: OpenSearch, wanted: Drop) -> None:
    """Remove versions, and what the cluster keeps for them.

    Cut off in between, it may be done again: the live version goes last.

    Raises:
        ClusterError: what is there is not what it was when this was planned.
    """
    now = {one.version: one for one in versions_of(client, wanted.name)}
    same = all(_same(one, now.get(one.version)) for one in wanted.versions)
    if not same or (wanted.whole and len(now) > len(wanted.versions)):
        raise ClusterError(f"The versions of {wanted.name} have changed meanwhile, and none was removed: run it again.")
    for one in wanted.versions:
        if one.unfinished in ("retune", "rollback"):
            release_left_behind(client, wanted.name)
        if uuid_of(client, one.version) == one.uuid:
            client.indices.delete(index=one.version, ignore_unavailable=True)
        if not pipeline.forget_where_allowed(client, one.version):
            note(f"This user may not see ingest pipelines, so {pipeline.name_for(one.version)} stays if it is there.")


def drop_all(client: OpenSearch, name: str) -> None:
    """Remove an index with all its versions, and what the cluster keeps for them; nothing where there is none.

    Raises:
        ClusterError: ``name`` is an index, or stands for what is not langshift's; then nothing is removed.
    """
    if versions.version_behind(client, name) is not None or versions_of(client, name):
        drop(client, planned(client, name, None))


def _same(planned: Version, now: Version | None) -> bool:
    return now is not None and (now.uuid, now.state) == (planned.uuid, planned.state)


def _named(name: str, version: str, found: Sequence[Version]) -> Version:
    told = re.fullmatch(rf"(?:{re.escape(name)}-)?v?0*([1-9][0-9]*)", version, re.ASCII)
    index = f"{name}-v{int(told[1]):04}" if told else ""
    one = next((one for one in found if one.version == index), None)
    if one is None:
        there = ", ".join(one.version for one in found)
        raise UsageError(f"{name} has no version {version!r}: there {'are' if len(found) > 1 else 'is'} {there}.")
    return one


def _held(one: Version) -> str:
    documents = "closed" if one.documents is None else counted(one.documents, "document")
    return ", ".join([one.state, documents, *([] if one.bytes is None else [decimal(one.bytes)])])

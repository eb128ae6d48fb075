"""What is looked at before a load is published: that the cluster has what it confirmed, and that this is enough."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.client import address
from langshift.errors import ClusterError
from langshift.files import batched
from langshift.ingest.bulk.final_pipeline import is_same, relied_on
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import Entry
from langshift.ingest.progress import LoadSummary, dead_letters_say
from langshift.plugin import metadata, version_writer
from langshift.plugin.inventory import count_documents
from langshift.plugin.metadata import FieldNames
from langshift.plugin.version_writer import NotPublished
from langshift.plugin.versions import Target, require_there
from langshift.server_errors import Unreadable, not_permitted
from langshift.wording import pluralize

# 10,000 ids of 512 bytes make a request that any server takes.
_COUNTED, _FETCHED, _COMPARED = 10_000, 1_000, 50
# An index may be set to find few documents at once.
_SOUGHT = 50


class VerificationResult(NamedTuple):
    """What the check found.

    Attributes:
        documents: how many documents of this load there are to be.
        entries: in how many entries of the index: more where they are cut into chunks.
        missing: the entries that are not there, or only as they were before the line that was confirmed last; all of
            them.
        differing: those of the sample that are there with another vector, language, stamp or text than was sent.
        surplus: entries beyond those of this load in a version that only this load should have written to.
    """

    documents: int
    entries: int
    missing: list[Entry]
    differing: list[Entry]
    surplus: int


def check(
    client: OpenSearch, target: Target, journals: Callable[[], Iterable[Journal]], base: int | None
) -> VerificationResult:
    """Compare the index with what the cluster has confirmed; only reads, but for a refresh.

    What somebody else has updated since counts as there. What somebody else has deleted since counts as missing:
    the server tells no difference to a loss.

    Args:
        client: the cluster.
        target: the version.
        journals: gives what the cluster has confirmed; all lines of a document are in one journal.
        base: a line's version less its number; None where documents have versions, and routing, of their own.

    Raises:
        ClusterError: the version was deleted.
        Unreadable: part of it does not answer.
    """
    require_there(client, target)
    client.indices.refresh(index=target.index)
    index = _Index(client, target, base)
    held = index.count({"match_all": {}}) if target.created else None
    documents = entries = 0
    differing: list[Entry] = []
    any_lost = False
    for journal in journals():
        counts, (other, lost) = journal.documents(), index.compare(journal.sample())
        documents, entries = documents + counts[0], entries + counts[1]
        differing, any_lost = differing + other, any_lost or lost
    missing: list[Entry] = []
    if any_lost or held != entries:
        for journal in journals():
            for batch in batched(journal.entries(), _COUNTED):
                there = {"ids": {"values": [one.id for one in batch]}}
                # Once a write is known to be lost, an older version of it may stand for each of the others.
                short = len(batch) if any_lost else len(batch) - index.count(there)
                missing += index.missing(batch, short)
    surplus = 0 if held is None else max(0, held - (entries - len(missing)))
    absent = set(missing)
    return VerificationResult(documents, entries, missing, [each for each in differing if each not in absent], surplus)


class _Index:
    """The index, as the check reads it."""

    def __init__(self, client: OpenSearch, target: Target, base: int | None) -> None:
        self._client = client
        self._name, self._fields = target.index, target.fields
        self._base = base

    def count(self, query: dict[str, Any]) -> int:
        """How many documents a query finds; too few where a shard does not answer."""
        return int(self._client.count(index=self._name, body={"query": query})["count"])

    def missing(self, batch: Sequence[Entry], absent: int) -> list[Entry]:
        """Those of a batch that are not there, or only in an older version; stops when ``absent`` are not there."""
        lost: list[Entry] = []
        for some in batched(batch, _FETCHED):
            if absent <= 0:
                break
            for each, document in zip(some, self._get([one.id for one in some], False), strict=True):
                absent -= not document["found"]
                if self._lost(document, each.line):
                    lost.append(each)
        return lost

    def compare(self, sample: Sequence[tuple[Entry, bytes]]) -> tuple[list[Entry], bool]:
        """Those of the sample that are not as they were sent, and whether any has lost its write."""
        differing: list[Entry] = []
        any_lost = False
        compared = [self._fields.vector, *relied_on(self._fields)]
        for some in batched(sample, _COMPARED):
            documents = self._get([each.id for each, _ in some], compared)
            for (each, sent), document in zip(some, documents, strict=True):
                if self._lost(document, each.line):
                    any_lost = True
                elif self._base is not None and document["_version"] != self._base + each.line:
                    continue  # Somebody else has written it since.
                elif not is_same(document["_source"], sent, self._fields):
                    differing.append(each)
        return differing, any_lost

    def _lost(self, document: dict[str, Any], line: int) -> bool:
        if not document["found"] or self._base is None or not line:
            return not document["found"]
        return bool(document["_version"] < self._base + line)

    def _get(self, ids: list[str], source: bool | list[str]) -> list[dict[str, Any]]:
        if self._base is None:
            return [found for part in batched(ids, _SOUGHT) for found in self._seek(part, source)]
        wanted = [{"_id": id, "_source": source} for id in ids]
        documents: list[dict[str, Any]] = self._client.mget(index=self._name, body={"docs": wanted})["docs"]
        for document in documents:
            if "error" in document:
                why = str(document["error"].get("reason", "no reason given"))
                # A permission does not come by waiting, as a shard may.
                raise not_permitted(why, address(self._client)) or Unreadable(
                    f"Document {document['_id']!r} of {self._name} cannot be read ({why}): "
                    "check that all shards of the index are available."
                )
        return documents

    def _seek(self, ids: list[str], source: bool | list[str]) -> list[dict[str, Any]]:
        """Documents by ``_id``, wherever their routing has put them."""
        body = {"query": {"ids": {"values": ids}}, "size": len(ids), "_source": source}
        answer = self._client.search(index=self._name, body=body, params={"allow_partial_search_results": "false"})
        found = {hit["_id"]: hit for hit in answer["hits"]["hits"]}
        return [{**found.get(id, {}), "found": id in found} for id in ids]


#: A load may refuse this share of its lines and still take the place of what is live.
MAX_REFUSED = 0.1


class LoadNotPublished(ClusterError):
    """A load is done, but what it has made is not live; the message says why, and what to do.

    Attributes:
        summary: what it did.
    """

    def __init__(self, message: str, summary: LoadSummary) -> None:
        super().__init__(message)
        self.summary = summary


def require_publishable(client: OpenSearch, target: Target, summary: LoadSummary, max_refused: float) -> None:
    """Keep a version aside that had better not replace a live one; remove the first one of a name if it is empty.

    Args:
        client: the cluster.
        target: the version.
        summary: what the load that made it did.
        max_refused: the largest share of its lines that may have been refused, from 0 to 1.

    Raises:
        NotPublished: more was refused, or it holds less than half of the live version's documents, or nothing.
        Unreadable: one of the versions does not answer.
    """
    if not target.created:
        return
    refused, here = _refused(summary), _documents(client, target.index, target.fields)
    if target.live is None:
        if not here:
            version_writer.discard(client, target)
            why = refused if summary.dead else f"none of the {pluralize(summary.lines, 'line')} leaves one"
            raise NotPublished(f"No index {target.name} was created, because it would hold no document: {why}.", why)
        return
    if summary.lines and summary.dead / summary.lines > max_refused:
        why = f"{refused}, more than the share of {max_refused:g} that --max-refused allows"
        raise version_writer.keep_aside(client, target, why)
    there = _documents(client, target.live)
    if 2 * here < there:
        why = f"the new version holds {pluralize(here, 'document')} and {target.live} holds {there:,}"
        raise version_writer.keep_aside(client, target, f"{why}, and {refused}" if summary.dead else why)


def _refused(summary: LoadSummary) -> str:
    """Such as ``3 of 10 lines were refused``, with where the reasons are."""
    were = "was" if summary.dead == 1 else "were"
    shows = dead_letters_say(summary.name, summary.state)
    return f"{summary.dead:,} of {pluralize(summary.lines, 'line')} {were} refused ({shows})"


def _documents(client: OpenSearch, index: str, fields: FieldNames | None = None) -> int:
    try:
        counted = count_documents(client, index, fields or FieldNames.from_meta(metadata.read_metadata(client, index)))
    except NotFoundError:
        # Somebody has deleted it, which stops the load where the alias is to change.
        return 0
    if counted.documents is None:
        raise Unreadable(f"Some shards of {index} do not respond, so nobody knows how many documents it holds.")
    return counted.documents

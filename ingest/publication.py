"""Whether a version that a load has made may take the place of what is live."""

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError
from langshift.ingest.progress import LoadSummary, dead_letters_say
from langshift.plugin import metadata, version_writer
from langshift.plugin.inventory import count_documents
from langshift.plugin.metadata import FieldNames
from langshift.plugin.version_writer import NotPublished
from langshift.plugin.versions import Target
from langshift.server_errors import Unreadable
from langshift.wording import pluralize

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

"""What changes from the first of several replayed indices to each other one."""

from __future__ import annotations

from collections.abc import Sequence

from opensearchpy import OpenSearch

from langshift.evaluate.datasets.indexed import indexed_languages
from langshift.evaluate.replay.drift import DEPTH, Drifts, between
from langshift.evaluate.replay.replayed import Replay


def drifts(client: OpenSearch, found: Sequence[Replay]) -> Drifts:
    """Compare the first replay with each other one.

    Documents' languages are the dataset's, and the indices' own where it names none.

    Raises:
        ClusterError: the cluster does not tell languages.
    """
    first = found[0]
    known = {name: document.language for name, document in first.dataset.documents.items()} if first.dataset else {}
    for one in found:
        top = (name for answer in one.answers for name, _ in answer.hits[:DEPTH])
        unnamed = dict.fromkeys(name for name in top if known.get(name) is None)
        known.update(indexed_languages(client, one.version, one.fields, unnamed))
    return [
        between((first.index, other.index), first.answers, other.answers, queries=first.languages, documents=known)
        for other in found[1:]
    ]

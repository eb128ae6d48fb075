"""What an index holds, beside what the dataset says: languages, and documents that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import OpenSearchException

from langshift.evaluate.datasets.dataset import Dataset
from langshift.failures import failure
from langshift.languages import UNDETERMINED
from langshift.plugin.fields import Fields, value_at
from langshift.plugin.versions import LiveIndex
from langshift.retrieval.search import Searcher

_GET_AT_ONCE = 1000


def document_languages(
    client: OpenSearch, index: LiveIndex, dataset: Dataset
) -> tuple[dict[str, str | None], list[str]]:
    """The languages of the documents, the index's own where the dataset names none for a relevant one.

    Returns:
        Document id -> language, and sentences on what came from the index.

    Raises:
        ClusterError: the cluster does not tell.
    """
    languages = {name: document.language for name, document in dataset.documents.items()}
    relevant = {name for judged in dataset.qrels.values() for name, grade in judged.items() if grade > 0}
    unnamed = sorted(name for name in relevant if languages[name] is None)
    if not unnamed:
        return languages, []
    languages.update(indexed_languages(client, index.index, index.fields, unnamed))
    warning = (
        f"The dataset names no language for {len(unnamed):,} of its {len(relevant):,} relevant documents, "
        "so TLR and SLR go by the languages that the index has for them"
    )
    unknown = sum(languages[name] is None for name in unnamed)
    left = f"; {unknown:,} that have none there are left out" if unknown else ""
    return languages, [f"{warning}{left}."]


def indexed_languages(client: OpenSearch, index: str, fields: Fields, names: Iterable[str]) -> dict[str, str]:
    """Document id -> the language that the index has for it; those without one are left out.

    Raises:
        ClusterError: the cluster does not tell.
    """
    rest, found = iter(names), {}
    while ids := list(islice(rest, _GET_AT_ONCE)):
        try:
            answer: dict[str, Any] = client.mget(index=index, body={"ids": ids}, params={"_source": fields.language})
        except OpenSearchException as error:
            raise failure(error) from error
        for document in answer["docs"]:
            language = value_at(document.get("_source", {}), fields.language)
            if language not in (None, UNDETERMINED):
                found[document["_id"]] = language
    return found


def misfits(searcher: Searcher, dataset: Dataset, run: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Say where index and dataset do not hold the same documents."""
    if not dataset.documents:
        return []
    warnings = []
    held, expected = searcher.index.documents, len(dataset.documents)
    if held != expected:
        warnings.append(
            f"{searcher.index.name} holds {held:,} documents and the dataset has {expected:,}, "
            "so the figures are not those of the dataset alone."
        )
    strange = {name for hits in run.values() for name in hits} - dataset.documents.keys()
    if strange:
        warnings.append(
            f"{len(strange):,} of the documents found are not in the dataset ({min(strange)}, say) "
            "and count as not relevant."
        )
    return warnings

"""Whether a user sees all of an index: of what is seen in part, whoever copies or replaces it would lose the rest.

With OpenSearch's security plugin a role may hide documents, hide fields or mask them, and no answer says so. What is
left out is known from what is not restricted: the segments, the state of the cluster, and the terms of masked fields,
which searches still find.
"""

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from langshift.errors import ClusterError
from langshift.files import batched
from langshift.plugin import metadata
from langshift.plugin.index_sample import random_order
from langshift.plugin.transfer.reindex_tasks import search

_TRIES, _PAUSE = 5, 0.2  # seconds
# Documents of which texts are looked for, and texts of a field: of one that no analyzer takes apart alike, three are.
_SAMPLED, _EACH = 50, 3
# Fields of one search; characters of a keyword.
_FIELDS, _TERM = 200, 2000
# The beginning of a text, to the end of a word: where no spaces are written, the standard analyzer makes one term of up
# to 255 characters. It makes no more terms of three than a query may have.
_BEGINNING = re.compile(r".{0,40}\S{0,255}", re.DOTALL)


def require_whole_view(client: OpenSearch, index: str, what: str) -> None:
    """Refuse to copy or replace an index of which this user sees a part.

    Args:
        client: the cluster.
        index: its own name.
        what: what would leave out what is hidden, such as ``a retune``.

    Raises:
        ClusterError: documents or fields are hidden from the user, or fields masked.
        OpenSearchException: the user may not find out.
    """
    hidden = hidden_documents(client, index) or _hidden_field(client, index)
    if hidden or (hidden := _masked_field(client, index) and _masked_field(client, index)):
        raise ClusterError(restricted_in_words(index, hidden, what))


def restricted_in_words(index: str, hidden: str, what: str) -> str:
    """Why a view of an index is not enough, and what to do, as a sentence."""
    return (
        f"This user's roles {hidden} of {index}, and {what} would leave out what they hide, for everybody: run the "
        f"command as a user whose roles neither hide nor mask anything of {index}."
    )


def hidden_documents(client: OpenSearch, index: str) -> str:
    """Which documents of an index the user does not see, as the end of a clause; empty where all are seen."""
    properties = _mapping(client, index)
    paths = [path for path, field in _fields(properties) if field.get("type") == "nested"]
    body: dict[str, Any] = {"size": 0, "track_total_hits": True}
    if paths:
        body["aggs"] = {str(number): {"nested": {"path": path}} for number, path in enumerate(paths)}
    before = seen = after = 0
    for number in range(_TRIES):
        time.sleep(_PAUSE if number else 0)
        before = _held(client, index)
        answer = search(client, body, index=index)
        inner = sum(int(one["doc_count"]) for one in answer.get("aggregations", {}).values())
        seen, after = int(answer["hits"]["total"]["value"]) + inner, _held(client, index)
        # What is written or deleted meanwhile is counted by one of the two.
        if min(before, after) <= seen <= max(before, after):
            return ""
    nested = " (with nested ones)" if paths else ""
    return f"show only {seen:,} of the {after:,} documents{nested}"


def _held(client: OpenSearch, index: str) -> int:
    """How many documents, nested ones included, searches of the primaries may find."""
    shards = client.indices.segments(index=index)["indices"][index]["shards"]
    primaries = (copy for copies in shards.values() for copy in copies if copy["routing"]["primary"])
    return sum(one["num_docs"] for copy in primaries for one in copy["segments"].values() if one["search"])


def _mapping(client: OpenSearch, index: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = client.indices.get_mapping(index=index)[index]["mappings"].get("properties", {})
    return found


def _fields(properties: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All fields of a mapping with their paths, objects before what is in them."""
    for name, field in properties.items():
        yield f"{before}{name}", field
        yield from _fields(field.get("properties", {}), f"{before}{name}.")


def _hidden_field(client: OpenSearch, index: str) -> str:
    # Of the mapping, a user is given the fields that he sees; of the cluster's state, all.
    places = ",".join(f"metadata.indices.*.{part}" for part in ("state", "mappings._doc.properties"))
    state = client.cluster.state(metric="metadata", index=index, params={"filter_path": places})
    there = metadata.value_at(state["metadata"]["indices"].get(index, {}), "mappings._doc.properties")
    shown = {path for path, _ in _fields(_mapping(client, index))}
    hidden = next((path for path, _ in _fields(there or {}) if path not in shown), None)
    return f"hide the field {hidden!r}" if hidden else ""


def _masked_field(client: OpenSearch, index: str) -> str:
    """A field whose texts, as the user gets them, are not found by a search for them."""
    fields = dict(_fields(_mapping(client, index)))
    vectors = [path for path, field in fields.items() if field.get("type") == "knn_vector"]
    body = {"size": _SAMPLED, "query": random_order(), "_source": {"excludes": vectors}}
    wanted: dict[str, list[dict[str, Any]]] = {}
    for hit in search(client, body, index=index)["hits"]["hits"]:
        for path, text in _texts(hit["_source"]):
            if len(clauses := wanted.setdefault(path, [])) < _EACH and (clause := _clause(fields, path, text)):
                clauses.append({"bool": {"filter": [{"ids": {"values": [hit["_id"]]}}, clause]}})
    asked = {path: {"bool": {"should": clauses}} for path, clauses in wanted.items() if clauses}
    keywords = [path for path in asked if fields[path]["type"] == "keyword"]
    for some in (*batched(keywords, _FIELDS), *([path] for path in asked if path not in keywords)):
        aggs = {str(number): {"filter": asked[path]} for number, path in enumerate(some)}
        try:
            found = search(client, {"size": 0, "aggs": aggs}, index=index)["aggregations"]
        except RequestError:
            # An analyzer that makes very many terms: of such a field nobody knows until the copy is compared.
            continue
        if masked := next((path for n, path in enumerate(some) if not found[str(n)]["doc_count"]), None):
            return f"mask the field {masked!r}"
    return ""


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - any JSON
    """All texts of a document with their fields."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, path)
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from _texts(one, f"{path}.{name}" if path else name)


def _clause(fields: Mapping[str, Any], path: str, text: str) -> dict[str, Any] | None:
    """A query that finds the documents with a text in a field; None where there is none that is sure to."""
    field = fields.get(path, {})
    if field.get("index") is False:
        return None
    clause: dict[str, Any]
    if field.get("type") == "keyword" and len(text) <= min(field.get("ignore_above", _TERM), _TERM):
        clause = {"term": {path: text}}
    elif field.get("type") in ("text", "match_only_text") and (beginning := _BEGINNING.match(text)):
        clause = {"match": {path: {"query": beginning[0], "zero_terms_query": "all"}}}
    else:
        return None
    parents = (path[:at] for at in range(len(path), 0, -1) if path[at : at + 1] == ".")
    for parent in parents:
        if fields.get(parent, {}).get("type") == "nested":
            clause = {"nested": {"path": parent, "query": clause}}
    return clause

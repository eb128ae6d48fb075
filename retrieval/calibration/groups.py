"""What an index's translation groups tell: in which languages there is a content that is there in another one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from opensearchpy import OpenSearch

from langshift.plugin.versions import LiveIndex
from langshift.retrieval import bodies
from langshift.retrieval.calibration.spread import drawn
from langshift.retrieval.exchange import Exchange, carry_out
from langshift.retrieval.hit import GROUP

# Exact figures are not needed: of so many documents the groups are looked at.
_LOOKED_AT: Final = 2_000
_PAGE: Final = 5_000
_LOWEST, _HIGHEST = -0.5, 2.0
# Where an answer is missing in the searcher's language, trust in that language costs what is seldom won back: only a
# language that has nearly everything is given more than usual.
_CAUTION: Final = 2.0


def has_groups(client: OpenSearch, index: LiveIndex) -> bool:
    """Whether documents of an index can name a translation group: in an adopted one the field may be another thing."""
    kinds = client.field_caps(index=index.index, fields=GROUP)["fields"].get(GROUP, {})
    return bool(kinds) and all(kind["type"] == "keyword" and kind["aggregatable"] for kind in kinds.values())


def measured_priors(client: OpenSearch, index: LiveIndex, documents: int) -> dict[str, float]:
    """The prior of each language, from how much of what is there in other languages is there in this one, too.

    Args:
        client: the cluster.
        index: an index with groups.
        documents: how many are looked at at most, and how many one request to the index may ask for.
    """
    looked_at = carry_out(client, index.index, _grouped(index, min(_LOOKED_AT, documents)))
    found = languages_of(client, index, {group for _, group in looked_at})
    return priors(looked_at, found, index.languages)


def priors(
    documents: Iterable[tuple[str, str]], found: Mapping[str, Collection[str]], languages: Iterable[str]
) -> dict[str, float]:
    """Language -> ``logit((h + .5) / (n + 1)) - 2``, from -0.5 to 2.

    Of the ``n`` documents in other languages, ``h`` belong to a group with a document in this language. A language
    without others is left out.

    Args:
        documents: language and group of each.
        found: group -> languages of its documents.
        languages: those that are asked about.
    """
    known, made = list(documents), {}
    for language in languages:
        others = [group for own, group in known if own != language]
        if others:
            share = (sum(language in found[group] for group in others) + 0.5) / (len(others) + 1)
            made[language] = min(_HIGHEST, max(_LOWEST, math.log(share / (1 - share)) - _CAUTION))
    return made


def languages_of(client: OpenSearch, index: LiveIndex, groups: Collection[str]) -> dict[str, set[str]]:
    """Group -> the languages of its documents."""
    found: dict[str, set[str]] = defaultdict(set)
    names = {"group": GROUP, "language": index.fields.language}
    asked: dict[str, Any] = {"size": _PAGE, "sources": [{n: {"terms": {"field": f}}} for n, f in names.items()]}
    body = {
        "size": 0,
        "query": {"bool": {"filter": bodies.filter_clauses({GROUP: sorted(groups)})}},
        "aggs": {"pairs": {"composite": asked}},
    }
    while groups:
        answer = client.search(index=index.index, body=body)["aggregations"]["pairs"]
        for bucket in answer["buckets"]:
            found[bucket["key"]["group"]].add(bucket["key"]["language"])
        if len(answer["buckets"]) < _PAGE:
            break
        asked["after"] = answer["after_key"]
    return found


def _grouped(index: LiveIndex, size: int) -> Exchange[list[tuple[str, str]]]:
    language = index.fields.language
    clauses = [{"exists": {"field": GROUP}}, {"exists": {"field": language}}]
    body = bodies.body(drawn({"bool": {"filter": clauses}}), size, index.fields, source=False)
    (response,) = yield (body | {"docvalue_fields": [language, GROUP]},)
    return [(hit["fields"][language][0], hit["fields"][GROUP][0]) for hit in response["hits"]["hits"]]

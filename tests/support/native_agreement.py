"""Searches drawn at random, of which the plugin's query and langshift's own search must find the same."""

from collections import Counter
from itertools import zip_longest

import numpy as np
import pytest
from native_plugin import hits_of
from search_request import preferring

from langshift.retrieval.filters import FieldCheck
from langshift.retrieval.plans import execute
from langshift.retrieval.request import SearchSettings
from langshift.retrieval.searcher import Searcher

#: What the query carries out; `auto` may stand for another mode in an index, and is then refused.
QUERY_MODES = ("dense", "balanced", "anchored")
PREFERENCES = (0.0, 0.0, 0.02, 0.1, 0.5, -0.02, -0.3)
SIZES = (1, 5, 10, 20, 50, 120)
#: Languages that a question may be said to be in beside its own.
OTHER_LANGUAGES = ("und", "sw")


class Agreement:
    """Compares searches of an index, which nobody changes meanwhile.

    Attributes:
        counts: what was compared -> how often.
        apart: the searches of which another thing was found, and what.
    """

    def __init__(self, client, index, questions, filters, *, seed=0, opened=None, digits=5, nearer=False):
        """Open the index.

        Args:
            client: the cluster.
            index: its name.
            questions: a list of ``SearchQuery`` with vectors.
            filters: a function that draws (filters, filters in OpenSearch's own DSL) by random numbers.
            seed: of these.
            opened: encoders that are open already, by name.
            digits: of scores, which must be the same.
            nearer: whether the plugin may find other entries that are nearer.
        """
        self.client, self.counts, self.apart = client, Counter(), []
        self.searcher = Searcher(client, index, opened=opened)
        # What it finds without the plugin is what is compared with.
        self.searcher._native = False
        self._check = FieldCheck(client, self.searcher.index)
        self._questions, self._filters = questions, filters
        self._numbers, self._digits, self._nearer = np.random.default_rng(seed), digits, nearer

    def compare(self, times, *, name=None, within=(), asked=None):
        """Compare so many searches drawn at random.

        Args:
            times: how many.
            name: by which the plugin searches; None for the index's own. What another version answers is not compared.
            within: what an alias of that name filters by, in OpenSearch's own DSL.
            asked: the client and the index of which the plugin must find the same; None for these.
        """
        for _ in range(times):
            question, setting, size, (filters, queries) = self._drawn()
            clauses, all_ = (self._check.checked(filters, [*queries, *more]) for more in ((), within))
            stands_for = self.searcher.resolve(setting).setting.mode
            if stands_for not in QUERY_MODES:
                continue
            client, named = asked or (self.client, name or self.searcher.index.name)
            answered, hits = by_query(client, named, question, setting, size, clauses.clauses)
            plan = self.searcher.plan(question, setting, size=size, filters=all_, source=False)
            version = self.searcher.index.index
            if not asked and answered not in {version, None}:
                continue
            wanted = execute(self.client, version, plan).hits
            try:
                require_same(hits, wanted, self._digits)
            except AssertionError as error:
                if self._nearer and are_nearer(hits, wanted, self._digits):
                    self.counts["nearer"] += 1
                    continue
                self.apart.append((question.words, question.language, setting, size, filters, queries, error))
            self._count(setting, stands_for, filters or queries or within)

    def _drawn(self):
        numbers = self._numbers
        question = self._questions[numbers.integers(len(self._questions))]
        if numbers.random() < 0.2:
            question = question._replace(language=str(numbers.choice(OTHER_LANGUAGES)))
        mode = str(numbers.choice(["auto", *QUERY_MODES]))
        how = preferring(float(numbers.choice(PREFERENCES))) | {"one_per_group": bool(numbers.random() < 0.4)}
        filters = self._filters(numbers) if numbers.random() < 0.5 else ({}, [])
        return question, SearchSettings(mode, **how), int(numbers.choice(SIZES)), filters

    def _count(self, setting, stands_for, filtered):
        mode = f"auto ({stands_for})" if setting.mode == "auto" else setting.mode
        told = ["all", mode]
        told += ["preference"] if setting.preference > 0 else ["spread"] if setting.preference < 0 else []
        told += ["one per group"] * setting.one_per_group + ["filtered"] * bool(filtered)
        told += ["several at once"] if setting.preference and setting.one_per_group and filtered else []
        self.counts.update(told)


def query_of(question, setting, clauses=(), **more):
    """The query of a search by vector."""
    query = {
        "mode": setting.mode,
        "vector": question.vector.tolist(),
        "text": question.words,
        "language": question.language,
    }
    query["spread" if setting.preference < 0 else "prefer_language"] = abs(setting.preference)
    if clauses:
        query["filter"] = {"bool": {"filter": list(clauses)}}
    return {"langshift": query | {"one_per_group": setting.one_per_group} | more}


def by_query(client, name, question, setting, size, clauses=()):
    """What the plugin's query finds: the version, None without hits, and of each hit id and score."""
    body = {"size": size, "query": query_of(question, setting, clauses), "_source": False}
    answer = client.search(index=name, body=body)
    (version,) = {hit["_index"] for hit in answer["hits"]["hits"]} or {None}
    return version, hits_of(answer)


def require_same(found, wanted, digits=5):
    """The same entries in the same order with the same scores.

    What has the same score as another as far as figures of single precision tell may stand in another order: the
    server orders such by where they lie in their shards, of which langshift's own search knows nothing.
    """
    # Of a group, too, where the best two are alike, either may stand for it.
    alike = Counter(_rounded(one.score, digits) for hit in wanted for one in (hit, *hit.others))
    near = 10 ** -(digits + 1)
    told = [(hit.id, hit.score) for hit in wanted]
    for place, (one, other) in enumerate(zip_longest(found, told), 1):
        at = f"place {place}: {one}, not {other}"
        assert one, at
        assert other, at
        assert one[1] == pytest.approx(other[1], rel=near, abs=near), at
        assert one[0] == other[0] or alike[_rounded(one[1], digits)] > 1, at


def are_nearer(found, wanted, digits=5):
    """Whether entries have in each place a score that is as high or higher, and what both found has the same score."""
    near, told = 10 ** -(digits + 1), {hit.id: hit.score for hit in wanted}
    same = all(score == pytest.approx(told[name], rel=near, abs=near) for name, score in found if name in told)
    pairs = zip([score for _, score in found], told.values(), strict=False)
    return same and len(found) >= len(told) and all(mine >= theirs - near for mine, theirs in pairs)


def _rounded(score, digits):
    return None if score is None else round(score, digits)

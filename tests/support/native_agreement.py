"""Searches drawn at random, of which the plugin and langshift's own search must find the same."""

import json
from collections import Counter
from functools import partial
from itertools import zip_longest

import numpy as np
import pytest
from native_plugin import hits_of
from searched_index import WITHOUT_WEIGHTS

from langshift.retrieval.filters import FieldCheck
from langshift.retrieval.searcher import Searcher
from langshift.retrieval.settings import FUSIONS, SearchSettings
from langshift.retrieval.steps import execute

#: Modes that the query carries; of the others an answer as a whole is asked for.
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

    def __init__(self, client, index, questions, filters, *, seed=0, modes=WITHOUT_WEIGHTS, opened=None):
        """Open the index.

        Args:
            client: the cluster.
            index: its name.
            questions: a list of ``SearchQuery`` with vectors.
            filters: a function that draws (filters, filters in OpenSearch's own DSL) by random numbers.
            seed: of these.
            modes: those that are drawn.
            opened: encoders that are open already, by name.
        """
        self.client, self.counts, self.apart = client, Counter(), []
        self.searcher = Searcher(client, index, opened=opened)
        # What it finds without the plugin is what is compared with.
        self.searcher._native = False
        self._check = FieldCheck(client, self.searcher.index)
        self._questions, self._filters, self._modes = questions, filters, modes
        self._numbers = np.random.default_rng(seed)

    def compare(self, times, *, name=None, within=()):
        """Compare so many searches drawn at random.

        Args:
            times: how many.
            name: by which the plugin searches; None for the index's own. What another version answers is not compared.
            within: what an alias of that name filters by, in OpenSearch's own DSL.
        """
        for _ in range(times):
            question, setting, size, (filters, queries) = self._drawn()
            clauses, all_ = (self._check.checked(filters, [*queries, *more]) for more in ((), within))
            stands_for = self.searcher.resolve(setting).setting.mode
            doors = {"answer": partial(by_answer, filters=filters, queries=queries)}
            if stands_for in QUERY_MODES:
                doors["query"] = partial(by_query, clauses=clauses.clauses)
            found = {
                door: ask(self.client, name or self.searcher.index.name, question, setting, size)
                for door, ask in doors.items()
            }
            # The cluster's own fusion reckons in single precision, and ranks what is alike by words as it comes.
            legs = setting.mode == "hybrid"
            plan = self.searcher.plan(question, setting, size=size, filters=all_, source=False, legs=legs)
            version = self.searcher.index.index
            wanted = [_told(hit) for hit in execute(self.client, version, plan).hits]
            for door, (answered, hits) in found.items():
                if answered not in {version, None}:
                    continue
                try:
                    require_same(hits, wanted, members=door == "answer")
                except AssertionError as error:
                    self.apart.append((door, question.words, question.language, setting, size, filters, queries, error))
                self._count(door, setting, stands_for, filters or queries or within)

    def _drawn(self):
        numbers = self._numbers
        question = self._questions[numbers.integers(len(self._questions))]
        if numbers.random() < 0.2:
            question = question._replace(language=str(numbers.choice(OTHER_LANGUAGES)))
        mode = str(numbers.choice(self._modes))
        how = {"preference": float(numbers.choice(PREFERENCES)), "one_per_group": bool(numbers.random() < 0.4)}
        if mode == "hybrid":
            how |= {"fusion": str(numbers.choice(FUSIONS)), "lexical_weight": round(float(numbers.random()), 2)}
        filters = self._filters(numbers) if numbers.random() < 0.5 else ({}, [])
        return question, SearchSettings(mode, **how), int(numbers.choice(SIZES)), filters

    def _count(self, door, setting, stands_for, filtered):
        mode = f"auto ({stands_for})" if setting.mode == "auto" else setting.mode
        told = ["all", f"by {door}", mode]
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
    """What the plugin's query finds: the version, None without hits, and of each hit id, score, and no others."""
    body = {"size": size, "query": query_of(question, setting, clauses), "_source": False}
    answer = client.search(index=name, body=body)
    (version,) = {hit["_index"] for hit in answer["hits"]["hits"]} or {None}
    return version, [(*hit, []) for hit in hits_of(answer)]


def by_answer(client, name, question, setting, size, filters=None, queries=()):
    """What the plugin's own search answers: the version, and of each hit id, score, and those of its group's others."""
    body = query_of(question, setting)["langshift"] | {"size": size, "fields": []}
    body |= {"filters": filters or {}, "dsl_filter": list(queries)}
    if setting.mode == "hybrid":
        body |= {"fusion": setting.fusion, "lexical_weight": setting.lexical_weight}
    # As JSON has it, and as it would come from any client.
    path = f"/_plugins/_langshift/{name}/search"
    answer = client.transport.perform_request("POST", path, body=json.dumps(body))
    hits = [(*_shown(hit), [(*_shown(one), []) for one in hit["others"]]) for hit in answer["hits"]]
    return answer["index"], hits


def _shown(hit):
    """Of a hit the entry that it was found by, and its score."""
    return (hit["passage"] or hit)["id"], hit["score"]


def _told(hit):
    return hit.id, hit.score, [_told(one) for one in hit.others]


def require_same(found, wanted, *, members=True):
    """The same entries in the same order with the same scores, of which those by words may be far above 1.

    What has the same score as another as far as figures of single precision tell may stand in another order: the
    server orders such by where they lie in their shards, of which langshift's own search knows nothing.
    """
    scores = [score for _, score, _ in wanted]
    # Of a group, too, where the best two are alike, either may stand for it.
    alike = Counter(map(_rounded, [*scores, *(score for *_, others in wanted for _, score, _ in others)]))
    for place, (one, other) in enumerate(zip_longest(found, wanted), 1):
        at = f"place {place}: {one and one[:2]}, not {other and other[:2]}"
        assert one, at
        assert other, at
        assert one[1] == pytest.approx(other[1], rel=1e-6, abs=1e-6), at
        assert one[0] == other[0] or alike[_rounded(one[1])] > 1, at
    if members:
        groups = {name: others for name, _, others in wanted}
        for name, _, others in found:
            try:
                require_same(others, groups.get(name, others))
            except AssertionError as error:
                raise AssertionError(f"others of {name}, {error}") from None


def _rounded(score):
    return None if score is None else round(score, 5)

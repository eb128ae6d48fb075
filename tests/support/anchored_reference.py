"""What an anchored search of the made-up documents has to find, by NumPy."""

import numpy as np
from searched_index import LANGUAGES, Corpus

from langshift.debias.vectors import CommonStep
from langshift.plugin.stored_shift import StoredShift

CORPUS = Corpus()
# Two that words find best, and some that vectors would.
WITHOUT_VECTOR = ["d7", "d8", "d40", "d41", "d42", "d43", "d44"]
KEPT = {name: vector / np.linalg.norm(vector) for name, vector in CORPUS.vectors.items() if name not in WITHOUT_VECTOR}


def bm25(client, target, words, tags, clause):
    """Id -> BM25, best first, summed over title and text in these languages."""
    fields = [f"{field}.{tag}" for tag in tags for field in ("title", "text")]
    match = {"multi_match": {"query": words, "type": "most_fields", "fields": fields}}
    body = {"size": 1000, "query": {"bool": {"must": [match], "filter": clause}}, "_source": False}
    response = client.search(index=target.index.index, body=body)
    return {hit["_id"]: hit["_score"] for hit in response["hits"]["hits"]}


def without(rows):
    """The shift of an index whose documents have lost some directions, orthonormal rows."""
    step = CommonStep(np.zeros(rows.shape[1], np.float32), rows.astype(np.float32))
    return StoredShift(gamma=0.97, step=step)


def rho(vector, shift):
    """The length of a vector of length 1 outside the directions that documents have lost; 1 where there are none."""
    rows = np.zeros((0, len(vector))) if shift is None else np.float64(shift.step.directions)
    left = np.eye(len(vector)) - rows.T @ rows
    return np.linalg.norm(left @ vector)


def plain(name, shift):
    """A document's vector at length 1, without what moves it towards queries in its language."""
    if shift is None or not shift.own:
        return np.float64(KEPT[name])
    own = shift.own_vectors.get(CORPUS.languages[name], np.zeros(len(KEPT[name])))
    vector = np.float64(CORPUS.vectors[name]) - shift.weight * np.float64(own)
    return vector / np.linalg.norm(vector)


class Reference:
    """What an anchored search has to find.

    Attributes:
        trusted: id -> (p, ρ(q) · s · p^1.5) of each candidate.
        moved: the moved query, of unit length.
        bonus: on the scale of cosines.
        scores: id -> score, of all documents that have a vector.
    """

    def __init__(self, client, target, question, beta=0.0, years=()):
        allowed = [name for name in KEPT if not years or CORPUS.years[name] in years]
        query = np.float64(question.vector) / np.linalg.norm(np.float64(question.vector))
        units = {name: plain(name, target.shift) for name in KEPT}
        stored = {name: float(query @ np.float64(KEPT[name])) for name in KEPT}
        cosines = {name: float(query @ units[name]) for name in KEPT}
        mine = {name for name in CORPUS.vectors if CORPUS.languages[name] == question.language}
        own, year = [{"term": {"language": question.language}}], [{"terms": {"year": list(years)}}] if years else []
        tags = [tag for tag in LANGUAGES if tag != question.language]
        other = [{"bool": {"must_not": own}}]
        by_own = bm25(client, target, question.words, [question.language, "und"], own + year) if mine else {}
        by_others = bm25(client, target, question.words, ["und", *tags], other + year)

        nearest = sorted(allowed, key=lambda name: -stored[name])[:5]
        words = dict(list(by_own.items())[:3] + list(by_others.items())[:5])
        names = [name for name in dict.fromkeys([*nearest, *words]) if name in KEPT]
        trust, count = target.trust, len(set(question.words.split()))
        rare = np.log(1 + (len(mine) / target.index.shards + 0.5) / 0.5)
        outside = rho(query, target.shift)
        best = max((cosines[name] for name in names), default=0)
        utility = []
        for name in names:
            said = words.get(name, 0.0)
            by_words = 32 * (said / rare) ** 2 / count - 0.5 if name in mine else 1.43 * np.log(1 + said)
            utility.append(by_words - 1.95 * (best - cosines[name]) / (outside * trust.spread))
        odds = np.exp(utility)
        leads = {name: (p, trust.strength * p**1.5) for name, p in zip(names, odds / odds.sum(), strict=True)}
        self.trusted = {name: (p, lead * outside) for name, (p, lead) in leads.items() if lead >= 0.001}

        moved = query + sum(weight * units[name] for name, (_, weight) in self.trusted.items())
        self.moved = moved / np.linalg.norm(moved)
        spread = trust.spread * rho(self.moved, target.shift)
        own_leads = sum(lead for name, (_, lead) in leads.items() if name in mine)
        others = sum(lead for name, (_, lead) in leads.items() if name not in mine)
        has_vector = target.shift is not None and question.language in target.shift.own_vectors
        preferred = target.shift.own if has_vector else 0.0
        led = spread * (0.7 * own_leads + 2 * trust.counterpart * others) - preferred * (own_leads + others)
        self.bonus = led + beta if mine else 0
        self.favoured = {name for name in CORPUS.vectors if (name in mine) == (self.bonus > 0)}
        scale = trust.strength * 0.7 * spread / max(words.values(), default=1)
        given = {name: score for name, score in list(by_others.items())[:5] if name in KEPT}
        self.scores = {
            name: (
                1 + self.moved @ vector + abs(self.bonus) * (name in self.favoured) + scale * given.get(name, 0)
            ) / 2
            for name, vector in KEPT.items()
        }  # fmt: skip
        self._allowed, self._beta = allowed, beta

    def hits(self, size, shard_of):
        """(Id, score), best first, of the nearest of every shard, and with a preference those of the favoured."""
        depth = max(100, size)
        near = sorted(self._allowed, key=lambda name: -(self.moved @ KEPT[name]))
        pools = [near] + ([[name for name in near if name in self.favoured]] if self._beta else [])
        pool = {
            name
            for names in pools
            for shard in set(shard_of.values())
            for name in [one for one in names if shard_of[one] == shard][:depth]
        }
        return sorted(((name, self.scores[name]) for name in pool), key=lambda item: -item[1])[:size]

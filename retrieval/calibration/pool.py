"""What a calibration asks of an index, each thing once, and what every mode that it tries finds in that, in memory.

Of each document that is asked for, all that may be among the hits of any mode is fetched: what is nearest to the
vectors of its questions, what is best by their words, and what is nearest to each document that may lead a query, since
a query that is led finds neighbours of these. A strength, a share of words or a reranker more is then reckoned out of
the same numbers, by the functions that search itself uses, and costs the cluster nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from langshift.debias.similarity import with_norm_1
from langshift.retrieval import dsl, hits
from langshift.retrieval.calibration.changes import DEEPEST
from langshift.retrieval.calibration.questions import CalibrationQuestion, Questions, execute_all
from langshift.retrieval.hits import Leg, ScoredDoc, candidates, leg_pool, one_per_document, without_legs
from langshift.retrieval.modes import anchored, anchoring, hybrid
from langshift.retrieval.modes.legs import fuse
from langshift.retrieval.plans import Body, Response, SearchPlan
from langshift.retrieval.question import LEAST_CANDIDATES, AnchorModel, SearchContext, SearchRequest
from langshift.retrieval.request import USUAL, SearchSettings
from langshift.retrieval.rerank.features import CandidateNumbers, WordMatches, candidate_numbers
from langshift.retrieval.searcher import Searcher

# Bodies with vectors are long, as are their answers.
_VECTORS_AT_ONCE: Final = 500
# A document with less of the trust leads too little for its neighbours to be found by it.
_LEADS: Final = 0.1
_CHUNKS: Final = 8

# The document that a question was made of, its words, and their language.
_Key = tuple[int, str, str]
_Places = NDArray[np.intp]
_Scored = Sequence[tuple[int, float]]
Scores = NDArray[np.floating[Any]]


class Found(NamedTuple):
    """What a mode found for a question.

    Attributes:
        hits: entries, best first, with the scores of the mode; more than are shown.
        moved: the vector that it searched with, where it was not the question's.
    """

    hits: Sequence[ScoredDoc]
    moved: NDArray[np.float32] | None = None

    @property
    def names(self) -> list[str]:
        """The best documents, ``DEEPEST`` of them."""
        return list(dict.fromkeys(one.document for one in self.hits))[:DEEPEST]


class _WordHits(NamedTuple):
    """What a question's words found: places and BM25, best first, and how many different words these are."""

    own: _Scored
    others: _Scored
    words: int


class _Around(NamedTuple):
    """What may be found for the questions made of one document.

    Attributes:
        places: of the entries, rising.
        rows: their vectors as they are searched, of unit length, shape (entries, dimension), float32.
        languages: their primary tags.
    """

    places: _Places
    rows: NDArray[np.float32]
    languages: NDArray[Any]


class QuestionPool:
    """What the questions of a calibration may find, see the module."""

    def __init__(
        self,
        searcher: Searcher,
        questions: Questions,
        trust: AnchorModel,
        window: int,
        on_search: Callable[[], None] = lambda: None,
    ) -> None:
        """Ask the cluster.

        Args:
            searcher: over the index.
            questions: all that may be asked.
            trust: of the index, at full strength.
            window: how many documents one request may ask for.
            on_search: called after each search.

        Raises:
            LangshiftError: a search failed.
        """
        self._searcher, self._index, self._fields = searcher, searcher.index, searcher.index.fields
        self._window, self._on_search = window, on_search
        self._entries: list[ScoredDoc] = []
        self._place: dict[str, int] = {}
        self._vectors: dict[int, NDArray[np.float32]] = {}
        self._fetched = 0
        # Of documents that are hidden with all of their chunks, some more entries.
        self._most_hidden = max(len(one.hides) for one in questions) * (1 if self._fields.parent is None else _CHUNKS)
        # Leg -> what it retrieves for words in a language; of ``scores`` what each entry has for them.
        self._legs: dict[str, dict[_Key, Sequence[ScoredDoc]]] = {"lexical": {}, "sparse": {}}
        self._scores: dict[_Key, Mapping[str, float]] = {}
        # (Document, vagueness) -> places of what is nearest to the vector, nearest first.
        vectors = {(one.document, one.vagueness): dsl.vector_of(one.query) for one in questions}
        self._near = dict(zip(vectors, self._neighbours(vectors.values(), self._most_hidden), strict=True))
        self._words = self._word_hits({_key(one): one for one in questions})
        self._fetch_vectors()
        led: dict[int, list[int]] = {}
        for one in questions:
            led.setdefault(one.document, []).extend(self._leading(one, trust))
        anchors = sorted({place for places in led.values() for place in places})
        around = dict(zip(anchors, self._neighbours(self._known(anchors).values()), strict=True))
        self._fetch_vectors()
        seen: dict[int, set[int]] = {}
        for (document, _), places in self._near.items():
            seen.setdefault(document, set()).update(places)
        for (document, _, _), words in self._words.items():
            seen[document].update(place for place, _ in (*words.own, *words.others))
        for document, leading in led.items():
            seen[document].update(place for anchor in leading for place in around[anchor])
        self._around = {document: self._gathered(places) for document, places in seen.items()}

    def found(self, questions: Questions, setting: SearchSettings, trust: AnchorModel) -> list[Found]:
        """What a mode finds for questions.

        Args:
            questions: some of those that the pool was made for.
            setting: in the mode ``dense``, ``anchored`` or ``hybrid``, without a preference.
            trust: what ``anchored`` reckons with.
        """
        if setting.mode == "hybrid":
            for leg in hybrid.weights(setting).keys() - {"dense"}:
                self._ask_leg(leg, questions, setting)
            return [self._fused(one, setting) for one in questions]
        if setting.mode == "anchored":
            return [self._anchored(one, trust) for one in questions]
        return [self._ranked(one, self._nearness(one)) for one in questions]

    def numbers(
        self, questions: Questions, setting: SearchSettings, trust: AnchorModel
    ) -> list[tuple[list[str], CandidateNumbers | None]]:
        """What is known of what is reranked: the documents, and the numbers; None where there are none.

        All else is as in ``found``.

        Args:
            questions: likewise.
            setting: with a reranker that reads numbers.
            trust: likewise.
        """
        plain = setting.retrieval
        found = self.found(questions, plain, trust)
        self._fetch_vectors()
        self._ask_scores(questions)
        made = list[tuple[list[str], CandidateNumbers | None]]()
        for one, ranked in zip(questions, found, strict=True):
            pool = self._to_rerank(one, ranked, setting, trust)
            request, places = self._request(one, plain, trust), [self._place[hit.id] for hit in pool]
            known = self._known([place for place in places if place in self._vectors])
            matched = WordMatches(self._scores[_key(one)], self._words[_key(one)].words)
            given = (request, ranked.moved, pool, known, matched, trust.spread)
            made.append(([hit.document for hit in pool], candidate_numbers(*given) if pool else None))
        return made

    def held(self, question: CalibrationQuestion) -> float:
        """The share of a question's words that the best document in its language holds, 0 to 1."""
        matched, shown = self._words[_key(question)], self._shown(question)
        most = max((score for place, score in matched.own if shown(place)), default=0.0)
        documents = anchoring.own_documents(self._request(question, USUAL, None))
        return min(1.0, most / anchoring.rarest(documents) / matched.words)

    def nearest(self, question: CalibrationQuestion, without: Iterable[str] = ()) -> float:
        """The cosine of the nearest document, of those that are not hidden and not left out."""
        gone = frozenset(without)
        scores = self._nearness(question)
        best = (one for one in self._ranked(question, scores).hits if one.document not in gone)
        return 2 * max((one.score or 0.0 for one in best), default=0.0) - 1

    def _ask(self, bodies: Sequence[Body]) -> list[Response]:
        return execute_all(self._searcher, map(_one, bodies), self._on_search)

    def _add(self, found: Iterable[ScoredDoc]) -> list[int]:
        """The places of entries, which are new ones for those that have none."""
        places = []
        for one in found:
            place = self._place.setdefault(one.id, len(self._entries))
            if place == len(self._entries):
                self._entries.append(one._replace(score=None, legs={}))
            places.append(place)
        return places

    def _neighbours(self, vectors: Iterable[NDArray[np.floating[Any]]], more: int = 0) -> list[list[int]]:
        """The places of the nearest to each vector, nearest first."""
        size = min(self._window, LEAST_CANDIDATES + more)
        queries = (dsl.knn(vector.astype(np.float32), size, (), self._fields) for vector in vectors)
        answers = self._ask([dsl.body(query, size, self._fields, source=False) for query in queries])
        return [self._add(without_legs(response, self._fields)) for response in answers]

    def _word_hits(self, questions: Mapping[_Key, CalibrationQuestion]) -> dict[_Key, _WordHits]:
        """What the words of the questions find, as step 1 of ``anchored`` asks for it."""
        bodies: dict[tuple[_Key, str], Body] = {}
        for key, one in questions.items():
            request = self._request(one, SearchSettings("anchored"), None)
            for leg, body in anchored.candidate_bodies(request).items():
                if leg != "dense":
                    size = body["size"] + (self._most_hidden if leg == "own" else 0)
                    bodies[key, leg] = {**body, "size": min(self._window, size), "script_fields": {}}
        answers = dict(zip(bodies, self._ask(list(bodies.values())), strict=True))

        def scored(key: _Key, leg: str) -> _Scored:
            found = without_legs(answers[key, leg], self._fields) if (key, leg) in answers else []
            return list(zip(self._add(found), (one.score or 0.0 for one in found), strict=True))

        counts = {key: hits.count_words(answers.get((key, "own"), {})) for key in questions}
        return {key: _WordHits(scored(key, "own"), scored(key, "others"), counts[key]) for key in questions}

    def _fetch_vectors(self) -> None:
        """Fetch the vectors of entries that came since the last time; some have none."""
        new = [one.id for one in self._entries[self._fetched :]]
        step = min(_VECTORS_AT_ONCE, self._window)
        parts = [new[start : start + step] for start in range(0, len(new), step)]
        bodies = [dsl.body_with_vectors(dsl.among(part), len(part), self._fields) for part in parts]
        rows = hits.stored_vectors(*self._ask(bodies))
        self._vectors |= {self._place[name]: row for name, row in rows.items()}
        self._fetched = len(self._entries)

    def _known(self, places: Sequence[int]) -> dict[str, NDArray[np.float64]]:
        """Entry -> its vector without a preference, of unit length; of entries that have a vector."""
        if not places:
            return {}
        entries, rows = [self._entries[place] for place in places], np.array([self._vectors[at] for at in places])
        clean = anchoring.without_preference(rows, [one.language for one in entries], self._searcher.shift)
        return dict(zip((one.id for one in entries), clean, strict=True))

    def _gathered(self, seen: Iterable[int]) -> _Around:
        places = sorted(place for place in seen if place in self._vectors)
        rows = with_norm_1(np.array([self._vectors[place] for place in places])).astype(np.float32)
        return _Around(np.array(places), rows, np.array([self._entries[place].language for place in places]))

    def _request(
        self, question: CalibrationQuestion, setting: SearchSettings, trust: AnchorModel | None
    ) -> SearchRequest:
        target = SearchContext(self._index, trust=trust, shift=self._searcher.shift)
        return SearchRequest(question.query, setting, target, DEEPEST, source=False)

    def _shown(self, question: CalibrationQuestion) -> Callable[[int], bool]:
        return lambda place: self._entries[place].document not in question.hides

    def _leading(self, question: CalibrationQuestion, trust: AnchorModel) -> list[int]:
        """The places of what leads a question far enough for its neighbours to be found by it."""
        gathered = self._candidates(question)
        if not gathered.ids:
            return []
        probable = anchoring.anchor_probabilities(gathered, trust.spread * gathered.query.rho)
        leads = anchoring.weights(probable, trust.strength)
        return [self._place[name] for name, lead in zip(gathered.ids, leads, strict=True) if lead >= _LEADS]

    def _candidates(self, question: CalibrationQuestion) -> anchoring.Candidates:
        """What ``anchored.collect_candidates`` gathers."""
        shown, matched = self._shown(question), self._words[_key(question)]
        near = list(filter(shown, self._near[question.document, question.vagueness]))[: anchored.NEAREST]
        own = [one for one in matched.own if shown(one[0])][: anchored.OWN_WORDS]
        scores = {self._entries[place].id: score for place, score in (*own, *matched.others)}
        names = dict.fromkeys([*(self._entries[place].id for place in near), *scores])
        places = [place for name in names if (place := self._place[name]) in self._vectors]
        languages = {self._entries[place].id: self._entries[place].language for place in places}
        request = self._request(question, USUAL, None)
        return anchoring.candidates_of(request, self._known(places), languages, scores, matched.words)

    def _nearness(self, question: CalibrationQuestion, vector: NDArray[np.float32] | None = None) -> Scores:
        """Scores ``(1 + cos) / 2`` of what is around to the question's vector or another, shape (entries,)."""
        unit = with_norm_1(dsl.vector_of(question.query) if vector is None else vector).astype(np.float32)
        scores: Scores = (1 + self._around[question.document].rows @ unit) / 2.0
        return scores

    def _ranked(self, question: CalibrationQuestion, scores: Scores, moved: NDArray[np.float32] | None = None) -> Found:
        """As many as are looked at, ranked by scores, shape (entries,); what has none is -inf."""
        around, shown = self._around[question.document], self._shown(question)
        found, documents = list[ScoredDoc](), set[str]()
        for at in np.argsort(-scores, kind="stable").tolist():
            # Chunks of few documents are not enough.
            enough = len(found) >= LEAST_CANDIDATES and len(documents) >= USUAL.rerank_depth
            if enough or scores[at] == -np.inf:
                break
            if shown(place := int(around.places[at])):
                found.append(self._entries[place]._replace(score=float(scores[at])))
                documents.add(found[-1].document)
        return Found(found, moved)

    def _anchored(self, question: CalibrationQuestion, trust: AnchorModel) -> Found:
        led = self._led(question, trust)
        if led is None:
            return Found(())
        scores, nearness, moved = led
        # What is given for languages and words orders the nearest alone.
        nearest = self._ranked(question, nearness).hits
        places = np.searchsorted(self._around[question.document].places, [self._place[one.id] for one in nearest])
        looked_at = np.full(len(scores), -np.inf)
        looked_at[places] = scores[places]
        return self._ranked(question, looked_at, moved)

    def _led(
        self, question: CalibrationQuestion, trust: AnchorModel
    ) -> tuple[Scores, Scores, NDArray[np.float32]] | None:
        """The scores that ``anchored`` gives what is around, those of nearness alone, and the moved query."""
        gathered, around = self._candidates(question), self._around[question.document]
        if not gathered.ids:
            return None
        how = anchoring.scoring(gathered, self._request(question, SearchSettings("anchored"), trust))
        moved = dsl.vector_of(question.query) if how.moved is None else how.moved
        nearness = self._nearness(question, moved)
        scores = nearness.astype(np.float64)
        scores[(around.languages == question.query.language) == (how.bonus > 0)] += abs(how.bonus)
        for name, given in how.given.items():
            scores[np.searchsorted(around.places, self._place[name])] += given
        return scores, nearness, moved

    def _ask_leg(self, leg: str, questions: Questions, setting: SearchSettings) -> None:
        """Fetch what a leg of ``hybrid`` retrieves for each question, where that is not there yet."""
        known, size = self._legs[leg], min(self._window, LEAST_CANDIDATES + self._most_hidden)
        asked = {_key(one): one for one in questions if _key(one) not in known}
        queries = [dsl.leg_query(leg, self._request(one, setting, None)) for one in asked.values() if _asks(leg, one)]
        answers = iter(self._ask([dsl.body(query, size, self._fields, source=False) for query in queries]))
        for key, one in asked.items():
            known[key] = candidates(next(answers), leg, self._fields) if _asks(leg, one) else ()
            self._add(known[key])

    def _fused(self, question: CalibrationQuestion, setting: SearchSettings) -> Found:
        request, shown = self._request(question, setting, None), self._shown(question)
        near = self._ranked(question, self._nearness(question)).hits[:LEAST_CANDIDATES]
        retrieved = {"dense": [one._replace(legs={"dense": Leg(one.score or 0.0, None)}) for one in near]}
        for leg in hybrid.shares(request).keys() - {"dense"}:
            found = [one for one in self._legs[leg][_key(question)] if shown(self._place[one.id])]
            retrieved[leg] = found[:LEAST_CANDIDATES]
        pools = {leg: leg_pool({(leg, "all"): found}, leg, None) for leg, found in retrieved.items()}
        ranked, _ = fuse(pools, request, hybrid.legs_of(request))
        return Found(ranked)

    def _ask_scores(self, questions: Questions) -> None:
        """Fetch what each entry around has for the words of each question, where that is not there yet."""
        asked = {_key(one): one for one in questions if _key(one) not in self._scores}
        bodies = []
        for key, one in asked.items():
            language, around = one.query.language, self._around[one.document].places
            among = [self._entries[int(at)].id for at in around]
            names = dict.fromkeys([*among, *(hit.id for hit in self._legs["lexical"].get(key, ()))])
            others = [tag for tag in self._index.languages if tag != language]
            clauses = dsl.filter_clauses({"_id": list(names)})
            matching = dsl.matching(one.query.words, language, others, clauses, self._fields)
            bodies.append(dsl.body(matching, min(self._window, len(names)), self._fields, source=False))
        for key, response in zip(asked, self._ask(bodies), strict=True):
            self._scores[key] = {one.id: one.score or 0.0 for one in without_legs(response, self._fields)}

    def _to_rerank(
        self, question: CalibrationQuestion, found: Found, setting: SearchSettings, trust: AnchorModel
    ) -> list[ScoredDoc]:
        """The candidates of a reranker, as ``stage.search_candidates`` gathers them."""
        best = one_per_document(found.hits)[: setting.rerank_depth]
        seen, around = {one.document for one in best}, self._around[question.document]
        nearness = self._nearness(question)
        known = {one.id: one.score or 0.0 for one in found.hits}
        scores = nearness
        if setting.mode == "anchored" and (led := self._led(question, trust)) is not None:
            scores, _, _ = led
        elif setting.mode == "hybrid":
            # It gives nothing to what it did not retrieve.
            scores = np.array([known.get(self._entries[place].id, 0.0) for place in around.places.tolist()])
        # A document has the score of its best chunk, whichever is nearest.
        best_of = dict[str, float]()
        for place, score in zip(around.places.tolist(), scores.tolist(), strict=True):
            document = self._entries[place].document
            best_of[document] = max(score, best_of.get(document, score))
        order, shown = np.argsort(-nearness, kind="stable"), self._shown(question)
        more = list[ScoredDoc]()
        for tag in self._index.languages:
            of_tag = (int(around.places[at]) for at in order[around.languages[order] == tag].tolist())
            nearest = one_per_document(self._entries[place] for place in of_tag if shown(place))
            more += nearest[: setting.rerank_per_language]
        more = [one._replace(score=best_of[one.document]) for one in more if one.document not in seen]
        return [*best, *one_per_document(more)]


def _key(question: CalibrationQuestion) -> _Key:
    """What the words of a question are known by."""
    return question.document, question.query.words, question.query.language


def _asks(leg: str, question: CalibrationQuestion) -> bool:
    """Whether a question has anything to ask a leg for: no weights are none."""
    return leg != "sparse" or bool(question.query.weights)


def _one(body: Body) -> SearchPlan[Response]:
    (response,) = yield (body,)
    return response

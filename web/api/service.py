"""What the interface does for each request, and how many at once: searches, indices, embeddings, reranking."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import UNSET, Struct, structs
from numpy.typing import NDArray

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.base import Encoder, identity
from langshift.errors import MissingIndexError
from langshift.plugin.inventory import searchable, versions_of
from langshift.plugin.versions import alias_of, check_name
from langshift.retrieval.filters import ClientFilters
from langshift.retrieval.request import SearchArguments, by_features, read_arguments
from langshift.retrieval.rerank.rerankers import TextReranker, open_reranker
from langshift.retrieval.searcher import ENCODING
from langshift.retrieval.service import VersionedSearcher
from langshift.web.api import contract
from langshift.web.api.errors import ApiError
from langshift.web.api.metrics import Metrics
from langshift.web.api.options import ALLOWED
from langshift.web.context import AppContext, LruCache

#: Requests that are worked on at once: most of the time of each is spent waiting for the cluster.
AT_ONCE: Final = 8
#: Encoders that may be asked for by name: those that come with langshift, and read nothing but their own package.
ENCODERS: Final = ("e5-small", "use-m")
# Vectors of texts that were asked for last; a query is often asked for by many.
_KEPT: Final = 10_000


class Turns:
    """Lets requests in one after another, in the order in which they came; who would wait too long is sent away."""

    def __init__(self, seconds: float, on_wait: Callable[[int], None]) -> None:
        """Let nobody wait longer than so many seconds; ``on_wait`` is told how many more wait, or fewer."""
        self._seconds, self._free, self._on_wait = seconds, asyncio.Semaphore(AT_ONCE), on_wait

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A turn.

        Raises:
            ApiError: it did not come in time.
        """
        self._on_wait(1)
        try:
            await asyncio.wait_for(self._free.acquire(), self._seconds)
        except asyncio.TimeoutError:
            again = {"retry-after": str(max(1, round(self._seconds)))}
            raise ApiError("busy", "The service is busy: ask again in a moment.", again) from None
        finally:
            self._on_wait(-1)
        try:
            yield
        finally:
            self._free.release()


class SearchService:
    """Carries out what requests ask for; safe to use from several threads.

    Attributes:
        console: the cluster, and what is open on it.
    """

    def __init__(self, console: AppContext, rerankers: Sequence[str] = (), metrics: Metrics | None = None) -> None:
        """Search on a cluster.

        Args:
            console: the cluster, and what is open on it.
            rerankers: that may be asked for, beside ``features``; each is opened at its first use.
            metrics: where searches are counted; None for nowhere.
        """
        self.console, self._metrics = console, metrics
        self._named = tuple(rerankers)
        self._rerankers = LruCache[TextReranker](max(1, len(rerankers)))
        self._encoders = LruCache[Encoder](len(ENCODERS))
        self._vectors = LruCache[NDArray[np.float32]](_KEPT)

    def search(self, body: Struct) -> dict[str, Any]:
        """What was found.

        Args:
            body: a ``SearchBody``.

        Raises:
            ApiError: the reranker is not one that may be asked for.
            LangshiftError: as ``langshift.search``.
        """
        # What is null, as what is left out, is what is usual.
        given = {name: value for name, value in structs.asdict(body).items() if value not in (UNSET, None)}
        index, words, rerank = given.pop("index"), given.pop("query"), given.get("rerank")
        if rerank not in (None, "features", *self._named):
            known = ", ".join(["features", *self._named])
            raise ApiError("invalid_request", f"There is no reranker {rerank!r} here: choose one of {known}.")
        if "filters" in given or "dsl_filter" in given:
            ClientFilters(given.get("filters", {}), given.get("dsl_filter", ()))
        opened = self._opened(index)
        answer = opened.search(words, read_arguments(SearchArguments, contract.in_json, **given)).to_dict()
        if self._metrics is not None:
            self._metrics.searches.labels(index, answer["mode"], answer["language"]).inc()
            for hit in answer["hits"]:
                self._metrics.hits.labels(index, hit["language"]).inc()
        return answer

    def indices(self, _: None = None) -> contract.IndicesAnswer:
        """The indices whose live version can be searched."""
        allowed = ALLOWED.get()
        return contract.IndicesAnswer(
            [
                contract.KnownIndex(
                    name=one.name,
                    version=one.index,
                    documents=one.documents,
                    encoder=one.fingerprint.encoder,
                    dimension=one.fingerprint.dimension,
                    alpha=one.fingerprint.alpha,
                    gamma=one.fingerprint.gamma,
                    own=one.fingerprint.own,
                    languages=dict(one.counts),
                )
                for one in searchable(self.console.client, versions_of(self.console.client))
                if allowed is None or one.name in allowed
            ]
        )

    def embeddings(self, body: contract.EmbeddingsBody) -> contract.EmbeddingsAnswer:
        """Vectors as the encoder makes them, which is how queries are searched with.

        Raises:
            ApiError: there are too many texts, or too long ones, or there is no such model.
        """
        texts = [body.input] if isinstance(body.input, str) else body.input
        _require_short(texts)
        encoder = self._encoder(body.model)
        if body.dimensions not in (None, encoder.dimension):
            raise ApiError(
                "invalid_request", f"Vectors of {body.model} have {encoder.dimension} dimensions: leave them whole."
            )
        made = self._encoded(encoder, body.input_type, texts)
        tokens = sum(encoder.count_tokens(texts))
        as_text = body.encoding_format == "base64"
        vectors = [b64encode(one.astype("<f4").tobytes()).decode() if as_text else one.tolist() for one in made]
        return contract.EmbeddingsAnswer(
            data=[contract.Embedding(index=place, embedding=one) for place, one in enumerate(vectors)],
            model=body.model,
            usage=contract.Usage(prompt_tokens=tokens, total_tokens=tokens),
        )

    def rerank(self, body: contract.RerankBody) -> contract.RerankAnswer:
        """Texts in the order of their relevance.

        Raises:
            ApiError: there are too long texts, or there is no such model.
        """
        texts = [one if isinstance(one, str) else one.text for one in body.documents]
        _require_short([body.query, *texts])
        if body.model not in self._named or by_features(body.model):
            known = ", ".join(one for one in self._named if not by_features(one))
            said = f"choose one of {known}" if known else "the service was started without one (--reranker)"
            raise ApiError("not_found", f"There is no reranker {body.model!r} here: {said}.")
        model = self._rerankers.of(body.model, partial(open_reranker, body.model))
        scores = model.scores(body.query, texts)
        best = np.argsort(-scores, kind="stable")[: body.top_n]
        results = [contract.RerankResult(index=int(place), relevance_score=float(scores[place])) for place in best]
        if body.return_documents:
            for one in results:
                one.document = contract.RerankText(texts[one.index])
        return contract.RerankAnswer(model=body.model, results=results)

    def ready(self) -> bool:
        """Whether the cluster answers."""
        try:
            return bool(self.console.client.ping())
        except Exception:
            return False

    def _encoder(self, model: str) -> Encoder:
        """The encoder of a name, or of an index."""
        if model in ENCODERS:
            return self._encoders.of(model, partial(open_encoder, model))
        check_name(model)
        return self._opened(model).current().searcher.encoder

    def _opened(self, name: str) -> VersionedSearcher:
        """An index; what the client may not ask for is not there."""
        allowed = ALLOWED.get()
        if allowed is not None and alias_of(name) not in allowed:
            raise MissingIndexError(name, f"There is no index {name} for this client.")
        return self.console.opened(name)

    def _encoded(self, encoder: Encoder, kind: str, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """A vector for each text; one thread at a time encodes, and what is known already is not encoded again."""
        of = (*identity(encoder).values(), kind)
        known = {text: self._vectors.get((of, text)) for text in dict.fromkeys(texts)}
        if new := [text for text, vector in known.items() if vector is None]:
            encode = encoder.encode_queries if kind == "query" else encoder.encode_documents
            with ENCODING:
                made = encode(new)
            for text, vector in zip(new, made, strict=True):
                known[text] = self._vectors.of((of, text), vector.copy)
        return [vector for text in texts if (vector := known[text]) is not None]


def _require_short(texts: Sequence[str]) -> None:
    """Refuse what would keep others waiting.

    Raises:
        ApiError: the texts have too many characters together, or one has none.
    """
    if sum(map(len, texts)) > contract.MOST_CHARACTERS:
        most = f"{contract.MOST_CHARACTERS:,}"
        raise ApiError("too_large", f"The texts have more than {most} characters: send fewer at a time.")
    if not all(text.strip() for text in texts):
        raise ApiError("invalid_request", "A text is empty: leave it out.")

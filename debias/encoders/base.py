"""What every encoder offers, how it reads texts, and what is known of vectors that come with the data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.prompts import Prefixes
from langshift.errors import UsageError
from langshift.normal_form import of_normal_form
from langshift.reporting import note

# Vectors as encoders make them, and what is made of them.
Matrix = NDArray[np.float32]

NORM_TOLERANCE = 1e-3

T = TypeVar("T")


Pooling = Literal["mean", "cls", "last"]
#: Characters of a text that are read: beyond these little is left to read, but much to cut into tokens.
LONGEST: Final = 20_000
#: More tokens no model reads of a text; a tokenizer that knows no limit names 10^30.
MOST_TOKENS: Final = 1 << 20
#: Attributes of ``Reading``, and names of the options for them.
READING_NAMES: Final = ("query_prefix", "document_prefix", "pooling", "max_tokens")


@dataclass(frozen=True)
class Reading:
    """How a model that is not langshift's own is to read texts; None leaves each to what is known of it.

    Attributes:
        query_prefix: text put before every query.
        document_prefix: text put before every document.
        pooling: what of the tokens' vectors becomes the text's: their mean, or the first or the last one (``st:``).
        max_tokens: how many tokens of a text are read (``st:``).
        recorded: whether an index or a file says so: then nothing is assumed that a person must be told of.
    """

    query_prefix: str | None = None
    document_prefix: str | None = None
    pooling: Pooling | None = None
    max_tokens: int | None = None
    recorded: bool = False

    def of(self, made: object, encoder: str) -> Reading:
        """Return it as vectors were made with an encoder of this name, as far as nothing else is wanted or recorded.

        Args:
            made: a ``Fingerprint`` or ``LanguageVectors``, which have attributes of the same names.
            encoder: its name.
        """
        if self.recorded or encoder.partition(":")[0] not in ("st", "http", "https"):
            return self
        mine = {name: getattr(self, name) for name in READING_NAMES}
        return Reading(**{n: getattr(made, n) if one is None else one for n, one in mine.items()}, recorded=True)

    def prefixes(self, known: Prefixes | None, encoder: str) -> Prefixes:
        """Return the prefixes to use, of which ``known`` are those of the model; say so where none are known."""
        given = (self.query_prefix, self.document_prefix)
        if known is None and given == (None, None):
            note_once(f"There is no prefix known for {encoder}: none is used (--query-prefix, --document-prefix).")
        return Prefixes(*(own if own is not None else of for own, of in zip(given, known or ("", ""), strict=True)))

    def require_only(self, allowed: Sequence[str], encoder: str, reason: str) -> None:
        """Refuse what an encoder cannot be told.

        Raises:
            UsageError: naming the options that are not allowed, and the reason.
        """
        refused = [name for name in READING_NAMES if name not in allowed and getattr(self, name) is not None]
        if given := [f"--{name.replace('_', '-')}" for name in refused]:
            raise UsageError(f"The encoder {encoder} takes no {' or '.join(given)}: {reason}. Leave it out.")


@cache
def note_once(sentence: str) -> None:
    """Say what was assumed of a model, however often it is opened."""
    note(sentence)


#: As the model is known to.
AS_KNOWN = Reading()


class Encoder(Protocol):
    """What every encoder offers. Whatever it reads is in normal form: canonically equal texts have one vector.

    Attributes:
        id: how it is asked for, such as ``use-m``. An index keeps it, and a search opens the encoder by it.
        revision: version of the weights, by their content and not their place; two that differ are never mixed.
        dimension: length of a vector.
        normalised: whether the vectors have norm 1 as the model makes them.
        query_prefix: text put before every query; empty if nothing else is said.
        document_prefix: text put before every document; likewise.
        pooling: how it pools tokens where that is not the model's own way; None as it is if nothing else is said.
        max_tokens: how many tokens it reads where that is not the usual number; None likewise.
        longest: how many characters of a text are read; None where all are, as it is if nothing else is said.
        window: how many tokens of a text are read at a time; None where nobody knows, as it is likewise.
        batch: how many documents it is best given at a time.
    """

    id: str
    revision: str
    dimension: int
    normalised: bool
    query_prefix: str = ""
    document_prefix: str = ""
    pooling: Pooling | None = None
    max_tokens: int | None = None
    longest: int | None = None
    window: int | None = None
    batch: int = 256

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - the protocol's
        """Have no encoder, and no caller, forget the normal form."""
        super().__init_subclass__(**options)
        for name in ("count_tokens", "encode_documents", "encode_queries"):
            if name in vars(cls):
                setattr(cls, name, of_normal_form(vars(cls)[name]))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens documents have, with all that is put around them; where nobody knows, as many as bytes."""
        return [len(text.encode()) for text in texts]

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Vectors of documents, shape (len(texts), dimension), float32, not normalised by us."""

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Vectors of queries, shape (len(texts), dimension), float32, not normalised by us."""


class VectorSpec(NamedTuple):
    """What is known of vectors that come with the data, and that no encoder here makes.

    Attributes:
        dimension: length of a vector.
        normalised: whether they have norm 1.
    """

    dimension: int
    normalised: bool


def identity(encoder: Encoder) -> dict[str, Any]:
    """What a fingerprint says of the encoder, by the fingerprint's names."""
    names = ("revision", "query_prefix", "document_prefix", "dimension", "normalised", "pooling", "max_tokens")
    return {"encoder": encoder.id, **{name: getattr(encoder, name, None) for name in names}}


def is_given(name: str) -> bool:
    """Whether an encoder of this name or id takes vectors that come with the data."""
    return name.partition(":")[0] == "given"


def have_norm_1(vectors: Matrix) -> bool:
    """Whether vectors, shape (n, d), are normalised, as far as rounding them for transport leaves them so."""
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    # A single broken vector does not make the others another model's.
    return bool(np.median(np.abs(norms - 1)) < NORM_TOLERANCE)


def processors() -> int:
    """How many processors this process may use, and no more than OMP_NUM_THREADS where that is set.

    Counts by affinity and by the limit of a container. One thread more than there are processors for makes the model
    use-m ten times slower, not faster.
    """
    from loky import cpu_count

    available: int = cpu_count()
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(wanted)) if wanted.isdecimal() and int(wanted) else available


@cache
def package_digest(package: str, *names: str) -> str:
    """12 hexadecimal digits of files of a package, its weights and vocabulary: the same in every release with these."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(resources.files(package).joinpath(name).read_bytes())
    return digest.hexdigest()[:12]

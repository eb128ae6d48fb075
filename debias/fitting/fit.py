"""Fit language vectors on parallel text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from langshift.debias.debiaser import mean_difference
from langshift.debias.encoders.base import Encoder, identity
from langshift.debias.fitting.directions import Scatter, preference_vectors, principal_directions, spanned_directions
from langshift.debias.fitting.reliability import LanguageEvidence, reliability
from langshift.debias.fitting.sums import BatchEmbeddings, BatchEncoder, LanguageSums, PairSums, add_queries
from langshift.debias.parallel.columns import LeftOut, ParallelText, require_held
from langshift.debias.vectors import DOCUMENTS, QUERIES, LanguageVectors, Vectors
from langshift.errors import UsageError
from langshift.languages import text_language
from langshift.retry import prefetch
from langshift.wording import pluralize

#: Called with each batch's embeddings by language, as ``BatchEncoder.sides`` makes them, and the pivots' tags.
OnSides = Callable[[Mapping[str, BatchEmbeddings], Sequence[str]], None]


def fit(
    source: ParallelText,
    pivots: Sequence[str],
    encoder: Encoder,
    *,
    directions: int | None = None,
    on_rows: Callable[[int, int | None], None] | None = None,
    on_omitted: Callable[[str, str, str], None] | None = None,
    on_sides: OnSides | None = None,
) -> dict[str, LanguageVectors]:
    """Fit V_ℓ of every language towards every pivot (Shift, Eq. 1) in one pass, each text encoded once.

    Memory is O(languages × pivots × dimension + dimension²), whatever the number of pairs. A pair with an empty side
    is left out and counted as missing. Beside V_ℓ there are always the evidence by which ``langshift vectors check``
    judges, the pivot's means m_D and m_Q of both sides, the directions B of queries, the preference vectors u_ℓ and,
    where the encoder encodes queries in another way, V_ℓ of texts encoded as queries.

    Args:
        source: the parallel text, or given vectors.
        pivots: the pivot languages, in any form of their tags.
        encoder: the encoder; ``given`` for given vectors.
        directions: how many directions of queries; None for all that matter, see ``principal_directions``.
        on_rows: called with the rows done and how many there are, where that is known.
        on_omitted: called with a pivot, a language that has fewer than two pairs with it, and a sentence on that.
        on_sides: for whoever fits something else on the same embeddings.

    Returns:
        The language vectors by pivot, in the order given, of the languages that have two pairs at least.

    Raises:
        UsageError: a language that there is not, a pivot with which no language has two pairs, texts or
            vectors that the encoder cannot take, more directions than the languages span.
        LangshiftError: the encoder gave a vector that is not a number.
    """
    holds = "text" if source.dimension is None else "vectors"
    tags = list(dict.fromkeys(require_held(pivot, source.languages, source.shown, holds) for pivot in pivots))
    embedding = BatchEncoder(source, encoder)
    languages = {language: LanguageSums(embedding.dimension) for language in source.languages}
    pairs = [
        PairSums(language, pivot, embedding.dimension)
        for pivot in tags
        for language in source.languages
        if language != pivot
    ]
    asked, written = (Scatter(embedding.dimension, source.languages) for _ in range(2))
    done = 0
    # Of small products alone, several threads would take longer, and wait in each other's way.
    small = embedding.given and on_sides is None
    with threadpool_limits(1 if small else None, user_api="blas"):
        for rows in prefetch(source.batches(embedding.batch)):
            sides = embedding.sides(rows, tags)
            if on_sides:
                on_sides(sides, tags)
            closely = embedding.closely(done, rows)
            units = {language: languages[language].add(side, closely) for language, side in sides.items()}
            queries = add_queries(pairs, sides, rows, embedding) if embedding.has_queries else None
            for language, side in sides.items():
                some = side.vectors[np.flatnonzero(side.present)[: written.lacks(language)]]
                written.add(language, some, unit=False)
                asked.add(language, some if queries is None else queries[language], unit=True)
            for pair in pairs:
                one, pivot = pair.language, pair.pivot
                pair.add(sides[one], sides[pivot], units[one], units[pivot], rows.places)
            done += len(rows.places)
            if on_rows:
                on_rows(done, source.total)
    fitted = _with_enough(pairs, tags, source, on_omitted)
    own = preference_vectors(asked)
    made = {}
    for pivot in tags:
        chosen = [pair for pair in fitted if pair.pivot == pivot]
        without = _made(pivot, chosen, languages, done, source, encoder).with_rank(directions)
        made[pivot] = _with_preference(without, own, written)
    return made


# Of fewer pairs nothing can be said of how far they agree.
_FEWEST = 2


def _with_enough(
    pairs: Sequence[PairSums],
    pivots: Sequence[str],
    source: ParallelText,
    on_omitted: Callable[[str, str, str], None] | None,
) -> list[PairSums]:
    """Those of which a language vector can be fitted.

    Raises:
        UsageError: a pivot has none.
    """
    fitted = [pair for pair in pairs if pair.blocks.pairs >= _FEWEST]
    for pivot in pivots:
        if not any(pair.pivot == pivot for pair in fitted):
            few = "; ".join(_too_few(pair, source) for pair in pairs if pair.pivot == pivot)
            raise UsageError(f"{source.shown}: {few}: add more.")
    for pair in pairs:
        if on_omitted and pair.blocks.pairs < _FEWEST:
            on_omitted(pair.pivot, pair.language, f"{_too_few(pair, source)}: it is left out.")
    return fitted


def _too_few(pair: PairSums, source: ParallelText) -> str:
    count, left_out = pair.blocks.pairs, source.left_out.get(pair.language)
    why = f", with {left_out.words} left out" if left_out and left_out.words else ""
    pairs = pluralize(count, "pair") if count else "no pairs"
    return f"{pair.language} has {pairs} with the pivot {pair.pivot}{why}, but a language vector needs at least two"


def _made(
    pivot: str,
    pairs: Sequence[PairSums],
    languages: dict[str, LanguageSums],
    rows: int,
    source: ParallelText,
    encoder: Encoder,
) -> LanguageVectors:
    mean = languages[pivot].mean.astype("float32")
    of_queries = np.zeros(source.dimension or encoder.dimension, np.float64)
    asked = sum(pair.add_pivot_queries(of_queries) for pair in pairs)
    # Where the encoder makes no difference between documents and queries, their means are the same.
    common = {DOCUMENTS: mean, QUERIES: mean_difference(of_queries, asked) if asked else mean}
    return LanguageVectors(
        pivot=pivot,
        vectors={pair.language: mean_difference(pair.blocks.difference, pair.blocks.pairs) for pair in pairs},
        pairs={pair.language: pair.blocks.pairs for pair in pairs},
        **{**identity(encoder), "dimension": source.dimension or encoder.dimension},
        source=source.shown,
        query_vectors={pair.language: found for pair in pairs if (found := pair.query_vector()) is not None},
        common=common,
        evidence={pair.language: _evidence(pair, languages, rows, source).to_json() for pair in pairs},
    )


def _with_preference(made: LanguageVectors, own: Vectors, documents: Scatter) -> LanguageVectors:
    """These with preference vectors of their languages, and the scatter of documents; without directions neither."""
    means = made.query_means
    if made.step is None or means is None:
        return made
    spoken = {text_language(tag) for tag in (*made.vectors, made.pivot)}
    # Along all that the means span, so that other ranks can be had.
    spanned = principal_directions(means, spanned_directions(means))
    known = {tag: one for tag, one in own.items() if tag in spoken}
    return replace(made, own_vectors=known, scatter=documents.along(spanned))


def _evidence(pair: PairSums, languages: dict[str, LanguageSums], rows: int, source: ParallelText) -> LanguageEvidence:
    left_out = source.left_out.get(pair.language, LeftOut())
    return LanguageEvidence(
        pairs=pair.blocks.pairs,
        missing=rows - pair.blocks.pairs,
        norm=languages[pair.language].norm,
        pivot_norm=languages[pair.pivot].norm,
        reliability=reliability(pair.blocks.sums, pair.blocks.counts),
        alignment=pair.alignment.result(),
        identical=left_out.identical,
        other_language=dict(sorted(left_out.detected.items())),
    )

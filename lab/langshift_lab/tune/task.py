"""The retrieval tasks that settings are chosen by: a judged dataset, or one that parallel text makes.

Of parallel text questions are cut out of items, and the items are to be found in every language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from langshift.debias.encoders.base import Encoder
from langshift.errors import LangshiftError, UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE, Dataset, DatasetDocument, DatasetQuery, clusters, gather
from langshift.evaluate.datasets.texts import DatasetLanguages
from langshift.languages import UNDETERMINED, primary
from langshift.wording import pluralize
from langshift_lab.methods.vectors import MethodVectors
from langshift_lab.offline.encoding import EncodedDataset, Matrix, encode_texts, first_unusable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from langshift.debias.parallel.columns import ParallelText


LEAST = 100
# As many questions in all as a few minutes on two cores allow.
_QUESTIONS = 4_800
_MOST = 600
_ITEMS_AT_ONCE = 1_024
# A question has about this many words, as people's have.
_WORDS = 10
_LARGEST_SHARE = 0.5


@dataclass(frozen=True)
class ParallelItems:
    """Items in several languages, evenly spread over parallel text.

    Attributes:
        texts: tag -> one text an item, "" where there is none; the pivot language, which every item has, first.
        pairs: tag -> how many items of the whole parallel text have both this language and the pivot.
    """

    texts: Mapping[str, Sequence[str]]
    pairs: Mapping[str, int]

    @property
    def pivot(self) -> str:
        """The pivot language's tag."""
        return next(iter(self.texts))

    @property
    def count(self) -> int:
        """How many items there are."""
        return len(self.texts[self.pivot])


def default_sample(languages: int) -> int:
    """How many items are taken where nobody says: 600, less where there are more than eight languages."""
    return max(LEAST, min(_MOST, _QUESTIONS // languages))


def sample_items(source: ParallelText, pivot: str, languages: Sequence[str], wanted: int) -> ParallelItems:
    """Read parallel text once and keep items evenly spread over it, in memory bounded by how many are wanted.

    Items without the pivot language, or with no other language, are left aside.

    Args:
        source: parallel text.
        pivot: tag of the pivot language.
        languages: tags of the other languages.
        wanted: how many items to keep, at most.

    Raises:
        UsageError: the text has fewer items than anything can be learned from.
    """
    tags = [pivot, *languages]
    pairs = dict.fromkeys(languages, 0)
    sampled: list[tuple[str, ...]] = []
    seen, stride = 0, 1
    for rows in source.batches(_ITEMS_AT_ONCE):
        for item in zip(*(rows.texts[tag] for tag in tags), strict=True):
            if not item[0] or not any(item[1:]):
                continue
            for tag, text in zip(languages, item[1:], strict=True):
                pairs[tag] += bool(text)
            if seen % stride == 0:
                sampled.append(item)
            seen += 1
            if len(sampled) == 2 * wanted:
                sampled, stride = sampled[::2], 2 * stride
    if seen < LEAST:
        raise UsageError(
            f"{source.shown}: only {seen:,} items have text in {pivot} and another language of the vectors, and at "
            f"least {LEAST} are needed: give more parallel text, or join fewer lines."
        )
    places = np.linspace(0, len(sampled) - 1, min(wanted, len(sampled))).round().astype(int)
    columns = zip(*(sampled[place] for place in places), strict=True)
    return ParallelItems(dict(zip(tags, columns, strict=True)), pairs)


def well_covered(items: ParallelItems) -> tuple[ParallelItems, list[str]]:
    """The items in the languages in which enough of them can be asked for, and the languages in which too few can.

    Raises:
        UsageError: the pivot language is one of the latter, or no language beside it is left.
    """
    share = question_share(items)
    counts = {tag: sum(question(text, share) is not None for text in of if text) for tag, of in items.texts.items()}
    few = [tag for tag, count in counts.items() if count < LEAST]
    texts = {tag: of for tag, of in items.texts.items() if tag not in few}
    rows = [row for row in zip(*texts.values(), strict=True) if any(row[1:])]
    if items.pivot in few or len(rows) < LEAST:
        found = ", ".join(f"{count:,} in {tag}" for tag, count in counts.items())
        raise UsageError(
            f"Of the {items.count:,} items sampled, too few have text to cut a query from in {items.pivot} and "
            f"another language ({found}; at least {LEAST} are needed): raise --sample, or give more parallel text."
        )
    return ParallelItems(dict(zip(texts, zip(*rows, strict=True), strict=True)), items.pairs), few


def question_share(items: ParallelItems) -> float:
    """What part of an item's characters a question of about ten words is, at most half.

    Words are counted in the language that parts most of them by spaces; the same part of the text is as many
    words in scripts that do without.
    """
    counts = [[len(text.split()) for text in texts if text] for texts in items.texts.values()]
    longest = max(float(np.median(of)) for of in counts if of)
    return min(_LARGEST_SHARE, _WORDS / longest)


def question(text: str, share: float) -> str | None:
    """A piece from the middle of a text; None where the text is too short to have one.

    The piece begins and ends at white space where there is some near, else between two characters.

    Args:
        text: an item in one language.
        share: how long the piece is, as a part of the text's characters.
    """
    long = max(1.0, len(text) * share)
    start, reach = (len(text) - long) / 2, max(2, int(long / 4) + 1)
    piece = text[_border(text, int(start), reach) : _border(text, int(start + long), reach)].strip()
    return piece if piece and piece != text.strip() else None


def _border(text: str, at: int, reach: int) -> int:
    """The place after white space that is nearest to ``at``; else ``at``, but never before a combining mark."""
    for away in range(reach):
        for place in (at - away, at + away):
            if 0 < place < len(text) and text[place - 1].isspace():
                return place
    while 0 < at < len(text) and unicodedata.category(text[at]).startswith("M"):
        at += 1
    return at


Mask = NDArray[np.bool_]
FOLDS = 5
# Neighbouring items are of one document, and share their luck: so many are one observation.
_BLOCK = 10


@dataclass(frozen=True)
class TuningTask:
    """Queries and documents, encoded, and what shares its luck.

    Attributes:
        encoded: the documents, the queries, and which documents answer which query.
        pivot: the pivot language's tag.
        languages: tag of each query, shape (queries,).
        document_languages: tag of each document, shape (documents,).
        blocks: number of the block that each query belongs to, shape (queries,): the queries of an article, or about
            neighbouring items of parallel text.
        block_count: how many blocks there are.
    """

    encoded: EncodedDataset
    pivot: str
    languages: NDArray[np.str_] = field(repr=False)
    document_languages: NDArray[np.str_] = field(repr=False)
    blocks: NDArray[np.int64] = field(repr=False)
    block_count: int

    @property
    def groups(self) -> dict[str, Mask]:
        """Which queries are reported together: all, those in the pivot language, and the others; none that is empty."""
        pivot: Mask = self.languages == self.pivot
        groups = {"all": np.ones(len(pivot), bool), "pivot": pivot, "others": ~pivot}
        return {name: mask for name, mask in groups.items() if mask.any()}

    @property
    def folds(self) -> NDArray[np.int64]:
        """Fold of each query, 0 to 4, shape (queries,): a stretch of whole blocks."""
        return self.fold(self.blocks)

    def fold(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fold of blocks, 0 to 4."""
        folds: NDArray[np.int64] = blocks * FOLDS // self.block_count
        return folds

    @cached_property
    def grades(self) -> csr_matrix:
        """How relevant documents are to queries, shape (queries, documents); 0 for what a query itself is."""
        from scipy.sparse import csr_matrix

        place, data = {name: column for column, name in enumerate(self.encoded.ids)}, self.encoded.dataset
        found = [
            (grade, row, place[name])
            for row, query in enumerate(data.queries)
            for name, grade in data.without_own(query.id, data.qrels[query.id].items())
            if grade > 0
        ]
        grades, rows, columns = zip(*found, strict=True)
        return csr_matrix((np.array(grades, np.float64), (rows, columns)), (len(data.queries), len(place)))

    def parts(self, vectors: MethodVectors) -> list[tuple[Mask, MethodVectors]]:
        """Which queries are searched with documents moved by which language vectors.

        Args:
            vectors: the language vectors to judge.
        """
        return [(np.ones(len(self.languages), bool), vectors)]


def select_queries(encoded: EncodedDataset, mask: Mask) -> EncodedDataset:
    """The same documents, with some of the queries.

    Args:
        encoded: all of them.
        mask: which queries, shape (queries,).
    """
    queries = tuple(query for query, wanted in zip(encoded.dataset.queries, mask, strict=True) if wanted)
    names = {query.id: encoded.languages.queries[query.id] for query in queries}
    return replace(
        encoded,
        dataset=replace(encoded.dataset, queries=queries),
        queries=encoded.queries[mask],
        languages=replace(encoded.languages, queries=names),
    )


def judged_task(encoded: EncodedDataset, pivot: str) -> TuningTask:
    """The queries of a dataset that have relevant documents.

    Args:
        encoded: the dataset.
        pivot: tag of the pivot language.

    Raises:
        UsageError: documents in other languages than the query's were never judged, or the queries are about too few
            articles or groups to choose on some and judge on others.
    """
    data = encoded.dataset
    if data.judged == PER_LANGUAGE:
        raise UsageError(
            f"{data.folder} has judgements within each language alone, which do not show what a shift finds in others: "
            "give a dataset whose documents are judged across languages, or parallel text with --pairs."
        )
    answers = (data.without_own(query.id, ((name, 1) for name in data.relevant(query.id))) for query in data.queries)
    kept = select_queries(encoded, np.array([any(found) for found in answers], dtype=bool))
    by = clusters(data)
    blocks, numbers = np.unique([by.of[query.id] for query in kept.dataset.queries], return_inverse=True)
    if len(blocks) < FOLDS:
        raise UsageError(
            f"The queries of {data.folder} that have relevant documents belong to {pluralize(len(blocks), by.by)}, and "
            f"at least {FOLDS} are needed, to choose on some and judge on others: give a larger dataset."
        )
    known = kept.languages
    return TuningTask(
        kept,
        primary(pivot),
        np.array([known.queries[query.id] or UNDETERMINED for query in kept.dataset.queries]),
        np.array([known.documents[name] or UNDETERMINED for name in kept.ids]),
        numbers,
        len(blocks),
    )


@dataclass(frozen=True)
class ParallelTask(TuningTask):
    """Questions and items of parallel text.

    The query and the document named ``12 de`` are item 12 in German.

    Attributes:
        items: item of each query, shape (queries,).
        document_items: item of each document, shape (documents,).
        share: how long a question is, as a part of its item's characters.
        same_text: whether the language vectors to judge were fitted on this text: each fold is then judged with what
            they would be without it.
    """

    items: NDArray[np.int64] = field(repr=False)
    document_items: NDArray[np.int64] = field(repr=False)
    share: float
    same_text: bool

    @property
    def count(self) -> int:
        """How many items there are."""
        return int(self.document_items.max()) + 1

    @property
    def document_folds(self) -> NDArray[np.int64]:
        """Fold of each document, shape (documents,)."""
        return self.fold(self.document_items // _BLOCK)

    def parts(self, vectors: MethodVectors) -> list[tuple[Mask, MethodVectors]]:
        """As in ``TuningTask``; of vectors that were fitted on the same text, other ones for each fold."""
        if not self.same_text:
            return super().parts(vectors)
        return [(self.folds == fold, held_out_vectors(vectors, self, fold)) for fold in range(FOLDS)]


def make_task(
    items: ParallelItems, encoder: Encoder, *, same_text: bool = False, on_texts: Callable[[int], None] = lambda _: None
) -> ParallelTask:
    """Cut questions, and encode everything once.

    A question's document is the whole item: what a question shares with a document in its own language, a few
    words, is what people's questions share with what answers them. Taking the question out of the document was
    tried, and foretells less: with half a row asked for the other half, word order leaves parts of the question in
    the translations alone, and with a line asked for the next two, a shift costs five times the same-language
    recall that it costs on XQuAD (use-m, NTREX).

    Args:
        items: what to cut.
        encoder: gives the vectors; questions are encoded as queries.
        same_text: whether the language vectors to judge were fitted on the text that was sampled.
        on_texts: called with how many texts were encoded, after each batch.

    Raises:
        LangshiftError: the encoder gives no usable vector for a text.
    """
    share = question_share(items)
    documents = [(number, tag, text) for tag, texts in items.texts.items() for number, text in enumerate(texts) if text]
    queries = [(number, tag, cut) for number, tag, text in documents if (cut := question(text, share)) is not None]
    dataset = _dataset(documents, queries)
    encoded = EncodedDataset(
        dataset,
        list(dataset.documents),
        _encode("documents", "an item", documents, encoder, on_texts),
        _encode("queries", "a query", queries, encoder, on_texts),
        # Full tags: the same words in zh and zh-TW are two languages here, as they have two vectors.
        DatasetLanguages.of(dataset, {}),
    )
    numbers = np.array([number for number, _, _ in queries])
    return ParallelTask(
        encoded,
        items.pivot,
        np.array([tag for _, tag, _ in queries]),
        np.array([tag for _, tag, _ in documents]),
        numbers // _BLOCK,
        -(-items.count // _BLOCK),
        numbers,
        np.array([number for number, _, _ in documents]),
        share,
        same_text,
    )


_Texts = Sequence[tuple[int, str, str]]


def _dataset(documents: _Texts, queries: _Texts) -> Dataset:
    answers = gather((number, f"{number} {tag}") for number, tag, _ in documents)
    return Dataset(
        Path(),
        {f"{number} {tag}": DatasetDocument(tag, None) for number, tag, _ in documents},
        tuple(DatasetQuery(f"{number} {tag}", text, tag, None) for number, tag, text in queries),
        {f"{number} {tag}": dict.fromkeys(answers[number], 1) for number, tag, _ in queries},
    )


def _encode(kind: str, what: str, texts: _Texts, encoder: Encoder, on_texts: Callable[[int], None]) -> Matrix:
    vectors = encode_texts(kind, [text for _, _, text in texts], encoder, lambda _, done: on_texts(done))
    if (row := first_unusable(vectors)) is not None:
        _, tag, text = texts[row]
        raise LangshiftError(f"The encoder {encoder.id} gives no usable vector for {what} in {tag}: {text[:60]!r}.")
    return vectors


def held_out_vectors(vectors: MethodVectors, task: ParallelTask, fold: int) -> MethodVectors:
    """Language vectors fitted on this same text, less what one fold's items have in them.

    ``V_ℓ' = V_ℓ - n/N (v_fold - v_rest)``, with n of the N pairs in the fold and v the mean differences of the
    sampled pairs in and outside of it: what a fit on all other pairs would give, exactly so where every pair was
    sampled and v_rest is that fit. A language whose items all lie in the fold is left without a shift. The common
    means lose likewise what the pivot's texts in the fold have in them. Of the vectors and the mean of queries the
    same is taken as of documents: their own are not known here, and differ between items much as those do.

    Args:
        vectors: fitted on the text that the task was made from.
        task: encoded items.
        fold: the fold whose items are taken out.
    """
    tags, items, inside = task.document_languages, task.document_items, task.document_folds == fold
    pivot = np.full(task.count, -1)
    pivot[items[tags == task.pivot]] = np.flatnonzero(tags == task.pivot)
    moved, moved_queries = dict(vectors.vectors), dict(vectors.query_vectors)
    for tag in sorted(set(tags.tolist()) - {task.pivot}):
        rows = np.flatnonzero(tags == tag)
        here = inside[rows]
        if not here.any():
            continue
        differences = task.encoded.documents[rows].astype(np.float64) - task.encoded.documents[pivot[items[rows]]]
        for of in (moved, moved_queries):
            if tag in of:
                of[tag] = _without(of[tag], differences, here, vectors.pairs[tag])
    rows = np.flatnonzero(tags == task.pivot)
    texts, here = task.encoded.documents[rows].astype(np.float64), inside[rows]
    common = {side: _without(mean, texts, here, max(vectors.pairs.values())) for side, mean in vectors.common.items()}
    return replace(vectors, vectors=moved, query_vectors=moved_queries, common=common)


def _without(vector: Matrix, differences: NDArray[np.float64], here: Mask, pairs: int) -> Matrix:
    """A mean over pairs, or texts, without those of the sampled ones that are ``here``."""
    if here.all():
        return np.zeros_like(vector)
    excess = differences[here].mean(axis=0) - differences[~here].mean(axis=0)
    made: Matrix = (vector - here.sum() / pairs * excess).astype(np.float32)
    return made

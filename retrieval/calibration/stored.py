"""What an index keeps of its calibration: stored, read, and the mode that ``auto`` stands for by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from opensearchpy import OpenSearch

from langshift.debias.similarity import with_norm_1
from langshift.errors import ClusterError
from langshift.plugin import metadata
from langshift.plugin.index_sample import random_order
from langshift.plugin.stored_shift import StoredShift
from langshift.plugin.versions import IndexInfo
from langshift.retrieval.dsl import body_with_vectors
from langshift.retrieval.hits import stored_vectors, without_legs
from langshift.retrieval.modes.anchoring import hit_vectors
from langshift.retrieval.plans import check_response
from langshift.retrieval.question import AnchorModel
from langshift.retrieval.request import RECOMMENDED, SearchSettings
from langshift.wording import iso_time

#: The modes that a calibration chooses from.
CalibratedMode = Literal["dense", "hybrid", "anchored"]

# Adopted indices may allow no more than some hundred documents a request.
_MEASURED_DOCUMENTS: Final = 200
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
# An index that has grown or shrunk by as much is another one.
_MUCH: Final = 2
#: Where fewer of the queries without an answer are told by it, how near the nearest document is tells too little.
LEAST_CAUGHT: Final = 0.5


@dataclass(frozen=True)
class NoAnswer:
    """How the nearest document tells that nothing in an index answers a query.

    Attributes:
        below: the cosine below which it answers nothing; of queries with an answer, one in twenty lies below it.
        caught: the share of made-up queries without an answer that lie below it, 0 to 1.
    """

    below: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    caught: _Share

    @property
    def tells(self) -> bool:
        """Whether it tells enough of them."""
        return self.caught >= LEAST_CAUGHT


@dataclass(frozen=True)
class StoredCalibration:
    """What an index keeps under ``_meta.langshift_anchors``.

    Attributes:
        trust: what ``anchored`` needs to know of the index.
        mode: the best mode for the index.
        lexical_weight: the share of words at which ``hybrid`` loses nothing; None where there is none.
        sparse_weight: the share of tokens' weights beside it, likewise.
        measured_with: what it holds for, see ``measured_with``.
        rerank: mode -> how far the reranker ``features`` may go in it, 0 to 1.
        no_answer: what tells that nothing answers a query; None where nobody measured it.
    """

    trust: AnchorModel
    mode: CalibratedMode
    lexical_weight: _Share | None
    sparse_weight: _Share | None
    measured_with: Mapping[str, Any]
    rerank: Mapping[str, _Share]
    no_answer: NoAnswer | None = None

    @classmethod
    def of_index(cls, index: IndexInfo) -> StoredCalibration | None:
        """The calibration of an index; None where it was never calibrated.

        Raises:
            ClusterError: it cannot be read.
        """
        values = index.calibration
        if values is None:
            return None
        try:
            then = {**values["measured_with"], "documents": int(values["measured_with"]["documents"])}
            kept = {"sparse_weight": None, **values, "trust": {**values, "calibrated": True}, "measured_with": then}
            found = msgspec.convert(kept, cls)
            if found.mode == "hybrid" and found.lexical_weight is None and found.sparse_weight is None:
                raise ValueError("hybrid is the best mode, and has no weight")
            return found
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            raise ClusterError(
                f"The calibration in the mapping of {index.index} (_meta.{metadata.ANCHORS}) cannot be read: "
                f"run `langshift anchors calibrate {index.name}` again."
            ) from None

    def outdated(self, index: IndexInfo) -> str | None:
        """Why it does not hold for the index as it is now, as the rest of a sentence about that; None where it does."""
        changed = _changed(self.measured_with, measured_with(index))
        return f"was calibrated with {' and '.join(changed)}" if changed else None


def store_calibration(client: OpenSearch, index: IndexInfo, found: Mapping[str, Any]) -> None:
    """Keep a calibration in the index's mapping, with when and with what it was measured.

    Args:
        client: the cluster.
        index: the index.
        found: as ``Calibration.to_dict`` gives it.
    """
    kept = {**found, "at": iso_time(), "measured_with": measured_with(index)}
    metadata.change(client, index.index, {metadata.ANCHORS: kept})


def measured_with(index: IndexInfo) -> dict[str, Any]:
    """What a calibration holds for: the shift of the documents, and about as many of them."""
    made = index.fingerprint
    return {
        "alpha": made.alpha,
        "alphas": dict(made.alphas),
        "gamma": made.gamma,
        "own": made.own,
        "vectors": made.vectors,
        "documents": index.documents,
    }


def _changed(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What became another than ``measured_with`` was when the index was calibrated."""
    changed = []
    if then.get("vectors") != now["vectors"]:
        changed.append("different language vectors")
    else:
        scales = [name for name in ("alpha", "gamma", "own") if then.get(name, 0.0) != now[name]]
        changed += [f"{name} {then.get(name)} (now {now[name]})" for name in scales]
        if "alpha" not in scales and then.get("alphas") != now["alphas"]:
            changed.append("different alphas for individual languages")
    if not then["documents"] / _MUCH <= now["documents"] <= then["documents"] * _MUCH:
        changed.append(f"{then['documents']:,} documents (now {now['documents']:,})")
    return changed


def trust_of(client: OpenSearch, index: IndexInfo, shift: StoredShift | None) -> AnchorModel:
    """What ``anchored`` needs to know of an index: calibrated, else the spread of a sample and a cautious strength.

    Args:
        client: the cluster.
        index: the index.
        shift: see ``SearchContext``.

    Raises:
        ClusterError: what the index keeps cannot be read.
    """
    if calibration := StoredCalibration.of_index(index):
        return calibration.trust
    return AnchorModel(measured_spread(client, index, shift, _MEASURED_DOCUMENTS))


# So little that nothing was lost by it on any text that was tried.
USUAL_RERANK: Final = 0.1


def rerank_remarks(index: IndexInfo) -> list[str]:
    """That the reranker ``features`` goes a little of its way only, where nobody measured how far it may go."""
    try:
        if _measured_strengths(index):
            return []
    except ClusterError:
        return []
    remedy = f": run `langshift anchors calibrate {index.name}`" if index.calibratable else ""
    return [f"The reranker features is not calibrated for {index.name}, so it changes the order a little only{remedy}."]


def rerank_strengths(index: IndexInfo) -> dict[str, float]:
    """Mode -> how far the reranker ``features`` may go in an index: as calibrated while that holds, else a little.

    Raises:
        ClusterError: the calibration that the index keeps cannot be read.
    """
    return {"dense": USUAL_RERANK, "anchored": USUAL_RERANK, **_measured_strengths(index)}


def _measured_strengths(index: IndexInfo) -> Mapping[str, float]:
    """The strengths of a calibration that holds; none without one."""
    calibration = _holding(index)
    return {} if calibration is None else calibration.rerank


def _holding(index: IndexInfo) -> StoredCalibration | None:
    calibration = StoredCalibration.of_index(index)
    return None if calibration is None or calibration.outdated(index) else calibration


def no_answer(index: IndexInfo) -> float | None:
    """The cosine of the nearest document below which nothing answers a query; None where no calibration tells it well.

    Args:
        index: what is searched.
    """
    try:
        calibration = _holding(index)
    except ClusterError:
        # Modes that need no calibration search all the same.
        return None
    found = None if calibration is None else calibration.no_answer
    return found.below if found is not None and found.tells else None


# Fewer documents tell nothing; then the spread is that of a usual model.
_FEWEST: Final = 5
_USUAL: Final = 0.05
# No model's documents are all alike, but those of a test may be; it is divided by.
_LEAST: Final = 1e-3
# Of normally distributed figures, standard deviation over median absolute deviation.
_NORMAL: Final = 1.4826


def spread_of(vectors: NDArray[np.floating[Any]]) -> float:
    """The robust standard deviation of the cosine of all pairs: ``1.4826 · median |cos - median cos|``.

    Translations of each other are few among all pairs of a sample, and a median does not see them.

    Args:
        vectors: of documents drawn at random, shape (documents, dimension), of any norm.
    """
    if len(vectors) < _FEWEST:
        return _USUAL
    rows = with_norm_1(vectors)
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    return max(_LEAST, _NORMAL * float(np.median(np.abs(cosines - np.median(cosines)))))


def measured_spread(client: OpenSearch, index: IndexInfo, shift: StoredShift | None, documents: int) -> float:
    """The spread of a sample of an index's documents, the same each time; one request.

    Args:
        client: the cluster.
        index: the index.
        shift: see ``SearchContext``.
        documents: how many to draw.
    """
    among = random_order({"exists": {"field": index.fields.vector}}, seed=0)
    body = body_with_vectors(among, documents, index.fields)
    response = check_response(client.search(index=index.index, body=body))
    languages = {one.id: one.language for one in without_legs(response, index.fields)}
    return spread_of(np.array(list(hit_vectors(stored_vectors(response), languages, shift).values())))


#: Where the mode of a search comes from.
ModeOrigin = Literal["asked", "calibration", "default"]


class ModeChoice(NamedTuple):
    """How an index is searched in a setting, and why.

    Attributes:
        setting: with the mode that is searched in, not ``auto``.
        origin: whether that mode was ``asked`` for, is what the ``calibration`` of the index found to be best, or is
            the ``default`` of ``auto``, where no calibration can be used.
        reason: the same as a sentence.
    """

    setting: SearchSettings
    origin: ModeOrigin
    reason: str


def requested(setting: SearchSettings) -> ModeChoice:
    """That of a setting in any mode but ``auto``."""
    return ModeChoice(setting, "asked", f"Mode {setting.mode}, as requested.")


def resolve(index: IndexInfo, setting: SearchSettings) -> ModeChoice:
    """How an index is searched in a setting: in the mode that ``auto`` stands for, and at strength 0 as ``dense``.

    Args:
        index: what is searched.
        setting: in any mode.
    """
    if setting.mode == "auto":
        return resolve_auto(index, setting)
    if setting.mode == "anchored" and (stored := StoredCalibration.of_index(index)) and not stored.trust.strength:
        reason = f"Mode anchored, as requested; its strength in {index.name} is 0, so it finds what dense finds."
        return ModeChoice(structs.replace(setting, mode="dense"), "asked", reason)
    return requested(setting)


def remarks(index: IndexInfo, setting: SearchSettings) -> list[str]:
    """What a searcher in a mode should know of the index's calibration; empty where all is as it should be.

    Args:
        index: what is searched.
        setting: as somebody asked for it; there is something to say of the modes ``anchored`` and ``hybrid``, and of
            the reranker ``features``.
    """
    reranked, choice = rerank_remarks(index) if setting.rerank == "features" else [], resolve_auto(index)
    if choice.origin == "default":
        return [choice.reason, *reranked] if setting.mode == "anchored" else reranked
    stored = StoredCalibration.of_index(index)
    if setting.mode == "hybrid" and stored is not None:
        return weight_remarks(index.name, stored.lexical_weight, setting.lexical_weight) + reranked
    return reranked


def weight_remarks(name: str, safe: float | None, weight: float) -> list[str]:
    """What there is to say of a share of words in hybrid search.

    Args:
        name: the index's.
        safe: the highest share at which nothing is lost; None where there is none.
        weight: that of a search.
    """
    if safe is None:
        return [f"Calibration found no weight of words at which hybrid search of {name} loses nothing."]
    if weight > safe:
        return [
            f"Hybrid search of {name} may lose answers with words weighing {weight:g}: calibration found {safe:g} to "
            "be the highest weight tried at which nothing is lost."
        ]
    return []


def resolve_auto(index: IndexInfo, setting: SearchSettings = RECOMMENDED) -> ModeChoice:
    """The mode that ``auto`` stands for in an index: what its calibration found to be best, as long as that holds.

    It is ``dense`` where the index was never calibrated, or is no longer what was measured: shifted otherwise, or with
    less than half or more than twice as many documents.

    Args:
        index: what is searched.
        setting: in the mode ``auto``.
    """
    dense = structs.replace(setting, mode="dense")
    try:
        stored = StoredCalibration.of_index(index)
    except ClusterError as error:
        return ModeChoice(dense, "default", str(error))
    if stored is None:
        unusable, again = "is not calibrated, so mode anchored uses default values and auto is dense", ""
    elif outdated := stored.outdated(index):
        unusable, again = f"{outdated}, so mode auto is dense", " again"
    else:
        return _calibrated(index, setting, stored)
    remedy = f": run `langshift anchors calibrate {index.name}`{again}" if index.calibratable else ""
    return ModeChoice(dense, "default", f"{index.name} {unusable}{remedy}.")


def _calibrated(index: IndexInfo, setting: SearchSettings, stored: StoredCalibration) -> ModeChoice:
    words, tokens = stored.lexical_weight or 0.0, stored.sparse_weight or 0.0
    weighed = f"lexical weight {words:g}{f', sparse weight {tokens:g}' if tokens else ''}"
    figures = {"anchored": f" (strength {stored.trust.strength:g})", "hybrid": f" ({weighed})"}
    mode = stored.mode
    if mode == "hybrid":
        setting = structs.replace(setting, lexical_weight=words, sparse_weight=tokens)
    reason = f"Mode {mode}{figures.get(mode, '')}, which calibration found to be best for {index.name}."
    return ModeChoice(structs.replace(setting, mode=mode), "calibration", reason)

"""What the two sides can search: live indices and kept versions, and which pair is shown where none was chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from langshift.debias.fingerprint import Fingerprint
from langshift.errors import UsageError
from langshift.plugin.listing import Version
from langshift.web.search.state import PLACES, Place, Side, State


class Choice(NamedTuple):
    """One index that a side can search.

    Attributes:
        name: by which it is opened: the alias of a live index, a kept version's own name.
        version: its own name.
        uuid: the server's own id of it.
        live: whether its alias stands for it.
        fingerprint: what made its vectors.
        documents: how many it holds; None where it does not say.
    """

    name: str
    version: str
    uuid: str
    live: bool
    fingerprint: Fingerprint
    documents: int | None

    @property
    def alpha(self) -> float:
        """The scale of its shift; 0 where nothing was moved."""
        return self.fingerprint.alpha if self.fingerprint.moves else 0.0

    @property
    def alpha_in_words(self) -> str:
        """``1 (th 0.3)``."""
        single = ", ".join(f"{tag} {alpha:g}" for tag, alpha in sorted(self.fingerprint.alphas.items()))
        return f"{self.alpha:g}" + (f" ({single})" if single and self.fingerprint.moves else "")


def choices(versions: Iterable[Version]) -> list[Choice]:
    """All that can be searched, by name; a live index comes before the versions that are kept of it."""
    found = [
        Choice(
            name=one.name if one.state == "live" else one.version,
            version=one.version,
            uuid=one.uuid,
            live=one.state == "live",
            fingerprint=one.fingerprint,
            documents=one.documents,
        )
        for one in versions
        if one.state != "unfinished"
    ]
    return sorted(found, key=lambda one: one.name)


def settled(state: State, known: Sequence[Choice]) -> State:
    """The state with an index on both sides, and without an alpha that is the index's own.

    Raises:
        UsageError: there is no index, or not the one that is named.
    """
    if not known:
        raise UsageError("There is no index on the cluster yet: make one, such as with `langshift demo`.")
    for place in PLACES:
        state = state.with_side(place, _by_its_name(place, state.side(place), known))
    left, right = state.left, state.right
    if left.index is None and right.index is None:
        left, right = _pair(left, right, known)
    elif left.index is None:
        left = _beside(left, chosen(right, known), known)
    elif right.index is None:
        right = _beside(right, chosen(left, known), known)
    return replace(state, left=_as_indexed(left, known), right=_as_indexed(right, known))


def chosen(side: Side, known: Sequence[Choice]) -> Choice:
    """What a side of a settled state searches."""
    return next(one for one in known if one.name == side.index)


def _by_its_name(place: Place, side: Side, known: Sequence[Choice]) -> Side:
    """The side with the name by which its index is opened: a version that was kept may have become the live one."""
    if side.index is None or any(one.name == side.index for one in known):
        return side
    for one in known:
        if one.version == side.index:
            return replace(side, index=one.name)
    told = side.index if len(side.index) <= 80 else f"{side.index[:80]}…"
    raise UsageError(
        f"{place} is {told!r}, but there is no such index or version on the cluster: choose one from the list at "
        "/search, or make it with `langshift ingest`."
    )


def _pair(left: Side, right: Side, known: Sequence[Choice]) -> tuple[Side, Side]:
    """The plain and the shifted index that belong together best; where none do, the first index against itself."""
    pairs = [
        (plain, shifted)
        for plain in known
        for shifted in known
        if not plain.alpha and shifted.alpha and _same_encoder(plain, shifted)
    ]
    if pairs:
        # Of equals the first by name.
        plain, shifted = max(pairs, key=lambda pair: _kinship(*pair))
        return replace(left, index=plain.name), replace(right, index=shifted.name)
    alone = next((one for one in known if one.live), known[0])
    return _against_itself(left, alone), replace(right, index=alone.name)


def _beside(side: Side, other: Choice, known: Sequence[Choice]) -> Side:
    """A side that was left open, with what is best seen beside the other one."""
    fitting = [
        one
        for one in known
        if one.name != other.name and _same_encoder(one, other) and bool(one.alpha) != bool(other.alpha)
    ]
    if fitting:
        best = max(fitting, key=lambda one: _kinship(one, other))
        if best.documents == other.documents:
            return replace(side, index=best.name)
    return _against_itself(side, other)


def _against_itself(side: Side, choice: Choice) -> Side:
    """The side over the index, as it would be without a shift."""
    unshifted = 0.0 if choice.alpha and side.alpha is None else side.alpha
    return replace(side, index=choice.name, alpha=unshifted)


def _kinship(one: Choice, other: Choice) -> tuple[bool, bool, int]:
    """How well two indices can be compared: by their documents, and by their names."""
    return (
        one.documents == other.documents,
        one.live and other.live,
        len(os.path.commonprefix([one.name, other.name])),
    )


def _same_encoder(one: Choice, other: Choice) -> bool:
    return (one.fingerprint.encoder, one.fingerprint.revision) == (
        other.fingerprint.encoder,
        other.fingerprint.revision,
    )


def _as_indexed(side: Side, known: Sequence[Choice]) -> Side:
    return replace(side, alpha=None) if side.alpha == chosen(side, known).alpha else side

"""What loads differ in: what a new version looks like, and how what is read becomes operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from langshift.ingest.bulk.item import Item
from langshift.ingest.items import Maker, Refusing
from langshift.ingest.making import Making
from langshift.ingest.read import Read
from langshift.ingest.summary import OnStage


class ItemMaker(Protocol):
    """Makes operations of what is read."""

    def items(self, batch: Sequence[Read]) -> list[Item]:
        """The operations of a batch, in its order; see ``Maker.items``."""


# Its arguments are those of ``Maker``.
MakerOf = Callable[[Making, Refusing, int, Callable[[int], bool], OnStage], ItemMaker]


@dataclass(frozen=True)
class LoadKind:
    """What is special about a load.

    Attributes:
        maker: makes the maker of operations.
        body: of the version that is made, complete; None for an index of langshift's own form.
        during: index settings that hold only while the version is loaded.
        keeps_versions: whether documents keep versions that they have; else a document's version is its line's.
    """

    maker: MakerOf = Maker
    body: Mapping[str, Any] | None = None
    during: Mapping[str, str] = field(default_factory=dict)
    keeps_versions: bool = False


DOCUMENTS = LoadKind()

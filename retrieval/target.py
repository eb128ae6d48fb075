"""What a search has to know of the index and of its cluster."""

from __future__ import annotations

from dataclasses import dataclass

from langshift.plugin.versions import LiveIndex
from langshift.retrieval.trust import Trust


@dataclass(frozen=True)
class Target:
    """What is searched.

    Attributes:
        index: the index.
        fuses: whether the cluster has neural-search, whose ``hybrid`` query puts two legs together; where not, or
            where the scores of the legs are wanted, the client does it, with the same result.
        trust: what of the rule of ``anchored`` is the index's own; needed by that mode alone.
        legs: whether ``anchored`` is to tell what each leg says of the hits, which costs it a step.
    """

    index: LiveIndex
    fuses: bool = False
    trust: Trust | None = None
    legs: bool = False

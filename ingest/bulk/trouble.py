"""What ends a load that the cluster takes nothing of."""

from __future__ import annotations

from langshift.console import counted


class Stopped(Exception):
    """Somebody has asked to stop before the chunk was taken."""


def diagnosis(why: str, seconds: float) -> str:
    """What a cluster that has taken nothing for so many seconds lacks, and what to do.

    Args:
        why: the last reason, in the server's words.
        seconds: how long it was waited for.
    """
    waited = f"The cluster has taken no document for {counted(round(seconds), 'second')}"
    if "flood-stage" in why or "flood stage" in why:
        return f"{waited}, since its disk is full ({why}): free space on its nodes."
    if "circuit breaker" in why or "[knn_vector]" in why:
        return (
            f"{waited}, since its memory for k-NN graphs is used up ({why}): give the nodes more memory, "
            "or raise knn.memory.circuit_breaker.limit."
        )
    return f"{waited} (last: {why})."

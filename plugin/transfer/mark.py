"""What a transfer notes in the version that it writes to, for whoever goes on with it or clears it away."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Literal

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError

from langshift.errors import ClusterError, LangshiftError
from langshift.plugin import meta

Kind = Literal["retune", "rollback"]


class GivenUp(ClusterError):
    """What was being made can never become live, and goes."""


class TakenOver(LangshiftError):
    """Another run works on the same version by now: this one may do nothing more there."""


def new_token() -> str:
    """What tells one run from another."""
    return secrets.token_hex(8)


def noted(client: OpenSearch, index: str) -> tuple[Kind, dict[str, Any]] | None:
    """What a transfer has noted in a version; None where none has, or where the version is gone."""
    try:
        return of_meta(meta.read(client, index))
    except NotFoundError:
        return None


def of_meta(kept: Mapping[str, Any]) -> tuple[Kind, dict[str, Any]] | None:
    """What a transfer has noted, from a version's whole ``_meta``."""
    unfinished = kept.get(meta.UNFINISHED)
    kinds: tuple[Kind, ...] = ("retune", "rollback")
    for kind in kinds:
        if isinstance(unfinished, Mapping) and kind in unfinished:
            return kind, dict(unfinished[kind])
    return None


class Mark:
    """The note of one run.

    Two runs never both act on a version: each writes its token there when it begins, and looks whether it is still
    there before every step that cannot be taken back.

    Attributes:
        index: the version that it is in.
        kind: what the run makes.
        token: tells it from other runs.
    """

    def __init__(self, client: OpenSearch, index: str, kind: Kind, token: str) -> None:
        self._client = client
        self.index, self.kind, self.token = index, kind, token

    def read(self) -> dict[str, Any]:
        """What is noted.

        Raises:
            TakenOver: by another run, or nothing is noted any more.
        """
        found = noted(self._client, self.index)
        if found is None or found[0] != self.kind or found[1].get("token") != self.token:
            raise TakenOver(
                f"Another run of retune or rollback has taken over {self.index}, or removed it, so this one stops: "
                "let that one end, or run again."
            )
        return found[1]

    def note(self, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """Change some of it.

        Raises:
            TakenOver: by another run.
        """
        changed = {**self.read(), **values}
        unfinished = meta.unfinished(self._client, self.index) or {}
        meta.note_unfinished(self._client, self.index, {**unfinished, self.kind: changed})

    def clear(self) -> None:
        """Nothing is left to do.

        Raises:
            TakenOver: by another run.
        """
        self.read()
        meta.note_unfinished(self._client, self.index, None)

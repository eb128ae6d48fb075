"""What one row of an offline evaluation does to the vectors, and all the rows that options ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langshift.debias.debias import Debias, recommended
from langshift.debias.methods import METHODS
from langshift.debias.vectors import LanguageVectors
from langshift.errors import UsageError
from langshift.evaluate.offline.sources import GIVEN, Source

# ``--shift-queries`` -> what it asks for; None is for the language vectors to say.
SHIFT_QUERIES = {"never": False, "always": True, "auto": None}
NOTHING, DOCUMENTS, BOTH_SIDES = "nothing", "documents", "both sides"


@dataclass(frozen=True)
class Setting:
    """What is done to the vectors before they are compared.

    Attributes:
        debias: method and scales.
        source: what says the languages of documents.
    """

    debias: Debias
    source: Source = GIVEN

    @property
    def changes(self) -> str:
        """Which vectors come out changed."""
        if not _moves(self.debias):
            return NOTHING
        return BOTH_SIDES if METHODS[self.debias.method].query_side or self.debias.shift_queries else DOCUMENTS

    @property
    def alpha(self) -> str | None:
        """The scale in words, ``1`` or ``0.6 (de 0.3)``; None where the method has none, or nothing moves."""
        if not _moves(self.debias) or METHODS[self.debias.method].query_side:
            return None
        own = ", ".join(f"{tag} {alpha:g}" for tag, alpha in sorted(self.debias.alphas.items()))
        return f"{self.debias.alpha:g} ({own})" if own else f"{self.debias.alpha:g}"

    @property
    def name(self) -> str:
        """As a folder is named: ``none``, ``shift``, ``shift-both-sides``, ``shift-detected-20``."""
        if not _moves(self.debias):
            return "none"
        sides = ["both-sides"] if self.debias.shift_queries else []
        source = [] if self.source == GIVEN else [str(self.source).replace(":", "-")]
        return "-".join([self.debias.method, *sides, *source])


def _moves(debias: Debias) -> bool:
    """Whether any document can move."""
    if debias.method == "none" or debias.vectors is None:
        return False
    return METHODS[debias.method].query_side or bool(debias.alpha or any(debias.alphas.values()))


def settings(
    known: LanguageVectors | None,
    methods: Sequence[str],
    alpha: float | None,
    shift_queries: Sequence[str],
    sources: Sequence[Source],
) -> list[Setting]:
    """Every combination of methods, sources of languages and sides, once where several come to the same.

    Args:
        known: the language vectors.
        methods: names from ``METHODS``.
        alpha: scale of shift and affine; None takes what the language vectors recommend. Centering and LIR
            have none.
        shift_queries: names from ``SHIFT_QUERIES``.
        sources: what says the languages of documents.

    Raises:
        UsageError: a method that is unknown, for which nothing was fitted, or that cannot be soft.
    """
    found: dict[str, Setting] = {}
    for method in methods:
        for source in sources:
            for sides in shift_queries:
                setting = _setting(known, method, alpha, SHIFT_QUERIES[sides], source)
                found.setdefault(setting.name, setting)
    return list(found.values())


def _setting(
    known: LanguageVectors | None, method: str, alpha: float | None, shift_queries: bool | None, source: Source
) -> Setting:
    entire = method in METHODS and METHODS[method].query_side
    debias = recommended(known, method, 1.0 if entire else alpha, False if entire else shift_queries)
    if entire and known is None:
        raise UsageError(f"There are no language vectors for the method {method}: give some with --vectors.")
    if not _moves(debias):
        return Setting(recommended(known, method, 0.0, False))
    if source.soft and method != "shift":
        raise UsageError(
            f"Only the method shift can be soft, not {method}: leave {method} out of --method, or {source} out of "
            "--language-from."
        )
    return Setting(debias, source)

"""The measures that go by name, and the name of each.

Nothing standard is written anew: trec_eval's code, through ir_measures, computes every nDCG and
recall, also those over a part of the relevant documents or with grades by language. Ties break as
trec_eval does: by document id, descending, after the score as a 32-bit float. A query without
answer counts 0, and a query without relevant document is left out and counted. What else a measure
leaves out, and what it does with ties and gaps, its own docstring says (``FAMILIES[name].compute``).
"""

import ast
import re
from collections.abc import Sequence
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.datasets.dataset import PER_LANGUAGE
from langshift.evaluate.measures.base import Material, Measure, MeasureFamily, RankedMaterial, Scores
from langshift.evaluate.measures.distributions import ENTROPY, JS, KL, PEER, SHARE
from langshift.evaluate.measures.most_shown import MOST_SHOWN, MOST_SHOWN_20
from langshift.evaluate.measures.positions import EVIDENCE_HIT, PSI
from langshift.evaluate.measures.preference import LANG_NDCG, LPR, TOP1
from langshift.evaluate.measures.standard import FIRST_OWN, SLR, TLR, TR, StandardFamily, compute, find

OWN = (TLR, SLR, FIRST_OWN, TR, LPR, LANG_NDCG, TOP1, PEER, PSI, EVIDENCE_HIT, MOST_SHOWN, SHARE, ENTROPY, JS, KL)
_STANDARD = (
    StandardFamily("nDCG@k", "high", "trec_eval, ndcg_cut", compute),
    StandardFamily("R@k", "high", "trec_eval, recall", compute),
    StandardFamily("P@k", "high", "trec_eval, P", compute),
    StandardFamily("AP", "high", "trec_eval, map", compute),
    StandardFamily("RR", "high", "trec_eval, recip_rank", compute),
    StandardFamily("Judged@k", "report", "ir_measures, Judged", compute),
)
FAMILIES: dict[str, MeasureFamily] = {family.name: family for family in (*_STANDARD, *OWN)}
DEFAULT_MEASURES = ("nDCG@20", "R@20", "TLR@20", "SLR@20", "own@1", "own@3", MOST_SHOWN_20)

_NAME = re.compile(
    r"(?P<family>[^\W\d]\w*)(?:\((?P<options>.*)\))?(?:@(?P<cutoff>[1-9][0-9]{0,5}|0\.[0-9]{1,6}|[01]\.0))?"
)


def parse_measure(name: str) -> Measure:
    """Read a measure's name, such as ``nDCG@20`` or ``Lang_nDCG(same=3,other=1)@20``.

    Raises:
        UsageError: the name is none of the known ones, or not how that one is written.
    """
    text = "".join(name.split())
    match = _NAME.fullmatch(text)
    family = (FAMILIES.get(match["family"]) or find(match["family"])) if match else None
    options = _options(match["options"] or "") if match else None
    if match is None or family is None or options is None:
        known = ", ".join(family.written for family in FAMILIES.values())
        raise UsageError(
            f"{name!r} is not a known measure: use {known}, where k is a rank such as 20, "
            "or any other measure of ir_measures, such as Success@k."
        )
    cutoff = match["cutoff"]
    number = None if cutoff is None else float(cutoff) if "." in cutoff else int(cutoff)
    measure = Measure(family, number, options, text)
    family.check(measure)
    return measure


def split_measures(names: str) -> list[str]:
    """The names in a list parted by white space or commas, those within brackets aside; each once."""
    parts = re.findall(r"(?:\([^()]*\)|[^\s,()]|[()])+", names)
    return list(dict.fromkeys(parts))


def _options(text: str) -> dict[str, Any] | None:
    """What stands in brackets, ``same=3,other=1``, as a dictionary; None where it is not of that form."""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            return None
        pairs = [(keyword.arg, ast.literal_eval(keyword.value)) for keyword in call.keywords]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    options = {key: value for key, value in pairs if key is not None}
    return options if len(options) == len(pairs) else None


def default_measures(judged: str) -> tuple[str, ...]:
    """What to measure where nobody says: ``DEFAULT_MEASURES``, less those that the judgements do not allow.

    Args:
        judged: ``Material.judged``.
    """
    return tuple(name for name in DEFAULT_MEASURES if judged != PER_LANGUAGE or not parse_measure(name).family.across)


def refuse(measures: Sequence[Measure], judged: str) -> None:
    """Refuse measures that the judgements do not allow.

    Args:
        measures: what is asked for.
        judged: ``Material.judged``.

    Raises:
        UsageError: documents were judged per language, and a measure compares languages.
    """
    across = [measure.name for measure in measures if measure.family.across]
    if judged == PER_LANGUAGE and across:
        raise UsageError(
            f"{', '.join(across)} cannot be computed from this dataset: its documents are judged only for queries in "
            'their own language ("judged": "per-language" in dataset.json), so a document in another language counts '
            "as wrong. Use measures that do not compare languages, such as nDCG@10, R@100 and SLR@20."
        )


def score(names: Sequence[str], material: Material) -> dict[str, Scores]:
    """Score a run with measures by name.

    Args:
        names: measures such as ``nDCG@20`` and ``TLR@20``.
        material: the run, the judgements, and what is known of queries and documents.

    Returns:
        For each name, less white space, the figures.

    Raises:
        UsageError: an unknown measure, or one that the judgements do not allow.
    """
    measures = [parse_measure(name) for name in names]
    refuse(measures, material.judged)
    ranked = RankedMaterial(material)
    return {measure.name: measure.family.compute(measure, ranked) for measure in measures}

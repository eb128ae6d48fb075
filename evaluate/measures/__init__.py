"""The measures that go by name, and the name of each."""

from __future__ import annotations

import ast
import re
from typing import Any

from langshift.errors import UsageError
from langshift.evaluate.measures.divergence import JS, KL
from langshift.evaluate.measures.entropy import ENTROPY
from langshift.evaluate.measures.family import Family, Measure
from langshift.evaluate.measures.lang_ndcg import LANG_NDCG
from langshift.evaluate.measures.language_recall import SLR, TLR
from langshift.evaluate.measures.lpr import LPR
from langshift.evaluate.measures.peer import PEER
from langshift.evaluate.measures.psi import PSI
from langshift.evaluate.measures.share import SHARE
from langshift.evaluate.measures.standard import Standard, compute, find
from langshift.evaluate.measures.target_recall import TR
from langshift.evaluate.measures.top1 import TOP1

_STANDARD = (
    Standard(
        "nDCG",
        "normalised discounted cumulative gain, gain = grade, or what gains maps it to",
        "high",
        "trec_eval, ndcg_cut",
        compute,
        "nDCG@k",
    ),
    Standard("R", "share of the relevant documents that is in the top k", "high", "trec_eval, recall", compute, "R@k"),
    Standard("P", "share of the top k that is relevant", "high", "trec_eval, P", compute, "P@k"),
    Standard("AP", "average precision", "high", "trec_eval, map", compute, "AP"),
    Standard("RR", "one by the rank of the first relevant document", "high", "trec_eval, recip_rank", compute, "RR"),
    Standard("Judged", "share of the top k that was judged", "report", "ir_measures, Judged", compute, "Judged@k"),
)
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (*_STANDARD, TLR, SLR, TR, LPR, LANG_NDCG, TOP1, PEER, PSI, SHARE, ENTROPY, JS, KL)
}
DEFAULT_MEASURES = ("nDCG@20", "R@20", "TLR@20", "SLR@20")

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
            f"{name!r} is no known measure: the known ones are {known}, with k a rank such as 20, "
            "and what else ir_measures names, such as Success@k."
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

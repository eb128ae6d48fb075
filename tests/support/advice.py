"""Scales that a file of language vectors recommends, in a word."""

from langshift.debias.vectors import Recommendation

_SCALES = ("alpha", "alphas", "gamma", "shift_queries", "preference")


def advised(fields):
    """Fields of ``LanguageVectors``, where scales stand for what is recommended for both sides.

    For documents only the same is recommended without what moves queries.
    """
    scales = {name: fields[name] for name in _SCALES if name in fields}
    rest = {name: value for name, value in fields.items() if name not in scales}
    if not scales:
        return rest
    only = {name: value for name, value in scales.items() if name in ("alpha", "alphas")}
    return {"both_sides": Recommendation(**scales), "documents_only": Recommendation(**only), **rest}

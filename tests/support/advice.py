"""Scales that a file of language vectors recommends, in a word."""

from langshift.debias.vectors import Recommendation

_SCALES = ("alpha", "alphas", "gamma")


def advised(fields):
    """Fields of ``LanguageVectors``, where scales stand for what is recommended."""
    scales = {name: fields[name] for name in _SCALES if name in fields}
    rest = {name: value for name, value in fields.items() if name not in scales}
    return {"recommendation": Recommendation(**scales), **rest} if scales else rest

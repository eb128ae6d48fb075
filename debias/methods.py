"""Ways to take language out of embeddings: pure functions, arrays in and arrays out, one method a file."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """What a method needs.

    Attributes:
        name: as ``--method`` takes it.
        query_side: whether queries must be changed too; such a method works in offline evaluation alone.
        told: what it does, for a person.
    """

    name: str
    query_side: bool
    told: str


METHODS = {
    method.name: method
    for method in (
        Method("none", False, "embeddings as they are"),
        Method("shift", False, "z − αV_ℓ on the index side"),
        Method("centering", True, "x − μ_ℓ on both sides"),
        Method("lir", True, "x without its language's first principal direction, on both sides"),
        Method("affine", False, "a linear map of each language onto the pivot's space, on the index side"),
    )
}
# What an index can be made with: queries stay as they are.
INDEX_SIDE = tuple(name for name, method in METHODS.items() if not method.query_side and name != "none")

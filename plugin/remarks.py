"""What is not as it should be in an index, in sentences that say what to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from langshift.console import counted
from langshift.debias.fingerprint import Fingerprint
from langshift.plugin.description import Description


def remarks(found: Description) -> list[str]:
    """Sentences on a version and those beside it; none where all is well."""
    return [*_of_documents(found), *_of_the_engine(found), *_of_the_block(found), *_of_unfinished(found)]


def _of_documents(found: Description) -> Iterator[str]:
    name, made = found.version.name, found.version.fingerprint
    if found.without_vector:
        yield f"{_have(found.without_vector)} no vector, and a dense search does not find what has none."
    stamps = found.stamps
    if stamps is None:
        yield "The index does not tell which language vectors it has, so the documents' stamps were not checked."
        return
    if stamps.without:
        yield (
            f"{_have(stamps.without)} a vector and no stamp, so that nobody can tell whether it was shifted: write "
            f"what has none again, by `langshift ingest` or after `langshift pipeline install {name}`."
        )
    if stamps.other_vectors:
        vectors = f"by others than the index's language vectors ({made.vectors})" if made.vectors else "all the same"
        yield f"{_were(stamps.other_vectors)} shifted {vectors}, and cannot be retuned: write what was again."
    if stamps.other_scale:
        yield (
            f"{_were(stamps.other_scale)} shifted by another alpha than the index's: "
            f"`langshift retune {name} {_scales(made)}` brings all to one."
        )


def _of_the_engine(found: Description) -> Iterator[str]:
    if found.vector is not None and found.vector.comes_back_normalised:
        yield (
            f"The engine {found.vector.engine} gives vectors back with norm 1, whatever was written, so that the index "
            "cannot be retuned: make it again, with langshift's own settings or by the engine lucene."
        )


def _of_the_block(found: Description) -> Iterator[str]:
    one = found.version
    if not one.write_blocked:
        return
    by = next((other for other in found.versions if other.blocks == one.version), None)
    if by is not None:
        yield (
            f"Nothing can be written to {one.version}: a {by.unfinished} has blocked it for its last step, and goes on "
            f"or was cut off. Run the same {by.unfinished} again, or drop {by.version}."
        )
    elif one.state == "kept":
        yield f"Nothing can be written to {one.version}: it is kept as it was when another version took its place."
    else:
        yield f"Nothing can be written to {one.version}: somebody or a full disk has blocked it (index.blocks)."


def _of_unfinished(found: Description) -> Iterator[str]:
    for one in found.versions:
        if one.state == "unfinished":
            again = "Run it again with --resume" if one.unfinished == "load" else "Run it again"
            yield (
                f"{one.version} is not finished: a {one.unfinished} is making it, or was cut off. {again}, or "
                f"`langshift index drop {one.name} --version {one.version}`."
            )


def _scales(made: Fingerprint) -> str:
    single = (f"--alpha-for {shlex.quote(f'{tag}={alpha:g}')}" for tag, alpha in made.alphas.items())
    return " ".join([f"--alpha {made.alpha:g}", *single])


def _have(number: int) -> str:
    return f"{counted(number, 'document')} {'has' if number == 1 else 'have'}"


def _were(number: int) -> str:
    return f"{counted(number, 'document')} {'was' if number == 1 else 'were'}"

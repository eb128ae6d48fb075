"""Fields of a corpus as the options of ``langshift ingest`` name them."""

import math
from itertools import permutations

import click

from langshift.errors import UsageError
from langshift.ingest.documents import OPERATION, name_fault
from langshift.ingest.sources import own_fields
from langshift.parameters import option, option_group
from langshift.plugin.index_body import RESERVED_FIELDS
from langshift.plugin.metadata import CHUNK, PARENT, FieldNames

# What langshift itself makes of them.
_TAKEN = (*RESERVED_FIELDS, "language", "_id", OPERATION)


def from_options(
    id: str | None, title: str | None, texts: tuple[str, ...], language: str | None, group: str | None
) -> FieldNames | None:
    """The names of an index's fields; None where no option is given.

    Args:
        id: the field with a document's own id; None for ``_id``.
        title: the field with its title, ``title^3`` with a weight for word search; None for ``title``.
        texts: the fields with its texts, likewise; empty for ``text``.
        language: the field with its language; None for ``language``.
        group: the field that names its translations; None for ``group``.

    Raises:
        UsageError: a name cannot be used, or two cannot be used together.
    """
    if not any((id, title, texts, language, group)):
        return None
    titles = dict([weighted_field("--title-field", title or "title")])
    weighted = [weighted_field("--text-field", one) for one in texts or ("text",)]
    text_names = [name for name, _ in weighted]
    # A usual name that was given another part is not what it usually is.
    if title is None and "title" in text_names:
        titles = {}
    elif not texts and "text" in titles:
        text_names = []
    own_id, declared = (None if id == "_id" else id), (None if language == "language" else language)
    named = [("--title-field", name) for name in titles] + [("--text-field", name) for name in text_names]
    others = {"--id-field": own_id, "--language-field": declared, "--group-field": group}
    _require_usable(named, [(given, name) for given, name in others.items() if name is not None])
    return FieldNames(
        texts=(*titles, *text_names),
        declared_language=declared,
        # One field alone is the text.
        title=next(iter(titles), None) if text_names else None,
        by_language=True,
        weights={name: weight for name, weight in (*titles.items(), *weighted) if weight != 1},
        group=group or "group",
        id=own_id,
    )


def chunked_fields(fields: FieldNames, chunking: str | None) -> FieldNames:
    """The same fields where documents are cut into chunks; None leaves them whole.

    Raises:
        UsageError: one of them has the name of a field that a chunk has.
    """
    for name, given_as in fields.named_by() if chunking else []:
        if name.partition(".")[0] in (PARENT, CHUNK):
            raise UsageError(
                f"{given_as} {name}: with --chunk, langshift uses this name itself; rename the field in the corpus."
            )
    return fields.chunked(chunking)


def weighted_field(given_as: str, given: str) -> tuple[str, float]:
    """A field and its weight in a word search, of ``FIELD`` or ``FIELD^WEIGHT``.

    Args:
        given_as: the option, for messages.
        given: what it was given.

    Raises:
        UsageError: the weight is not a number above 0.
    """
    name, caret, weight = given.rpartition("^")
    if not caret:
        return given, 1.0
    try:
        number = float(weight)
    except ValueError:
        number = 0.0
    if not (name and number > 0 and math.isfinite(number)):
        raise UsageError(f"{given_as} {given}: the weight after ^ must be a number above 0, as in {name or 'body'}^2.")
    return name, number


def _require_usable(texts: list[tuple[str, str]], others: list[tuple[str, str]]) -> None:
    for given_as, name in (*texts, *others):
        if name in _TAKEN:
            raise UsageError(f"{given_as} {name}: langshift uses this name itself; rename the field in the corpus.")
        if fault := name_fault(name, ()):
            raise UsageError(f"{given_as} {name}: {fault}")
    pairs = [*permutations(texts, 2), *((one, other) for one in texts for other in others)]
    pairs += [(other, one) for one in texts for other in others]
    for (given_as, name), (other_as, other) in pairs:
        # Each text becomes an object with the languages.
        if f"{other}.".startswith(f"{name}."):
            raise UsageError(
                f"{given_as} {name} and {other_as} {other} cannot be used together: a text is stored by language, so "
                "its field can contain nothing else."
            )


def named_fields(fields: FieldNames) -> dict[str, str]:
    """Return the fields that the command line names, each with the option, after those of ``fields``."""
    given = click.get_current_context().params
    named = {**own_fields(fields), **dict.fromkeys(given["dates"], "--date-field")}
    for part in ("id", "title", "text", "language", "group"):
        values = given["texts"] if part == "text" else [given[part]]
        option = f"--{part}-field"
        named |= {weighted_field(option, value)[0]: option for value in values if value is not None}
    return named


FIELDS = option_group(
    "fields",
    from_options,
    option("--id-field F", "Field with the id. [default: _id]", dest="id"),
    option("--title-field F", "Field with the title. [default: title]", dest="title"),
    option("--text-field F", "Field with text; can be repeated. [default: text]", dest="texts", multiple=True),
    option("--language-field F", "Field with the language. [default: language]", dest="language"),
    option("--group-field F", "Field with the translation group. [default: group]", dest="group"),
)

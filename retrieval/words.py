"""A query as a person gives it: refused before anything is encoded where it cannot be searched for."""

from __future__ import annotations

from langshift.errors import UsageError
from langshift.surrogates import is_text

# What is longer is no query; encoders read a few hundred words.
MOST_CHARACTERS = 10_000
MOST_HITS = 1000


def require_query(words: object, size: object) -> None:
    """Refuse words that cannot be searched for, and a number of hits that cannot be given.

    Raises:
        UsageError: saying what is wrong.
    """
    # From Python anything may come.
    if not isinstance(words, str):
        raise UsageError(f"The query is {words!r}, and not text.")
    if not words.strip():
        raise UsageError("The query is empty: give the words to search for.")
    if not is_text(words):
        raise UsageError("The query is not UTF-8 text.")
    if len(words) > MOST_CHARACTERS:
        raise UsageError(
            f"The query has {len(words):,} characters, but at most {MOST_CHARACTERS:,} can be searched for."
        )
    if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MOST_HITS:
        raise UsageError(f"The size is {size!r}, but it must be a number of hits from 1 to {MOST_HITS:,}.")

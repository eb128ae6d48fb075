"""Which languages an encoder reads: as measured, and as vectors alone show where nothing was measured."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from langshift.debias.encoders.base import Matrix
from langshift.debias.similarity import with_norm_1
from langshift.languages import UNDETERMINED, text_language
from langshift.wording import join_words, pluralize


def _languages(tags: str) -> frozenset[str]:
    return frozenset(tags.split())


# Measured on NTREX-128 in passages of three sentences: in the first, a passage's translation is the nearest of 230
# English passages for 98 % of them or more, in the second for less than half. What lies between stands in neither.
_READ = {
    "e5-small": _languages(
        "ar bg bn ca cs da de el en es fa fi fr he hi hu id it ja ko ms nl no pl pt ro ru sv sw ta te th tr uk ur vi zh"
    ),
    "use-m": _languages("ar bg ca de en es fr id it ja ko ms nl pl pt ru th tr uk zh"),
}
_NOT_READ = {"use-m": _languages("bn el he hi ta te ur")}

#: Fewer documents of a language say nothing; so many are looked at.
FEWEST, SAMPLED = 20, 40
# With use-m 1 less the mean cosine of unrelated passages is .65 to .88 in languages that it reads, .20 to .75 in those
# that it reads poorly, and .02 to .19 in those where it does not find translations; with multilingual-e5-small, which
# reads them all, .16 to .25. So a language is compared with the one whose texts differ most.
_LEAST_SHARE = 0.2
# Where there is no other language to compare with.
_ALIKE = 0.95
# Texts with more of their sequences of four characters in common are templates, which may well be alike.
_UNRELATED, _FEWEST_PAIRS, _CHARACTERS = 0.3, 50, 1000


class LanguageSample(NamedTuple):
    """Some documents of a language.

    Attributes:
        vectors: as the encoder made them, not shifted, shape (n, d), float32.
        texts: what was encoded, n of them.
    """

    vectors: Matrix
    texts: Sequence[str]


def measured(encoder: str, language: str) -> bool | None:
    """Whether an encoder reads a language, as far as that was measured; None where it was not.

    Args:
        encoder: its id.
        language: a tag.
    """
    tag = text_language(language)
    if tag in _READ.get(encoder, ()):
        return True
    return False if tag in _NOT_READ.get(encoder, ()) else None


def unread(encoder: str, languages: Mapping[str, int], noted: Collection[str] = ()) -> dict[str, int]:
    """Languages that an encoder does not read, with their documents, the most frequent first.

    Args:
        encoder: its id.
        languages: tag -> documents.
        noted: languages of which that was seen from vectors.
    """
    most = sorted(languages.items(), key=lambda item: (-item[1], item[0]))
    # What was measured counts before what was seen.
    reads = {tag: measured(encoder, tag) for tag, _ in most if tag != UNDETERMINED}
    seen = {tag: tag not in noted if known is None else known for tag, known in reads.items()}
    return {tag: count for tag, count in most if not seen.get(tag, True)}


def collapsed(samples: Mapping[str, LanguageSample]) -> list[str]:
    """Languages of which the encoder makes nearly the same vector, whatever a text says.

    The mean cosine between unrelated texts of a language is compared with that in the language where it is lowest:
    a model that knows nothing of a language still gives each text a vector, but always nearly the same one.

    Args:
        samples: of every language, with ``FEWEST`` documents or more; others are passed over.
    """
    distances = dict(_distances(samples))
    if len(distances) == 1:
        return [language for language, distance in distances.items() if distance < 1 - _ALIKE]
    widest = max(distances.values(), default=0.0)
    return sorted(language for language, distance in distances.items() if distance < _LEAST_SHARE * widest)


def _distances(samples: Mapping[str, LanguageSample]) -> Iterator[tuple[str, float]]:
    """Languages, each with 1 less the mean cosine of its unrelated texts, where there are enough of these."""
    for language, sample in samples.items():
        if len(sample.texts) < FEWEST:
            continue
        parts = [_sequences(text) for text in sample.texts]
        units = with_norm_1(sample.vectors)
        cosines = units @ units.T
        unrelated = [
            cosines[row, column]
            for row, some in enumerate(parts)
            for column, others in enumerate(parts[:row])
            if len(some & others) < _UNRELATED * min(len(some), len(others))
        ]
        if len(unrelated) >= _FEWEST_PAIRS:
            yield language, 1 - float(np.mean(unrelated))


def _sequences(text: str) -> frozenset[str]:
    shortened = text[:_CHARACTERS]
    return frozenset(shortened[place : place + 4] for place in range(max(len(shortened) - 3, 1)))


def unread_in_words(encoder: str, documents: Mapping[str, int], entry: str = "document") -> list[str]:
    """Say which documents can be found by words only; no sentence where there are none.

    Args:
        encoder: id of the encoder that does not read them.
        documents: language -> how many.
        entry: what each of these is, ``chunk`` where documents are cut into chunks.
    """
    if not documents:
        return []
    one = len(documents) == 1
    languages = next(iter(documents)) if one else join_words([f"{tag} ({n:,})" for tag, n in documents.items()])
    whose = "that language" if one else "those languages"
    return [
        f"{pluralize(sum(documents.values()), entry)} in {languages} can be found by words only: the encoder "
        f"{encoder} cannot read {whose}."
    ]

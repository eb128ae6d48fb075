"""The README's commands: run them in order, and compare or renew the output that it shows.

``python tests/support/readme.py`` runs them and writes what they printed into the README. Blocks marked
``sh`` are run in one folder; a ``text`` block after one shows its standard output.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

README = Path(__file__).resolve().parents[2] / "README.md"
DATA = Path(os.environ.get("LANGSHIFT_DATA") or README.parents[1] / "shared" / "data")
_BLOCK = re.compile(r"```sh\n(?P<code>.*?)```\n(?:\n(?:<!-- [^\n]* -->\n)?```text\n(?P<shown>.*?)```\n)?", re.DOTALL)


class Block(NamedTuple):
    """A block of commands, the output shown after it (None where none is), and where that stands."""

    code: str
    shown: str | None
    span: tuple[int, int]


def blocks(text):
    """The README's blocks of commands, in order."""
    return [Block(m["code"], m["shown"], m.span("shown")) for m in _BLOCK.finditer(text)]


def run(code, folder, rename=lambda text: text, **variables):
    """Standard output of a block; a command that fails raises with its standard error."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    env = {**os.environ, "PATH": path, "XQUAD": str(DATA / "xquad"), "NTREX": str(DATA / "ntrex"), **variables}
    script = f"set -eu\n{rename(code)}"
    done = subprocess.run(["/bin/sh", "-c", script], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"{code}\nended with exit code {done.returncode}:\n{done.stderr}")
    # Whose home it is, and which cluster, is nobody's business.
    printed = _PLACE.sub("~/.local/share/langshift/loads/", done.stdout)
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def differences(printed, shown):
    """Lines of the output that say something else than the README shows.

    Words and whole numbers must be the same; scores and measures (``.7802``, ``0.61``) within .006, as far as
    approximate search and other processors move them; speeds, milliseconds, sizes, days, differences from NumPy
    and hashes need only be such.
    """
    ours, theirs = printed.splitlines(), shown.splitlines()
    if len(ours) != len(theirs):
        return [f"{len(ours)} lines printed, {len(theirs)} shown"]
    return [
        f"{mine!r} is shown as {other!r}" for mine, other in zip(ours, theirs, strict=True) if not _same(mine, other)
    ]


def _same(mine, other):
    if _CHANGES.search(mine) and _CHANGES.search(other):
        mine_changes, other_changes = _CHANGES.findall(mine), _CHANGES.findall(other)
        if not _same_changes(mine_changes, other_changes):
            return False
        mine, other = _CHANGES.sub("", mine), _CHANGES.sub("", other)
    pairs = list(zip(mine.split(), other.split(), strict=False))
    return len(mine.split()) == len(other.split()) and all(_same_word(a, b) for a, b in pairs)


def _same_changes(mine, other):
    """Whether two lists of the languages that change most say the same; those as near as the last may change places."""
    ours, theirs = ([abs(float(change)) for _, change in found] for found in (mine, other))
    if len(ours) != len(theirs) or any(abs(a - b) > _NEAR for a, b in zip(ours, theirs, strict=True)):
        return False
    clear = [(language, change[0]) for language, change in mine if abs(float(change)) > min(ours) + _NEAR]
    return set(clear) <= {(language, change[0]) for language, change in other}


def _same_word(mine, other):
    if mine == other or (re.fullmatch(_SPEED, mine) and re.fullmatch(_SPEED, other)):
        return True
    if re.fullmatch(_SCORE, mine) and re.fullmatch(_SCORE, other):
        return abs(float(mine.rstrip(_END)) - float(other.rstrip(_END))) <= _NEAR
    # A processor that rounds otherwise gives language vectors another hash.
    return any(re.fullmatch(form, mine) and re.fullmatch(form, other) for form in _FREE)


_END = ",.:"
_SPEED, _SCORE = r"[\d,]+/s[,.]", rf"[+-]?0?\.\d+[{_END}]?"
_MILLISECONDS_OR_SIZE, _HASH = r"\d+\.\d", r"[0-9a-f]{16}"
_DAY, _DIFFERENCE = r"\d{4}-\d\d-\d\d", r"\d\.\de[+-]\d\d\.?"
_FREE = (_MILLISECONDS_OR_SIZE, _HASH, _DAY, _DIFFERENCE)
_CHANGES = re.compile(r"\b([a-z]{2,3}) ([+-]\.\d{3}),?")
# How far approximate search and other processors move a figure.
_NEAR = 0.006
_PLACE = re.compile(r"\S*/loads/\S+?/")


def renew():
    """Run every block, and write what was printed into the README."""
    text = README.read_text(encoding="utf-8")
    replaced = []
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks(text):
            printed = run(block.code, folder)
            print(block.code, printed, sep="")
            if block.shown is not None:
                replaced.append((block.span, printed))
    for (start, end), printed in reversed(replaced):
        text = text[:start] + printed + text[end:]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()

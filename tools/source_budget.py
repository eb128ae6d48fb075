"""How large the source and the command line are, and whether that is within their budget.

    python tools/source_budget.py              each figure beside its limit; ends with 1 where one is above
    python tools/source_budget.py --set        set the limits to what is there now
    python tools/source_budget.py --set --more 120

Counted are the lines of code that ship, without blanks, comments and docstrings, by room and language. The limits are
tools/source_budget.json. What may rise, and when, is in CONTRIBUTING.md; ``--set`` refuses what may not. The modules of
a way are listed in docs/architecture.md, which a test compares with a traced run.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from check_names import ROOMS, ROOT
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment

# What is counted is the code beside this file, whatever langshift is installed.
sys.path.insert(0, str(ROOT / "lab"))
sys.path.insert(0, str(ROOT))
from langshift.cli import root as command_line

BUDGET = Path(__file__).with_suffix(".json")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
WAYS = ("document", "query", "replay")
CORE = tuple(room for room in ROOMS if not room.startswith("lab"))
#: The laboratory, a distribution of its own, whose commands come into those of the core.
LAB = "lab/langshift_lab"
#: Ending -> language, and how Pygments calls what reads it, to which Painless is Java.
LANGUAGES = {
    ".py": ("Python", "python"),
    ".java": ("Java", "java"),
    ".painless": ("Painless", "java"),
    ".html": ("HTML", "html+jinja"),
    ".css": ("CSS", "css"),
    ".js": ("JavaScript", "javascript"),
}
#: Most lines of Python that one issue may add, net.
MOST_MORE = 400
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def main(arguments: list[str]) -> int:
    """Print each figure beside its limit, or set the limits; 1 where a figure is above, or may not be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", action="store_true", help="set the limits to what is there now")
    parser.add_argument("--more", type=int, default=0, metavar="LINES", help="lines of Python that are added, net")
    given = parser.parse_args(arguments)
    if not 0 <= given.more <= MOST_MORE:
        parser.error(f"--more {given.more}: one issue may add at most {MOST_MORE} lines of Python")
    limits: dict[str, int] = json.loads(BUDGET.read_text(encoding="utf-8"))
    figures = measure(ROOT) | measure_commands(command_line)
    if given.set:
        refused = may_not_rise(limits, figures, given.more)
        if not refused:
            BUDGET.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
        print("\n".join(refused) or f"{BUDGET.relative_to(ROOT)}: {len(figures)} limits")
        return int(bool(refused))
    for name, figure in figures.items():
        over = figure - limits.get(name, 0)
        print(f"{name:40} {figure:6,} of {limits.get(name, 0):6,}" + (f"  {over:,} above" if over > 0 else ""))
    return int(any(figure > limits.get(name, 0) for name, figure in figures.items()))


def measure(root: Path) -> dict[str, int]:
    """Return lines of code by room and language, their sums, the largest file, modules, and the modules of each way."""
    lines: dict[str, int] = defaultdict(int)
    sums: dict[str, int] = defaultdict(int)
    for room in (*CORE, LAB):
        of = "lab" if room == LAB else room
        for path, (language, lexer) in _files(root / room):
            count = code_lines(path.read_text(encoding="utf-8"), lexer)
            lines[f"{of}: {language}"] += count
            if room != LAB:
                sums[f"core: {language}"] += count
    core = [path for room in CORE for path, _ in _files(root / room)]
    text = ARCHITECTURE.read_text(encoding="utf-8") if ARCHITECTURE.exists() else ""
    return {
        **lines,
        **sums,
        "core: lines of the largest file": max(len(path.read_text(encoding="utf-8").splitlines()) for path in core),
        "core: modules": sum(path.suffix == ".py" and path.name != "__init__.py" for path in core),
        **{f"core: modules of a {way}'s way": len(modules_of(way, text)) for way in WAYS},
    }


def _files(folder: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in LANGUAGES:
            yield path, LANGUAGES[path.suffix]


def may_not_rise(limits: Mapping[str, int], figures: Mapping[str, int], more: int = 0) -> list[str]:
    """Return a sentence for each figure that is to rise although it may not.

    Lines of a room may rise by what other rooms lose in the same language, and the core alone may not take them from
    the laboratory. Of Python there may be some more in all. No other figure may rise.
    """
    allowed = {"Python": more}
    sentences = []
    for language in dict.fromkeys(language for language, _ in LANGUAGES.values()):
        for rooms in (CORE, (*CORE, "lab")):
            before, now = (sum(some.get(f"{room}: {language}", 0) for room in rooms) for some in (limits, figures))
            if (over := now - before - allowed.get(language, 0)) > 0:
                of = "core and lab" if rooms != CORE else "core"
                sentences.append(f"{of}: {now:,} lines of {language}, of {before:,}: delete {over:,}")
                break
    others = [name for name in figures if name.partition(": ")[2] not in {of for of, _ in LANGUAGES.values()}]
    # A limit that has not been there before is none that rises.
    return sentences + [
        f"{name}: {figures[name]:,} of {limits[name]:,}: to raise this, edit {BUDGET.name}, and say why in the commit"
        for name in others
        if figures[name] > limits.get(name, figures[name])
    ]


def measure_commands(command: click.Command) -> dict[str, int]:
    """Return how many commands there are, without groups, and how many options they have, without ``--help``."""
    counted = {"core": [0, 0], "lab": [0, 0]}
    for leaf in _leaves(command):
        of = counted["lab" if getattr(leaf.callback, "__module__", "").startswith("langshift_lab") else "core"]
        of[0] += 1
        of[1] += sum(isinstance(one, click.Option) for one in leaf.params)
    return {
        f"{of}: {name}": count
        for of, counts in counted.items()
        for name, count in zip(("commands", "options"), counts, strict=True)
        if of == "core" or any(counts)
    }


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _leaves(command.get_command(context, name) or click.Command(name))
    else:
        yield command


def code_lines(source: str, lexer: str = "python") -> int:
    """Return the lines of a file without comments, docstrings and blanks."""
    if lexer == "python":
        return _lines_of_python(source)
    lines, number = set(), 1
    for kind, text in get_lexer_by_name(lexer, stripnl=False).get_tokens(source):
        # A tag of Jinja, and what kind of document it is, are comments to Pygments, of a kind of their own.
        if kind not in Comment or kind in Comment.Preproc:
            lines |= {number + row for row, part in enumerate(text.split("\n")) if part.strip()}
        number += text.count("\n")
    return len(lines)


def _lines_of_python(source: str) -> int:
    strings = [statement for _, statement in docstrings(ast.parse(source))]
    documented = {line for one in strings for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for one in tokens if one.type not in _NO_CODE for line in range(one.start[0], one.end[0] + 1)}
    return len(lines - documented)


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Expr]]:
    """Every definition of a module that has a docstring, the module itself among them, with the docstring."""
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            statement = node.body[0]
            if isinstance(statement, ast.Expr):
                yield node, statement


def modules_of(way: str, text: str) -> list[str]:
    """Return the modules that docs/architecture.md lists for a way, in its order: those before a line's colon."""
    found = re.search(rf"<!-- way of a {way} -->\n(.*?)\n\n", text, re.DOTALL)
    lines = re.findall(r"^\d+\. (.*?): ", found[1], re.MULTILINE) if found else []
    return [module for line in lines for module in re.findall(r"`([^`]+\.py)`", line)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

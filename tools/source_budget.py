"""How large the source and the command line are, and whether that is within their budget.

    python tools/source_budget.py

The budget is tools/source_budget.json; the modules of a way are listed in docs/architecture.md, which a test compares
with a traced run. Whoever raises a figure of the budget does so in a commit of its own, with the reason.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
from check_names import ROOMS, ROOT

# What is counted is the code beside this file, whatever langshift is installed.
sys.path.insert(0, str(ROOT))
from langshift.cli import root

BUDGET = Path(__file__).with_suffix(".json")
ARCHITECTURE = ROOT / "docs" / "architecture.md"
WAYS = ("document", "query", "replay")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def main() -> int:
    """Print each figure beside its budget; 1 where one is above."""
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    figures = measure(ROOT) | measure_commands(root)
    for name, figure in figures.items():
        over = figure - budget[name]
        print(f"{name:32} {figure:6,} of {budget[name]:6,}" + (f"  {over:,} over the budget" if over > 0 else ""))
    return int(any(figure > budget[name] for name, figure in figures.items()))


def measure(root: Path) -> dict[str, int]:
    """Return the lines of code, in all and of the room for evaluation, of the largest file, and modules of each way."""
    paths = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    code = {path: code_lines(path.read_text(encoding="utf-8")) for path in paths}
    figures = {
        "lines of code": sum(code.values()),
        "lines of code of evaluate/": sum(
            lines for path, lines in code.items() if path.is_relative_to(root / "evaluate")
        ),
        "lines of the largest file": max(len(path.read_text(encoding="utf-8").splitlines()) for path in paths),
    }
    text = ARCHITECTURE.read_text(encoding="utf-8") if ARCHITECTURE.exists() else ""
    return figures | {f"modules of a {way}'s way": len(modules_of(way, text)) for way in WAYS}


def measure_commands(command: click.Command) -> dict[str, int]:
    """Return how many commands there are, without groups, and how many options they have, without ``--help``."""
    commands = list(_leaves(command))
    options = [one for leaf in commands for one in leaf.params if isinstance(one, click.Option)]
    return {"commands": len(commands), "options": len(options)}


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _leaves(command.get_command(context, name) or click.Command(name))
    else:
        yield command


def code_lines(source: str) -> int:
    """Return the lines of a module without comments, docstrings and blanks."""
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
    """Return the modules that docs/architecture.md lists for a way, in its order."""
    found = re.search(rf"<!-- way of a {way} -->\n(.*?)\n\n", text, re.DOTALL)
    return re.findall(r"^\d+\. `([^`]+\.py)`", found[1], re.MULTILINE) if found else []


if __name__ == "__main__":
    sys.exit(main())

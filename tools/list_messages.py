"""List every message of the product: what it prints, refuses, explains and asks, sentence by sentence.

    python tools/list_messages.py            place and text of each, one a line
    python tools/list_messages.py --text     the texts alone, sorted: two of these lists can be compared with diff

A message is a string of the source with two words or more that is no docstring, or the docstring of a command, which is
its help. What is filled in later stands in braces.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from check_names import ROOMS, ROOT
from source_budget import docstrings

_WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z({]")


class Message(NamedTuple):
    """A message.

    Attributes:
        path: of the module, from the repository's root.
        line: its first line.
        text: with what is filled in as its expression in braces.
    """

    path: str
    line: int
    text: str


def main(arguments: list[str]) -> None:
    """Print the list."""
    messages = [
        message for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) for message in messages_of(path)
    ]
    if arguments == ["--text"]:
        print(*sorted({one.text for one in messages}), sep="\n")
    else:
        print(*(f"{one.path}:{one.line}: {one.text}" for one in messages), sep="\n")


def messages_of(path: Path) -> Iterator[Message]:
    """The messages of a module, in its order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    passed = {id(statement.value) for definition, statement in docstrings(tree) if not _is_command(definition)}
    for node in _strings(tree):
        text = " ".join(_text(node).split())
        if id(node) not in passed and _WORDS.search(text):
            yield Message(str(path.relative_to(ROOT)), node.lineno, text)


def _is_command(definition: ast.AST) -> bool:
    decorators = map(ast.unparse, getattr(definition, "decorator_list", []))
    return any(re.search(r"\b(command|group)\(", one) for one in decorators)


def _strings(node: ast.AST) -> Iterator[ast.JoinedStr | ast.Constant]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            yield child
            # What stands between the braces alone: the rest is part of this string.
            for part in child.values:
                if isinstance(part, ast.FormattedValue):
                    yield from _strings(part)
        elif isinstance(child, ast.Constant):
            if isinstance(child.value, str):
                yield child
        else:
            yield from _strings(child)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    return "".join(map(_text, node.values)) if isinstance(node, ast.JoinedStr) else ""


if __name__ == "__main__":
    main(sys.argv[1:])

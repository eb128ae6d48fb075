"""Names of the source: no class name twice, and no word of an old private vocabulary in a name.

    python tools/check_names.py

Field names and local variables are left out, since files and documents of the index take their keys from some.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where the packages are, below the root of the repository: the rooms of langshift, and the laboratory.
LAB = "lab/langshift_lab"
ROOMS = ("langshift", "debias", "plugin", "ingest", "retrieval", "evaluate", "web", LAB)
# Words that stood for hits, messages, queries, metadata and settings alike: whoever knows the field's terms finds none.
FORBIDDEN = [
    "told",
    "tell",
    "asked",
    "asker",
    "asking",
    "wish",
    "standing",
    "making",
    "maker",
    "way",
    "kept",
    "brought",
    "broken_off",
    "settled",
    "taken_back",
    "taken_over",
    "strays",
    "left_behind",
    "given_up",
    "by_words",
    "by_vector",
    "never_still",
    "courier",
    "put_together",
    "bring_up",
    "looked",
]
_FORBIDDEN = re.compile(rf"(?<![^_])({'|'.join(FORBIDDEN)})(?![^_])")
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def main() -> int:
    """Print what is wrong with the names; 1 where something is."""
    problems = [*forbidden(ROOT), *defined_twice(ROOT)]
    print("\n".join(problems) or "names: each class name once, no word of the old vocabulary")
    return int(bool(problems))


def forbidden(root: Path) -> list[str]:
    """Return the modules, classes, functions and parameters under a root with a forbidden word in their names."""
    found = []
    for path, tree in _modules(root):
        found += [f"{path}: module {part}" for part in path.with_suffix("").parts if _is_forbidden(part)]
        found += [f"{path}:{line}: {kind} {name}" for line, kind, name in sorted(_names(tree)) if _is_forbidden(name)]
    return found


def defined_twice(root: Path) -> list[str]:
    """Return the class names under a root that stand for several classes, with their places."""
    places = defaultdict(list)
    for path, tree in _modules(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path}:{node.lineno}")
    return [f"class {name} in {', '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def _modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            yield path.relative_to(root), ast.parse(path.read_bytes())


def _names(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "function", node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, "parameter", node.arg


def _is_forbidden(name: str) -> bool:
    return bool(_FORBIDDEN.search(_CAPITALS.sub("_", name).lower()))


if __name__ == "__main__":
    sys.exit(main())

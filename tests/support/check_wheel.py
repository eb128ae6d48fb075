"""Run mypy, import-linter and a search for circles over the built wheel, where the rooms lie in the package."""

import shutil
import subprocess
import sys
import zipfile
from graphlib import CycleError, TopologicalSorter

import grimp
from built_wheel import ROOT, built_wheel

TREE = ROOT / ".build" / "checked"
CONFIG = str(ROOT / "pyproject.toml")
# import-linter has no module that Python could run by name.
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"
CHECKS = (
    ["-m", "mypy", "--config-file", CONFIG, "-p", "langshift"],
    ["-c", LINT_IMPORTS, "--config", CONFIG, "--no-cache"],
)


def main():
    """Unpack the wheel that was built last, and check the package in it; 1 where a check fails."""
    shutil.rmtree(TREE, ignore_errors=True)
    with zipfile.ZipFile(built_wheel()) as archive:
        archive.extractall(TREE)
    codes = [subprocess.run([sys.executable, *check], cwd=TREE, check=False).returncode for check in CHECKS]
    circle = circle_of_modules("langshift", TREE)
    print("circle of modules: " + (" imports ".join(circle) if circle else "none"))
    return int(any(codes) or bool(circle))


def circle_of_modules(package, folder):
    """Modules of which each imports the next, the last one the first again; none in most trees.

    Imports within functions count, and those for types alone.
    """
    sys.path.insert(0, str(folder))
    graph = grimp.build_graph(package, cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        # Each is imported by the next in its list.
        return error.args[1][::-1]
    return []


if __name__ == "__main__":
    sys.exit(main())

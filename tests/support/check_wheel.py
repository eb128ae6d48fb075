"""Run mypy, import-linter and a search for circles over the built wheels, where the rooms lie in the package.

langshift is looked at alone, and then the laboratory beside it.
"""

import shutil
import subprocess
import sys
import zipfile
from graphlib import CycleError, TopologicalSorter

import grimp
from built_wheel import ROOT, SOURCES, built_wheel

TREE = ROOT / ".build" / "checked"
CONFIG = str(ROOT / "pyproject.toml")
# import-linter has no module that Python could run by name.
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def main():
    """Unpack the wheels that were built last, one after the other, and check the package in each; 1 where one fails."""
    shutil.rmtree(TREE, ignore_errors=True)
    failed = [package for package, source in SOURCES.items() if check(package, source)]
    return int(bool(failed))


def check(package, source):
    """Unpack a package's wheel beside what is there already, and check it; whether something is wrong."""
    with zipfile.ZipFile(built_wheel(package)) as archive:
        archive.extractall(TREE)
    contracts = str(source / "pyproject.toml")
    checks = (
        ["-m", "mypy", "--config-file", CONFIG, "-p", package],
        ["-c", LINT_IMPORTS, "--config", contracts, "--no-cache"],
    )
    codes = [subprocess.run([sys.executable, *check], cwd=TREE, check=False).returncode for check in checks]
    circle = circle_of_modules(package, TREE)
    print(f"circle of modules of {package}: " + (" imports ".join(circle) if circle else "none"))
    return any(codes) or bool(circle)


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

"""Run mypy and import-linter over the built wheel: neither knows of rooms that stand beside the package's folder."""

import shutil
import subprocess
import sys
import zipfile

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
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())

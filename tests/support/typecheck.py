"""Run mypy over the built wheel: mypy cannot see through the editable install's room mapping."""

import shutil
import subprocess
import sys
import zipfile

from built_wheel import ROOT, built_wheel

BUILD = ROOT / ".build" / "typecheck"


def main():
    """Unpack the wheel that was built last, and check the package in it; mypy's exit code."""
    shutil.rmtree(BUILD, ignore_errors=True)
    with zipfile.ZipFile(built_wheel()) as archive:
        archive.extractall(BUILD / "tree")
    check = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "langshift"]
    return subprocess.run(check, cwd=BUILD / "tree", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Run mypy over the built wheel: mypy cannot see through the editable install's room mapping."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build" / "typecheck"


def main() -> int:
    """Build the wheel, unpack it, and check the package in it; mypy's exit code."""
    shutil.rmtree(BUILD, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(BUILD / "dist"), str(ROOT)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    (wheel,) = (BUILD / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(BUILD / "tree")
    check = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "langshift"]
    return subprocess.run(check, cwd=BUILD / "tree", check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

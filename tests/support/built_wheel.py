"""Build the wheel that the type check and the smoke test look at: ``built_wheel.py`` builds it into .build/wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build" / "wheel"


def built_wheel():
    """The wheel that was built last."""
    (wheel,) = FOLDER.glob("*.whl")
    return wheel


def build_wheel():
    """Build the wheel from the sources as they are now."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(FOLDER), str(ROOT)]
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)


if __name__ == "__main__":
    build_wheel()

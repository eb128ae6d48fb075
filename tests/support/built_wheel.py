"""Build the wheels that the type check and the smoke test look at: ``built_wheel.py`` builds them into .build/wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".build" / "wheel"


#: Distribution -> the folder of its sources; langshift first, which the other one needs.
SOURCES = {"langshift": ROOT, "langshift_lab": ROOT / "lab"}


def built_wheel(distribution="langshift"):
    """The wheel of a distribution that was built last."""
    (wheel,) = FOLDER.glob(f"{distribution}-*.whl")
    return wheel


def build_wheels():
    """Build the wheels from the sources as they are now."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for source in SOURCES.values():
        build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(FOLDER), str(source)]
        done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout)


if __name__ == "__main__":
    build_wheels()

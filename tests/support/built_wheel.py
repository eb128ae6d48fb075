"""Build the wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build_wheel(folder):
    """The wheel, built into ``folder`` from the sources as they are now."""
    # setuptools packs whatever an earlier build left here, modules that are gone included.
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel

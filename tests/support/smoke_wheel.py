"""Install the built wheels into a clean environment and use them as a newcomer would."""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import httpx
from built_wheel import built_wheel
from console_process import Served
from demo_page import require_page_shows

from langshift.settings import Settings

NO_EXTRA = (
    "Error: The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
    "or set OPENSEARCH_URL to your own cluster.\n"
)
NO_LAB = (
    "Error: langshift evaluate board belongs to langshift-lab, which is not installed: pip install langshift-lab.\n"
)
#: What the bare wheel says of commands that want more.
REFUSED = {
    "up": (1, "", NO_EXTRA),
    "plugin build": (1, "", "Error: Building the plugin needs an extra: pip install 'langshift[embedded]'.\n"),
    "ingest s3://b/c.jsonl --index n": (
        1,
        "",
        "Error: s3://b/c.jsonl is in S3, which needs an extra: pip install 'langshift[s3]'.\n",
    ),
    "evaluate board results": (2, "", NO_LAB),
}


def main():
    """Install without and with the extra, and run what needs each."""
    with tempfile.TemporaryDirectory(prefix="langshift wheel ") as folder:
        here = Path(folder)
        here.chmod(0o755)  # as root, OpenSearch runs as another user, who must come in here
        env = {name: value for name, value in os.environ.items() if name != "OPENSEARCH_URL"}
        env["LANGSHIFT_HOME"] = str(here / "home")
        downloads = Settings.from_env().home / "downloads"
        if downloads.is_dir():
            (here / "home").mkdir()
            (here / "home" / "downloads").symlink_to(downloads)
        check(here, built_wheel(), built_wheel("langshift_lab"), env)
    print("The built wheels work.")


def check(here, wheel, lab, env):
    """Install the wheel below ``here`` and use it, first without the laboratory's."""
    venv.create(here / "env", with_pip=True)
    pip = [here / "env/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    langshift = here / "env/bin/langshift"
    run(here, env, *pip, wheel)
    print(run(here, env, langshift, "--version"), end="")
    assert "demo" in run(here, env, langshift, "--help")
    for encoder, count in (("e5-small", 38), ("use-m", 15)):
        assert len(json.loads(run(here, env, langshift, "vectors", "check", encoder, "--json"))["languages"]) == count
    for command, expected in REFUSED.items():
        words = command.split()
        refused = subprocess.run([langshift, *words], cwd=here, env=env, capture_output=True, text=True, check=False)
        assert (refused.returncode, refused.stdout, refused.stderr) == expected, refused

    run(here, env, *pip, f"{wheel}[embedded]")
    try:
        told = json.loads(run(here, env, langshift, "demo", "--json"))
        assert told["shifted"]["queries"]["asked"] == 1056, told
        assert told["shifted"]["errors"] == 0, told
        assert told["report"] is None, told
        require_page_shows(told)
        made = json.loads(run(here, env, langshift, "plugin", "build", "--json"))
        assert all(Path(made[name]).exists() for name in ("zip", "search_zip"))
        print(run(here, env, langshift, "search", "langshift-demo-shifted", "Why does the sea rise?", "--size", "3"))
        run(here, env, *pip, f"{wheel}[embedded,console]")
        runs = here / "home/results/demo"
        print(run(here, env, langshift, "evaluate", "compare", runs / "plain", runs / "shifted", "--report", runs))
        run(here, env, *pip, lab)
        for command in ("evaluate board", "rerank fit", "vectors tune"):
            assert command in run(here, env, langshift, *command.split(), "--help")
        check_console([langshift, "serve", "--port", "0", "--json"], here, env)
    finally:
        run(here, env, langshift, "down")


def check_console(command, here, env):
    """Its pages, script and style are in the wheel."""
    with subprocess.Popen(command, cwd=here, env=env, stdout=subprocess.PIPE) as process:
        try:
            with httpx.Client(base_url=Served(process).url, timeout=60, trust_env=False) as client:
                paths = ("/search?q=tides", "/indices", "/evaluations", "/static/style.css", "/static/console.js")
                answers = {path: client.get(path).status_code for path in paths}
            assert set(answers.values()) == {200}, answers
        finally:
            process.terminate()


def run(here, env, *command):
    """Standard output of a command that must succeed."""
    done = subprocess.run([*map(str, command)], cwd=here, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main()

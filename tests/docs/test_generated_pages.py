"""docs/reference/cli.md and docs/reference/measures.md are made of the code alone, and one that is stale is named."""

import subprocess
import sys

import generate_pages
from documents import ROOT


def test_the_pages_depend_on_the_code_alone():
    code = "import generate_pages; print(end=''.join(page() for page in generate_pages.PAGES.values()))"
    env = {
        "COLUMNS": "40",
        "HOME": "/nonexistent",
        "LANGSHIFT_HOME": "/elsewhere",
        "OPENSEARCH_URL": "http://none:9200",
    }
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT / "tools", env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n## langshift up\n" in done.stdout
    assert "\n## nDCG@k\n" in done.stdout
    # They were made where the terminal and the settings were others.
    kept = "".join((generate_pages.DOCS / name).read_text(encoding="utf-8") for name in generate_pages.PAGES)
    assert done.stdout == kept


def test_a_stale_page_is_named_with_the_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate_pages, "DOCS", tmp_path)
    monkeypatch.setattr(generate_pages, "PAGES", {"one.md": lambda: "1\n", "two.md": lambda: "2\n"})
    assert generate_pages.main([]) == 0
    capsys.readouterr()
    (tmp_path / "two.md").write_text("3\n")
    assert generate_pages.main(["--check"]) == 1
    stale = "docs/reference/two.md is not what the code says now: run `make pages`, and commit the page.\n"
    assert capsys.readouterr().out == stale
    assert (tmp_path / "two.md").read_text() == "3\n"

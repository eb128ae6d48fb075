"""How `make docs` builds the site: Sphinx over README.md and docs/, as they are for GitHub, into .build/site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "langshift"
copyright = "the authors of langshift, Apache-2.0"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "langshift"
html_copy_source = False
html_show_sourcelink = False

# The source folder is the repository, so that links between README.md and docs/ are the same here and on GitHub.
root_doc = "README"
# The other pages, in the order of the navigation.
NAVIGATION = {
    "Use": [
        "docs/demo",
        "docs/operations",
        "docs/ingest",
        "docs/adopt-and-retune",
        "docs/search",
        "docs/search-page",
        "docs/console",
    ],
    "Go further": [
        "docs/encoders-and-vectors",
        "docs/evaluate",
        "docs/judgements",
        "docs/rerankers",
        "docs/rag",
        "docs/clients",
        "docs/plugin",
        "docs/service",
        "docs/scale",
        "docker/README",
    ],
    "Look up": [
        "docs/reference/cli",
        "docs/reference/lab-cli",
        "docs/reference/api",
        "docs/reference/measures",
        "docs/reference/loads",
        "docs/reference/languages",
        "docs/reference/models",
        "docs/reference/format",
        "docs/reference/permissions",
        "docs/reference/glossary",
        "docs/reproduction",
    ],
    "Work on it": ["CONTRIBUTING", "docs/architecture", "tests/README", "tests/bench/RESULTS", "CHANGELOG"],
}
# A page of docs/ that stands nowhere in the navigation is a warning, too.
include_patterns = [
    *("README.md", "docs/*.md", "docs/reference/*.md"),
    *("docker/README.md", "tests/README.md", "tests/bench/RESULTS.md", "CONTRIBUTING.md", "CHANGELOG.md"),
]
# Folders that Sphinx would otherwise walk through.
exclude_patterns = [".*", "build", "dist", "results"]

# Anchors as GitHub makes them; a link to one that is not there is a warning, and warnings end the build.
myst_heading_anchors = 4
# A request with its method and path above its body is shown as JSON, which it is not to the letter.
suppress_warnings = ["misc.highlighting_failure"]


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page its list of pages, which GitHub would show as code."""
    if page == root_doc:
        for name, pages in NAVIGATION.items():
            source[0] += "\n".join((f"\n```{{toctree}}\n:hidden:\n:caption: {name}\n", *pages, "```\n"))


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Lead who opens the folder to the first page."""
    if error is None:
        page = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Have Sphinx call the two."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_index)

"""Pictures of the console's pages and of a report for README.md and docs/console.md.

``.venv/bin/python tests/support/screenshots.py`` runs ``langshift demo`` (which indexes its corpus twice, as
langshift-demo-plain and langshift-demo-shifted), starts ``langshift serve``, takes the pictures with the system's
Chromium, and writes them to docs/images. It needs a cluster as every command does: OPENSEARCH_URL, else the embedded
one. All scripts show where their fonts are installed, on Debian: apt-get install fonts-noto-core fonts-noto-cjk.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from browsers import ABSENT, find_browser
from command_line import LANGSHIFT
from console_process import serving
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from langshift.evaluate.demo import PLAIN, SHIFTED
from langshift.settings import Settings

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
# Of one picture; pictures are in every checkout for good.
MOST_BYTES = 200_000
COLOURS = 128
PATIENCE = 300_000
# Of the demo's questions (coffee-ko-1) one whose hits change much: why does a cappuccino keep me awake till midnight?
WORDS = "저녁 식사 후에 카푸치노를 주문하면 왜 자정까지 눈이 말똥말똥한가요?"


COMPARED = "/evaluations/report?" + urlencode([("run", "demo/plain"), ("run", "demo/shifted")])


class Picture(NamedTuple):
    """One picture.

    Attributes:
        name: of its file, without ``.png``.
        address: of the page.
        height: how much of the page is shown, in pixels.
        width: of the window, in pixels.
        theme: ``light`` or ``dark``.
        prepare: what a person does first.
    """

    name: str
    address: str
    height: int = 900
    width: int = 1200
    theme: str = "light"
    prepare: Callable[[Page], None] | None = None


def searched(**more):
    """The search page with both indices of the demo; in names ``_`` stands for a dot."""
    state = {"q": WORDS, "left": PLAIN, "right": SHIFTED}
    return "/search?" + urlencode(state | {name.replace("_", "."): value for name, value in more.items()})


def results_first(page):
    """Show the lists, where the window has no room for the sliders too."""
    page.locator("#results").evaluate("one => one.scrollIntoView()")


def why(page):
    """Ask why the first hit that rose is where it is."""
    page.locator("section[aria-labelledby=right-heading] li.hit:has(.change.up) a[data-dialog]").first.click()
    page.get_by_role("dialog").wait_for()


def figures_first(page):
    """Show the report from its first figures on; its top names folders of whoever took the picture."""
    page.get_by_role("heading", name="Languages of the hits").evaluate("one => one.scrollIntoView()")


PICTURES = (
    Picture("search", searched(), height=1500),
    Picture("search-dark", searched(right_alpha="0.5", right_prefer="0.02"), height=1200, theme="dark"),
    Picture("search-phone", searched(), width=400, height=850, prepare=results_first),
    Picture("why", searched(), prepare=why),
    Picture("index", f"/indices/{SHIFTED}", height=1100),
    # Below, the command names a folder of whoever took the picture.
    Picture("evaluations", "/evaluations", height=660),
    Picture("report", COMPARED, height=1000, prepare=figures_first),
)


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([LANGSHIFT, "demo", "--output", str(Path(folder, "demo"))], check=True)
        take(Path(folder))


def take(results):
    """Take all pictures, with the demo's results in a folder."""
    program = find_browser()
    if program is None:
        sys.exit(f"There is no browser: {ABSENT}.")
    IMAGES.mkdir(exist_ok=True)
    # Its sandbox needs another user than root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        serving("--results", results, home=Settings.from_env().home) as console,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as browser,
    ):
        for picture in PICTURES:
            content = compressed(shot(browser, console.url, picture))
            if len(content) > MOST_BYTES:
                sys.exit(f"{picture.name} has {len(content):,} bytes, more than {MOST_BYTES:,}: make it smaller.")
            (IMAGES / f"{picture.name}.png").write_bytes(content)
            print(f"{picture.name}.png  {len(content):,} bytes")
        console.stop()


def shot(browser, url, picture):
    """A picture as the browser makes it."""
    size = {"width": picture.width, "height": picture.height}
    options = {"base_url": url, "viewport": size, "color_scheme": picture.theme, "reduced_motion": "reduce"}
    with browser.new_context(**options) as session:
        # A report and a map take their time on a machine that does much else.
        session.set_default_timeout(PATIENCE)
        page = session.new_page()
        page.goto(picture.address, wait_until="networkidle")
        if picture.prepare is not None:
            picture.prepare(page)
            page.wait_for_load_state("networkidle")
        return page.screenshot()


def compressed(content):
    """The same picture in as few colours as its page needs."""
    few = Image.open(BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    made = BytesIO()
    few.save(made, "PNG", optimize=True)
    return made.getvalue()


if __name__ == "__main__":
    main()

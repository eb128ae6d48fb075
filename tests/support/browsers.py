"""The browser of the system that tests and pictures take."""

import shutil

#: Programs, the best first: that is the same browser without windows, so each page takes it less.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ABSENT = "install Chromium (on Debian: apt-get install chromium-headless-shell)"


def find_browser():
    """Its path; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)

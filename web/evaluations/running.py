"""A replay under way: how far it is, by what it has written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from langshift.evaluate.replay.journal import PER_QUERY
from langshift.retrieval.options import read_setting
from langshift.web.evaluations.job import Job


@dataclass(frozen=True)
class Running:
    """A replay under way.

    Attributes:
        name: its folder in the results folder.
        job: what was asked for.
        answered: how many queries are answered.
        begun: whether queries are being sent; before that they are encoded.
    """

    name: str
    job: Job
    answered: int
    begun: bool

    @property
    def text(self) -> str:
        """How far it is."""
        so_far = f"{self.answered:,} of {self.job.queries:,} queries"
        if not self.begun:
            first = "Encoding queries" if read_setting(self.job.setting).needs_vector else "Getting ready"
            return f"{first}: {so_far} were answered before" if self.answered else first
        return f"{so_far}; working out the figures" if self.answered >= self.job.queries else so_far


def begun(folder: Path, job: Job) -> bool:
    """Whether the journal was written to since the process was started."""
    try:
        return (folder / PER_QUERY).stat().st_mtime >= job.began
    except OSError:
        return False

"""What is known of a server that runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Server:
    """A running embedded OpenSearch.

    Attributes:
        url: its address on this machine.
        pid: its process.
        version: OpenSearch's version.
        home: the folder that all its files are in; another one than was asked for where that one
            is out of reach of the user whom root starts the server as.
        data: the folder of its indices, kept between starts.
        log: its log.
        java: the Java program that runs it.
    """

    url: str
    pid: int
    version: str
    home: Path
    data: Path
    log: Path
    java: str

    def __str__(self) -> str:
        return f"OpenSearch {self.version} is running at {self.url}"

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {name: value if isinstance(value, int) else str(value) for name, value in vars(self).items()}

"""What the console tells people to do can be done."""

import re

import click
import pytest

from langshift.cli import root
from langshift.evaluate.console.pages import FOLDER

FILES = sorted({*FOLDER.glob("templates/*.html"), *FOLDER.rglob("*.py")})


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_every_command_that_is_named_is_one(file):
    for first, second in re.findall(r"(?:<code>|`)langshift ([a-z-]+)(?: ([a-z-]+))?", file.read_text("utf-8")):
        command = root.get_command(click.Context(root), first)
        assert command is not None, first
        if isinstance(command, click.Group):
            assert second in command.list_commands(click.Context(command)), (first, second)

"""The group of the commands ``rerank fit`` and ``rerank label``, alone: the list of all commands loads no more."""

import click

from langshift.parameters import CommandGroup


@click.group(cls=CommandGroup)
def rerank() -> None:
    """Train rerankers for searches (langshift search --rerank).

    \b
    Example:
      langshift rerank fit xquad8 --index news --output own.json
    """

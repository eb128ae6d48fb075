"""The command ``mcp``."""

import click

from langshift.errors import require_extra
from langshift.parameters import Command
from langshift.settings import Settings


@click.command(cls=Command)
def mcp() -> None:
    """Offer an agent the tools search, indices and explain, over standard input and output (MCP).

    An agent's program starts it, and is told this command. "langshift serve --api --mcp" offers the same over HTTP.

    \b
    Example:
      langshift mcp
    """
    require_extra("`langshift mcp` needs", "mcp", "mcp", "starlette", "jinja2")
    from langshift.web.api.agents import make_mcp, serve_stdio
    from langshift.web.api.service import SearchService
    from langshift.web.context import AppContext

    settings = Settings.from_env()
    console = AppContext(settings, settings.home / "results")
    # An agent is told now what is wrong, and not only by its first search.
    _ = console.client
    serve_stdio(make_mcp(SearchService(console)))
    console.close()

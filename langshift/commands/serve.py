"""The command ``serve``."""

import sys
from pathlib import Path
from typing import Any

import click

from langshift import errors
from langshift import output as terminal
from langshift.parameters import JSON, Command, FiniteRange, flag, option, option_group


@click.command(cls=Command)
@option("--host", "The address to listen on. If other machines can reach it, they need the token.", default="127.0.0.1")
@option("--port", "The port to listen on; 0 for any free port.", click.IntRange(0, 65535), default=8365)
@option("--results FOLDER", "The folder that replays are written to. [default: results in LANGSHIFT_HOME]")
@flag("--api", "Serve the interface for programs, too: /api/search, /v1/embeddings and so on.")
@option_group(
    "given",
    dict,
    option("--tokens FILE", "Who may use it: a client's name and token on each line. [default: anyone who reaches it]"),
    option("--allow-origin URL", "Let scripts of this site use it; can be repeated.", dest="origins", multiple=True),
    option("--reranker NAME", "Let clients use this reranker; can be repeated.", dest="rerankers", multiple=True),
    option("--queue-seconds S", "How long a request waits for its turn.", FiniteRange(0.1, 60), default=5.0),
    flag("--metrics", "Serve /metrics, for Prometheus."),
    flag("--mcp", "Serve /mcp, for agents."),
)
@option("--workers N", "How many processes serve, each with an encoder of its own.", click.IntRange(1, 64), default=1)
@flag("--json-log", "Write a line of JSON for each of the interface's requests.")
@JSON
def serve(
    host: str,
    port: int,
    results: Path | None,
    api: bool,
    given: dict[str, Any],
    workers: int,
    json_log: bool,
    as_json: bool,
) -> None:
    """Explore indices in a browser: search side by side, vary alpha, see who gains and who loses.

    The console runs until it is stopped with Ctrl-C. By default only this machine can reach it; with --host for another
    address, and with --tokens, a token is generated, which is part of the address that is printed. --json prints that
    address and the token.

    \b
    Example:
      langshift serve
      langshift serve --results results
    """
    errors.require_extra("`langshift serve` needs", "console", "jinja2", "starlette", "uvicorn", "prometheus_client")
    seconds = given.pop("queue_seconds")
    if not api and (json_log or any(given.values())):
        raise errors.UsageError("What was given is of the interface for programs alone: give --api, too.")
    if given["mcp"]:
        errors.require_extra("`langshift serve --mcp` needs", "mcp", "mcp")
    from langshift.web.api.options import ApiOptions, read_tokens
    from langshift.web.app import run

    given["tokens"] = {} if given["tokens"] is None else read_tokens(given["tokens"])
    options = ApiOptions(**given, seconds=seconds, json_log=json_log)

    def show_address(url: str, token: str | None) -> None:
        if as_json:
            terminal.emit_json({"url": url} | ({} if token is None else {"token": token}))
        else:
            terminal.line(f"The console is at {url} (Ctrl-C stops it)")
        sys.stdout.flush()

    run(host, port, results, show_address, options if api else None, workers)

"""The command ``serve``; what it does is in ``console/serving.py``."""

from __future__ import annotations

from pathlib import Path

import click

from langshift.commands.langshift_options import JSON

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen. Other machines may reach another address than this one's own; they need the token then.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8365, show_default=True, help="Where to listen; 0 for any port."
)
@click.option(
    "--results",
    type=_FOLDER,
    metavar="FOLDER",
    help="Where replays wrote to, and where those started in the console will. [default: results in LANGSHIFT_HOME]",
)
@click.option(
    "--dataset",
    "datasets",
    type=_FOLDER,
    metavar="FOLDER",
    multiple=True,
    help="A dataset that may be replayed, beside the bundled one; may be given several times.",
)
@JSON
def serve(host: str, port: int, results: Path | None, datasets: tuple[Path, ...], as_json: bool) -> None:
    """Show indices in a browser: search side by side, turn alpha, see who gains and who loses.

    It serves pages until it is stopped with Ctrl-C. By default only this machine reaches them; with --host for another
    address a token is made, which is part of the address that is printed. --json prints that address, and the token.

    \b
    Example:
      langshift serve
      langshift serve --results results --dataset xquad-en
    """
    from langshift.web.serving import run

    run(host, port, results, datasets, as_json=as_json)

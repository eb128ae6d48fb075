"""The root command. It alone sees all rooms, and loads a room when one of its commands is called."""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

import click
from opensearchpy.exceptions import OpenSearchException

from langshift.console import err, note
from langshift.errors import LangshiftError
from langshift.failures import failure
from langshift.settings import VERSION, Settings

# Command -> where it is defined. A room is imported only when its command is asked for.
COMMANDS = {
    "up": "langshift.commands.langshift_commands:up",
    "down": "langshift.commands.langshift_commands:down",
    "status": "langshift.commands.langshift_commands:status",
    "doctor": "langshift.commands.doctor:doctor",
    "demo": "langshift.commands.commands:demo",
    "vectors": "langshift.commands.vectors_commands:vectors",
    "ingest": "langshift.commands.ingest_commands:ingest",
    "search": "langshift.commands.search_options:search",
    "anchors": "langshift.commands.anchors_command:anchors",
    "dead-letters": "langshift.commands.dead_letters_commands:dead_letters",
    "index": "langshift.commands.indices_commands:index",
    "adopt": "langshift.commands.adopt_command:adopt",
    "retune": "langshift.commands.retune_command:retune",
    "rollback": "langshift.commands.retune_command:rollback",
    "pipeline": "langshift.commands.pipeline_commands:pipeline",
    "evaluate": "langshift.commands.commands:evaluate",
    "dataset": "langshift.commands.dataset_commands:dataset",
    "serve": "langshift.commands.serve_command:serve",
}

# Group -> commands that another room adds to it.
ADDED = {"vectors": {"tune": "langshift.commands.tune_command:tune"}}


class LazyGroup(click.Group):
    """A group that imports a sub-command's module on first use."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*arguments, **options)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands: first the group's own, then the others in the order in which a newcomer meets them."""
        return [*super().list_commands(ctx), *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None where there is none of that name."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        if isinstance(command, click.Group) and cmd_name in ADDED:
            return LazyGroup(cmd_name, commands=command.commands, help=command.help, lazy=ADDED[cmd_name])
        return command


@click.group(
    cls=LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(VERSION, prog_name="langshift")
def root() -> None:
    """Language-fair vector search on OpenSearch: debiased at index time, measured on the live cluster.

    Without OPENSEARCH_URL the embedded OpenSearch is used, and started when needed.

    \b
    Example:
      langshift demo
    """


def main() -> None:
    """Run the command line; a failure is one sentence on standard error and an exit code.

    Exit codes: 0 done, 1 failed, 2 wrong use, 3 done but documents went to the dead letters, 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        # Without its standalone mode click returns the code of `ctx.exit(code)` instead of exiting with it.
        returned = root(standalone_mode=False)
        code = returned if isinstance(returned, int) else 0
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        note("Interrupted.")
        code = 130
    except LangshiftError as error:
        note(f"Error: {error}")
        code = error.exit_code
    except OpenSearchException as error:
        code = 1
        note(f"Error: {failure(error, Settings.from_env().url)}")
    except Exception as error:
        code = _unexpected(error)
    sys.exit(code)


def _unexpected(error: Exception) -> int:
    if os.environ.get("LANGSHIFT_DEBUG"):
        err.print(traceback.format_exc(), markup=False)
    if isinstance(error, OSError):
        note(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    else:
        kind, text = type(error).__name__, " ".join(str(error).split())
        note(f"Error: langshift met something unforeseen ({kind}: {text}); LANGSHIFT_DEBUG=1 shows where.")
    return 1

"""The root command. It alone sees all rooms, and loads a room when one of its commands is called."""

import importlib
import io
import os
import signal
import sys
import threading
import traceback
import weakref
from types import FrameType

import click
from opensearchpy.exceptions import OpenSearchException

from langshift import extensions
from langshift.errors import LangshiftError
from langshift.output import err, note
from langshift.parameters import CommandGroup
from langshift.server_errors import failure
from langshift.settings import VERSION, Settings

# Command -> the module of langshift.commands that has it as a function of that name, and how its help begins: so the
# list of all commands is shown without loading any.
COMMANDS = {
    "up": ("up", "Start the embedded OpenSearch, downloading it the first time."),
    "down": ("down", "Stop the embedded OpenSearch and keep its data."),
    "doctor": ("doctor", "Say whether and where OpenSearch runs; check what is needed, and say how to fix the rest."),
    "demo": ("demo", "Index the bundled corpus plain, with the paper's shift, and as recommended, and compare them."),
    "vectors": ("vectors", "Fit language vectors on parallel text, inspect them, and judge them."),
    "ingest": ("ingest", "Index CORPUS: detect each document's language, encode, shift and write it."),
    "search": ("search", "Search the index NAME for WORDS."),
    "anchors": ("anchors", "Calibrate anchored search (langshift search --mode anchored) for an index."),
    "dead-letters": ("dead_letters", "List documents that could not be indexed, with the reasons."),
    "index": ("index", "List, describe, audit and remove indices and their versions."),
    "adopt": ("adopt", "Take over OLD, an index (or alias) with vectors from any source, as the new index NEW."),
    "retune": ("retune", "Change the shift of the index NAME without encoding anything again."),
    "reencode": ("reencode", "Encode the texts of the index NAME again, with another encoder."),
    "rollback": ("rollback", "Point NAME back to an earlier version."),
    "pipeline": (
        "pipeline",
        "Shift documents from other clients, with an ingest pipeline for each version of an index.",
    ),
    "plugin": ("plugin", "Build, install and remove the OpenSearch plugin, for searches and writes of any client."),
    "evaluate": ("evaluate", "Measure an index on the live cluster."),
    "dataset": (
        "dataset",
        "Create and check dataset folders: a corpus, queries, and which document answers which query.",
    ),
    "mcp": ("mcp", "Offer an agent the tools search, indices and explain, over standard input and output (MCP)."),
    "serve": ("serve", "Explore indices in a browser: search side by side, vary alpha, see who gains and who loses."),
}


class LazyGroup(CommandGroup):
    """The group of all commands, which imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the commands in the order in which a newcomer meets them, then those that other distributions add."""
        return [*COMMANDS, *extensions.commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import and return a command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return extensions.load_command(cmd_name)
        module = importlib.import_module(f"langshift.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without importing any of langshift's own."""
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        listed = [click.Command(name, help=help_) for name, (_, help_) in COMMANDS.items()]
        added = (self.get_command(ctx, name) for name in extensions.commands())
        rows = [(one.name or "", one.get_short_help_str(limit)) for one in (*listed, *added) if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="langshift")
def root() -> None:
    """Language-fair vector search on OpenSearch: debiased at index time, measured on the live cluster.

    If OPENSEARCH_URL is not set, the embedded OpenSearch is used, and started when needed.

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
        with _StoppedInOrder():
            # Without its standalone mode click returns the code of `ctx.exit(code)` instead of exiting with it.
            returned = root(standalone_mode=False)
        code = returned if isinstance(returned, int) else 0
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        _show(error)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        note("Interrupted.")
        code = 130
    except LangshiftError as error:
        for line in (f"Error: {error.sentence}", *error.log):
            note(line)
        code = error.exit_code
    except OpenSearchException as error:
        code = 1
        note(f"Error: {failure(error, Settings.from_env().url)}")
    except Exception as error:
        code = _unexpected(error)
    sys.exit(code)


class _Interrupt(KeyboardInterrupt):
    """Lives as long as a command is being interrupted."""


# Seconds after which an interrupt that was lost comes again.
_AGAIN = 0.5


class _StoppedInOrder:
    """Within it SIGTERM and SIGHUP, the end of the terminal, do what Ctrl-C does: all under way is ended in order.

    Only the first signal interrupts, as another would break off the clean-up; the third Ctrl-C does that. What is
    ignored from the start, as SIGHUP is below nohup, stays ignored. One that comes at a bad moment comes again:
    Python drops what is raised while an object is finalized, such as an answer that was read, and where a lock is taken
    or given back by Python code, raising would leave it locked, for the clean-up too.
    """

    def __enter__(self) -> None:
        self._received: list[int] = []
        self._ended, self._deferred = threading.Event(), False
        self._terminals = [stream for stream in (1, 2) if os.isatty(stream)]
        wanted = {"SIGINT": self._interrupt, "SIGTERM": self._interrupt, "SIGHUP": self._hang_up}
        handlers = {getattr(signal, name): handler for name, handler in wanted.items() if hasattr(signal, name)}
        heeded = [number for number in handlers if signal.getsignal(number) is not signal.SIG_IGN]
        self._tell, sys.unraisablehook = sys.unraisablehook, self._unraisable
        self._before = {number: signal.signal(number, handlers[number]) for number in heeded}

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        sys.unraisablehook = self._tell

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._defers(number, frame):
            return
        self._received.append(number)
        if len(self._received) == 1 or (number == signal.SIGINT and self._received.count(number) > 2):
            raise self._interruption(number)

    def _defers(self, number: int, frame: FrameType | None) -> bool:
        code = frame and frame.f_code
        if not code or code.co_filename != threading.__file__ or code.co_name == "wait" or self._deferred:
            return False
        self._deferred = True
        self._lost(number)
        return True

    def _interruption(self, number: int) -> _Interrupt:
        # In no variable of the handler, whose frame it would keep alive.
        made = _Interrupt()
        weakref.finalize(made, self._lost, number).atexit = False
        return made

    def _lost(self, number: int) -> None:
        if not self._ended.is_set():
            threading.Thread(target=self._again, args=(number,), daemon=True).start()

    def _again(self, number: int) -> None:
        if not self._ended.wait(_AGAIN):
            self._received.clear()
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _unraisable(self, dropped: "sys.UnraisableHookArgs") -> None:
        if dropped.exc_type is not _Interrupt:
            self._tell(dropped)

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        # A terminal that is gone takes nothing: an error of writing to it would break off the clean-up, too.
        for stream in self._terminals:
            if not os.isatty(stream):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        # By way of whoever handles that: a web server has a handler of its own.
        if not self._defers(number, frame):
            signal.raise_signal(signal.SIGTERM)


def _show(error: click.ClickException) -> None:
    """Show what click refuses as click does, but nothing of what was given on a line of its own."""
    shown = io.StringIO()
    error.show(shown)
    usage, _, _ = f"\n{shown.getvalue()}".partition("\nError: ")
    for line in usage.splitlines()[1:]:
        note(line)
    note(" ".join(filter(None, map(str.strip, f"Error: {error.format_message()}".split("\n")))))


def _unexpected(error: Exception) -> int:
    if os.environ.get("LANGSHIFT_DEBUG"):
        err.print(traceback.format_exc())
    if isinstance(error, OSError):
        note(f"Error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
    else:
        kind, text = type(error).__name__, " ".join(str(error).split())
        note(f"Error: An unexpected error occurred ({kind}: {text}). Set LANGSHIFT_DEBUG=1 to see the traceback.")
    return 1

"""Where the program starts: before anything that takes long to import."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded ends it as at any other time."""
    try:
        from langshift.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run()

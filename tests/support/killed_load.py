"""A process that writes a journal and dead letters until it is killed, and says on stdout what it was promised.

python killed_load.py FOLDER FIRST_LINE
"""

import sys
from pathlib import Path

from langshift.ingest.bulk.dead_letters import DeadLetter, DeadLetters
from langshift.ingest.bulk.journal import Journal
from langshift.ingest.bulk.journal_store import Acknowledged, Sampled

AT_ONCE = 50


def main() -> None:
    """Acknowledge lines, each fiftieth as a dead letter, from a first one on and for ever."""
    folder, first = Path(sys.argv[1]), int(sys.argv[2])
    letters = DeadLetters(folder / "dead-letters.jsonl")
    with Journal(folder / "journal.sqlite") as journal:
        if not journal.begun:
            journal.begin({"corpus": "corpus.jsonl"}, {})
        while True:
            dead = first + AT_ONCE - 1
            letters.add([letter(dead)])
            rows = [Acknowledged(line, f"d{line}", "index") for line in range(first, dead)]
            sampled = [Sampled(row.line, row.id, bytes(2048)) for row in rows if journal.wants(row.line)]
            journal.acknowledge([*rows, Acknowledged(dead, f"d{dead}", "dead")], sampled)
            print(first, dead, flush=True)
            first += AT_ONCE


def letter(line: int) -> DeadLetter:
    """The dead letter of a line, some of them long."""
    document = b'{"text": "' + b"word " * (line * 7919 % 20_000) + b'"}'
    return DeadLetter(
        document,
        line,
        f"d{line}",
        "mapper_parsing_exception",
        "no",
        "write",
        "2026-01-01T00:00:00Z",
        "corpus.jsonl",
        line,
    )


if __name__ == "__main__":
    main()

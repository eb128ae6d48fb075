"""The table of docs/operations.md: what was run on which server and engine, as it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
#: The columns, in the order in which they stand.
COLUMNS = (
    *("doctor", "ingest", "updates", "search", "chunks", "query", "serve", "processor", "pipeline", "retune"),
    *("rollback", "reencode", "adopt", "calibrate", "replay", "index"),
)
YES, NO, NOT_RUN = "yes", "no", "not run"
#: Server and engine -> column -> ``YES``, or what was refused, in a sentence.
Found = Mapping[tuple[str, str], Mapping[str, str]]
_BEGIN, _END = "<!-- Written by tests/evidence/test_servers.py -->\n", "<!-- The end of what it writes -->"
_NOBODY = dict.fromkeys(("3.3.2 to 3.5", "3.7", "3.9", "official images", "AWS"), "lucene, faiss")


def rows_of(found: Found) -> list[str]:
    """The rows of the table, and below them a line of each cell that is not ``YES``."""
    rows = [_row(*key, *(YES if cells[one] == YES else NO for one in COLUMNS)) for key, cells in found.items()]
    told = [
        f"- {server}, {engine}, {one}: {cells[one]}"
        for (server, engine), cells in found.items()
        for one in COLUMNS
        if cells[one] != YES
    ]
    return [*rows, *([""] if told else []), *told]


def read() -> dict[tuple[str, str], dict[str, str]]:
    """What the page says."""
    block = PAGE.read_text(encoding="utf-8").partition(_BEGIN)[2].partition(_END)[0]
    found = {}
    for line in block.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) > len(COLUMNS) and set(cells[2:]) <= {YES, NO}:
            found[cells[0], cells[1]] = dict(zip(COLUMNS, cells[2:], strict=True))
        elif told := re.fullmatch("- (.*?), (.*?), (.*?): (.*)", line):
            found[told[1], told[2]][told[3]] = told[4]
    return found


def write(found: Found) -> None:
    """Put what was found into the page, in place of what it says of the same servers and engines."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    rows = rows_of({**read(), **found})
    places = rows.index("") if "" in rows else len(rows)
    head = [_row("OpenSearch", "engine", *COLUMNS), _row(*["---"] * (2 + len(COLUMNS)))]
    rows[places:places] = [_row(*one, NOT_RUN, *[""] * (len(COLUMNS) - 1)) for one in _NOBODY.items()]
    table = "".join(f"{row}\n" for row in [*head, *rows])
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"

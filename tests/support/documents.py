"""The blocks of README.md and docs: commands and code to run, requests to send, and what comes of them.

``python tests/support/documents.py`` runs those of README.md and of the pages that show output, writes what
they printed into them, and into docs/clients.md the body that ``langshift pipeline install`` makes. What takes XQuAD,
docs/reproduction.md, ``make evidence`` runs and writes: tests/evidence/paper.
"""

import importlib.util
import io
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from contextlib import contextmanager, redirect_stdout, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from command_line import LANGSHIFT, Done, langshift
from piped_index import fingerprint_of

from langshift.client import open_cluster
from langshift.plugin import pipelines
from langshift.plugin.metadata import USUAL
from langshift.plugin.stored_shift import StoredShift

ROOT = Path(__file__).resolve().parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
REFERENCE, CONTRIBUTING = DOCS / "reference", ROOT / "CONTRIBUTING.md"
SEARCH, CLIENTS, CONSOLE = DOCS / "search.md", DOCS / "clients.md", DOCS / "console.md"
SEARCH_PAGE, SERVICE, SCALE = DOCS / "search-page.md", DOCS / "service.md", DOCS / "scale.md"
PLUGIN = DOCS / "plugin.md"
INGEST, ADOPT, VECTORS = DOCS / "ingest.md", DOCS / "adopt-and-retune.md", DOCS / "encoders-and-vectors.md"
DEMO, REPRODUCTION = DOCS / "demo.md", DOCS / "reproduction.md"
DOCUMENTS = (README, CONTRIBUTING, *sorted(DOCS.rglob("*.md")))
DATA = Path(os.environ.get("LANGSHIFT_DATA") or ROOT.parent / "shared" / "data")
#: What a document's commands need in their environment, beside the cluster's address.
VARIABLES = {document: {"COLUMNS": "80"} for document in DOCUMENTS} | {
    REPRODUCTION: {"COLUMNS": "80", "XQUAD": str(DATA / "xquad"), "NTREX": str(DATA / "ntrex")},
    SEARCH: {"COLUMNS": "100"},
    SCALE: {"COLUMNS": "200"},
}
#: The documents whose commands are run and whose output is shown, with the names that they give in the cluster.
NAMES = {
    README: ("news",),
    INGEST: ("news", "cms", "handbook", "codes"),
    ADOPT: ("articles",),
    VECTORS: ("news",),
    SEARCH: ("news", "manual"),
    SEARCH_PAGE: ("gazette",),
    SERVICE: ("almanac",),
    PLUGIN: ("gazette",),
    SCALE: (),
}
#: Kinds of blocks that are run as they stand; a ``text`` block after one shows its standard output.
RUN = ("sh", "python", "js")
_BLOCK = re.compile(r"(?:<!-- (?P<mark>[^\n]*) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```\n", re.DOTALL)


class Block(NamedTuple):
    """A block of a document.

    Attributes:
        kind: what the document says that it holds.
        mark: the words of a comment right before it, None where there is none.
        text: its lines.
        span: where they stand in the document.
        shown: the block with the output of one that is run; None where none is shown.
    """

    kind: str
    mark: str | None
    text: str
    span: tuple[int, int]
    shown: "Block | None" = None


def blocks(document):
    """All blocks of a document, in order."""
    text, found, end = document.read_text(encoding="utf-8"), [], 0
    for m in _BLOCK.finditer(text):
        block = Block(m["kind"], m["mark"], m["text"], m.span("text"))
        if found and found[-1].kind in RUN and block.kind == "text" and not text[end : m.start()].strip():
            found[-1] = found[-1]._replace(shown=block)
        else:
            found.append(block)
        end = m.end()
    return found


def console_commands(document):
    """The commands of the ``console`` blocks of a document, each with what it prints."""
    told = "".join(block.text for block in blocks(document) if block.kind == "console")
    return [tuple(found.strip().partition("\n")[::2]) for found in told.split("$ ")[1:]]


class Names:
    """Names of a test's own in the place of those that a document gives in the cluster, which may be people's.

    They are as long, else tables would be broken into lines elsewhere, and no words of any language.
    """

    def __init__(self, client, *shown):
        self._client = client
        self._ours = {name: self._unused(len(name)) for name in shown}

    def _unused(self, length):
        while True:
            # Not the test's random numbers, which are the same in every run.
            name = "".join(secrets.choice("jkmnpqrstvwxz") for _ in range(length))
            if not self._indices(name):
                return name

    def _indices(self, name):
        return self._client.indices.get(index=f"*{name}*", params={"expand_wildcards": "all"})

    def __getitem__(self, shown):
        return self._ours[shown]

    def rename(self, text):
        """The text with our names."""
        for shown, ours in self._ours.items():
            text = re.sub(rf"\b{shown}\b", ours, text)
        return text

    def restore(self, text):
        """The text with the names that the document shows."""
        for shown, ours in self._ours.items():
            text = re.sub(rf"\b{ours}\b", shown, text)
        return text

    def remove(self):
        """Remove every index and pipeline that has one of our names in its own."""
        for name in self._ours.values():
            for index in self._indices(name):
                self._client.indices.delete(index=index)
            # The server says 404 where there is none at all.
            for one in self._client.ingest.get_pipeline(params={"ignore": 404}):
                if name in one:
                    self._client.ingest.delete_pipeline(id=one)


#: The pages that start a server: its port there, and the file with its process.
SERVED = {
    SEARCH_PAGE: ("8000", "embeddings.pid"),
    SERVICE: ("8365", "service.pid"),
    PLUGIN: ("8365", "service.pid"),
}


@contextmanager
def served_elsewhere(folder, url):
    """A function that runs a block of such a page and requires what it shows; its server has a port that is free.

    Args:
        folder: where the blocks are run.
        url: of the cluster.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

    def run_block(document, block, rename=str, restore=str):
        text = re.sub(rf"(?<=[: ]){SERVED[document][0]}\b", port, rename(block.text))
        printed = restore(run(block.kind, text, folder, OPENSEARCH_URL=url))
        if block.shown is not None:
            assert differences(printed, block.shown.text) == [], block.text

    try:
        yield run_block
    finally:
        for _, name in SERVED.values():
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((folder / name).read_text()), signal.SIGTERM)


def run(kind, text, folder, **variables):
    """What the text of a block prints; a command that fails raises with its standard error.

    Lines that only call langshift run in this process, what is between them by a shell. Python runs in this process
    and its environment.
    """
    if kind == "python":
        here = Path.cwd()
        os.chdir(folder)
        try:
            with redirect_stdout(io.StringIO()) as out:
                exec(compile(text, "<block>", "exec"), {"__name__": "__main__"})
        finally:
            os.chdir(here)
        return _printed(out.getvalue())
    printed = []
    text = in_node(text) if kind == "js" else text
    for call, script in _parts(text, variables):
        done = langshift(*call.words, cwd=folder, **variables) if call else in_shell(script, folder, **variables)
        if done.returncode != (call.code if call else 0):
            raise AssertionError(f"{text}\nended with exit code {done.returncode}:\n{done.stderr}")
        lines = done.stdout.splitlines(keepends=True)
        printed += lines[-call.last :] if call and call.last else lines
    return _printed("".join(printed))


def in_node(text):
    """The command that runs a JavaScript module, which finds the packages in the current folder."""
    return f"node --input-type=module -e {shlex.quote(text)}\n"


def in_shell(script, folder, **variables):
    """A block of commands, run by a shell that finds the installed program and ends where a command fails."""
    node = shutil.which("node")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath, *([str(Path(node).parent)] if node else [])])
    env = {**os.environ, "PATH": path, **variables}
    done = subprocess.run(["/bin/sh", "-euc", script], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


class _Call(NamedTuple):
    """A line that only calls langshift.

    Attributes:
        words: after the program.
        code: the exit code with which it must end.
        last: how many of the last lines that it prints are shown; 0 for all.
    """

    words: list[str]
    code: int
    last: int


def _parts(text, variables):
    """(A call of langshift, "") or (None, script for a shell), in order."""
    script = ""
    for line in text.splitlines(keepends=True):
        call = _call(line, variables)
        if call is None:
            script += line
            continue
        if script:
            yield None, script
        script = ""
        yield call, ""
    if script:
        yield None, script


def _call(line, variables):
    """The call of a line that asks nothing of a shell but quotes, ``"$NAME"`` and one of ``_ENDS``; else None."""
    ends = _ENDS.search(line)
    line = line[: ends.start()]
    line = re.sub(r'"\$(\w+)([^"$]*)"', lambda m: f'"{variables[m[1]]}{m[2]}"' if m[1] in variables else m[0], line)
    bare = re.sub(r"""'[^']*'|"[^"$`\\]*\"""", "", line)
    if not re.fullmatch(r"langshift [\w\s./,:=-]*", bare):
        return None
    return _Call(shlex.split(line)[1:], int(ends["code"] or 0), int(ends["last"] or 0))


# What is asked of the exit code, and of what is printed.
_ENDS = re.compile(r"( \|\| test \$\? = (?P<code>\d)| \| tail -n (?P<last>\d+))?\n?$")


# Whose home it is, and which cluster, is nobody's business.
_PLACE = re.compile(r"\S*/loads/\S+?/")


def _printed(output):
    placed = _PLACE.sub("~/.local/share/langshift/loads/", output)
    return "".join(f"{line.rstrip()}\n" for line in placed.splitlines())


def differences(printed, shown, near=lambda _: _NEAR):
    """Lines of the output that say something else than the document shows.

    Words and whole numbers must be the same; scores, measures and shares (``.7802``, ``1.2361``, ``75.6%``) within
    .006, or what ``near`` says of their line, as far as approximate search and other processors move them; speeds,
    milliseconds, sizes, days, differences from NumPy and hashes need only be such.
    """
    ours, theirs = printed.splitlines(), shown.splitlines()
    if len(ours) != len(theirs):
        return [f"{len(ours)} lines printed, {len(theirs)} shown"]
    return [
        f"{mine!r} is shown as {other!r}"
        for mine, other in zip(ours, theirs, strict=True)
        if not _same(mine, other, near(mine))
    ]


def renewed(printed, shown):
    """What a document shows from now on: what was printed.

    Lines with speeds, times or hashes that say nothing else new stay: theirs are another machine's, or a busy one's.
    """
    ours, theirs = printed.splitlines(keepends=True), shown.splitlines(keepends=True)
    if len(ours) != len(theirs):
        return printed
    return "".join(other if _as_good(mine, other) else mine for mine, other in zip(ours, theirs, strict=True))


def _as_good(mine, other):
    words, others = mine.split(), other.split()
    # Above times are the heads of their columns.
    of_machine = any(re.fullmatch(form, word) for word in words for form in (*_FREE, "p50"))
    return (
        of_machine
        and len(words) == len(others)
        and all(a == b or _both_free(a, b) for a, b in zip(words, others, strict=True))
    )


def _same(mine, other, near):
    if _CHANGES.search(mine) and _CHANGES.search(other):
        mine_changes, other_changes = _CHANGES.findall(mine), _CHANGES.findall(other)
        if not _same_changes(mine_changes, other_changes, near):
            return False
        mine, other = _CHANGES.sub("", mine), _CHANGES.sub("", other)
    pairs = list(zip(mine.split(), other.split(), strict=False))
    return len(mine.split()) == len(other.split()) and all(_same_word(a, b, near) for a, b in pairs)


def _same_changes(mine, other, near):
    """Whether two lists of the languages that change most say the same; those as near as the last may change places."""
    ours, theirs = ([abs(float(change)) for _, change in found] for found in (mine, other))
    if len(ours) != len(theirs) or any(abs(a - b) > near for a, b in zip(ours, theirs, strict=True)):
        return False
    clear = [(language, change[0]) for language, change in mine if abs(float(change)) > min(ours) + near]
    return set(clear) <= {(language, change[0]) for language, change in other}


def _same_word(mine, other, near):
    if re.fullmatch(_SCORE, mine) and re.fullmatch(_SCORE, other):
        # Of two digits as far as rounding goes, too.
        digits = min(len(word.rpartition(".")[2].rstrip("),.:;")) for word in (mine, other))
        return abs(_figure(mine) - _figure(other)) <= near + (0.005 if digits == 2 else 0)
    if re.fullmatch(_SHARE, mine) and re.fullmatch(_SHARE, other):
        # Of whole percents as far as rounding goes, too.
        rounded = 0 if "." in mine + other else 1
        return abs(float(mine.rstrip("%")) - float(other.rstrip("%"))) <= 100 * near + rounded
    if re.fullmatch(_RANGE, mine) and re.fullmatch(_RANGE, other):
        ours, theirs = ([float(one) for one in re.findall(r"\.\d+", word)] for word in (mine, other))
        # Of two digits.
        return all(abs(a - b) <= near + 0.005 for a, b in zip(ours, theirs, strict=True))
    return mine == other or _both_free(mine, other)


def _figure(word):
    return float(re.search(r"[+-]?\d?\.\d+", word)[0])


def _both_free(mine, other):
    # A processor that rounds otherwise gives language vectors another hash.
    return any(re.fullmatch(form, mine) and re.fullmatch(form, other) for form in _FREE)


_SPEED, _SCORE = r"[\d,]+/s[,.]", r"\(?[+-]?(0?\.\d+|\d\.\d{3,})\)?[,.:;]?"
_SHARE, _RANGE = r"\d+(\.\d)?%", r"\(\.\d+–\.\d+\)"
_MILLISECONDS_OR_SIZE, _HASH = r"\d+\.\d", r"'?[0-9a-f]{16}'?,?"
_DAY, _DIFFERENCE = r"\d{4}-\d\d-\d\d", r"\d\.\de[+-]\d\d\.?"
_FREE = (_SPEED, _MILLISECONDS_OR_SIZE, _HASH, _DAY, _DIFFERENCE)
_CHANGES = re.compile(r"\b([a-z]{2,3}) ([+-]\.\d{3}),?")
# How far approximate search and other processors move a figure.
_NEAR = 0.006

# What docs/clients.md is about: an index with vectors of 4 numbers.
SHIFT = StoredShift(
    "0123456789abcdef",
    "en",
    {"de": np.float32([0.5, -0.25, 0.125, 0.0]), "th": np.float32([0.25, 0.5, -0.5, 0.125])},
    1.0,
    {"th": 0.5},
)
FINGERPRINT = fingerprint_of(SHIFT)
# What of the tables of spellings it shows.
SHOWN = {
    "keys": ("de", "th", "en"),
    "codes": ("deu", "ger", "tha", "eng"),
    "scripts": ("latn",),
    "regions": ("at",),
    "usual": ("de", "en", "th"),
    "of_scripts": (),
    "folds": ("nn", "nb"),
}
LETTERS = {"d": "e", "e": "n", "t": "h"}
_REQUEST = re.compile(r"(GET|PUT|POST) (/\S+)\n?")


def request(text):
    """Method, path and body of a request, the body as bytes; None where a block is an answer."""
    found = _REQUEST.match(text)
    if found is None:
        return None
    body = text[found.end() :]
    if "/_bulk" not in found[2] and body:
        json.loads(body)
    return found[1], found[2], body.encode()


def cut_short(body):
    """The body of a pipeline with the tables of spellings as docs/clients.md shows them."""
    made = json.loads(json.dumps(body))
    params = made["processors"][-1]["script"]["params"]
    for table, names in SHOWN.items():
        holder = next(one for one in (params["new"], params["tags"], params) if table in one)
        holder[table] = {name: holder[table][name] for name in names}
    assert all(last in params["tags"]["languages"][first] for first, last in LETTERS.items())
    assert "1996" in params["tags"]["variants"]
    params["tags"] |= {"languages": LETTERS, "variants": ["1996"]}
    return made


def installed_body(index="news-v0001", first="my-embedding"):
    """What ``langshift pipeline install news --after my-embedding`` puts, cut short."""
    chained = pipelines.PrecedingPipeline(first, was_default=False)
    return cut_short(pipelines.body(index, SHIFT, USUAL, chained))


def _shown_body():
    # Short lists and objects on one line, as a person writes them.
    shown = json.dumps(installed_body(), indent=2, ensure_ascii=False)
    shown = re.sub(r"[\[{][^\[\]{}]{1,200}[\]}]", _on_one_line, shown)
    return f"PUT /_ingest/pipeline/langshift-news-v0001\n{shown}\n"


def _on_one_line(found):
    if "\n" not in found[0]:
        return found[0]  # inside a string
    line = " ".join(textwrap.dedent(found[0]).split())
    return re.sub(r"(?<=[\[{]) | (?=[\]}])", "", line) if len(line) < 90 else found[0]


def renew():
    """Run the blocks, and write what was printed, and the body of the pipeline, into the documents.

    Needs a cluster of its own: indices called news, news-mine, articles and old-articles are removed.
    """
    for document in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            replaced = list(chain.from_iterable(_renewed(block, document, folder) for block in blocks(document)))
        write(document, replaced)
        for name in ("news", "cms", "news-mine", "articles", "handbook", "codes", "manual", "gazette", "almanac"):
            subprocess.run([LANGSHIFT, "index", "drop", name, "--yes"], capture_output=True, check=False)
        open_cluster().indices.delete(index="old-articles", params={"ignore_unavailable": "true"})
    write(CLIENTS, [(block.span, _shown_body()) for block in blocks(CLIENTS) if block.mark == "as installed"])


def can_run(block):
    """Whether what the mark of a block to be run says that it needs is there."""
    needed = re.fullmatch("with (.*)", block.mark or "")
    return needed is None or importlib.util.find_spec(needed[1].replace("-", "_")) is not None


def _renewed(block, document, folder):
    if block.kind not in RUN or not can_run(block):
        return
    # By a shell as a whole: how quick things are is shown, too, and that is another matter in a process that is warm.
    python = f"python -W error -c {shlex.quote(block.text)}"
    script = {"python": python, "js": in_node(block.text)}.get(block.kind, block.text)
    done = in_shell(script, folder, **VARIABLES[document])
    if done.returncode:
        raise AssertionError(f"{block.text}\nended with exit code {done.returncode}:\n{done.stderr}")
    print(block.text, done.stdout, sep="")
    if block.shown is not None:
        yield block.shown.span, _printed(done.stdout)


def write(document, replaced):
    """Write texts into a document.

    Args:
        document: its file.
        replaced: pairs of a place, as blocks name it, and its new text, in order.
    """
    text = document.read_text(encoding="utf-8")
    for (start, end), new in reversed(replaced):
        text = text[:start] + new + text[end:]
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()

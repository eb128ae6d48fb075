"""Write the pages of docs that the code itself knows best: the command line, the measures, the service's interface.

    python tools/generate_pages.py            write docs/reference/cli.md, lab-cli.md, measures.md and api.md
    python tools/generate_pages.py --check    only say which of them is stale; exit code 1 where one is

What is written depends on the code alone: not on the terminal, the environment, the home folder or the machine.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import click
from check_names import ROOT

# What is described is the code beside this file, whatever is installed; the laboratory is found where it is installed.
sys.path.insert(0, str(ROOT / "lab"))
sys.path.insert(0, str(ROOT))
from langshift import extensions
from langshift.cli import root
from langshift.evaluate.measures import DEFAULT_MEASURES, FAMILIES
from langshift.evaluate.measures.base import MeasureFamily
from langshift.evaluate.measures.standard import StandardFamily
from langshift.web.api.endpoints import description
from langshift.web.api.errors import STATUS
from langshift.wording import join_words

DOCS = ROOT / "docs" / "reference"
# What the root command allows at most, so that its examples are not wrapped.
WIDTH = 100
_NOTICE = "<!-- Written by tools/generate_pages.py: change the code, then run `make pages`. -->"


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them; 1 where one is stale."""
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if arguments:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(
                    f"docs/reference/{name} is not what the code says now: run `make pages`, and commit the page."
                )
        else:
            path.write_text(text, encoding="utf-8")
            print(f"docs/reference/{name}: {len(text.splitlines()):,} lines")
    if arguments:
        print("\n".join(stale) or f"pages: {' and '.join(PAGES)} are what the code says")
    return int(bool(stale))


class DocumentedCommand(NamedTuple):
    """A command as the page shows it.

    Attributes:
        path: its words, ``langshift vectors fit``.
        depth: how many groups are above it.
        summary: what it does, in a few words.
        help: what ``--help`` prints.
    """

    path: str
    depth: int
    summary: str
    help: str


def command_page() -> str:
    """docs/reference/cli.md: a section for each command of langshift with what its ``--help`` prints."""
    begin = (
        "# Command line\n\n"
        f"{_NOTICE}\n\n"
        "What each command prints with `--help`; those of langshift-lab are on [their own page](lab-cli.md). With "
        "`--json`, a command writes one JSON document to standard output; progress and notes go to standard error, "
        "with and without it.\n\n"
        "| exit code | |\n| --- | --- |\n"
        "| 0 | done |\n"
        "| 1 | failed |\n"
        "| 2 | wrong usage |\n"
        "| 3 | done, but some documents went to the dead letters |\n"
        "| 130 | interrupted |"
    )
    with _without_laboratory():
        return _page(begin, list(documented_commands(root, "langshift", None)))


def lab_command_page() -> str:
    """docs/reference/lab-cli.md: the same of what langshift-lab adds, commands and what it adds to one."""
    with _without_laboratory():
        alone = {one.path: one.help for one in documented_commands(root, "langshift", None)}
    found = list(documented_commands(root, "langshift", None))
    groups = {one.path.rpartition(" ")[0] for one in found}
    added = [one for one in found if alone.get(one.path) != one.help and not (one.path in groups and one.path in alone)]
    if not added:
        sys.exit("langshift-lab is not installed, so its page cannot be written: pip install -e lab")
    begin = (
        "# Command line of langshift-lab\n\n"
        f"{_NOTICE}\n\n"
        "What each command prints with `--help` where langshift-lab is installed (`pip install langshift-lab`); all "
        "others are on [the page of langshift](cli.md)."
    )
    return _page(begin, [one._replace(depth=0) for one in added])


@contextmanager
def _without_laboratory() -> Iterator[None]:
    real, extensions.entry_points = extensions.entry_points, lambda group: ()  # noqa: ARG005 - called by its name
    try:
        yield
    finally:
        extensions.entry_points = real


def _page(begin: str, commands: Sequence[DocumentedCommand]) -> str:
    """A page that begins so, has a list of the commands, and then a section for each."""
    contents = [f"{'  ' * one.depth}- [{one.path}](#{one.path.replace(' ', '-')}): {one.summary}" for one in commands]
    sections = [f"{'#' * (max(one.depth, 1) + 1)} {one.path}\n\n```text\n{one.help}\n```" for one in commands]
    return "\n\n".join([begin, "\n".join(contents), *sections]) + "\n"


def documented_commands(command: click.Command, name: str, parent: click.Context | None) -> Iterator[DocumentedCommand]:
    """Yield a command and all below it, each group before its commands."""
    # A width that is given keeps click from asking the terminal.
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    depth = len(context.command_path.split()) - 1
    lines = (line.rstrip() for line in command.get_help(context).splitlines())
    summary = command.get_short_help_str(limit=200).rstrip(".")
    yield DocumentedCommand(context.command_path, depth, summary, "\n".join(lines))
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None and not found.hidden:
                yield from documented_commands(found, inner, context)


# What ir_measures says of its measures is written for other programs.
_STANDARD = {
    "nDCG@k": "How well the first k documents are ranked, by the grades of the judgements, against the best order "
    "that there could be (normalised discounted cumulative gain).",
    "R@k": "The share of a query's relevant documents that are among the first k. MIRACL's Recall@100 is this, "
    "although its Eq. 3 divides by k.",
    "P@k": "The share of the first k documents that are relevant.",
    "AP": "The mean of the precision at the rank of each relevant document (average precision; its mean over queries "
    "is known as MAP).",
    "RR": "One divided by the rank of the first relevant document (reciprocal rank; its mean over queries is known "
    "as MRR).",
    "Judged@k": "The share of the first k documents that were judged at all: where it is low, the other figures say "
    "less.",
}
_PARAMETERS = {
    "rel": "the lowest grade that counts as relevant (default 1)",
    "judged_only": "True passes over documents that were never judged (default False)",
    "gains": "what each grade is worth, such as `{2:3,3:7}` (default: the grade itself)",
    "dcg": "`log2` only (default); write `gains` for 2^grade - 1",
}
_DIRECTIONS = {
    "high": "high",
    "low": "low",
    "report": "neither: it describes, and which way is good depends on what you want",
}
_PAPERS = (
    ("Shift", "2606.18801"),
    ("LAURA", "2604.20199"),
    ("PosIR", "2601.08363"),
    ("MLAIRE", "2605.07249"),
)


def measure_page() -> str:
    """docs/reference/measures.md: the catalogue of measures, in a table and measure by measure."""
    families = list(FAMILIES.values())
    rows = [f"| [{one.written}](#{_anchor(one.written)}) | {_good(one)} | {one.source} |" for one in families]
    table = ["| measure | good is | defined in |", "| --- | --- | --- |", *rows]
    usual = join_words([f"`{name}`" for name in DEFAULT_MEASURES])
    begin = (
        "# Measures\n\n"
        f"{_NOTICE}\n\n"
        "Every command that takes `--measures` takes these names, parted by spaces or commas. `k` stands for a rank, "
        "as in `nDCG@20`; options stand in brackets before it, as in `Lang_nDCG(same=3,other=1)@20`. Where you name "
        f"none, you get {usual}. Any other measure of [ir_measures](https://ir-measur.es/) has "
        "the name that it has there, such as `Success@10`.\n\n"
        "A query without an answer counts 0. A query without a relevant document is left out: `queries` in "
        "[result.json](format.md#resultjson) says how many queries are behind each mean. Documents with the same score "
        "are ordered as trec_eval orders them: by id, descending, after the score as a 32-bit float."
    )
    papers = ", ".join(f"[{name}](https://arxiv.org/abs/{number})" for name, number in _PAPERS)
    sections = [_measure_section(family) for family in families]
    return "\n\n".join([begin, "\n".join(table), f"The papers: {papers}.", *sections]) + "\n"


def _measure_section(family: MeasureFamily) -> str:
    standard = isinstance(family, StandardFamily)
    sentence, *rest = [_sentence(_STANDARD, family.written, "measure")] if standard else _definition(family)
    pooled = "needs documents judged across languages" if family.across else "works with any judgements"
    facts = [
        f"- Good is: {_DIRECTIONS[family.direction]}",
        f"- Defined in: {family.source}",
        f"- Judgements: {pooled}",
        *(f"- `{name}`: {text}" for name, text in _parameters(family)),
    ]
    return "\n\n".join([f"## {family.written}", sentence, "\n".join(facts), *rest])


def _definition(family: MeasureFamily) -> list[str]:
    """The paragraphs of the docstring that defines a measure, without its name and what the facts say already."""
    paragraphs = (inspect.getdoc(family.compute) or "").split("\n\n")
    found = [_markdown(one) for one in paragraphs if not one.startswith("Direction:")]
    # "PEER, probability of equal expected rank: the p-value of ..."; the name is the heading already.
    head, colon, text = found[0].partition(": ")
    _, _, words = head.partition(", ")
    sentence = f"{words}: {text}" if words else text
    return [_capitalised(sentence) if colon else found[0], *found[1:]]


def _capitalised(sentence: str) -> str:
    """The sentence with a capital at its beginning, unless that is the name of a measure, such as nDCG."""
    return sentence if sentence[1:2].isupper() else sentence[:1].upper() + sentence[1:]


def _parameters(family: MeasureFamily) -> Iterator[tuple[str, str]]:
    """The parameters of a measure, each with what it takes."""
    if isinstance(family, StandardFamily):
        import ir_measures

        for name, parameter in ir_measures.measures.registry[family.name].SUPPORTED_PARAMS.items():
            if name == "cutoff":
                needless = "" if parameter.required else "; without it the whole answer counts"
                yield "@k", f"a rank, such as 20{needless}"
            else:
                yield name, _sentence(_PARAMETERS, name, "parameter")
        return
    if family.written.endswith("@k"):
        yield "@k", "a rank, such as 20"
    for name, option in family.options.items():
        yield name, f"{option.says} (default {_number(option.default)})"


def _sentence(sentences: Mapping[str, str], name: str, kind: str) -> str:
    """What the tables above say of a name; the catalogue may have grown since."""
    if name not in sentences:
        sys.exit(f"tools/generate_pages.py says nothing of the {kind} {name}: write a sentence on it there.")
    return sentences[name]


def _number(value: Any) -> str:  # noqa: ANN401 - whatever type an option has
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _markdown(paragraph: str) -> str:
    """A paragraph of a docstring as Markdown; lines of a list keep their places."""
    text = paragraph.replace("``", "`")
    return text if text.startswith("- ") else " ".join(text.split())


def _good(family: MeasureFamily) -> str:
    return "as you wish" if family.direction == "report" else family.direction


def _anchor(heading: str) -> str:
    """The anchor that GitHub and the site give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def api_page() -> str:
    """docs/reference/api.md: what each address of ``langshift serve --api`` takes and answers."""
    told = description()
    kinds = told["components"]["schemas"]
    begin = (
        "# The interface of the service\n\n"
        f"{_NOTICE}\n\n"
        "What [`langshift serve --api`](../service.md) takes and answers, as JSON; `/api/openapi.json` is the same for "
        "programs. An argument that is not listed is refused. Every answer may be an "
        f"[error](#{_anchor('ErrorAnswer')}), with one of these codes: "
        f"{', '.join(f'`{code}` ({status})' for code, status in STATUS.items())}."
    )
    rows = []
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            answer = one["responses"]["200"]["content"]["application/json"]["schema"]
            takes = "" if body is None else _kind(body)
            rows.append(f"| `{method.upper()} {path}` | {one['summary']} | {takes} | {_kind(answer)} |")
    addresses = ["| address | | takes | answers |", "| --- | --- | --- | --- |", *rows]
    sections = [_schema_section(name, kind) for name, kind in kinds.items()]
    return "\n\n".join([begin, "\n".join(addresses), *sections]) + "\n"


def _schema_section(name: str, kind: Mapping[str, Any]) -> str:
    needed = kind.get("required", [])
    rows = [
        f"| `{field}` | {_kind(one)} | {'needed' if field in needed else _usual(one)} | {one.get('description', '')} |"
        for field, one in kind["properties"].items()
    ]
    summary = kind.get("description", "").split("\n")[0]
    return "\n".join(
        [f"## {name}\n", f"{summary}\n", "| field | type | default | |", "| --- | --- | --- | --- |", *rows]
    )


def _usual(kind: Mapping[str, Any]) -> str:
    # msgspec tells an empty default or not, by its version and by how the field was declared: it says little here.
    return f"`{json.dumps(kind['default'])}`" if kind.get("default", {}) not in ({}, [], ()) else ""


def _kind(kind: Mapping[str, Any]) -> str:
    """A type of the description in words."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    if "anyOf" in kind:
        # Which comes first is msgspec's, by its version.
        return " or ".join(sorted((_kind(one) for one in kind["anyOf"]), key="null".__eq__))
    if "enum" in kind:
        return ", ".join(f"`{value}`" for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {_kind(kind['items'])}" if kind.get("items") else "list"
    if isinstance(kind.get("additionalProperties"), Mapping):
        return f"object of {_kind(kind['additionalProperties'])}"
    limits = [f"{word} {kind[key]:,}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in kind]
    return " ".join([kind.get("type", "any"), *limits])


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": command_page,
    "lab-cli.md": lab_command_page,
    "measures.md": measure_page,
    "api.md": api_page,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

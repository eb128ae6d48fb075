"""docs/search.md stays true: its commands and its code run in order, and print what it shows."""

import random
import re
import string

from readme import differences, run
from searching_document import DOCUMENT, blocks

from langshift.plugin.indices import dropping

BLOCKS = blocks(DOCUMENT.read_text(encoding="utf-8"))
NAME = re.compile(r"""(?<=search )news\b|(?<=index )news\b|(?<=")news(?=")""")


def unused(client):
    """A name that no index has, as long as the one that is shown: tables would be broken into lines elsewhere."""
    while True:
        name = "".join(random.choices(string.ascii_lowercase, k=len("news")))
        if not client.indices.get(index=f"{name}*", params={"expand_wildcards": "all"}):
            return name


def test_its_commands_and_its_code_do_what_it_says(client, cluster_env, tmp_path):
    name = unused(client)
    try:
        for block in BLOCKS:
            printed = run(NAME.sub(name, block.command), tmp_path, OPENSEARCH_URL=cluster_env, COLUMNS="100")
            if block.shown is not None:
                assert differences(printed.replace(name, "news"), block.shown) == [], block.code
    finally:
        dropping.drop_all(client, name)


def test_every_block_is_run_and_most_are_shown():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert len(BLOCKS) == len(re.findall(r"^```(?:sh|python)$", text, re.MULTILINE))
    assert sum(block.shown is None for block in BLOCKS) == 1
    assert {block.kind for block in BLOCKS} == {"sh", "python"}

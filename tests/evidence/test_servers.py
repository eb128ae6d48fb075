"""What a user does with langshift on each server that there can be here, by each engine: docs/operations.md says it.

With ``-s`` it prints the rows. It writes them into the page, and fails where that showed others.
"""

import pytest
import server_table
from command_line import langshift, refusal
from server_checks import CHECKS, Checks
from server_kinds import ENGINES, FAISS, LUCENE, UPGRADED, Making, built, running, skip_without_parts


@pytest.fixture
def making(new_home, quick_java, pytestconfig, tmp_path):
    (tmp_path / "certificates").mkdir()
    return Making(new_home, quick_java, pytestconfig.cache.mkdir("langshift"), tmp_path / "certificates")


def require_shown(found):
    """Fail where the page shows something else; it is written anew."""
    print("", *server_table.rows_of(found), sep="\n")
    shown = server_table.read()
    server_table.write(found)
    assert {key: shown.get(key) for key in found} == found


def checks_of(server, engine, folder):
    folder = folder / engine
    folder.mkdir()
    return Checks(server, engine, folder)


@pytest.mark.parametrize("kind", ENGINES)
def test_what_works_on_a_server_is_what_the_page_says(kind, making, tmp_path):
    found = {}
    with running(kind, making) as server:
        if kind in ("3.6", "3.8"):
            require_no_faiss(server, tmp_path)
        for engine in ENGINES[kind]:
            checks = checks_of(server, engine, tmp_path)
            checks.run(CHECKS)
            found[kind, engine] = checks.found
    require_shown(found)


def require_no_faiss(server, folder):
    """An index that needs the libraries that are not there would end the server."""
    (folder / "corpus.jsonl").write_text('{"_id": "1", "text": "The sea rises and falls."}\n')
    command = ("ingest", folder / "corpus.jsonl", "--index", "none", "--encoder", "use-m", "--engine", "faiss")
    assert "faiss" in refusal(langshift(*command, **server.environment))
    assert not server.client.indices.get(index="none*")


def test_the_newest_goes_on_with_the_data_of_the_embedded_one(making, tmp_path):
    skip_without_parts(newest=True, faiss=True)
    home, engines = making.home_with_plugin(), (*LUCENE, *FAISS)
    with built(making, home, newest=False) as server:
        every = {engine: checks_of(server, engine, tmp_path) for engine in engines}
        for checks in every.values():
            checks.run(["ingest", "search", "chunks"])
            checks.remember()
    found = {}
    with built(making, home, newest=True) as server:
        for engine, checks in every.items():
            checks.server = server
            checks.run([one for one in CHECKS if one != "ingest"])
            found[UPGRADED, engine] = checks.found
    require_shown(found)

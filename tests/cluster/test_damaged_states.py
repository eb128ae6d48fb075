"""A state or a journal that no load has written is refused before anything follows from it, and stays as it is."""

import json
import re
import shutil
import sqlite3

import orjson
import pyarrow as pa
import pytest
from command_line import langshift
from parted import GIVEN, vectored
from pyarrow import parquet
from several_files import made_lines

from langshift.errors import LangshiftError
from langshift.ingest import load
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.parts import run
from langshift.settings import Settings


def facts(**changes):
    """Change what ``load.json`` says; an ellipsis takes a fact away."""

    def change(state):
        path = state / "load.json"
        held = json.loads(path.read_bytes()) | changes
        path.write_text(json.dumps({name: value for name, value in held.items() if value is not ...}))
        return path

    return change


def content(made):
    """Write something else into ``load.json``, made of its bytes."""

    def change(state):
        path = state / "load.json"
        path.write_bytes(made(path.read_bytes()))
        return path

    return change


def table(folder, change_table):
    """Write another table in place of the first one of a folder."""

    def change(state):
        path = sorted((state / folder).glob("0*.parquet"))[0]
        found = parquet.read_table(path)
        parquet.write_table(change_table(found).replace_schema_metadata(found.schema.metadata), path)
        return state / "parts" / path.name

    return change


def counts(made):
    """Have the first part say something else of what it has counted."""

    def change(state):
        path = sorted((state / "parts").iterdir())[0]
        found = parquet.read_table(path)
        told = json.loads(found.schema.metadata[b"counts"])
        parquet.write_table(found.replace_schema_metadata({"counts": json.dumps(made(told))}), path)
        return path

    return change


def part(made):
    """Write other bytes into the first part."""

    def change(state):
        path = sorted((state / "parts").iterdir())[0]
        path.write_bytes(made(path.read_bytes()))
        return path

    return change


def backwards(state):
    path = sorted((state / "parts").iterdir())[0]
    return path.rename(path.with_name(f"{9:012}-{1:012}-7.parquet"))


def without_late(state):
    path = sorted((state / "late").iterdir())[0]
    path.unlink()
    return path


def flipped(raw):
    """The beginning of the footer is noise."""
    begin = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    return raw[:begin] + b"\xff" * 40 + raw[begin + 40 :]


STATES = {
    "no buckets": facts(buckets=0),
    "buckets without end": facts(buckets=10**12),
    "buckets as text": facts(buckets="1"),
    "another format": facts(format=2),
    "no format": facts(format=...),
    "no run": facts(run=...),
    "null for all": content(lambda _: b"null"),
    "a list": content(lambda raw: b"[%s]" % raw),
    "cut off": content(lambda raw: raw[: len(raw) // 2]),
    "empty": content(lambda _: b""),
    "no UTF-8": content(lambda raw: raw.replace(b"corpus", b"c\xffrpus")),
    "nested without end": content(lambda _: b'{"shape": ' + b"[" * 100_000),
    "identity null": facts(identity=None, index=5),
    "identity a list": facts(identity=[]),
    "identity without a fingerprint": facts(identity={"index": "a", "corpus": "b"}),
    "base null": facts(base=None),
    "base below nothing": facts(base=-1),
    "base of another type": facts(base="7"),
    "no index": facts(index=...),
    "shape a list": facts(shape=[]),
    "created as text": facts(created="yes"),
    "a planned version that is a number": facts(planned=5),
    "a summary of nothing": facts(**{"summary of the finished load": {}}),
    "a part cut off": part(lambda raw: raw[:-9]),
    "a part without an end": part(flipped),
    "a part that is empty": part(lambda _: b""),
    "a part with a foreign column": table("parts", lambda one: one.append_column("mine", pa.nulls(len(one)))),
    "a part without a column": table("parts", lambda one: one.drop_columns(["state"])),
    "a part with another type": table("parts", lambda one: one.set_column(1, "line", one["line"].cast("string"))),
    "a part without a row": table("parts", lambda one: one.slice(1)),
    "a part that says nothing": counts(lambda _: None),
    "a part that counts text": counts(lambda told: [{"result created": "7"}, *told[1:]]),
    "a part of another number of buckets": counts(lambda told: [*told[:2], told[2] + 1]),
    "a part backwards": backwards,
    "late lines with a foreign column": table("late", lambda one: one.append_column("mine", pa.nulls(len(one)))),
    "late lines that are gone": without_late,
}


def broken_off(*_):
    raise LangshiftError("Out.")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, vectored(made_lines(5)))))
    return path


@pytest.fixture
def begun(cluster_url, client, index_name, corpus, monkeypatch):
    """A function that breaks a load off, and one that goes on with it and says how it was refused."""
    monkeypatch.setattr(run, "LINES", 25)
    options = ("ingest", corpus, "--index", index_name, *GIVEN)

    def begin(*more):
        with monkeypatch.context() as patch:
            patch.setattr(run.PartedRun, "write_late", broken_off)
            patch.setattr(load.LoadRun, "_checked", broken_off)
            done = langshift(*options, *more, url=cluster_url)
        assert (done.returncode, "Out." in done.stderr) == (1, True), done.stderr

    def written():
        return client.indices.stats(index=f"{index_name}-v0001")["_all"]["total"]["indexing"]["index_total"]

    def refused(*more):
        before = written()
        done = langshift(*options, "--resume", *more, url=cluster_url)
        assert done.returncode in (1, 2), done
        assert done.stdout == ""
        said = done.stderr.splitlines()[-1]
        assert said.startswith("Error: "), done.stderr
        assert "unexpected" not in said
        assert written() == before
        return said.removeprefix("Error: ")

    return begin, refused


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_damaged_state_is_refused_before_the_first_line(begun, tmp_path):
    begin, refused = begun
    whole, state = tmp_path / "whole", tmp_path / "state"
    begin("--state", state)
    shutil.copytree(state, whole)
    for name, change in STATES.items():
        shutil.rmtree(state)
        shutil.copytree(whole, state)
        file = change(state)
        before = everything(state)
        said = refused("--state", state)
        if file.name == "load.json":
            assert said == (
                f"{file} is damaged, or was written by another version of langshift: give another folder with --state."
            ), name
        else:
            again = f"remove {state}/parts/{file.name}, and its lines are loaded again."
            assert re.fullmatch(rf"{state}/\w+/{file.name} is (damaged|missing): {again}", said), (name, said)
        assert everything(state) == before, name


def sql(*statements):
    def change(path):
        database = sqlite3.connect(path)
        with database:
            for statement in statements:
                database.execute(statement)
        database.close()

    return change


def noise(path):
    raw = bytearray(path.read_bytes())
    for page in range(4096 * 4, len(raw), 4096):
        raw[page : page + 200] = bytes(range(200))
    path.write_bytes(raw)


JOURNALS = {
    "no database": lambda path: path.write_bytes(b"no database at all" * 100),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:6000]),
    "noise": noise,
    "a fact cut off": sql("UPDATE facts SET value = '{\"a\": ' WHERE name = 'identity'"),
    "a fact that is no JSON": sql("UPDATE facts SET value = x'ff' WHERE name = 'shape'"),
    "a fact that is a number": sql("UPDATE facts SET value = 7 WHERE name = 'identity'"),
    "identity a list": sql("UPDATE facts SET value = '[]' WHERE name = 'identity'"),
    "base null": sql("UPDATE facts SET value = 'null' WHERE name = 'base'"),
    "base below nothing": sql("UPDATE facts SET value = '-5' WHERE name = 'base'"),
    "no index": sql("DELETE FROM facts WHERE name = 'index'"),
    "lost lines backwards": sql("INSERT INTO facts VALUES ('lost', '[[5, 1]]')"),
    "a summary of nothing": sql("INSERT INTO facts VALUES ('summary of the finished load', '{}')"),
    "a table that is gone": sql("DROP TABLE sample"),
    "a foreign column": sql("ALTER TABLE lines ADD COLUMN mine TEXT"),
    "a foreign table": sql("CREATE TABLE birds (name TEXT)"),
    "an unknown state": sql("UPDATE lines SET state = 'lost' WHERE line = 3"),
    "chunks as text": sql("UPDATE lines SET chunks = 'many' WHERE line = 3"),
    "an id of bytes": sql("UPDATE lines SET id = x'ff' WHERE line = 3"),
    "a line below nothing": sql("UPDATE lines SET line = -3 WHERE line = 3"),
    "a vector as text": sql("UPDATE sample SET vector = 'long'"),
    "a tally as text": sql("UPDATE tallies SET count = 'many'"),
}


def test_a_damaged_journal_is_refused_before_the_first_line(begun, client, index_name, tmp_path):
    begin, refused = begun
    begin()
    journal = LoadWorkspace.of(Settings.from_env().home, client, index_name).journal
    whole = tmp_path / "whole"
    shutil.copy(journal, whole)
    for name, change in JOURNALS.items():
        for ending in ("-wal", "-shm"):
            journal.with_name(journal.name + ending).unlink(missing_ok=True)
        shutil.copy(whole, journal)
        change(journal)
        said = refused()
        assert said.startswith(f"{journal} is damaged ("), (name, said)
        assert said.endswith("): remove it, and start again without --resume."), (name, said)

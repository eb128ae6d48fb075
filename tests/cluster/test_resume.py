"""Going on with a load that broke off in unusual places: at its end, with its version gone, before its first line."""

import json

import pytest

from langshift.debias.detector import open_detector
from langshift.debias.encoders import open_encoder
from langshift.errors import ClusterError, LangshiftError
from langshift.ingest.bulk.dead_letters import DeadLetters
from langshift.ingest.bulk.journal_store import LoadWorkspace
from langshift.ingest.config import build_pipeline
from langshift.ingest.load import load, load_source
from langshift.ingest.open_corpus import open_source
from langshift.ingest.resume import LoadOptions
from langshift.plugin import versions
from langshift.settings import Settings

APPEND, REPLACE, RESUME = LoadOptions("append"), LoadOptions("replace"), LoadOptions(resume=True)
LINES = [json.dumps({"_id": name, "text": "Das Meer steigt und fällt."}) for name in "abc"]


@pytest.fixture(scope="module")
def making():
    return build_pipeline(open_encoder("use-m"), open_detector(), None, None)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(LINES))
    return path


@pytest.fixture
def place(client, index_name):
    return LoadWorkspace.of(Settings.from_env().home, client, index_name)


def test_lines_that_were_lost_and_written_by_another_run_are_counted_once(client, index_name, corpus, making):
    load(client, str(corpus), index_name, making)

    def lose(stage, documents, _seconds):
        """Take a document away that was confirmed, before the final check."""
        if stage == "write" and documents:
            client.delete(
                index=index_name,
                id="b",
                params={"version": client.get(index=index_name, id="b")["_version"], "version_type": "external_gte"},
            )

    with pytest.raises(LangshiftError) as ended:
        load(client, str(corpus), index_name, making, lose, APPEND)
    assert str(ended.value) == (
        "The final check found that the cluster has lost 1 document (_id 'b') that it had confirmed. "
        f"2 lines of {corpus} handled: continue with --resume."
    )
    summary = load(client, str(corpus), index_name, making, options=RESUME)
    assert (summary.lines, summary.documents, summary.present, summary.languages) == (3, 3, 3, {"de": 3})
    assert client.get(index=index_name, id="b")["found"]


def test_a_load_whose_version_somebody_deleted_is_given_up_by_itself(client, index_name, corpus, making, capsys):
    def interrupt(stage, documents, _seconds):
        if stage == "write" and documents:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(client, str(corpus), index_name, making, interrupt)
    capsys.readouterr()
    client.indices.delete(index=f"{index_name}-v0001")
    with pytest.raises(ClusterError) as ended:
        load(client, str(corpus), index_name, making, options=RESUME)
    assert str(ended.value) == (
        f"Index {index_name}-v0001, which this load was writing to, was deleted: run the load again without --resume."
    )
    summary = load(client, str(corpus), index_name, making)
    assert summary.present == 3
    assert capsys.readouterr().err == (
        f"A load of {corpus} into {index_name} that was interrupted after 3 lines is abandoned.\n"
    )


def test_letters_of_what_was_replaced_go_though_the_load_was_killed_when_it_was_published(
    client, index_name, corpus, making, place, monkeypatch
):
    corpus.write_text("\n".join(["{broken", *LINES]))
    load(client, str(corpus), index_name, making)
    assert DeadLetters(place.dead_letters).total() == 1

    def killed(*_):
        raise KeyboardInterrupt

    corpus.write_text("\n".join(LINES))
    with monkeypatch.context() as patched:
        patched.setattr(DeadLetters, "keep", killed)
        with pytest.raises(KeyboardInterrupt):
            load(client, str(corpus), index_name, making, options=REPLACE)
    assert versions.version_behind(client, index_name) == f"{index_name}-v0002"
    summary = load(client, str(corpus), index_name, making, options=RESUME)
    assert (summary.lines, summary.present, summary.dead) == (3, 3, 0)
    assert DeadLetters(place.dead_letters).total() == 0


def test_a_log_that_cannot_be_opened_leaves_nothing_behind(client, index_name, corpus, making, place):
    class Watch:
        def begin(self, _place, _total, _handled):
            raise LangshiftError("The log cannot be opened.")

    with open_source(str(corpus)) as source, pytest.raises(LangshiftError, match=r"^The log cannot be opened\.$"):
        load_source(client, source, index_name, making, watch=Watch())
    assert list(versions.versions_of(client, index_name)) == []
    assert not place.journal.exists()


def test_a_version_that_was_made_and_not_written_down_goes(client, index_name, corpus, making, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("langshift.ingest.bulk.journal.Journal.begin", killed)
        with pytest.raises(KeyboardInterrupt):
            load(client, str(corpus), index_name, making)
    (left,) = versions.unfinished(client, index_name)
    uuid = client.indices.get_settings(index=left)[left]["settings"]["index"]["uuid"]
    load(client, str(corpus), index_name, making, options=RESUME)
    (index,) = versions.versions_of(client, index_name)
    assert versions.version_behind(client, index_name) == index
    assert client.indices.get_settings(index=index)[index]["settings"]["index"]["uuid"] != uuid

"""What commands keep of documents and queries is for the user alone, though the umask would let others in."""

import os
import stat

import pytest
from command_line import langshift


@pytest.fixture(autouse=True)
def _lax():
    """The laxest umask there is."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(*folders):
    """Whatever in the folders another user may read, write or enter, the folders themselves included."""
    found = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    assert len(found) > len(folders)
    return [str(path) for path in found if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "langshift"


@pytest.mark.parametrize("count", [1, 2])
def test_a_replay(cluster_url, folder, indices, home, tmp_path, count):
    names = [word for name in indices[:count] for word in ("--index", name)]
    output = tmp_path / "results" / "run"
    done = langshift("evaluate", "replay", folder, *names, "--output", output, url=cluster_url, LANGSHIFT_HOME=home)
    assert done.returncode == 0, done.stderr
    assert open_to_others(tmp_path / "results") == []


def test_a_load_with_a_dead_letter(cluster_url, index_name, corpus, home):
    whole = {"_id": "1", "text": "One.", "language": "en", "embedding": [0.5, 0.5]}
    path = corpus(whole, {**whole, "_id": "2", "embedding": [0.0, 0.0]})
    given = ("--index", index_name, "--encoder", "given", "--alpha", "0")
    done = langshift("ingest", path, *given, url=cluster_url, LANGSHIFT_HOME=home)
    assert done.returncode == 3, done.stderr
    # As root, OpenSearch runs as another user, who passes through here.
    passed = [str(home)] if os.geteuid() == 0 else []
    assert open_to_others(home) == passed
    done = langshift("ingest", "--dead-letters", "--index", index_name, url=cluster_url, LANGSHIFT_HOME=home)
    assert open_to_others(home) == passed

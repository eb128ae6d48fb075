"""Downloads: nothing that differs from the lock file is ever used."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from langshift.embedded.artifacts import Artifact, ArtifactLock, download, read_lock
from langshift.errors import LangshiftError

CONTENT = {"one-1.0.jar": b"first jar" * 1000, "two-2.0.zip": b"second" * 5000}
# What a broken answer looks like: given the right body, the body that is sent and the length that is announced.
Fault = Callable[[bytes], tuple[int, bytes, int]]


def artifact(filename: str) -> Artifact:
    name, _, rest = filename.partition("-")
    version, _, packaging = rest.rpartition(".")
    body = CONTENT[filename]
    digest = hashlib.sha256(body).hexdigest()
    return Artifact(f"org.example:{name}:{version}", packaging, digest, len(body), ("lib",))


LOCK = ArtifactLock("9.9", tuple(artifact(name) for name in CONTENT), "digest")


class Repository(ThreadingHTTPServer):
    """A repository on this machine whose first answers for ``one-1.0.jar`` can be spoilt."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.faults: list[Fault] = []
        self.asked: Counter[str] = Counter()

    @property
    def remote(self) -> dict[str, str]:
        return {"local": f"http://127.0.0.1:{self.server_port}"}


class Answer(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.server.asked[name] += 1
        body = CONTENT.get(name)
        if body is None:
            self.send_error(404)
            return
        status, length = 200, len(body)
        if name == "one-1.0.jar" and self.server.faults:
            status, body, length = self.server.faults.pop(0)(body)
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def flipped(body: bytes) -> tuple[int, bytes, int]:
    return 200, b"X" + body[1:], len(body)


def cut_short(body: bytes) -> tuple[int, bytes, int]:
    return 200, body[:100], len(body)


def half(body: bytes) -> tuple[int, bytes, int]:
    return 200, body[: len(body) // 2], len(body) // 2


def unavailable(_body: bytes) -> tuple[int, bytes, int]:
    return 503, b"busy", 4


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_everything_is_fetched_once(repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = download(LOCK, tmp_path, repository.remote)
    assert {file.name: file.read_bytes() for file in files.values()} == CONTENT
    assert capsys.readouterr().err == f"Downloading OpenSearch 9.9 (0 MB, only needed once) to {tmp_path} ...\n"
    assert download(LOCK, tmp_path, repository.remote) == files
    assert (repository.asked["one-1.0.jar"], repository.asked["two-2.0.zip"]) == (1, 1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("fault", [flipped, cut_short, half, unavailable])
def test_a_broken_answer_is_refused_and_fetched_again(repository: Repository, tmp_path: Path, fault: Fault) -> None:
    repository.faults = [fault, fault]
    files = download(LOCK, tmp_path, repository.remote)
    assert {file.name: file.read_bytes() for file in files.values()} == CONTENT
    assert repository.asked["one-1.0.jar"] == 3


def test_a_file_that_was_spoilt_since_is_fetched_again(repository: Repository, tmp_path: Path) -> None:
    file = download(LOCK, tmp_path, repository.remote)[LOCK.artifacts[0]]
    file.write_bytes(b"X" + file.read_bytes()[1:])
    download(LOCK, tmp_path, repository.remote)
    assert file.read_bytes() == CONTENT["one-1.0.jar"]
    assert (repository.asked["one-1.0.jar"], repository.asked["two-2.0.zip"]) == (2, 1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (flipped, "the file received does not match langshift's lock file (its SHA-256 differs)"),
        (cut_short, "the connection was interrupted"),
        (unavailable, "the repository did not provide it"),
    ],
)
def test_after_three_tries_it_says_which_file_and_why(
    repository: Repository, tmp_path: Path, fault: Fault, reason: str
) -> None:
    repository.faults = [fault] * 9
    with pytest.raises(LangshiftError) as caught:
        download(LOCK, tmp_path, repository.remote)
    assert str(caught.value) == (
        "org.example:one:1.0, a part of the embedded OpenSearch, could not be downloaded in 3 attempts: "
        f"{reason}; try again later, or set OPENSEARCH_URL to your own cluster."
    )
    assert repository.asked["one-1.0.jar"] == 3
    assert not list(tmp_path.rglob("one-1.0.jar"))


def test_without_a_network_it_says_so(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        remote = {"local": f"http://127.0.0.1:{unused.getsockname()[1]}"}
        with pytest.raises(LangshiftError) as caught:
            download(LOCK, tmp_path, remote)
    assert str(caught.value) == (
        "org.example:one:1.0, a part of the embedded OpenSearch, could not be downloaded in 3 attempts: "
        "the repository could not be reached; try again later, or set OPENSEARCH_URL to your own cluster."
    )


def test_the_lock_file_pins_every_part() -> None:
    lock = read_lock()
    assert lock.version == "3.6.0"
    assert all(len(a.sha256) == 64 and int(a.sha256, 16) and a.size > 0 for a in lock.artifacts)
    assert len({(a.coordinate, a.packaging) for a in lock.artifacts}) == len(lock.artifacts)

    def inside(folder: str) -> set[str]:
        return {artifact.filename for artifact in lock.artifacts if folder in artifact.folders}

    assert len(inside("lib")) == 46 + 4
    assert inside("lib") >= {
        "opensearch-3.6.0.jar",
        "log4j-core-2.25.3.jar",
        "opensearch-plugin-classloader-3.6.0.jar",
        "icu4j-77.1.jar",
        "icu4j-localespi-77.1.jar",
    }
    assert inside("agent") == {
        "opensearch-agent-3.6.0.jar",
        "opensearch-agent-bootstrap-3.6.0.jar",
        "byte-buddy-1.17.7.jar",
    }
    assert inside("plugins/opensearch-knn") == {"opensearch-knn-3.6.0.0.zip"}
    assert inside("plugins/neural-search") == {"neural-search-3.6.0.0.zip"}
    # Our own plugin's compiler is in no folder of the distribution.
    assert {artifact.coordinate for artifact in lock.artifacts if not artifact.folders} == {
        "org.eclipse.jdt:ecj:3.43.0"
    }
    modules = {
        "analysis-common": "analysis-common",
        "ingest-common": "ingest-common",
        "lang-painless": "lang-painless",
        "mapper-extras": "mapper-extras-client",
        "reindex": "reindex-client",
        "search-pipeline-common": "search-pipeline-common",
        "transport-grpc": "transport-grpc",
        "transport-netty4": "transport-netty4-client",
    }
    for module, name in modules.items():
        assert f"{name}-3.6.0.jar" in inside(f"modules/{module}")
        assert not inside(f"modules/{module}") & inside("lib")
    folders = {folder for artifact in lock.artifacts for folder in artifact.folders}
    assert {folder for folder in folders if folder.startswith("modules/")} == {f"modules/{m}" for m in modules}

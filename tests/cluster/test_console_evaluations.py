"""The console's page of evaluations over HTTP: replays, reports, and what is refused."""

import http.client
import re
import shutil
import signal
import time
from contextlib import ExitStack, contextmanager
from html import unescape
from itertools import repeat
from urllib.parse import urlsplit

import orjson
import psutil
import pytest
from console_process import sentence, serving
from fault_proxy import fault_proxy
from faults import delayed

PAGE = "/evaluations"


@pytest.fixture(scope="module")
def index(indices):
    return indices[1]


class Person:
    """Somebody at the page of a console."""

    def __init__(self, console, results, http):
        self.console, self.results, self.http = console, results, http

    def page(self):
        """What the page shows as text, and its source."""
        answer = self.http.get(PAGE)
        assert answer.status_code == 200
        return answer.text

    def send(self, what, **form):
        """Send a form, as a browser does."""
        origin = self.console.url.rstrip("/")
        return self.http.post(f"{PAGE}/{what}", data=form, headers={"origin": origin})

    def start(self, dataset, index, **form):
        """Start a replay, and give its folder."""
        answer = self.send("start", dataset=dataset, index=index, **form)
        assert (answer.status_code, answer.headers.get("location")) == (303, PAGE), answer.text
        return self.results / self.running()

    def running(self):
        """The name of the replay that is running, None where none is."""
        found = re.search(
            r'action="/evaluations/cancel">\s*<input type="hidden" name="run" value="([^"]*)"', self.page()
        )
        return found and found[1]

    def answered(self):
        """How many queries of it are answered."""
        found = re.search(r"<span>([\d,]+) of [\d,]+ queries", self.page())
        return int(found[1].replace(",", "")) if found else 0

    def told(self):
        """How the last replay ended."""
        return unescape(re.search(r'<p class="note" role="status">(.*?)</p>', self.page())[1])

    def until(self, condition):
        """Look again until something is so."""
        deadline = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < deadline, self.page()
            time.sleep(0.1)


def process_of(folder):
    return psutil.Process(orjson.loads((folder / "console.json").read_bytes())["process"]["pid"])


@contextmanager
def person_at(folder, url, dataset):
    """Start a console whose home and results are in ``folder``, and give somebody at its page."""
    results = folder / "résults"
    with serving("--results", results, "--dataset", dataset, url=url, home=folder / "home") as console:
        with console.client() as http:
            yield Person(console, results, http)
        # So that no replay outlives the test; one of them has ended it already.
        if console.process.poll() is None:
            console.stop()


@pytest.fixture
def opened(cluster_url, tmp_path, folder):
    """A function that starts a console of the test's own, and gives somebody at its page."""
    return lambda url=cluster_url, dataset=folder: person_at(tmp_path, url, dataset)


@pytest.fixture(scope="module")
def somebody(cluster_url, tmp_path_factory, folder):
    """Somebody at the page of the console that most tests share."""
    with person_at(tmp_path_factory.mktemp("console"), cluster_url, folder) as someone:
        yield someone


@pytest.fixture
def person(somebody):
    """The same; no replay and no result outlives the test."""
    yield somebody
    if name := somebody.running():
        somebody.send("cancel", run=name)
    shutil.rmtree(somebody.results, ignore_errors=True)
    somebody.results.mkdir()


@pytest.fixture
def results(person):
    """The results folder of that console."""
    return person.results


def test_a_replay_is_started_and_its_run_is_in_the_table_and_in_a_report(person, folder, index):
    made = person.start(folder.name, index, mode="hybrid", prefer="-.05", weight="0.5")
    person.until(lambda: not person.running())

    assert person.told() == f"The replay {made.name} is done."
    assert sorted(path.name for path in made.iterdir()) == [
        "group-scores.jsonl",
        "per-query.jsonl",
        "result.json",
        "run.trec",
    ]
    text = person.page()
    assert f'name="run" value="{made.name}"' in text
    assert "<code>hybrid --spread 0.05 --lexical-weight 0.5</code>" in text
    measured = orjson.loads((made / "result.json").read_bytes())["measures"]
    assert all(f'<td class="number">{measured[name]:.3f}</td>' in text for name in ("nDCG@20", "LPR"))
    most = orjson.loads((made / "result.json").read_bytes())["most_shown"]["MostShown@20"]
    assert f'<td class="number">{most["language"]} {most["shown"]:.3f}</td>' in text

    report = person.http.get(f"{PAGE}/report", params={"run": made.name})

    assert report.status_code == 200
    assert report.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert made.name in report.text
    (made / "report.html").write_text(report.text)
    assert f'href="/evaluations/report/{made.name}/report.html"' in person.page()
    again = shutil.copytree(made, made.with_name("again"), ignore=shutil.ignore_patterns("report.html"))
    both = person.http.get(f"{PAGE}/report", params={"run": [made.name, again.name]})
    assert "Too few questions to tell" in both.text
    stored = person.http.get(f"{PAGE}/report/{made.name}/report.html")
    assert (stored.text, stored.headers["content-security-policy"]) == (
        report.text,
        report.headers["content-security-policy"],
    )


def test_one_replay_at_a_time_which_is_cancelled_and_gone_on_with(person, index):
    made = person.start("demo", index, mode="lexical")
    second = person.send("start", dataset="demo", index=index)
    assert (second.status_code, sentence(second)) == (
        400,
        f"The replay {made.name} is running: wait until it is done, or cancel it.",
    )
    person.until(lambda: person.answered() > 5)
    assert '<noscript><meta http-equiv="refresh"' in person.page()

    assert person.send("cancel", run=made.name).status_code == 303

    assert re.fullmatch(
        rf"The replay {made.name} was interrupted; \d+ of 1,056 queries are answered and saved. It was cancelled.",
        person.told(),
    )
    assert re.search(r"Interrupted: \d+ queries are answered. It was cancelled.", person.page())
    again = person.send("cancel", run=made.name)
    assert (again.status_code, sentence(again)) == (
        400,
        f"The replay '{made.name}' is no longer running: there is nothing to cancel.",
    )

    assert person.send("resume", run=made.name).status_code == 303
    person.until(lambda: person.answered() > 5)
    process_of(made).kill()
    person.until(lambda: not person.running())

    assert person.told().endswith("queries are answered and saved. Its process was ended by SIGKILL.")


def test_a_replay_that_is_cancelled_at_once_leaves_nothing(person, results, folder, index):
    made = person.start(folder.name, index)
    assert person.send("cancel", run=made.name).status_code == 303

    assert person.told() == f"The replay {made.name} ended before its first query was sent. It was cancelled."
    assert list(results.iterdir()) == []


def test_a_console_that_is_killed_leaves_a_replay_that_the_next_one_knows(opened, cluster_url, index):
    with fault_proxy(cluster_url) as proxy:
        # A quick machine would be done before the second console is there.
        proxy.inject("search", repeat(delayed(0.1)))
        with opened(proxy.url) as first:
            made = first.start("demo", index, mode="lexical")
            first.console.stop(signal.SIGKILL)
        with opened(proxy.url) as second:
            assert second.running() == made.name
            second.until(lambda: second.answered() > 5)
            process = process_of(made)
            second.console.stop()
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        with opened(proxy.url) as third:
            assert re.search(r"Interrupted: \d+ queries are answered. The console was closed.", third.page())
            assert f'form="resume" name="run" value="{made.name}"' in third.page()


def test_a_replay_outlives_its_cluster_as_one_that_was_cut_off(opened, cluster_url, index):
    with ExitStack() as cluster, ExitStack() as console:
        # The cluster goes first.
        proxy = cluster.enter_context(fault_proxy(cluster_url))
        someone = console.enter_context(opened(proxy.url))
        made = someone.start("demo", index, mode="lexical")
        someone.until(lambda: someone.answered() > 5)
        cluster.close()
        someone.until(lambda: not someone.running())

        text = someone.page()

        assert "Interrupted: " in text
        assert re.search(r'<p class="note trouble">[^<]*\.</p>', text)
        refused = someone.send("start", dataset="demo", index=index)
        assert refused.status_code == 503
        assert sentence(refused).startswith("No replay can be started now. ")
        assert "did not reach the cluster" in (made / "replay.log").read_text()


def test_a_results_folder_that_vanishes_is_no_trouble(person, results, index):
    made = person.start("demo", index, mode="lexical")
    person.until(lambda: person.answered() > 5)
    shutil.rmtree(made)
    person.until(lambda: not person.running() or person.send("cancel", run=made.name))
    assert made.name in person.told()
    shutil.rmtree(results)
    assert "There are no runs in the results folder" in person.page()


def test_what_cannot_be_started_is_a_sentence(opened, folder, index, tmp_path):
    gone = tmp_path / "gone"
    shutil.copytree(folder, gone)
    with opened(dataset=gone) as someone:
        shutil.rmtree(gone)
        for form, said in (
            (
                {"dataset": "gone", "index": index},
                f"{gone}/queries.jsonl cannot be read (No such file or directory): ",
            ),
            ({"dataset": "../demo", "index": index}, "There is no dataset '../demo': choose one of demo, gone."),
            ({"dataset": "demo", "index": "--output"}, "There is no index '--output' on the cluster: choose one "),
            ({"dataset": "demo", "index": "<b>*"}, "There is no index '<b>*' on the cluster: choose one "),
            ({"dataset": "demo", "index": index, "mode": "magic"}, "There is no search mode 'magic': choose one of "),
            ({"dataset": "demo", "index": index, "prefer": "9"}, "Language preference is '9', but it must be "),
            ({}, "There is no index '' on the cluster: choose one from the form."),
        ):
            refused = someone.send("start", **form)
            assert refused.status_code == 400
            assert sentence(refused).startswith(said)
        for what in ("resume", "cancel"):
            refused = someone.send(what, run="../../etc")
            assert refused.status_code == 400
            assert "'../../etc' is " in sentence(refused)
        files = someone.http.post(
            f"{PAGE}/cancel", files={"run": ("name", b"x")}, headers={"origin": someone.console.url.rstrip("/")}
        )
        assert files.status_code == 400
        foreign = someone.http.post(f"{PAGE}/start", data={}, headers={"origin": "http://example.org"})
        assert foreign.status_code == 403
        assert someone.http.get(f"{PAGE}/start").status_code == 303
        assert list(someone.results.iterdir()) == []


def raw(console, path):
    """The status of an address that no client may tidy up."""
    there = urlsplit(console.url)
    connection = http.client.HTTPConnection(there.hostname, there.port, timeout=60)
    try:
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_only_reports_inside_the_results_folder_are_shown(person, results, tmp_path):
    evil = results / "<script>alert(1)</script>"
    evil.mkdir(parents=True)
    (evil / "result.json").write_text('{"complete": "<script>"}')
    (evil / "report.html").write_text("<script>alert(2)</script>")
    (tmp_path / "report.html").write_text("secret")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("secret")
    (results / "link").symlink_to(tmp_path / "secret")
    for path in (
        "../report.html",
        "%2e%2e/report.html",
        "..%2freport.html",
        "x/%2e%2e/%2e%2e/report.html",
        "..%5creport.html",
        f"/{tmp_path}/report.html",
        f"%2f{str(tmp_path).replace('/', '%2f')}%2freport.html",
        "link/report.html",
        "report.html%00",
        "%00",
        "%ff%fe/report.html",
        "link",
        ".",
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E/result.json",
    ):
        for address in (f"{PAGE}/report/{path}", f"{PAGE}/report?run={path}"):
            status, text = raw(person.console, address)
            assert status in (400, 403, 404), (address, status)
            assert "secret</" not in text
            assert '<p class="note trouble" role="alert">' in text
    text = person.page()
    assert "<script>alert" not in text
    assert "is not in langshift's format" in unescape(text)
    shown = re.search(r'href="(/evaluations/report/[^"]*)"', text)[1]
    report = person.http.get(unescape(shown))
    assert (report.status_code, report.text) == (200, "<script>alert(2)</script>")
    policy = report.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert policy.endswith("; sandbox")


def test_runs_that_cannot_be_compared_are_a_sentence(person, results, folder, tmp_path):
    dataset = {"folder": str(folder), "documents": 15, "queries": 20, "hash": "a"}
    for name, known in (("a", dataset), ("b", dataset | {"hash": "b"}), ("c", dataset | {"folder": f"{tmp_path}/no"})):
        (results / name).mkdir(parents=True)
        (results / name / "result.json").write_bytes(orjson.dumps({"complete": True, "dataset": known}))
        (results / name / "run.trec").write_text("")
    (results / "empty").mkdir()
    for names, said in (
        ([], "No run is selected: select one or more in the table."),
        (["a", "b"], f"{results}/a and {results}/b are runs of different datasets, "),
        (
            ["c"],
            f"{results}/c is a run of {tmp_path}/no, which no longer exists: give the dataset with --dataset.",
        ),
        (["empty"], "empty: It contains no result.json, so it is not a run."),
    ):
        answer = person.http.get(f"{PAGE}/report", params={"run": names})
        assert answer.status_code == 400
        assert sentence(answer).startswith(said)
    (results / "a" / "result.json").chmod(0)
    assert person.http.get(PAGE).status_code == 200


def test_nothing_of_the_environment_is_shown(person, cluster_url, index):
    made = person.start("demo", index, mode="lexical")
    arguments = " ".join(process_of(made).cmdline())
    written = b"".join(path.read_bytes() for path in made.iterdir())

    assert "OPENSEARCH" not in arguments
    assert urlsplit(cluster_url).netloc not in arguments + written.decode()

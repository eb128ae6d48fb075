"""The console's page of evaluations over HTTP: runs, reports, the command that makes a run, and what is refused."""

import http.client
import re
import shlex
import shutil
from html import unescape
from urllib.parse import urlsplit

import orjson
import pytest
from command_line import langshift
from console_process import sentence, serving, serving_here

PAGE = "/evaluations"


@pytest.fixture(scope="module")
def console(cluster_url, tmp_path_factory):
    """One console for all tests, whose results folder has to be quoted and is not there at first."""
    place = tmp_path_factory.mktemp("console")
    with serving_here("--results", place / "two résults", url=cluster_url, home=place / "home") as served:
        served.results = place / "two résults"
        yield served


@pytest.fixture
def results(console):
    """Its results folder; empty before a test."""
    shutil.rmtree(console.results, ignore_errors=True)
    console.results.mkdir()
    return console.results


@pytest.fixture
def browser(console):
    with console.client() as client:
        yield client


def test_the_command_that_it_shows_makes_a_run_that_is_in_the_table_and_in_a_report(
    browser, console, cluster_url, folder, indices
):
    shutil.rmtree(console.results, ignore_errors=True)
    text = browser.get(PAGE).text
    assert f"There are no runs in {console.results} yet" in text
    shown = shlex.split(unescape(re.search(r"<pre [^>]*>(langshift evaluate replay .*)</pre>", text)[1]))
    assert shown[1:] == [
        *("evaluate", "replay", "DATASET", "--index", "NAME", "--output", str(console.results / "NAME"))
    ]
    meant = {"DATASET": str(folder), "NAME": indices[1]}
    given = [meant.get(word, word) for word in shown[1:]]
    how = ["--setting", "hybrid --spread .05", "--measures", "nDCG@20 LPR MostShown@20"]
    done = langshift(*given, *how, url=cluster_url)
    assert done.returncode == 0, done.stderr
    made = console.results / "NAME"

    text = browser.get(PAGE).text

    assert 'name="run" value="NAME"' in text
    assert "<code>hybrid --spread 0.05</code>" in text
    assert f"<td>{folder.name}</td>" in text
    written = orjson.loads((made / "result.json").read_bytes())
    assert all(f'<td class="number">{written["measures"][name]:.3f}</td>' in text for name in ("nDCG@20", "LPR"))
    most = written["most_shown"]["MostShown@20"]
    assert f'<td class="number">{most["language"]} {most["shown"]:.3f}</td>' in text

    report = browser.get(f"{PAGE}/report", params={"run": "NAME"})

    assert report.status_code == 200
    assert report.headers["content-security-policy"].startswith("default-src 'none'; style-src 'unsafe-inline'; ")
    assert "NAME" in report.text
    (made / "report.html").write_text(report.text)
    assert 'href="/evaluations/report/NAME/report.html"' in browser.get(PAGE).text
    shutil.copytree(made, made.with_name("again"), ignore=shutil.ignore_patterns("report.html"))
    both = browser.get(f"{PAGE}/report", params={"run": ["NAME", "again"]})
    assert "Too few questions to tell" in both.text
    stored = browser.get(f"{PAGE}/report/NAME/report.html")
    assert stored.text == report.text
    assert stored.headers["content-security-policy"] == report.headers["content-security-policy"]


def test_a_replay_that_was_cut_off_says_how_it_is_gone_on_with(browser, results):
    (results / "cut").mkdir()
    (results / "cut" / "result.json").write_text('{"complete": false}')

    assert "continue it by giving that again with <code>--resume</code>" in browser.get(PAGE).text


def test_runs_are_shown_where_the_cluster_is_away(tmp_path):
    with serving(url="http://127.0.0.1:1", home=tmp_path) as console, console.client() as browser:
        answer = browser.get(PAGE)
        assert answer.status_code == 200
        assert f"There are no runs in {tmp_path}/results yet" in answer.text


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


def test_only_reports_inside_the_results_folder_are_shown(console, browser, results, tmp_path):
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
            status, text = raw(console, address)
            assert status in (400, 403, 404), (address, status)
            assert "secret</" not in text
            assert '<p class="note trouble" role="alert">' in text
    text = browser.get(PAGE).text
    assert "<script>alert" not in text
    assert "is not in langshift's format" in unescape(text)
    shown = re.search(r'href="(/evaluations/report/[^"]*)"', text)[1]
    report = browser.get(unescape(shown))
    assert (report.status_code, report.text) == (200, "<script>alert(2)</script>")
    policy = report.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert policy.endswith("; sandbox")


def test_runs_that_cannot_be_compared_are_a_sentence(browser, results, folder, tmp_path):
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
        answer = browser.get(f"{PAGE}/report", params={"run": names})
        assert answer.status_code == 400
        assert sentence(answer).startswith(said)
    (results / "a" / "result.json").chmod(0)
    assert browser.get(PAGE).status_code == 200

"""Judging two runs over HTTP: what is shown and what is hidden, what is stored, and who may store it."""

import re
import shutil
import stat
from html import unescape

import orjson
import pytest
from command_line import langshift
from console_process import heading, sentence, serving
from judged_runs import DIFFERING, SAME, write_logged, write_runs

from langshift.evaluate.datasets.dataset import load_dataset
from langshift.evaluate.judging.judgements import add, begin
from langshift.evaluate.judging.pairing import left_side, pair_runs

PAGE, RUNS = "/evaluations/judging", {"run": ["a", "b"]}


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    """A console without a cluster: what is judged is read from files alone."""
    place = tmp_path_factory.mktemp("judging")
    with serving("--results", place / "results", url="http://127.0.0.1:1", home=place / "home") as served:
        served.place = place
        yield served


@pytest.fixture
def results(console):
    """Its results folder, with two runs and nothing judged."""
    for name in ("results", "dataset"):
        shutil.rmtree(console.place / name, ignore_errors=True)
    write_runs(console.place / "results", console.place / "dataset")
    return console.place / "results"


@pytest.fixture
def http(console):
    """A browser on a page of the console."""
    with console.client(origin=console.url.rstrip("/")) as client:
        yield client


def send(http, **form):
    return http.post(PAGE, params=RUNS, data=form)


def open_page(http):
    answer = http.get(PAGE, params=RUNS)
    assert answer.status_code == 200, sentence(answer)
    return unescape(answer.text)


def query_of(text):
    return re.search(r'name="query" value="([^"]*)"', text)[1]


def side_of(text, document):
    """Where a document is shown that one run alone has."""
    left, right = re.findall(r"<section aria-labelledby=\"(?:left|right)-heading\">.*?</section>", text, re.DOTALL)
    assert (f'data-id="{document}"' in left) is not (f'data-id="{document}"' in right)
    return "left" if f'data-id="{document}"' in left else "right"


def judge(http, preferred):
    """Judge the query that is shown: ``x`` prefers what the run a shows alone, ``y`` what b does."""
    text = open_page(http)
    query = query_of(text)
    choice = side_of(text, f"d{query[1:]}-{preferred}") if preferred in "xy" else preferred
    answer = send(http, query=query, do=choice)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}?run=a&run=b")
    return query, choice


def folder_of(results):
    (folder,) = (results / "judgements").iterdir()
    return folder


def lines(folder):
    return [orjson.loads(line) for line in (folder / "judgements.jsonl").read_bytes().splitlines()]


def test_from_the_first_judgement_to_the_result_and_the_dataset(http, results):
    text = open_page(http)
    assert f"for {DIFFERING} queries, and the same for {SAME}, which are left out" in text
    assert not (results / "judgements").exists()
    send(http, do="begin")
    judged = [judge(http, preferred) for preferred in ("y", "y", "x", "both", "neither", "y", "y", "y")]
    assert sorted(query for query, _ in judged) == [f"q{n}" for n in range(DIFFERING)]
    text = open_page(http)
    assert f"All {DIFFERING} queries are judged." in text
    assert "Of 8 judged queries, 5 prefer one run and 1 the other" in text
    assert send(http, do="reveal").status_code == 303

    text = open_page(http)

    rows = dict(re.findall(r'<tr><th scope="row">(.*?)</th><td class="number">(\d+)</td>', text))
    assert rows == {"a is better": "1", "b is better": "5", "both are equally good": "1", "neither is any good": "1"}
    # Six decided of eight, one of them for a: two-sided, (1 + 6) / 2^5.
    assert "that prefer b, less the share that prefer a: +50.0 percentage points (95% interval -13.2 to +113.2)" in text
    assert "p = .2188. That may be chance." in text
    folder = folder_of(results)
    assert f"langshift evaluate replay {folder} --index NAME --output {results}/NAME" in text
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    query, _ = judged[0]
    assert load_dataset(folder).qrels[query] == {f"d{query[1:]}-y": 1, f"d{query[1:]}-x": 0}
    answer = send(http, query=query, do="left")
    assert (answer.status_code, sentence(answer)) == (
        400,
        "It is known which run is which, so nothing more is judged: open the page again.",
    )


def test_replays_of_a_log_can_be_selected_and_judged(http, results):
    write_logged(results)
    assert set(re.findall(r'name="run" value="(.)"', http.get("/evaluations").text)) == {"a", "b"}
    assert http.get("/evaluations/report", params=RUNS).status_code == 200
    send(http, do="begin")
    judge(http, "y")
    assert set(load_dataset(folder_of(results)).qrels) == {lines(folder_of(results))[1]["query"]}


def test_a_log_becomes_a_dataset_that_is_replayed(cluster_url, indices, tmp_path):
    (tmp_path / "log.txt").write_text("Warum steigt das Meer?\nhow is bread baked\nWhy is the sky blue?\n")
    both = ["--index", indices[0], "--index", indices[1]]
    runs = tmp_path / "runs"
    done = langshift("evaluate", "replay", "--queries", tmp_path / "log.txt", *both, "--output", runs, url=cluster_url)
    assert done.returncode == 0, done.stderr
    pairing = pair_runs(tuple(indices), (runs / indices[0], runs / indices[1]))
    begin(tmp_path / "judged", pairing, seed=1)
    # In so small an index both may find the same ten in another order, of which no grade follows.
    for query in pairing.queries:
        add(tmp_path / "judged", pairing, query, "both")
    again = ["evaluate", "replay", tmp_path / "judged", *both, "--measures", "nDCG@10", "--output", tmp_path / "again"]
    done = langshift(*again, url=cluster_url)
    assert done.returncode == 0, done.stderr
    result = orjson.loads((tmp_path / "again" / indices[0] / "result.json").read_bytes())
    assert result["queries"] == {"asked": len(pairing.queries), "nDCG@10": len(pairing.queries)}
    assert result["measures"]["nDCG@10"] > 0.9


def test_neither_page_nor_address_says_which_run_is_where(http, results):
    send(http, do="begin")
    seed = lines(folder_of(results))[0]["seed"]
    for _ in range(DIFFERING):
        text = open_page(http)
        lists = text[text.index('<div class="columns">') : text.index('<section aria-labelledby="needed">')]
        assert not re.search(r"\b[ab]\b", re.sub(r"</?b>|<[^>]*>", " ", lists))
        query, choice = judge(http, "y")
        assert choice == ("right", "left")[left_side(query, seed)]


def test_the_last_judgement_is_taken_back_and_all_lines_stay(http, results):
    send(http, do="begin")
    first, second = judge(http, "y"), judge(http, "both")
    send(http, do="back")
    assert query_of(open_page(http)) == second[0]
    assert "1 of 8</span> judged" in open_page(http)
    send(http, do="back")
    send(http, do="back")
    assert query_of(open_page(http)) == first[0]
    told = [(line["query"], line["preferred"]) for line in lines(folder_of(results))[1:]]
    assert told == [(first[0], "second"), (second[0], "both"), (second[0], None), (first[0], None)]


def test_a_query_is_judged_once(http, results):
    send(http, do="begin")
    query, choice = judge(http, "y")
    assert send(http, query=query, do=choice).status_code == 303
    assert len(lines(folder_of(results))) == 2
    answer = send(http, query=query, do="neither")
    assert (answer.status_code, sentence(answer)) == (
        400,
        "This query is judged already, in another tab or before you went back: take that back first.",
    )
    assert len(lines(folder_of(results))) == 2


@pytest.mark.usefixtures("results")
def test_hostile_words_are_shown_as_text(http):
    send(http, do="begin")
    page = http.get(PAGE, params=RUNS).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page
    assert "<b>bold" not in page


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {},
    ],
)
def test_only_a_page_of_the_console_stores_a_judgement(console, results, headers):
    with console.client(**headers) as stranger:
        answer = send(stranger, do="begin")
    assert (answer.status_code, heading(answer)) == (403, "Refused")
    assert not (results / "judgements").exists()


def test_behind_a_proxy_the_browser_says_that_the_page_is_the_consoles(console, results):
    with console.client(**{"origin": "https://search.example", "sec-fetch-site": "same-origin"}) as proxied:
        assert send(proxied, do="begin").status_code == 303
    assert folder_of(results).is_dir()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "left", "query": "q0"}, "Judging has not begun: open the page again and begin."),
        ({"do": "delete"}, "The form does not say what to do: open the page again."),
        ({}, "The form does not say what to do: open the page again."),
    ],
)
def test_forms_that_no_page_has_store_nothing(http, results, form, said):
    answer = http.post(PAGE, params=RUNS, data=form, headers={"content-type": "application/x-www-form-urlencoded"})
    assert (answer.status_code, sentence(answer)) == (400, said)
    assert not (results / "judgements").exists()
    send(http, do="begin")
    for query in ("q9", "no such query", "../x", ""):
        answer = send(http, do="left", query=query)
        assert sentence(answer) == "The form names a query that is not judged here: open the page again."
    answer = send(http, do="reveal")
    assert sentence(answer) == "Nothing is judged yet: judge a query first."
    assert len(lines(folder_of(results))) == 1


def test_what_is_no_form_or_too_large_is_refused(http, results):
    for content, kind, status in (
        (b"{}", "application/json", 415),
        (b"do=begin", "text/plain", 415),
        (b"do=begin&x=" + b"a" * 1_000_000, "application/x-www-form-urlencoded", 413),
        (b"do=%ff\xff", "application/x-www-form-urlencoded", 400),
        (b"a=b&" * 100, "application/x-www-form-urlencoded", 400),
    ):
        answer = http.post(PAGE, params=RUNS, content=content, headers={"content-type": kind})
        assert (answer.status_code, answer.text.count('role="alert"')) == (status, 1), content[:20]
    assert not (results / "judgements").exists()


def test_what_cannot_be_judged_is_a_sentence(http, results):
    (results / "cut").mkdir()
    (results / "cut" / "result.json").write_text('{"complete": false}')
    two = "Two runs are judged side by side, and {} are selected: select two in the table."
    for names, status, said in (
        ([], 400, two.format(0)),
        (["a", "a"], 400, two.format(1)),
        (["a", "b", "c"], 400, two.format(3)),
        (["a", "cut"], 400, "cut is an interrupted replay: resume it before it is judged."),
        (["a", "../dataset"], 403, "'../dataset' is not the name of a run: choose one from the table."),
    ):
        answer = http.get(PAGE, params={"run": names})
        assert (answer.status_code, sentence(answer)) == (status, said)


def test_a_folder_that_cannot_be_written_or_read_is_named(http, results):
    folder = results / "judgements" / pair_runs(("a", "b"), (results / "a", results / "b")).key
    (folder / "corpus.jsonl").mkdir(parents=True)
    answer = send(http, do="begin")
    assert (answer.status_code, sentence(answer)) == (
        500,
        f"The judgement is not stored, since {folder}/corpus.jsonl cannot be written (Is a directory): let the user "
        "that runs `langshift serve` write there.",
    )
    shutil.rmtree(results / "judgements")
    (results / "judgements").write_text("")
    answer = http.get(PAGE, params=RUNS)
    assert (answer.status_code, sentence(answer)) == (
        400,
        f"{folder}/judgements.jsonl cannot be read (Not a directory): let the user that runs `langshift serve` read "
        "it.",
    )


def test_a_link_in_the_place_of_the_judgements_is_refused(http, results, tmp_path):
    (results / "judgements").symlink_to(tmp_path)
    answer = send(http, do="begin")
    assert answer.status_code == 400
    assert sentence(answer).endswith(" is a link, so nothing is written there: remove it.")
    assert list(tmp_path.iterdir()) == []

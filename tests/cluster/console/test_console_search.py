"""The console's search pages, asked over HTTP of a real server over a real cluster."""

import re
import shlex
import uuid
from html import unescape
from itertools import repeat
from urllib.parse import parse_qsl, urlsplit

import pytest
from console_process import sentence, serving_here
from fault_proxy import fault_proxy
from given_data import run, write_lines
from searched import drop, with_gamma

from langshift.plugin import metadata
from langshift.plugin.versions import live
from langshift.retrieval.calibration.stored import measured_with

TEXTS = {
    "en": "The river floods the fields in spring, and the farmers wait for it.",
    "de": "Der Fluss überschwemmt im Frühjahr die Felder, und die Bauern warten darauf.",
    "ar": "يفيض النهر على الحقول في الربيع وينتظره المزارعون.",
    "th": "แม่น้ำท่วมทุ่งนาในฤดูใบไม้ผลิ และชาวนาก็รอคอย",
}
BREAD = {
    "en": "Bread rises because yeast turns sugar into gas.",
    "de": "Brot geht auf, weil Hefe Zucker in Gas verwandelt.",
    "ar": "ينتفخ الخبز لأن الخميرة تحول السكر إلى غاز.",
    "th": "ขนมปังฟูเพราะยีสต์เปลี่ยนน้ำตาลเป็นแก๊ส",
}
RIVER = "when does the river flood?"
EVIL = "<script>alert('x')</script>"
# What a script's fetch says of itself.
FETCH = {"sec-fetch-mode": "cors", "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def pair(client, cluster_url, tmp_path_factory):
    """Name of a plain and of a shifted index of the same documents."""
    lines = [
        {"_id": f"{group}-{tag}", "title": f"{group} {tag}", "text": text, "language": tag, "group": group}
        | {"section": section, "year": 2000 + place}
        for group, texts, section in (("river", TEXTS, "Water, wild"), ("bread", BREAD, "Food"))
        for place, (tag, text) in enumerate(texts.items())
    ]
    lines.append({"_id": "evil", "title": f"{EVIL} {'long ' * 200}", "text": f"{EVIL} river", "language": "und"})
    lines[-1]["section"] = EVIL
    lines.append({"_id": "bare", "text": "A stream.", "language": "en"})
    corpus = write_lines(tmp_path_factory.mktemp("corpus") / "corpus.jsonl", lines)
    stem = f"langshift-test-{uuid.uuid4().hex[:8]}"
    names = f"{stem}-plain", f"{stem}-shifted"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        for name, alpha in zip(names, (0, 1), strict=True):
            done = run("ingest", corpus, "--index", name, "--encoder", "use-m", "--alpha", alpha)
            assert done.exit_code == 0, (done.output, done.exception)
    yield names
    for index in client.indices.get(index=f"{stem}*"):
        client.indices.delete(index=index)


@pytest.fixture(scope="module")
def gamma(client, cluster_url, pair, tmp_path_factory):
    """An index whose documents lost what all queries have in common."""
    folder, name = tmp_path_factory.mktemp("gamma"), f"{pair[0].removesuffix('-plain')}-gamma"
    with_gamma().save(folder / "v.safetensors")
    lines = [{"_id": f"river-{tag}", "text": text, "language": tag} for tag, text in TEXTS.items()]
    lines += [{"_id": f"bread-{tag}", "text": text, "language": tag} for tag, text in BREAD.items()]
    corpus = write_lines(folder / "corpus.jsonl", lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENSEARCH_URL", cluster_url)
        done = run("ingest", corpus, "--index", name, "--encoder", "use-m", "--vectors", folder / "v.safetensors")
        assert done.exit_code == 0, (done.output, done.exception)
    yield name
    drop(client, name)


@pytest.fixture(scope="module")
def behind(cluster_url):
    """A proxy before the cluster, which counts what the console asks."""
    with fault_proxy(cluster_url) as running:
        yield running


@pytest.fixture(scope="module")
def http(behind, tmp_path_factory):
    """A client of a console."""
    with serving_here(url=behind.url, home=tmp_path_factory.mktemp("home")) as served, served.client() as opened:
        yield opened


@pytest.fixture
def ask(http, pair):
    """Asks for a page about both indices."""
    plain, shifted = pair

    def asked(path="/search", headers=None, **values):
        given = {"left": plain, "right": shifted} | {name.replace("__", "."): value for name, value in values.items()}
        return http.get(path, params=given, headers=headers)

    return asked


def ids(answer, place):
    """The documents of a list, best first."""
    found = answer.text.partition(f'aria-labelledby="{place}-heading"')[2].partition("</section>")[0]
    return re.findall(r'<li class="hit[^"]*" data-id="([^"]*)"', found)


def address(answer):
    """The link to what is shown."""
    return unescape(re.search(r'data-address="([^"]*)"', answer.text)[1])


def test_both_sides_answer_and_say_where_each_hit_stands_on_the_other(ask):
    answer = ask(q="when does the river flood?")
    assert answer.status_code == 200
    assert ids(answer, "left")[0] == ids(answer, "right")[0] == "river-en"
    assert len(ids(answer, "left")) == 10
    assert "same rank" in answer.text
    assert "a query in\n    en (detected)" in answer.text


def test_mode_sparse_is_offered_where_an_index_has_weights_of_tokens(ask, pair):
    offered = 'name="left.mode" value="sparse"'
    assert offered not in ask().text
    answer = ask(q="when does the river flood?", left__mode="sparse")
    assert offered in answer.text
    assert f"{pair[0]} has no weights of tokens" in unescape(answer.text)


def test_texts_are_in_their_own_language_and_direction(ask):
    text = ask(q="when does the river flood?").text
    assert re.search(r'<h3 lang="ar" dir="rtl">river ar</h3>', text)
    assert re.search(r'<p class="snippet" lang="th" dir="ltr">แม่น้ำ', text)
    assert '<p class="snippet" lang="en" dir="ltr">The <mark>river</mark> <mark>floods</mark> the fields' in text


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"right__mode": "lexical"},
        {"right__mode": "hybrid", "right__weight": "0.6"},
        {"right__mode": "balanced", "right__prefer": "0.05"},
        {"right__mode": "anchored"},
        {"right__one": "1"},
        {"right__alpha": "0.5", "right__prefer": "-0.1"},
    ],
)
def test_a_link_shows_the_same_in_another_session(ask, http, how):
    answer = ask(q="wann steigt der Fluss?", **how)
    again = http.get(address(answer))
    assert [ids(again, place) for place in ("left", "right")] == [ids(answer, place) for place in ("left", "right")]
    assert ids(answer, "right")


def test_a_form_as_a_browser_sends_it_becomes_a_short_link(ask, pair):
    answer = ask(q="river", left__for=pair[0], left__alpha="0", left__mode="auto", lang="", size="10")
    assert answer.status_code == 303
    assert dict(parse_qsl(urlsplit(answer.headers["location"]).query)) == {
        "q": "river",
        "left": pair[0],
        "left.alpha": "0",
        "right": pair[1],
    }
    assert "alpha" not in address(ask(q="river", left__alpha="0", right__alpha="1"))


def test_auto_is_the_mode_that_calibration_found_to_be_best_and_each_side_says_why(client, ask, pair):
    index = live(client, pair[1])
    kept = {"spread": 0.1, "strength": 0.5, "mode": "anchored", "lexical_weight": None, "rerank": {}}
    kept["measured_with"] = measured_with(index)

    def shown(place, **how):
        answer = ask(q=RIVER, **how)
        (part,) = re.findall(rf'<h2 id="{place}-heading">(.*?)<(?:ul|ol)', answer.text, re.DOTALL)
        return " ".join(unescape(part).split()), ids(answer, place)

    before, listed = shown("right")
    assert "<small>dense, alpha 1</small>" in before
    assert f"{pair[1]} is not calibrated, so mode anchored uses default values and auto is dense." in before
    metadata.change(client, index.index, {metadata.ANCHORS: kept})
    try:
        after, anchored = shown("right")
        assert "<small>anchored, alpha 1</small>" in after
        assert f"Mode anchored (strength 0.5), which calibration found to be best for {pair[1]}." in after
        assert anchored == shown("right", right__mode="anchored")[1]
        assert "anchors" in ask("/search/hit", q=RIVER, side="right", id="river-en").text
        # It was measured at the scale that the index has.
        moved, _ = shown("right", right__alpha="0.5")
        assert "<small>dense, alpha 0.5 (as indexed: 1)</small>" in moved
        assert f"Mode dense: a calibration is for {pair[1]} as it is indexed." in moved
    finally:
        metadata.change(client, index.index, {metadata.ANCHORS: None})
    assert shown("right")[1] == listed


def test_a_moved_slider_asks_the_cluster_for_nothing(ask, behind):
    ask(q="when does the river flood?", right__mode="hybrid")
    assert ask("/search/vectors", FETCH, q="when does the river flood?", right__mode="hybrid").status_code == 204
    sent = []

    async def noted(exchange):
        sent.append(exchange.path)
        return await exchange.forward()

    behind.inject("", repeat(noted))
    for how in ({"right__alpha": "0.4"}, {"right__prefer": "0.1"}, {"right__weight": "0.9"}, {"left__alpha": "1"}):
        answer = ask("/search", FETCH, q="when does the river flood?", right__mode="hybrid", **how)
        assert len(ids(answer, "right")) == 10
    assert sent == []
    ask(q="when does the river flood?", right__mode="hybrid")
    assert sent
    behind.clear()


def test_the_plain_index_at_the_shifted_ones_alpha_ranks_as_that(ask):
    answer = ask(q="when does the river flood?", left__alpha="1")
    assert ids(answer, "left") == ids(answer, "right")


def slider(answer, name):
    """Value and default of a slider; None where there is none."""
    found = re.search(rf'name="{name}" [^>]*? value="([^"]*)" data-default="([^"]*)"', answer.text)
    return found and found.groups()


def test_gamma_is_chosen_from_a_list(ask, gamma):
    answer = ask(q=RIVER, right=gamma, right__gamma="0.95")
    assert '<option value="0.95" selected>0.95 (as indexed)</option>' in answer.text
    assert "right.gamma" not in address(answer)
    # Both scales taken back: what a search of vectors as the encoder made them finds.
    plain = ask(q=RIVER, left=gamma, left__alpha="0", left__gamma="0", right=gamma)
    assert "left.alpha=0&left.gamma=0" in address(plain)
    assert sorted(ids(plain, "left")) == sorted(ids(plain, "right"))
    assert f"langshift retune {gamma} --alpha 0 --gamma 0</pre>" in plain.text
    assert "alpha 0, gamma 0 (as indexed: 0.5, gamma 0.95)" in plain.text
    moved = ask(q=RIVER, left=gamma, left__gamma="0.9", right=gamma)
    assert "gamma 0.9 (as indexed: 0.5, gamma 0.95)" in moved.text
    why = ask("/search/hit", q=RIVER, left=gamma, left__gamma="0.9", side="left", id="river-de").text
    for words in ("alpha 0, gamma 0", "As indexed: alpha 0.5, gamma 0.95", "As selected: gamma 0.9", "From gamma"):
        assert words in why
    assert "0.9 times what all queries have in common." in why
    refused = ask(q=RIVER, left=gamma, left__gamma="0.5", right=gamma)
    assert refused.status_code == 400
    assert "but it must be 0, or a number from 0.9 to 0.98" in refused.text


def test_one_per_group_lists_the_translations_inside_the_hit(ask):
    answer = ask(q="when does the river flood?", right__one="1")
    assert sorted(ids(answer, "right"))[:2] == ["bare", "bread-en"]
    assert '<ul class="others" aria-label="Translations">' in answer.text
    assert "alpha cannot be changed here" in answer.text


def test_the_request_shown_is_the_one_that_a_shell_can_send(ask, client):
    answer = ask(q="when does the river flood?")
    curl = [
        unescape(found) for found in re.findall(r'<pre class="curl" tabindex="0">(.*?)</pre>', answer.text, re.DOTALL)
    ]
    assert "… 512 numbers]" in answer.text
    # After each side's search comes the count of its facets.
    for place, line in zip(("left", "right"), curl[::2], strict=True):
        command, _, method, url, _, kind, _, body = shlex.split(line)
        assert (command, method, kind) == ("curl", "POST", "content-type: application/json")
        path = url.removeprefix("$OPENSEARCH_URL")
        found = client.transport.perform_request(method, path, body=body)
        assert [hit["_id"] for hit in found["hits"]["hits"]][:10] == ids(answer, place)


def test_a_moved_alpha_comes_with_the_command_that_makes_it_real(ask, pair):
    text = ask(q="river", right__alpha="0.4").text
    assert f'<pre tabindex="0">langshift retune {pair[1]} --alpha 0.4</pre>' in text
    assert text.count("langshift retune") == 1


def test_why_a_hit_is_where_it_is(ask):
    answer = ask("/search/hit", q="when does the river flood?", side="right", id="river-de", right__alpha="0.5")
    assert answer.status_code == 200
    for words in ("Before any shift: alpha 0", "As indexed: alpha 1", "As selected: alpha 0.5", TEXTS["de"]):
        assert words in answer.text
    assert "0.5 times the language vector of" in answer.text
    assert re.search(r'<span lang="ar" dir="rtl">river ar</span>', answer.text)


def test_why_a_hit_of_the_anchored_mode_names_its_anchors(ask):
    answer = ask("/search/hit", q="when does the river flood?", side="right", id="river-en", right__mode="anchored")
    assert "Documents that the query&#39;s vector was moved towards" in answer.text.replace("'", "&#39;")


def test_a_document_that_is_not_there_is_a_page_that_says_so(ask, pair):
    answer = ask("/search/hit", q="river", side="left", id=EVIL)
    assert answer.status_code == 404
    assert sentence(answer) == f'There is no document "{EVIL}" in {pair[0]}.'


def test_the_page_of_a_hit_shows_the_documents_own_fields(ask):
    text = ask("/search/hit", q=RIVER, side="right", id="river-de", sort="year:desc").text
    fields = re.findall(r'<dt>(.*?)</dt><dd class="whole" dir="auto">(.*?)</dd>', text, re.DOTALL)
    own = {"title": "river de", "text": TEXTS["de"], "language": "de", "group": "river", "section": "Water, wild"}
    assert {name: unescape(value) for name, value in fields} == own | {"year": "2001"}


@pytest.mark.parametrize("path", ["/search", "/search/hit"])
def test_script_anywhere_is_shown_as_text(ask, path):
    text = ask(path, q=f"{EVIL} river", side="left", id="evil", facet="section").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"left__alpha": "abc"},
            "left.alpha is 'abc', but it must be a number from 0 to 1: correct it in the address, or leave it out to "
            "use the default.",
        ),
        (
            {"right__mode": "evil"},
            "right.mode is 'evil', but it must be one of auto, dense, lexical, sparse, hybrid, balanced, anchored: "
            "correct it in the address, or leave it out to use the default.",
        ),
        (
            {"left": "no-such-index"},
            "left is 'no-such-index', but there is no such index or version on the cluster: choose one from the list "
            "at /search, or create it with `langshift ingest`.",
        ),
        ({"q": "x" * 20_000}, "The query has 20,000 characters, but at most 10,000 can be searched for."),
    ],
)
def test_what_cannot_be_used_is_told_in_one_sentence(ask, given, told):
    answer = ask(**({"q": "river"} | given))
    assert answer.status_code == 400
    assert sentence(answer) == told


def test_an_index_that_is_closed_leaves_the_other_side_alone(ask, client, pair):
    shut = f"{pair[0]}-v0001"
    assert ids(ask(q="river"), "left")
    client.indices.close(index=shut)
    try:
        answer = ask(q="river")
        assert answer.status_code == 200
        assert sentence(answer) == f"The cluster answered 400: {shut} is closed; open it with `POST /{shut}/_open`."
        assert ids(answer, "left") == []
        assert ids(answer, "right")
        assert ask().status_code == 200
        assert ask("/search/vectors", q="river").status_code == 204
    finally:
        client.indices.open(index=shut)
    assert ids(ask(q="river"), "left")


@pytest.mark.parametrize("words", ["", "   ", "?!", "12345", "\u202eriver", "x' OR 1=1 --", "𝕣𝕚𝕧𝕖𝕣"])
def test_odd_queries_are_answered(ask, words):
    assert ask(q=words, left__mode="lexical", right__mode="hybrid").status_code == 200


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["language=th"], {"bread-th", "river-th"}),
        (["language=th,de", "section=Food"], {"bread-th", "bread-de"}),
        # As a text field sends them.
        (["year>=2001\r\nyear<2003\r\n\r\nsection!=Food"], {"river-de", "river-ar"}),
        (["year!=*"], {"evil", "bare"}),
        (['{"prefix": {"section": "Wa"}}', "language=de"], {"river-de"}),
    ],
)
def test_documents_are_filtered_as_by_the_command(ask, filters, found):
    for how in ({}, {"sort": "year"}, {"left__mode": "anchored"}):
        assert set(ids(ask(q="river", filter=filters, **how), "left")) == found


def facet(answer, name, place="right"):
    """Value -> how many documents have it, whether it is chosen, and the link that changes that."""
    part = answer.text.partition(f'<ul aria-label="{name} of documents on the {place}">')[2].partition("</ul>")[0]
    found = re.findall(r'<a href="([^"]*)"( class="chosen")?>([^<]*?)(?: <span.*?)?</a> <small>([\d,]+)</small>', part)
    return {unescape(value): (int(count), bool(chosen), unescape(link)) for link, chosen, value, count in found}


def test_values_of_fields_are_links_that_filter_and_take_the_filter_back(ask, http):
    begin = ask(q=RIVER, facet="section", filter="year=*", sort="year:desc", left__mode="lexical")
    counted = {name: one[:2] for name, one in facet(begin, "section").items()}
    assert counted == {"Food": (4, False), "Water, wild": (4, False)}
    wild = http.get(facet(begin, "section")["Water, wild"][2])
    assert "filter=section%3D%22Water%2C+wild%22&facet=section&sort=year%3Adesc" in address(wild)
    assert "left.mode=lexical" in address(wild)
    # What else could be chosen is counted, too; of other fields what is left.
    assert {name: one[:2] for name, one in facet(wild, "section").items()} == {
        "Food": (4, False),
        "Water, wild": (4, True),
    }
    assert {name: one[:2] for name, one in facet(wild, "language").items()} == dict.fromkeys(TEXTS, (1, False))
    assert set(ids(wild, "right")) == {f"river-{tag}" for tag in TEXTS}
    german = http.get(facet(wild, "language")["de"][2])
    both = http.get(facet(german, "language")["th"][2])
    assert ids(both, "right") == ["river-th", "river-de"]
    only = http.get(facet(both, "language")["de"][2])
    assert ids(only, "right") == ["river-th"]
    assert address(http.get(facet(http.get(facet(only, "language")["th"][2]), "section")["Water, wild"][2])) == address(
        begin
    )


def test_hits_are_sorted_by_a_field(ask):
    answer = ask(q="river", sort="year:desc,section", filter="year=*", size=4, left__mode="lexical")
    text = unescape(answer.text)
    assert "Sorted by year:desc, section: all that match." in text
    assert "Sorted by year:desc, section: the 4 hits found." in text
    assert "With a sort, the index is searched as it is" in text
    best = ids(ask(q="river", filter="year=*", size=4), "right")
    years = {tag: place for place, tag in enumerate(TEXTS)}
    assert ids(answer, "right") == sorted(best, key=lambda name: (-years[name[-2:]], name))


def test_pages_are_cut_from_one_ranking_while_documents_are_written(ask, http, client, pair):
    whole = ids(ask(q=RIVER, filter="year=*"), "right")
    answer, shown, seen = ask(q=RIVER, filter="year=*", size=3, **{"from": 0}), [], []
    new = f"{pair[1]}-v0001"
    # One that is like the best, and would be on the first page.
    client.index(index=new, id="new", body=client.get(index=new, id=whole[0])["_source"], params={"refresh": "true"})
    try:
        while True:
            seen.append(address(answer))
            shown += ids(answer, "right")
            following = re.search(r'rel="next" href="([^"]*)"', answer.text)
            if following is None:
                break
            answer = http.get(unescape(following[1]))
        assert shown == whole
        assert len(seen) == 3
        assert "Hits 7 to 8 of 8 on the left, 7 to 8 of 8 on the right" in answer.text
        assert '<span class="visually-hidden">Rank </span>8</span>' in answer.text
        before = http.get(unescape(re.search(r'rel="prev" href="([^"]*)"', answer.text)[1]))
        assert address(before) == seen[1]
        assert "new" in ids(http.get(unescape(re.search(r'href="([^"]*)">First page', before.text)[1])), "right")
    finally:
        client.delete(index=new, id="new", params={"refresh": "true"})
    past = http.get(re.sub("from=3", "from=90", seen[1]))
    assert "The ranking ends after 8 hits, so there is no page that begins at 90." in past.text
    old = http.get(re.sub(r"(left|right)\.pit=[^&]*", r"\1.pit=gone", seen[1]))
    assert old.status_code == 200
    assert old.text.count("The point in time has expired") == 2
    assert 'href="/search?' in old.text.partition("First page, as it is now")[0][-300:]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"filter": "th"}, "A filter is FIELD=VALUE, such as language=th, also with !=, <, <=, > or >=, not 'th'."),
        ({"filter": "nothing=1"}, "has no field 'nothing'"),
        ({"filter": "year=many"}, "The filter year=many does not fit its field"),
        ({"sort": "text"}, "cannot sort by its field 'text'"),
        ({"facet": "text"}, "cannot count by its field 'text'"),
        ({"from": "1000"}, "from is '1000', but it must be a whole number from 0 to 999"),
    ],
)
def test_what_cannot_be_filtered_sorted_or_counted_by_is_told(ask, given, told):
    answer = ask(**{"q": "river", **given})
    assert told in sentence(answer)
    assert ids(answer, "left") == []

"""A page of somebody else's in the browser changes nothing on OpenSearch or the console, and reads nothing."""

import json
import os
from urllib.parse import urlsplit

import pytest
from console_process import serving
from opensearchpy.helpers import bulk
from playwright.sync_api import sync_playwright

DOCUMENTS = 300
SECRET = "a secret that no page may read"
#: Names that lead to this machine, as whoever owns them may decide: of the page, and of a page that was rebound.
EVIL, REBOUND = "evil.example", "rebound.example"

# Each attack gives what it has read, if anything, when the browser has an answer or refuses one.
SCRIPT = """
const PATIENCE = 30000;
window.framed = (fill, loads = 1) => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.name = 'f' + Math.random();
  const read = () => { try { return frame.contentDocument.body.innerText } catch { return '' } };
  if (loads > 1) fill(frame);
  document.body.append(frame);
  frame.onload = () => { if (!--loads) done(read()) };
  if (loads === 1) fill(frame);
});
window.form = (url, method, enctype, fields) => {
  const form = document.createElement('form');
  Object.assign(form, {action: url, method});
  if (enctype) form.enctype = enctype;
  for (const [name, value] of Object.entries(fields))
    form.append(Object.assign(document.createElement('input'), {name, value}));
  return form;
};
window.submitted = (url, enctype, fields, method = 'post') => framed(frame => {
  const made = form(url, method, enctype, fields);
  made.target = frame.name;
  document.body.append(made);
  made.submit();
});
window.sandboxed = (url, enctype, fields) => framed(frame => {
  const made = form(url, 'post', enctype, fields);
  frame.sandbox = 'allow-forms allow-scripts';
  frame.srcdoc = made.outerHTML + '<script>onload = () => setTimeout(() => document.forms[0].submit())<' + '/script>';
}, 2);
window.fetched = (url, how) => fetch(url, how).then(answer => answer.text()).catch(() => '');
window.asked = (method, url, body = null, kind = null) => new Promise(done => {
  const request = new XMLHttpRequest();
  request.open(method, url);
  if (kind) request.setRequestHeader('Content-Type', kind);
  request.onloadend = () => done(request.responseText);
  request.send(body);
});
window.sent = (url, body) => { navigator.sendBeacon(url, body); return '' };
window.shown = (tag, attribute, url, more = {}) => new Promise(done => {
  const made = Object.assign(document.createElement(tag), more);
  const rules = () => { try { return made.sheet.cssRules[0].cssText } catch { return '' } };
  made.onload = made.onerror = () => done(rules());
  made[attribute] = url;
  document.head.append(made);
});
window.streamed = url => new Promise(done => {
  const source = new EventSource(url);
  source.onmessage = event => done(event.data);
  source.onerror = () => { source.close(); done('') };
});
window.all = (attacks, urls, fields, body) => Promise.all(attacks.flatMap(([how, attack]) => urls.map(url => {
  const late = new Promise(done => setTimeout(() => done('no answer to ' + how), PATIENCE));
  return Promise.race([attack(url, fields, body), late]);
})));
"""
PAGE = f"<!doctype html><title>evil</title><body><script>{SCRIPT}</script>"
FORM, PARTS, TEXT, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "application/json"
CHANGES = [
    *(f"submitted(url, '{kind}', fields)" for kind in (FORM, PARTS, TEXT)),
    *(f"submitted(url, '{kind}', {{}})" for kind in (FORM, PARTS, TEXT)),
    *(f"sandboxed(url, '{kind}', fields)" for kind in (FORM, TEXT)),
    "sandboxed(url, '', {})",
    "fetched(url, {method: 'POST', mode: 'no-cors'})",
    "fetched(url, {method: 'POST', mode: 'no-cors', referrerPolicy: 'no-referrer'})",
    *(f"fetched(url, {{method: 'POST', mode: 'no-cors', body: new Blob([body], {{type: '{kind}'}})}})"
      for kind in (FORM, TEXT, "")),
    "fetched(url, {method: 'POST', mode: 'no-cors', body: new URLSearchParams(fields), keepalive: true})",
    "fetched(url, {method: 'POST', credentials: 'include'})",
    f"fetched(url, {{method: 'POST', body, headers: {{'Content-Type': '{TEXT}'}}}})",
    f"fetched(url, {{method: 'POST', body, headers: {{'Content-Type': '{JSON}'}}}})",
    f"fetched(url, {{method: 'POST', body, headers: {{'Content-Type': '{JSON}'}}, keepalive: true}})",
    "fetched(url, {method: 'DELETE'})",
    f"fetched(url, {{method: 'PUT', body, headers: {{'Content-Type': '{JSON}'}}}})",
    "asked('POST', url)",
    f"asked('POST', url, body, '{FORM}')",
    f"asked('POST', url, body, '{JSON}')",
    "asked('DELETE', url)",
    "sent(url)",
    "sent(url, body)",
    "sent(url, new URLSearchParams(fields))",
    "sent(url, new Blob([body], {type: 'text/plain'}))",
    "sent(url, Object.entries(fields).reduce((data, field) => (data.append(...field), data), new FormData()))",
]  # fmt: skip
READS = [
    "fetched(url)",
    "fetched(url, {mode: 'no-cors'})",
    "fetched(url, {credentials: 'include', referrerPolicy: 'no-referrer'})",
    "fetched(url, {method: 'HEAD'})",
    "asked('GET', url)",
    "submitted(url, '', {}, 'get')",
    "framed(frame => { frame.src = url })",
    "shown('script', 'src', url)",
    "shown('script', 'src', url, {type: 'module'})",
    "shown('img', 'src', url)",
    "shown('link', 'href', url, {rel: 'stylesheet'})",
    "import(url).then(String).catch(() => '')",
    "streamed(url)",
]
BODY = '{"query": {"match_all": {}}}'


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, for which the foreign names lead to this machine."""
    arguments = [f"--host-resolver-rules=MAP {EVIL} 127.0.0.1, MAP {REBOUND} 127.0.0.1"]
    # Newer ones ask before a page of the internet's sends anything here; others, and pages of this machine, do not.
    arguments += ["--disable-features=LocalNetworkAccessChecks"]
    # Its sandbox needs another user than root.
    arguments += ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield running
        running.close()


@pytest.fixture(scope="module")
def index(client):
    """An index of 300 documents."""
    name = "langshift-test-foreign-pages"
    client.indices.delete(index=f"{name}*")
    documents = ({"_index": name, "_id": str(number), "text": SECRET} for number in range(DOCUMENTS))
    bulk(client, documents, refresh=True)
    yield name
    client.indices.delete(index=f"{name}*")


@pytest.fixture(scope="module")
def served(cluster_url, tmp_path_factory):
    with serving(url=cluster_url, home=tmp_path_factory.mktemp("console")) as running:
        yield running


def attacked(browser, address, attacks, urls, fields):
    """What a page at the address has read with any of the attacks on any of the URLs, and the statuses of answers."""
    answers = []
    with browser.new_context() as session:
        session.route(address, lambda route: route.fulfill(body=PAGE, content_type="text/html"))
        page = session.new_page()
        page.goto(address)
        # Those that ask beforehand whether they may send are told nothing, and send nothing.
        session.on("response", lambda answer: answer.request.method == "OPTIONS" or answers.append(answer.status))
        named = ", ".join(f"[{json.dumps(how)}, (url, fields, body) => {how}]" for how in attacks)
        read = page.evaluate(f"([urls, fields, body]) => all([{named}], urls, fields, body)", [urls, fields, BODY])
        page.wait_for_load_state("networkidle")
    assert answers
    return [text for text in read if text], set(answers)


def pages_of(url):
    """Address of a foreign page -> the address at which it attacks the server at ``url``."""
    port = urlsplit(url).port
    return [
        (f"http://{EVIL}:8000/page", f"http://127.0.0.1:{port}"),
        # Another program's page at another port of this machine.
        ("http://localhost:8000/page", f"http://localhost:{port}"),
        # Its own origin, as soon as its name leads here.
        (f"http://{REBOUND}:{port}/page", f"http://{REBOUND}:{port}"),
    ]


@pytest.mark.parametrize("way", range(3), ids=["by address", "another port", "rebound"])
def test_the_embedded_server(browser, client, cluster_url, index, way):
    address, root = pages_of(cluster_url)[way]
    change = [f"{root}/{index}/_delete_by_query?q=*&refresh=true", f"{root}/{index}"]
    read = [f"{root}/_cat/indices", f"{root}/{index}/_search?scroll=1h"]
    told, statuses = attacked(browser, address, CHANGES, change, {"q": "*"})
    # 406: the server itself takes no body of a form's types, and does not come to ask where it is from.
    assert statuses <= {403, 405, 406}
    seen, statuses = attacked(browser, address, READS, read, {})
    assert statuses <= {403, 405}
    said = [
        text for text in told + seen if "The embedded OpenSearch " not in text and "Content-Type header" not in text
    ]
    assert [text for text in said if "Incorrect HTTP method" not in text] == []
    client.indices.refresh(index=index)
    assert client.count(index=index)["count"] == DOCUMENTS
    assert client.indices.stats(index=index, metric="search")["_all"]["total"]["search"]["open_contexts"] == 0


@pytest.mark.parametrize("way", range(3), ids=["by address", "another port", "rebound"])
def test_the_console(browser, served, way):
    address, root = pages_of(served.url)[way]
    change = [f"{root}/evaluations", f"{root}/evaluations/judging?run=a&run=b"]
    read = [f"{root}/indices", f"{root}/static/style.css"]
    told, statuses = attacked(browser, address, CHANGES, change, {"do": "begin"})
    assert statuses <= {403, 421}
    seen, statuses = attacked(browser, address, READS, read, {})
    assert statuses <= {403, 421}
    refusals = ("This request came from another site", "This console is available only at")
    assert [text for text in told + seen if not any(said in text for said in refusals)] == []

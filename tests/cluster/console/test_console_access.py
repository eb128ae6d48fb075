"""Who reaches the console: the right Host, origin and token, and nothing of monstrous size."""

import socket
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import httpx
import pytest
from console_process import heading, sentence, serving_here

from langshift.web.security import access

#: What a browser says of a request that a page of the console makes.
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
REFUSED = "This request came from another site: the console accepts only its own pages and direct visits."


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def served(cluster_url, home):
    with serving_here(url=cluster_url, home=home) as console:
        yield console


@pytest.fixture(scope="module")
def browser(served):
    with served.client() as client:
        yield client


@pytest.fixture(scope="module")
def elsewhere(cluster_url, home):
    """A console that other machines might reach."""
    with serving_here("--host", "0.0.0.0", url=cluster_url, home=home) as console:
        yield console


def port_of(console):
    return urlsplit(console.url).port


def test_it_answers_at_its_own_names(served, browser):
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert browser.get("/indices", headers={"host": f"{name}:{port_of(served)}"}).status_code == 200, name


@pytest.mark.parametrize(
    ("host", "bound", "names"),
    [("127.0.0.2", "127.0.0.2", ["127.0.0.2", "127.0.0.1", "localhost"]),
     # Debian gives a machine's own name such an address.
     ("Desk.Example", "127.0.1.1", ["desk.example", "127.0.1.1", "localhost"]),
     ("127.1", "127.0.0.1", ["127.1", "127.0.0.1", "[::1]"]),
     ("desk.example", "192.0.2.1", ["desk.example", "192.0.2.1"]),
     ("0", "0.0.0.0", ["0.0.0.0", "127.0.0.1", "192.0.2.1", "localhost"])],
)  # fmt: skip
def test_it_answers_at_the_address_that_it_prints_and_at_what_a_browser_makes_of_it(host, bound, names):
    made = access(host, 8365, bound=bound)
    assert [
        name for name in [urlsplit(made.url).netloc.removesuffix(":8365"), *names] if not made.serves(f"{name}:8365")
    ] == []
    assert not made.serves("evil.example:8365")


def test_a_console_that_other_machines_reach_under_one_name_is_not_found_under_this_machines_own():
    made = access("desk.example", 8365, bound="192.0.2.1")
    assert not made.serves("localhost:8365")
    assert not made.serves("192.0.2.2:8365")


def test_connections_on_which_nothing_is_asked_keep_nobody_out(served, browser):
    silent = [socket.create_connection(("127.0.0.1", port_of(served))) for _ in range(150)]
    try:
        for one in silent[:50]:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        assert browser.get("/static/icon.svg").status_code == 200
    finally:
        for one in silent:
            one.close()


@pytest.mark.parametrize(
    "host",
    ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "127.0.0.2:{port}", "[::1]",
     "127.0.0.1:{port}.evil.example", "user@127.0.0.1:{port}", "127.0.0.1:{port}:{port}", "", "::1:{port}", "é:{port}"],
)  # fmt: skip
def test_another_name_is_refused(served, browser, host):
    answer = browser.get("/indices", headers={"host": host.format(port=port_of(served)).encode("latin-1")})
    assert answer.status_code == 421
    assert sentence(answer) == f"This console is available only at {served.url}, not under another name."


def test_a_request_without_a_host_is_refused(served):
    with socket.create_connection(("127.0.0.1", port_of(served)), 10) as line:
        line.sendall(b"GET /indices HTTP/1.0\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 421 ")


def test_every_answer_tells_a_browser_what_it_may(browser):
    for answer in (browser.get("/indices"), browser.get("/nothing"), browser.get("/", headers={"host": "evil"})):
        told = answer.headers
        assert told["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
            "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        assert told["x-content-type-options"] == "nosniff"
        assert told["referrer-policy"] == "same-origin"
        assert told["cache-control"] == "no-store"
        assert "server" not in told
    assert "access-control-allow-origin" not in browser.get("/indices", headers={"origin": "null"}).headers


def test_pages_are_opened_by_links_from_elsewhere_and_nothing_else(served, browser):
    assert browser.get("/indices", headers=LINK).status_code == 200
    assert browser.get("/indices", headers=OWN).status_code == 200
    for changed in (
        {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-dest": "iframe"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": f"http://127.0.0.1:{port_of(served) - 1}"},
    ):
        answer = browser.get("/indices", headers=LINK | changed)
        assert (answer.status_code, sentence(answer)) == (403, REFUSED), changed


def test_nothing_can_be_sent_to_pages_that_only_read(served, browser):
    own = {"origin": served.url.rstrip("/")}
    for headers in (
        LINK | {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        own | {"sec-fetch-site": "cross-site"},
        {"origin": own["origin"].replace("http:", "https:")},
    ):
        answer = browser.post("/evaluations", headers=headers)
        assert (answer.status_code, sentence(answer)) == (403, REFUSED), headers
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        for path in ("/evaluations", "/indices", "/static/style.css"):
            # It answers without reading what is sent.
            answer = browser.request(method, path, headers=own, content=b"a" * 1_000_000)
            assert (answer.status_code, sentence(answer)) == (
                405,
                "This address does not accept requests of this kind.",
            ), path


def test_a_long_address_is_a_page_that_says_so(served):
    for words in ("a" * 1_000_000, quote("ä" * 500_000)):
        # httpx itself refuses such addresses.
        line = HTTPConnection("127.0.0.1", port_of(served), timeout=60)
        line.request("GET", f"/search?q={words}")
        answer = line.getresponse()
        assert answer.status == 414
        assert b"The address is too long: the limit is 128 KiB." in answer.read()
        line.close()


def test_what_is_no_http_does_no_harm(served, browser):
    for garbage in (
        b"\x00\x01\x02\r\n\r\n",
        b"GET /" + b"a" * 5_000_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1_000_000,
    ):
        with socket.create_connection(("127.0.0.1", port_of(served)), 10) as line:
            try:
                line.sendall(garbage)
                line.recv(1000)
            except ConnectionError:
                pass
    assert browser.get("/indices").status_code == 200


def test_what_is_nowhere_is_a_page_that_says_so(browser):
    for path in ("/nothing", "/static/nothing.css", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/indices/x/y/z"):
        answer = browser.get(path)
        assert (answer.status_code, sentence(answer)) == (404, "This page does not exist."), path


def test_bound_elsewhere_nobody_is_let_in_without_the_token(elsewhere):
    assert elsewhere.token in elsewhere.opened
    assert len(elsewhere.token) >= 40
    here = {"host": f"127.0.0.1:{port_of(elsewhere)}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port_of(elsewhere)}", trust_env=False) as stranger:
        for path in ("/indices", "/indices?token=", "/indices?token=wrong", "/static/console.js", "/", "/nothing",
                     f"/indices?token={elsewhere.token[:-1]}", "/indices?token=%C3%A4"):  # fmt: skip
            answer = stranger.get(path, headers=here | {"cookie": f"langshift-{port_of(elsewhere)}=wrong"})
            assert answer.status_code == 401, path
            assert "/indices" not in answer.text
            assert "127.0.0.1:9" not in answer.text
            assert heading(answer) == "Token required"
            assert sentence(answer) == (
                "This console requires its token: open the address that `langshift serve` printed, which contains it."
            )
        own = here | {"origin": f"http://{here['host']}"}
        assert stranger.post("/evaluations/judging", headers=own, data={"do": "begin"}).status_code == 401
        assert stranger.get("/static/style.css", headers=here).status_code == 200


def test_the_token_becomes_a_cookie_and_leaves_the_address(elsewhere):
    with httpx.Client(base_url=f"http://127.0.0.1:{port_of(elsewhere)}", trust_env=False) as person:
        answer = person.get(f"/search?token={elsewhere.token}&q=a+b&left=x")
        assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=a+b&left=x")
        told = answer.headers["set-cookie"].lower()
        assert "httponly" in told
        assert "samesite=strict" in told
        assert person.get("/indices").status_code == 200
        assert elsewhere.token not in person.get("/indices").text
        # Several slashes would name another machine.
        line = HTTPConnection("127.0.0.1", port_of(elsewhere), timeout=60)
        line.request("GET", f"//evil.example/?token={elsewhere.token}")
        assert line.getresponse().headers["location"] == "/evil.example/"
        line.close()


def test_bound_elsewhere_it_answers_under_addresses_but_not_under_any_name(elsewhere):
    cookie = {"cookie": f"langshift-{port_of(elsewhere)}={elsewhere.token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port_of(elsewhere)}", headers=cookie, trust_env=False) as person:
        for name, status in (
            ("127.0.0.1", 200), ("192.168.7.7", 200), ("[fe80::1]", 200), (socket.gethostname(), 200),
            ("localhost", 200), ("evil.example", 421), ("127.0.0.1.nip.io", 421),
        ):  # fmt: skip
            answer = person.get("/indices", headers={"host": f"{name}:{port_of(elsewhere)}"})
            assert answer.status_code == status, name

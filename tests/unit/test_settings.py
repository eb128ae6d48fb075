"""Settings from the environment: every variable, and what is said of a bad value."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click
import platformdirs
import pytest

from langshift.cli import root
from langshift.errors import UsageError
from langshift.settings import Settings, Signing

BAD_URL = (
    "OPENSEARCH_URL is not an address: it must look like https://host:9200 "
    "(http or https, a host, and a port unless it is the default)."
)


def refusal(**env: str) -> str:
    with pytest.raises(UsageError) as caught:
        Settings.from_env(env)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_nothing_set_means_the_embedded_server(monkeypatch):
    if sys.platform != "win32":
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
    settings = Settings.from_env({})
    assert settings == Settings(
        url=None,
        username=None,
        password=None,
        ssl_verify=True,
        ca_file=None,
        timeout=30.0,
        home=Path(platformdirs.user_data_dir("langshift", appauthor=False)),
    )


def test_everything_set(tmp_path):
    ca_file = tmp_path / "ca.pem"
    ca_file.touch()
    settings = Settings.from_env(
        {
            "OPENSEARCH_URL": "https://search.example:9200/",
            "OPENSEARCH_USERNAME": "anna",
            "OPENSEARCH_PASSWORD": "s3cret",
            "OPENSEARCH_SSL_VERIFY": "false",
            "OPENSEARCH_CA_FILE": str(ca_file),
            "OPENSEARCH_TIMEOUT": "2.5",
            "LANGSHIFT_HOME": str(tmp_path),
        }
    )
    assert settings == Settings(
        url="https://search.example:9200",
        username="anna",
        password="s3cret",
        ssl_verify=False,
        ca_file=ca_file,
        timeout=2.5,
        home=tmp_path,
    )


def test_the_process_environment_is_read_when_none_is_given(monkeypatch):
    monkeypatch.setenv("OPENSEARCH_URL", "http://search.example")
    assert Settings.from_env().url == "http://search.example"


def test_empty_variables_count_as_not_set():
    names = ("URL", "USERNAME", "PASSWORD", "SSL_VERIFY", "CA_FILE", "TIMEOUT", "AWS_REGION", "AWS_SERVICE")
    empty = {f"OPENSEARCH_{name}": "" for name in names} | {"LANGSHIFT_HOME": ""}
    assert Settings.from_env(empty) == Settings.from_env({})


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://localhost", "http://localhost"),
        ("https://localhost:9200", "https://localhost:9200"),
        ("https://search.example/opensearch/", "https://search.example/opensearch"),
        ("https://search.example:9200/?pretty#top", "https://search.example:9200"),
        ("http://[::1]:9200", "http://[::1]:9200"),
        ("HTTP://Search.Example:80", "http://search.example:80"),
    ],
)
def test_addresses(given, url):
    assert Settings.from_env({"OPENSEARCH_URL": given}).url == url


@pytest.mark.parametrize(
    ("given", "username", "password"),
    [
        ("https://anna:s3cret@host:9200", "anna", "s3cret"),
        ("https://an%40na:s3%3Ac%2Fr%25et@host:9200", "an@na", "s3:c/r%et"),
        ("https://anna@host:9200", "anna", "from variable"),
        ("https://host:9200", "from variable", "from variable"),
    ],
)
def test_credentials_in_the_address_win_over_the_variables(given, username, password):
    variables = {"OPENSEARCH_USERNAME": "from variable", "OPENSEARCH_PASSWORD": "from variable"}
    settings = Settings.from_env({"OPENSEARCH_URL": given, **variables})
    assert (settings.url, settings.username, settings.password) == ("https://host:9200", username, password)


@pytest.mark.parametrize(
    "env",
    [
        {"OPENSEARCH_URL": "https://anna:s3cret@host:9200"},
        {"OPENSEARCH_URL": "https://host:9200", "OPENSEARCH_PASSWORD": "s3cret"},
    ],
)
def test_no_password_when_settings_are_shown(env):
    settings = Settings.from_env(env)
    assert settings.password == "s3cret"
    for shown in (repr(settings), str(settings), f"{settings}"):
        assert "s3cret" not in shown
        assert "https://host:9200" in shown


@pytest.mark.parametrize(
    "given",
    [
        "localhost:9200",
        "search.example",
        "ftp://anna:s3cret@host",
        "https://",
        "https://anna:s3cret@",
        "https://anna:s3cret@host:port",
        "https://anna:s3cret@host:99999",
        "https://anna:s3c/ret@host:9200",
        "https://[anna:s3cret@host",
        "s3cret",
        " ",
    ],
)
def test_bad_addresses_are_refused_without_being_repeated(given):
    assert refusal(OPENSEARCH_URL=given) == BAD_URL


@pytest.mark.parametrize(
    ("variables", "signing"),
    [
        ({"REGION": "eu-central-1"}, Signing("eu-central-1", "es")),
        ({"REGION": " us-gov-west-1 ", "SERVICE": ""}, Signing("us-gov-west-1", "es")),
        ({"REGION": "eu-central-1", "SERVICE": "aoss"}, Signing("eu-central-1", "aoss")),
        ({"REGION": "", "SERVICE": ""}, None),
    ],
)
def test_signing_is_switched_on_by_a_region(variables, signing):
    env = {f"OPENSEARCH_AWS_{name}": value for name, value in variables.items()}
    assert Settings.from_env({"OPENSEARCH_URL": "https://host", **env}).signing == signing


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (
            {"OPENSEARCH_AWS_REGION": "eu-central-1", "OPENSEARCH_AWS_SERVICE": "s3"},
            "OPENSEARCH_AWS_SERVICE is 's3', but it must be es, or aoss for Serverless.",
        ),
        (
            {"OPENSEARCH_AWS_SERVICE": "es"},
            "OPENSEARCH_AWS_SERVICE is set without OPENSEARCH_AWS_REGION: set both, or neither.",
        ),
        (
            {"OPENSEARCH_AWS_REGION": "Frankfurt/1"},
            "OPENSEARCH_AWS_REGION is 'Frankfurt/1', but it must be a region such as eu-central-1.",
        ),
        (
            {"OPENSEARCH_AWS_REGION": "eu-central-1"},
            "OPENSEARCH_AWS_REGION is set without OPENSEARCH_URL: set it to the address of the domain in AWS, "
            "or unset OPENSEARCH_AWS_REGION.",
        ),
    ],
)
def test_signing_that_cannot_be(env, sentence):
    assert refusal(**env) == sentence


@pytest.mark.parametrize(
    "env",
    [
        {"OPENSEARCH_URL": "https://host", "OPENSEARCH_USERNAME": "anna"},
        {"OPENSEARCH_URL": "https://anna:s3cret@host"},
    ],
)
def test_signing_and_a_user_name_exclude_each_other(env):
    assert refusal(OPENSEARCH_AWS_REGION="eu-central-1", **env) == (
        "OPENSEARCH_AWS_REGION and a user name (OPENSEARCH_USERNAME, or in OPENSEARCH_URL) cannot be combined: "
        "unset the one that the cluster does not use."
    )


@pytest.mark.parametrize("text", ["true", "TRUE", "1", "yes", "on", " True "])
def test_certificates_are_checked(text):
    assert Settings.from_env({"OPENSEARCH_SSL_VERIFY": text}).ssl_verify is True


@pytest.mark.parametrize("text", ["false", "False", "0", "no", "off", " off "])
def test_certificates_are_not_checked(text):
    assert Settings.from_env({"OPENSEARCH_SSL_VERIFY": text}).ssl_verify is False


@pytest.mark.parametrize("text", ["2", "never", "falsch", "true false"])
def test_a_flag_that_is_neither(text):
    assert refusal(OPENSEARCH_SSL_VERIFY=text) == (f"OPENSEARCH_SSL_VERIFY is {text!r}, but it must be true or false.")


@pytest.mark.parametrize("text", ["0", "-1", "ten", "10s", "nan", "inf", "1e999"])
def test_a_timeout_that_is_none(text):
    assert refusal(OPENSEARCH_TIMEOUT=text) == (
        f"OPENSEARCH_TIMEOUT is {text!r}, but it must be a number of seconds above 0."
    )


def test_a_ca_file_that_is_missing(tmp_path):
    missing = tmp_path / "ca.pem"
    expected = f"OPENSEARCH_CA_FILE is set to {missing}, which is not a file."
    assert refusal(OPENSEARCH_CA_FILE=str(missing)) == expected


def test_a_ca_file_that_is_a_folder(tmp_path):
    expected = f"OPENSEARCH_CA_FILE is set to {tmp_path}, which is not a file."
    assert refusal(OPENSEARCH_CA_FILE=str(tmp_path)) == expected


def test_home_is_absolute_and_knows_the_tilde(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings.from_env({"LANGSHIFT_HOME": "files of mine"}).home == tmp_path / "files of mine"
    assert Settings.from_env({"LANGSHIFT_HOME": "~/files"}).home == Path.home() / "files"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no root")
def test_root_keeps_its_files_where_another_user_can_reach_them(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Settings.from_env({}).home == Path("/var/lib/langshift")


def test_no_command_takes_a_secret_where_a_list_of_processes_shows_it():
    context = click.Context(root)
    commands = {name: root.get_command(context, name) for name in root.list_commands(context)}
    parameters = [parameter.name or "" for command in commands.values() if command for parameter in command.params]
    assert "as_json" in parameters
    assert [name for name in parameters if re.search("password|secret|token(?!s)|credential|user", name)] == []

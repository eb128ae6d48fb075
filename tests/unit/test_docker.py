"""What docker/ holds, checked without an engine: schema, lint, paths and variables."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import click
import pytest
import yaml

from langshift.cli import root
from langshift.plugin.index_body import ENGINES
from langshift.plugin.native_nodes import LOWEST, NEWEST
from langshift.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
VARIABLE = re.compile(r"\$\{(\w+)(:[-?][^}]*)?\}")


def validate(compose: Path) -> subprocess.CompletedProcess[str]:
    """Check a compose file against the Compose Specification's own JSON schema."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", compose]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tool(name: str) -> str:
    """The program, of this environment or of the system."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} has no package for this platform")


def lint(dockerfile: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([tool("hadolint"), "--no-color", dockerfile], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((DOCKER / "compose.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def instructions() -> list[list[str]]:
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_compose_file_follows_the_specification():
    done = validate(DOCKER / "compose.yml")
    assert (done.returncode, done.stdout.strip()) == (0, "ok -- validation done")


def test_the_specification_refuses_an_unknown_key(tmp_path):
    broken = tmp_path / "compose.yml"
    broken.write_text((DOCKER / "compose.yml").read_text(encoding="utf-8").replace("ulimits:", "limits:"))
    done = validate(broken)
    assert done.returncode == 1
    assert "'limits' was unexpected" in done.stdout


def test_hadolint_finds_nothing():
    done = lint(DOCKER / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_finds_an_image_without_a_version(tmp_path):
    broken = tmp_path / "Dockerfile"
    broken.write_text('FROM python\nUSER 1000\nENTRYPOINT ["python3"]\n')
    done = lint(broken)
    assert done.returncode == 1
    assert "DL3006" in done.stdout


def test_the_script_is_bash_and_shellcheck_finds_nothing():
    script = DOCKER / "check-versions.sh"
    assert os.access(script, os.X_OK)
    for command in (["bash", "-n"], [tool("shellcheck")]):
        done = subprocess.run([*command, script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_script_goes_from_the_lowest_version_by_each_engine():
    text = (DOCKER / "check-versions.sh").read_text(encoding="utf-8")
    assert re.search(r"set -- (\S+)", text)[1] == LOWEST
    assert f" {NEWEST}.0 " in text
    assert re.search(r"engines=\((.*)\)", text)[1].split() == list(ENGINES)


def test_images_name_one_version_and_ports_stay_on_this_machine(compose):
    for name, service in compose["services"].items():
        if "build" in service:
            continue
        assert re.fullmatch(r"opensearchproject/opensearch(-dashboards)?:3\.\d+\.\d+", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name


def test_opensearch_and_dashboards_are_of_one_version(compose):
    versions = {s["image"].partition(":")[2] for s in compose["services"].values() if "build" not in s}
    assert len(versions) == 1
    assert f"One OpenSearch {versions.pop()} node" in (DOCKER / "README.md").read_text(encoding="utf-8")


def test_only_opensearch_starts_unasked(compose):
    profiles = {name: service.get("profiles") for name, service in compose["services"].items()}
    assert profiles == {
        "opensearch": None,
        "dashboards": ["dashboards"],
        "langshift": ["tools"],
        "service": ["service"],
    }


def test_the_service_is_started_as_it_can_be_and_where_the_port_leads(compose, instructions):
    service = compose["services"]["service"]
    name, *words = shlex.split(service["command"])
    given = root.get_command(click.Context(root), name)
    options = given.make_parser(click.Context(given)).parse_args(list(words))[0]
    assert (options["host"], options["tokens"]) == ("0.0.0.0", "/data/tokens")
    assert [port.rpartition(":")[2] for port in service["ports"]] == [str(options["port"])]
    (installed,) = [words for what, *words in instructions if what == "RUN" and "install" in words and "-m" in words]
    assert '".[mcp]"' in installed


def test_the_password_is_demanded_and_on_no_command_line(compose):
    text = (DOCKER / "compose.yml").read_text(encoding="utf-8")
    uses = [match[2] for match in VARIABLE.finditer(text) if match[1].endswith("PASSWORD")]
    assert uses == [":?copy .env.example to .env and set it there"] * 2
    for service in compose["services"].values():
        for key in ("command", "entrypoint", "healthcheck"):
            assert "PASSWORD" not in str(service.get(key))


def test_data_outlives_the_container(compose):
    (mount,) = compose["services"]["opensearch"]["volumes"]
    volume, _, target = mount.partition(":")
    assert volume in compose["volumes"]
    assert target == "/usr/share/opensearch/data"


def test_journals_and_dead_letters_outlive_the_container(compose, instructions):
    home = next(word for name, *words in instructions if name == "ENV" for word in words if "LANGSHIFT_HOME" in word)
    mounts = dict(mount.partition(":")[::2] for mount in compose["services"]["langshift"]["volumes"][1:])
    ((volume, target),) = mounts.items()
    assert volume in compose["volumes"]
    assert home == f"LANGSHIFT_HOME={target}"
    # A new volume has the owner of the folder in the image, which the user of the image must be, before it is one.
    (made,) = [words for name, *words in instructions if name == "RUN" and target in words]
    assert made[made.index("install") :] == ["install", "--directory", "--owner=1000", "--mode=0700", target]
    assert instructions.index(["RUN", *made]) < instructions.index(["USER", "1000"])


def test_variables_used_and_variables_documented_are_the_same():
    used = {match[1] for match in VARIABLE.finditer((DOCKER / "compose.yml").read_text(encoding="utf-8"))}
    example = (DOCKER / ".env.example").read_text(encoding="utf-8")
    documented = dict(re.findall(r"(?m)^(\w+)=(.*)$", example))
    assert used == set(documented)
    assert documented["OPENSEARCH_INITIAL_ADMIN_PASSWORD"] == "''"


def test_defaults_in_the_compose_file_are_those_of_the_example():
    text = (DOCKER / "compose.yml").read_text(encoding="utf-8")
    defaults = {m[1]: m[2][2:] for m in VARIABLE.finditer(text) if m[2] and m[2].startswith(":-")}
    example = (DOCKER / ".env.example").read_text(encoding="utf-8")
    assert defaults == {k: v for k, v in re.findall(r"(?m)^(\w+)=(.*)$", example) if k in defaults}


class Recording(Mapping[str, str]):
    """An empty environment that remembers which variables were asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_langshift_in_the_container_gets_variables_that_it_reads(compose, instructions):
    environment = Recording()
    Settings.from_env(environment)
    given = set(compose["services"]["langshift"]["environment"])
    assert {"OPENSEARCH_URL", "OPENSEARCH_USERNAME", "OPENSEARCH_PASSWORD"} <= given <= environment.asked
    in_image = {word.partition("=")[0] for name, *words in instructions if name == "ENV" for word in words}
    assert in_image - {"PATH"} <= environment.asked


def test_build_context_and_dockerfile_exist(compose):
    build = compose["services"]["langshift"]["build"]
    context = (DOCKER / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).is_file()


def test_what_the_dockerfile_copies_is_there_and_not_ignored(instructions):
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    assert "*" in ignore
    copies = [words[1:-1] for words in instructions if words[0] == "COPY" and not words[1].startswith("--")]
    sources = {source for words in copies for source in words}
    assert sources == allowed
    assert [source for source in sorted(sources) if not (ROOT / source).exists()] == []


def test_everything_that_the_wheel_needs_is_copied(instructions):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    folders = re.search(r"\[tool.hatch.build.targets.wheel\]\ninclude = \[(.*)\]", project)
    assert folders is not None
    needed = set(re.findall(r'"/([^"]+)"', folders[1]))
    named = re.search(r"license-files = \[(.*)\]", project)
    assert named is not None
    needed |= set(re.findall(r'"([^"]+)"', named[1])) | {"pyproject.toml", "README.md"}
    copied = {word for words in instructions if words[0] == "COPY" for word in words[1:-1]}
    assert needed <= copied


def test_the_image_runs_langshift_without_rights(instructions):
    final = instructions[max(n for n, words in enumerate(instructions) if words[0] == "FROM") :]
    assert ["USER", "1000"] in final
    assert ["ENTRYPOINT", '["langshift"]'] in final
    assert all(re.fullmatch(r"python:3\.12-slim-\w+", words[1]) for words in instructions if words[0] == "FROM")


def test_commands_of_the_readme_name_what_the_compose_file_has(compose):
    readme = (DOCKER / "README.md").read_text(encoding="utf-8")
    commands = [shlex.split(line, comments=True) for line in re.findall(r"(?m)^docker compose .+$", readme)]
    assert len(commands) == 8
    services = compose["services"]
    for command in commands:
        for flag, value in pairwise(command):
            if flag == "--profile":
                assert any(value in service.get("profiles", []) for service in services.values())
        if "run" in command:
            words = [word for word in command[command.index("run") + 1 :] if not word.startswith("--")]
            assert words[0] in services
        if "cp" in command:
            assert command[command.index("cp") + 1].partition(":")[0] in services

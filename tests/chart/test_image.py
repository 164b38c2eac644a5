"""What the Dockerfile promises, read from its text; tests/deploy/test_image_build.py builds it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the Dockerfile with its arguments on one line."""
    code = "\n".join(line for line in TEXT.splitlines() if not line.lstrip().startswith("#"))
    lines = code.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


STEPS = instructions()
FINAL = STEPS[max(number for number, step in enumerate(STEPS) if step[0] == "FROM") :]
ARGS = dict(arguments.split("=", 1) for name, arguments in STEPS if name == "ARG" and "=" in arguments)


def of(name: str, steps: list[tuple[str, str]] = FINAL) -> list[str]:
    return [arguments for step, arguments in steps if step == name]


def test_hadolint_finds_nothing():
    judged = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "Dockerfile"],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (judged.returncode, judged.stdout) == (0, "")
    assert "hadolint ignore" not in TEXT


def test_both_stages_stand_on_the_same_pinned_base():
    assert of("FROM", STEPS) == ["${BASE} AS build", "${BASE}"]
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-slim-[a-z]+", ARGS["BASE"])
    assert "@sha256:" in TEXT


def test_the_base_has_a_python_that_the_project_says_it_runs_on():
    python = ".".join(ARGS["BASE"].partition(":")[2].split(".")[:2])
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


def test_what_the_build_installs_is_pinned():
    installs = [arguments for arguments in of("RUN", STEPS) if " install " in arguments]
    tools = [
        word for word in installs[0].partition(" install ")[2].partition("&&")[0].split() if word[0].isalpha()
    ]

    assert {word.partition("==")[0] for word in tools if "==" in word} >= {"pip", "hatchling"}
    assert [word for word in tools if not re.fullmatch(r"[a-z-]+==[\d.]+|constraints\.txt", word)] == []
    assert len(installs) == 3
    assert all("-c constraints.txt" in install or "--no-index" in install for install in installs)


def test_every_dependency_has_a_tested_version():
    pins = {
        re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tracing"]]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in wanted}

    assert names - pins == set()


def test_it_runs_as_a_user_without_rights():
    assert of("USER") == ["65532:65532"]
    assert of("USER")[-1].split(":")[0].isdecimal(), "Kubernetes believes runAsNonRoot of a number only"


def test_it_needs_no_shell_to_run():
    for name in ("ENTRYPOINT", "CMD"):
        assert [type(json.loads(given)) for given in of(name)] == [list]
    (check,) = of("HEALTHCHECK")
    assert json.loads(check.partition("CMD ")[2])[1:] == ["-I", "-m", "noonmark.service.healthcheck"]
    assert (of("ENTRYPOINT"), of("STOPSIGNAL")) == (['["noonmark"]'], ["SIGTERM"])


def test_it_says_which_release_it_is():
    assert ARGS["VERSION"] == PROJECT["version"]
    (labels,) = of("LABEL")
    for name in ("title", "description", "licenses", "source", "version", "revision", "created", "base.name"):
        assert f"org.opencontainers.image.{name}=" in labels
    assert f'licenses="{PROJECT["license"]}"' in labels


def test_it_keeps_no_secret_and_takes_none_as_an_argument():
    assert not [name for name in ARGS if re.search("PASSWORD|TOKEN|SECRET|KEY|URL", name)]
    assert "ADD" not in {name for name, _ in STEPS}


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("services/noonmark/cli/main.py", True),
        ("shared/internal/noonmark/store/claims/sql/claim_once.sql", True),
        ("schemas/noonmark/schemas/events/envelope.py", True),
        ("pyproject.toml", True),
        ("LICENSE", True),
        (".env", False),
        (".git/config", False),
        (".venv/bin/python", False),
        (".noonmark/api-key", False),
        ("id_rsa", False),
        ("tests/conftest.py", False),
        ("examples/handlers.py", False),
        ("services/.env", False),
        ("services/noonmark/cli/__pycache__/main.cpython-311.pyc", False),
    ],
)
def test_only_what_the_image_is_made_of_is_sent_to_the_build(path, sent):
    assert is_sent(path) is sent


def is_sent(path: str) -> bool:
    """Whether `.dockerignore` lets a file through: the last pattern that matches it or a folder above decides."""
    parts = path.split("/")
    above = ["/".join(parts[: number + 1]) for number in range(len(parts))]
    sent = True
    for pattern in (ROOT / ".dockerignore").read_text().splitlines():
        if not pattern or pattern.startswith("#"):
            continue
        text = re.escape(pattern.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(text, name) for name in above):
            sent = pattern.startswith("!")
    return sent

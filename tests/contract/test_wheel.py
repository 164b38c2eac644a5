"""What is built from this folder holds all that an installed noonmark needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "services/noonmark",
    "shared/internal/noonmark",
    "shared/sdk/noonmark",
    "shared/tools/noonmark",
    "schemas/noonmark",
)


def read_at_run_time() -> set[str]:
    """Names in the wheel of everything in the packages that is not bytecode."""
    return {
        str(Path("noonmark") / path.relative_to(ROOT / package))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages(tmp_path):
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    if "Could not find a version" in built.stderr or "No matching distribution" in built.stderr:
        pytest.skip("the build backend cannot be had here")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("noonmark-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    # And nothing else: `services`, `shared` and `schemas` stay free for modules of the user.
    assert names == read_at_run_time()
    assert {"noonmark/devstack/kafka/pom.xml", "noonmark/store/claims/sql/claim_once.sql"} <= names
    assert {"noonmark/core/py.typed", "noonmark/handlers/py.typed"} <= names


def test_nothing_of_the_packages_is_ignored_by_git_and_so_left_out():
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    paths = "\n".join(
        str(ROOT / package / name.removeprefix("noonmark/"))
        for package in PACKAGES
        for name in read_at_run_time()
    )
    ignored = subprocess.run(
        ["git", "-C", ROOT, "check-ignore", "--stdin", "--no-index"],
        input=paths,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ignored.stdout.splitlines() == []

"""The packages of an earlier release are found wherever it keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.releases import merge_packages


def write(root: Path, *names: str, text: str = "") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_parts_of_the_namespace_are_merged_from_every_folder(tmp_path):
    write(
        tmp_path / "all",
        *("services/noonmark/api/main.py", "shared/internal/noonmark/store/sql/claim.sql"),
        *("shared/sdk/noonmark/client/errors.py", "schemas/noonmark/settings.py", "shared/README.md"),
    )

    merge_packages(tmp_path / "all", tmp_path / "noonmark")

    files = {str(path.relative_to(tmp_path / "noonmark")) for path in (tmp_path / "noonmark").rglob("*.*")}
    assert files == {"api/main.py", "store/sql/claim.sql", "client/errors.py", "settings.py"}


def test_a_package_in_two_folders_is_merged(tmp_path):
    write(tmp_path / "all", "shared/sdk/noonmark/client/py.typed", "shared/internal/noonmark/client/py.typed")
    write(tmp_path / "all", "shared/sdk/noonmark/client/a.py", "shared/internal/noonmark/client/b.py")

    merge_packages(tmp_path / "all", tmp_path / "noonmark")

    assert sorted(path.name for path in (tmp_path / "noonmark" / "client").iterdir()) == [
        "a.py",
        "b.py",
        "py.typed",
    ]


def test_two_files_of_one_name_are_an_error(tmp_path):
    write(tmp_path / "all", "shared/sdk/noonmark/client/a.py", text="first")
    write(tmp_path / "all", "services/noonmark/client/a.py", text="second")

    with pytest.raises(FileExistsError, match=r"a\.py is in two parts of the release"):
        merge_packages(tmp_path / "all", tmp_path / "noonmark")

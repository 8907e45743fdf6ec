# SPDX-License-Identifier: Apache-2.0
"""The folders beside the code are found in a checkout and in a wheel, and a missing one is said plainly."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdd import resources

FOLDERS = ("profiles", "schemas", "corpus")


def _package(root: Path) -> Path:
    package = root / "fdd"
    package.mkdir()
    return package


@pytest.mark.parametrize("name", FOLDERS)
def test_wheel_layout(tmp_path: Path, name: str) -> None:
    package = _package(tmp_path)
    (package / "_data" / name).mkdir(parents=True)
    (tmp_path / name).mkdir()  # of some other distribution in the same site-packages
    assert resources._folder(name, package) == package / "_data" / name


@pytest.mark.parametrize("name", FOLDERS)
def test_checkout_layout(tmp_path: Path, name: str) -> None:
    package = _package(tmp_path)
    (tmp_path / name).mkdir()
    assert resources._folder(name, package) == tmp_path / name


@pytest.mark.parametrize("name", FOLDERS)
def test_missing_folder_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"no folder {name}"):
        resources._folder(name, _package(tmp_path))


def test_this_installation_has_all_folders() -> None:
    assert resources.profiles_dir().is_dir()
    assert resources.corpus_dir().is_dir()
    assert resources.schema_path("README.md").is_file()


@pytest.mark.parametrize("name", ["", ".", "..", "../pyproject.toml", "sub/report.schema.json"])
def test_schema_name_with_a_folder_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        resources.schema_path(name)


def test_unknown_schema_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"no schema no-such\.schema\.json"):
        resources.schema_path("no-such.schema.json")

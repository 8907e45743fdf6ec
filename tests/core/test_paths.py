# SPDX-License-Identifier: Apache-2.0
"""From paths to files: order, links, folders that cannot be read, and names that are no text."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdd.core.paths import Entry, expand, safe_path


def make(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


def found(root: Path, *paths: Path, follow_links: bool = False) -> list[str]:
    entries = expand([str(path) for path in paths or (root,)], follow_links=follow_links)
    return [f"{os.path.relpath(entry.path, root)}{f' ({entry.skipped})' if entry.skipped else ''}" for entry in entries]


def test_folders_are_sorted_and_paths_are_not(tmp_path: Path) -> None:
    root = make(tmp_path, "b/2.pt", "b/10.pt", "b/a/z.pt", "a.pt", "c.pt", "B/x.pt", "é.pt")
    assert found(root) == ["a.pt", "c.pt", "é.pt", "B/x.pt", "b/10.pt", "b/2.pt", "b/a/z.pt"]
    assert found(root, root / "c.pt", root / "b", root / "a.pt") == ["c.pt", "b/10.pt", "b/2.pt", "b/a/z.pt", "a.pt"]
    assert found(root, root / "a.pt", root / "a.pt") == ["a.pt", "a.pt"], "what is given twice is reported twice"


def test_roots_are_remembered(tmp_path: Path) -> None:
    root = make(tmp_path, "in/x.pt", "y.pt")
    folder, file = str(root / "in"), str(root / "y.pt")
    assert list(expand([folder, file, "missing"])) == [Entry(f"{folder}/x.pt", folder), Entry(file), Entry("missing")]


def test_links_inside_folders_are_skipped_unless_followed(tmp_path: Path) -> None:
    root = make(tmp_path / "root", "x.pt", "sub/y.pt")
    make(tmp_path / "other", "z.pt")
    (root / "file").symlink_to("x.pt")
    (root / "folder").symlink_to(tmp_path / "other")
    (root / "nowhere").symlink_to("missing")
    (root / "self").symlink_to("self")
    told = ["file (symbolic link)", "folder (symbolic link)", "nowhere (symbolic link)", "self (symbolic link)"]
    assert found(root) == [*told, "x.pt", "sub/y.pt"]
    assert found(root, follow_links=True) == ["file", "nowhere", "self", "x.pt", "folder/z.pt", "sub/y.pt"]


def test_a_link_that_is_given_itself_is_followed(tmp_path: Path) -> None:
    root = make(tmp_path, "in/x.pt")
    (root / "link").symlink_to("in")
    assert found(root, root / "link") == ["link/x.pt"]


def test_loops_end(tmp_path: Path) -> None:
    root = make(tmp_path, "a/x.pt", "b/y.pt")
    (root / "a" / "up").symlink_to("..")
    (root / "b" / "across").symlink_to("../a")
    again = "folder already visited through another link"
    assert found(root, follow_links=True) == ["a/x.pt", f"a/up ({again})", "b/y.pt", f"b/across ({again})"]


def test_a_folder_given_twice_is_walked_twice(tmp_path: Path) -> None:
    root = make(tmp_path, "x.pt")
    assert found(root, root, root) == ["x.pt", "x.pt"]


def test_empty_folders_and_no_paths(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert found(tmp_path) == []
    assert list(expand([])) == []


def test_a_folder_that_cannot_be_read_is_a_problem_and_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path, "a/x.pt", "b/y.pt", "z.pt")
    listing = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if os.path.basename(path) == "a":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", refuse)
    entries = list(expand([str(root)]))
    assert [(os.path.relpath(entry.path, root), entry.problem) for entry in entries] == [
        ("z.pt", None),
        ("a", "Permission denied"),
        ("b/y.pt", None),
    ]


def test_special_files_are_left_to_the_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert found(tmp_path) == ["pipe"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    name = b"caf\xe9.pt"
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_bytes(b"")
    (entry,) = expand([str(tmp_path)])
    assert os.fsencode(entry.path).endswith(name)
    assert safe_path(entry.path).endswith("/caf%E9.pt")


def test_names_with_line_ends_and_colours(tmp_path: Path) -> None:
    root = make(tmp_path, "two\nlines.pt", "\x1b[31mred.pt", "-option.pt")
    assert found(root) == ["\x1b[31mred.pt", "-option.pt", "two\nlines.pt"]


@pytest.mark.parametrize("path", ["", "a\0b", "\udcff", "x" * 5000])
def test_paths_that_cannot_be(path: str) -> None:
    assert list(expand([path])) == [Entry(path)]

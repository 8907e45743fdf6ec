# SPDX-License-Identifier: Apache-2.0
"""Turns the paths a user gives into files: folders walked in sorted order, links told, nothing lost on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fdd.core.text import percent_encode, valid_text


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to look at, or something that is not looked at and why.

    ``path`` is as given, with the way below a folder joined; ``root`` the folder it was found in, None for a path
    given itself. ``skipped`` says why it is not read (a link inside a folder); ``problem`` why it cannot be. ``base`` is the
    folder that the relative paths of all files of a run start from, None where each starts from its own.
    """

    path: str
    root: str | None = None
    skipped: str | None = None
    problem: str | None = None
    base: str | None = None

    @property
    def relative(self) -> str:
        """The path below ``base``, else below the folder it was found in; its name, where it was given itself."""
        start = self.base if self.base is not None else self.root
        return os.path.relpath(self.path, start) if start is not None else os.path.basename(self.path)


def expand(paths: Iterable[str], *, follow_links: bool = False) -> Iterator[Entry]:
    """Yield the files of ``paths`` in the order given, folders sorted by name. Never raises: problems are entries too.

    A link given itself is followed; links inside folders only with ``follow_links``, and no folder is entered twice.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield Entry(path)
            continue
        yield from _walk(path, follow_links)


def common_folder(paths: Sequence[str]) -> str | None:
    """The folder that holds all of several files and folders, so that no two files below them get the same relative path.

    None for a single path, and where there is no such folder (on different drives).
    """
    if len(paths) < 2:
        return None
    try:
        return os.path.commonpath({os.path.dirname(os.path.abspath(path)) for path in paths})
    except ValueError:
        return None


def _walk(root: str, follow_links: bool) -> Iterator[Entry]:
    stack = [root]
    visited: set[tuple[int, int]] = set()
    while stack:
        folder = stack.pop()
        try:
            status = os.stat(folder)
            entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield Entry(folder, root, problem=error.strerror or str(error))
            continue
        if (status.st_dev, status.st_ino) in visited:
            yield Entry(folder, root, skipped="folder already visited through another link")
            continue
        visited.add((status.st_dev, status.st_ino))
        folders: list[str] = []
        for entry in entries:
            if entry.is_symlink() and not follow_links:
                yield Entry(entry.path, root, skipped="symbolic link")
            elif _is_folder(entry):
                folders.append(entry.path)
            else:
                yield Entry(entry.path, root)
        stack.extend(reversed(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder, or a link to one. A link that leads nowhere, or to itself, is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def safe_path(path: str) -> str:
    """A path as valid text: names that are not UTF-8 (surrogate escapes) are percent-encoded byte by byte."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        pass
    else:
        return path
    try:
        return percent_encode(os.fsencode(path))
    except UnicodeEncodeError:  # surrogates that no file system gives, only a caller
        return valid_text(path)

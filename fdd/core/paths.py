# SPDX-License-Identifier: Apache-2.0
"""Turns the paths a user gives into files: folders walked in sorted order, links told, nothing lost on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fdd.core.text import percent_encode, valid_text


@dataclass(frozen=True, slots=True)
class Entry:
    """A file to look at, or something that is not looked at and why.

    ``path`` is as given, with the way below a folder joined; ``root`` the folder it was found in, None for a path
    given itself. ``skipped`` says why it is not read (a link inside a folder); ``problem`` why it cannot be.
    """

    path: str
    root: str | None = None
    skipped: str | None = None
    problem: str | None = None


def expand(paths: Iterable[str], *, follow_links: bool = False) -> Iterator[Entry]:
    """Yield the files of ``paths`` in the order given, folders sorted by name. Never raises: problems are entries too.

    A link given itself is followed; links inside folders only with ``follow_links``, and no folder is entered twice.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield Entry(path)
            continue
        yield from _walk(path, follow_links)


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

# SPDX-License-Identifier: Apache-2.0
"""Finds the line of a key in a TOML text, for messages. The standard reader of TOML tells no places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TABLE = re.compile(r"\s*\[(?P<double>\[)?\s*(?P<name>[^\]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<key>[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')\s*=")
_TOKEN = re.compile(r"\"\"\"(?:\\.|[^\\])*?\"\"\"+|'''.*?'''+|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]", re.DOTALL)
"""Strings and comments of TOML as wholes, brackets, and line ends."""
Path = tuple[str | int, ...]


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line (from 1) where the value at ``path`` begins, or that of the nearest table around it; 1 at worst."""
    places = _places(text)
    wanted = tuple(path)
    while wanted:
        if wanted in places:
            return places[wanted]
        wanted = wanted[:-1]
    return 1


def _places(text: str) -> dict[Path, int]:
    places: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    current: Path = ()
    for number, line in _statements(text):
        table, key = _TABLE.match(line), _KEY.match(line)
        if key is not None:
            places.setdefault((*current, key["key"].strip("\"'")), number)
        elif table is not None:
            names: Path = tuple(part.strip().strip("\"'") for part in table["name"].split("."))
            if table["double"]:
                counts[names] = counts.get(names, -1) + 1
                names = (*names, counts[names])
            current = names
            places.setdefault(current, number)
    return places


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The lines on which a statement begins: not those inside a string or list that runs over several lines."""
    lines = text.split("\n")
    yield 1, lines[0]
    number, depth = 1, 0
    for token in _TOKEN.finditer(text):
        found = token.group()
        if found == "\n":
            number += 1
            if depth <= 0:
                depth = 0
                yield number, lines[number - 1]
            continue
        number += found.count("\n")
        # Brackets of table headers open and close on their line, so they cancel out.
        depth += (found in ("[", "{")) - (found in ("]", "}"))

# SPDX-License-Identifier: Apache-2.0
"""Finds the line of a key in a TOML text, for messages. The standard reader of TOML tells no places."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TABLE = re.compile(r"\s*\[(?P<double>\[)?\s*(?P<name>[^\]]+?)\s*\]")
_KEY = re.compile(r"\s*(?P<key>[A-Za-z0-9_-]+|\"[^\"]*\")\s*=")
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
    for number, line in enumerate(text.splitlines(), 1):
        table, key = _TABLE.match(line), _KEY.match(line)
        if table is not None:
            names: Path = tuple(part.strip().strip('"') for part in table["name"].split("."))
            if table["double"]:
                counts[names] = counts.get(names, -1) + 1
                names = (*names, counts[names])
            current = names
            places.setdefault(current, number)
        elif key is not None:
            places.setdefault((*current, key["key"].strip('"')), number)
    return places

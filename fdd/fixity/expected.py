# SPDX-License-Identifier: Apache-2.0
"""Digests that somebody expects of a file: given by hand, or in a file beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fdd.core.digests import DIGITS
from fdd.core.errors import SourceError, UsageError
from fdd.core.paths import safe_path
from fdd.core.text import printable
from fdd.fixity.lists import read_list

MOST_BYTES = 1 << 20
"""What a neighbour may hold: a list of a thousand files is meant, another file of that name is not."""
_BARE = re.compile(r"\s*([0-9A-Fa-f]{64})\s*")


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected digests by algorithm. ``source``: `--expect` or `neighbour`. ``problem``: why there are none to hold."""

    source: str
    digests: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None

    def held_against(self, digests: Mapping[str, str]) -> dict[str, Any]:
        """What a report says of it. ``matches`` is None where nothing could be held against anything."""
        wrong = [name for name, value in self.digests.items() if name in digests and digests[name] != value]
        open_ = not self.digests or any(name not in digests for name in self.digests)
        entry: dict[str, Any] = {"expected": dict(self.digests), "source": self.source}
        entry["matches"] = False if wrong else None if open_ else True
        return entry | ({"problem": self.problem} if self.problem is not None else {})


def given(digests: Mapping[str, str]) -> Expected:
    """Digests given by hand. Raises :class:`UsageError` where one cannot be a digest of its algorithm."""
    for name, value in digests.items():
        if name not in DIGITS:
            raise UsageError(f"unknown digest {name!r}; known: {', '.join(DIGITS)}")
        if not re.fullmatch(f"[0-9A-Fa-f]{{{DIGITS[name]}}}", value):
            raise UsageError(f"a digest of {name} has {DIGITS[name]} hexadecimal digits, not {value!r}")
    return Expected("--expect", {name: value.lower() for name, value in digests.items()})


def from_neighbour(beside: str, name: str) -> Expected:
    """What the file ``beside`` says of the one called ``name``, as `sha256sum` writes it, or as a digest alone.

    The line of the file's own name is taken; a single line is taken whatever name it gives, for the file may have been
    renamed with it.
    """
    shown = printable(safe_path(os.path.basename(beside)))
    try:
        if os.path.getsize(beside) > MOST_BYTES:
            return Expected("neighbour", problem=f"{shown} is too large for a list of digests")
        with open(beside, "rb") as stream:
            bare = _BARE.fullmatch(stream.read().decode("utf-8-sig", errors="replace"))
        if bare is not None:
            return Expected("neighbour", {"sha256": bare.group(1).lower()})
        rows = [row for row in read_list(beside) if "sha256" in dict(row.digests)]
    except (OSError, SourceError) as error:
        return Expected("neighbour", problem=f"{shown} is no list of digests: {printable(safe_path(str(error)), 2000)}")
    fitting = [row for row in rows if os.path.basename(row.path) == name] or (rows if len(rows) == 1 else [])
    found = {dict(row.digests)["sha256"] for row in fitting}
    if len(found) != 1:
        return Expected("neighbour", problem=f"{shown} does not say what is expected of this file")
    return Expected("neighbour", {"sha256": found.pop()})

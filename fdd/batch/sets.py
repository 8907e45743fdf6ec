# SPDX-License-Identifier: Apache-2.0
"""Facts about several files that belong together: shards of one model, folders of distributed checkpoints.

Files are given one by one, as their reports come; what is kept grows with the number of such files only, not with all.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fdd.core.errors import SourceError
from fdd.core.paths import safe_path
from fdd.core.report import Report
from fdd.core.source import FileSource

_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<total>[0-9]{5})(?P<suffix>\.[A-Za-z0-9.]+)")
INDEX_SUFFIX = ".index.json"
CHECKPOINT_INDEX = ".metadata"
SHARD_SUFFIX = ".distcp"
LARGEST_INDEX = 32 << 20
"""Bytes of an index that is read: the one of a model with a million tensors is about as large."""
MOST_EXPECTED = 10_000
"""Files that a name or an index may announce before it is taken for nonsense."""


@dataclass(slots=True)
class _Group:
    """One set: what was met and what is announced. ``members`` are names below ``folder``.

    ``patterns`` are names with a place for a number, and the numbers announced: written out only in the end, since every
    file of a large set announces all of them.
    """

    kind: str
    folder: str
    root: str
    members: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)
    patterns: set[tuple[str, int]] = field(default_factory=set)
    listed: bool = False
    """Whether the members are announced by name, so that others are too many."""

    def to_dict(self) -> dict[str, Any]:
        expected = self.expected | {
            pattern.replace("\0", f"{number:05}") for pattern, total in self.patterns for number in range(1, total + 1)
        }
        missing = sorted(name for name in expected - self.members if not os.path.lexists(os.path.join(self.folder, name)))
        extra = sorted(self.members - expected) if self.listed else []
        return {
            "kind": self.kind,
            "root": safe_path(self.root),
            "members": [safe_path(name) for name in sorted(self.members)],
            "missing": [safe_path(name) for name in missing],
            "extra": [safe_path(name) for name in extra],
            "complete": self.listed and not missing,
        }


class SetCollector:
    """Takes every path with its report, and tells in the end which sets there are and what they lack."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = {}

    def add(self, path: str, report: Report) -> None:
        """Take one file. ``path`` is where it was read from."""
        folder, name = os.path.split(path)
        shard = _SHARD.fullmatch(name)
        if name.endswith(INDEX_SUFFIX):
            if report.error is None:
                self._index(folder, name)
        elif shard is not None:
            self._shard(folder, shard)
        elif name == CHECKPOINT_INDEX or name.endswith(SHARD_SUFFIX):
            self._checkpoint(folder, name, report)

    def _group(self, kind: str, folder: str, key: str) -> _Group:
        return self._groups.setdefault((folder, key), _Group(kind, folder, os.path.join(folder, key) if key else folder or "."))

    def _shard(self, folder: str, shard: re.Match[str]) -> None:
        group = self._group("sharded-model", folder, shard["stem"] + shard["suffix"])
        group.members.add(shard.group())
        total = int(shard["total"])
        if total <= MOST_EXPECTED:
            group.listed = True
            group.patterns.add((f"{shard['stem']}-\0-of-{shard['total']}{shard['suffix']}", total))

    def _index(self, folder: str, name: str) -> None:
        """An index names the file of every tensor; it is text of the collection, and may hold anything."""
        try:
            with FileSource(os.path.join(folder, name)) as source:
                index = json.loads(source.read_at(0, LARGEST_INDEX))
        except (SourceError, ValueError, RecursionError):
            return
        mapping = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(mapping, dict):
            return
        files = {value for value in mapping.values() if isinstance(value, str) and os.path.basename(value) == value}
        group = self._group("sharded-model", folder, name.removesuffix(INDEX_SUFFIX))
        if len(files) <= MOST_EXPECTED:
            group.listed = True
            group.expected |= files

    def _checkpoint(self, folder: str, name: str, report: Report) -> None:
        group = self._group("distributed-checkpoint", folder, "")
        group.members.add(name)
        group.expected.add(CHECKPOINT_INDEX)
        details = report.identification.details if report.identification is not None else {}
        if name == CHECKPOINT_INDEX and "shard_files" in details:
            group.listed = True
            group.expected |= {text for text in details["shard_files"] if os.path.basename(text) == text}

    def sets(self) -> Iterator[dict[str, Any]]:
        """The sets, sorted by place; single files that only look like a part of one are sets too, with what they lack."""
        for _, group in sorted(self._groups.items()):
            yield group.to_dict()

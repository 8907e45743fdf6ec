# SPDX-License-Identifier: Apache-2.0
"""What verification says of one file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fdd.core.span import Span

RESULT_VERSION = "1.0"
"""Of the JSON form (``schemas/fixity-result.schema.json``)."""


class Fixity(StrEnum):
    """What became of the file. The last two are no verdicts on bytes: UNREADABLE means that they, or the record of them, could
    not be had, UNRECORDED that nothing is known that they could be held against."""

    INTACT = "intact"
    DAMAGED = "damaged"
    TRUNCATED = "truncated"
    EXTENDED = "extended"
    SHIFTED = "shifted"
    REPACKAGED = "repackaged"
    REPLACED = "replaced"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNRECORDED = "unrecorded"


@dataclass(frozen=True, slots=True)
class BadSegment:
    """A segment whose bytes are not as recorded. ``bad_blocks`` are the spans of the first and last block that differ,
    ``found_at`` the offset where its recorded bytes lie now, if they were found. Spans are those of the record."""

    kind: str
    span: Span
    record: str | None
    tensors: tuple[str, ...]
    bad_blocks: tuple[Span, Span] | None = None
    found_at: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        entry: dict[str, Any] = {"kind": self.kind, "offset": self.span.offset, "length": self.span.length}
        if self.record is not None:
            entry["record"] = self.record
        if self.tensors:
            entry["tensors"] = list(self.tensors)
        if self.bad_blocks is not None:
            first, last = self.bad_blocks
            entry["first_bad_block"] = {"offset": first.offset, "length": first.length}
            entry["last_bad_block"] = {"offset": last.offset, "length": last.length}
        if self.found_at is not None:
            entry["found_at"] = self.found_at
        return entry


@dataclass(frozen=True, slots=True)
class FixityResult:
    """The outcome for one file. ``detail`` is a sentence. ``expected_size`` is None where no size is on record, ``size`` where
    there are no bytes to count. ``shift`` are the bytes inserted (positive) or lost (negative),
    ``shifted_from`` is the recorded offset from which on everything lies that much later or earlier."""

    verdict: Fixity
    name: str
    expected_size: int | None
    size: int | None
    detail: str
    bad: tuple[BadSegment, ...] = ()
    shift: int = 0
    shifted_from: int | None = None

    @classmethod
    def unreadable(cls, name: str, why: str) -> FixityResult:
        """For a file, or a record of one, that could not be read."""
        return cls(Fixity.UNREADABLE, name, None, None, why)

    @classmethod
    def unrecorded(cls, name: str, former: str | None = None) -> FixityResult:
        """For a file that is there and not on record. ``former``: the name on record of a missing file with these bytes."""
        detail = (
            f"it holds the bytes on record as {former}, which is missing: it was renamed or moved" if former is not None else ""
        )
        return cls(Fixity.UNRECORDED, name, None, None, detail or "no record is of this file")

    @property
    def intact(self) -> bool:
        """Whether every byte is as recorded."""
        return self.verdict is Fixity.INTACT

    @property
    def tensors(self) -> tuple[str, ...]:
        """Names of all tensors that look at damaged bytes."""
        return tuple(dict.fromkeys(name for segment in self.bad for name in segment.tensors))

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        entry: dict[str, Any] = {
            "result_version": RESULT_VERSION,
            "name": self.name,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "expected_size": self.expected_size,
            "size": self.size,
            "shift": self.shift,
        }
        if self.shifted_from is not None:
            entry["shifted_from"] = self.shifted_from
        return entry | {"segments": [segment.to_dict() for segment in self.bad], "tensors": list(self.tensors)}

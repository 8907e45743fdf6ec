# SPDX-License-Identifier: Apache-2.0
"""Holds a file against its manifest and says what happened to it.

First every segment is looked for where it was, and, if the size changed, where a change of that size would have moved
it. Only if that does not explain everything is the file opened, and its parts are looked for by their digests.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, BinaryIO

from fdd.core.payload import Part, read_payload
from fdd.core.source import ByteSource, FileSource, open_source
from fdd.core.span import Span
from fdd.fixity.blocks import BlockTap
from fdd.fixity.located import FoundPart, PartsNow, find_parts
from fdd.fixity.manifest import Manifest, SegmentEntry
from fdd.limits import Limits


class Fixity(StrEnum):
    """What became of the file."""

    INTACT = "intact"
    DAMAGED = "damaged"
    TRUNCATED = "truncated"
    EXTENDED = "extended"
    SHIFTED = "shifted"
    REPACKAGED = "repackaged"
    REPLACED = "replaced"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class BadSegment:
    """A segment whose bytes are not as recorded. ``bad_blocks`` are the spans of the first and last block that differ,
    ``found_at`` the offset where its recorded bytes lie now, if they were found."""

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
    """The outcome for one file. ``detail`` is a sentence; ``shift`` the bytes inserted (positive) or lost (negative)."""

    verdict: Fixity
    name: str
    expected_size: int
    size: int | None
    detail: str
    bad: tuple[BadSegment, ...] = ()
    shift: int = 0

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
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "detail": self.detail,
            "expected_size": self.expected_size,
            "size": self.size,
            "shift": self.shift,
            "segments": [segment.to_dict() for segment in self.bad],
            "tensors": list(self.tensors),
        }


def verify(
    manifest: Manifest, source: str | bytes | os.PathLike[str] | BinaryIO, *, limits: Limits | None = None
) -> FixityResult:
    """Hold a file against its manifest. Raises SourceError where the file cannot be read; a path that does not exist
    gives the verdict `missing`."""
    if isinstance(source, (str, os.PathLike)) and not os.path.lexists(source):
        return FixityResult(Fixity.MISSING, manifest.name, manifest.size, None, "the file is not there")
    opened = open_source(source)
    try:
        result = _Comparison(manifest, opened, limits or Limits()).run()
        if isinstance(opened, FileSource):
            opened.check_unchanged()
    finally:
        if isinstance(opened, FileSource):
            opened.close()
    return result


@dataclass(slots=True)
class _Look:
    """A segment looked for at a place."""

    segment: SegmentEntry
    part: Part
    tap: BlockTap | None

    @property
    def matches(self) -> bool:
        return self.part.size == self.segment.span.length and all(
            self.part.digests.get(name) == value for name, value in self.segment.digests.items()
        )


LEAST_TELLING = 16
"""Bytes of a record that tells one file from another: the small ones (version, byte order) are alike in all."""


class _Comparison:
    """One file against one manifest."""

    def __init__(self, manifest: Manifest, source: ByteSource, limits: Limits) -> None:
        self._manifest = manifest
        self._source = source
        self._limits = limits
        self._delta = source.size - manifest.size

    def run(self) -> FixityResult:
        here, moved, whole = self._read()
        same_size = self._delta == 0
        if same_size and whole == dict(self._manifest.digests) and all(look.matches for look in here):
            return self._result(Fixity.INTACT, f"all {self._manifest.size} bytes are as recorded")
        bad = [look for look in here if not look.matches]
        if not bad and same_size:
            # The parts are right and the whole is not: one of the two was recorded wrongly or tampered with.
            return self._result(Fixity.DAMAGED, "every part is as recorded, but the digest of the whole file is another")
        if not same_size:
            found = self._explain_size(here, moved, bad)
            if found is not None:
                return found
        return self._explain_content(here, bad)

    def _read(self) -> tuple[list[_Look], list[_Look], dict[str, str]]:
        """One read: every segment where it was, and where the change of size would have moved it."""
        here = [self._look(segment, 0) for segment in self._manifest.segments]
        moved = [self._look(segment, self._delta) for segment in self._manifest.segments] if self._delta else []
        algorithms = tuple(self._manifest.digests) if not self._delta else ()
        parts = [look.part for look in here + moved if look.part.span.offset >= 0]
        return here, moved, read_payload(self._source, parts, algorithms)

    def _look(self, segment: SegmentEntry, shift: int) -> _Look:
        tap = BlockTap(segment.blocks.size) if segment.blocks is not None and not shift else None
        span = Span(segment.span.offset + shift, segment.span.length)
        return _Look(segment, Part(span, algorithms=tuple(segment.digests), taps=(tap,) if tap is not None else ()), tap)

    def _explain_size(self, here: list[_Look], moved: list[_Look], bad: list[_Look]) -> FixityResult | None:
        manifest, size = self._manifest, self._source.size
        if self._delta > 0 and not bad:
            return self._result(
                Fixity.EXTENDED, f"all {manifest.size} bytes are as recorded, and {self._delta} bytes follow them"
            )
        if self._delta < 0 and all(look.segment.span.end > size for look in bad):
            lost = [look for look in bad if look.segment.kind == "data"]
            detail = f"the file ends {-self._delta} bytes early; {len(lost)} records are cut or gone"
            return self._result(Fixity.TRUNCATED, detail, bad)
        last_here = next((index for index, look in enumerate(here) if not look.matches and look.segment.span.length), len(here))
        behind = [look for look in moved[last_here:] if look.segment.span.length]
        first_moved = next((index for index, look in enumerate(behind) if look.matches), None)
        if first_moved is None and len(behind) == 1:
            first_moved = 1  # the change lies in the last part: nothing behind it can bear witness
        if first_moved is None or not all(look.matches for look in behind[first_moved:]):
            return None
        broken = behind[:first_moved]
        word = "inserted" if self._delta > 0 else "lost"
        where = here[last_here].segment
        detail = (
            f"{abs(self._delta)} bytes were {word} in or in front of {_named(where)}; everything behind lies"
            f" {abs(self._delta)} bytes {'later' if self._delta > 0 else 'earlier'}"
        )
        return self._result(Fixity.SHIFTED, detail, broken, shift=self._delta)

    def _explain_content(self, here: list[_Look], bad: list[_Look]) -> FixityResult:
        """The file is another or its parts lie elsewhere: open it and look for the recorded parts by their digests."""
        now = find_parts(self._manifest, self._source, self._limits)
        data = [look for look in here if look.segment.kind == "data" and look.segment.span.length]
        places = _assign(data, now)
        lost = [look for look in data if not look.matches and id(look) not in places]
        if data and not lost and places:
            at_home = all(look.matches or places[id(look)].record == look.segment.record for look in data)
            if at_home and now.orderly:
                detail = "all records hold the bytes they held, in a container that was written anew"
                return self._result(Fixity.REPACKAGED, detail, [look for look in data if not look.matches], places)
            return self._result(Fixity.SHIFTED, _moved_detail(data, places), bad, places, shift=self._delta)
        telling = [look for look in data if look.segment.span.length >= LEAST_TELLING]
        gone = [look for look in telling if not look.matches and id(look) not in places]
        other_kind = now.kind != self._manifest.format.get("kind", now.kind)
        if telling and (len(gone) == len(telling) and len(telling) > 1 or (other_kind and 2 * len(gone) > len(telling))):
            detail = f"no record of weight holds the bytes it held: this is another file (it looks like {now.kind})"
            return self._result(Fixity.REPLACED, detail, bad)
        records = sorted({look.segment.record for look in bad if look.segment.record is not None})
        detail = f"{len(bad)} parts are not as recorded" + (f", first {_named(bad[0].segment)}" if bad else "")
        if self._delta:
            detail += f"; the size changed by {self._delta} bytes"
        if len(records) > 1:
            detail += f"; {len(records)} records are concerned"
        return self._result(Fixity.DAMAGED, detail, bad, places, shift=self._delta)

    def _result(
        self,
        verdict: Fixity,
        detail: str,
        bad: Iterable[_Look] = (),
        places: Mapping[int, FoundPart] | None = None,
        *,
        shift: int = 0,
    ) -> FixityResult:
        segments = tuple(self._bad(look, (places or {}).get(id(look))) for look in bad)
        return FixityResult(verdict, self._manifest.name, self._manifest.size, self._source.size, detail, segments, shift)

    def _bad(self, look: _Look, place: FoundPart | None) -> BadSegment:
        segment = look.segment
        blocks = _bad_blocks(look)
        hurt = Span(blocks[0].offset, blocks[1].end - blocks[0].offset) if blocks is not None else segment.span
        # Bytes that lie elsewhere under their own name are not lost; under another name they are as good as lost.
        safe = place is not None and place.record == segment.record
        tensors = tuple(self._manifest.tensors_at(hurt)) if segment.kind == "data" and not safe else ()
        return BadSegment(
            segment.kind, segment.span, segment.record, tensors, blocks, place.offset if place is not None else None
        )


def _assign(data: list[_Look], now: PartsNow) -> dict[int, FoundPart]:
    """Give each recorded part that is not in its place one part of the same bytes, of its own name if there is one.

    Each part of the file is given away once: two records of equal bytes need two parts.
    """
    free = {key: list(parts) for key, parts in now.by_digest.items()}
    for look in data:
        if look.matches:
            _take(free, look, same_name=True)
    places: dict[int, FoundPart] = {}
    for same_name in (True, False):
        for look in data:
            if not look.matches and id(look) not in places:
                part = _take(free, look, same_name=same_name)
                if part is not None:
                    places[id(look)] = part
    return places


def _take(free: dict[tuple[str, ...], list[FoundPart]], look: _Look, *, same_name: bool) -> FoundPart | None:
    for key in (_key(look.segment.digests), _key(look.segment.inflated or {})):
        for part in free.get(key, ()) if key else ():
            if not same_name or part.record == look.segment.record:
                free[key].remove(part)
                return part
    return None


def _moved_detail(data: list[_Look], places: Mapping[int, FoundPart]) -> str:
    strange = [look for look in data if id(look) in places and places[id(look)].record != look.segment.record]
    moved = sum(id(look) in places for look in data)
    if strange:
        names = ", ".join(str(look.segment.record) for look in strange[:4])
        return f"{len(strange)} records hold the bytes of other records ({names})"
    return f"{moved} records lie at other places than recorded, with the bytes they had"


def _key(digests: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(digests.values())


def _named(segment: SegmentEntry) -> str:
    owner = f" of record {segment.record}" if segment.record is not None else ""
    return f"the {segment.kind} part{owner} at {segment.span.offset}"


def _bad_blocks(look: _Look) -> tuple[Span, Span] | None:
    """The first and last block that differ; None where the segment has no blocks."""
    blocks = look.segment.blocks
    if blocks is None or look.tap is None:
        return None
    values = look.tap.values
    wrong = [index for index, value in enumerate(blocks.crc32) if index >= len(values) or values[index] != value]
    if not wrong:
        return None
    return _block(look.segment.span, blocks.size, wrong[0]), _block(look.segment.span, blocks.size, wrong[-1])


def _block(span: Span, size: int, index: int) -> Span:
    start = span.offset + index * size
    return Span(start, min(size, span.end - start))

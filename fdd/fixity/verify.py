# SPDX-License-Identifier: Apache-2.0
"""Holds a file against its manifest and says what happened to it.

First every segment is looked for where it was, and, if the size changed, where a change of that size would have moved
it. Only if that does not explain everything is the file opened, and its parts are looked for by their digests.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import BinaryIO

from fdd.core.payload import read_payload
from fdd.core.source import ByteSource, FileSource, is_there, open_source
from fdd.core.span import Span
from fdd.fixity.explain import explain_content
from fdd.fixity.located import FoundPart, PartsNow, find_parts
from fdd.fixity.looks import Look, bad_blocks, bad_runs, look_at, named
from fdd.fixity.manifest import Manifest
from fdd.fixity.result import BadSegment, Fixity, FixityResult
from fdd.fixity.tensors_at import TensorIndex
from fdd.limits import Limits

__all__ = ["Fixity", "FixityResult", "verify"]

LEAST_WITNESS = 8
"""Bytes behind a loss that tell it from a cut: fewer, and zeros, may be at the end of a file by chance."""

LEAST_TEXT = 4
"""Bytes of text from which it is no beginning of a binary file."""


def verify(
    manifest: Manifest, source: str | bytes | os.PathLike[str] | BinaryIO, *, limits: Limits | None = None
) -> FixityResult:
    """Hold a file against its manifest. Raises SourceError where the file cannot be read; a path that does not exist
    gives the verdict `missing`."""
    if isinstance(source, (str, os.PathLike)) and not is_there(source):
        return FixityResult(Fixity.MISSING, manifest.place, manifest.size, None, "the file is not there")
    opened = open_source(source)
    try:
        result = _Comparison(manifest, opened, limits or Limits()).run()
        if isinstance(opened, FileSource):
            opened.check_unchanged()
    finally:
        if isinstance(opened, FileSource):
            opened.close()
    return result


class _Comparison:
    """One file against one manifest."""

    def __init__(self, manifest: Manifest, source: ByteSource, limits: Limits) -> None:
        self._manifest = manifest
        self._source = source
        self._limits = limits
        self._delta = source.size - manifest.size
        self._now: PartsNow | None = None
        self._tensors = TensorIndex(manifest.tensors)

    def run(self) -> FixityResult:
        here, moved, whole = self._read()
        bad = [look for look in here if not look.matches]
        if self._delta == 0:
            if not bad and whole == dict(self._manifest.digests):
                return self._result(Fixity.INTACT, f"all {self._manifest.size} bytes are as recorded")
            if not bad:
                # The parts are right and the whole is not: one of the two was recorded wrongly or tampered with.
                return self._result(Fixity.DAMAGED, "every part is as recorded, but the digest of the whole file is another")
        found = (
            self._extended(bad)
            or self._shifted(here, moved, least=LEAST_WITNESS)
            or self._truncated(here, bad)
            or self._shifted(here, moved, least=0)
        )
        if found is None and len(here) == 1:
            found = self._single(here[0], moved)
        if found is not None:
            return found
        verdict, detail, named_as_bad, places = explain_content(self._manifest, self._source, self._parts_now(), here)
        return self._result(verdict, detail, named_as_bad, places, shift=self._delta)

    def _parts_now(self) -> PartsNow:
        if self._now is None:
            self._now = find_parts(self._manifest, self._source, self._limits)
        return self._now

    def _read(self) -> tuple[list[Look], list[Look], dict[str, str]]:
        """One read: every segment where it was, and where the change of size would have moved it."""
        here = [look_at(segment, 0) for segment in self._manifest.segments]
        moved = [look_at(segment, self._delta) for segment in self._manifest.segments] if self._delta else []
        algorithms = tuple(self._manifest.digests) if not self._delta else ()
        return here, moved, read_payload(self._source, [look.part for look in here + moved], algorithms)

    def _extended(self, bad: list[Look]) -> FixityResult | None:
        if self._delta <= 0 or bad:
            return None
        detail = f"all {self._manifest.size} bytes are as recorded, and {self._delta} bytes follow them"
        return self._result(Fixity.EXTENDED, detail)

    def _truncated(self, here: list[Look], bad: list[Look]) -> FixityResult | None:
        """The file ends early, and nothing that is still there contradicts."""
        size = self._source.size
        if self._delta >= 0 or not all(look.segment.span.end > size for look in bad):
            return None
        cut = next(look for look in bad if look.segment.span.length)
        good = cut.good_blocks()
        whole_blocks = sum(cut.block(index).end <= size for index in range(len(good)))
        if not all(good[:whole_blocks]):
            return None
        witnesses = whole_blocks or any(look.matches and look.segment.span.length for look in here)
        certain = witnesses or size == 0
        if not whole_blocks and not any(look.matches and look.is_data for look in here) and self._is_whole():
            return None  # first headers are alike in many files
        if not certain and self._begins_otherwise():
            return None
        lost = sum(look.is_data for look in bad)
        detail = f"the file ends {-self._delta} bytes early; {lost} records are cut or gone"
        if not certain:
            detail += "; too little is left to tell whether these are its first bytes"
        return self._result(Fixity.TRUNCATED, detail, bad)

    def _is_whole(self) -> bool:
        """Whether it is a file of its own, to its last byte."""
        now = self._parts_now()
        return now.orderly and now.format is not None and now.sound is not False and bool(now.records)

    def _begins_otherwise(self) -> bool:
        """Whether a short file can be no beginning of the recorded one, by what it looks like."""
        now = self._parts_now()
        if now.is_other_kind(self._manifest) or now.kind == "zeros":
            return True
        recorded = self._manifest.format
        # Of all kinds that a format judges, only these begin with letters, and pickles of protocol 0 (`L`, a number).
        binary = recorded.get("fdd") is not None and recorded.get("kind") not in ("torch-tar", "torch-preview")
        return now.kind == "text" and binary and self._source.size >= LEAST_TEXT and self._source.read_at(0, 1) != b"L"

    def _shifted(self, here: list[Look], moved: list[Look], *, least: int) -> FixityResult | None:
        """Bytes were inserted or lost in one place: all in front of it is in place, all behind lies that much further.

        Of a loss, ``least`` bytes other than zeros have to bear witness.
        """
        if not self._delta:
            return None
        filled = [index for index, look in enumerate(here) if look.segment.span.length]
        first = next((index for index in filled if not here[index].matches), None)
        if first is None:
            return None
        behind = [index for index in filled if index >= first]
        last = max((index for index in behind if not moved[index].matches), default=None)
        broken = [index for index in behind if last is not None and index <= last]
        witnesses = [moved[index].part for index in behind[len(broken) :]]
        if self._delta < 0 and (not witnesses or sum(part.size for part in witnesses if not part.all_zero) < least):
            return None
        if self._delta > 0 and not witnesses and (len(behind) > 1 or len(filled) == 1):
            return None  # an insertion into the last part has all others in front of it as witnesses
        if first == filled[0] and self._parts_now().is_other_container(self._manifest):
            return None  # another file may end in the same bytes
        return self._shift_result(here, moved, first, broken)

    def _shift_result(self, here: list[Look], moved: list[Look], first: int, broken: list[int]) -> FixityResult:
        segment = here[first].segment
        count, later = abs(self._delta), self._delta > 0
        place = "in" if broken else "in front of"
        detail = (
            f"{count} bytes were {'inserted' if later else 'lost'} {place} {named(segment)}; everything behind lies"
            f" {count} bytes {'later' if later else 'earlier'}"
        )
        bad = []
        for index in broken:
            blocks = bad_blocks(here[index], moved[index])
            span = Span(blocks[0].offset, blocks[1].end - blocks[0].offset) if blocks is not None else here[index].segment.span
            bad.append(self._bad(here[index], None, blocks, [span]))
        start = here[broken[-1]].segment.span.end if broken else segment.span.offset
        return FixityResult(
            Fixity.SHIFTED, self._manifest.place, self._manifest.size, self._source.size, detail, tuple(bad), self._delta, start
        )

    def _single(self, look: Look, moved: list[Look]) -> FixityResult | None:
        """A file recorded as one part: only its blocks can tell what became of it."""
        good = look.good_blocks()
        behind = moved[0].good_blocks() if moved else good
        if self._delta and good and (good[0] or behind[-1]):
            return self._shift_result([look], moved, 0, [0])
        kind = self._parts_now().kind
        if kind == "zeros":
            return self._result(Fixity.DAMAGED, "the file holds nothing but zeros", [look])
        other = self._parts_now().is_other_kind(self._manifest)
        if (len(good) > 1 or self._delta) and not any(good) and (other or (not self._delta and len(good) > 1)):
            detail = f"no part of the file holds the bytes it held: this is another file (it looks like {kind})"
            return self._result(Fixity.REPLACED, detail, [look])
        detail = "its bytes are not as recorded" + (f"; the size changed by {self._delta} bytes" if self._delta else "")
        return self._result(Fixity.DAMAGED, detail, [look], shift=self._delta)

    def _result(
        self,
        verdict: Fixity,
        detail: str,
        bad: Iterable[Look] = (),
        places: Mapping[Look, FoundPart] | None = None,
        *,
        shift: int = 0,
    ) -> FixityResult:
        segments = tuple(self._bad(look, (places or {}).get(look), bad_blocks(look), bad_runs(look)) for look in bad)
        return FixityResult(verdict, self._manifest.place, self._manifest.size, self._source.size, detail, segments, shift)

    def _bad(self, look: Look, place: FoundPart | None, blocks: tuple[Span, Span] | None, hurt: list[Span]) -> BadSegment:
        segment = look.segment
        # Bytes that lie elsewhere under their own name are not lost; under another name they are as good as lost.
        safe = place is not None and place.record == segment.record
        tensors = self._tensors.names(hurt, segment.record) if look.is_data and not safe else ()
        found_at = place.offset if place is not None and place.offset != segment.span.offset else None
        return BadSegment(segment.kind, segment.span, segment.record, tensors, blocks, found_at)

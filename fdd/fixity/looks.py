# SPDX-License-Identifier: Apache-2.0
"""A recorded segment held against the bytes at some place of the file."""

from __future__ import annotations

from dataclasses import dataclass

from fdd.core.payload import Part
from fdd.core.span import Span
from fdd.fixity.blocks import BlockTap
from fdd.fixity.manifest import SegmentEntry


@dataclass(slots=True, eq=False)
class Look:
    """A segment looked for at a place: ``part`` is filled by the read."""

    segment: SegmentEntry
    part: Part
    tap: BlockTap | None

    @property
    def matches(self) -> bool:
        """Whether the bytes there are those recorded."""
        return self.part.size == self.segment.span.length and all(
            self.part.digests.get(name) == value for name, value in self.segment.digests.items()
        )

    @property
    def is_data(self) -> bool:
        """Whether it is the payload of a record, with at least one byte."""
        return self.segment.kind == "data" and self.segment.span.length > 0

    def good_blocks(self) -> list[bool]:
        """For each block whether its bytes are those recorded; empty where the segment has no blocks."""
        blocks = self.segment.blocks
        if blocks is None or self.tap is None:
            return []
        values = self.tap.values
        return [index < len(values) and values[index] == value for index, value in enumerate(blocks.crc32)]

    def block(self, index: int) -> Span:
        """Where a block lay when it was recorded."""
        assert self.segment.blocks is not None
        span, size = self.segment.span, self.segment.blocks.size
        start = span.offset + index * size
        return Span(start, min(size, span.end - start))


def look_at(segment: SegmentEntry, shift: int) -> Look:
    """Prepare to look for a segment ``shift`` bytes behind where it was recorded. The place may lie outside the file."""
    missing = max(0, -(segment.span.offset + shift))
    span = Span(segment.span.offset + shift + missing, max(0, segment.span.length - missing))
    tap = BlockTap(segment.blocks.size, missing) if segment.blocks is not None else None
    taps = (tap,) if tap is not None else ()
    # What begins in front of the file cannot be whole: only its blocks are of use.
    algorithms = tuple(segment.digests) if not missing else ()
    return Look(segment, Part(span, algorithms=algorithms, taps=taps, watch_zeros=bool(shift)), tap)


def bad_blocks(look: Look, shifted: Look | None = None) -> tuple[Span, Span] | None:
    """The first and last block that differ, None where the segment has no blocks. With ``shifted``, the same segment at
    the place to which its end has moved, the last block is the last that is not there either."""
    good = look.good_blocks()
    wrong = [index for index, same in enumerate(good) if not same]
    if not wrong:
        return None
    last = wrong[-1]
    if shifted is not None:
        behind = shifted.good_blocks()
        while last > wrong[0] and behind[last]:
            last -= 1
    return look.block(wrong[0]), look.block(last)


def bad_runs(look: Look) -> list[Span]:
    """The runs of blocks that differ; the whole segment where it has no blocks, or none of them differs."""
    runs: list[Span] = []
    for index, same in enumerate(look.good_blocks()):
        if same:
            continue
        block = look.block(index)
        if runs and runs[-1].end == block.offset:
            runs[-1] = Span(runs[-1].offset, runs[-1].length + block.length)
        else:
            runs.append(block)
    return runs or [look.segment.span]


def named(segment: SegmentEntry) -> str:
    """A segment in words."""
    owner = f" of record {segment.record}" if segment.record is not None else ""
    return f"the {segment.kind} part{owner} at {segment.span.offset}"

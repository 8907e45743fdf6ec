# SPDX-License-Identifier: Apache-2.0
"""Finds the archives of a file that is several archives one behind the other (shards of distributed checkpoints)."""

from __future__ import annotations

from fdd.container.zip import read_directory
from fdd.core.source import ByteSource, SliceSource
from fdd.core.span import Span
from fdd.limits import Limits

MOST_ARCHIVES = 100_000


def split_archives(source: ByteSource, limits: Limits) -> list[Span]:
    """The archives, from the front; empty unless they fill the file from its first to its last byte without a gap.

    Found from the back: each end record tells the length of its archive, because offsets count from its own start.
    """
    spans: list[Span] = []
    end = source.size
    while end > 0 and len(spans) < MOST_ARCHIVES:
        facts = read_directory(SliceSource(source, Span(0, end)), limits)
        directory = facts.directory
        if directory is None or facts.ends.end is None or facts.ends.trailing.length or directory.base >= end:
            return []
        spans.append(Span(directory.base, end - directory.base))
        end = directory.base
    return spans[::-1]

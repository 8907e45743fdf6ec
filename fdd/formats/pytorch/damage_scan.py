# SPDX-License-Identifier: Apache-2.0
"""One pass over bytes that are suspected of damage: runs of zeros, and how CR and LF stand to each other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import SECTOR

MOST_RUNS = 4096
"""Runs of zeros that are kept."""
_ZEROS = bytes(SECTOR)
_NOT_ZERO = re.compile(rb"[^\0]")
_CONVERTED = re.compile(rb"\r\n")


@dataclass(slots=True)
class ByteScan:
    """What the pass saw. ``pairs`` counts CR LF; a CR is any 0D, an LF any 0A. ``first_pair`` is -1 where there is none."""

    size: int = 0
    line_feeds: int = 0
    returns: int = 0
    pairs: int = 0
    first_pair: int = -1
    zero_runs: list[Span] = field(default_factory=list)
    """Runs of at least 512 zeros, ascending."""


def scan_bytes(source: ByteSource, spans: Iterable[Span]) -> ByteScan:
    """Read ``spans`` (ascending, disjoint) once. Raises SourceError where reading fails."""
    seen = ByteScan()
    for span in spans:
        _scan_span(source, span, seen)
    return seen


def _scan_span(source: ByteSource, span: Span, seen: ByteScan) -> None:
    position, last, run = span.offset, b"", -1  # run: where zeros began that reach up to ``position``, -1 for none
    for piece in source.stream(span):
        seen.line_feeds += piece.count(b"\n")
        seen.returns += piece.count(b"\r")
        seen.pairs += piece.count(b"\r\n") + (last == b"\r" and piece[:1] == b"\n")
        if seen.first_pair < 0:
            found = _CONVERTED.search(piece)
            seen.first_pair = position + found.start() if found is not None else -1
        run = _zero_runs(piece, position, run, seen)
        last, position = piece[-1:], position + len(piece)
    seen.size += span.length
    _keep(seen, run, position)


def _zero_runs(piece: bytes, position: int, run: int, seen: ByteScan) -> int:
    """Note the runs that end in ``piece``; return where the one that reaches its end began, -1 where none does."""
    at = 0
    if run >= 0 or piece[:1] == b"\0":
        other = _NOT_ZERO.search(piece)
        if other is None:
            return run if run >= 0 else position
        at = other.start()
        _keep(seen, run if run >= 0 else position, position + at)
    while (begin := piece.find(_ZEROS, at)) >= 0:
        other = _NOT_ZERO.search(piece, begin + SECTOR)
        if other is None:
            return position + begin
        at = other.start()
        _keep(seen, position + begin, position + at)
    zeros = len(piece) - len(piece.rstrip(b"\0"))
    return position + len(piece) - zeros if zeros else -1


def _keep(seen: ByteScan, begin: int, end: int) -> None:
    if begin >= 0 and end - begin >= SECTOR and len(seen.zero_runs) < MOST_RUNS:
        seen.zero_runs.append(Span(begin, end - begin))

# SPDX-License-Identifier: Apache-2.0
"""Which part of a file holds the bytes that each recorded part held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from fdd.fixity.located import FoundPart, PartsNow
from fdd.fixity.looks import Look


def assign(data: list[Look], away: set[Look], now: PartsNow) -> dict[Look, FoundPart]:
    """Give each recorded part one part of the same bytes: the one in its place, else one of its own name, else any.

    Each part of the file is given away once: two records of equal bytes need two parts. Where other bytes came to lie that
    are the same by chance (zeros), the name decides. The answers leave out what is in its place.
    """
    free = {key: _Pool(parts) for key, parts in now.by_digest.items()}
    places: dict[Look, FoundPart] = {}
    settled: set[Look] = set()
    steps: tuple[tuple[bool, Callable[[_Pool, Look], FoundPart | None]], ...] = (
        (False, lambda pool, look: pool.named_at(look.segment.record, look.segment.span.offset)),
        (True, lambda pool, look: pool.named(look.segment.record)),
        (False, lambda pool, look: pool.named(look.segment.record)),
        (False, lambda pool, look: pool.at(look.segment.span.offset)),
        (True, lambda pool, look: pool.any()),
    )
    for of_away, choose in steps:
        for look in data:
            if look in settled or (look in away) != of_away:
                continue
            part = next((found for pool in _pools(free, look) if (found := choose(pool, look)) is not None), None)
            if part is not None:
                settled.add(look)
                if look in away or part.offset != look.segment.span.offset:
                    places[look] = part
    return places


def _pools(free: Mapping[tuple[str, ...], _Pool], look: Look) -> Iterator[_Pool]:
    """The parts that hold what the look's did, as stored or unpacked."""
    for key in (tuple(look.segment.digests.values()), tuple((look.segment.inflated or {}).values())):
        pool = free.get(key) if key else None
        if pool is not None:
            yield pool


class _Pool:
    """Parts of equal bytes, each to be given away once; found by name and place in no time, however many there are."""

    def __init__(self, parts: Sequence[FoundPart]) -> None:
        self._parts = parts
        self._left = dict.fromkeys(range(len(parts)))
        self._by_record: dict[str | None, list[int]] = {}
        self._by_offset: dict[int, list[int]] = {}
        for number in reversed(range(len(parts))):
            self._by_record.setdefault(parts[number].record, []).append(number)
            self._by_offset.setdefault(parts[number].offset, []).append(number)

    def named_at(self, record: str | None, offset: int) -> FoundPart | None:
        """A part of that name at that place."""
        numbers = [number for number in self._by_offset.get(offset, ()) if self._parts[number].record == record]
        return self._first(numbers)

    def named(self, record: str | None) -> FoundPart | None:
        """A part of that name, wherever it lies."""
        return self._first(self._by_record.get(record, []))

    def at(self, offset: int) -> FoundPart | None:
        """A part at that place, whatever its name."""
        return self._first(self._by_offset.get(offset, []))

    def any(self) -> FoundPart | None:
        """Any part."""
        number = next(iter(self._left), None)
        return self._give(number) if number is not None else None

    def _first(self, waiting: list[int]) -> FoundPart | None:
        """The first of ``waiting`` (last in the list) that was not given away; those that were are dropped."""
        while waiting and waiting[-1] not in self._left:
            waiting.pop()
        return self._give(waiting[-1]) if waiting else None

    def _give(self, number: int) -> FoundPart:
        del self._left[number]
        return self._parts[number]

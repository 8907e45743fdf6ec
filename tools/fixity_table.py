# SPDX-License-Identifier: Apache-2.0
"""Changes files in every way that fixity knows a verdict for, and tells how often `verify` names verdict and segment rightly.

usage: python tools/fixity_table.py FILE... [--flips N] [--edits N]

For each file: one bit of every byte flipped (or of N spread ones), N spread cuts, insertions and losses, payloads of equal and
of different length swapped, whole records swapped, a ZIP packed again (stored, deflated, in another order, under another top
folder, with a record added, altered, renamed or missing), all zeros, another file in its place, and no file. What must be named
follows from what was changed, never from what `verify` says.
"""

from __future__ import annotations

import argparse
import io
import itertools
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from corpus.build.kit import eager, ordered_dict, tensor
from fdd.core.span import Span
from fdd.fixity import FixityResult, Manifest, create, verify

FILLERS = (0xA5, 0x5A, 0x3C)
"""Bytes to insert: one that differs from both neighbours, so that the insertion can only have been made there."""
EDIT_SIZES = (1, 7, 600)
DAMAGED = frozenset({"damaged"})


@dataclass(frozen=True, slots=True)
class Case:
    """A changed file and what must be said of it.

    ``verdicts``: any of them is right. ``must`` are the indices of segments that have to be named, ``may`` those that may
    be as well. ``data`` is None for a file that is not there. ``shifted_from`` where the place of a shift is known.
    ``lost``: records of which every tensor has to be named and no others may be; None: not held.
    """

    change: str
    data: bytes | None
    verdicts: frozenset[str]
    must: frozenset[int] = frozenset()
    may: frozenset[int] = frozenset()
    shifted_from: int | None = None
    lost: frozenset[str] | None = None
    place: str = ""


@dataclass(slots=True)
class Row:
    """The outcome of all cases of one change."""

    cases: int = 0
    verdict_right: int = 0
    segments_right: int = 0
    wrong: list[str] = field(default_factory=list)


class File:
    """A file as it was recorded."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data
        self.manifest: Manifest = create(data, name=name)
        self.segments = self.manifest.segments

    def at(self, offset: int) -> int:
        """The index of the segment that holds a byte."""
        return next(index for index, segment in enumerate(self.segments) if segment.span.holds(offset))

    def touched(self, span: Span) -> frozenset[int]:
        """The segments that hold a byte of ``span``."""
        return frozenset(index for index, segment in enumerate(self.segments) if segment.span.overlaps(span))

    def payloads(self) -> list[int]:
        """Segments of data, with at least one byte."""
        return [index for index, segment in enumerate(self.segments) if segment.kind == "data" and segment.span.length]

    def bytes_of(self, index: int) -> bytes:
        span = self.segments[index].span
        return self.data[span.offset : span.end]

    def record(self, payload: int) -> list[int]:
        """The segments of the record of a payload."""
        name = self.segments[payload].record
        return [index for index, segment in enumerate(self.segments) if segment.record == name]

    def span(self, segments: list[int]) -> Span:
        """Segments that follow each other, as one span."""
        start = self.segments[segments[0]].span.offset
        return Span(start, self.segments[segments[-1]].span.end - start)

    def moved(self, change: str, data: bytes, moved: set[int], within: Iterable[int], place: str) -> Case:
        """A case of parts that changed places: those have to be named whose place holds other bytes now."""
        must = {index for index in moved if data[slice(*self._edges(index))] != self.bytes_of(index)}
        may = {index for index in within if data[slice(*self._edges(index))] != self.bytes_of(index)}
        return Case(change, data, frozenset({"shifted"}), frozenset(must), frozenset(may), place=place)

    def _edges(self, index: int) -> tuple[int, int]:
        return self.segments[index].span.offset, self.segments[index].span.end

    @property
    def is_zip(self) -> bool:
        return any(segment.kind == "directory" for segment in self.segments)


def cases(file: File, other: bytes, *, flips: int, edits: int, swaps: int) -> Iterator[Case]:
    """Every change of a file that is tried; ``other`` is what takes its place, ``swaps`` the most of swaps of a kind."""
    yield from flipped(file, flips)
    yield from cut(file, edits)
    yield from inserted(file, edits)
    yield from removed(file, edits)
    yield from swapped(file, swaps)
    if file.is_zip:
        yield from records_swapped(file, swaps)
        yield from packed_again(file, swaps)
    yield from others(file, other)


def spread(count: int, size: int) -> Iterable[int]:
    """``count`` offsets spread over ``size`` bytes; all of them where ``count`` is 0 or more than there are."""
    if not count or count >= size:
        return range(size)
    return sorted({number * size // count + number % 7 for number in range(count) if number * size // count + number % 7 < size})


def flipped(file: File, count: int) -> Iterator[Case]:
    """One bit of a byte is another."""
    data = bytearray(file.data)
    for offset in spread(count, len(data)):
        data[offset] ^= 1 << (offset % 8)
        holder = file.at(offset)
        segment = file.segments[holder]
        lost = frozenset({segment.record} if segment.kind == "data" and segment.record is not None else ())
        yield Case("bit flipped", bytes(data), DAMAGED, frozenset({holder}), lost=lost, place=f"at {offset}")
        data[offset] = file.data[offset]


def cut(file: File, count: int) -> Iterator[Case]:
    """The end is missing."""
    for size in spread(count, len(file.data)):
        gone = file.touched(Span(size, len(file.data) - size))
        yield Case("cut off", file.data[:size], frozenset({"truncated"}), gone, place=f"to {size}")


def inserted(file: File, count: int) -> Iterator[Case]:
    """Bytes that were not there."""
    data = file.data
    for number, offset in enumerate(spread(count, len(data))):
        if not offset:
            continue
        filler = next(byte for byte in FILLERS if byte not in (data[offset - 1], data[offset]))
        size = EDIT_SIZES[number % len(EDIT_SIZES)]
        holder = file.at(offset)
        inside = file.segments[holder].span.offset < offset
        yield Case(
            "bytes inserted",
            data[:offset] + bytes([filler]) * size + data[offset:],
            frozenset({"shifted"}),
            frozenset({holder} if inside else ()),
            shifted_from=file.segments[holder].span.end if inside else offset,
            place=f"{size} at {offset}",
        )


def removed(file: File, count: int) -> Iterator[Case]:
    """Bytes that are missing. Where the same file could come of other losses, any of them may be named."""
    data = file.data
    for number, offset in enumerate(spread(count, len(data))):
        size = min(EDIT_SIZES[number % len(EDIT_SIZES)], len(data) - offset)
        first, end = offset, offset + size
        while first and data[first - 1] == data[first - 1 + size]:
            first -= 1
        while end < len(data) and data[end - size] == data[end]:
            end += 1
        touched = file.touched(Span(first, end - first))
        must = file.touched(Span(offset, size)) if end - first == size else frozenset()
        # A loss that leaves next to nothing behind it cannot be told from a cut, or from other damage near the end.
        behind = range(max(touched) + 1, len(file.segments))
        clear = sum(file.segments[index].span.length for index in behind if any(file.bytes_of(index)))
        may = frozenset(behind if clear < 8 else ())
        verdicts = {"truncated"} if end == len(data) else {"shifted"} if clear >= 8 else {"shifted", "truncated", "damaged"}
        yield Case(
            "bytes lost",
            data[:offset] + data[offset + size :],
            frozenset(verdicts),
            must,
            touched | may,
            place=f"{size} at {offset}",
        )


def swapped(file: File, count: int) -> Iterator[Case]:
    """Two payloads in each other's place, as bytes; what lies between them moves where their lengths differ."""
    for a, b in itertools.islice(itertools.combinations(file.payloads(), 2), count):
        first, second = file.segments[a].span, file.segments[b].span
        if file.bytes_of(a) == file.bytes_of(b):
            continue
        between = file.data[first.end : second.offset]
        data = file.data[: first.offset] + file.bytes_of(b) + between + file.bytes_of(a) + file.data[second.end :]
        same = first.length == second.length
        change = f"payloads of {'equal' if same else 'different'} length swapped"
        yield file.moved(change, data, {a, b}, range(a, b + 1), f"{file.segments[a].record}, {file.segments[b].record}")


def records_swapped(file: File, count: int) -> Iterator[Case]:
    """Two records of a ZIP in each other's place with all that belongs to them; the directory is left as it was."""
    payloads = file.payloads()
    for a, b in itertools.islice(zip(payloads, payloads[2:], strict=False), count):
        one, two = file.record(a), file.record(b)
        first, second = file.span(one), file.span(two)
        between = file.data[first.end : second.offset]
        data = file.data[: first.offset] + file.data[second.offset : second.end] + between
        data += file.data[first.offset : first.end] + file.data[second.end :]
        place = f"{file.segments[a].record}, {file.segments[b].record}"
        yield file.moved("whole records swapped", data, {a, b}, range(one[0], two[-1] + 1), place)


def packed_again(file: File, count: int) -> Iterator[Case]:
    """A ZIP written anew by another tool: as it was, and with changes that the new container vouches for."""
    with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
        rows = [(name, archive.read(name)) for name in archive.namelist()]
    everything = frozenset(range(len(file.segments)))
    folder = rows[0][0].partition("/")[0] + "/"
    extra = [*rows, (folder + "extra/note.txt", b"hello")]
    for change, changed, method in (
        ("packed again, stored", rows, zipfile.ZIP_STORED),
        ("packed again, deflated", rows, zipfile.ZIP_DEFLATED),
        ("packed again in another order", rows[::-1], zipfile.ZIP_STORED),
        (
            "packed again under another folder",
            [("a_new/" + name[len(folder) :], data) for name, data in rows],
            zipfile.ZIP_STORED,
        ),
        ("packed again with a record added", extra, zipfile.ZIP_STORED),
    ):
        yield Case(change, _zip(changed, method), frozenset({"repackaged"}), may=everything, lost=frozenset())
    storages = {tensor.record for tensor in file.manifest.tensors}
    for number, (name, data) in itertools.islice(enumerate(rows), count):
        holder = next(i for i, segment in enumerate(file.segments) if segment.kind == "data" and segment.record == name)
        before, behind = rows[:number], rows[number + 1 :]
        must, lost = frozenset({holder}), frozenset({name})
        one_of_many = name not in storages or len(storages) > 1
        if data and one_of_many:
            altered = data[:-1] + bytes([data[-1] ^ 1])
            for method, word in ((zipfile.ZIP_STORED, "stored"), (zipfile.ZIP_DEFLATED, "deflated")):
                changed_rows = [*before, (name, altered), *behind]
                yield Case(
                    f"a record altered, {word}", _zip(changed_rows, method), DAMAGED, must, everything, lost=lost, place=name
                )
        if data:
            renamed = _zip([*before, (name + "x", data), *behind], zipfile.ZIP_STORED)
            yield Case("a record renamed", renamed, frozenset({"shifted"}), must, everything, lost=lost, place=name)
            if one_of_many:
                missing = _zip([*before, *behind], zipfile.ZIP_STORED)
                yield Case("a record missing", missing, DAMAGED, must, everything, lost=lost, place=name)


def _zip(rows: Iterable[tuple[str, bytes]], method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in rows:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


def others(file: File, other: bytes) -> Iterator[Case]:
    """What replaces a file, and what takes all of it."""
    everything = frozenset(index for index, segment in enumerate(file.segments) if segment.span.length)
    nonzero = frozenset(index for index in everything if any(file.bytes_of(index)))
    yield Case("all zeros", bytes(len(file.data)), DAMAGED, nonzero)
    yield Case("something appended", file.data + b"\n<!-- x -->", frozenset({"extended"}))
    yield Case("something prepended", b"HTTP/1.1 200 OK\r\n\r\n" + file.data, frozenset({"shifted"}), shifted_from=0)
    page = b"<!DOCTYPE html><html><head><title>404</title></head><body>Not found</body></html>"
    yield Case("an error page in its place", page, frozenset({"replaced"}), may=frozenset(range(len(file.segments))))
    yield Case("another model in its place", other, frozenset({"replaced"}), may=frozenset(range(len(file.segments))))
    yield Case("missing", None, frozenset({"missing"}))


def judge(file: File, case: Case) -> tuple[bool, bool, FixityResult]:
    """Whether the verdict, and what is named with it, is right."""
    if case.data is None:
        with tempfile.TemporaryDirectory() as folder:
            result = verify(file.manifest, Path(folder) / "gone")
    else:
        result = verify(file.manifest, case.data)
    places = {(segment.kind, segment.span): index for index, segment in enumerate(file.segments)}
    named = {places[bad.kind, bad.span] for bad in result.bad}
    right = case.must <= named <= case.must | case.may
    if case.shifted_from is not None:
        right = right and result.shifted_from == case.shifted_from and result.shift == len(case.data or b"") - len(file.data)
    if case.lost is not None:
        right = right and set(result.tensors) == {tensor.name for tensor in file.manifest.tensors if tensor.record in case.lost}
    return result.verdict.value in case.verdicts, right, result


def table(file: File, found: Iterable[Case]) -> dict[str, Row]:
    """Judge all cases, and count."""
    rows: dict[str, Row] = {}
    for case in found:
        row = rows.setdefault(case.change, Row())
        verdict_right, segments_right, result = judge(file, case)
        row.cases += 1
        row.verdict_right += verdict_right
        row.segments_right += segments_right
        if not (verdict_right and segments_right):
            named = ", ".join(f"{bad.kind} {bad.record or ''} {bad.span.offset}" for bad in result.bad[:6])
            row.wrong.append(f"{case.place}: {result.verdict} ({result.detail}) [{named}]")
    return rows


def another_model() -> bytes:
    """A model that has nothing in common with any other."""
    return eager(ordered_dict([(f"other.{n}", tensor([n + 0.5, n + 0.25, n + 0.75, 7.5, 9.25])) for n in range(1, 5)]))


def main(arguments: list[str] | None = None) -> int:
    """Print a table a file; 1 where anything was told wrongly."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--flips", type=int, default=0, metavar="N", help="flips a file, spread (default 0: one of every byte)")
    parser.add_argument("--edits", type=int, default=100, metavar="N", help="cuts, insertions and losses a file (default 100)")
    parser.add_argument("--swaps", type=int, default=40, metavar="N", help="pairs swapped and records altered (default 40)")
    options = parser.parse_args(arguments)
    wrong = 0
    for path in options.files:
        file = File(Path(path).name, Path(path).read_bytes())
        print(f"{path}: {file.manifest.format.get('kind')}, {len(file.data)} bytes, {len(file.segments)} segments")
        print("| change | cases | verdict right | named right |")
        print("|---|---|---|---|")
        tried = cases(file, another_model(), flips=options.flips, edits=options.edits, swaps=options.swaps)
        for change, row in table(file, tried).items():
            print(f"| {change} | {row.cases} | {row.verdict_right} | {row.segments_right} |", flush=True)
            wrong += len(row.wrong)
            for line in row.wrong[:5]:
                print(f"wrong: {change} {line}", file=sys.stderr)
        print()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

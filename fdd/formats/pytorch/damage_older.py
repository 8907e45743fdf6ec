# SPDX-License-Identifier: Apache-2.0
"""Legacy streams and torch tars that break off, or whose end is zeros."""

from __future__ import annotations

from fdd.container.zip.window import content_end
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import CutOff, Displacement
from fdd.formats.pytorch.damage_losses import Losses
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.legacy import COUNT_BYTES, key_name, keys_of
from fdd.formats.pytorch.older_facts import LEGACY_PARTS, TAR_PARTS, LegacyFacts, LegacyStorage

_SOME_ZEROS = 64
_REACH = 1 << 16
"""Bytes around its computed place in which a count is looked for."""
_PART_WORDS = {
    "magic": "the magic number, the first pickle of the stream",
    "protocol": "the pickle with the version of the format",
    "sys-info": "the pickle that describes the writing machine",
    "object": "the pickle that describes the object",
    "keys": "the list of storage keys",
}
_TAR_CUTS = frozenset({"header-cut", "payload-cut", "extension-cut", "sparse-map-cut", "end-missing"})


def find_stream_cut(document: TorchDocument, losses: Losses) -> CutOff | None:
    """Where a legacy stream breaks off; None where it does not."""
    stream = document.legacy
    assert stream is not None
    content = content_end(document.source)
    zeros = document.size - content
    zeroed = _zeroed(stream, content) if zeros >= _SOME_ZEROS else None
    tail = zeros >= _SOME_ZEROS and (zeroed is not None or stream.stopped not in (None, "storages"))
    if not tail and not (stream.stopped is not None and stream.cut):
        return None
    broken = zeroed or next((entry for entry in stream.storages if not entry.complete), None)
    end = content if tail else document.size
    whole = [entry for entry in stream.storages if entry.complete and entry is not broken and _in_front(entry, end)]
    records = [f"storages/{entry.key}" for entry in whole]
    parts = [role for role in LEGACY_PARTS if stream.value(role) is not None]
    place = Span(content, zeros) if tail else _place(stream, broken, document.size)
    tally = losses.tally(set(records), [f"storages/{broken.key}"] if broken is not None and broken.payload else [])
    return CutOff(
        place=place,
        content=end,
        inside=_inside(stream, broken, end),
        complete=[*parts, *records],
        zeros=zeros if tail else 0,
        whole_size=None if tail else _needed(document, stream),
        tally=tally,
        unchecked=len(parts) + len(records),
    )


def _zeroed(stream: LegacyFacts, content: int) -> LegacyStorage | None:
    """The first storage whose count should not be 0, and is 0 with everything behind it."""
    for entry in stream.storages:
        if entry.count == 0 and entry.expected and content <= entry.count_span.offset:
            return entry
    return None


def _in_front(entry: LegacyStorage, end: int) -> bool:
    """Whether a storage ends in front of the break, but for zeros that numbers can end with."""
    return entry.payload is not None and entry.payload.end - _SOME_ZEROS <= end


def _place(stream: LegacyFacts, broken: LegacyStorage | None, size: int) -> Span:
    start = stream.end
    if broken is not None:
        start = broken.payload.offset if broken.payload is not None else broken.count_span.offset
    elif stream.stopped in LEGACY_PARTS and stream.part(stream.stopped) is not None:
        start = stream.pickles[-1].span.offset
    return Span(start, max(0, size - start))


def _inside(stream: LegacyFacts, broken: LegacyStorage | None, end: int) -> str:
    if stream.stopped in LEGACY_PARTS:
        begun = stream.part(stream.stopped) is not None
        return f"{'inside' if begun else 'in front of'} {_PART_WORDS[stream.stopped]}"
    if broken is None:
        return "inside the storages"
    if broken.payload is None or end <= broken.payload.offset:
        return f"in front of the contents of storage {broken.key}"
    return f"inside storage {broken.key}, of which {end - broken.payload.offset} of {broken.needed} bytes are there"


def _needed(document: TorchDocument, stream: LegacyFacts) -> int | None:
    """Bytes of the whole stream, where key list and object are there."""
    keys = keys_of(stream)
    if keys is None:
        return None
    sizes = {storage.key: storage.byte_count for storage in document.storages}
    total = stream.pickles[-1].span.end
    for key in keys:
        size = sizes.get(key_name(key))
        if size is None or size < 0:
            return None
        total += COUNT_BYTES + size
    return total


def find_stream_shift(document: TorchDocument, losses: Losses) -> Displacement | None:
    """Bytes lost or inserted in a storage: the next count stands earlier or later than it should.

    The true place is where the counts of that storage and the next one stand one behind the other as the object says.
    """
    stream = document.legacy
    assert stream is not None
    rows = stream.storages
    for number, entry in enumerate(rows):
        if entry.count == entry.expected or entry.expected is None or not number:
            continue
        shift = _true_place(document, stream, number)
        if shift is None:
            return None
        before = rows[number - 1]
        assert before.payload is not None
        start, behind = before.payload.offset, entry.count_span.offset + shift
        names = losses.tensors([f"storages/{before.key}"])
        region = Span(start, max(0, behind - start))
        return Displacement(shift, region, f"storages/{before.key}", f"storages/{entry.key}", True, [], names)
    return None


def _true_place(document: TorchDocument, stream: LegacyFacts, number: int) -> int | None:
    """How far from its computed place the count of a storage stands; None where that is not found within 64 KiB."""
    wanted = _wanted_counts(document, stream, number)
    if len(wanted) < 2:
        return None
    (first, length), (second, _) = wanted[:2]
    position = stream.storages[number].count_span.offset
    start = max(0, position - _REACH)
    data = document.source.read_at(start, 2 * _REACH)
    at = data.find(first)
    while at >= 0:
        if document.source.read_at(start + at + COUNT_BYTES + length, COUNT_BYTES) == second:
            return start + at - position
        at = data.find(first, at + 1)
    return None


def _wanted_counts(document: TorchDocument, stream: LegacyFacts, number: int) -> list[tuple[bytes, int]]:
    """Count and payload bytes of the storages from that one on, by the object; behind the last follows nothing."""
    keys = [key_name(key) for key in keys_of(stream) or ()]
    known = {storage.key: storage for storage in document.storages}
    rows: list[tuple[bytes, int]] = []
    for key in keys[number : number + 2]:
        storage = known.get(key)
        size = storage.byte_count if storage is not None else None
        if storage is None or storage.element_count is None or size is None or not size >= 0:
            return []
        rows.append((storage.element_count.to_bytes(COUNT_BYTES, "little", signed=True), size))
    return [*rows, (b"", 0)]


def find_tar_cut(document: TorchDocument) -> CutOff | None:
    """Where a torch tar breaks off: the file ends without an end mark, or inside a structure."""
    tar = document.tar
    assert tar is not None
    faults = [fault for fault in tar.faults if fault.code in _TAR_CUTS]
    names = [member.name.decode("utf-8", "replace") for member in tar.members if member.payload_complete]
    missing = [name for name in TAR_PARTS if name not in names]
    if not faults or not missing or tar.trailing.length:
        return None
    cut = next((member for member in tar.members if not member.payload_complete), None)
    inside = f"before the member {missing[0]} is complete"
    if cut is not None:
        inside = f"inside the member {missing[0]}, of which {cut.payload.length} of {cut.size} bytes are there"
    start = cut.payload.offset if cut is not None else faults[0].offset
    return CutOff(Span(start, max(0, document.size - start)), document.size, inside, names, unchecked=len(names))

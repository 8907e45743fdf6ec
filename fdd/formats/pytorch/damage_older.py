# SPDX-License-Identifier: Apache-2.0
"""Legacy streams and torch tars that break off, or whose end is zeros."""

from __future__ import annotations

from fdd.container.zip.window import content_end
from fdd.core.span import Span
from fdd.formats.pytorch.damage_facts import CutOff
from fdd.formats.pytorch.damage_losses import Losses
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.legacy import COUNT_BYTES, key_name, keys_of
from fdd.formats.pytorch.older_facts import LEGACY_PARTS, TAR_PARTS, LegacyFacts, LegacyStorage

_SOME_ZEROS = 64
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

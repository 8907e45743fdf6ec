# SPDX-License-Identifier: Apache-2.0
"""Opens the legacy stream (format.md 4.1): five pickles one after another, then the storages in the order of the fifth.

A stream has no directory and states no lengths: each part begins where the one before it ends. The count in front of a
storage and the persistent id in the object say the same thing twice, which is what lets a damaged one be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, NOT_REQUESTED, Evidence, Identification, Record
from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.evidence import GRAMMAR_RULES, blocked, pickle_evidence
from fdd.formats.pytorch.identify import legacy_heads
from fdd.formats.pytorch.objects import read_objects
from fdd.formats.pytorch.older_facts import LEGACY_PARTS, MAGIC_NUMBER, STREAM_VERSION, LegacyFacts, LegacyStorage
from fdd.formats.pytorch.persistent_ids import PersistentIdReader, text_of
from fdd.formats.pytorch.pickled import WANTS_MORE, probe_unowned, run_part
from fdd.limits import Limits
from fdd.pickles.nodes import ListNode, PersistentId, Value
from fdd.tensors.model import Storage

COUNT_BYTES = 8
ELEMENT_SIZES = (4, 8, 1, 2, 16)
"""Bytes of an element, the commonest first: what is tried for a storage whose type nothing tells."""
LEGACY_ID_LENGTH = 6
STREAM_RULES = (
    "PT-LEG-008", "PT-LEG-001", "PT-LEG-005", "PT-LEG-006", "PT-LEG-015", "PT-TEN-001", "PT-TEN-003", "PT-LEG-010",
    "PT-PKL-019", "PT-PKL-028", *GRAMMAR_RULES,
)  # fmt: skip
"""What can keep a stream from being read to its end."""


def open_legacy(probe: Probe, identification: Identification) -> TorchDocument:
    """Read a legacy stream, and what follows it. Never raises on bad bytes."""
    document = TorchDocument(probe.source, probe.name, identification)
    stream = document.legacy = _read_head(document, 0, "", probe.limits)
    version = stream.value("protocol")
    identification.version = str(version) if isinstance(version, int) and version < 1 << 64 else None
    read_objects(document)
    _place(document, stream, {storage.key: storage for storage in document.storages}, "")
    if stream.stopped is None:
        _read_behind(document, stream, probe.limits)
    _state_evidence(document, stream)
    return document


def starts_stream(head: bytes) -> bool:
    """Whether bytes begin with the magic number of a legacy stream, as a pickle of any protocol."""
    return any(head.startswith(expected[: expected.index(b".") + 1]) for expected in legacy_heads())


def keys_of(stream: LegacyFacts) -> list[Value] | None:
    """The items of the key list; None where the fifth pickle is missing or holds no list."""
    keys = stream.value("keys")
    return keys.items if isinstance(keys, ListNode) else None


def key_name(key: Value) -> str:
    """A key as text. Writers have only texts; anything else is named by what it is."""
    text = text_of(key)
    return text if text is not None else str(key) if isinstance(key, int) else f"<{type(key).__name__}>"


def _read_head(document: TorchDocument, start: int, prefix: str, limits: Limits) -> LegacyFacts:
    """Run the five pickles, as far as they go. ``prefix`` names a further stream."""
    stream = LegacyFacts(start, end=start)
    size = document.size
    for role in LEGACY_PARTS:
        if stream.end >= size:
            stream.stopped, stream.cut = role, True
            break
        name = prefix + role
        pickle = run_part(document, stream.end, size, role="further" if prefix else role, record=name, limits=limits)
        stream.pickles.append(pickle)
        document.records.append(Record(name, role, pickle.span, pickle.span.length))
        if not pickle.facts.stopped:
            stream.stopped = role
            stream.cut = any(fault.fatal and fault.code in WANTS_MORE for fault in pickle.facts.faults)
            break
        stream.end = pickle.span.end
    return stream


class _Layout:
    """Walks over counts and payloads.

    A payload is as long as its count says, and the persistent id says the same. Where they differ, the length that
    leads to a matching count of the next storage (or to the end of the stream) is taken for the true one.
    """

    def __init__(self, source: ByteSource, keys: list[str], storages: Mapping[str, Storage]) -> None:
        self._source = source
        self._keys = keys
        self._storages = storages

    def entry(self, index: int, position: int) -> LegacyStorage:
        """The entry that begins at ``position``."""
        key = self._keys[index]
        expected, item = self._expected(key)
        count = self._count_at(position)
        count_span = Span(position, min(COUNT_BYTES, self._source.size - position))
        start = position + COUNT_BYTES
        needed = self._length(index, start, count, expected, item) if count is not None else None
        payload = Span(start, max(0, min(needed, self._source.size - start))) if needed is not None else None
        return LegacyStorage(key, count, count_span, expected, payload, needed)

    def _expected(self, key: str) -> tuple[int | None, int | None]:
        """Elements by the persistent id and bytes of one; None for what is not known."""
        storage = self._storages.get(key)
        if storage is None:
            return None, None
        count = storage.element_count
        return count if count is None or count >= 0 else None, storage.dtype.size if storage.dtype is not None else None

    def _count_at(self, position: int) -> int | None:
        data = self._source.read_at(position, COUNT_BYTES)
        return int.from_bytes(data, "little", signed=True) if len(data) == COUNT_BYTES else None

    def _length(self, index: int, start: int, count: int, expected: int | None, item: int | None) -> int | None:
        if item is None:
            lengths = [count * size for size in ELEMENT_SIZES] if count >= 0 else []
            return next((length for length in lengths if self._begins(index + 1, start + length)), None)
        stated = [count * item] if count >= 0 else []
        known = [expected * item] if expected is not None else []
        for length in known + stated:
            if count == expected or self._begins(index + 1, start + length):
                return length
        # Nothing decides: torch goes by the count, where there are so many bytes.
        inside = [length for length in stated + known if start + length <= self._source.size]
        return next(iter(inside + known + stated), None)

    def _begins(self, index: int, position: int) -> bool:
        """Whether the entry of that index can stand there; for the one behind the last, whether the stream can end there."""
        size = self._source.size
        if position > size:
            return False
        if index == len(self._keys):
            return position == size or starts_stream(self._source.read_at(position, 64))
        expected, _ = self._expected(self._keys[index])
        count = self._count_at(position)
        if count is None:
            return False
        return count == expected if expected is not None else 0 <= count <= size - position - COUNT_BYTES


def _place(document: TorchDocument, stream: LegacyFacts, storages: Mapping[str, Storage], prefix: str) -> None:
    """Find the payload of every key of the list, and tell the storages of the object where theirs are."""
    if stream.stopped is not None:
        return
    keys = keys_of(stream)
    if keys is None:
        stream.stopped = "keys"
        return
    names = [key_name(key) for key in keys]
    layout = _Layout(document.source, names, storages)
    for index, name in enumerate(names):
        entry = layout.entry(index, stream.end)
        stream.storages.append(entry)
        if entry.payload is not None:
            record = Record(f"{prefix}storages/{name}", "storage", entry.payload, entry.payload.length)
            document.records.append(record)
            _link(storages.get(name), record)
        if not entry.complete or entry.payload is None:
            stream.stopped = "storages"
            stream.cut = entry.count is None or entry.payload is not None
            return
        stream.end = entry.payload.end


def _link(storage: Storage | None, record: Record) -> None:
    if storage is not None and storage.span is None:
        storage.record = record.name
        storage.span = record.span
        storage.stored_size = record.size


def _read_behind(document: TorchDocument, first: LegacyFacts, limits: Limits) -> None:
    """Read further streams, one after another, and look at what is left."""
    position, size = first.end, document.size
    broken = False
    while position < size and not broken and starts_stream(document.source.read_at(position, 64)):
        known_pickles, known_records = len(document.pickles), len(document.records)
        prefix = f"stream {len(first.further) + 2}/"
        stream = _read_head(document, position, prefix, limits)
        storages = _storages_of(stream)
        _place(document, stream, storages, prefix)
        if is_complete(stream, storages):
            first.further.append(stream)
            position = stream.end
            continue
        broken = True
        first.rest_holds = "the start of another legacy stream"
        del document.records[known_records:]
        for pickle in document.pickles[known_pickles:]:
            pickle.role = "trailing" if pickle.role == "further" else pickle.role
    if position < size:
        first.rest = Span(position, size - position)
        if not broken and probe_unowned(document, first.rest, limits, role="trailing"):
            first.rest_holds = "a pickle"


def _storages_of(stream: LegacyFacts) -> dict[str, Storage]:
    """The storages that the object of a further stream refers to."""
    pickle = stream.part("object")
    if pickle is None:
        return {}
    ids = PersistentIdReader(pickle, (LEGACY_ID_LENGTH,), module_ids=True)
    for event in pickle.facts.events:
        if event.what == "persistent-id" and isinstance(event.value, PersistentId):
            ids.read(event.value)
    return ids.storages


def is_complete(stream: LegacyFacts, storages: Iterable[str]) -> bool:
    """Whether every part of a stream is there and agrees with the others."""
    return (
        stream.stopped is None
        and stream.value("magic") == MAGIC_NUMBER
        and stream.value("protocol") == STREAM_VERSION
        and all(entry.count == entry.expected for entry in stream.storages)
        and {entry.key for entry in stream.storages} == set(storages)
    )


def _state_evidence(document: TorchDocument, stream: LegacyFacts) -> None:
    """Inputs: those of :mod:`fdd.formats.pytorch.evidence` that a stream has, and `stream`, the walk over its parts."""
    evidence = document.evidence
    pickle_evidence(document)
    limit = next((pickle.facts.limit for pickle in stream.pickles if pickle.facts.limit), None)
    if stream.stopped is None:
        whole = COMPLETE
    elif limit is not None:
        whole = Evidence("partial", Reason.LIMIT, detail=limit)
    else:
        whole = blocked("partial", STREAM_RULES)
    evidence["stream"] = whole
    evidence["inventory"] = whole if whole is COMPLETE else whole._replace(state="withheld")
    if stream.part("object") is None:
        evidence["objects"] = whole._replace(state="withheld")
    objects = evidence["objects"]
    evidence["storages"] = objects if objects.state != "complete" else evidence["inventory"]
    evidence["payload"] = NOT_REQUESTED

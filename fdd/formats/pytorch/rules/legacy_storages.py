# SPDX-License-Identifier: Apache-2.0
"""Rules on what a legacy stream is for: its keys, the counts and payloads of its storages, its persistent ids (PT-LEG)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.legacy import key_name, keys_of
from fdd.formats.pytorch.older_facts import LegacyFacts, LegacyStorage
from fdd.formats.pytorch.persistent_ids import SHAPE_CODES, UNREAD_IDS, text_of
from fdd.formats.pytorch.rules.catalogue import LEGACY, rule
from fdd.formats.pytorch.rules.legacy import AGAIN, PART_NAMES, stream_of


@rule(
    "PT-LEG-005",
    "key-list-wrong",
    axis="valid",
    level="error",
    clause="legacy.keys",
    kinds=LEGACY,
    needs=("stream",),
    per="place",
    title="The fifth pickle is a list of texts, each of them once.",
    message="the key list is wrong: {what}",
    remedy=f"{AGAIN} The list alone says which storage is whose.",
)
def key_list_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: storages carry no names of their own; they stand in the order of this list.

    References: format.md 4.1.
    """
    stream = stream_of(document)
    pickle = stream.part("keys")
    if pickle is None or not pickle.facts.stopped:
        return
    keys = keys_of(stream)
    if keys is None:
        yield at(pickle.span, record=pickle.record, what="it is no list")
        return
    seen: set[str] = set()
    for key in keys:
        name = key_name(key)
        if text_of(key) is None:
            yield at(pickle.span, record=pickle.record, what=f"{name} in it is no text")
        elif name in seen:
            yield at(pickle.span, record=pickle.record, what=f"the key {name} stands in it twice")
        seen.add(name)


@rule(
    "PT-LEG-018",
    "key-list-unsorted",
    axis="valid",
    level="warning",
    clause="legacy.keys",
    kinds=LEGACY,
    needs=("stream",),
    title="The key list is sorted as texts.",
    message="the key {key} stands behind a greater one",
    remedy="Compare with another copy: if a key was changed, two storages may have changed places.",
)
def key_list_unsorted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.save sorts the keys. One out of order was damaged or moved, and with it the numbers of a tensor.

    References: format.md 4.1.
    """
    stream = stream_of(document)
    names = [key_name(key) for key in keys_of(stream) or ()]
    for before, key in pairwise(names):
        if key < before:
            yield at(_key_list(stream), record="keys", key=key)


@rule(
    "PT-LEG-006",
    "key-without-counterpart",
    axis="valid",
    level="error",
    clause="legacy.keys",
    kinds=LEGACY,
    needs=("objects", "stream"),
    per="place",
    title="The key list names exactly the storages of the object.",
    message="the storage {key} {what}",
    remedy=f"{AGAIN} Do not trust the numbers of the tensors concerned.",
)
def key_without_counterpart(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a storage that the list leaves out is never filled: torch hands out whatever lay in memory, without a
    message. A key that the object does not name makes torch stop.

    References: format.md 4.1.
    """
    stream = stream_of(document)
    keys = keys_of(stream)
    if keys is None:
        return
    listed = {key_name(key) for key in keys}
    used = {storage.key: storage for storage in document.storages}
    # An id that cannot be read may be the one that names the key; it has a finding of its own.
    unread = any(mismatch.code in UNREAD_IDS for mismatch in document.mismatches)
    for key in dict.fromkeys(key_name(key) for key in keys):
        if key not in used and not unread:
            yield at(_key_list(stream), record="keys", key=key, what="is in the key list, but the object does not use it")
    for key, storage in used.items():
        if key not in listed:
            place = storage.uses[0].span if storage.uses else None
            what = "is used by the object, but missing in the key list: its tensors get no data"
            yield at(place, record="object", key=key, what=what)


def _key_list(stream: LegacyFacts) -> Span | None:
    pickle = stream.part("keys")
    return pickle.span if pickle is not None else None


def _counts(document: TorchDocument) -> Iterator[tuple[LegacyStorage, bool]]:
    """Entries whose count is not what the object says, and whether so many elements can be there at all."""
    items = {storage.key: storage.dtype.size for storage in document.storages if storage.dtype is not None}
    for entry in stream_of(document).storages:
        if entry.count is None:
            continue
        behind = entry.count_span.end + entry.count * items.get(entry.key, 1)
        possible = entry.count >= 0 and behind <= document.size
        if not possible or (entry.expected is not None and entry.count != entry.expected):
            yield entry, possible


@rule(
    "PT-LEG-007",
    "element-count-differs",
    axis="valid",
    level="error",
    clause="legacy.storages",
    kinds=LEGACY,
    needs=("objects", "stream"),
    per="place",
    title="The count in front of a storage is the one that the object states.",
    message="the storage {key} is announced with {count} elements, the object says {expected}",
    remedy="Compare with another copy; torch refuses the file.",
)
def element_count_differs(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the storages follow each other without a gap, so that a wrong count moves all that come behind.

    References: format.md 4.1; contract, section 6.
    """
    for entry, possible in _counts(document):
        if possible:
            yield at(entry.count_span, record=f"storages/{entry.key}", key=entry.key, count=entry.count, expected=entry.expected)


@rule(
    "PT-LEG-015",
    "element-count-absurd",
    axis="well-formed",
    level="error",
    clause="legacy.storages",
    kinds=LEGACY,
    needs=("stream",),
    per="place",
    title="The count in front of a storage is neither negative nor greater than the file.",
    message="the storage {key} is announced with {count} elements: {what}",
    remedy=f"{AGAIN} Where the object states another count, the numbers may still be all there.",
)
def element_count_absurd(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers differ in what they do with it, from an error to memory taken without bound.

    References: format.md 4.1; contract, section 6.
    """
    for entry, possible in _counts(document):
        # A count that agrees with the object is not to blame where the file ends too early.
        if not possible and entry.count is not None and entry.count != entry.expected:
            what = "that is negative" if entry.count < 0 else "the file ends before"
            yield at(entry.count_span, record=f"storages/{entry.key}", key=entry.key, count=entry.count, what=what)


@rule(
    "PT-LEG-008",
    "stream-cut",
    axis="well-formed",
    level="error",
    clause="legacy.storages",
    kinds=LEGACY,
    needs=("stream",),
    title="The stream is there to its end.",
    message="{what}",
    remedy=f"{AGAIN} It was cut off or damaged; what stands before that place is intact.",
)
def stream_cut(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: nothing in the stream says how long it is. What is missing is lost, and torch stops.

    References: format.md 4.1.
    """
    stream = stream_of(document)
    if not stream.cut or stream.stopped is None:
        return
    size = document.size
    if stream.stopped != "storages":
        name = PART_NAMES[stream.stopped]
        where = f"before the {name}" if stream.end >= size else f"inside the {name}, which begins at {stream.end}"
        what = f"the file ends {where}"
        yield at(Span(min(stream.end, size), max(0, size - stream.end)), record=stream.stopped, what=what)
        return
    entry = stream.storages[-1]
    missing = len(keys_of(stream) or ()) - len(stream.storages)
    place = entry.payload if entry.payload is not None else entry.count_span
    present = entry.payload.length if entry.payload is not None else 0
    needed = f"{entry.needed} bytes" if entry.needed is not None else "more bytes"
    what = f"the storage {entry.key} needs {needed}, {present} are there; {missing} further storages are missing"
    yield at(place, record=f"storages/{entry.key}", what=what)


@rule(
    "PT-LEG-010",
    "legacy-id-wrong",
    axis="valid",
    level="error",
    clause="legacy.ids",
    kinds=LEGACY,
    needs=("pickle",),
    per="place",
    title="Persistent ids have six items for a storage and four for a class.",
    message="a persistent id has the wrong number or kind of items: {detail}",
    remedy=f"{AGAIN} torch cannot tell what the id means.",
)
def legacy_id_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the id is the only link from a tensor to its bytes, and from a module to its source.

    References: format.md 2.2, 4.1.
    """
    for mismatch in document.mismatches:
        if mismatch.code in SHAPE_CODES:
            yield at(mismatch.span, record=mismatch.record, tensor=mismatch.tensor, detail=mismatch.detail)


@rule(
    "PT-LEG-011",
    "view-of-storage-wrong",
    axis="valid",
    level="error",
    clause="legacy.ids",
    kinds=LEGACY,
    needs=("objects",),
    per="place",
    title="A part of a storage lies inside it.",
    message="a persistent id refers to a part of the storage {key}: {what}",
    remedy="Compare with another copy; do not load the file with software that does not check this.",
)
def view_of_storage_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: early releases saved parts of storages so. A part that reaches too far leads outside the data.

    References: format.md 2.2.
    """
    for pickle, ids, node, view in document.facts.get("views", ()):
        window = ids.window(node)
        storage = ids.read(node)
        key = storage.key if storage is not None else "?"
        if window is None:
            yield at(pickle.place(node.offset), record=pickle.record, key=key, what=f"a {type(view).__name__} describes it")
        elif storage is not None and (min(window) < 0 or sum(window) > (storage.element_count or 0)):
            what = f"elements {window[0]} to {sum(window)} of {storage.element_count}"
            yield at(pickle.place(node.offset), record=pickle.record, key=key, what=what)
    for mismatch in document.mismatches:
        if mismatch.code == "outside-window":
            what = f"the tensor needs {mismatch.detail}"
            yield at(mismatch.span, record=mismatch.record, tensor=mismatch.tensor, key="of a tensor", what=what)

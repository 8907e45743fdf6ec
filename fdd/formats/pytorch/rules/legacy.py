# SPDX-License-Identifier: Apache-2.0
"""Rules on the legacy stream: its head, the key list, counts and payloads, and what stands behind it (PT-LEG)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.contents import dict_of
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.legacy import key_name, keys_of
from fdd.formats.pytorch.older_facts import MAGIC_NUMBER, STREAM_VERSION, LegacyFacts, LegacyStorage
from fdd.formats.pytorch.persistent_ids import SHAPE_CODES, int64_of, text_of
from fdd.formats.pytorch.rules.catalogue import rule
from fdd.pickles.nodes import Value

LEGACY = frozenset({"torch-legacy"})
OLDER = LEGACY | {"torch-tar"}
PART_NAMES = {
    "magic": "magic number",
    "protocol": "version number",
    "sys-info": "system information",
    "object": "object",
    "keys": "key list",
    "storages": "storages",
}
TYPE_SIZES = {"short": (2,), "int": (4,), "long": (4, 8)}
"""Sizes of C types on machines that torch ran on."""
AGAIN = "Get the file again from its source."


def _stream(document: TorchDocument) -> LegacyFacts:
    assert document.legacy is not None
    return document.legacy


def _place(stream: LegacyFacts, role: str) -> Span | None:
    pickle = stream.part(role)
    return pickle.span if pickle is not None else None


# The head


@rule(
    "PT-LEG-001",
    "legacy-magic-wrong",
    axis="well-formed",
    level="error",
    clause="legacy.head",
    kinds=LEGACY,
    needs=("stream",),
    title="The first pickle is the magic number, written out.",
    message="the first pickle is not the magic number of the legacy stream: {what}",
    remedy=f"{AGAIN} torch refuses it; the parts behind the head may be intact.",
)
def legacy_magic_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: by this number torch tells its own file from any other pickle. A number that a call makes runs code
    before anything is checked.

    References: format.md 4.1; contract, section 6.
    """
    stream = _stream(document)
    pickle = stream.part("magic")
    if pickle is None or (stream.stopped == "magic" and stream.cut):
        return
    if not pickle.facts.stopped:
        yield at(pickle.span, record=pickle.record, what="it cannot be read")
    elif pickle.facts.events:
        yield at(pickle.span, record=pickle.record, what="it names or calls something")
    elif pickle.facts.root != MAGIC_NUMBER:
        number = int64_of(pickle.facts.root) is not None or isinstance(pickle.facts.root, int)
        yield at(pickle.span, record=pickle.record, what="it is another number" if number else "it is no number")


@rule(
    "PT-LEG-002",
    "legacy-version-wrong",
    axis="valid",
    level="error",
    clause="legacy.head",
    kinds=LEGACY,
    needs=("stream",),
    title="The second pickle is the version 1001.",
    message="the version of the stream is {found} instead of 1001",
    remedy=f"{AGAIN} torch refuses any other version.",
)
def legacy_version_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: 1001 is the only version there ever was; torch.load stops at any other.

    References: format.md 4.1.
    """
    pickle = _stream(document).part("protocol")
    if pickle is not None and pickle.facts.stopped and (pickle.facts.root != STREAM_VERSION or isinstance(pickle.facts.root, bool)):
        yield at(pickle.span, record=pickle.record, found=_shown(pickle.facts.root))


def _shown(value: Value) -> str:
    number = int64_of(value)
    return str(number) if number is not None else f"a {type(value).__name__}"


@rule(
    "PT-LEG-003",
    "system-information-wrong",
    axis="valid",
    level="error",
    clause="legacy.system",
    kinds=LEGACY,
    needs=("stream",),
    title="The third pickle describes the system that wrote the file.",
    message="the system information is damaged: {what}",
    remedy="Compare with another copy. torch does not look at this part, so that the file can still be loaded.",
)
def system_information_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: every writer states the version and its byte order here; a stream that does not was made or changed
    by something else.

    References: format.md 4.1.
    """
    pickle = _stream(document).part("sys-info")
    if pickle is None or not pickle.facts.stopped:
        return
    system = dict_of(pickle.facts.root)
    if system is None:
        yield at(pickle.span, record=pickle.record, what="it is no dict")
    elif not isinstance(system.get("little_endian"), bool):
        yield at(pickle.span, record=pickle.record, what="little_endian is not true or false")
    elif int64_of(system.get("protocol_version")) is None:
        yield at(pickle.span, record=pickle.record, what="protocol_version is no whole number")
    elif system["protocol_version"] != STREAM_VERSION:
        yield at(pickle.span, record=pickle.record, what=f"protocol_version is {_shown(system['protocol_version'])} instead of 1001")


@rule(
    "PT-LEG-017",
    "type-sizes-odd",
    axis="valid",
    level="warning",
    clause="legacy.system",
    kinds=LEGACY,
    needs=("stream",),
    title="The system information holds the sizes of C types.",
    message="the system information has {what}",
    remedy="Nothing has to be done: no reader uses these numbers. Find out how the file was made.",
)
def type_sizes_odd(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: all writers state them, and the same ones; other numbers, or none, come from damage or another tool.

    References: format.md 4.1.
    """
    pickle = _stream(document).part("sys-info")
    system = dict_of(pickle.facts.root) if pickle is not None and pickle.facts.stopped else None
    if pickle is None or system is None:
        return
    sizes = dict_of(system.get("type_sizes"))
    if sizes is None:
        yield at(pickle.span, record=pickle.record, what="no type_sizes")
        return
    for name, usual in TYPE_SIZES.items():
        if int64_of(sizes.get(name)) not in usual:
            yield at(pickle.span, record=pickle.record, what=f"{_shown(sizes.get(name))} as the size of {name}")
    others = (sizes.keys() - TYPE_SIZES.keys()) | (system.keys() - {"protocol_version", "little_endian", "type_sizes"})
    if others:
        yield at(pickle.span, record=pickle.record, what=f"the unknown entry {sorted(others)[0]}")


@rule(
    "PT-LEG-004",
    "written-on-big-endian",
    axis="advice",
    level="info",
    clause="legacy.system",
    kinds=LEGACY,
    needs=("stream",),
    title="A little-endian machine wrote the file.",
    message="a big-endian machine wrote the file; its counts and numbers are little-endian all the same",
    remedy="Nothing has to be done: torch reads it right. Do not swap bytes because of this entry.",
)
def written_on_big_endian(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the entry invites to swap bytes, which would destroy the numbers: writers turn them round themselves.

    References: history.md, surprise 3; contract, section 6.
    """
    pickle = _stream(document).part("sys-info")
    system = dict_of(pickle.facts.root) if pickle is not None and pickle.facts.stopped else None
    if pickle is not None and system is not None and system.get("little_endian") is False:
        yield at(pickle.span, record=pickle.record)


@rule(
    "PT-LEG-012",
    "protocols-mixed",
    axis="valid",
    level="warning",
    clause="legacy.head",
    kinds=LEGACY,
    needs=("stream",),
    per="place",
    title="All five pickles have one protocol.",
    message="the {part} is pickled with protocol {found}, the others with {usual}",
    remedy="Compare with another copy. The part can be read; but torch.save uses one protocol for all.",
)
def protocols_mixed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: one call of torch.save writes all five. A part of its own protocol is damaged or was put in later.

    References: format.md 4.1.
    """
    pickles = _stream(document).pickles
    # Without PROTO it is 0 or 1, and short pickles look alike in both.
    protocols = [max(1, pickle.facts.protocol) for pickle in pickles]
    usual = max(protocols, key=protocols.count, default=0)
    for pickle, protocol in zip(pickles, protocols, strict=True):
        if protocol != usual and pickle.facts.protocols:
            place = pickle.place(pickle.facts.protocols[0][0], 2)
            yield at(place, record=pickle.record, part=PART_NAMES[pickle.role], found=protocol, usual=usual)
        elif protocol != usual:
            yield at(pickle.span, record=pickle.record, part=PART_NAMES[pickle.role], found="0 or 1", usual=usual)


@rule(
    "PT-LEG-013",
    "form-superseded",
    axis="advice",
    level="warning",
    clause="legacy.form",
    kinds=OLDER,
    title="The file has the current form.",
    message="the file has a form that torch gave up in {release}: it has no checksums, and {readers}",
    remedy="Keep the file and its digest. A copy in the current form, made by torch.load and torch.save, can be added.",
)
def form_superseded(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: nothing inside the file shows damage to its numbers, and fewer and fewer readers know the form.

    References: format.md 4; history.md, table 1.
    """
    if document.kind == "torch-tar":
        yield at(release="0.1.10", readers="current releases read it only from a path and with weights_only=False")
    else:
        yield at(release="1.6", readers="it cannot be mapped into memory")


# Keys, counts and payloads


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
    stream = _stream(document)
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
    stream = _stream(document)
    names = [key_name(key) for key in keys_of(stream) or ()]
    for before, key in zip(names, names[1:], strict=False):
        if key < before:
            yield at(_place(stream, "keys"), record="keys", key=key)


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
    stream = _stream(document)
    keys = keys_of(stream)
    if keys is None:
        return
    listed = {key_name(key) for key in keys}
    used = {storage.key: storage for storage in document.storages}
    for key in dict.fromkeys(key_name(key) for key in keys):
        if key not in used:
            yield at(_place(stream, "keys"), record="keys", key=key, what="is in the key list, but the object does not use it")
    for key, storage in used.items():
        if key not in listed:
            place = storage.uses[0].span if storage.uses else None
            yield at(place, record="object", key=key, what="is used by the object, but missing in the key list: its tensors get no data")


def _counts(document: TorchDocument) -> Iterator[tuple[LegacyStorage, bool]]:
    """Entries whose count is not what the object says, and whether so many elements can be there at all."""
    items = {storage.key: storage.dtype.size for storage in document.storages if storage.dtype is not None}
    for entry in _stream(document).storages:
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
    stream = _stream(document)
    if not stream.cut or stream.stopped is None:
        return
    size = document.size
    if stream.stopped != "storages":
        name = PART_NAMES[stream.stopped]
        what = f"the file ends before the {name}" if stream.end >= size else f"the file ends inside the {name}, which begins at {stream.end}"
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
        elif storage is not None and not (0 <= window[0] and 0 <= window[1] and sum(window) <= (storage.element_count or 0)):
            what = f"elements {window[0]} to {sum(window)} of {storage.element_count}"
            yield at(pickle.place(node.offset), record=pickle.record, key=key, what=what)
    for mismatch in document.mismatches:
        if mismatch.code == "outside-window":
            yield at(mismatch.span, record=mismatch.record, tensor=mismatch.tensor, key="of a tensor", what=f"the tensor needs {mismatch.detail}")


# What stands beside the numbers


@rule(
    "PT-LEG-009",
    "bytes-after-stream",
    axis="valid",
    level="error",
    clause="legacy.end",
    kinds=LEGACY,
    needs=("stream",),
    title="Nothing follows the last storage but further whole streams.",
    message="{length} bytes follow the last storage{holds}",
    remedy="Keep the file as it is and find out where the bytes come from; a copy cut to {end} bytes is the stream alone.",
)
def bytes_after_stream(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch never looks at them. They may be what is left of a second save, or something put there later.

    References: format.md 4.1; contract, section 6.
    """
    stream = _stream(document)
    if stream.rest is not None:
        holds = f": {stream.rest_holds}" if stream.rest_holds else ""
        yield at(stream.rest, length=stream.rest.length, end=stream.rest.offset, holds=holds)


@rule(
    "PT-LEG-019",
    "further-streams",
    axis="advice",
    level="info",
    clause="legacy.end",
    kinds=LEGACY,
    needs=("stream",),
    title="The file holds one object.",
    message="{count} further complete streams follow the first",
    remedy="Load them one after another from an open file; torch.load on the path gives the first only.",
)
def further_streams(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: several torch.save calls into one open file are allowed, but what a path gives is the first object.

    References: format.md 4.1; history.md, surprise 11.
    """
    stream = _stream(document)
    if stream.further:
        first, last = stream.further[0], stream.further[-1]
        yield at(Span(first.start, last.end - first.start), count=len(stream.further))


@rule(
    "PT-LEG-014",
    "source-text-kept",
    axis="advice",
    level="info",
    clause="legacy.ids",
    kinds=OLDER,
    needs=("pickle",),
    title="The file carries no source text.",
    message="the file carries the source text of {count} classes, the first is {name}",
    remedy="Write the texts out with `fdd sources`: they are what is needed to load the object again.",
)
def source_text_kept(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a whole module can only be loaded with its classes. The text at the time of saving may be the last copy.

    References: format.md 4.1; history.md, surprise 12.
    """
    kept = [(pickle, module) for pickle, module in document.facts.get("module-sources", ()) if module.source]
    if kept:
        pickle, module = kept[0]
        yield at(pickle.place(module.offset), record=pickle.record, count=len(kept), name=module.class_name)

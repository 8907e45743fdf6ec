# SPDX-License-Identifier: Apache-2.0
"""Rules on storages: their type, size and location as pickles state them, and the bytes they have."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator

from fdd.core.model import COMPLETE
from fdd.core.rule import Violation, at
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import tensor_users
from fdd.formats.pytorch.persistent_ids import STORAGE_MODULES, int64_of
from fdd.formats.pytorch.pickle_values import kind_of
from fdd.formats.pytorch.rules.catalogue import ARCHIVES, PICKLED, rule
from fdd.formats.pytorch.rules.tensors.places import pickle_of, stored_storages, tensor_span, user_at
from fdd.tensors.model import Storage, StorageUse, Tensor, unused_bytes

ARCHIVED = PICKLED & ARCHIVES
"""Kinds with one record for each storage."""
KNOWN_LOCATION = re.compile(r"cpu|meta|mps(?::\d+)?|cuda\d*|(?:cuda|hpu|xpu|mtia|npu|xla|ipu|privateuseone)(?::\d+)?")
"""Locations of torch and of its better known backends (format.md 2.2)."""


def _number(value: object) -> str:
    """A number of a pickle for a message; numbers may be of any length there."""
    if isinstance(value, bool) or not isinstance(value, int):
        return kind_of(value)
    return str(value) if value.bit_length() <= 64 else f"a number of {value.bit_length()} bits"


@rule(
    "PT-TEN-001",
    "storage-type-unknown",
    axis="valid",
    level="error",
    clause="tensors.storage-type",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Every storage has a type that torch knows.",
    message="torch has no storage type {type}",
    remedy="Find out which program wrote the file: without the type it is unknown how to read the numbers.",
)
def storage_type_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the type tells what kind of number each byte belongs to.

    References: format.md 2.2, 2.3.
    """
    for storage, tensor in stored_storages(document):
        use = next((use for use in storage.uses if use.dtype is None), None)
        if use is not None:
            yield at(use.span, record=storage.source, tensor=tensor, type=use.type_name)


@rule(
    "PT-TEN-002",
    "storage-type-foreign",
    axis="valid",
    level="warning",
    clause="tensors.storage-type",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Storage types come from torch.",
    message="the storage type {type} carries a known name, but does not come from torch",
    remedy="Find out where the module comes from; torch reads the file without looking at it.",
)
def storage_type_foreign(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch takes any class of such a name for its own, whatever its module; other readers may import it.

    References: format.md 2.2.
    """
    for storage, tensor in stored_storages(document):
        for use in storage.uses:
            if use.dtype is not None and use.type_name.rpartition(".")[0] not in STORAGE_MODULES:
                yield at(use.span, record=storage.source, tensor=tensor, type=use.type_name)
                break


@rule(
    "PT-TEN-003",
    "element-count-impossible",
    axis="valid",
    level="error",
    clause="tensors.persistent-id",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Element counts are whole numbers of at least 0.",
    message="storage {key} claims {count} as its number of elements",
    remedy="Compare with another copy; the size of the record still shows how many bytes there are.",
)
def element_count_impossible(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the size of a storage follows from this number.

    References: format.md 2.2.
    """
    for storage, tensor in stored_storages(document):
        for use in storage.uses:
            count = use.element_count
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                yield at(use.span, record=storage.source, tensor=tensor, key=storage.key, count=_number(count))
                break


@rule(
    "PT-TEN-004",
    "storage-size-differs",
    axis="valid",
    level="error",
    clause="tensors.storage-size",
    kinds=ARCHIVED,
    needs=("objects", "directory"),
    per="record",
    title="Every storage has exactly the bytes that its pickle announces.",
    message="the storage has {stored} bytes, the pickle announces {announced} ({count} elements of {type})",
    remedy="Compare with another copy. Do not load the file with mmap: torch would read what lies behind the record.",
)
def storage_size_differs(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a storage that is too short is filled with the bytes behind it, or with nothing; one that is too long
    hides bytes. Releases before 2.10 read on without a word.

    References: format.md 1.16, 1.17, 2.5.
    """
    for storage, tensor in stored_storages(document):
        announced, stored = storage.byte_count, storage.stored_size
        if not storage.payload_expected or not storage.complete:
            continue  # written without a payload on purpose; or cut, which has a rule of its own
        if announced is None or announced < 0 or stored is None or announced == stored:
            continue
        yield at(
            storage.span or storage.place,
            record=storage.record,
            tensor=tensor,
            stored=stored,
            announced=announced,
            count=storage.element_count,
            type=storage.type_name,
        )


@rule(
    "PT-TEN-005",
    "storage-described-twice",
    axis="valid",
    level="error",
    clause="tensors.persistent-id",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="All mentions of one storage say the same of it.",
    message="storage {key} is {what} here and {other} elsewhere",
    remedy="Compare with another copy: readers that look at one mention or the other see different numbers.",
)
def storage_described_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch takes the first mention and applies it to all tensors of the storage; what the others say is
    lost. torch itself refuses to save one storage under two types.

    References: format.md 2.2, 2.3.
    """
    groups: dict[object, list[Storage]] = {}
    for storage in document.storages:
        groups.setdefault(storage.record or id(storage), []).append(storage)
    tensors = tensor_users(document)
    for storages in groups.values():
        uses = [(use, storage) for storage in storages for use in storage.uses]
        for describe in (_type_of, _location_of, _count_of) if len(uses) > 1 else ():
            right = _most_likely(uses, describe)
            wrong = next(((use, storage) for use, storage in uses if describe(use) != right), None)
            if wrong is not None:
                use, storage = wrong
                what, other = describe(use), right
                tensor = user_at(tensors.get(id(storage), []), use.span)
                yield at(use.span, record=storage.source, tensor=tensor, key=storage.key, what=what, other=other)


def _type_of(use: StorageUse) -> str:
    """The type of the elements: an UntypedStorage and a ByteStorage may share their bytes."""
    return use.dtype.name if use.dtype is not None else use.type_name


def _location_of(use: StorageUse) -> str:
    return f"at {use.location}" if isinstance(use.location, str) else f"at {kind_of(use.location)}"


def _count_of(use: StorageUse) -> str:
    return f"{_number(use.element_count)} elements long"


def _most_likely(uses: list[tuple[StorageUse, Storage]], describe: Callable[[StorageUse], Hashable]) -> Hashable:
    """What most mentions say; of equals what fits the stored bytes, then what comes first, as in torch."""
    votes = Counter(describe(use) for use, _ in uses)
    most = max(votes.values())
    best = [(use, storage) for use, storage in uses if votes[describe(use)] == most]
    fitting = [use for use, storage in best if _bytes_of(use) == storage.stored_size]
    return describe(fitting[0] if fitting else best[0][0])


def _bytes_of(use: StorageUse) -> int | None:
    count = int64_of(use.element_count)
    return count * use.dtype.size if count is not None and use.dtype is not None else None


@rule(
    "PT-TEN-006",
    "location-unknown",
    axis="valid",
    level="warning",
    clause="tensors.location",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Storage locations are devices that torch knows.",
    message="location {location} is no device that torch knows by itself (storages: {count})",
    remedy="Load with map_location='cpu'; keep a note on the backend that the device belongs to.",
)
def location_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch refuses locations that no loaded backend answers for. The numbers themselves are not concerned.

    References: format.md 1.16, 2.2.
    """
    yield from _by_location(document, known=False)


@rule(
    "PT-TEN-024",
    "location-not-cpu",
    axis="advice",
    level="info",
    clause="tensors.location",
    kinds=PICKLED,
    needs=("objects",),
    per="place",
    title="Storages come from the CPU.",
    message="location {location}: not the CPU (storages: {count})",
    remedy="Load with map_location='cpu' where the device is not there.",
)
def location_not_cpu(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch puts each storage back on its device and fails where there is none, unless told otherwise.

    References: format.md 2.2.
    """
    yield from _by_location(document, known=True)


def _by_location(document: TorchDocument, *, known: bool) -> Iterator[Violation]:
    """One violation for each location but the CPU, at its first storage."""
    found: dict[str, list[tuple[Storage, str | None]]] = {}
    for storage, tensor in stored_storages(document):
        location = storage.location
        if location is not None and location != "cpu" and bool(KNOWN_LOCATION.fullmatch(location)) == known:
            found.setdefault(location, []).append((storage, tensor))
    for location, storages in found.items():
        storage, tensor = storages[0]
        place = storage.place
        yield at(place, record=storage.source, tensor=tensor, location=location, count=len(storages))


@rule(
    "PT-TEN-019",
    "storage-larger-than-views",
    axis="advice",
    level="info",
    clause="tensors.storage-size",
    kinds=PICKLED,
    needs=("objects",),
    per="record",
    title="Storages hold no more than their tensors show.",
    message="{unused} of {total} bytes of the storage belong to no tensor",
    remedy="To save space, clone the tensors before saving. The other bytes may hold data nobody meant to pass on.",
)
def storage_larger_than_views(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a tensor cut out of a larger one is saved with the whole storage. What is left over costs space and
    may disclose more than was meant.

    References: format.md 2.5, point 5.
    """
    if document.evidence.get("objects") != COMPLETE:
        return  # tensors behind the break are not known
    by_storage = tensor_users(document)
    for storage in document.storages:
        tensors: list[tuple[str | None, Tensor]] = by_storage.get(id(storage), [])
        whole = storage.payload_expected and storage.stored_size in (None, storage.byte_count)
        unused = unused_bytes(storage, (tensor for _, tensor in tensors)) if tensors and whole else 0
        if unused:
            name, tensor = tensors[0]
            place = storage.span or tensor_span(tensor)
            yield at(place, record=storage.record, tensor=name, unused=unused, total=storage.byte_count)


@rule(
    "PT-TEN-021",
    "bool-neither-0-nor-1",
    axis="valid",
    level="warning",
    clause="tensors.storage-type",
    kinds=ARCHIVED,
    needs=("payload", "objects"),
    per="record",
    title="Bool storages hold only the bytes 0 and 1.",
    message="{count} of {total} bool values are neither 0 nor 1",
    remedy="Compare with another copy; readers take such a byte for true, or for something undefined.",
)
def bool_neither_0_nor_1(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a bool with another value behaves differently from one operation to the next.

    References: format.md 2.3.
    """
    names = {storage.record: tensor for storage, tensor in stored_storages(document)}
    for found in document.facts.get("odd-bools", ()):
        yield at(found.span, record=found.record, tensor=names.get(found.record), count=found.count, total=found.total)


@rule(
    "PT-TEN-022",
    "big-endian-not-swapped",
    axis="valid",
    level="warning",
    clause="tensors.byte-order",
    kinds=ARCHIVED,
    needs=("objects", "texts"),
    per="place",
    title="Big-endian files hold no types that torch forgets to swap.",
    message="{dtype} in a big-endian file: torch reads these bytes without swapping them",
    remedy="Swap the bytes after loading on a little-endian host, or let fdd read them, which swaps by the tensor's own type.",
)
def big_endian_not_swapped(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch swaps by the type of the storage, and these types are kept as bytes. Their numbers come out wrong
    without a message.

    References: format.md 1.14.
    """
    if document.texts.get("byteorder") != b"big":
        return
    for tensors in tensor_users(document).values():
        name, tensor = tensors[0]
        if tensor.dtype is not None and tensor.dtype.untyped and tensor.dtype.swap > 1:
            yield at(tensor_span(tensor), record=pickle_of(tensor), tensor=name, dtype=tensor.dtype.name)

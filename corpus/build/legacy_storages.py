# SPDX-License-Identifier: Apache-2.0
"""Legacy streams whose keys, counts, payloads or persistent ids are wrong (PT-LEG)."""

from __future__ import annotations

import struct

from corpus.build.good import small_state_dict
from corpus.build.kit import (
    Call,
    Global,
    LegacyParts,
    Persistent,
    Storage,
    Tensor,
    cut,
    dump,
    legacy_parts,
    ordered_dict,
    recipe,
    state_dict,
    storage,
    storage_block,
    tensor,
)

FIRST, SECOND = "94000000000000", "94000000000064"


def two_tensors() -> LegacyParts:
    """Two tensors with storages of three and two elements."""
    return legacy_parts(state_dict({"a": tensor([1.0, 2.0, 3.0]), "b": tensor([4.0, 5.0])}))


def with_id(identifier: tuple[object, ...], size: int = 2, offset: int = 0) -> LegacyParts:
    """One tensor whose persistent id is written by hand; its storage has four elements."""
    arguments = (Persistent(identifier), offset, (size,), (1,), False, ordered_dict())
    parts = legacy_parts({"w": tensor([1.0, 2.0, 3.0, 4.0])})
    parts.pickle = dump({"w": Call(Global("torch._utils", "_rebuild_tensor_v2"), arguments)})
    return parts


@recipe("legacy/key-list-wrong-twice.pth")
def key_twice() -> bytes:
    """One key stands in the list twice, with a storage for each."""
    parts = two_tensors()
    parts.keys = dump([FIRST, FIRST, SECOND])
    parts.blocks.insert(1, parts.blocks[0])
    return parts.join()


@recipe("legacy/key-list-wrong-number.pth")
def key_number() -> bytes:
    """A key is a number instead of a text."""
    parts = two_tensors()
    parts.keys = dump([int(FIRST), SECOND])
    return parts.join()


@recipe("legacy/key-list-wrong-dict.pth")
def key_dict() -> bytes:
    """A dict instead of the list: nothing tells the order of the storages."""
    parts = two_tensors()
    parts.keys = dump({FIRST: 3, SECOND: 2})
    return parts.join()


@recipe("legacy/key-list-unsorted.pth")
def keys_unsorted() -> bytes:
    """The greater key comes first, and its storage too."""
    parts = two_tensors()
    parts.keys = dump([SECOND, FIRST])
    parts.blocks.reverse()
    return parts.join()


@recipe("legacy/key-without-counterpart-unused.pth")
def key_unused() -> bytes:
    """The list names a storage that the object does not use."""
    parts = two_tensors()
    parts.keys = dump([FIRST, "94000000000032", SECOND])
    parts.blocks.insert(1, storage_block(storage([9.0], "float64")))
    return parts.join()


@recipe("legacy/key-without-counterpart-missing.pth")
def key_missing() -> bytes:
    """The list leaves out a storage of the object: torch hands out whatever lies in memory."""
    parts = two_tensors()
    parts.keys = dump([FIRST])
    del parts.blocks[1]
    return parts.join()


@recipe("legacy/element-count-differs.pth")
def count_differs() -> bytes:
    """The count in front of the first storage is one too small; all its bytes are there."""
    parts = two_tensors()
    parts.blocks[0] = struct.pack("<q", 2) + parts.blocks[0][8:]
    return parts.join()


@recipe("legacy/element-count-differs-bytes-too.pth")
def count_and_bytes_differ() -> bytes:
    """The first storage has one element less than the object says, in its count and in its bytes."""
    parts = two_tensors()
    parts.blocks[0] = struct.pack("<q", 2) + parts.blocks[0][8:16]
    return parts.join()


@recipe("legacy/element-count-absurd-negative.pth")
def count_negative() -> bytes:
    """A negative count."""
    parts = two_tensors()
    parts.blocks[0] = struct.pack("<q", -3) + parts.blocks[0][8:]
    return parts.join()


@recipe("legacy/element-count-absurd-great.pth")
def count_great() -> bytes:
    """A count that leads past the end of the file, one flipped bit away from the right one."""
    parts = two_tensors()
    parts.blocks[1] = struct.pack("<q", 2 | 1 << 40) + parts.blocks[1][8:]
    return parts.join()


@recipe("legacy/stream-cut-storage.pth")
def cut_storage() -> bytes:
    """The file ends inside the first of two storages."""
    parts = two_tensors()
    return cut(parts.join(), parts.offsets["blocks"] + 15)


@recipe("legacy/stream-cut-count.pth")
def cut_count() -> bytes:
    """The file ends inside the count of the second storage."""
    parts = two_tensors()
    return cut(parts.join(), parts.offsets["blocks"] + 24)


@recipe("legacy/stream-cut-last-byte.pth")
def cut_last_byte() -> bytes:
    """The last byte is missing."""
    return cut(legacy_parts(small_state_dict()).join(), -1)


@recipe("legacy/legacy-id-wrong.pth")
def id_wrong() -> bytes:
    """A persistent id of five items, as in an archive."""
    return with_id(("storage", Global("torch", "FloatStorage"), FIRST, "cpu", 4)).join()


@recipe("legacy/legacy-id-wrong-module.pth")
def module_id_wrong() -> bytes:
    """The id of a module class lacks its source."""
    parts = legacy_parts([tensor([1.0]), Persistent(("module", Global("scaling", "Scale"), "scaling.py"))])
    return parts.join()


@recipe("legacy/view-of-storage-pass.pth")
def view() -> bytes:
    """As early releases saved it: the id shows elements 1 to 3 of a storage of four."""
    return with_id(("storage", Global("torch", "FloatStorage"), FIRST, "cpu", 4, ("94000000000128", 1, 2))).join()


@recipe("legacy/view-of-storage-wrong.pth")
def view_wrong() -> bytes:
    """The part begins behind the storage."""
    return with_id(("storage", Global("torch", "FloatStorage"), FIRST, "cpu", 4, ("94000000000128", 99, 2))).join()


@recipe("legacy/view-of-storage-wrong-tensor.pth")
def view_tensor_wrong() -> bytes:
    """The tensor lies inside the storage, but not inside the part it is a view of."""
    return with_id(("storage", Global("torch", "FloatStorage"), FIRST, "cpu", 4, ("94000000000128", 1, 2)), size=3).join()


@recipe("legacy/storage-type-unknown.pth")
def type_unknown() -> bytes:
    """A storage type that torch does not have; what stands behind it can still be found."""
    kind = Global("torch", "FlootStorage")
    odd = Tensor(Storage(kind, bytes(range(12)), 3), (3,), (1,))
    return legacy_parts(state_dict({"a": odd, "b": tensor([4.0, 5.0])})).join()

# SPDX-License-Identifier: Apache-2.0
"""The two older containers: the stream of pickles (format.md 4.1) and the tar of torch 0.1 (4.2)."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corpus.build.pickles import Global, Persistent, dump
from corpus.build.tensors import Lowering, Storage, Tensor, address_keys

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
STREAM_VERSION = 1001
TAR_VERSION = 1000


def sys_info(version: int = STREAM_VERSION, little_endian: bool = True) -> dict[str, object]:
    """The dict that describes the writing machine."""
    sizes = {"short": 2, "int": 4, "long": 4}
    return {"protocol_version": version, "little_endian": little_endian, "type_sizes": sizes}


def storage_block(storage: Storage) -> bytes:
    """A storage as both containers hold it: the number of elements, and the data."""
    return struct.pack("<q", storage.numel) + storage.data


@dataclass
class LegacyParts:
    """The parts of a legacy stream, open to change before they are joined."""

    magic: bytes
    version: bytes
    sys_info: bytes
    pickle: bytes
    keys: bytes
    blocks: list[bytes] = field(default_factory=list)

    def join(self) -> bytes:
        """Return the stream."""
        return b"".join([self.magic, self.version, self.sys_info, self.pickle, self.keys, *self.blocks])

    @property
    def offsets(self) -> dict[str, int]:
        """Where each pickle, and the first storage block, begins."""
        offsets, position = {}, 0
        for name in ("magic", "version", "sys_info", "pickle", "keys"):
            offsets[name] = position
            position += len(getattr(self, name))
        offsets["blocks"] = position
        return offsets


def legacy_parts(value: object, *, protocol: int = 2, little_endian: bool = True, keys: Sequence[str] = ()) -> LegacyParts:
    """Make the parts of a legacy stream. ``keys`` are given to storages in the order of first use, instead of addresses."""
    lowering = Lowering(lambda number: keys[number] if number < len(keys) else address_keys(number), view_metadata=True)
    pickle = dump(lowering.lower(value), protocol)
    rows = sorted(lowering.keyed, key=lambda row: row[0])
    return LegacyParts(
        dump(MAGIC_NUMBER, protocol),
        dump(STREAM_VERSION, protocol),
        dump(sys_info(little_endian=little_endian), protocol),
        pickle,
        dump([key for key, _ in rows], protocol),
        [storage_block(storage) for _, storage in rows],
    )


def legacy_stream(value: object, *, protocol: int = 2, little_endian: bool = True, keys: Sequence[str] = ()) -> bytes:
    """Make a whole legacy stream."""
    return legacy_parts(value, protocol=protocol, little_endian=little_endian, keys=keys).join()


@dataclass(frozen=True)
class OldTensor:
    """A tensor of the tar format: its own key, and that of its storage."""

    key: int
    storage_key: int
    tensor: Tensor


def tar_members(
    value: object, tensors: Iterable[OldTensor], views: Sequence[tuple[int, int, int, int]] | None = (), protocol: int = 2
) -> dict[str, bytes]:  # fmt: skip
    """Make the four members. ``value`` refers to a tensor by ``Persistent("<its key>")``.

    ``views`` are (target key, root key, offset, number of elements); None leaves the list away, as the first generation did.
    """
    tensors = list(tensors)
    storages = {old.storage_key: old.tensor.storage for old in tensors}
    tensor_part = [dump(len(tensors), protocol)]
    for old in tensors:
        size, stride = old.tensor.size, old.tensor.stride
        kind = Global("torch", old.tensor.storage.cls.name.replace("Storage", "Tensor"))
        tensor_part.append(dump((old.key, old.storage_key, kind), protocol))
        tensor_part.append(struct.pack(f"<i4x{len(size)}q{len(stride)}qq", len(size), *size, *stride, old.tensor.offset))
    storage_part = [dump(len(storages), protocol)]
    for key, storage in storages.items():
        storage_part.append(dump((key, storage.location, storage.cls), protocol) + storage_block(storage))
    if views is not None:
        storage_part.append(dump(list(views), protocol))
    return {
        "sys_info": dump(sys_info(TAR_VERSION), protocol),
        "pickle": dump(value, protocol),
        "tensors": b"".join(tensor_part),
        "storages": b"".join(storage_part),
    }


def tar_file(members: dict[str, bytes]) -> bytes:
    """Put members into a tar as torch 0.1 did; times and owners are zero."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    return buffer.getvalue()


def by_key(key: int) -> Persistent:
    """Refer to a tensor of the tar format."""
    return Persistent(str(key))

# SPDX-License-Identifier: Apache-2.0
"""Archives that two readers may take for different things, and places where code hides from one look at each record."""

from __future__ import annotations

import bz2
import io
import struct
import zipfile
import zlib
from dataclasses import replace

from corpus.build.kit import (
    Archive,
    Member,
    archive,
    cut,
    eager_records,
    extra_field,
    insert,
    recipe,
    take_apart,
    with_serialization_id,
)
from corpus.build.pickle_kit import around
from corpus.build.safety import CLEAN, PAYLOAD
from corpus.build.scripts_good import torchscript_module
from corpus.build.zip_base import base, broken, broken_record, with_record
from fdd.container.zip.structs import (
    CENTRAL_HEADER_SIGNATURE,
    END_RECORD,
    EXTRA_ZIP64,
    METHOD_DEFLATED,
    ZIP64_END_SIGNATURE,
)

# Ends


@recipe("zip/second-end-record-behind-ends.pt")
def second_end_record_behind_ends() -> bytes:
    """The end record stands there twice: readers that take the last one find no ZIP64 records in front of it."""
    return base() + base()[-END_RECORD.size :]


@recipe("zip/second-end-record-orphan-zip64.pt")
def second_end_record_orphan_zip64() -> bytes:
    """Four bytes part the ZIP64 locator from the end record: only readers that search for it see the ZIP64 records."""
    return insert(base(), len(base()) - END_RECORD.size, b"gap!")


@recipe("zip/zip64-locator-not-moved.pt")
def zip64_locator_not_moved() -> bytes:
    """Sixteen bytes behind the directory push the end records back; the locator still names the old place."""
    return insert(base(), base().index(ZIP64_END_SIGNATURE), b"sixteen bytes...")


# Fields


@recipe("zip/zip64-field-empty.pt")
def zip64_field_empty() -> bytes:
    """A ZIP64 field without a number, which the header does not call for."""

    def change(member: Member) -> None:
        assert member.central is not None
        member.central.extra = extra_field(EXTRA_ZIP64, b"")

    return broken_record(change)


@recipe("zip/zip64-field-twice.pt")
def zip64_field_twice() -> bytes:
    """Two ZIP64 fields: the header refers its size to the one, and the other names another size."""

    def change(member: Member) -> None:
        assert member.central is not None
        true, other = struct.pack("<Q", len(member.payload)), struct.pack("<Q", 99999)
        member.central.extra = extra_field(EXTRA_ZIP64, true) + extra_field(EXTRA_ZIP64, other)
        member.central.uncompressed_size = 0xFFFFFFFF

    return broken_record(change)


@recipe("zip/local-sizes-differ-pass.pt")
def local_checksum_stated() -> bytes:
    """A local header states the true checksum although a descriptor follows: unusual, and no contradiction."""

    def change(member: Member) -> None:
        assert member.central is not None and member.local is not None
        member.local.crc32 = member.central.crc32

    return broken_record(change)


# Names


@recipe("zip/name-leaves-folder-control.pt")
def name_control() -> bytes:
    """A name with a control character of the second block: a terminal may end the line there."""
    return with_record("notes\x85", b"next line")


@recipe("zip/file-and-folder-in-one.pt")
def file_and_folder_in_one() -> bytes:
    """A record with the name of a folder has contents."""
    return with_record("extra/", b"a folder with bytes of its own")


@recipe("identification/small-record-in-another-folder.pt")
def small_record_in_another_folder() -> bytes:
    """A version record in a folder of its own comes first: the file is still no unfinished save."""

    def change(parts: Archive) -> None:
        stray = parts.member(b"/version").copy()
        stray.rename(b"Other/version")
        parts.members.insert(0, stray)

    return broken(change)


@recipe("identification/model-json-beside-object.pt")
def model_json_beside_object() -> bytes:
    """Somebody added a model.json to a file of torch.save: that makes no TorchScript of 1.0 of it."""
    return with_record("model.json", b'{"author": "somebody"}')


@recipe("records/storage-orphan-leading-zero.pt")
def storage_orphan_leading_zero() -> bytes:
    """A storage 00 beside the storage 0: no pickle refers to it, and no reader takes it for the other."""
    return with_record("data/00", bytes(8))


@recipe("records/storage-missing-in-tensors.pt")
def storage_missing_in_tensors() -> bytes:
    """The storage of a file of today lies in tensors/, where only torch 1.4 looked."""
    return broken(lambda parts: parts.member(b"/data/0").rename(b"archive/tensors/0"))


# Code in odd places


def _zip_of(name: str, payload: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr(zipfile.ZipInfo(name), payload)
    return buffer.getvalue()


@recipe("safety/hidden-code-in-zip.pt")
def hidden_in_zip() -> bytes:
    """An unknown record is a plain ZIP, and a pickle inside calls something."""
    return around(CLEAN, (("notes", _zip_of("a.bin", PAYLOAD)),))


@recipe("safety/nested-file-dangerous.pt")
def hidden_in_torch_file() -> bytes:
    """An unknown record is a whole torch file that calls something."""
    return around(CLEAN, (("notes", around(PAYLOAD)),))


@recipe("safety/hidden-compressed.pt")
def hidden_compressed() -> bytes:
    """An unknown record is compressed once more: what is inside cannot be told."""
    return around(CLEAN, (("notes", bz2.compress(PAYLOAD)),))


@recipe("safety/hidden-code-small-record.pt")
def hidden_in_small_record() -> bytes:
    """The record byteorder is a pickle."""
    records = [(name, PAYLOAD if name == "byteorder" else payload) for name, payload in eager_records({"epoch": 3})]
    return archive(with_serialization_id(records))


@recipe("safety/hidden-code-folder-record.pt")
def hidden_in_folder_record() -> bytes:
    """A record with the name of a folder is a pickle."""
    return around(CLEAN, (("extra/", PAYLOAD),))


@recipe("safety/hidden-code-behind-zeros.pt")
def hidden_behind_zeros() -> bytes:
    """A pickle in bytes of no owner, with some zeros in front."""

    def change(parts: Archive) -> None:
        parts.member(b"/version").gap = bytes(13) + PAYLOAD

    return broken(change)


@recipe("safety/hidden-code-unlisted-deflated.pt")
def hidden_unlisted_deflated() -> bytes:
    """A deflated pickle with a local header that the directory leaves out."""
    found = take_apart(around(CLEAN, (("notes", PAYLOAD),)))
    member = found.member(b"/notes")
    assert member.local is not None
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    member.payload = packer.compress(PAYLOAD) + packer.flush()
    member.descriptor = b""
    member.local = replace(
        member.local, flags=0, method=METHOD_DEFLATED, crc32=zlib.crc32(PAYLOAD),
        compressed_size=len(member.payload), uncompressed_size=len(PAYLOAD),
    )  # fmt: skip
    member.central = None
    return found.build()


@recipe("damage/script-directory-cut.pt")
def script_directory_cut() -> bytes:
    """TorchScript that ends inside its directory: the first entry is left, and the others hide nothing."""
    data = torchscript_module()
    second = data.index(CENTRAL_HEADER_SIGNATURE, data.index(CENTRAL_HEADER_SIGNATURE) + 4)
    return cut(data, second + 20)


@recipe("damage/save-interrupted-bit-flipped.pt")
def save_interrupted_bit_flipped() -> bytes:
    """What a failed save of torch 1.6 leaves, with one bit of its only name turned: the local header still has the name."""
    data = archive([("version", b"3\n")], "model")
    at = data.rindex(b"model/version") + len(b"model/ver")
    return data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :]

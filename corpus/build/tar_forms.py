# SPDX-License-Identifier: Apache-2.0
"""Torch tars with faults in the tar, its members, entries and keys (PT-TAR)."""

from __future__ import annotations

import io
import struct
import tarfile

from corpus.build.good import legacy_tar
from corpus.build.kit import (
    Global,
    OldTensor,
    Persistent,
    Tensor,
    by_key,
    cut,
    dump,
    flip_bit,
    patch,
    recipe,
    storage,
    storage_block,
    sys_info,
    tar_file,
    tar_members,
    tensor,
)

BLOCK = 512
FLOAT_STORAGE, FLOAT_TENSOR = Global("torch", "FloatStorage"), Global("torch", "FloatTensor")


def members() -> dict[str, bytes]:
    """Two tensors, of storages 7 and 8."""
    old = [OldTensor(1, 7, tensor([1.0, 2.0, 3.0])), OldTensor(2, 8, tensor([4.0, 5.0]))]
    return tar_members({"a": by_key(1), "b": by_key(2)}, old)


def with_member(row: tarfile.TarInfo, data: bytes = b"") -> bytes:
    """The good members and one more."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members().items():
            add(tar, tarfile.TarInfo(name), content)
        add(tar, row, data)
    return buffer.getvalue()


def add(tar: tarfile.TarFile, row: tarfile.TarInfo, data: bytes) -> None:
    """Add one member."""
    row.size = len(data)
    tar.addfile(row, io.BytesIO(data))


def link(name: str, kind: bytes, target: str) -> tarfile.TarInfo:
    """A member that is a link."""
    row = tarfile.TarInfo(name)
    row.type, row.linkname = kind, target
    return row


def header_of(data: bytes, name: bytes) -> int:
    """Offset of the header of a member."""
    return next(at for at in range(0, len(data), BLOCK) if data[at : at + 100].rstrip(b"\0") == name)


def end_of(data: bytes) -> int:
    """Offset of the end mark."""
    return len(data.rstrip(b"\0")) + -len(data.rstrip(b"\0")) % BLOCK


# The tar


@recipe("tar/tar-member-missing.pth")
def member_missing() -> bytes:
    """The member `tensors` is missing, and the tar is closed properly."""
    return tar_file({name: data for name, data in members().items() if name != "tensors"})


@recipe("tar/tar-cut.pth")
def tar_cut() -> bytes:
    """The file ends in front of the last header."""
    data = tar_file(members())
    return cut(data, header_of(data, b"storages"))


@recipe("tar/tar-cut-in-member.pth")
def cut_in_member() -> bytes:
    """The file ends inside the last member."""
    data = tar_file(members())
    return cut(data, header_of(data, b"storages") + BLOCK + 40)


@recipe("tar/tar-cut-in-header.pth")
def cut_in_header() -> bytes:
    """The file ends inside a header."""
    data = tar_file(members())
    return cut(data, header_of(data, b"tensors") + 200)


@recipe("tar/tar-checksum-wrong.pth")
def checksum_wrong() -> bytes:
    """One bit of the time in a header is turned round."""
    data = tar_file(members())
    return flip_bit(data, header_of(data, b"pickle") + 140)


@recipe("tar/tar-end-mark-short.pth")
def end_short() -> bytes:
    """One zero block instead of two."""
    data = tar_file(members())
    return cut(data, end_of(data) + BLOCK)


@recipe("tar/tar-end-mark-missing.pth")
def end_missing() -> bytes:
    """All members and no end mark."""
    data = tar_file(members())
    return cut(data, end_of(data))


@recipe("tar/tar-filler-used.pth")
def filler_used() -> bytes:
    """A note in the bytes that fill up a member."""
    data = tar_file(members())
    return patch(data, header_of(data, b"tensors") - 20, b"nobody looks here")


@recipe("tar/tar-filler-used-dimensions.pth")
def dimensions_filler_used() -> bytes:
    """The four unused bytes behind a number of dimensions are not zero."""
    parts = members()
    at = parts["tensors"].index(struct.pack("<i4xq", 1, 3))
    parts["tensors"] = patch(parts["tensors"], at + 4, b"\x01")
    return tar_file(parts)


@recipe("tar/bytes-after-tar.pth")
def bytes_after() -> bytes:
    """Bytes of no use behind the end mark."""
    return tar_file(members()) + b"left over"


# Members


@recipe("tar/tar-member-twice.pth")
def member_twice() -> bytes:
    """Two members called `pickle`: Python takes the second, other readers the first."""
    return with_member(tarfile.TarInfo("pickle"), dump({"a": by_key(2), "b": by_key(1)}))


@recipe("tar/tar-member-unsafe-link.pth")
def member_link() -> bytes:
    """A symbolic link beside the members."""
    return with_member(link("notes", tarfile.SYMTYPE, "/etc/hostname"))


@recipe("tar/tar-member-unsafe-hard-link.pth")
def member_hard_link() -> bytes:
    """A hard link beside the members."""
    return with_member(link("copy", tarfile.LNKTYPE, "pickle"))


@recipe("tar/tar-member-unsafe-parent.pth")
def member_parent() -> bytes:
    """A member that leads out of the folder it is unpacked into."""
    return with_member(tarfile.TarInfo("../outside"), b"inert")


@recipe("tar/tar-member-unsafe-absolute.pth")
def member_absolute() -> bytes:
    """A member with an absolute name."""
    return with_member(tarfile.TarInfo("/tmp/outside"), b"inert")


@recipe("tar/tar-member-unknown.pth")
def member_unknown() -> bytes:
    """A note of somebody's own beside the members."""
    return with_member(tarfile.TarInfo("README"), b"trained in 2017\n")


@recipe("tar/tar-member-link-instead.pth")
def member_link_instead() -> bytes:
    """`storages` is a link: torch follows it when it opens the member, and fdd does not."""
    parts = members()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name in ("sys_info", "pickle", "tensors"):
            add(tar, tarfile.TarInfo(name), parts[name])
        add(tar, link("storages", tarfile.SYMTYPE, "tensors"), b"")
    return buffer.getvalue()


@recipe("tar/extended-headers-pass.pth")
def extended_headers() -> bytes:
    """As Python 3 packs files from a disk: a time with fractions needs an extended header for each member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members().items():
            row = tarfile.TarInfo(name)
            row.mtime = 1488000000.25
            add(tar, row, data)
    return buffer.getvalue()


@recipe("tar/tar-version-wrong.pth")
def version_wrong() -> bytes:
    """The version of the legacy stream in a tar."""
    return tar_file({**members(), "sys_info": dump(sys_info(1001))})


# Entries and keys


@recipe("tar/first-generation-pass.pth")
def first_generation() -> bytes:
    """As the first releases wrote it: the storage key last, no locations, no views, protocol 3 of Python 3."""
    body = struct.pack("<i4xqqq", 1, 3, 1, 0)
    return tar_file(
        {
            "sys_info": dump(sys_info(1000), 3),
            "pickle": dump({"w": by_key(1)}, 3),
            "tensors": dump(1, 3) + dump((1, FLOAT_TENSOR, 7), 3) + body,
            "storages": dump(1, 3) + dump((7, FLOAT_STORAGE), 3) + storage_block(storage([1.0, 2.0, 3.0])),
        }
    )


@recipe("tar/text-persistent-ids-pass.pth")
def text_ids() -> bytes:
    """Protocol 0 writes keys as text ids (PERSID), which this form can read back."""
    return tar_file({**members(), "pickle": b"(dVa\nP1\nsVb\nP2\ns."})


@recipe("tar/views-pass.pth")
def views() -> bytes:
    """A tensor of a storage that shows the last two of three elements."""
    root = OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))
    parts = tar_members({"whole": by_key(1), "part": by_key(2)}, [root], [(9, 7, 1, 2)])
    parts["tensors"] = dump(2) + parts["tensors"][len(dump(1)) :]
    parts["tensors"] += dump((2, 9, FLOAT_TENSOR)) + struct.pack("<i4xqqq", 1, 2, 1, 0)
    return tar_file(parts)


@recipe("tar/tar-view-outside.pth")
def view_outside() -> bytes:
    """A view that reaches one element too far."""
    return tar_file(tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))], [(9, 7, 1, 3)]))


@recipe("tar/tar-view-outside-tensor.pth")
def view_outside_tensor() -> bytes:
    """A tensor that lies inside the storage, but not inside the view it names."""
    root = OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))
    parts = tar_members({"whole": by_key(1), "part": by_key(2)}, [root], [(9, 7, 0, 2)])
    parts["tensors"] = dump(2) + parts["tensors"][len(dump(1)) :]
    parts["tensors"] += dump((2, 9, FLOAT_TENSOR)) + struct.pack("<i4xqqq", 1, 3, 1, 0)
    return tar_file(parts)


@recipe("tar/view-outside-storage.pth")
def tensor_outside() -> bytes:
    """A tensor of nine elements over a storage of three: torch hands out memory that is not its own."""
    whole = tensor([1.0, 2.0, 3.0])
    return tar_file(tar_members({"w": by_key(1)}, [OldTensor(1, 7, Tensor(whole.storage, (9,), (1,)))]))


@recipe("tar/tar-entries-wrong-few.pth")
def entries_few() -> bytes:
    """`tensors` announces one entry more than it has."""
    parts = members()
    parts["tensors"] = dump(3) + parts["tensors"][len(dump(2)) :]
    return tar_file(parts)


@recipe("tar/tar-entries-wrong-rest.pth")
def entries_rest() -> bytes:
    """`tensors` announces one entry less than it has."""
    parts = members()
    parts["tensors"] = dump(1) + parts["tensors"][len(dump(2)) :]
    parts["pickle"] = dump({"a": by_key(1)})
    return tar_file(parts)


@recipe("tar/tar-entries-wrong-count.pth")
def entries_count() -> bytes:
    """A text instead of the number of entries."""
    parts = members()
    parts["storages"] = dump("two") + parts["storages"][len(dump(2)) :]
    return tar_file(parts)


@recipe("tar/tar-entries-wrong-views.pth")
def entries_views() -> bytes:
    """Something else than a list of views behind the storages."""
    parts = members()
    parts["storages"] = parts["storages"][: -len(dump([]))] + dump({"views": 0})
    return tar_file(parts)


@recipe("tar/tar-entry-cut-storage.pth")
def entry_cut_storage() -> bytes:
    """The count of the last storage is greater than the member."""
    parts = members()
    block = storage_block(storage([4.0, 5.0]))
    parts["storages"] = parts["storages"].replace(block, struct.pack("<q", 200) + block[8:])
    return tar_file(parts)


@recipe("tar/tar-entry-cut-negative.pth")
def entry_cut_negative() -> bytes:
    """A negative count."""
    parts = members()
    block = storage_block(storage([4.0, 5.0]))
    parts["storages"] = parts["storages"].replace(block, struct.pack("<q", -2) + block[8:])
    return tar_file(parts)


@recipe("tar/tar-entry-cut-dimensions.pth")
def entry_cut_dimensions() -> bytes:
    """More dimensions than the member has room for."""
    parts = members()
    at = parts["tensors"].index(struct.pack("<i4xq", 1, 2))
    parts["tensors"] = patch(parts["tensors"], at, b"\x40")
    return tar_file(parts)


@recipe("tar/tar-key-unknown.pth")
def key_unknown() -> bytes:
    """The object refers to a tensor that is not there."""
    parts = members()
    parts["pickle"] = dump({"a": by_key(1), "b": by_key(99)})
    return tar_file(parts)


@recipe("tar/tar-key-unknown-storage.pth")
def storage_unknown() -> bytes:
    """A tensor names a storage that is not there."""
    parts = members()
    parts["tensors"] = parts["tensors"].replace(dump((2, 8, FLOAT_TENSOR)), dump((2, 9, FLOAT_TENSOR)))
    return tar_file(parts)


@recipe("tar/tar-key-twice.pth")
def key_twice() -> bytes:
    """Two tensors with one key."""
    parts = members()
    parts["tensors"] = parts["tensors"].replace(dump((2, 8, FLOAT_TENSOR)), dump((1, 8, FLOAT_TENSOR)))
    parts["pickle"] = dump({"a": by_key(1)})
    return tar_file(parts)


@recipe("tar/class-source-pass.pth")
def class_source() -> bytes:
    """A class with its source, as later releases kept it."""
    parts = members()
    cls = Persistent((Global("scaling", "Scale"), "scaling.py", "class Scale: pass\n"))
    parts["pickle"] = dump({"a": by_key(1), "b": by_key(2), "class": cls})
    return tar_file(parts)


@recipe("tar/other-reading-pickle.pth")
def trailing_pickle() -> bytes:
    """A pickle behind the end mark that calls something."""
    return legacy_tar() + dump(Global("posix", "getcwd"))


@recipe("tar/tar-entries-wrong-more-storages.pth")
def entries_more_storages() -> bytes:
    """`storages` announces one entry more than it has; the list of views stands in its place."""
    parts = members()
    parts["storages"] = dump(3) + parts["storages"][len(dump(2)) :]
    return tar_file(parts)


@recipe("tar/tar-entries-wrong-less-storages.pth")
def entries_less_storages() -> bytes:
    """`storages` announces one entry less than it has; the entry stands where the list of views should."""
    parts = members()
    parts["storages"] = dump(1) + parts["storages"][len(dump(2)) :]
    return tar_file(parts)


@recipe("tar/tar-filler-used-checksum.pth")
def checksum_spaced() -> bytes:
    """A leading zero of a checksum is a space: the same number, written as no program writes it."""
    data = tar_file(members())
    return flip_bit(data, header_of(data, b"tensors") + 148, 4)

# SPDX-License-Identifier: Apache-2.0
"""Files as accidents leave them: cut off, zeroed, shifted, converted, added to, packed again."""

from __future__ import annotations

import random
from dataclasses import replace

from corpus.build.kit import (
    Archive,
    Call,
    Member,
    OldTensor,
    Tensor,
    archive,
    by_key,
    cut,
    eager,
    eager_records,
    extra_field,
    flip_bit,
    insert,
    legacy_stream,
    patch,
    recipe,
    rezip,
    state_dict,
    storage,
    take_apart,
    tar_file,
    tar_members,
    tensor,
    with_serialization_id,
)
from fdd.container.zip.structs import FLAG_ENCRYPTED, LOCAL_HEADER_SIGNATURE

NUMBERS = 320
"""Elements of the larger storage: more than two sectors."""


def _values(count: int) -> list[float]:
    """Numbers without runs of equal bytes; always the same ones."""
    source = random.Random(count)
    return [source.uniform(-1.0, 1.0) for _ in range(count)]


def _model() -> Call:
    """Three tensors, the second one large."""
    names: dict[str, object] = {
        "encoder.weight": tensor(_values(32), (8, 4)),
        "encoder.table": tensor(_values(NUMBERS), (NUMBERS // 8, 8)),
        "head.bias": tensor(_values(4)),
    }
    return state_dict(names, {"": 1})


def _file() -> bytes:
    return eager(_model(), "model")


def _small() -> bytes:
    return eager({"w": tensor([1.0, 2.5])}, "model", era="1.9")


def _stream() -> bytes:
    return legacy_stream(_model())


def _header(data: bytes, name: bytes) -> int:
    """Offset of the local header of the record whose name ends so."""
    end = data.index(name)
    return data.rindex(LOCAL_HEADER_SIGNATURE, 0, end)


def _payload(data: bytes, number: int) -> int:
    """Offset of the payload of a storage: a multiple of 64."""
    end = data.index(b"model/data/%d" % number)
    return -(-(end + len(b"model/data/%d" % number) + 4) // 64) * 64


@recipe("damage/cut-off-in-records.pt")
def cut_off_in_records() -> bytes:
    """The file ends inside the second storage."""
    data = _file()
    return cut(data, _payload(data, 1) + 700)


@recipe("damage/cut-off-on-full-disk.pt")
def cut_off_on_full_disk() -> bytes:
    """The file ends inside the second storage, at a multiple of 512."""
    data = _file()
    return cut(data, (_payload(data, 1) + 700) // 512 * 512)


@recipe("damage/cut-off-in-pickle.pt")
def cut_off_in_pickle() -> bytes:
    """The file ends inside data.pkl: not even the names of the tensors are known."""
    return cut(_file(), 200)


@recipe("damage/cut-off-behind-records.pt")
def cut_off_behind_records() -> bytes:
    """The file ends inside the directory."""
    return cut(_file(), -200)


@recipe("damage/stream-cut-off.pth")
def stream_cut_off() -> bytes:
    """A legacy stream ends inside its second storage."""
    return cut(_stream(), -500)


@recipe("damage/stream-cut-off-in-object.pth")
def stream_cut_off_in_object() -> bytes:
    """A legacy stream ends inside the pickle of the object."""
    return cut(_stream(), 240)


@recipe("damage/tar-cut-off.pth")
def tar_cut_off() -> bytes:
    """A torch tar ends inside its last member."""
    data = tar_file(tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))]))
    return cut(data, data.rindex(b"storages") + 512 + 20)


@recipe("damage/zero-tail.pt")
def zero_tail() -> bytes:
    """Zeros from the middle of the second storage to the end of the file."""
    data = _file()
    start = _payload(data, 1) + 700
    return cut(data, start) + bytes(len(data) - start)


@recipe("damage/stream-zero-tail.pth")
def stream_zero_tail() -> bytes:
    """Zeros from the first storage of a legacy stream to its end."""
    data = _stream()
    return cut(data, -1400) + bytes(1400)


@recipe("damage/head-missing.pt")
def head_missing() -> bytes:
    """The first 512 bytes are gone."""
    return _file()[512:]


@recipe("damage/zero-hole.pt")
def zero_hole() -> bytes:
    """A sector of zeros inside the second storage."""
    data = _file()
    start = -(-_payload(data, 1) // 512) * 512
    return patch(data, start, bytes(512))


@recipe("damage/zero-hole-over-header.pt")
def zero_hole_over_header() -> bytes:
    """A sector of zeros over the end of the second storage and the local header of the third."""
    data = _file()
    return patch(data, _header(data, b"model/data/2") // 512 * 512, bytes(512))


@recipe("damage/bytes-lost.pt")
def bytes_lost() -> bytes:
    """64 bytes inside the second storage are gone."""
    data = _file()
    start = _payload(data, 1) + 256
    return data[:start] + data[start + 64 :]


@recipe("damage/stream-bytes-lost.pth")
def stream_bytes_lost() -> bytes:
    """16 bytes inside the second storage of a legacy stream are gone."""
    data = _stream()
    start = len(data) - 600
    return data[:start] + data[start + 16 :]


@recipe("damage/bytes-inserted.pt")
def bytes_inserted() -> bytes:
    """24 foreign bytes inside the second storage."""
    data = _file()
    return insert(data, _payload(data, 1) + 256, bytes(range(100, 124)))


@recipe("damage/block-repeated.pt")
def block_repeated() -> bytes:
    """A block of 512 bytes inside the second storage stands there twice."""
    data = _file()
    start = _payload(data, 1) + 64
    return insert(data, start + 512, data[start : start + 512])


@recipe("damage/header-lost.pt")
def header_lost() -> bytes:
    """The local header of the second storage is overwritten."""
    data = _file()
    return patch(data, _header(data, b"model/data/1"), bytes(range(64, 104)))


@recipe("damage/line-ends-converted.pt")
def line_ends_converted() -> bytes:
    """Each LF became CR LF."""
    return _small().replace(b"\n", b"\r\n")


@recipe("damage/line-ends-converted-to-cr.pt")
def line_ends_converted_to_cr() -> bytes:
    """Each LF became CR: which CR were there before, nothing tells."""
    return _small().replace(b"\n", b"\r")


@recipe("damage/stream-line-ends-converted.pth")
def stream_line_ends_converted() -> bytes:
    """Each LF of a legacy stream became CR LF."""
    return _stream().replace(b"\n", b"\r\n")


@recipe("damage/mangled-as-text.pt")
def mangled_as_text() -> bytes:
    """Read as UTF-8 and written again: U+FFFD stands for every byte that is none."""
    return _small().decode("utf-8", "replace").encode()


@recipe("damage/mangled-as-latin-1.pt")
def mangled_as_latin_1() -> bytes:
    """Read as Latin-1 and written as UTF-8: every high byte became two."""
    return _small().decode("latin-1").encode()


@recipe("damage/record-bit-flipped.pt")
def record_bit_flipped() -> bytes:
    """One bit of the second storage is turned."""
    data = _file()
    return flip_bit(data, _payload(data, 1) + 402, 6)


@recipe("damage/record-altered.pt")
def record_altered() -> bytes:
    """Eight bytes of the second storage are others."""
    data = _file()
    return patch(data, _payload(data, 1) + 402, b"\x01\x02\x03\x04\x05\x06\x07\x08")


@recipe("damage/appended-line-end.pt")
def appended_line_end() -> bytes:
    """A line end behind the archive."""
    return eager({"w": tensor([1.0])}, "model") + b"\r\n"


@recipe("damage/appended-form-boundary.pt")
def appended_form_boundary() -> bytes:
    """The closing boundary of a web form behind the archive."""
    return eager({"w": tensor([1.0])}, "model") + b"\r\n------WebKitFormBoundaryX3f--\r\n"


@recipe("damage/stream-appended-zeros.pth")
def stream_appended_zeros() -> bytes:
    """A legacy stream is filled up with zeros to 1024 bytes."""
    return legacy_stream({"w": tensor([1.0])}).ljust(1024, b"\0")


@recipe("damage/prepended-answer.pt")
def prepended_answer() -> bytes:
    """The headers of an HTTP answer in front of the archive."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\n\r\n" + eager({"w": tensor([1.0])}, "model")


@recipe("damage/several-saves.pt")
def several_saves() -> bytes:
    """Two saves into one open file."""
    return eager({"epoch": 1}, "model") + eager({"w": tensor([1.0])}, "model")


@recipe("damage/save-interrupted.pt")
def save_interrupted() -> bytes:
    """torch.save met an error before it wrote the object, and closed the archive."""
    return archive(with_serialization_id([("version", b"3\n"), ("byteorder", b"little")]), "model")


@recipe("damage/storages-missing.pt")
def storages_missing() -> bytes:
    """The last two of three storages are not in the archive."""
    records = [record for record in eager_records(_model()) if record[0] not in ("data/1", "data/2")]
    return archive(with_serialization_id(records), "model")


@recipe("damage/empty-tensors.pt")
def empty_tensors() -> bytes:
    """Three of four tensors have no element: one rank of a sharded model."""
    none: dict[str, object] = {f"block.{number}.weight": Tensor(storage([]), (0,), (1,)) for number in range(3)}
    return eager(state_dict({**none, "block.3.weight": tensor([1.0, 2.0])}, {"": 1}), "model")


def _by_tool(made_by: int, extra: bytes = b"", local: bytes = b"") -> bytes:
    """An archive of Python's zipfile, with what tells another tool."""
    taken = take_apart(rezip(eager({"w": tensor([1.0])}, "model", era="1.9")))
    for member in taken.members:
        assert member.central is not None and member.local is not None
        member.central.version_made_by, member.central.extra, member.local.extra = made_by, extra, local
    return taken.build()


@recipe("damage/repacked-by-python.pt")
def repacked_by_python() -> bytes:
    """Packed again by Python's zipfile."""
    return _by_tool(0x0314)


@recipe("damage/repacked-by-info-zip.pt")
def repacked_by_info_zip() -> bytes:
    """Packed again by Info-ZIP: version 3.0 on Unix, times and user ids."""
    times = extra_field(0x5455, b"\x03" + bytes(4))
    return _by_tool(0x031E, times, times)


@recipe("damage/repacked-by-7-zip.pt")
def repacked_by_seven_zip() -> bytes:
    """Packed again by 7-Zip: version 6.3, NTFS times in the directory only."""
    return _by_tool(0x033F, extra_field(0x000A, bytes(4) + b"\x01\x00\x18\x00" + bytes(24)))


@recipe("damage/packing-leftovers.pt")
def packing_leftovers() -> bytes:
    """Packed again on macOS, with what the Finder keeps in folders."""
    records = eager_records({"w": tensor([1.0])}, era="1.9")
    data = archive([*records, (".DS_Store", b"\0\0\0\1Bud1")], "model")
    return rezip(data)


@recipe("damage/top-folder-lost.pt")
def top_folder_lost() -> bytes:
    """The contents of the folder were packed, not the folder."""
    return rezip(eager({"w": tensor([1.0])}, "model", era="1.9"), rename=lambda name: name.partition("/")[2])


def _marked(change: bool) -> bytes:
    """All records marked as encrypted, the bytes changed or not."""
    taken = take_apart(eager({"w": tensor([1.0])}, "model", era="1.9"))

    def mark(member: Member) -> Member:
        assert member.central is not None and member.local is not None
        payload = bytes(byte ^ 0x5A for byte in member.payload) if change else member.payload
        central = replace(member.central, flags=member.central.flags | FLAG_ENCRYPTED)
        return replace(
            member, central=central, local=replace(member.local, flags=member.local.flags | FLAG_ENCRYPTED), payload=payload
        )

    return Archive([mark(member) for member in taken.members], with_zip64=taken.with_zip64).build()


@recipe("damage/encrypted.pt")
def encrypted() -> bytes:
    """All records are encrypted."""
    return _marked(change=True)


@recipe("damage/marked-as-encrypted-in-clear.pt")
def marked_as_encrypted_in_clear() -> bytes:
    """All records are marked as encrypted, and none is."""
    return _marked(change=False)


@recipe("damage/directory-damaged.pt")
def directory_damaged() -> bytes:
    """Zeros stand over the middle of the directory: too few for a whole sector."""
    data = _file()
    end = data.rindex(b"PK\x06\x06")
    return patch(data, end - 300, bytes(100))

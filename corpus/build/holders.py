# SPDX-License-Identifier: Apache-2.0
"""Files of other kinds that hold a PyTorch file, or a pickle, as it is: found in them, it is theirs."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from corpus.build.good import small_state_dict
from corpus.build.kit import (
    Call,
    Global,
    Persistent,
    Raw,
    archive,
    dump,
    eager,
    eager_records,
    legacy_stream,
    ordered_dict,
    recipe,
    tensor,
)

MODEL = ordered_dict([("w", tensor([0.5]))])


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    return member


def _dumped(protocol: int) -> bytes:
    """What `pickle.dump` makes of a tensor: a call of torch's loader with a legacy stream as its argument."""
    stream = legacy_stream(small_state_dict())
    argument: object = stream if protocol >= 3 else Call(Global("_codecs", "encode"), (stream.decode("latin-1"), "latin1"))
    return dump(Call(Global("torch.storage", "_load_from_bytes"), (argument,)), protocol)


@recipe("identification/pickle-of-tensor-3.pkl")
def pickle_of_tensor_3() -> bytes:
    """A tensor written with pickle.dump, protocol 3: the stream inside is an argument, not the file."""
    return _dumped(3)


@recipe("identification/pickle-of-tensor-2.pkl")
def pickle_of_tensor_2() -> bytes:
    """The same of protocol 2, where bytes are a text."""
    return _dumped(2)


@recipe("identification/pickle-late-name.pt")
def pickle_late_name() -> bytes:
    """A pickle that names nothing in its first 100,000 bytes, and then what would run."""
    return dump(["x" * 100_000, Call(Global("os", "getcwd"), ())], 2)


@recipe("identification/pickle-of-words.pkl")
def pickle_of_words() -> bytes:
    """A plain dictionary of many words: it names nothing at all."""
    return dump({f"word{number:05}": number for number in range(5_000)}, 4)


@recipe("identification/gzip-stored-model.pt")
def gzip_stored_model() -> bytes:
    """gzip of level 0 stores what it holds: the archive can be seen in it, and is not the file."""
    data = eager(MODEL)
    block = b"\x01" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data  # one stored block, the last
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block + struct.pack("<II", zlib.crc32(data), len(data))


@recipe("identification/numpy-objects.npy")
def numpy_objects() -> bytes:
    """An array of Python objects: a pickle behind the header."""
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + dump([None], 3)


@recipe("identification/zip-of-many.pt")
def zip_of_many() -> bytes:
    """A plain ZIP in which the 33rd member is a pickle: more than are looked into."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(33):
            data = b"text\n" if number < 32 else dump(Call(Global("os", "getcwd"), ()))
            archive.writestr(_member(f"{number:02}.txt"), data)
    return stream.getvalue()


@recipe("identification/zip-bzip2-member.pt")
def zip_bzip2_member() -> bytes:
    """A plain ZIP whose member is packed with a method that is not unpacked here."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(_member("model.bin"), dump([1] * 100), zipfile.ZIP_BZIP2)
    return stream.getvalue()


@recipe("damage/cut-in-local-header.pt")
def cut_in_local_header() -> bytes:
    """The file ends within a local header: the end of this archive, and no other reading."""
    data = eager(ordered_dict([("a", tensor([0.5])), ("b", tensor([1.5]))]))
    return data[: data.rindex(b"PK\x03\x04") + 17]


@recipe("damage/cut-and-key-no-text.pt")
def cut_and_key_no_text() -> bytes:
    """Cut in the directory, and a storage key of the pickle that is no UTF-8: no record can have its name."""
    data = eager(ordered_dict([("a", tensor([0.5])), ("b", tensor([1.5]))]))
    key = data.index(b"X\x01\x00\x00\x001") + 5
    return data[:key] + b"\xb1" + data[key + 1 : -200]


@recipe("damage/cut-and-endless-storage.pt")
def cut_and_endless_storage() -> bytes:
    """Cut behind the pickle, which states a storage of more bytes than 64 bits count."""
    numel = Raw(b"\x8a\x09" + (1 << 62).to_bytes(9, "little"))
    identity = ("storage", Global("torch", "DoubleStorage"), "0", "cpu", numel)
    call = Call(Global("torch._utils", "_rebuild_tensor_v2"), (Persistent(identity), 0, (1,), (1,), False, ordered_dict([])))
    data = archive([("data.pkl", dump(call)), ("byteorder", b"little"), ("version", b"3\n")], "archive")
    return data[: data.index(b"PK\x01\x02") - 40]


def _behind(magic: bytes) -> bytes:
    """An archive that would run a program, behind other bytes, with offsets that count from the first of them."""
    stream = io.BytesIO(magic)
    with zipfile.ZipFile(stream, "a") as archive:
        for name, data in eager_records(ordered_dict([("run", Call(Global("os", "getcwd"), ()))])):
            archive.writestr(_member(f"archive/{name}"), data)
    return stream.getvalue()


@recipe("identification/behind-gguf-mark.pt")
def behind_gguf_mark() -> bytes:
    """The mark of GGUF in front of an archive whose offsets were adjusted: it is meant to be read as one."""
    return _behind(b"GGUF")


@recipe("identification/behind-numpy-mark.pt")
def behind_numpy_mark() -> bytes:
    """The same behind the mark of NumPy."""
    return _behind(b"\x93NUMPY")

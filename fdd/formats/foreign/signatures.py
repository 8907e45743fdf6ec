# SPDX-License-Identifier: Apache-2.0
"""Formats with a magic number and a small head: HDF5, GGUF, NumPy, and a table of others that only get a name."""

from __future__ import annotations

import math
import re
from struct import unpack_from
from typing import Any

from fdd.core.model import Basis
from fdd.core.text import printable
from fdd.formats.foreign.facts import ForeignFacts, Subject, quote

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
# PRONOM counts HDF5 by the version of the superblock; it has no id for version 3.
HDF5_PRONOM = {0: "fmt/807", 1: "fmt/286", 2: "fmt/287"}
GGUF_MAGIC = b"GGUF"
NUMPY_MAGIC = b"\x93NUMPY"
NUMPY_HEADER_BYTES = 10_000
"""NumPy itself refuses to evaluate longer headers."""
_SHAPE = re.compile(r"'shape': *\(([\dL, ]*)\)")
_MOST_DIGITS, _MOST_DIMENSIONS = 19, 64
_SIMPLE_DESCR = re.compile(r"'descr': *'([^']*)'")
_FIELDS_DESCR = re.compile(r"'descr': *(\[.*\]), *'fortran_order'", re.DOTALL)
_FORTRAN = re.compile(r"'fortran_order': *True")
# A type stands behind a colon or comma; the name of a field behind a parenthesis.
_OBJECT_TYPE = re.compile(r"[:,] *'[|<>=]?O\d*'")
_SIMPLE_TYPE = re.compile(r"[<>|=]?([biufcmMSVU?])(\d{1,9})(?:\[.*\])?")

# (offset, bytes, name, media type) of formats outside the contract's kinds; most telling first.
OTHERS: tuple[tuple[int, bytes, str, str | None], ...] = (
    (0, b"%PDF-", "PDF document", "application/pdf"),
    (0, b"\x89PNG\r\n\x1a\n", "PNG image", "image/png"),
    (0, b"\xff\xd8\xff", "JPEG image", "image/jpeg"),
    (0, b"GIF8", "GIF image", "image/gif"),
    (0, b"\x7fELF", "ELF program or library", None),
    (0, b"MZ\x90\x00", "Windows program or library", None),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library", None),
    (0, b"SQLite format 3\x00", "SQLite database", "application/vnd.sqlite3"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE2 compound file (older Microsoft Office)", None),
    (0, b"PAR1", "Apache Parquet file", "application/vnd.apache.parquet"),
    (0, b"ARROW1\x00\x00", "Apache Arrow file", None),
    (0, b"MATLAB 5.0 MAT-file", "MATLAB 5 data file", None),
    (0, b"lmgg", "GGML model file (predecessor of GGUF)", None),
    (0, b"fmgg", "GGML model file (predecessor of GGUF)", None),
    (0, b"tjgg", "GGML model file (predecessor of GGUF)", None),
    (0, b"Salted__", "file encrypted by OpenSSL", None),
    (0, b"age-encryption.org/", "file encrypted by age", None),
    (0, b"LUKS\xba\xbe", "LUKS encrypted volume", None),
    (0, b"\x04\x22\x4d\x18", "LZ4 frame", None),
    (0, b"LZIP\x01", "lzip-compressed data", "application/lzip"),
    (0, b"\x5d\x00\x00\x80\x00" + b"\xff" * 8, "LZMA-compressed data (.lzma)", "application/x-lzma"),
    (0, b"\x1f\x9d", "data compressed by Unix compress", None),
    (0, b"MSCF\x00\x00\x00\x00", "Microsoft cabinet", "application/vnd.ms-cab-compressed"),
    (0, b"!<arch>\n", "ar archive or static library", None),
    (32769, b"CD001", "ISO 9660 disk image", "application/x-iso9660-image"),
    (0, b"070701", "cpio archive", "application/x-cpio"),
    (0, b"070702", "cpio archive", "application/x-cpio"),
    (0, b"070707", "cpio archive", "application/x-cpio"),
    (0, b"xar!", "xar archive", "application/x-xar"),
    (0, b"\xed\xab\xee\xdb", "RPM package", "application/x-rpm"),
    (0, b"\x02\x21\x4c\x18", "LZ4 data (old frame)", None),
    (0, b"\x89LZO\x00\r\n\x1a\n", "lzop-compressed data", "application/x-lzop"),
    (0, b"LRZI", "lrzip-compressed data", "application/x-lrzip"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program for several processors", None),
    (0, b"\x00asm", "WebAssembly module", "application/wasm"),
    (0, b"II*\x00", "TIFF image", "image/tiff"),
    (0, b"MM\x00*", "TIFF image", "image/tiff"),
    (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM video", "video/x-matroska"),
    (0, b"CDF\x01", "NetCDF file (classic)", "application/x-netcdf"),
    (0, b"CDF\x02", "NetCDF file (classic)", "application/x-netcdf"),
    (0, b"CDF\x05", "NetCDF file (classic)", "application/x-netcdf"),
    (0, b"\x0e\x03\x13\x01", "HDF4 file", "application/x-hdf"),
    (128, b"DICM", "DICOM image", "application/dicom"),
    (344, b"n+1\x00", "NIfTI image", None),
    (0, b"FEA1", "Feather file (version 1)", None),
    (0, b"Obj\x01", "Apache Avro file", "application/avro"),
    (0, b"ORC", "Apache ORC file", None),
    (0, b"RIFF", "RIFF file (audio, video or WebP)", None),
    (4, b"ftyp", "MP4 or QuickTime file", "video/mp4"),
    (0, b"ID3", "MP3 audio", "audio/mpeg"),
    (0, b"OggS", "Ogg file", "application/ogg"),
    (0, b"{\\rtf", "RTF document", "application/rtf"),
    (0, b"bplist00", "Apple binary property list", None),
)


def recognise_hdf5(subject: Subject) -> ForeignFacts | None:
    """HDF5: the signature at 0 or at 512 times a power of two (HDF5 File Format Specification, "Superblock")."""
    offset = 0
    while subject.source.read_at(offset, len(HDF5_MAGIC)) != HDF5_MAGIC:
        offset = offset * 2 or 512
        if offset >= subject.size:
            return None
    block = subject.source.read_at(offset, 64)
    version = block[8] if len(block) > 8 else None
    details: dict[str, Any] = {"superblock_version": version, "superblock_offset": offset}
    note = "An HDF5 file, the container of Keras models and of much scientific data; open it with an HDF5 reader."
    if any(mark in subject.head for mark in (b"keras_version", b"model_weights", b"layer_names", b"keras_api")):
        details["written_by"] = "Keras"
        note = "An HDF5 file with a Keras model or its weights; open it with Keras, TensorFlow or an HDF5 reader."
    elif subject.head.startswith(b"MATLAB 7.3 MAT-file"):
        details["written_by"] = "MATLAB 7.3"
    end = _hdf5_end(block, version)
    if end is not None and not subject.partial:
        details["stated_end"] = end
        details["complete"] = end + offset <= subject.size or end <= subject.size
        if not details["complete"]:
            note += f" It is cut off: {subject.size} of {end} bytes are here."
    return ForeignFacts(
        "hdf5",
        "HDF5 (Hierarchical Data Format 5)",
        note,
        [Basis("HDF5 signature", offset, len(HDF5_MAGIC))],
        version=None if version is None else str(version),
        mime="application/x-hdf5",
        pronom=HDF5_PRONOM.get(-1 if version is None else version),
        details=details,
    )


def _hdf5_end(block: bytes, version: int | None) -> int | None:
    """The end-of-file address of a superblock with 8-byte offsets; None where it cannot be told."""
    if version in (0, 1):
        width, place = block[13:14], 40 if version == 0 else 44
    elif version in (2, 3):
        width, place = block[9:10], 28
    else:
        return None
    if width != b"\x08" or len(block) < place + 8:
        return None
    return int.from_bytes(block[place : place + 8], "little")


def recognise_gguf(subject: Subject) -> ForeignFacts | None:
    """GGUF: magic, version, counts of tensors and of metadata entries; 32-bit counts in version 1."""
    if not subject.head.startswith(GGUF_MAGIC) or len(subject.head) < 8:
        return None
    order = "<" if unpack_from("<I", subject.head, 4)[0] < 1 << 16 else ">"
    version = unpack_from(order + "I", subject.head, 4)[0]
    details: dict[str, Any] = {"byte_order": "little" if order == "<" else "big"}
    width = "I" if version == 1 else "Q"
    if len(subject.head) >= 8 + 2 * (4 if version == 1 else 8):
        details["tensor_count"], details["metadata_count"] = unpack_from(f"{order}2{width}", subject.head, 8)
    tensors = f" of {details['tensor_count']} tensors" if "tensor_count" in details else ""
    note = f"A GGUF model file{tensors}, for llama.cpp and its relatives; PyTorch does not read it directly."
    basis = [Basis("GGUF magic and version", 0, 8)]
    return ForeignFacts("gguf", "GGUF model file", note, basis, version=str(version), details=details)


def recognise_numpy(subject: Subject) -> ForeignFacts | None:
    """A .npy array: magic, version, length, then a Python dictionary literal of descr, fortran_order and shape.

    The literal is searched for its three entries and never evaluated.
    """
    head = subject.head
    if not head.startswith(NUMPY_MAGIC):
        return None
    details: dict[str, Any] = {}
    note = "A NumPy array, not a PyTorch file; open it with numpy.load."
    facts = ForeignFacts("numpy", "NumPy array (.npy)", note, [Basis("NumPy magic", 0, len(NUMPY_MAGIC))], details=details)
    if len(head) < 12:
        facts.note += " It is cut off inside its header."
        return facts
    facts.version = f"{head[6]}.{head[7]}"
    width = 2 if head[6] < 2 else 4
    length = int.from_bytes(head[8 : 8 + width], "little")
    start = 8 + width
    facts.basis.append(Basis("NumPy header", start, min(length, len(head) - start)))
    header = head[start : start + length].decode("latin-1") if length <= NUMPY_HEADER_BYTES else ""
    shape = _SHAPE.search(header)
    descr = _SIMPLE_DESCR.search(header) or _FIELDS_DESCR.search(header)
    sizes = re.findall(r"\d+", shape[1]) if shape else []
    sane = len(sizes) <= _MOST_DIMENSIONS and all(len(digits) <= _MOST_DIGITS for digits in sizes)
    if not shape or not descr or not sane or start + length > len(head):
        facts.note += " Its header cannot be read."
        return facts
    dimensions = [int(digits) for digits in sizes]
    details |= {"descr": printable(descr[1]), "shape": dimensions, "fortran_order": bool(_FORTRAN.search(header))}
    details["object_dtype"] = bool(_OBJECT_TYPE.search(descr[0]))
    if details["object_dtype"]:
        facts.note = (
            "A NumPy array of Python objects: behind its header stands a pickle, and loading it (allow_pickle=True) can run"
            " code. Not a PyTorch file."
        )
        details["pickle_offset"] = start + length
        facts.may_hold_code = True
        return facts
    simple = _SIMPLE_TYPE.fullmatch(descr[1])
    if simple is not None and not subject.partial:
        size = math.prod(dimensions) * int(simple[2]) * (4 if simple[1] == "U" else 1)
        details["data_bytes"], details["complete"] = size, start + length + size <= subject.size
        if not details["complete"]:
            facts.note += f" It is cut off: {max(0, subject.size - start - length)} of {size} bytes of values are here."
    return facts


def recognise_other(subject: Subject) -> ForeignFacts | None:
    """A format that the contract has no kind for, but that has a well-known signature: kind `unknown`, with its name."""
    for offset, magic, name, mime in OTHERS:
        if subject.head.startswith(magic, offset):
            where = f"bytes at {offset}," if offset else "first bytes"
            note = (
                f"Not a PyTorch file: its {where} {quote_bytes(magic)}{',' if offset else ''} are those of this format: {name}."
            )
            return ForeignFacts("unknown", name, note, [Basis(f"signature of {name}", offset, len(magic))], mime=mime)
    return None


def quote_bytes(data: bytes) -> str:
    """Bytes for a sentence: as text where they are text, else in hexadecimal."""
    return quote(data.decode("ascii")) if data.isascii() and data.decode("ascii").isprintable() else data.hex(" ").upper()

# SPDX-License-Identifier: Apache-2.0
"""Compressed files: which compression, and by a peek at the first inflated bytes what is inside.

At most :data:`~fdd.formats.foreign.facts.HEAD_BYTES` are inflated, in memory, by the streaming decompressors of the
standard library; they are then told like a file of their own.
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, cast

from fdd.core.model import Basis
from fdd.core.source import BytesSource
from fdd.core.text import printable
from fdd.formats.foreign.containers import Identify, listing
from fdd.formats.foreign.facts import HEAD_BYTES, ForeignFacts, InnerMember, Subject

_INPUT_BYTES = 4 << 20
"""Compressed bytes fed before giving up; a bzip2 block of 900 kB must be whole before its first byte comes out."""
_LZMA_MEMORY = 128 << 20
"""Dictionaries of xz beyond this (presets go to 64 MiB) are not allocated."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_ZSTD_WINDOW_LOG = 23
"""Largest window allocated for zstd, as a power of two (8 MiB, what RFC 8878 asks every decoder to support)."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Method(NamedTuple):
    kind: str
    name: str
    suffix: str
    mime: str
    pronom: str | None
    tool: str
    magic: bytes
    open: Callable[[], _Decompressor | None]


def _open_gzip() -> _Decompressor:
    return cast(_Decompressor, zlib.decompressobj(wbits=31))


def _open_xz() -> _Decompressor:
    return cast(_Decompressor, lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_LZMA_MEMORY))


def _open_bzip2() -> _Decompressor:
    return cast(_Decompressor, bz2.BZ2Decompressor())


def _open_zstd() -> _Decompressor | None:
    """The decompressor of Python 3.14 and later; None before."""
    try:
        zstd: Any = importlib.import_module("compression.zstd")
    except ImportError:
        return None
    options = {zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW_LOG}
    return cast(_Decompressor, zstd.ZstdDecompressor(options=options))


_METHODS = (
    _Method("gzip", "gzip", "gz", "application/gzip", "x-fmt/266", "gunzip", b"\x1f\x8b\x08", _open_gzip),
    _Method("xz", "xz", "xz", "application/x-xz", "fmt/1098", "unxz", b"\xfd7zXZ\x00", _open_xz),
    _Method("bzip2", "bzip2", "bz2", "application/x-bzip2", "x-fmt/268", "bunzip2", b"BZh", _open_bzip2),
    _Method("zstd", "Zstandard", "zst", "application/zstd", None, "unzstd", _ZSTD_MAGIC, _open_zstd),
)
_BZIP2_BLOCK = (bytes.fromhex("314159265359"), bytes.fromhex("177245385090"))


class _Peek(NamedTuple):
    """What came out, and how it ended: `whole`, `more` (there is more to inflate), `cut`, `damaged`, `unread`."""

    data: bytes
    state: str


def recognise_compressed(subject: Subject, identify: Identify) -> ForeignFacts | None:
    """A gzip, xz, bzip2 or Zstandard file, with what is inside."""
    head = subject.head
    method = next((method for method in _METHODS if head.startswith(method.magic)), None)
    if method is None and _ZSTD_SKIPPABLE.match(head) and _skips_to_zstd(subject):
        method = _METHODS[3]
    if method is None or (method.kind == "bzip2" and not _is_bzip2(head)):
        return None
    facts = ForeignFacts(
        method.kind,
        f"{method.name}-compressed data",
        "",
        [Basis(f"{method.name} signature", 0, len(method.magic))],
        mime=method.mime,
        pronom=method.pronom,
    )
    peek = _peek(subject, method)
    facts.details["inflated_bytes"] = len(peek.data)
    if not subject.partial:
        facts.details["complete"] = {"whole": True, "cut": False, "damaged": False}.get(peek.state)
    size = len(peek.data) if peek.state == "whole" else _stated_size(subject, method, facts.details)
    what = "data"
    if peek.data and subject.may_look_inside:
        what = _tell_inside(subject, method, peek, facts, identify, size=size)
    action = f"decompress it ({method.tool}) and validate what comes out"
    facts.note = f"{method.name}-compressed {what}, not a PyTorch file as it stands; {action}."
    if peek.state == "cut" and not subject.partial:
        facts.note += " It is cut off: the compressed data do not come to their end."
    elif peek.state == "damaged":
        facts.note += f" The compressed data are damaged: {len(peek.data)} bytes could be inflated before the fault."
    return facts


def _tell_inside(
    subject: Subject, method: _Method, peek: _Peek, facts: ForeignFacts, identify: Identify, *, size: int | None
) -> str:
    """Name what was inflated, fill ``inner``, and return the words for the note."""
    name = facts.details.get("original_name") or _stem(subject.name, method.suffix)
    whole = peek.state == "whole"
    found = identify(subject.inside(BytesSource(peek.data), name, partial=not whole))
    facts.may_hold_code = found.may_hide_code(whole=whole)
    if found.kind in ("tar", "torch-tar"):
        facts.name = f"{method.name}-compressed {found.name}"
        facts.details["inner_kind"] = found.kind
        facts.inner = found.inner
        return f"{found.name} (tar.{method.suffix}) with {listing(found.inner)}{'' if whole else ' (as far as was looked)'}"
    kind = None if found.kind == "unknown" else found.kind
    facts.inner = [InnerMember(name or "", size, kind)]
    if kind is None:
        return "data of no known format"
    facts.name = f"{method.name}-compressed {found.name}"
    facts.details["inner_kind"] = kind
    return found.name


def _peek(subject: Subject, method: _Method) -> _Peek:
    decompressor = method.open()
    if decompressor is None:
        return _Peek(b"", "unread")
    output, position = bytearray(), 0
    most = min(HEAD_BYTES, subject.limits.inflated_bytes)
    while len(output) < most and not decompressor.eof:
        piece = subject.source.read_at(position, HEAD_BYTES)
        if not piece:
            return _Peek(bytes(output), "cut")
        if position >= _INPUT_BYTES:
            return _Peek(bytes(output), "more")
        position += len(piece)
        try:
            output += decompressor.decompress(piece, most - len(output))
        except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, MemoryError):
            return _Peek(bytes(output), "damaged")
        except Exception as error:
            # ZstdError exists from Python 3.14 on and derives from Exception alone.
            if type(error).__name__ != "ZstdError":
                raise
            return _Peek(bytes(output), "damaged")
    whole = decompressor.eof and not decompressor.unused_data and position >= subject.size
    return _Peek(bytes(output), "whole" if whole else "more")


def _is_bzip2(head: bytes) -> bool:
    return len(head) < 10 or (head[3:4] in b"123456789" and head[4:10] in _BZIP2_BLOCK)


def _skips_to_zstd(subject: Subject) -> bool:
    """Whether the skippable frame at 0 (RFC 8878, 3.1.2) is followed by another frame, or ends the file."""
    end = 8 + int.from_bytes(subject.head[4:8], "little")
    following = subject.source.read_at(end, 4)
    return end == subject.size or following == _ZSTD_MAGIC or _ZSTD_SKIPPABLE.fullmatch(following) is not None


def _stem(name: str | None, suffix: str) -> str | None:
    return name[: -len(suffix) - 1] if name and name.endswith("." + suffix) else name


def _stated_size(subject: Subject, method: _Method, details: dict[str, Any]) -> int | None:
    """The uncompressed size where the format states it: gzip modulo 2^32 (RFC 1952), zstd in its frame header (RFC 8878)."""
    size = None
    if method.kind == "gzip":
        _gzip_name(subject.head, details)
        if subject.size >= 18 and not subject.partial:
            size = int.from_bytes(subject.source.read_at(subject.size - 4, 4), "little")
    elif method.kind == "zstd" and subject.head.startswith(_ZSTD_MAGIC) and len(subject.head) > 4:
        size = _zstd_size(subject.head)
    if size is not None:
        details["stated_size"] = size
    return size


def _gzip_name(head: bytes, details: dict[str, Any]) -> None:
    """Take the original file name from a gzip header (RFC 1952, 2.3.1) into ``details``."""
    position, flags = 10, head[3] if len(head) > 3 else 0
    if flags & 4:
        position += 2 + int.from_bytes(head[10:12], "little")
    end = head.find(b"\0", position)
    if flags & 8 and end > position:
        details["original_name"] = printable(head[position:end].decode("latin-1"))


def _zstd_size(head: bytes) -> int | None:
    """Frame_Content_Size of the frame header, None where it is not given."""
    descriptor = head[4]
    single, code = descriptor >> 5 & 1, descriptor >> 6
    width = (1 if single else 0, 2, 4, 8)[code]
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3]
    if not width or len(head) < start + width:
        return None
    return int.from_bytes(head[start : start + width], "little") + (256 if width == 2 else 0)

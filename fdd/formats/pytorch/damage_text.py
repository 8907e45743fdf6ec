# SPDX-License-Identifier: Apache-2.0
"""Text channels and strange bytes: converted line ends, files mangled as text, and what extra bytes look like."""

from __future__ import annotations

import re

from fdd.container.zip.structs import DESCRIPTOR_SIGNATURE, END_SIGNATURE, LOCAL_HEADER_SIGNATURE
from fdd.core.source import CHUNK, ByteSource, BytesSource
from fdd.core.span import Span
from fdd.formats.foreign.facts import quote
from fdd.formats.foreign.opaque import entropy
from fdd.formats.probe import Probe
from fdd.formats.pytorch.damage_facts import PAGE, SECTOR, Mangled, TextConversion
from fdd.formats.pytorch.damage_scan import ByteScan
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.identify import legacy_heads
from fdd.formats.pytorch.nested import verdict_on
from fdd.formats.pytorch.readings import other_reading

MOST_RESTORED = 64 << 20
"""Bytes of the largest file that is restored in memory."""
_SURE = 4
"""That all of 4 LF follow a CR by chance has a probability of 2^-32."""
_NEARLY_ALL = 0.95
_MANY = 40
"""LF bytes from which on a few exceptions (other damage) are allowed, and CR or LF bytes whose utter absence is no chance."""
_MANY_PAIRS = 4096
"""LF and CR bytes of a file in which some CR LF must be by chance: about one LF in 256 follows a CR, so 16 are expected."""
_SHOWN = 1 << 16
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")
_BOUNDARY = re.compile(rb"\r?\n?--[!-~]{4,70}(?:--)?\r?\n?$|\r?\n--[!-~]{8,70}--", re.MULTILINE)
_HTML = re.compile(rb"\s*<(?:!doctype html|html|head|body)", re.IGNORECASE)
_SPANNED = (DESCRIPTOR_SIGNATURE, b"PK00")
"""APPNOTE 8.5.3 and 8.5.4: what stands in front of archives that were to be split."""
_TEXT_CODES = frozenset({"utf8-replacement", "utf8-encoded", "utf16-encoded", "high-bit-stripped"})
_ENCODINGS = ("latin-1", "windows-1252")


def find_conversion(document: TorchDocument, probe: Probe, seen: ByteScan, shortened: bool) -> TextConversion | None:
    """How line ends were changed. ``shortened``: bytes are known to be missing somewhere in the middle."""
    feeds, returns, pairs = seen.line_feeds, seen.returns, seen.pairs
    code = _conversion_code(feeds, returns, pairs, shortened)
    suspected = code is None and not feeds and returns >= _SURE
    if code is None and not suspected:
        return None
    code = code or "lf-to-cr"
    found = TextConversion(code, feeds, returns, pairs, max(0, seen.first_pair))
    if code in ("crlf-added", "lf-to-cr") and document.size <= MOST_RESTORED:
        data = document.source.read_at(0, document.size)
        # LF was the only byte that changed, and no LF is left: where the file had CR too, this guess fails and shows it.
        restored = data.replace(b"\r\n", b"\n") if code == "crlf-added" else data.replace(b"\r", b"\n")
        found.restored = verdict_on(BytesSource(restored), probe.name or "", probe)
    # Few CR and no LF prove nothing by themselves. That the change back gives a valid file does, or a converted version record.
    proven = found.restored in ("valid", "structure-valid") or any(text.endswith(b"\r") for text in document.texts.values())
    return found if proven or not suspected else None


def _conversion_code(feeds: int, returns: int, pairs: int, shortened: bool) -> str | None:
    if feeds >= _SURE and (pairs == feeds or (feeds >= _MANY and pairs >= _NEARLY_ALL * feeds)):
        return "crlf-added"
    if feeds >= _MANY and not returns:
        return "cr-removed" if shortened else "cr-to-lf"
    if returns >= _MANY and not feeds:
        return "lf-to-cr"
    if shortened and not pairs and min(feeds, returns) >= _MANY_PAIRS:
        return "crlf-shortened"
    return None


def conversion_of_payloads(seen: ByteScan) -> TextConversion | None:
    """Line ends that changed without moving anything, as the altered payloads show: no CR is left among many LF."""
    if seen.line_feeds >= _MANY and not seen.returns:
        return TextConversion("cr-to-lf", seen.line_feeds, 0, 0, 0)
    return None


def find_stream_start(head: bytes) -> Span | None:
    """Bytes in front of the magic number of a legacy stream."""
    for start in legacy_heads():
        at = head.find(start[: start.index(b".") + 1])
        if at > 0:
            return Span(0, at)
    return None


def find_mangling(document: TorchDocument, probe: Probe) -> list[Mangled]:
    """Signs that the whole file was read and written as text."""
    found: list[Mangled] = []
    from fdd.formats.foreign.identify import mangling_of  # all foreign kinds come with it

    for sign in mangling_of(document.source, limits=probe.limits):
        if sign.code in _TEXT_CODES:
            restored = _decoded(document, probe, sign.details.get("encoding")) if sign.code == "utf8-encoded" else None
            found.append(Mangled(sign.code, sign.text, restored))
    return found


def _decoded(document: TorchDocument, probe: Probe, encoding: object) -> str | None:
    """The verdict on the file decoded as UTF-8; None where that fails or the file is too large."""
    if document.size > MOST_RESTORED or encoding not in _ENCODINGS:
        return None
    try:
        data = document.source.read_at(0, document.size).decode("utf-8").encode(str(encoding))
    except UnicodeError:
        return None
    return verdict_on(BytesSource(data), probe.name or "", probe)


def describe_bytes(source: ByteSource, span: Span) -> str:
    """Say in a few words what the bytes of ``span`` are. Reads its edges; all of it only while it is of one value."""
    head = source.read_at(span.offset, min(span.length, _SHOWN))
    if not head:
        return "nothing"
    filling = _filling(source, span, head)
    if filling is not None:
        return filling
    if head in (b"\n", b"\r\n", b"\r"):
        return {b"\n": "a newline (LF)", b"\r\n": "a line end (CR LF)", b"\r": "a carriage return (CR)"}[head]
    if head in _SPANNED:
        return "the marker of an archive that was to be split over disks"
    return _contents(source, span, head)


def _filling(source: ByteSource, span: Span, head: bytes) -> str | None:
    """Name bytes that are all the same."""
    value = head[:1]
    if span.length < 2 or head.strip(value):
        return None
    for piece in source.stream(span, CHUNK):
        if piece.strip(value):
            return None
    if value == b"\0":
        unit = next((unit for unit in (PAGE, SECTOR) if span.end % unit == 0), None)
        padding = f" that fill the file up to a multiple of {unit}" if unit is not None else ""
        return f"zero bytes{padding}"
    if value in b"\r\n \t":
        return "blank lines or spaces"
    return f"bytes of the one value {value.hex().upper()}"


def _contents(source: ByteSource, span: Span, head: bytes) -> str:
    text = _TEXT.fullmatch(head) is not None and _is_utf8(head)
    if text and _HTML.match(head):
        return f"an HTML page, beginning with {_line(head)}"
    if text and _BOUNDARY.search(head):
        return f"text of a web upload (a form boundary), beginning with {_line(head)}"
    if text:
        return f"text, beginning with {_line(head)}"
    if LOCAL_HEADER_SIGNATURE in head[:SECTOR]:
        return "another ZIP archive, or a part of one"
    reading = other_reading(head)
    if reading is not None:
        return reading
    tail = source.read_at(max(span.offset, span.end - _SHOWN), min(span.length, _SHOWN))
    if END_SIGNATURE in tail:
        return "the end of another ZIP archive"
    if not head.strip(b"\0"):
        return "zero bytes, then others"
    measured = entropy(head)
    return f"binary data beginning with {head[:8].hex(' ').upper()}" + (
        f" ({measured:.1f} bits of entropy per byte)" if len(head) >= SECTOR else ""
    )


def _is_utf8(head: bytes) -> bool:
    for cut in range(min(4, len(head))):  # a character may be cut at the end of the piece
        try:
            head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return True
    return False


def _line(head: bytes) -> str:
    """The first line that says anything, quoted."""
    lines = (line.strip() for line in head[:PAGE].decode("utf-8", "replace").splitlines())
    return quote(next((line for line in lines if line), ""), 60)

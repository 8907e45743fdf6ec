# SPDX-License-Identifier: Apache-2.0
"""Bytes without a known shape: zeros, entropy, raw numbers, and binary files that a text channel or a cut mangled.

The signs of mangling hold for damaged files of known kinds also; :func:`find_mangling` may be asked about any file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from fdd.container.tar import looks_like_tar
from fdd.container.zip.structs import (
    CENTRAL_HEADER,
    CENTRAL_HEADER_SIGNATURE,
    END_RECORD,
    END_SIGNATURE,
    LOCAL_HEADER_SIGNATURE,
    ZIP64_END_RECORD,
    ZIP64_END_SIGNATURE,
)
from fdd.core.model import Basis
from fdd.core.source import CHUNK, ByteSource, BytesSource
from fdd.core.span import Span
from fdd.core.text import decode_name, printable
from fdd.formats.foreign.containers import Identify, local_members
from fdd.formats.foreign.facts import HEAD_BYTES, STRUCTURE_BYTES, ForeignFacts, InnerMember, Subject, quote

_SAMPLES = 16
_SAMPLE_BYTES = 1 << 14
_ALIGNMENT = 64
"""Samples begin at multiples of this, so that numbers keep their places in them."""
_TAIL_BYTES = 1 << 16
_MOST_MEMBERS = 200
_NEAR_RANDOM = 0.1
"""Bits per byte that a sample may measure below random bytes and still count as random."""
_LEAST_FOR_ENTROPY = 256
_LEAST_FOR_NUMBERS = 4096
_LEAST_LINE_ENDS = 4
"""That all of 4 LF follow a CR by chance has a probability of 2^-32."""
_FIRST_BYTES = bytes(range(128))
_HIGH_BYTES = bytes(range(128, 256))
_REPLACEMENT = "\ufffd".encode()


@dataclass(slots=True)
class Mangling:
    """A sign that a binary file was changed on its way.

    ``code``: crlf, utf8-replacement, utf8-encoded, utf16-encoded, high-bit-stripped, wrapped, split, zero-head.
    ``text`` is a sentence; ``was`` names what the file was where its undamaged beginning can be restored.
    """

    code: str
    text: str
    details: dict[str, Any]
    was: str | None = None


def first_nonzero(source: ByteSource) -> int | None:
    """Offset of the first byte that is not zero; None where all are. Reads no further than needed."""
    position, zeros = 0, bytes(CHUNK)
    for piece in source.stream(Span(0, source.size), CHUNK):
        if not zeros.startswith(piece):
            return position + len(piece) - len(piece.lstrip(b"\0"))
        position += len(piece)
    return None


def recognise_zeros(subject: Subject) -> ForeignFacts | None:
    """A file of zeros only."""
    if subject.head.strip(b"\0"):
        return None
    subject.first_nonzero = first_nonzero(subject.source)
    if subject.first_nonzero is not None:
        return None
    note = f"All {subject.size} bytes are zero: the content never reached the disk, or was wiped. Get the file again."
    return ForeignFacts("zeros", "zeros only", note, [Basis("zeros", 0, subject.size)])


def describe_unknown(subject: Subject, identify: Identify) -> ForeignFacts:
    """The last resort: no known format, with everything that helps to say what it was."""
    sample = take_sample(subject.source)
    measured = entropy(sample)
    facts = ForeignFacts("unknown", "unknown data", "", [Basis("no known signature", 0, min(subject.size, HEAD_BYTES))])
    facts.details = {"entropy_bits_per_byte": round(measured, 3), "sampled_bytes": len(sample)}
    facts.details["first_bytes"] = subject.head[:16].hex(" ")
    signs = find_mangling(subject, identify)
    if signs:
        facts.details["mangled"] = [{"code": sign.code, "was": sign.was, **sign.details} for sign in signs]
        facts.note = "No known signature at the start. " + " ".join(sign.text for sign in signs)
        if signs[0].code == "split":
            facts.inner = _later_members(subject)
        return facts
    fill, begins = subject.head[:1], subject.head[:8].hex(" ").upper()
    if subject.size > 1 and sample == fill * len(sample):
        facts.note = f"No known signature: every byte looked at is {fill.hex().upper()}; an erased or never written medium."
    elif len(sample) < _LEAST_FOR_ENTROPY:
        facts.note = f"No known signature, and with {subject.size} bytes too small to say more; it begins with {begins}."
    elif measured >= random_entropy(len(sample)) - _NEAR_RANDOM:
        facts.details["random_looking"] = True
        facts.note = (
            f"No known signature; entropy near 8 bits per byte ({measured:.2f}): encrypted, or compressed by another tool."
            " Ask the depositor for the key or the tool, and for the file as torch.save wrote it."
        )
    elif width := number_width(sample):
        facts.details["number_bytes"] = width
        facts.note = (
            f"No known signature; the bytes look like raw {width * 8}-bit floating-point numbers without a header: a single"
            " storage taken out of a model file, or a middle part of a split one."
        )
    else:
        facts.note = f"No known signature (entropy {measured:.2f} bits per byte); it begins with {begins}."
    return facts


def take_sample(source: ByteSource) -> bytes:
    """Up to 16 pieces of 16 KiB, spread evenly over the file; all of it where it is no larger."""
    if source.size <= _SAMPLES * _SAMPLE_BYTES:
        return source.read_at(0, source.size)
    step = (source.size - _SAMPLE_BYTES) // (_SAMPLES - 1) // _ALIGNMENT * _ALIGNMENT
    return b"".join(source.read_at(index * step, _SAMPLE_BYTES) for index in range(_SAMPLES))


def entropy(data: bytes) -> float:
    """Shannon entropy of the byte values, in bits per byte (0 to 8)."""
    counts = Counter(data).values()
    return -sum(count / len(data) * math.log2(count / len(data)) for count in counts)


def random_entropy(size: int) -> float:
    """The entropy that ``size`` evenly random bytes are expected to measure: below 8, and the more so the fewer they are.

    Each of the 256 counts is nearly Poisson distributed with the mean size / 256, so the sum over their possible values
    gives the mean of the sum that :func:`entropy` takes.
    """
    mean = size / 256
    if mean > 64:  # the first term of the series for many bytes is exact enough
        return 8 - 255 / (2 * size * math.log(2))
    probability, expected = math.exp(-mean), 0.0
    for count in range(1, int(mean + 20 * math.sqrt(mean) + 20)):
        probability *= mean / count
        expected += probability * count * math.log2(count)
    return math.log2(size) - expected / mean


def number_width(sample: bytes) -> int | None:
    """4 or 2 where the bytes look like little-endian floats of that many bytes: exponents vary little, mantissas much."""
    if len(sample) < _LEAST_FOR_NUMBERS:
        return None
    lanes = [entropy(sample[lane::4]) for lane in range(4)]
    if min(lanes[:2]) > 7 and lanes[3] < 4.5:
        return 4
    if min(lanes[0], lanes[2]) > 6.5 and max(lanes[1], lanes[3]) < 5.5:
        return 2
    return None


def find_mangling(subject: Subject, identify: Identify) -> list[Mangling]:
    """All signs that the file went through a text channel, was wrapped, cut, or not completely written."""
    sample = take_sample(subject.source)
    checks: tuple[Callable[[Subject, bytes, Identify], Mangling | None], ...]
    checks = (_wrapped, _utf16_encoded, _utf8_mangled, _line_ends, _high_bit_stripped, _split, _zero_head)
    return [sign for check in checks if (sign := check(subject, sample, identify)) is not None]


def _restored(subject: Subject, data: bytes, identify: Identify) -> str | None:
    """What the restored beginning is, None where it is still unknown."""
    if not subject.may_look_inside or not data:
        return None
    found = identify(subject.inside(BytesSource(data[:HEAD_BYTES]), subject.name, partial=True))
    return None if found.kind in ("unknown", "text", "empty", "zeros") else found.name


def _is_binary(sample: bytes) -> bool:
    return b"\0" in sample


def _line_ends(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    breaks, converted = sample.count(b"\n"), sample.count(b"\r\n")
    if breaks < _LEAST_LINE_ENDS or converted != breaks or not _is_binary(sample):
        return None
    was = _restored(subject, subject.head.replace(b"\r\n", b"\n"), identify)
    text = (
        f"Every LF byte is preceded by CR ({converted} of {breaks}): the file passed through a text-mode transfer"
        f"{f'; before, it was a {was}' if was else ''}. Transfer it again in binary mode."
    )
    return Mangling("crlf", text, {"line_feeds": breaks, "preceded_by_cr": converted}, was)


def _utf8_mangled(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    replaced = sample.count(_REPLACEMENT)
    head = _as_utf8(subject.head)
    if head is None or not _is_binary(sample):
        return None
    if replaced >= 4 and replaced * len(_REPLACEMENT) >= 0.02 * len(sample):
        text = (
            f"The bytes EF BF BD occur {replaced} times in {len(sample)}: a binary file was read as UTF-8 text and written again."
            " The bytes they stand for are lost; get the file again from its source."
        )
        return Mangling("utf8-replacement", text, {"replacements": replaced, "sampled_bytes": len(sample)})
    high = sum(character > "\x7f" for character in head)
    if high < 8:
        return None
    for encoding in ("latin-1", "windows-1252"):
        try:
            original = head.encode(encoding)
        except UnicodeEncodeError:
            continue
        was = _restored(subject, original, identify)
        text = (
            f"All bytes are valid UTF-8 although the file is binary: it was read as {encoding} text and written as UTF-8"
            f"{f'; before, it was a {was}' if was else ''}. The change can be undone (decode as UTF-8, encode as {encoding})."
        )
        return Mangling("utf8-encoded", text, {"encoding": encoding}, was)
    return None


def _as_utf8(head: bytes) -> str | None:
    """The head as UTF-8; a character cut at its end does not count."""
    for cut in range(4):
        try:
            return head[: len(head) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return None


def _utf16_encoded(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    if subject.head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return None
    text16 = subject.head[: len(subject.head) & ~1].decode("utf-16", "replace")
    was = _restored(subject, text16.encode("latin-1", "replace"), identify)
    if was is None:
        return None
    text = (
        f"A {was} that was written as UTF-16 text, as some shells do when output is redirected to a file; get it again in"
        " binary mode."
    )
    return Mangling("utf16-encoded", text, {}, was)


def _high_bit_stripped(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    if len(sample) < _LEAST_FOR_ENTROPY or sample.translate(None, _FIRST_BYTES) or not _is_binary(sample):
        return None
    if entropy(sample) < 4:
        return None
    text = (
        "No byte has its highest bit set although the file is binary: it seems to have passed a 7-bit channel. Those bits are"
        " lost; get the file again."
    )
    return Mangling("high-bit-stripped", text, {"sampled_bytes": len(sample)})


def _wrapped(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    """The headers of an HTTP answer or of a multipart form in front of the real content."""
    match = re.match(rb"(HTTP/[\d.]{1,3} \d{3}|--[!-~]{8,70}\r?\n *content-|content-type:)", subject.head, re.IGNORECASE)
    blank = re.search(rb"\r?\n\r?\n", subject.head) if match else None
    if match is None or blank is None:
        return None
    was = _restored(subject, subject.head[blank.end() :], identify)
    what = "an HTTP answer" if match[1][:4].upper() == b"HTTP" else "a multipart form"
    content = f"content, a {was}," if was else "content"
    text = f"The headers of {what} stand in front; the {content} begins at offset {blank.end()}. Get the file again."
    details = {"content_offset": blank.end(), "header": quote(subject.head[: match.end()].decode("latin-1"))}
    return Mangling("wrapped", text, details, was)


def _split(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    """Parts of a ZIP inside, but not at the start, and its beginning is not there: a later part of a file that was split."""
    head = subject.head
    if head.startswith((LOCAL_HEADER_SIGNATURE, b"\x80")) or looks_like_tar(head):
        return None
    tail_start = max(0, subject.size - _TAIL_BYTES)
    tail = subject.source.read_at(tail_start, _TAIL_BYTES)
    end, missing = _ending(tail, tail_start)
    central = _central_name(tail)
    local = next((member.name for member in local_members(_front(subject))), None)
    if (central is None and local is None) or (missing is not None and missing <= 0):
        return None
    found = [f"the local header of {local}"] if local else []
    found += [f"the directory entry of {central}"] if central else []
    found += ["the end record"] if end is not None else []
    part = "the last part" if end is not None else "a later part"
    lost = f" {missing} bytes are missing in front of it." if missing else ""
    text = (
        f"There is no head, but {' and '.join(found)} of a ZIP: {part} of a file that was split or lost its beginning; join all"
        f" parts in order.{lost}"
    )
    details = {"local_record": local, "directory_record": central, "end_record_offset": end, "missing_bytes": missing}
    return Mangling("split", text, details, "ZIP archive")


def _front(subject: Subject) -> bytes:
    """The beginning in which local headers are looked for: between them may lie whole storages."""
    return subject.source.read_at(0, STRUCTURE_BYTES)


def _ending(tail: bytes, tail_start: int) -> tuple[int | None, int | None]:
    """Offset of the end record, and how many bytes in front of the file the archive's own offsets count from.

    That number is what the directory's stated offset exceeds its real place by; negative where bytes stand in front.
    """
    end = tail.rfind(END_SIGNATURE)
    if end < 0 or len(tail) - end < END_RECORD.size:
        return None, None
    size, offset = END_RECORD.unpack_from(tail, end)[5:7]
    directory_end, large = end, tail.rfind(ZIP64_END_SIGNATURE, 0, end)
    if large >= 0 and len(tail) - large >= ZIP64_END_RECORD.size:
        size, offset = ZIP64_END_RECORD.unpack_from(tail, large)[8:10]
        directory_end = large
    return tail_start + end, offset - (tail_start + directory_end - size)


def _central_name(data: bytes) -> str | None:
    """The name in the first plausible central directory header."""
    at = data.find(CENTRAL_HEADER_SIGNATURE)
    while 0 <= at <= len(data) - CENTRAL_HEADER.size:
        fields = CENTRAL_HEADER.unpack_from(data, at)
        name = data[at + CENTRAL_HEADER.size : at + CENTRAL_HEADER.size + fields[10]]
        if fields[2] <= 63 and 0 < fields[10] == len(name) and b"\0" not in name:
            return printable(decode_name(name))
        at = data.find(CENTRAL_HEADER_SIGNATURE, at + 4)
    return None


def _later_members(subject: Subject) -> list[InnerMember]:
    return list(islice(local_members(_front(subject)), _MOST_MEMBERS))


def _zero_head(subject: Subject, sample: bytes, identify: Identify) -> Mangling | None:
    zeros = len(subject.head) - len(subject.head.lstrip(b"\0"))
    if zeros < 512:
        return None
    if zeros == len(subject.head):
        begin = subject.first_nonzero or first_nonzero(subject.source)
        if begin is None:
            return None
        zeros = begin
    text = (
        f"The first {zeros} bytes are zeros and the rest is not: the beginning was never written or is lost, as when a download"
        " or copy breaks off."
    )
    return Mangling("zero-head", text, {"zero_bytes": zeros})

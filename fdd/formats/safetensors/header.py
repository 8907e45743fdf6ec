# SPDX-License-Identifier: Apache-2.0
"""The head of a safetensors file as facts: the length, the JSON object, one entry for each tensor, the padding.

Layout (section "Format" of the documentation of the safetensors library): a 64-bit little-endian length n, n bytes of
JSON padded with spaces, then the values. Offsets in the header count from the first byte behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from fdd.core.source import ByteSource
from fdd.core.span import Span
from fdd.formats.safetensors.dtypes import ELEMENT_TYPES, ElementType
from fdd.formats.safetensors.json_text import JsonText, Member, Place, Stopped, TextFault, Value
from fdd.limits import Limits
from fdd.tensors.model import element_count

LENGTH_BYTES = 8
LONGEST_HEADER = 100_000_000
"""Bytes of header above which the safetensors library refuses a file."""
ALIGNMENT = 8
"""The writer of the library pads the header until the values begin at a multiple of this."""
METADATA = "__metadata__"
FIELDS = ("dtype", "shape", "data_offsets")
_FIRST_WINDOW = 1 << 20
_MOST_PADDING = 1 << 20
_JSON_WHITESPACE = b" \t\n\r"
_REGULAR = re.compile(
    rb'\{ "dtype" : ("[A-Z0-9_]++") , "shape" : (\[ (?:N(?: , N){0,15})? \]) , "data_offsets" : (\[ (N) , (N) \]) \}'.replace(
        b" ", rb"[ \t\n\r]*+"
    ).replace(b"N", rb"(?:0|[1-9][0-9]{0,17})(?![0-9])")
)
"""The description of a tensor as every known writer puts it: found in one step, as a file may hold many thousands."""
_KIND_WORDS = {"object": "an object", "array": "a list", "string": "a text", "number": "a number"}


@dataclass(slots=True)
class TensorEntry:
    """What the header says of one tensor; all spans are absolute. A field is None where it is missing or no such thing.

    ``shape`` counts values, ``begin`` and ``end`` bytes from the first byte of data. ``places`` are those of the values
    of the three fields, as far as they are there.
    """

    key: str
    key_span: Span
    span: Span
    is_object: bool
    word: str | None = None
    shape: tuple[int, ...] | None = None
    begin: int | None = None
    end: int | None = None
    places: dict[str, Span] = field(default_factory=dict)
    unknown: list[tuple[str, Span]] = field(default_factory=list)
    """Further fields, with the places of their keys."""

    @property
    def missing(self) -> list[str]:
        """The fields that are not there."""
        return [name for name in FIELDS if name not in self.places] if self.is_object else []

    @property
    def element_type(self) -> ElementType | None:
        """The type of the values, None where the word is unknown."""
        return ELEMENT_TYPES.get(self.word) if self.word is not None else None

    @property
    def value_count(self) -> int | None:
        """Number of values by the shape; None where that is unknown or beyond 63 bits."""
        return element_count(self.shape) if self.shape is not None else None

    @property
    def bit_count(self) -> int | None:
        """Bits that type and shape ask for."""
        count, kind = self.value_count, self.element_type
        return count * kind.bits if count is not None and kind is not None else None

    @property
    def byte_count(self) -> int | None:
        """Bytes that the offsets span; None where they are unknown."""
        return self.end - self.begin if self.begin is not None and self.end is not None else None


@dataclass(slots=True)
class HeaderText:
    """The JSON of the header as far as it could be read. Spans are absolute."""

    text: bytes
    entries: list[TensorEntry] = field(default_factory=list)
    metadata: dict[str, str] | None = None
    not_text: list[tuple[str, Span, str]] = field(default_factory=list)
    """What is no text in the metadata: key, place, and what stands there."""
    no_object: tuple[Span, str] | None = None
    """Metadata that are no object: place, and what stands there."""
    duplicates: list[tuple[str, Span]] = field(default_factory=list)
    surrogates: list[tuple[str, Span]] = field(default_factory=list)
    fault: tuple[str, Span, str] | None = None
    """Why reading stopped: code of :class:`~fdd.formats.safetensors.json_text.TextFault`, place, words."""
    not_utf8: Span | None = None
    """The first bytes that are not UTF-8."""
    object_start: int = LENGTH_BYTES
    object_end: int | None = None
    """Absolute offset behind the closing brace; None where it was not reached."""

    @property
    def closed(self) -> bool:
        """Whether the object was read to its closing brace."""
        return self.object_end is not None

    @property
    def data_end(self) -> int:
        """The furthest byte of data that any tensor asks for."""
        return max((entry.end for entry in self.entries if entry.end is not None), default=0)


@dataclass(slots=True)
class HeaderFacts:
    """The head of the file. ``stated`` is the length that the first 8 bytes give.

    ``length`` is the true one: the stated, or another where that contradicts all the rest; None where it is unknown.
    """

    stated: int
    size: int
    length: int | None
    text: HeaderText
    cut: bool = False
    """Whether the file ends inside the header."""

    @property
    def length_wrong(self) -> bool:
        """Whether the stated length is not the true one, or cannot be."""
        return self.length != self.stated and not self.cut

    @property
    def data_start(self) -> int | None:
        """Absolute offset of the first byte of data, None if unknown."""
        return LENGTH_BYTES + self.length if self.length is not None else None

    @property
    def behind_object(self) -> Span | None:
        """The bytes of the header behind its object: padding. None where either end is unknown."""
        start, end = self.text.object_end, self.data_start
        return Span(start, end - start) if start is not None and end is not None else None


def read_header(source: ByteSource, limits: Limits) -> HeaderFacts:
    """Read the head of a file of at least 8 bytes. Raises SourceError where bytes cannot be had, never for what they are.

    Where the stated length does not fit, the object is read to wherever it closes, and the length that the rest of the
    file agrees with is taken for the true one.
    """
    stated = int.from_bytes(source.read_at(0, LENGTH_BYTES), "little")
    told = None
    if stated <= min(source.size - LENGTH_BYTES, LONGEST_HEADER):
        told = read_text(source.read_at(LENGTH_BYTES, stated), limits)
        if _clean(told, stated) and LENGTH_BYTES + stated + told.data_end == source.size:
            return HeaderFacts(stated, source.size, stated, told)
    free = _read_to_the_brace(source, limits)
    true = _length_by_votes(source, free)
    if true is not None and (told is None or not _clean(told, stated) or (_aligned(true) and not _aligned(stated))):
        return HeaderFacts(stated, source.size, true, free)
    if told is not None and (told.closed or not free.closed):
        return HeaderFacts(stated, source.size, stated, told)
    ends_early = free.fault is not None and free.fault[0] == "end"
    at_the_end = LENGTH_BYTES + len(free.text) >= source.size
    return HeaderFacts(stated, source.size, None, free, cut=ends_early and at_the_end)


def read_text(text: bytes, limits: Limits) -> HeaderText:
    """Read the JSON text of a header, which begins at offset 8 of the file."""
    found = HeaderText(text)
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        found.not_utf8 = Span(LENGTH_BYTES + error.start, error.end - error.start)
    reader = JsonText(text, limits.pickle_nodes, _REGULAR)
    reader.skip_whitespace()
    found.object_start = LENGTH_BYTES + reader.position
    try:
        if text[reader.position : reader.position + 1] != b"{":
            raise reader.unexpected("the opening brace of the header")
        for member in reader.members(0):
            _take_member(found, member)
        found.object_end = LENGTH_BYTES + reader.position
    except Stopped as stopped:
        fault: TextFault = stopped.fault
        found.fault = (fault.code, _span(fault.start, fault.end), fault.text)
    found.duplicates = [_placed(place) for place in reader.duplicates]
    found.surrogates = [_placed(place) for place in reader.surrogates]
    return found


def _placed(place: Place) -> tuple[str, Span]:
    return place.text, _span(place.start, place.end)


def _span(start: int, end: int) -> Span:
    return Span(LENGTH_BYTES + start, end - start)


def _clean(text: HeaderText, length: int) -> bool:
    """Whether the object closes inside ``length`` bytes with nothing but whitespace behind it."""
    end = text.object_end
    return end is not None and not text.text[end - LENGTH_BYTES : length].strip(_JSON_WHITESPACE)


def _aligned(length: int) -> bool:
    return (LENGTH_BYTES + length) % ALIGNMENT == 0


def _read_to_the_brace(source: ByteSource, limits: Limits) -> HeaderText:
    """Read the object without regard to the stated length. Most headers are small, so the window grows."""
    most = min(source.size - LENGTH_BYTES, LONGEST_HEADER)
    window = _FIRST_WINDOW
    while True:
        text = read_text(source.read_at(LENGTH_BYTES, min(window, most)), limits)
        if window >= most or text.fault is None or text.fault[0] != "end":
            return _only_the_object(text)
        window *= 8


def _only_the_object(text: HeaderText) -> HeaderText:
    """Bytes behind the object are data: that they are no UTF-8 says nothing."""
    end = text.object_end
    if end is not None:
        text.text = text.text[: end - LENGTH_BYTES]
        if text.not_utf8 is not None and text.not_utf8.offset >= end:
            text.not_utf8 = None
    elif text.not_utf8 is not None and text.fault is not None and text.not_utf8.offset > text.fault[1].end:
        text.not_utf8 = None
    return text


def _length_by_votes(source: ByteSource, text: HeaderText) -> int | None:
    """The length with which the data end where the file does, if what then lies between object and data is padding: none,
    or spaces up to a multiple of 8."""
    if text.object_end is None:
        return None
    length = source.size - LENGTH_BYTES - text.data_end
    gap = Span(text.object_end, LENGTH_BYTES + length - text.object_end)
    if not 0 <= gap.length <= _MOST_PADDING or (gap.length and not _aligned(length)):
        return None
    return length if not source.read_at(*gap).strip(b" ") else None


def _take_member(found: HeaderText, member: Member) -> None:
    if member.key == METADATA:
        _take_metadata(found, member.value)
    else:
        found.entries.append(_entry(member))


def _take_metadata(found: HeaderText, value: Value) -> None:
    if value.kind == "regular":  # not taken apart yet, as nobody expects a tensor there
        reader = JsonText(value.data.string, len(found.text))
        reader.position = value.start
        value = reader.value(1)
    if value.kind != "object":
        found.no_object = (_span(value.start, value.end), _what(value))
        return
    found.metadata = found.metadata or {}
    for member in value.data:
        if member.value.kind == "string":
            found.metadata[member.key] = member.value.data
        else:
            found.not_text.append((member.key, _span(member.value.start, member.value.end), _what(member.value)))


def _what(value: Value) -> str:
    """What a value is, for a message."""
    return str(value.data) if value.kind == "literal" else _KIND_WORDS[value.kind]


def _regular_entry(member: Member) -> TensorEntry:
    """The entry of a description that the pattern took in one step; its groups are the values of the three fields."""
    value: re.Match[bytes] = member.value.data
    begin, end = int(value[4]), int(value[5])
    forwards = begin <= end
    return TensorEntry(
        member.key,
        _span(member.start, member.end),
        _span(*value.span()),
        is_object=True,
        word=value[1][1:-1].decode(),
        shape=tuple(map(int, value[2][1:-1].split(b","))) if value[2][1:-1].strip() else (),
        begin=begin if forwards else None,
        end=end if forwards else None,
        places={name: _span(*value.span(number)) for number, name in enumerate(FIELDS, 1)},
    )


def _entry(member: Member) -> TensorEntry:
    value = member.value
    if value.kind == "regular":
        return _regular_entry(member)
    entry = TensorEntry(
        member.key, _span(member.start, member.end), _span(value.start, value.end), is_object=value.kind == "object"
    )
    for item in value.data if entry.is_object else ():
        if item.key not in FIELDS:
            entry.unknown.append((item.key, _span(item.start, item.end)))
            continue
        entry.places[item.key] = _span(item.value.start, item.value.end)
        if item.key == "dtype":
            entry.word = item.value.data if item.value.kind == "string" else None
        elif item.key == "shape":
            entry.shape = _numbers(item.value)
        else:
            entry.begin, entry.end = _offsets(item.value)
    return entry


def _numbers(value: Value) -> tuple[int, ...] | None:
    """A list of whole numbers from 0 up; None for anything else."""
    if value.kind != "array" or any(item.kind != "number" or item.data is None for item in value.data):
        return None
    return tuple(item.data for item in value.data)


def _offsets(value: Value) -> tuple[int | None, int | None]:
    numbers = _numbers(value)
    return (numbers[0], numbers[1]) if numbers is not None and len(numbers) == 2 and numbers[0] <= numbers[1] else (None, None)

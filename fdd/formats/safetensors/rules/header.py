# SPDX-License-Identifier: Apache-2.0
"""Rules on the header: its length, its JSON, its padding, the metadata, and what else the file might be."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.safetensors.document import HEADER_RECORD, SafetensorsDocument
from fdd.formats.safetensors.header import ALIGNMENT, LENGTH_BYTES, LONGEST_HEADER
from fdd.formats.safetensors.rules.catalogue import ALL, rule

_LENGTH = Span(0, LENGTH_BYTES)
_SPACE = 0x20
_JSON_WHITESPACE = b" \t\n\r"


@rule(
    "ST-HDR-001",
    "header-length-wrong",
    axis="well-formed",
    level="error",
    clause="header.length",
    kinds=ALL,
    title="The first 8 bytes give the length of the header.",
    message="the header should be {stated} bytes long by the first 8 bytes; {what}",
    remedy="Get the file again from its source. If no other copy exists: the tensors may be intact, only the length is damaged.",
)
def header_length_wrong(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: everything in the file is found through this number. With a wrong one, readers refuse the file, or
    take a part of the header for values.

    References: documentation of the safetensors library, section "Format".
    """
    header = document.header
    if not header.length_wrong:
        return
    if header.length is not None:
        what = f"the rest of the file agrees on {header.length}"
    elif header.text.object_end is not None:
        what = f"its JSON ends after {header.text.object_end - LENGTH_BYTES}"
    else:
        what = f"the file has {max(0, document.size - LENGTH_BYTES)} bytes behind them"
    yield at(_LENGTH, record=HEADER_RECORD, stated=header.stated, what=what)


@rule(
    "ST-HDR-002",
    "header-cut",
    axis="well-formed",
    level="error",
    clause="header.length",
    kinds=ALL,
    title="The file does not end inside its header.",
    message="the file ends inside the header: {present} of {stated} bytes are there",
    remedy="The transfer was interrupted. Get the file again from its source; no values are in it.",
)
def header_cut(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the values stand behind the header. A file that ends before has none of them.

    References: documentation of the safetensors library, section "Format".
    """
    header = document.header
    if header.cut:
        present = document.size - LENGTH_BYTES
        yield at(Span(LENGTH_BYTES, present), record=HEADER_RECORD, present=present, stated=header.stated)


@rule(
    "ST-HDR-003",
    "header-too-long",
    axis="valid",
    level="error",
    clause="header.length",
    kinds=ALL,
    title="The header is at most 100,000,000 bytes long.",
    message="the header should be {stated} bytes long; the safetensors library refuses more than {limit}",
    remedy="Split the model into several files, or, if the file is not that large, get it again: the length is damaged.",
)
def header_too_long(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the limit keeps readers from being fed endless JSON. The library does not open such a file.

    References: safetensors library, limit of its reader.
    """
    if document.header.stated > LONGEST_HEADER:
        yield at(_LENGTH, record=HEADER_RECORD, stated=document.header.stated, limit=LONGEST_HEADER)


@rule(
    "ST-HDR-004",
    "header-not-utf8",
    axis="well-formed",
    level="error",
    clause="header.json",
    kinds=ALL,
    title="The header is UTF-8.",
    message="bytes in the header are not UTF-8: {found}",
    remedy="Get the file again from its source. If it came so, the program that wrote it used another encoding for names.",
)
def header_not_utf8(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: some readers refuse the file, others replace the bytes and find tensors under other names.

    References: documentation of the safetensors library, section "Format"; RFC 8259, section 8.1.
    """
    place = document.header.text.not_utf8
    if place is not None:
        yield at(place, record=HEADER_RECORD, found=document.source.read_at(*place).hex(" "))


@rule(
    "ST-HDR-005",
    "header-not-json",
    axis="well-formed",
    level="error",
    clause="header.json",
    kinds=ALL,
    title="The header is one JSON object.",
    message="the header is not JSON from offset {offset} on: {what}",
    remedy="Get the file again from its source; a header damaged in one place can be repaired by hand in a copy.",
)
def header_not_json(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: readers refuse the file at the first fault, so none of its tensors can be had.

    References: documentation of the safetensors library, section "Format"; RFC 8259.
    """
    fault = document.header.text.fault
    if fault is None or fault[0] == "limit" or (fault[0] == "end" and document.header.length is None):
        return  # that the text ends is then the fault of the length
    _, place, what = fault
    yield at(place, record=HEADER_RECORD, offset=max(place.offset, place.end - 1), what=what)


@rule(
    "ST-HDR-006",
    "header-begins-with-whitespace",
    axis="valid",
    level="error",
    clause="header.json",
    kinds=ALL,
    title="The header begins with a brace.",
    message="{count} bytes of whitespace stand in front of the opening brace of the header",
    remedy="Write the file anew with the safetensors library.",
)
def header_begins_with_whitespace(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the brace at offset 8 is all that a reader has to tell the format by. Strict ones refuse the file.

    References: documentation of the safetensors library, section "Format".
    """
    length = document.header.text.object_start - LENGTH_BYTES
    if length:
        yield at(Span(LENGTH_BYTES, length), record=HEADER_RECORD, count=length)


@rule(
    "ST-HDR-007",
    "padding-not-spaces",
    axis="valid",
    level="error",
    clause="header.padding",
    kinds=ALL,
    needs=("extent",),
    title="The header is padded with spaces.",
    message="the header is padded with byte {byte} where only spaces may stand",
    remedy="Write the file anew with the safetensors library.",
)
def padding_not_spaces(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the format names one character for the padding. JSON readers pass over tabs and line ends as well,
    others do not.

    References: documentation of the safetensors library, section "Format".
    """
    behind, data = _behind(document)
    place = next((index for index, byte in enumerate(data) if byte != _SPACE), None)
    if place is not None and not data.strip(_JSON_WHITESPACE):
        yield at(Span(behind.offset + place, behind.length - place), record=HEADER_RECORD, byte=f"{data[place]:#04x}")


@rule(
    "ST-HDR-008",
    "bytes-behind-header-object",
    axis="well-formed",
    level="error",
    clause="header.padding",
    kinds=ALL,
    needs=("extent",),
    title="Nothing but padding follows the object of the header.",
    message="{count} bytes follow the JSON object inside the header, beginning with {found}",
    remedy="Get the file again from its source, or ask who wrote it: these bytes belong to no tensor.",
)
def bytes_behind_header_object(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: readers that take the first object for the header open the file, others refuse it; and what stands
    there is seen by nobody.

    References: documentation of the safetensors library, section "Format"; RFC 8259, section 2.
    """
    behind, data = _behind(document)
    rest = data.lstrip(_JSON_WHITESPACE)
    if rest:
        start = behind.end - len(rest)
        yield at(Span(start, len(rest)), record=HEADER_RECORD, count=len(rest), found=rest[:8].hex(" "))


def _behind(document: SafetensorsDocument) -> tuple[Span, bytes]:
    """The bytes of the header behind its object."""
    behind = document.header.behind_object
    return (behind, document.source.read_at(*behind)) if behind is not None else (Span(0, 0), b"")


@rule(
    "ST-HDR-009",
    "duplicate-key",
    axis="well-formed",
    level="error",
    clause="header.keys",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="No key stands twice in an object of the header.",
    message='the key "{key}" stands twice in one object',
    remedy="Do not use the file before it is known which of the two was meant; ask who wrote it.",
)
def duplicate_key(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: one reader takes the first of the two, another the last. They see different tensors.

    References: documentation of the safetensors library, notes to the section "Format"; RFC 8259, section 4.
    """
    for key, place in document.header.text.duplicates:
        yield at(place, record=HEADER_RECORD, key=key)


@rule(
    "ST-HDR-010",
    "half-character",
    axis="well-formed",
    level="error",
    clause="header.json",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="Escapes in the header stand for whole characters.",
    message="an escape in the header is half of a surrogate pair, which is no character",
    remedy="Get the file again from its source, or rename the tensor with the program that wrote it.",
)
def half_character(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the library refuses the file, other readers make up a character or keep the half.

    References: RFC 8259, section 8.2.
    """
    for _, place in document.header.text.surrogates:
        yield at(place, record=HEADER_RECORD)


@rule(
    "ST-HDR-011",
    "metadata-not-text",
    axis="valid",
    level="error",
    clause="header.metadata",
    kinds=ALL,
    needs=("entries",),
    per="place",
    title="The metadata map texts to texts.",
    message="{what} in __metadata__ is {found}, not {wanted}",
    remedy="Write the file anew, with every value of the metadata as a text.",
)
def metadata_not_text(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: the library refuses a file whose metadata hold anything but texts.

    References: documentation of the safetensors library, section "Format".
    """
    text = document.header.text
    if text.no_object is not None:
        place, found = text.no_object
        yield at(place, record=HEADER_RECORD, what="what stands", found=found, wanted="an object of texts")
    for key, place, found in text.not_text:
        yield at(place, record=HEADER_RECORD, what=f'"{key}"', found=found, wanted="a text")


@rule(
    "ST-HDR-012",
    "header-unaligned",
    axis="advice",
    level="warning",
    clause="writer.padding",
    kinds=ALL,
    needs=("extent",),
    title="The values begin at a multiple of 8 bytes.",
    message="the values begin at offset {offset}, which is no multiple of 8",
    remedy="To use the file mapped into memory, write it anew with the safetensors library; its contents are complete.",
)
def header_unaligned(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: programs that map the file read values in place. Unaligned ones are slow, and on some machines an
    error.

    References: safetensors library, writer.
    """
    start = document.header.data_start
    if start is not None and start % ALIGNMENT:
        yield at(_LENGTH, record=HEADER_RECORD, offset=start)


@rule(
    "ST-HDR-013",
    "header-of-another-writer",
    axis="advice",
    level="info",
    clause="writer.header",
    kinds=ALL,
    needs=("canonical",),
    title="The header is as the safetensors library writes it.",
    message="the header differs from what the safetensors library would write, from offset {offset} on",
    remedy="Nothing to do: another program wrote the file.",
)
def header_of_another_writer(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: it tells something of where a file comes from, and, where all other files of a collection are the
    library's, which one was changed.

    References: safetensors library, writer: compact JSON, metadata first, tensors in the order of their data.
    """
    if document.rewritten is not None:
        yield at(document.rewritten, record=HEADER_RECORD, offset=document.rewritten.offset)


@rule(
    "ST-HDR-014",
    "other-reading",
    axis="well-formed",
    level="error",
    clause="file.one-reading",
    kinds=ALL,
    per="place",
    title="The file is nothing else besides.",
    message="the bytes also read as {what}",
    remedy="Do not open the file with anything but a safetensors reader, and find out how it was made.",
)
def other_reading(document: SafetensorsDocument) -> Iterator[Violation]:
    """Why it matters: a file that another program takes for an archive or a pickle is a way past filters: what it holds
    then is not what was looked at.

    References: documentation of the safetensors library, notes to the section "Format" (polyglot files).
    """
    for reading in document.other_readings:
        yield at(reading.span, what=reading.what)

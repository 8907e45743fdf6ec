# SPDX-License-Identifier: Apache-2.0
"""Safetensors files: good ones as the library writes them, and one for each way to break the format."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable

from corpus.build.kit import recipe

Entry = dict[str, object]
WIDTHS = {"F64": 8, "I64": 8, "U64": 8, "C64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2}
"""Bytes of one value; types that are not here take one."""


def entry(dtype: str, shape: list[int], begin: int, size: int | None = None) -> Entry:
    """The description of a tensor that begins at ``begin``; ``size`` bytes long where shape and type shall not tell."""
    if size is None:
        size = WIDTHS.get(dtype, 1)
        for length in shape:
            size *= length
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size]}


def text_of(header: object) -> bytes:
    """The JSON of a header as the library writes it, without padding."""
    return json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()


def padded(text: bytes) -> bytes:
    """The text with the spaces that make the values begin at a multiple of 8."""
    return text + b" " * (-len(text) % 8)


def assemble(text: bytes, data: bytes, length: int | None = None) -> bytes:
    """A file of that header and these values; ``length`` where the first 8 bytes shall say something else."""
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def values(count: int) -> bytes:
    """Bytes to tell apart, none of them a space."""
    return bytes(128 + index % 64 for index in range(count))


def make(header: object, count: int) -> bytes:
    """A file of that header and ``count`` bytes of values."""
    return assemble(padded(text_of(header)), values(count))


GOOD: dict[str, object] = {
    "__metadata__": {"format": "pt", "source": "fdd corpus"},
    "steps": entry("I64", [1], 0),
    "fc.bias": entry("F32", [2], 8),
    "fc.weight": entry("F32", [2, 3], 16),
    "none": entry("F32", [0, 3], 40),
    "half": entry("F16", [4], 40),
    "mask": entry("BOOL", [3], 48),
}
GOOD_DATA = values(48) + b"\x01\x00\x01"
ONE = {"w": entry("F32", [2], 0)}
"""One tensor of 8 bytes."""


def one(**changes: object) -> dict[str, object]:
    """The header of one tensor with other fields."""
    return {"w": {**ONE["w"], **changes}}


def both(first: Entry, second: Entry) -> dict[str, object]:
    """The header of two tensors."""
    return {"a": first, "b": second}


def good() -> bytes:
    """As the library writes it: metadata, types of several widths, an empty tensor."""
    return assemble(padded(text_of(GOOD)), GOOD_DATA)


recipe("safetensors/good.safetensors")(good)


@recipe("safetensors/all-types.safetensors")
def all_types() -> bytes:
    """One tensor of every type, in the order of the library."""
    words = "U64 I64 F64 C64 F32 U32 I32 BF16 F16 U16 I16 F8_E5M2FNUZ F8_E4M3FNUZ F8_E8M0 F8_E4M3 F8_E5M2 I8 U8"
    header: dict[str, object] = {}
    position = 0
    for word in [*words.split(), "F6_E3M2", "F6_E2M3", "F4", "BOOL"]:
        size = {"F6_E3M2": 6, "F6_E2M3": 6, "F4": 4}.get(word, 8 * WIDTHS.get(word, 1))
        header[f"of_{word}"] = entry(word, [2, 4], position, size)
        position += size
    return assemble(padded(text_of(header)), values(position - 8) + bytes([0, 1] * 4))


@recipe("safetensors/scalar-and-names.safetensors")
def scalar_and_names() -> bytes:
    """A tensor without dimensions, and names that need escapes in JSON or in tensor names."""
    header = {'a"b\\c': entry("U8", [], 0), "a/b~c": entry("U8", [1], 1), "größe": entry("U8", [2], 2)}
    return make(header, 4)


@recipe("safetensors/good-named.pt")
def good_named() -> bytes:
    """A good file under a name of PyTorch."""
    return make(ONE, 8)


@recipe("safetensors/header-length-wrong.safetensors")
def header_length_wrong() -> bytes:
    """One flipped bit in the length: it ends inside the JSON."""
    data = bytearray(good())
    data[0] ^= 0x20
    return bytes(data)


@recipe("safetensors/header-length-in-padding.safetensors")
def header_length_in_padding() -> bytes:
    """The length leaves out a part of the padding: the JSON is whole, the values begin too early."""
    text = padded(text_of(ONE) + b" ")
    return assemble(text, values(8), len(text) ^ 0x02)


@recipe("safetensors/header-length-unknown.safetensors")
def header_length_unknown() -> bytes:
    """The length leads past the end, and the values are cut, so that nothing tells where they begin."""
    return good()[:-1].replace(struct.pack("<Q", len(padded(text_of(GOOD)))), struct.pack("<Q", 4096))


@recipe("safetensors/header-too-long.safetensors")
def header_too_long() -> bytes:
    """A flipped bit makes the length greater than any reader takes."""
    data = bytearray(good())
    data[3] ^= 0x40
    return bytes(data)


@recipe("safetensors/header-cut.safetensors")
def header_cut() -> bytes:
    """The file ends inside its header."""
    return good()[:150]


@recipe("safetensors/header-not-utf8.safetensors")
def header_not_utf8() -> bytes:
    """A name in Latin-1."""
    return assemble(padded(text_of({"größe": entry("U8", [8], 0)}).replace("ö".encode(), b"\xf6")), values(8))


@recipe("safetensors/header-not-json.safetensors")
def header_not_json() -> bytes:
    """A flipped bit in a brace."""
    return make(ONE, 8).replace(b'"w":{', b'"w":z')


@recipe("safetensors/header-nested.safetensors")
def header_nested() -> bytes:
    """A field of 200 lists inside one another."""
    text = text_of(one(x=0)).replace(b'"x":0', b'"x":' + b"[" * 200 + b"]" * 200)
    return assemble(padded(text), values(8))


@recipe("safetensors/number-too-large.safetensors")
def number_too_large() -> bytes:
    """A field with a number that no double holds."""
    return assemble(padded(text_of(one(x=0)).replace(b'"x":0', b'"x":1e999')), values(8))


@recipe("safetensors/string-not-closed.safetensors")
def string_not_closed() -> bytes:
    """A quotation mark that became a space: the text runs on to the next one."""
    return make(ONE, 8).replace(b'"dtype"', b'"dtype ')


@recipe("safetensors/control-character.safetensors")
def control_character() -> bytes:
    """A NUL in a name, without an escape."""
    return make({"w0": entry("F32", [2], 0)}, 8).replace(b'"w0"', b'"w\x00"')


@recipe("safetensors/escape-unknown.safetensors")
def escape_unknown() -> bytes:
    """A backslash in front of a letter that is no escape."""
    return make({"w01": entry("F32", [2], 0)}, 8).replace(b'"w01"', b'"w\\x"')


@recipe("safetensors/header-begins-with-whitespace.safetensors")
def header_begins_with_whitespace() -> bytes:
    """Two spaces in front of the brace."""
    return assemble(padded(b"  " + text_of(ONE)), values(8))


@recipe("safetensors/padding-not-spaces.safetensors")
def padding_not_spaces() -> bytes:
    """Padded with line ends."""
    text = text_of(ONE)
    return assemble(text + b"\n" * (8 - len(text) % 8), values(8))


@recipe("safetensors/bytes-behind-header-object.safetensors")
def bytes_behind_header_object() -> bytes:
    """Padded with NULs."""
    text = text_of(ONE)
    return assemble(text + bytes(8 - len(text) % 8), values(8))


@recipe("safetensors/duplicate-key.safetensors")
def duplicate_key() -> bytes:
    """Two tensors of one name."""
    return make(both(entry("F32", [2], 0), entry("F32", [2], 8)), 16).replace(b'"b":', b'"a":')


@recipe("safetensors/duplicate-key-escaped.safetensors")
def duplicate_key_escaped() -> bytes:
    """Two tensors of one name, once with an escape."""
    header = {"a": entry("F32", [2], 0), "bbbbbb": entry("F32", [2], 8)}
    return make(header, 16).replace(b'"bbbbbb":', b'"\\u0061":')


@recipe("safetensors/duplicate-field.safetensors")
def duplicate_field() -> bytes:
    """A tensor with two shapes."""
    return make(one(shapf=[1]), 8).replace(b'"shapf"', b'"shape"')


@recipe("safetensors/duplicate-metadata.safetensors")
def duplicate_metadata() -> bytes:
    """A key of the metadata twice."""
    return make({"__metadata__": {"format": "pt", "formau": "np"}, **ONE}, 8).replace(b'"formau"', b'"format"')


@recipe("safetensors/half-character.safetensors")
def half_character() -> bytes:
    """A name with the first half of a surrogate pair."""
    return make({"w12345": entry("F32", [2], 0)}, 8).replace(b'"w12345"', b'"\\ud83d"')


@recipe("safetensors/metadata-not-text.safetensors")
def metadata_not_text() -> bytes:
    """A number and a list among the metadata."""
    return make({"__metadata__": {"format": "pt", "epoch": 3, "tags": ["a"]}, **ONE}, 8)


@recipe("safetensors/metadata-not-object.safetensors")
def metadata_not_object() -> bytes:
    """Metadata that are null."""
    return make({"__metadata__": None, **ONE}, 8)


@recipe("safetensors/header-unaligned.safetensors")
def header_unaligned() -> bytes:
    """A header without padding, of an odd length."""
    text = text_of(ONE)
    return assemble(text if len(text) % 2 else text.replace(b'"w"', b'"ww"'), values(8))


@recipe("safetensors/header-of-another-writer.safetensors")
def header_of_another_writer() -> bytes:
    """JSON with spaces, as other programs write it."""
    return assemble(padded(json.dumps(GOOD).encode()), GOOD_DATA)


@recipe("safetensors/header-padded-further.safetensors")
def header_padded_further() -> bytes:
    """Room left behind the header for changes in place."""
    return assemble(padded(text_of(ONE)) + b" " * 64, values(8))


def plain_zip() -> bytes:
    """A ZIP archive of one text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        member = zipfile.ZipInfo("readme.txt")
        member.create_system = 3
        archive.writestr(member, "hello")
    return buffer.getvalue()


@recipe("safetensors/other-reading.safetensors")
def other_reading() -> bytes:
    """A tensor whose values are a ZIP archive: programs that look at the end of the file open that."""
    archive = plain_zip()
    return assemble(padded(text_of({"w": entry("U8", [len(archive)], 0)})), archive)


@recipe("safetensors/other-reading-behind.safetensors")
def other_reading_behind() -> bytes:
    """A pickle behind the last tensor."""
    return make(ONE, 8) + b"\x80\x02}q\x00."


RecipeOfHeader = tuple[str, Callable[[], object], int, str]
BROKEN: tuple[RecipeOfHeader, ...] = (
    ("entry-not-object", lambda: {**ONE, "x": ["F32", [2], [0, 8]]}, 8, "A tensor described by a list."),
    ("entry-field-missing", lambda: one() | {"x": {"dtype": "F32", "data_offsets": [8, 12]}}, 12, "A tensor without a shape."),
    ("entry-field-unknown", lambda: one(scale=0.5), 8, "A field of another program."),
    ("dtype-unknown", lambda: one(dtype="Q8"), 8, "A type that the format does not have."),
    ("dtype-not-text", lambda: one(dtype=4), 8, "A type by number."),
    ("shape-wrong", lambda: one(shape=[2.0]), 8, "A shape that is not made of whole numbers."),
    ("shape-negative", lambda: one(shape=[-2]), 8, "A size below 0."),
    ("offsets-wrong", lambda: one(data_offsets=[8, 0]), 8, "Offsets that go backwards."),
    ("offsets-not-two", lambda: one(data_offsets=[0]), 8, "One offset alone."),
    ("size-differs", lambda: one(shape=[3]), 8, "A shape of 12 bytes in offsets of 8."),
    ("shape-too-large", lambda: one(shape=[1 << 32, 1 << 31]), 8, "Sizes that multiply to 2^63."),
    ("part-of-a-byte", lambda: one(dtype="F4", shape=[3], data_offsets=[0, 2]), 2, "Three values of four bits."),
    ("data-hole", lambda: both(entry("F32", [2], 0), entry("F32", [2], 12)), 20, "Four bytes between two tensors."),
    ("data-hole-first", lambda: one(data_offsets=[4, 12]), 12, "Four bytes in front of the only tensor."),
    ("data-overlap", lambda: both(entry("F32", [2], 0), entry("F32", [2], 4)), 12, "Two tensors that share four bytes."),
    ("data-shared", lambda: both(entry("F32", [2], 0), entry("F32", [2], 0)), 8, "Two tensors on the same bytes."),
    ("empty-tensor-misplaced", lambda: both(entry("F32", [2], 0), entry("F32", [0], 4)), 8, "An empty tensor inside another."),
    ("data-cut", lambda: both(entry("F32", [2], 0), entry("F32", [2], 8)), 12, "The file ends inside the second tensor."),
    ("bytes-after-data", lambda: ONE, 13, "Five bytes behind the last tensor."),
    ("tensor-unaligned", lambda: both(entry("U8", [3], 0), entry("F32", [2], 3)), 11, "Numbers behind three bytes."),
    ("order-of-another-writer", lambda: {"b": entry("F32", [1], 0), "a": entry("F32", [1], 4)}, 8, "Tensors by no order."),
    ("name-hard-to-handle", lambda: {"": entry("U8", [1], 0), "a\u0000b": entry("U8", [1], 1)}, 2, "An empty name, and a NUL."),
    ("no-tensors", lambda: {"__metadata__": {"format": "pt"}}, 0, "Metadata alone."),
    ("no-tensors-at-all", dict, 0, "An empty object."),
    ("bool-neither-true-nor-false", lambda: one(dtype="BOOL", shape=[8]), 8, "Bool values of other bytes."),
)  # fmt: skip
"""Name, header, bytes of values, what is wrong: files that differ from good ones in nothing but that."""


def _register(name: str, header: Callable[[], object], count: int, says: str) -> None:
    def build() -> bytes:
        return make(header(), count)

    build.__doc__ = says
    recipe(f"safetensors/{name}.safetensors")(build)


for _row in BROKEN:
    _register(*_row)

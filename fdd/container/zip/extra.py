# SPDX-License-Identifier: Apache-2.0
"""Extra fields (APPNOTE 4.5), and what a ZIP64 field says (APPNOTE 4.5.3), torch's own use of it included."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, unpack_from

from fdd.container.zip.structs import EXTRA_ZIP64, U32_ESCAPE, ExtraField, Fault, Zip64Extra
from fdd.core.span import Span

_HEAD = Struct("<HH")
_FILLER = b"Z"


@lru_cache(maxsize=256)
def _filler(length: int) -> bytes:
    """The filler of torch's padding field. Shared: 70,000 records aligned to 4 KiB would keep 140 MB of it otherwise."""
    return _FILLER * length


def parse_extra(data: bytes, offset: int) -> tuple[tuple[ExtraField, ...], Fault | None]:
    """Take an extra area that begins at absolute ``offset`` apart.

    Fault codes: ``extra-cut`` (a field claims more bytes than there are), ``extra-rest`` (1 to 3 bytes are left over).
    """
    fields: list[ExtraField] = []
    position, total = 0, len(data)
    while position + 4 <= total:
        identifier, length = _HEAD.unpack_from(data, position)
        if position + 4 + length > total:
            here = offset + position
            return tuple(fields), Fault("extra-cut", here, total - position, f"{length} bytes of field {identifier:#06x}")
        content = data[position + 4 : position + 4 + length]
        if length and content.count(_FILLER) == length:
            content = _filler(length)
        fields.append(ExtraField(identifier, Span(offset + position, 4 + length), content))
        position += 4 + length
    if position < total:
        return tuple(fields), Fault("extra-rest", offset + position, total - position, "a field of at least 4 bytes")
    return tuple(fields), None


def zip64_of(fields: tuple[ExtraField, ...]) -> Zip64Extra | None:
    """The first ZIP64 field, its numbers in the order in which they stand."""
    for item in fields:
        if item.identifier == EXTRA_ZIP64:
            count = len(item.data) // 8
            rest = item.data[8 * count :]
            disk_start: int | None = None
            if len(rest) >= 4:
                (disk_start,) = unpack_from("<I", rest)
                rest = rest[4:]
            return Zip64Extra(item.span, unpack_from(f"<{count}Q", item.data), disk_start, rest)
    return None


def resolve_central(
    uncompressed: int, compressed: int, offset: int, zip64: Zip64Extra | None
) -> tuple[int, int, int, Fault | None]:
    """Replace the escaped ones of three 32-bit values by those of the ZIP64 field, in the order APPNOTE gives.

    Fault ``zip64-cut``: an escaped value has no number in the field. Without a field an escape is the value itself.
    """
    if zip64 is None:
        return uncompressed, compressed, offset, None
    values = [uncompressed, compressed, offset]
    escaped = [index for index, value in enumerate(values) if value == U32_ESCAPE]
    for index, number in zip(escaped, zip64.values, strict=False):
        values[index] = number
    fault = None
    if len(escaped) > len(zip64.values):
        fault = Fault("zip64-cut", zip64.span.offset, zip64.span.length, f"{len(escaped)} numbers")
    return values[0], values[1], values[2], fault


def resolve_local(uncompressed: int, compressed: int, zip64: Zip64Extra | None) -> tuple[int, int, int | None, Fault | None]:
    """Resolve the sizes of a local header: ``(uncompressed, compressed, header offset or None, fault)``.

    With escaped sizes the field is read as APPNOTE says. With 0 in both it is torch's dialect (format.md 1.10): one
    number is the header offset; two are the sizes; three are sizes and offset.
    """
    if zip64 is None:
        return uncompressed, compressed, None, None
    if U32_ESCAPE in (uncompressed, compressed):
        resolved = resolve_central(uncompressed, compressed, 0, zip64)
        return resolved[0], resolved[1], None, resolved[3]
    values = zip64.values
    if uncompressed or compressed or not values:
        return uncompressed, compressed, None, None
    if len(values) == 1:
        return 0, 0, values[0], None
    return values[0], values[1], values[2] if len(values) > 2 else None, None

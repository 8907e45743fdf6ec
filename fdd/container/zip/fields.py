# SPDX-License-Identifier: Apache-2.0
"""Where each fixed field of a ZIP structure lies: name of the attribute in :mod:`structs` -> (offset, length) in bytes."""

from __future__ import annotations

from collections.abc import Mapping

from fdd.core.span import Span

Fields = Mapping[str, tuple[int, int]]


def _fields(**lengths: int) -> dict[str, tuple[int, int]]:
    """Lay the fields out one behind the other."""
    table: dict[str, tuple[int, int]] = {}
    position = 0
    for name, length in lengths.items():
        table[name] = (position, length)
        position += length
    return table


LOCAL_FIELDS: Fields = _fields(
    signature=4, version_needed=2, flags=2, method=2, time=2, date=2, crc32=4, compressed_size=4, uncompressed_size=4,
    name_length=2, extra_length=2,
)  # fmt: skip
CENTRAL_FIELDS: Fields = _fields(
    signature=4, version_made_by=2, version_needed=2, flags=2, method=2, time=2, date=2, crc32=4, compressed_size=4,
    uncompressed_size=4, name_length=2, extra_length=2, comment_length=2, disk_start=2, internal_attributes=2,
    external_attributes=4, header_offset=4,
)  # fmt: skip
DESCRIPTOR_FIELDS: Fields = _fields(signature=4, crc32=4, compressed_size=4, uncompressed_size=4)
DESCRIPTOR64_FIELDS: Fields = _fields(signature=4, crc32=4, compressed_size=8, uncompressed_size=8)
ZIP64_END_FIELDS: Fields = _fields(
    signature=4, record_size=8, version_made_by=2, version_needed=2, disk_number=4, directory_disk=4, disk_entries=8,
    entries=8, directory_size=8, directory_offset=8,
)  # fmt: skip
LOCATOR_FIELDS: Fields = _fields(signature=4, directory_disk=4, end_record_offset=8, disks=4)
END_FIELDS: Fields = _fields(
    signature=4, disk_number=2, directory_disk=2, disk_entries=2, entries=2, directory_size=4, directory_offset=4,
    comment_length=2,
)  # fmt: skip


def field_span(structure: Span, fields: Fields, name: str) -> Span:
    """The span of one field of a structure that lies at ``structure``."""
    offset, length = fields[name]
    return Span(structure.offset + offset, length)

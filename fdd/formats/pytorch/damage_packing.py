# SPDX-License-Identifier: Apache-2.0
"""Archives that other tools wrote again: which tool, what it left behind, and what it encrypted.

Tools are told by the fields that torch leaves 0: "version made by" (APPNOTE 4.4.2), attributes (4.4.15) and extra fields (4.5).
What each writes was measured on archives made by Info-ZIP 3.0, 7-Zip 26.02, OpenJDK 17 and Python 3.11; others by their
published sources.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

from fdd.container.zip.structs import (
    EXTRA_PADDING,
    FLAG_DESCRIPTOR,
    FLAG_ENCRYPTED,
    FLAG_STRONG_ENCRYPTION,
    CentralEntry,
    LocalHeader,
    ZipFacts,
)
from fdd.core.source import ByteSource
from fdd.core.text import decode_name
from fdd.formats.pytorch.damage_facts import Encrypted, Leftovers, Packer
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS

EXTRA_NTFS = 0x000A
EXTRA_TIMES = 0x5455
EXTRA_UNIX_OLD = 0x5855
EXTRA_UNIX_IDS = 0x7875
EXTRA_JAR = 0xCAFE
EXTRA_AES = 0x9901
_HOSTS = {0: "MS-DOS or Windows", 3: "Unix", 7: "Macintosh", 10: "Windows NTFS", 11: "MVS", 14: "VFAT", 19: "OS X"}
"""APPNOTE 4.4.2.2."""
_LARGEST_CLEAR = 1 << 20
"""Bytes of the largest record whose checksum is computed to tell whether it is encrypted at all."""
_MOST_TRIED = 16
_METHODS = {"aes": "AES", "strong": "PKWARE strong encryption", "traditional": "traditional PKWARE encryption"}


class _Entry(NamedTuple):
    """The two headers of a record, as far as tools differ in them."""

    central: CentralEntry
    local: LocalHeader | None

    @property
    def host(self) -> int:
        return self.central.version_made_by >> 8

    @property
    def version(self) -> int:
        return self.central.version_made_by & 0xFF

    @property
    def extras(self) -> frozenset[int]:
        local = self.local.extra if self.local is not None else ()
        return frozenset(extra.identifier for extra in (*self.central.extra, *local))


def _is_infozip(entry: _Entry) -> bool:
    return entry.version == 30 and entry.host == 3 and bool(entry.extras & {EXTRA_TIMES, EXTRA_UNIX_IDS})


def _is_seven_zip(entry: _Entry) -> bool:
    return entry.version == 63


def _is_macos(entry: _Entry) -> bool:
    return (
        entry.host in (3, 19)
        and entry.version == 21
        and (EXTRA_UNIX_OLD in entry.extras or bool(entry.central.flags & FLAG_DESCRIPTOR))
    )


def _is_java(entry: _Entry) -> bool:
    streamed = entry.version in (10, 20) and entry.host == 0 and entry.central.flags & 0xF7FF == FLAG_DESCRIPTOR
    return EXTRA_JAR in entry.extras or (
        streamed and entry.central.version_needed == 20 and not entry.central.external_attributes
    )


def _is_python(entry: _Entry) -> bool:
    plain = entry.version == 20 and entry.host == 3 and not entry.extras and not entry.central.flags & FLAG_DESCRIPTOR
    return plain and entry.central.version_needed == 20


def _is_windows(entry: _Entry) -> bool:
    return entry.host in (0, 10, 11) and entry.version in (10, 20, 45) and entry.central.flags & FLAG_DESCRIPTOR == 0


_TOOLS: tuple[tuple[str, str, Callable[[_Entry], bool]], ...] = (
    ("7-Zip", "version 6.3 in the directory entries", _is_seven_zip),
    ("Info-ZIP's zip", "version 3.0 and Unix times and user ids in the entries", _is_infozip),
    ("macOS (Finder or ditto)", "version 2.1 in the directory entries", _is_macos),
    ("Java (jar or java.util.zip)", "data descriptors or a jar mark, and no attributes", _is_java),
    ("Python's zipfile", "version 2.0 on Unix, without extra fields", _is_python),
    ("a Windows tool (Explorer or .NET)", "version 2.0 on MS-DOS or Windows, without extra fields", _is_windows),
)
_LEFTOVERS = (
    ("macOS", re.compile(r"__MACOSX/.*|(?:.*/)?(?:\.DS_Store|\._[^/]*)/?", re.DOTALL)),
    ("Windows", re.compile(r"(?:.*/)?(?:thumbs\.db|desktop\.ini)", re.DOTALL | re.IGNORECASE)),
    ("Linux", re.compile(r"(?:.*/)?(?:[^/]*~|\.directory)", re.DOTALL)),
)


def find_packers(facts: ZipFacts) -> list[Packer]:
    """The tools that wrote entries, by number of entries; empty where all are torch's."""
    found: dict[str, Packer] = {}
    files = _files(facts)
    for record in facts.records:
        if record.entry is None or not _foreign(_Entry(record.entry, record.local)):
            continue
        if record.name.endswith(b"/") and len(facts.records) > 1:  # entries of folders have fewer of a tool's marks
            continue
        tool, reasons = _tool(_Entry(record.entry, record.local))
        packer = found.setdefault(tool, Packer(tool, reasons, 0, files, record.entry.span))
        packer.entries += 1
    return sorted(found.values(), key=lambda packer: -packer.entries)


def _foreign(entry: _Entry) -> bool:
    """Whether torch cannot have written it: torch has 0 as "version made by", and its padding field in every local header.

    One of the two signs alone can be damage.
    """
    return entry.version >= 10 and entry.host in _HOSTS and EXTRA_PADDING not in entry.extras


def _tool(entry: _Entry) -> tuple[str, str]:
    for name, reasons, test in _TOOLS:
        if test(entry):
            return name, reasons
    host = _HOSTS.get(entry.host, f"system {entry.host}")
    return "an unknown tool", f"version {entry.version // 10}.{entry.version % 10} on {host} in the directory entries"


def _files(facts: ZipFacts) -> int:
    """Records that are no entries of folders."""
    return sum(not record.name.endswith(b"/") for record in facts.records)


def find_leftovers(document: TorchDocument) -> list[Leftovers]:
    """Records that systems or people's tools add to folders."""
    facts = document.zip
    assert facts is not None
    found: dict[str, Leftovers] = {}
    for record in facts.records:
        name = decode_name(record.name)
        system = next((system for system, pattern in _LEFTOVERS if pattern.fullmatch(name)), None)
        if system is not None and record.entry is not None:
            found.setdefault(system, Leftovers([], system, record.entry.span)).names.append(name)
    return list(found.values())


def is_flattened(document: TorchDocument) -> bool:
    """Whether a model's records stand at the top of the archive, where torch looks for one folder."""
    return document.kind in EAGER_KINDS and not document.root and any(row.role == "object" for row in document.records)


def find_encrypted(document: TorchDocument) -> list[Encrypted]:
    """Records marked as encrypted in both headers, those apart that are in clear all the same."""
    facts = document.zip
    assert facts is not None
    groups: dict[tuple[str, bool], Encrypted] = {}
    tried = 0
    for record in facts.records:
        entry = record.entry
        marks = FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION
        local = record.local.flags if record.local is not None else 0 if facts.local_headers_read else marks
        if entry is None or not entry.flags & local & marks:
            continue
        small = record.payload is not None and record.payload.length <= _LARGEST_CLEAR and tried < _MOST_TRIED
        clear = False
        if small and record.payload is not None and entry.compressed_size == record.payload.length:
            tried += 1
            clear = _in_clear(document.source, record.payload.offset, record.payload.length, entry)
        method = _METHODS[_encryption(_Entry(entry, record.local))]
        group = groups.setdefault((method, clear), Encrypted([], _files(facts), method, clear, entry.span))
        group.names.append(decode_name(record.name))
    return list(groups.values())


def _in_clear(source: ByteSource, offset: int, length: int, entry: CentralEntry) -> bool:
    """Whether the stored bytes have the checksum of the plain ones."""
    data = source.read_at(offset, length)
    if entry.method == 8:
        inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            data = inflater.decompress(data, _LARGEST_CLEAR)
        except zlib.error:
            return False
    return bool(data) and zlib.crc32(data) == entry.crc32


def _encryption(entry: _Entry) -> str:
    if entry.central.method == 99 or EXTRA_AES in entry.extras:
        return "aes"
    return "strong" if entry.central.flags & FLAG_STRONG_ENCRYPTION else "traditional"

# SPDX-License-Identifier: Apache-2.0
"""Opens the kinds that are ZIP archives: records, small texts, pickles, and what hides between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.container.zip import read_local_headers, read_some_local_headers
from fdd.container.zip.inflate import inflate
from fdd.container.zip.layout import UNOWNED
from fdd.container.zip.structs import (
    FLAG_DESCRIPTOR,
    FLAG_ENCRYPTED,
    FLAG_MASKED,
    FLAG_PATCHED,
    FLAG_STRONG_ENCRYPTION,
    METHOD_DEFLATED,
    METHOD_STORED,
    ZipFacts,
    ZipRecord,
)
from fdd.core.model import Identification, Record
from fdd.core.source import ByteSource
from fdd.core.span import Span, gaps
from fdd.core.text import decode_name
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS, MARKERS, SCRIPT_PICKLES, SMALL_RECORDS, ZipKind, record_role, zip_kind
from fdd.formats.pytorch.pickled import probe_hidden, probe_unowned, run_pickle
from fdd.limits import Limits

UNREADABLE_FLAGS = FLAG_ENCRYPTED | FLAG_PATCHED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED
SMALL = 4096
"""Bytes of a small record that are kept; torch writes at most a few dozen."""
METHOD_NAMES = {METHOD_STORED: "stored", METHOD_DEFLATED: "deflated", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz", 99: "aes"}
PICKLE_ROLES = frozenset({*SCRIPT_PICKLES.values(), "object", "packaged", "ts-code"})
CARRIED_ROLES = frozenset({"extra-file", "resource", "member", "native"})
"""Roles of records that may hold any file of the user, pickles too: what they name counts, that they are there does not."""
OUTSIDE_ROLES = frozenset({"unknown", "outside", "directory-entry"})
"""Roles of records that the format has no use for."""
SMALL_ROLES = frozenset(record_role("torch-zip", name) for name in MARKERS) | {"model-json", "extern-modules", "python-version"}
"""Roles of records that hold a few words of text: a pickle in their place is one that hides."""
WRAPPED = re.compile(
    rb"\x1f\x8b\x08|BZh[1-9]1AY&SY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07"
    rb"|.{257}ustar",
    re.DOTALL,
)
"""First bytes of gzip, bzip2, xz, zstd, LZ4, 7-Zip and RAR, and of tar: what is inside, nothing here looks at."""
NATIVE_MAGIC = {
    b"\x7fELF": "ELF",
    b"MZ": "PE",
    b"\xfe\xed\xfa\xce": "Mach-O",
    b"\xfe\xed\xfa\xcf": "Mach-O",
    b"\xce\xfa\xed\xfe": "Mach-O",
    b"\xcf\xfa\xed\xfe": "Mach-O",
    b"\xca\xfe\xba\xbe": "Mach-O",
}
"""First bytes of machine code."""


def open_zip(
    source: ByteSource, name: str | None, identification: Identification, facts: ZipFacts, limits: Limits
) -> TorchDocument:
    """Read what a ZIP of a torch kind holds. Never raises on bad bytes; what stops a step is left as a fact."""
    document = TorchDocument(source, name, identification, zip=facts)
    found = kind_of_archive(facts)
    document.root = found.root if found is not None else ""
    document.records = [_record(document, record) for record in facts.records]
    if not facts.local_headers_read:
        _locate_small_records(document, limits)
    _read_texts(document)
    _run_pickles(document, limits)
    _probe_rest(document, limits)
    return document


def all_names(facts: ZipFacts) -> Iterator[str]:
    """Names in the directory, then those that only local headers know (a damaged name must not change the kind)."""
    for record in facts.records:
        yield decode_name(record.name)
    for record in (*facts.records, *facts.unlisted):
        if record.local is not None:
            yield decode_name(record.local.name)


def kind_of_archive(facts: ZipFacts) -> ZipKind | None:
    """The kind of an archive by the names in its directory and in what has been read of its local headers."""
    return zip_kind(all_names(facts), unfinished=_only_small_records(facts))


def doubtful_records(facts: ZipFacts, found: ZipKind | None) -> set[int]:
    """Indexes of the records that have no place in the kind that was found: one turned bit in a name can make such a one."""
    if found is None:
        return set(range(len(facts.records)))
    prefix = f"{found.root}/" if found.root else ""
    names = [decode_name(record.name) for record in facts.records]
    return {
        index
        for index, name in enumerate(names)
        if not name.startswith(prefix) or record_role(found.kind, name[len(prefix) :]) == "unknown"
    }


def _only_small_records(facts: ZipFacts) -> bool:
    """Whether each record is, by one of its names, a small record of torch's writer or stands for a folder."""
    for record in (*facts.records, *facts.unlisted):
        names = [decode_name(record.name)] + ([decode_name(record.local.name)] if record.local is not None else [])
        if not any(name.endswith("/") or name.partition("/")[2] in MARKERS for name in names):
            return False
    return True


def _record(document: TorchDocument, record: ZipRecord) -> Record:
    name = decode_name(record.name)
    entry, local = record.entry, record.local
    crc: int | None
    if entry is not None:
        size, crc, method = entry.uncompressed_size, entry.crc32, entry.method
    else:
        descriptor = record.descriptor
        size = descriptor.uncompressed_size if descriptor is not None else (record.payload.length if record.payload else 0)
        promised = local is not None and bool(local.flags & FLAG_DESCRIPTOR)
        crc = descriptor.crc32 if descriptor is not None else None if promised or local is None else local.crc32
        method = local.method if local is not None else METHOD_STORED
    role = record_role(document.kind, document.local_name(name)) if document.inside_root(name) else "outside"
    method_name = METHOD_NAMES.get(method, f"method {method}")
    return Record(name, role, record.payload, size, method_name, crc, complete=record.payload_complete)


def _locate_small_records(document: TorchDocument, limits: Limits) -> None:
    """At depth `directory`: read the local headers of all records but the storages, whose contents are not looked at.

    Where one of them is not what the directory says, the directory cannot be trusted, and all are read.
    """
    facts = document.zip
    assert facts is not None
    wanted = {index for index, record in enumerate(document.records) if record.role != "storage"}
    read_some_local_headers(document.source, facts, wanted)
    if any(_contradicts(facts.records[index]) for index in wanted):
        read_local_headers(document.source, facts, limits)
    for index, record in enumerate(facts.records):
        document.records[index].span = record.payload


def _contradicts(record: ZipRecord) -> bool:
    entry, local = record.entry, record.local
    if entry is None or local is None or record.local_fault is not None or record.descriptor_fault is not None:
        return True
    return (local.name, local.flags, local.method) != (entry.name, entry.flags, entry.method)


def readable(record: ZipRecord) -> bool:
    """Whether the stored bytes can be told: a local header is there, and no flag says they are changed in some way."""
    flags = (record.entry.flags if record.entry is not None else 0) | (record.local.flags if record.local is not None else 0)
    return record.payload is not None and not flags & UNREADABLE_FLAGS


def contents(document: TorchDocument, index: int, most: int) -> tuple[bytes, int | None] | None:
    """The contents of a record, at most ``most`` bytes, and what to add to an offset in them to get one in the file.

    None where they cannot be had: encrypted, no local header, unknown method, damaged deflate data.
    """
    record = document.zip.records[index] if document.zip is not None else None
    if record is None or record.payload is None or not readable(record):
        return None
    method = document.records[index].method
    if method == "stored":
        data = document.source.read_at(record.payload.offset, min(record.payload.length, most))
        return data, record.payload.offset
    if method == "deflated":
        inflated = inflate(document.source, record.payload, most)
        return (inflated, None) if inflated is not None else None
    return None


def _read_texts(document: TorchDocument) -> None:
    for index, record in enumerate(document.records):
        local = document.local_name(record.name)
        if local not in SMALL_RECORDS or not document.inside_root(record.name) or local in document.texts:
            continue
        read = contents(document, index, SMALL)
        if read is not None:
            document.texts[local] = read[0]


def _run_pickles(document: TorchDocument, limits: Limits) -> None:
    """Run the pickles the kind is made of. The first copy of a name is the one that counts, others are looked at too."""
    seen: set[str] = set()
    for index, record in enumerate(document.records):
        if record.role not in PICKLE_ROLES:
            continue
        role = "copy" if record.name.lower() in seen else record.role
        seen.add(record.name.lower())
        _run_record(document, index, role, limits)


def _run_record(document: TorchDocument, index: int, role: str, limits: Limits) -> None:
    record = document.records[index]
    document.has_code = True
    deflated = record.method == "deflated"
    most = limits.inflated_bytes if deflated else limits.pickle_bytes
    read = contents(document, index, most)
    if read is None or record.span is None:
        document.followed = False
        document.facts.setdefault("unread", []).append(index)
        return
    data, shift = read
    if len(data) >= most and record.size > most:
        document.followed = False
        document.facts.setdefault("cut-by-limit", []).append(index)
        return
    run_pickle(document, data, role=role, record=record.name, span=record.span, shift=shift, limits=limits)


def _probe_rest(document: TorchDocument, limits: Limits) -> None:
    """Look for pickles and machine code wherever the format has no use for bytes."""
    facts = document.zip
    assert facts is not None
    for index, record in enumerate(document.records):
        carried = record.role in CARRIED_ROLES and document.kind != "mar"
        if carried or record.role in OUTSIDE_ROLES or record.role in SMALL_ROLES:
            probe_record(document, index, limits)
    listed = {record.name.lower(): record.local is not None for record in facts.records}
    for unlisted in facts.unlisted:
        # Its entry names another place, or was in a part of the directory that is damaged.
        lost = not listed.get(unlisted.name.lower(), not facts.entries_lost)
        _probe_unlisted(document, unlisted, lost, limits)
    if any(region.what in UNOWNED for region in facts.regions):
        seen = [record.extent for record in facts.unlisted if record.extent is not None]
        owned = [region.span for region in facts.regions if region.what not in UNOWNED]
        for span in gaps(seen + owned, Span(0, facts.size)):
            probe_unowned(document, span, limits)
    end = facts.ends.end
    if end is not None and end.comment:
        probe_unowned(document, Span(end.span.end - len(end.comment), len(end.comment)), limits, None, end.comment)


def _probe_unlisted(document: TorchDocument, unlisted: ZipRecord, lost: bool, limits: Limits) -> None:
    """Look into a record that only its local header tells of; ``lost``: the directory had an entry for it, or may have had."""
    document.has_code = True
    payload, local, name = unlisted.payload, unlisted.local, decode_name(unlisted.name)
    data: bytes | None = None
    if payload is not None and local is not None and readable(unlisted) and local.method == METHOD_DEFLATED:
        data = inflate(document.source, payload, limits.inflated_bytes)
    if payload is None or local is None or not readable(unlisted) or (data is None and local.method != METHOD_STORED):
        document.followed = False
        return
    role = record_role(document.kind, document.local_name(name)) if document.inside_root(name) else "outside"
    probe_hidden(document, payload, name, limits, data, "lost" if lost and role in PICKLE_ROLES else "hidden")


def probe_record(document: TorchDocument, index: int, limits: Limits) -> None:
    """Look for machine code and pickles in a record that the format does not say to hold any."""
    record = document.records[index]
    read = contents(document, index, SMALL if record.method == "stored" else limits.inflated_bytes)
    if read is None or record.span is None:
        if record.size and record.role not in CARRIED_ROLES | SMALL_ROLES:
            document.has_code = True
            document.followed = False
        return
    data, shift = read
    magic = next((what for magic, what in NATIVE_MAGIC.items() if data.startswith(magic)), None)
    if magic is not None:
        document.has_code = True
        document.facts.setdefault("native", []).append((record.name, record.span, magic))
        return
    if record.role not in CARRIED_ROLES and WRAPPED.match(data):
        document.has_code = True
        document.followed = False
        return
    role = "carried" if record.role in CARRIED_ROLES else "hidden"
    held = data if shift is None else None
    if role == "carried":
        probe_hidden(document, record.span, record.name, limits, held, role)
    else:
        probe_unowned(document, record.span, limits, record.name, held, role)


def probe_orphans(document: TorchDocument, limits: Limits) -> None:
    """Look into storage records that no pickle names: nothing tells that they hold numbers."""
    named = {storage.record for storage in document.storages}
    for index, record in enumerate(document.records):
        if record.role == "storage" and record.name not in named and document.kind in EAGER_KINDS:
            probe_record(document, index, limits)


def marker_names(document: TorchDocument) -> list[str]:
    """The small records of torch's writer that are there."""
    return [name for name in MARKERS if document.find(name) is not None]

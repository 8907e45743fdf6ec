# SPDX-License-Identifier: Apache-2.0
"""Identification of files that no installed format knows: what else carries their names, and what is inside."""

from __future__ import annotations

from fdd.container.zip import read_local_headers
from fdd.container.zip.inflate import inflate
from fdd.container.zip.structs import FLAG_ENCRYPTED, METHOD_DEFLATED, METHOD_STORED, ZipRecord
from fdd.core.model import Basis, Document, Identification, Registry
from fdd.core.source import ByteSource, BytesSource, SliceSource
from fdd.core.text import decode_name, printable
from fdd.formats import one_by_one
from fdd.formats.foreign.containers import listing, zip_kind_of
from fdd.formats.foreign.facts import ForeignFacts, InnerMember, Known
from fdd.formats.foreign.identify import identify_foreign
from fdd.formats.probe import Probe, make_probe
from fdd.limits import Limits

MOST_MEMBERS = 200
MOST_LOOKED_INTO = 32
INFLATED_HEAD = 1 << 20
"""Bytes inflated of a member, in memory, to tell what it is."""
CLOSED_CONTAINERS = frozenset({"7z", "rar", "zstd"})
"""Containers that cannot be looked into here: what they hold is not known."""
OPENABLE = frozenset({"gzip", "xz", "bzip2", "zip", "npz", "tar"})
HARMLESS_INSIDE = frozenset({"text", "json", "xml", "html", "empty", "zeros", "numpy", "safetensors", "gguf", "onnx", "hdf5"})
"""Kinds of which loading runs nothing."""


def open_neighbour(probe: Probe) -> Document:
    """A document that is only identified: always an answer; the last resorts are text, zeros, empty and unknown.

    Containers that hold, or may hold, something that loading would run leave the safety undetermined.
    """
    is_zip = probe.zip is not None and probe.zip.directory is not None and probe.tar is None and not probe.begins_as_other
    facts = _zip(probe) if is_zip else None
    if facts is None:
        facts = identify_foreign(probe.source, name=probe.name, limits=probe.limits, known=known_format(probe.limits))
        facts.may_hold_code = facts.may_hold_code or (probe.begins_as_other and probe.zip is not None)
    document = Document(probe.source, probe.name, _identification(facts))
    if _may_hold_code(facts):
        document.has_code = True
        document.followed = False
    return document


def known_format(limits: Limits) -> Known:
    """Make the function with which files inside others are asked about: do the installed formats know them?"""

    def ask(source: ByteSource, name: str | None) -> ForeignFacts | None:
        probe = make_probe(source, name=name, path=None, limits=limits, depth="directory", level=1)
        for fmt in one_by_one():
            found = fmt.identify(probe)
            if found is not None:
                return ForeignFacts(found.kind, found.name, f"{found.name}.", found.basis, found.version, found.mime)
        return None

    return ask


def _identification(facts: ForeignFacts) -> Identification:
    details = dict(facts.details)
    if facts.inner:
        details["inside"] = [
            {
                key: value
                for key, value in (("name", member.name), ("size", member.size), ("kind", member.kind))
                if value is not None
            }
            for member in facts.inner
        ]
    return Identification(
        facts.kind,
        facts.name,
        version=facts.version,
        registries=[Registry("PRONOM", facts.pronom)] if facts.pronom is not None else [],
        mime=facts.mime,
        basis=[Basis(*basis) for basis in facts.basis],
        note=facts.note,
        details=details,
    )


def _may_hold_code(facts: ForeignFacts) -> bool:
    if facts.kind in CLOSED_CONTAINERS or facts.may_hold_code or any(member.may_hold_code for member in facts.inner):
        return True
    inner = {member.kind for member in facts.inner} | {facts.details.get("inner_kind")}
    return facts.kind in OPENABLE and any(kind is not None and kind not in HARMLESS_INSIDE | {"unknown"} for kind in inner)


def _zip(probe: Probe) -> ForeignFacts:
    """A ZIP by its directory: every member with its size, and what those that are stored are."""
    facts = probe.zip
    assert facts is not None
    if not facts.local_headers_read:
        read_local_headers(probe.source, facts, probe.limits)
    names = [printable(decode_name(record.name)) for record in facts.records]
    kind, title = zip_kind_of(names)
    ask = known_format(probe.limits)
    members: list[InnerMember] = []
    for index, (name, record) in enumerate(zip(names[:MOST_MEMBERS], facts.records, strict=False)):
        size = record.entry.uncompressed_size if record.entry is not None else None
        member = InnerMember(name, size)
        if not name.endswith("/"):
            _look_inside(probe, record, member, ask if index < MOST_LOOKED_INTO else None)
        members.append(member)
    basis = [Basis("ZIP directory", *facts.directory.span)] if facts.directory is not None else []
    found = ForeignFacts(kind, title, "", basis)
    found.mime, found.pronom, found.inner = "application/zip", "x-fmt/263", members
    found.details = {"member_count": len(facts.records)}
    found.may_hold_code = len(facts.records) > MOST_MEMBERS
    closed = sum(_is_closed(record) for record in facts.records)
    models = [member for member in members if member.kind is not None and member.kind.startswith(("torch", "pt2", "mobile"))]
    if models:
        what = "a PyTorch file" if len(models) == 1 else "PyTorch files"
        found.note = (
            f"A {title} that contains {listing(models)}: {what} inside another archive."
            " Unpack one level and validate what comes out."
        )
    else:
        found.note = f"A {title} with {listing(members, count=len(facts.records))}; no PyTorch file as it stands."
    if closed:
        found.note += f" {closed} of its members {'is' if closed == 1 else 'are'} encrypted, or packed by a method that is not"
        found.note += " unpacked here: what they hold is not known."
    elif len(facts.records) > MOST_LOOKED_INTO:
        found.note += " Not all members were looked into."
    return found


def _is_closed(record: ZipRecord) -> bool:
    entry = record.entry
    return entry is not None and bool(entry.flags & FLAG_ENCRYPTED or entry.method not in (METHOD_STORED, METHOD_DEFLATED))


def _look_inside(probe: Probe, record: ZipRecord, member: InnerMember, ask: Known | None) -> None:
    """Tell what a member is by its first bytes; without ``ask`` it is only noted that it was not looked into."""
    if record.entry is None or not record.entry.compressed_size:
        return
    if ask is None or record.payload is None or _is_closed(record):
        member.may_hold_code = True
        return
    source: ByteSource
    if record.entry.method == METHOD_STORED:
        source = SliceSource(probe.source, record.payload)
    else:
        data = inflate(probe.source, record.payload, INFLATED_HEAD)
        if data is None:
            member.may_hold_code = True
            return
        source = BytesSource(data)
    found = ask(source, member.name) or identify_foreign(source, name=member.name, limits=probe.limits, known=ask)
    member.kind = found.kind if found.kind != "unknown" else None
    member.may_hold_code = found.may_hide_code(whole=source.size >= record.entry.uncompressed_size)

# SPDX-License-Identifier: Apache-2.0
"""Rules on the tar form of torch 0.1: the tar and its members (PT-TAR)."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.container.tar import CHECKSUM_OFFSET, TarFacts, TarHeader, TarMember
from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.pytorch.contents import dict_of
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.older_facts import TAR_PARTS, TAR_VERSION, TarModelFacts
from fdd.formats.pytorch.persistent_ids import int64_of
from fdd.formats.pytorch.rules.catalogue import TAR, rule
from fdd.formats.pytorch.tarred import CONTAINER_FAULTS

CHECKSUM_BYTES = 8
AGAIN = "Get the file again from its source."
FAULT_WORDS = {
    "header-cut": "the file ends inside a header",
    "header-missing": "no header stands where one should be",
    "size-field": "the size of a member is no number",
    "payload-cut": "the file ends inside a member",
    "pax-record": "an extended header is damaged",
    "extension-cut": "the file ends inside an extended header",
    "extension-orphan": "an extended header belongs to no member",
    "sparse-map-cut": "the file ends inside the map of a sparse member",
}


def facts_of(document: TorchDocument) -> tuple[TarFacts, TarModelFacts]:
    """The facts of the tar, and of what its members hold."""
    assert document.tar is not None and document.tar_model is not None
    return document.tar, document.tar_model


def _missing(model: TarModelFacts) -> list[str]:
    return [name for name in TAR_PARTS if name not in model.members]


def own_faults(document: TorchDocument, *codes: str) -> Iterator[Violation]:
    """What the reader of the members stated, by the code it gave."""
    for fault in facts_of(document)[1].faults:
        if fault.code in codes:
            yield at(fault.span, record=fault.member, detail=fault.detail)


# The tar


@rule(
    "PT-TAR-001",
    "tar-member-missing",
    axis="valid",
    level="error",
    clause="tar.members",
    kinds=TAR,
    needs=("inventory",),
    title="sys_info, pickle, tensors and storages are there.",
    message="the member {names} is missing",
    remedy=f"{AGAIN} What the other members hold can still be read.",
)
def tar_member_missing(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch reads the object from `pickle`, its tensors from `tensors`, their numbers from `storages`.

    References: format.md 4.2.
    """
    tar, model = facts_of(document)
    missing = _missing(model)
    if missing and tar.end.length:
        yield at(tar.end, names=", ".join(missing))


@rule(
    "PT-TAR-008",
    "tar-cut",
    axis="well-formed",
    level="error",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    title="The tar is there to its end.",
    message="the file ends without an end mark, and the member {names} is missing",
    remedy=f"{AGAIN} It was cut off; the members before that place are intact.",
)
def tar_cut(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a tar has no directory. Only its end mark tells that nothing more was to come.

    References: IEEE Std 1003.1, pax; contract, section 6.
    """
    tar, model = facts_of(document)
    missing = _missing(model)
    broken = any(fault.code in CONTAINER_FAULTS for fault in tar.faults)
    if missing and not tar.end.length and not broken:
        place = tar.trailing if tar.trailing.length else Span(tar.size, 0)
        yield at(place, names=", ".join(missing))


@rule(
    "PT-TAR-002",
    "tar-checksum-wrong",
    axis="well-formed",
    level="error",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="The checksum of every header is right.",
    message="the header of {name} has a wrong checksum",
    remedy=f"{AGAIN} Readers stop at such a header; for the first one they do not see a tar at all.",
)
def tar_checksum_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: name, size and type of the member are in doubt.

    References: IEEE Std 1003.1, pax, ustar header block; contract, section 1.
    """
    tar, _ = facts_of(document)
    headers = [(member.header, member.name) for member in tar.members]
    extensions = [*tar.globals, *(extension for member in tar.members for extension in member.extensions)]
    headers += [(extension.header, extension.header.name) for extension in extensions]
    for header, name in sorted(headers, key=lambda pair: pair[0].span):
        if not header.checksum_matches:
            yield at(header.span, record=decode_name(name), name=name)


@rule(
    "PT-TAR-010",
    "tar-damaged",
    axis="well-formed",
    level="error",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Headers and members follow each other without a break.",
    message="{what}",
    remedy=f"{AGAIN} Readers stop at this place, or go on at different ones.",
)
def tar_damaged(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: each header is found by the size in the one before it.

    References: IEEE Std 1003.1, pax, ustar interchange format.
    """
    tar, _ = facts_of(document)
    for fault in tar.faults:
        if fault.code in CONTAINER_FAULTS:
            yield at(Span(fault.offset, fault.length), what=FAULT_WORDS[fault.code])


@rule(
    "PT-TAR-011",
    "tar-end-mark-short",
    axis="valid",
    level="warning",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    title="Two zero blocks close the tar.",
    message="the tar ends with {blocks} zero blocks instead of two",
    remedy="Compare with another copy: the end may have been cut off, although all members are there.",
)
def tar_end_mark_short(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: strict readers take such a tar for a cut one.

    References: IEEE Std 1003.1, pax, end-of-archive indicator.
    """
    tar, model = facts_of(document)
    codes = {fault.code for fault in tar.faults}
    if codes & {"end-missing", "end-single"} and not codes & CONTAINER_FAULTS and not _missing(model):
        yield at(tar.end if tar.end.length else Span(tar.size, 0), blocks=tar.end.length // 512)


@rule(
    "PT-TAR-012",
    "tar-filler-used",
    axis="valid",
    level="warning",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Filler bytes are zero, and fields are written as usual.",
    message="{what}",
    remedy="Look at these bytes: no reader does, and torch never writes any.",
)
def tar_filler_used(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: other content may hide there, outside every member.

    References: IEEE Std 1003.1, pax; format.md 4.2.
    """
    tar, _ = facts_of(document)
    for member in tar.members:
        if any(document.source.read_at(member.padding.offset, member.padding.length)):
            yield at(member.padding, record=decode_name(member.name), what="the bytes that fill up a member are not zero")
    for fault in own_faults(document, "unused"):
        yield at(fault.span, record=fault.record, what=fault.fields["detail"])
    for member in tar.members:
        place = Span(member.header.span.offset + CHECKSUM_OFFSET, CHECKSUM_BYTES)
        if member.header.checksum_matches and document.source.read_at(*place) not in _checksum_forms(member.header):
            yield at(place, record=decode_name(member.name), what="a checksum is written in another way than usual")


def _checksum_forms(header: TarHeader) -> tuple[bytes, ...]:
    """A checksum as tar programs write it: six octal digits, NUL, space; some fill up with spaces or have seven digits."""
    number = header.stated_checksum or 0
    return f"{number:06o}\0 ".encode(), f"{number:6o}\0 ".encode(), f"{number:07o}\0".encode(), f"{number:06o} \0".encode()


@rule(
    "PT-TAR-013",
    "bytes-after-tar",
    axis="valid",
    level="error",
    clause="tar.structure",
    kinds=TAR,
    needs=("tar",),
    title="Nothing follows the end mark, and nothing stands between members.",
    message="{length} bytes belong to no member",
    remedy="Keep the file as it is and find out where the bytes come from.",
)
def bytes_after_tar(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: readers stop at the end mark; what stands behind it is seen by none of them.

    References: IEEE Std 1003.1, pax; contract, section 6.
    """
    tar, _ = facts_of(document)
    for region in tar.regions:
        # Without an end mark, the rest is where reading stopped: that has a finding of its own.
        if region.span.length and (region.what == "gap" or (region.what == "trailing" and tar.end.length)):
            yield at(region.span, length=region.span.length)


# Members


@rule(
    "PT-TAR-014",
    "tar-member-twice",
    axis="well-formed",
    level="error",
    clause="tar.members",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="No name is given twice.",
    message="the member {name} is there more than once",
    remedy="Find out which copy is meant: readers take the first or the last one, and so load different models.",
)
def tar_member_twice(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: Python's tarfile takes the last member of a name, readers that stop early the first.

    References: contract, section 6.
    """
    tar, _ = facts_of(document)
    seen: set[bytes] = set()
    for member in tar.members:
        if member.name in seen:
            yield at(member.header.span, record=decode_name(member.name), name=member.name)
        seen.add(member.name)


def _unsafe(member: TarMember) -> str | None:
    """Why a member must not be unpacked, or is nothing that torch wrote."""
    name = member.name
    if member.type not in ("file", "directory"):
        return f"is a {member.type.replace('-', ' ')}"
    if name.startswith((b"/", b"\\")) or name[1:2] == b":":
        return "has an absolute name"
    if b".." in name.replace(b"\\", b"/").split(b"/"):
        return "leads out of the folder it is unpacked into"
    if b"\\" in name:
        return "has a backslash in its name"
    if any(byte < 0x20 or byte == 0x7F for byte in name) or not name:
        return "has control characters in its name, or no name"
    return None


@rule(
    "PT-TAR-006",
    "tar-member-unsafe",
    axis="valid",
    level="error",
    clause="tar.members",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="Every member is a regular file under a plain name.",
    message="the member {name} {what}",
    remedy="Do not unpack the file with ordinary tools; fdd and torch.load read its members in place.",
)
def tar_member_unsafe(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: unpacking such a member can overwrite files elsewhere. Early loaders unpacked members.

    References: format.md 4.2; contract, section 6.
    """
    tar, _ = facts_of(document)
    for member in tar.members:
        what = _unsafe(member)
        if what is not None:
            yield at(member.header.span, record=decode_name(member.name), name=member.name, what=what)


@rule(
    "PT-TAR-015",
    "tar-member-unknown",
    axis="valid",
    level="warning",
    clause="tar.members",
    kinds=TAR,
    needs=("tar",),
    per="place",
    title="There are no members beside the four.",
    message="the member {name} is none of the four that torch wrote",
    remedy="Look at what it holds: torch never reads it.",
)
def tar_member_unknown(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: somebody added it; what it is for, the format does not say.

    References: format.md 4.2; contract, section 6.
    """
    tar, _ = facts_of(document)
    for member in tar.members:
        if decode_name(member.name) not in TAR_PARTS and _unsafe(member) is None:
            yield at(member.header.span, record=decode_name(member.name), name=member.name)


@rule(
    "PT-TAR-003",
    "tar-version-wrong",
    axis="valid",
    level="error",
    clause="tar.system",
    kinds=TAR,
    needs=("pickle",),
    title="sys_info states the version 1000.",
    message="sys_info {what}",
    remedy="Compare with another copy. Current torch does not look at this member.",
)
def tar_version_wrong(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the releases that wrote this form refuse any other version.

    References: format.md 4.2.
    """
    for pickle in document.judged_pickles():
        if pickle.role != "sys-info" or not pickle.facts.stopped:
            continue
        system = dict_of(pickle.facts.root)
        version = system.get("protocol_version") if system is not None else None
        if system is None:
            yield at(pickle.span, record=pickle.record, what="is no dict")
        elif int64_of(version) != TAR_VERSION:
            found = int64_of(version)
            what = f"states the version {found}" if found is not None else "states no version"
            yield at(pickle.span, record=pickle.record, what=what)

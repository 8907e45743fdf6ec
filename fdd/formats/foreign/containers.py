# SPDX-License-Identifier: Apache-2.0
"""ZIP and tar archives that no installed format knows: what they hold, told without unpacking."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fdd.container.tar import BLOCK, looks_like_tar, read_tar
from fdd.container.zip.structs import FLAG_DESCRIPTOR, LOCAL_HEADER, LOCAL_HEADER_SIGNATURE, U32_ESCAPE
from fdd.core.model import Basis
from fdd.core.source import SliceSource
from fdd.core.text import decode_name, printable
from fdd.formats.foreign.facts import ForeignFacts, InnerMember, Subject

Identify = Callable[[Subject], ForeignFacts]

SPLIT_MARK = b"PK\x07\x08"
_MOST_MEMBERS = 200
_MOST_MEMBERS_TOLD = 32
"""Members whose first bytes are looked at; the others are only listed."""


def recognise_container(subject: Subject, identify: Identify) -> ForeignFacts | None:
    """Name a ZIP or a tar by the head."""
    head = subject.head
    if head.startswith(LOCAL_HEADER_SIGNATURE):
        return _zip(subject)
    if head.startswith(SPLIT_MARK + LOCAL_HEADER_SIGNATURE):
        return _first_of_split(subject)
    if looks_like_tar(head):
        return _tar(subject, identify)
    return None


def local_members(head: bytes) -> Iterator[InnerMember]:
    """The members whose local headers lie in ``head``, told by plausible headers; sizes where the header states them."""
    at = head.find(LOCAL_HEADER_SIGNATURE)
    while 0 <= at <= len(head) - LOCAL_HEADER.size:
        _, needed, flags, _, _, _, _, packed, size, name_length, extra_length = LOCAL_HEADER.unpack_from(head, at)
        following = at + LOCAL_HEADER.size + name_length
        name = head[at + LOCAL_HEADER.size : following]
        if needed <= 63 and 0 < name_length == len(name) and b"\0" not in name:
            known = not (flags & FLAG_DESCRIPTOR or U32_ESCAPE in (packed, size))
            yield InnerMember(printable(name), size if known else None)
            # What is stored in a member may be a ZIP itself: its headers are not ours.
            following += extra_length + packed if known else 0
        else:
            following = at + 4
        at = head.find(LOCAL_HEADER_SIGNATURE, following)


def _zip(subject: Subject) -> ForeignFacts:
    members = list(local_members(subject.head))
    names = [member.name for member in members]
    kind, name = zip_kind_of(names)
    facts = ForeignFacts(kind, name, f"A {name}.", [Basis("ZIP local header", 0, 4)], mime="application/zip", pronom="x-fmt/263")
    facts.inner = members[:_MOST_MEMBERS]
    for member in facts.inner:
        member.kind = "numpy" if kind == "npz" else None
    return facts


def _first_of_split(subject: Subject) -> ForeignFacts:
    """The first part of a ZIP that was split on purpose (APPNOTE 8.5.3)."""
    facts = _zip(subject)
    facts.kind, facts.name = "zip", "first part of a split ZIP archive"
    facts.basis = [Basis("mark of a split ZIP", 0, len(SPLIT_MARK))]
    facts.note = (
        f"The first part of a split ZIP archive with {listing(facts.inner)}; join all parts in order and unpack the whole."
    )
    facts.may_hold_code = True
    return facts


def zip_kind_of(names: list[str]) -> tuple[str, str]:
    """Kind and name of a ZIP that no installed format knows, by the names of its members."""
    if names and all(name.endswith(".npy") for name in names):
        return "npz", "NumPy archive (.npz)"
    if "[Content_Types].xml" in names:
        return "zip", "Office Open XML document"
    if "META-INF/MANIFEST.MF" in names:
        return "zip", "Java archive"
    return "zip", "ZIP archive"


def _tar(subject: Subject, identify: Identify) -> ForeignFacts:
    tar = read_tar(subject.source, subject.limits)
    basis = [Basis("tar header", 0, min(BLOCK, subject.size))]
    facts = ForeignFacts("tar", "tar archive", "", basis, mime="application/x-tar", pronom="x-fmt/265")
    for member in tar.members[:_MOST_MEMBERS]:
        inner = InnerMember(printable(decode_name(member.name)), member.size)
        if member.payload.length and member.index < _MOST_MEMBERS_TOLD and subject.may_look_inside:
            source = SliceSource(subject.source, member.payload)
            found = identify(subject.inside(source, inner.name, partial=not member.payload_complete))
            inner.kind = found.kind if found.kind != "unknown" else None
            inner.may_hold_code = found.may_hide_code(whole=member.payload_complete)
        elif member.payload.length:
            inner.may_hold_code = True
        facts.inner.append(inner)
    facts.may_hold_code = len(tar.members) > _MOST_MEMBERS
    facts.details = {"member_count": len(tar.members), "complete": not subject.partial and not tar.faults}
    facts.note = f"A {facts.name} with {listing(facts.inner)}; unpack it and validate what is inside."
    return facts


def listing(members: list[InnerMember], most: int = 4, count: int | None = None) -> str:
    """`a.bin and b.json`, `a, b, c, d and 12 more`, `nothing in it`. ``count``: how many there are, if not all are listed."""
    names = [member.name or "(no name)" for member in members]
    if not names:
        return "no member that could be read"
    if len(names) > most:
        return f"{', '.join(names[:most])} and {(count or len(names)) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]

# SPDX-License-Identifier: Apache-2.0
"""What a container is, told by its first bytes: ZIP by the names in its local headers, tar, pickle streams.

These kinds have readers of their own; here they are only named, for the insides of compressed and archived files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from fdd.container.tar import BLOCK, looks_like_tar, read_tar
from fdd.container.zip.structs import FLAG_DESCRIPTOR, LOCAL_HEADER, LOCAL_HEADER_SIGNATURE, U32_ESCAPE
from fdd.core.model import Basis
from fdd.core.source import SliceSource
from fdd.core.text import decode_name, printable
from fdd.formats.foreign.facts import ForeignFacts, InnerMember, Subject

Identify = Callable[[Subject], ForeignFacts]

LEGACY_MAGIC = bytes.fromhex("8a0a6cfc9c46f9206aa85019")
"""LONG1 of the legacy stream's magic number; in front of it stand PROTO and, from protocol 4 on, a FRAME."""
_LEGACY_TEXT = b"L119547037146038801333356L\n."
_LEGACY_REACH = 12
_MAGICS = (
    (4, b"PTMF", "mobile-flatbuffer", "PyTorch mobile flatbuffer"),
    (4, b"ET12", "executorch", "ExecuTorch program"),
    (0, b"PYTORCH1", "torch-preview", "preview-release PyTorch archive"),
)
_TORCH_RECORD = re.compile(
    r"(?:[^/]+/)?(?:data\.pkl|\.data/serialization_id|\.format_version|\.storage_alignment|byteorder)|[^/]+/data/\d+"
)
_MOST_MEMBERS = 200
_MOST_MEMBERS_TOLD = 32
"""Members whose first bytes are looked at; the others are only listed."""


def recognise_container(subject: Subject, identify: Identify) -> ForeignFacts | None:
    """Name a ZIP, a tar, a PyTorch stream or (inside other files only) a pickle, by the head."""
    head = subject.head
    if head.startswith(LOCAL_HEADER_SIGNATURE):
        return _zip(subject)
    magic = _LEGACY_TEXT if head.startswith(_LEGACY_TEXT) else LEGACY_MAGIC
    at = head.find(magic, 0, _LEGACY_REACH + len(magic))
    if at >= 0:
        basis = [Basis("magic number", at, len(magic))]
        return ForeignFacts("torch-legacy", "PyTorch legacy stream", "A PyTorch legacy stream.", basis)
    for offset, magic, kind, name in _MAGICS:
        if head.startswith(magic, offset):
            return ForeignFacts(kind, name, f"A {name}.", [Basis(name, offset, len(magic))])
    if looks_like_tar(head):
        return _tar(subject, identify)
    # Two bytes prove nothing: for a whole file the pickle machine decides, and it has been asked before.
    if subject.depth and len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return ForeignFacts("pickle", "Python pickle", "A Python pickle; loading it can run code.", [Basis("PROTO opcode", 0, 2)])
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
    kind, name = _zip_kind(names)
    facts = ForeignFacts(kind, name, f"A {name}.", [Basis("ZIP local header", 0, 4)], mime="application/zip", pronom="x-fmt/263")
    facts.inner = members[:_MOST_MEMBERS]
    for member in facts.inner:
        member.kind = "numpy" if kind == "npz" else None
    return facts


def _zip_kind(names: list[str]) -> tuple[str, str]:
    """Kind and name of a ZIP by its record names (format.md 3.2).

    PyTorch's kinds are told by the records in the top folder of the first one: a model stored in another archive shows
    its own headers behind a member whose size only a descriptor states.
    """
    top = names[0].partition("/")[0] if names else ""
    own = [name for name in names if name.partition("/")[0] == top or not any("/" in other for other in names)]
    below = {name.split("/", 1)[1] if "/" in name else name for name in own}
    if "MAR-INF/MANIFEST.json" in names:
        return "mar", "TorchServe model archive"
    folders = {name.partition("/")[0] for name in below} | {name.rpartition("/")[0] for name in below}
    if "archive_format" in below or {"models", "data/weights"} <= folders:
        return "pt2", "PyTorch exported program (pt2)"
    if ".data/extern_modules" in below or ".data/python_version" in below:
        return "torch-package", "torch.package archive"
    if "model.json" in below and "tensors" in folders:
        return "torchscript-json", "TorchScript archive of PyTorch 1.0 to 1.2"
    if "constants.pkl" in below or "code" in folders:
        return "torchscript", "TorchScript archive"
    if any(_TORCH_RECORD.fullmatch(name) for name in own):
        return "torch-zip", "PyTorch ZIP file"
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
        facts.inner.append(inner)
    if [member.name for member in facts.inner[:1]] == ["sys_info"]:
        facts.kind, facts.name = "torch-tar", "PyTorch legacy tar"
    facts.details = {"member_count": len(tar.members), "complete": not subject.partial and not tar.faults}
    facts.note = f"A {facts.name} with {listing(facts.inner)}; unpack it and validate what is inside."
    return facts


def listing(members: list[InnerMember], most: int = 4) -> str:
    """`a.bin and b.json`, `a, b, c, d and 12 more`, `nothing in it`."""
    names = [member.name or "(no name)" for member in members]
    if not names:
        return "no member that could be read"
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]

# SPDX-License-Identifier: Apache-2.0
"""Which kind of PyTorch file it is, by its bytes, in the order in which torch itself looks (format.md 3.1 and 3.2)."""

from __future__ import annotations

import os
import re

from fdd.container.tar import BLOCK
from fdd.container.zip import read_some_local_headers
from fdd.container.zip.structs import LOCAL_HEADER_SIGNATURE, ZipFacts
from fdd.core.model import Basis, Identification, Registry
from fdd.core.text import decode_name
from fdd.formats.probe import Probe
from fdd.formats.pytorch.names import ZipKind
from fdd.formats.pytorch.zipped import doubtful_records, kind_of_archive
from fdd.pickles import goes_beyond, goes_on, looks_like_pickle, texts_of_first

FORMAT = "fdd000644"
NAMES = {
    "torch-zip": "PyTorch Serialized File Format",
    "torch-legacy": "PyTorch legacy pickle stream (torch.save before 1.6)",
    "torch-tar": "PyTorch tar form (torch.save of 0.1)",
    "torchscript": "TorchScript archive",
    "torchscript-mobile": "TorchScript archive for mobile (lite interpreter)",
    "torchscript-json": "TorchScript archive of 1.0 to 1.2 (model.json)",
    "torch-package": "torch.package archive",
    "pt2": "PyTorch exported program (.pt2)",
    "mobile-flatbuffer": "PyTorch mobile module (FlatBuffers)",
    "executorch": "ExecuTorch program",
    "distcp": "PyTorch distributed checkpoint file",
    "mar": "TorchServe model archive",
    "incomplete-save": "PyTorch file of an interrupted save",
    "torch-preview": "PyTorch file of a preview release",
}
"""The kinds that fdd000644 covers, and their names for people."""
ZIP_KINDS = frozenset(
    "torch-zip torchscript torchscript-mobile torchscript-json torch-package pt2 distcp mar incomplete-save".split()
)
EXTENSIONS = {
    "torch-zip": ".pt .pth .bin .ckpt .pkl .model .th .tar .pyt .weights .chkpt",
    "torch-legacy": ".pt .pth .bin .ckpt .pkl .model .th .tar .t7 .weights .chkpt",
    "torch-tar": ".pt .pth .bin .tar .th",
    "torchscript": ".pt .pth .ts .jit .torchscript .bin .ptc",
    "torchscript-mobile": ".ptl .pt",
    "torchscript-json": ".pt .pth .ts .jit",
    "torch-package": ".pt .package .zip",
    "pt2": ".pt2",
    "mobile-flatbuffer": ".ptl .ff",
    "executorch": ".pte",
    "distcp": ".distcp",
    "mar": ".mar",
}
LEGACY_NUMBER = bytes.fromhex("6cfc9c46f9206aa85019")
"""0x1950a86a20f9469cfc6c as LONG1 and LONG4 hold it."""
LEGACY_DECIMAL = b"L119547037146038801333356L\n"
"""The same number as protocols 0 and 1 write it."""
_LEGACY_VERSION = re.compile(rb"(?:M\xe9\x03|[IL]1001L?\r?\n|J\xe9\x03\x00\x00)\.")
_LEGACY_SYSTEM = (b"protocol_version", b"little_endian", b"type_sizes")
LEGACY_HEAD = 600
"""Bytes of the head in which the first three pickles of a legacy stream end, with room for inserted bytes."""
TORCH_LOCAL_HEADERS = (
    bytes.fromhex("504b03040000080800000000000000000000000000000000"),
    bytes.fromhex("504b03040000000800000000000000000000000000000000"),
    bytes.fromhex("504b03041400080808000000000000000000000000000000"),
)
"""First bytes of an archive by torch's own writer: stored, empty and deflated first record (format.md 1.1)."""
MOST_DOUBTFUL = 32
"""Records with odd names whose local headers are asked, too, where else only the directory is read."""
TAR_MEMBERS = ("sys_info", "pickle", "tensors", "storages")


def identify(probe: Probe) -> Identification | None:
    """The kind and its evidence; None where the bytes are of no PyTorch kind and hold no pickle."""
    found = _by_head(probe) or _tar(probe) or _legacy(probe) or _zip(probe) or _pickle(probe)
    if found is not None and found.format is not None:
        found.extension_matches = _extension_matches(found.kind, probe.base_name)
    return found


def _identification(kind: str, confidence: str, basis: list[Basis], mime: str | None = None) -> Identification:
    registries = [Registry("LoC FDD", FORMAT)]
    if kind in ZIP_KINDS:
        registries.append(Registry("PRONOM", "x-fmt/263", "container only"))
        mime = "application/zip"
    elif kind == "torch-tar":
        registries.append(Registry("PRONOM", "x-fmt/265", "container only"))
        mime = "application/x-tar"
    registries.append(Registry("Wikidata", "Q47509047", "the library"))
    return Identification(
        kind,
        NAMES[kind],
        FORMAT,
        confidence=confidence,
        registries=registries,
        mime=mime or "application/octet-stream",
        basis=basis,
    )


def _by_head(probe: Probe) -> Identification | None:
    head = probe.head
    if head[4:8] == b"PTMF":
        return _identification("mobile-flatbuffer", "signature", [Basis("FlatBuffers identifier PTMF", 4, 4)])
    if re.fullmatch(rb"ET\d\d", head[4:8]):
        return _identification("executorch", "signature", [Basis(f"FlatBuffers identifier {head[4:8].decode()}", 4, 4)])
    if head.startswith(b"PYTORCH1"):
        return _identification("torch-preview", "signature", [Basis("PYTORCH1", 0, 8)])
    return None


def _tar(probe: Probe) -> Identification | None:
    if probe.tar is None:
        return None
    members = [(decode_name(member.name), member.header.span) for member in probe.tar.members]
    known = [(name, span) for name, span in members if name in TAR_MEMBERS]
    if members and (members[0][0] == "sys_info" or len({name for name, _ in known}) >= 2):
        basis = [Basis(f"tar member {name}", span.offset, span.length) for name, span in known]
        return _identification("torch-tar", "structure" if len(known) > 1 else "container", basis)
    return None


def _legacy(probe: Probe) -> Identification | None:
    # Behind the first header of a tar lies what its member holds, which may be such a stream.
    head = probe.head[: LEGACY_HEAD if probe.tar is None else BLOCK]
    if head.startswith(LOCAL_HEADER_SIGNATURE) or probe.begins_as_other:
        return None
    basis: list[Basis] = []
    number = max(head[:40].find(LEGACY_NUMBER), head[:40].find(LEGACY_DECIMAL))
    if number >= 0:
        basis.append(Basis("legacy magic number", number, 10))
    version = _LEGACY_VERSION.search(head)
    if version is not None:
        basis.append(Basis("legacy protocol version 1001", version.start(), len(version.group())))
    places = [head.find(key) for key in _LEGACY_SYSTEM]
    if sum(place >= 0 for place in places) >= 2:
        start = min(place for place in places if place >= 0)
        basis.append(Basis("legacy system information", start, max(places) - start + 10))
    if len(basis) >= 2:
        return None if _is_inside_pickle(probe, basis) else _identification("torch-legacy", "structure", basis)
    if _cut_in_head(head, probe.source.size):
        return _identification("torch-legacy", "signature", [Basis("start of the legacy magic number", 0, len(head))])
    return None


def _is_inside_pickle(probe: Probe, basis: list[Basis]) -> bool:
    """Whether a pickle at the beginning holds the stream as a text of its own: what `pickle.dump` makes of a tensor.

    The system information of a stream is made of texts, the first two pickles are not.
    """
    heads = [piece for piece in basis if "system" not in piece.what]
    texts = texts_of_first(probe.head, probe.source.size)
    return any(start <= piece.offset < end for start, end in texts for piece in heads)


def legacy_heads() -> tuple[bytes, ...]:
    """The first two pickles of a legacy stream, by protocol (format.md 4.1)."""
    binary = b"\x8a\x0a" + LEGACY_NUMBER + b"."
    framed = b"\x95\x0d" + bytes(7) + binary
    return (
        *(bytes((0x80, protocol)) + binary + bytes((0x80, protocol)) + b"M\xe9\x03." for protocol in (2, 3)),
        *(
            bytes((0x80, protocol)) + framed + bytes((0x80, protocol)) + b"\x95\x04" + bytes(7) + b"M\xe9\x03."
            for protocol in (4, 5)
        ),
        LEGACY_DECIMAL + b".M\xe9\x03.",
        LEGACY_DECIMAL + b".I1001\n.",
        LEGACY_DECIMAL + b".L1001L\n.",
    )


def _cut_in_head(head: bytes, size: int) -> bool:
    """Whether the file ends inside the head of a legacy stream, or the head goes on with something else after its magic."""
    magic_length = 4
    return len(head) >= magic_length and any(
        expected.startswith(head) if size <= len(expected) else head.startswith(expected[: expected.index(b".") + 1])
        for expected in legacy_heads()
    )


def _zip(probe: Probe) -> Identification | None:
    facts = probe.zip
    if facts is None or probe.tar is not None or probe.begins_as_other:
        return None  # what lies inside another container is its members' business
    found = kind_of_archive(facts)
    if not facts.local_headers_read:
        doubtful = doubtful_records(facts, found)
        if 0 < len(doubtful) <= MOST_DOUBTFUL:
            read_some_local_headers(probe.source, facts, doubtful)
            found = kind_of_archive(facts)
    if found is None and facts.directory is None and probe.head.startswith(TORCH_LOCAL_HEADERS):
        found = ZipKind("torch-zip", "", (), "signature")
    if found is None:
        return None
    kind, basis = found.kind, _zip_basis(facts, found)
    if kind == "torch-zip" and _is_shard(probe):
        kind = "distcp"
        how = "name ends in .distcp" if probe.base_name.endswith(".distcp") else "a file .metadata lies beside it"
        basis.append(Basis(how, 0, 0))
        return _identification(kind, "name", basis)
    return _identification(kind, found.confidence, basis)


def _is_shard(probe: Probe) -> bool:
    return probe.base_name.endswith(".distcp") or (bool(probe.base_name) and probe.has_sibling(".metadata"))


def _zip_basis(facts: ZipFacts, found: ZipKind) -> list[Basis]:
    basis = [Basis("ZIP local header", 0, 4)]
    wanted = set(found.deciding)
    for record in (*facts.records, *facts.unlisted):
        names = {decode_name(record.name)} | ({decode_name(record.local.name)} if record.local is not None else set())
        for name in sorted(names & wanted):
            wanted.discard(name)
            span = record.payload or (record.entry.span if record.entry is not None else None)
            if span is not None:
                basis.append(Basis(f"record {name}", span.offset, span.length))
    return basis


def _pickle(probe: Probe) -> Identification | None:
    if probe.zip is not None or probe.tar is not None or not _is_pickle(probe):
        return None
    return Identification(
        "pickle", "Python pickle", confidence="structure", basis=[Basis("pickle opcodes", 0, min(len(probe.head), 64))]
    )


def _is_pickle(probe: Probe) -> bool:
    """Of a pickle that names nothing in the head, the whole is read, once: what names nothing for so long is the rarest."""
    head, size = probe.head, probe.source.size
    if looks_like_pickle(head):
        return True
    if size <= len(head) or not goes_on(head) or not goes_beyond(head, size):
        return False
    return looks_like_pickle(probe.source.read_at(0, probe.limits.pickle_bytes), limits=probe.limits)


def _extension_matches(kind: str, base_name: str) -> bool | None:
    extension = os.path.splitext(base_name)[1].lower()
    if not extension or kind not in EXTENSIONS:
        return None
    return extension in EXTENSIONS[kind].split()

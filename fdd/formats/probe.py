# SPDX-License-Identifier: Apache-2.0
"""The first look at a file: head, tail, and the container where there is one. Made once, before the kind is known."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from fdd.container.tar import TarFacts, looks_like_tar, read_tar
from fdd.container.zip import looks_like_zip, read_directory, read_local_headers
from fdd.container.zip.structs import LOCAL_HEADER_SIGNATURE, ZipFacts
from fdd.core.source import EDGE, ByteSource
from fdd.limits import Limits

DEPTHS = ("directory", "structure", "full")
"""How far a file is looked at (contract, section 1), from little to all."""
OTHER_MAGIC = (
    b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b\x08", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"Rar!\x1a\x07", b"BZh", b"\x93NUMPY",
    b"\x89HDF\r\n\x1a\n", b"GGUF", b"!<arch>\n",
)  # fmt: skip
"""First bytes of containers that may hold a file as it is."""


@dataclass(slots=True)
class Probe:
    """What identification works with. ``path`` is where siblings may be looked for, None for bytes without a place."""

    source: ByteSource
    name: str | None
    path: str | None
    limits: Limits
    depth: str
    head: bytes = b""
    tail: bytes = b""
    zip: ZipFacts | None = None
    tar: TarFacts | None = None
    siblings: frozenset[str] | None = None
    level: int = 0
    """How many files this one is nested in."""
    notes: dict[str, object] = field(default_factory=dict)

    @property
    def base_name(self) -> str:
        """The file's name without folders; empty where it has none."""
        return os.path.basename(self.name or "")

    @property
    def begins_as_other(self) -> bool:
        """Whether the file is a container other than ZIP and tar, with a ZIP in it at the most whose offsets do not count from
        the first byte of the file: no loader of PyTorch finds such. Offsets that do were adjusted: it is meant to be read."""
        directory = self.zip.directory if self.zip is not None else None
        return self.head.startswith(OTHER_MAGIC) and (directory is None or directory.base != 0)

    def has_sibling(self, name: str) -> bool:
        """Whether a file of that name lies beside this one."""
        if self.siblings is not None:
            return name in self.siblings
        return self.path is not None and os.path.lexists(os.path.join(os.path.dirname(self.path), name))


def make_probe(source: ByteSource, *, name: str | None, path: str | None, limits: Limits, depth: str, level: int = 0) -> Probe:
    """Read head and tail, and scan the container: a tar by its head, else a ZIP by its head or its end.

    Raises :class:`fdd.core.errors.SourceError` where reading fails.
    """
    probe = Probe(source, name, path, limits, depth, level=level)
    probe.head = source.read_at(0, EDGE)
    probe.tail = source.read_at(max(0, source.size - EDGE), EDGE)
    if looks_like_tar(probe.head) and not probe.head.startswith(LOCAL_HEADER_SIGNATURE):
        probe.tar = read_tar(source, limits)
    if looks_like_zip(probe.head, probe.tail):
        probe.zip = read_directory(source, limits)
        if depth != "directory" or not _orderly(probe.zip):
            read_local_headers(source, probe.zip, limits)
    return probe


def _orderly(facts: ZipFacts) -> bool:
    """Whether the directory alone can be trusted for a first answer."""
    return facts.directory is not None and not facts.directory.faults and not facts.ends.faults

# SPDX-License-Identifier: Apache-2.0
"""The facts of one PyTorch file: what the readers of this folder fill in, and what its rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fdd.core.model import Document
from fdd.core.span import Span
from fdd.formats.pytorch.survey import Survey
from fdd.pickles.nodes import PickleFacts
from fdd.tensors.model import Storage, Tensor

if TYPE_CHECKING:
    from fdd.container.tar import TarFacts
    from fdd.container.zip.structs import ZipFacts, ZipRecord
    from fdd.formats.pytorch.canonical import CanonicalComparison
    from fdd.formats.pytorch.older_facts import LegacyFacts, TarModelFacts
    from fdd.formats.pytorch.serialization_id import IdFacts


UNJUDGED_ROLES = frozenset({"copy", "hidden", "lost", "nested", "trailing", "further", "foreign", "carried"})
"""Roles of pickles that the format does not ask for: they count for safety only."""
HIDING_ROLES = frozenset({"copy", "hidden", "trailing"})
"""Roles of pickles in places where a reader of the file looks for none."""


@dataclass(slots=True)
class PickleRecord:
    """One pickle of the file and what a symbolic run of it showed.

    ``role``: object (data.pkl), constants, attributes, bytecode, debug, traced-inputs, packaged; magic, protocol,
    sys-info, keys, tensors, storages (legacy parts); copy (of a record that is there twice), hidden (in a record that
    should hold none), lost (of a record whose entry in the directory is damaged or missing), nested (in a string of
    another pickle), trailing (behind STOP or the end), further (of a further complete legacy stream); foreign (a bare
    pickle); carried (in a file of the user that travels along: extra files, resources of packages, members of model
    archives); ts-code (of a script in a package).
    ``span`` is the part of the file that holds its bytes; ``shift`` what has to be added to an offset of the facts to get
    one of the file, None where there is no such sum (deflated or nested in a string).
    """

    record: str | None
    role: str
    facts: PickleFacts
    span: Span
    shift: int | None
    data_length: int
    """Bytes of the data the pickle was run in."""
    level: int = 0
    """How many pickles this one is nested in."""
    survey: Survey = field(default_factory=Survey)
    """What a walk over its values showed."""
    announced: tuple[int, int] | None = None
    """Where the run stopped at a length that leads past the end: that length read little-endian and big-endian."""

    def place(self, offset: int, length: int = 1) -> Span:
        """Where in the file an offset of the facts lies; the whole record where that cannot be told."""
        return self.span if self.shift is None else Span(offset + self.shift, length)

    @property
    def judged(self) -> bool:
        """Whether the format says what this pickle must be (others count for safety only)."""
        return self.role not in UNJUDGED_ROLES


@dataclass(slots=True)
class GlobalUse:
    """A global, all its mentions together. ``grade``: listed, unlisted, dangerous."""

    module: str
    name: str
    grade: str
    record: str | None
    span: Span
    """Of the first mention."""
    count: int = 1
    called: bool = False
    role: str = "object"

    @property
    def path(self) -> str:
        """`module.name`."""
        return f"{self.module}.{self.name}"


@dataclass(slots=True)
class Mismatch:
    """An argument of a rebuild function, or an item of a persistent id, that is not what its place takes.

    ``code``: see the reader that states it. ``tensor`` is filled once names are known.
    """

    code: str
    span: Span
    record: str | None
    function: str
    detail: str
    tensor: str | None = None


@dataclass(slots=True)
class CodeUse:
    """An operator or class that code in the file names. ``grade``: dangerous for file, process and network operators."""

    name: str
    grade: str
    record: str
    span: Span


@dataclass(slots=True)
class NestedFile:
    """A file inside this one, judged on its own: a torch file in a record, one archive of several."""

    label: str
    span: Span
    kind: str
    verdict: str
    safety: str | None
    failed: tuple[str, ...]
    """Rules it failed with level error."""
    required: bool = True
    """Whether the whole needs it to be valid; else only its safety counts."""


@dataclass(slots=True)
class TorchDocument(Document):
    """Everything known of a PyTorch file. Only what the kind has is filled."""

    zip: ZipFacts | None = None
    tar: TarFacts | None = None
    legacy: LegacyFacts | None = None
    tar_model: TarModelFacts | None = None
    """What the members of a torch tar hold."""
    root: str = ""
    """Top folder of the ZIP, without the slash; empty where there is none."""
    texts: dict[str, bytes] = field(default_factory=dict)
    """Contents of the small records, by name below the top folder (`version`, `byteorder`, ...)."""
    pickles: list[PickleRecord] = field(default_factory=list)
    globals: list[GlobalUse] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    """Every tensor under each of its names, in stream order."""
    every: list[tuple[str | None, Tensor]] | None = None
    """What :func:`fdd.formats.pytorch.objects.every_tensor` gives, once it was asked for."""
    users: dict[int, list[tuple[str | None, Tensor]]] | None = None
    """id() of a storage -> the tensors that look at it, with their names; once it was asked for."""
    mismatches: list[Mismatch] = field(default_factory=list)
    content: str = "none"
    canonical: CanonicalComparison | None = None
    id_facts: IdFacts | None = None
    code: list[CodeUse] = field(default_factory=list)
    nested: list[NestedFile] = field(default_factory=list)
    nested_tensors: list[Tensor] = field(default_factory=list)
    nested_storages: list[Storage] = field(default_factory=list)
    foreign_reading: list[tuple[str, Span]] = field(default_factory=list)
    """Other readings of the same bytes (what, where): a pickle behind a ZIP, a tar in front of one."""
    layout: str = ""
    """Which way of laying things out is followed: see :mod:`fdd.formats.pytorch.releases`."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts of single kinds (mobile FlatBuffers, pt2, packages), under the name of the reader that states them."""

    def all_tensors(self) -> list[Tensor]:
        """The tensors of this file and of the torch files inside it."""
        return self.tensors + self.nested_tensors

    def all_storages(self) -> list[Storage]:
        """The storages of this file and of the torch files inside it."""
        return self.storages + self.nested_storages

    def local_name(self, name: str) -> str:
        """The name below the top folder; the whole name where it lies outside."""
        prefix = self.root + "/" if self.root else ""
        return name[len(prefix) :] if prefix and name.startswith(prefix) else name

    def inside_root(self, name: str) -> bool:
        """Whether a record lies in the top folder."""
        return not self.root or name.startswith(self.root + "/")

    def find(self, local: str) -> int | None:
        """Index of the record with that name below the top folder, None where there is none."""
        wanted = f"{self.root}/{local}" if self.root else local
        return next((index for index, record in enumerate(self.records) if record.name == wanted), None)

    def zip_record(self, index: int) -> ZipRecord:
        """The record of the ZIP with that index."""
        assert self.zip is not None
        return self.zip.records[index]

    def zip_records(self) -> Iterator[tuple[int, ZipRecord]]:
        """The records of the ZIP with their index, which is also the index into ``records``."""
        if self.zip is not None:
            yield from enumerate(self.zip.records)

    def judged_pickles(self) -> Iterator[PickleRecord]:
        """The pickles that the format itself asks for."""
        return (pickle for pickle in self.pickles if pickle.judged)

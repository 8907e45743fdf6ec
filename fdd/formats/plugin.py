# SPDX-License-Identifier: Apache-2.0
"""What a format brings. Writers, fixity, comparison and batch know formats only through this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from fdd.core.model import Document, EmbeddedSource, Identification, Record
from fdd.core.payload import Part
from fdd.core.rule import Catalogue
from fdd.core.source import ByteSource
from fdd.formats.probe import Probe
from fdd.formats.segments import Segment
from fdd.limits import Limits
from fdd.tensors.model import Storage, Tensor


class Format(Protocol):
    """A format plug-in: one object in a module, named in ``fdd.formats.BUILT_IN`` or by an entry point `fdd.formats`."""

    name: str
    """Short name, as `--as` takes it."""
    title: str
    safety_basis: str | None
    """The list that safety `listed` refers to; None where a file of this format can run nothing."""

    @property
    def catalogue(self) -> Catalogue:
        """The rules, loaded when first asked for."""
        ...

    def description(self) -> Mapping[str, Any]:
        """Clauses with their sources, signifiers, versions: what the rules cite."""
        ...

    def identify(self, probe: Probe) -> Identification | None:
        """Which kind of this format the file is. ``format`` is None in the answer where the kind is only a neighbour
        (a bare pickle, a ZIP around a model): it is then opened for its safety, not judged. None: not known here."""
        ...

    def open(self, probe: Probe, identification: Identification) -> Document:
        """Read the structure. Never raises on bad bytes; raises SourceError where reading fails."""
        ...

    def read_payload(self, document: Document, algorithms: tuple[str, ...], watched: Iterable[Part] = ()) -> None:
        """Read every byte once: digests of the file and of each record, checksums, values of index tensors. ``watched`` are
        further parts of the file to fill in the same read."""
        ...

    def properties(self, document: Document) -> dict[str, Any]:
        """Technical metadata, as plain data, by the names of the vocabulary."""
        ...

    def segments(self, document: Document) -> list[Segment]:
        """A partition of the file into parts with owners, ascending, without gaps: what fixity records."""
        ...

    def stored_parts(self, document: Document) -> Iterable[Record]:
        """Everything in the file that holds contents: the records, and those that only a closer look finds."""
        ...

    def is_orderly(self, document: Document) -> bool:
        """Whether the container leads to every record, so that readers find what is in it."""
        ...

    def sources(self, document: Document, limits: Limits) -> Iterable[EmbeddedSource]:
        """The source texts that the file carries, as text to read."""
        ...

    def tensors(self, document: Document) -> Iterable[Tensor]:
        """The tensors, in stream order."""
        ...

    def has_all_tensors(self, document: Document) -> bool:
        """Whether these are all tensors: False where something broken or a limit may have hidden some."""
        ...

    def payload(self, document: Document, storage: Storage, limits: Limits) -> ByteSource | None:
        """What a storage holds, as a source that begins with its first byte; None where that cannot be had."""
        ...

    def byte_order(self, document: Document, storage: Storage) -> str | None:
        """In which order the numbers of a storage lie, `little` or `big`; None where nothing says so."""
        ...

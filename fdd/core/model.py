# SPDX-License-Identifier: Apache-2.0
"""What every format states of a file: identification, records, evidence. Formats add their own facts in a subclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fdd.core.finding import Reason
from fdd.core.source import ByteSource
from fdd.core.span import Span


class Basis(NamedTuple):
    """One piece of evidence for an identification: what matched and where (bytes, absolute)."""

    what: str
    offset: int
    length: int


class Registry(NamedTuple):
    """An entry of a format registry that fits, and in what sense."""

    registry: str
    id: str
    note: str | None = None


@dataclass(slots=True)
class Identification:
    """Which kind of file this is, by which evidence (contract section 4).

    ``format`` is the name of the format plug-in that judges the kind, None for foreign kinds. ``confidence`` is one of
    `signature`, `container`, `structure`, `name`. ``note`` says in a sentence what helps a curator with this file.
    """

    kind: str
    name: str
    format: str | None = None
    version: str | None = None
    confidence: str = "signature"
    registries: list[Registry] = field(default_factory=list)
    mime: str | None = None
    extension_matches: bool | None = None
    basis: list[Basis] = field(default_factory=list)
    note: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Record:
    """A named part of the file: a ZIP record, a tar member, a part of a legacy stream.

    ``span`` is where its stored bytes lie, ``size`` their count after decompression. ``crc32`` is the recorded one;
    ``computed_crc32``, ``digests`` and ``all_zero`` are filled by the payload pass, over the decompressed bytes.
    """

    name: str
    role: str
    span: Span | None
    size: int
    method: str = "stored"
    crc32: int | None = None
    complete: bool = True
    """Whether all of it is known to be there: a record that the end of the file cuts is not."""
    computed_crc32: int | None = None
    digests: dict[str, str] = field(default_factory=dict)
    all_zero: bool | None = None
    inflated: int | None = None
    """Bytes that came out of a deflated record; None when stored or not read."""
    inflate_fault: str | None = None
    """Why inflating stopped early, or what was left over."""


class EmbeddedSource(NamedTuple):
    """A source text that a file carries. ``name`` says what it is in the file's own words, ``original`` the path it once
    had on the author's machine; both are texts to show, never paths to write to."""

    name: str
    record: str | None
    data: bytes
    offset: int | None
    original: str | None = None


class Evidence(NamedTuple):
    """How far one kind of input is there. ``state``: complete, partial, withheld, absent, not-requested.

    A partial input still shows violations; that it shows none proves nothing. A withheld one is too broken to judge by:
    rules that ask for it do not run. ``by``: rules one of which failed and so took the input away.
    """

    state: str
    reason: Reason | None = None
    by: tuple[str, ...] = ()
    detail: str | None = None


COMPLETE = Evidence("complete")
ABSENT = Evidence("absent")
NOT_REQUESTED = Evidence("not-requested")


@dataclass(slots=True)
class Document:
    """The facts of one file, as far as they could be read."""

    source: ByteSource
    name: str | None
    identification: Identification
    records: list[Record] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    """Input of rules -> how far it is there. What is not named is absent."""
    digests: dict[str, str] = field(default_factory=dict)
    """Digests of the whole file, by algorithm."""
    has_code: bool = False
    """Whether there is any pickle or code, so that a statement on safety is due."""
    followed: bool = True
    """Whether all pickles and code were followed to their end."""

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.source.size

    @property
    def kind(self) -> str:
        """The kind, short for ``identification.kind``."""
        return self.identification.kind

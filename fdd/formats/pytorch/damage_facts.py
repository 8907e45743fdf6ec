# SPDX-License-Identifier: Apache-2.0
"""What the common accidents left behind in a file: facts for the findings that tell a curator what happened.

All offsets are absolute and count bytes. Lists of names are complete; whoever prints them shortens them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument

SECTOR = 512
"""Bytes that storage media and file systems write at least together; most file systems write 4096."""
PAGE = 4096


@dataclass(slots=True)
class StorageTally:
    """What became of the storages that the pickles name. ``cut`` and ``missing`` are counts; ``tensors`` are the names
    of those that lost their values, in whole or in part."""

    named: int
    whole: int
    cut: int
    missing: int
    tensors: list[str] = field(default_factory=list)


@dataclass(slots=True)
class CutOff:
    """The content ends before the archive or stream does: the file is shorter, or zeros stand for the rest.

    ``place`` is where it breaks off: the rest of a broken structure, or an empty span. ``inside`` says in words what is
    broken off there. ``directory`` tells that all records are in front of the break.
    """

    place: Span
    content: int
    """Bytes that hold content: the size of the file, or what lies in front of the zeros."""
    inside: str
    complete: list[str]
    """Names of the records that are there to the last byte."""
    directory: bool = False
    zeros: int = 0
    """Zero bytes that fill the file up; 0 where it is shorter."""
    whole_size: int | None = None
    """Bytes the whole file had, as computed from what is left; None where too little is."""
    tally: StorageTally | None = None
    checked: int | None = None
    """How many complete records have the checksum in their data descriptor; None where that was not looked at."""
    unchecked: int = 0
    """Complete records that nothing was compared with."""

    @property
    def unit(self) -> int | None:
        """4096 or 512 where the content ends at a multiple of it, else None."""
        return next((unit for unit in (PAGE, SECTOR) if self.content and self.content % unit == 0), None)


@dataclass(slots=True)
class ZeroHole:
    """A run of zeros on sector boundaries where other bytes must have been."""

    span: Span
    records: list[str]
    """Records whose payload lost bytes."""
    structures: list[str]
    """Headers, descriptors or directory entries that it covers."""
    tensors: list[str]


@dataclass(slots=True)
class Displacement:
    """Everything behind some place stands earlier (``count`` < 0: bytes were lost) or later than the directory says, or in
    a legacy stream the sizes in front of it.

    ``span`` is where the fault lies, in the file as it is; ``before`` the last record in its place, None in front of all;
    ``behind`` the first structure out of place. ``inside``: it lies inside the payload of ``before``.
    """

    count: int
    span: Span
    before: str | None
    behind: str
    inside: bool
    lost: list[str]
    """Records between the two whose headers were not found at all."""
    tensors: list[str]
    """Tensors whose values it broke."""
    repeated: Span | None = None
    """Inserted bytes that are a copy of those directly in front of them."""
    restores: bool = False
    """Whether the record has its recorded checksum once those bytes are taken out."""


@dataclass(slots=True)
class LostHeader:
    """A record that the directory lists, and no local header where it says. ``payload`` is where its bytes are by the
    data descriptor behind them; ``fits`` whether they have the recorded checksum."""

    record: str
    place: Span
    payload: Span | None
    size: int
    tensors: list[str]
    fits: bool | None = None


@dataclass(slots=True)
class TextConversion:
    """Line ends that were changed although the file is binary.

    ``code``: crlf-added (LF became CR LF), cr-removed (no CR is left), crlf-shortened (no CR LF pair is left), lf-to-cr,
    cr-to-lf. ``restored`` is the verdict on the file with the change undone, None where it cannot be undone or is too large.
    """

    code: str
    line_feeds: int
    returns: int
    pairs: int
    first: int
    """Offset of the first changed byte that can be named, else 0."""
    restored: str | None = None


@dataclass(slots=True)
class Mangled:
    """The whole file went through a text channel. ``text`` is the sentence of the reader that found it."""

    code: str
    text: str
    restored: str | None = None


@dataclass(slots=True)
class ExtraBytes:
    """Bytes in front of or behind everything else, and what they look like."""

    span: Span
    front: bool
    what: str


@dataclass(slots=True)
class SavedPart:
    """One of several archives in a file, and the verdict on it alone; None where it does not stand alone."""

    span: Span
    verdict: str | None


@dataclass(slots=True)
class Saves:
    """Several archives one behind the other. ``torch_reads``: first, last, or none."""

    parts: list[SavedPart]
    torch_reads: str


@dataclass(slots=True)
class Packer:
    """Which tool wrote entries of the archive that torch does not write. ``reasons``: what shows it."""

    tool: str
    reasons: str
    entries: int
    total: int
    span: Span
    """The first entry of that tool in the directory."""


@dataclass(slots=True)
class Leftovers:
    """Records that operating systems add when people pack folders."""

    names: list[str]
    system: str
    span: Span


@dataclass(slots=True)
class Encrypted:
    """Records whose headers say that they are encrypted. ``clear``: their bytes are the plain ones all the same."""

    names: list[str]
    total: int
    method: str
    clear: bool
    span: Span


@dataclass(slots=True)
class FlippedBit:
    """The one bit that, turned round, gives a payload its recorded checksum. ``bit`` 0 is the lowest."""

    offset: int
    bit: int
    found: int
    """The byte as it is."""
    element: int | None
    """Which element of the storage holds it."""
    tensors: list[str]
    """Tensors that show that element."""
    chance: float
    """Probability that some bit does so although the damage is another one."""


@dataclass(slots=True)
class AlteredRecord:
    """A record whose contents do not have the recorded checksum. ``explained``: another accident accounts for it."""

    record: str
    role: str
    span: Span
    size: int
    tensors: list[str]
    flipped: FlippedBit | None = None
    explained: bool = False


@dataclass(slots=True)
class DamageFacts:
    """Everything that was found of accidents. Empty lists and None: no sign of that kind."""

    cut: CutOff | None = None
    head_missing: int = 0
    """Bytes that are missing at the front of an archive, by its own offsets."""
    head_records: list[str] = field(default_factory=list)
    """Records that were in them."""
    directory: CutOff | None = None
    """The records of an archive whose directory is damaged although its end is there."""
    holes: list[ZeroHole] = field(default_factory=list)
    displacements: list[Displacement] = field(default_factory=list)
    lost_headers: list[LostHeader] = field(default_factory=list)
    conversion: TextConversion | None = None
    mangled: list[Mangled] = field(default_factory=list)
    extra: list[ExtraBytes] = field(default_factory=list)
    saves: Saves | None = None
    packers: list[Packer] = field(default_factory=list)
    leftovers: list[Leftovers] = field(default_factory=list)
    flattened: bool = False
    """Whether the records of a model stand outside any folder."""
    encrypted: list[Encrypted] = field(default_factory=list)
    altered: list[AlteredRecord] = field(default_factory=list)
    whole_records: int = 0
    """Records that have their recorded checksum."""
    tally: StorageTally | None = None
    """Of the storages, where an archive with a whole directory lacks some."""
    last_missing: bool = False
    """Whether the missing storages are the last ones, in the order of writing."""
    empty_tensors: list[str] = field(default_factory=list)
    """Names of the tensors without elements, where they are many."""
    tensor_count: int = 0


def damage_of(document: TorchDocument) -> DamageFacts | None:
    """What was found of accidents; None where nothing looks odd."""
    found = document.facts.get("damage")
    return found if isinstance(found, DamageFacts) else None

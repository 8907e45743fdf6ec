# SPDX-License-Identifier: Apache-2.0
"""The facts of the two forms before the ZIP: the legacy stream (format.md 4.1) and the tar of 0.1 (4.2).

All spans are absolute; offsets and lengths count bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fdd.core.span import Span
from fdd.tensors.model import Storage, Tensor

if TYPE_CHECKING:
    from fdd.formats.pytorch.document import PickleRecord

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
STREAM_VERSION = 1001
TAR_VERSION = 1000
LEGACY_PARTS = ("magic", "protocol", "sys-info", "object", "keys")
"""The five pickles of a legacy stream, in order, by their roles."""
TAR_PARTS = {"sys_info": "sys-info", "pickle": "object", "tensors": "tensors", "storages": "storages"}
"""Members of the tar form, in the order torch wrote them, and their roles."""


@dataclass(slots=True)
class LegacyStorage:
    """An entry of the storage part: its key in the list, the 8-byte count in front of it, and its payload.

    ``expected`` is the count by the persistent id, None where the object does not name the key. ``payload`` is what
    lies in the file; None where nothing tells how long it is. ``needed`` are the bytes it should have.
    """

    key: str
    count: int | None
    count_span: Span
    expected: int | None
    payload: Span | None
    needed: int | None

    @property
    def complete(self) -> bool:
        """Whether count and payload are there to the last byte."""
        return self.count is not None and self.payload is not None and self.payload.length == self.needed


@dataclass(slots=True)
class LegacyFacts:
    """The parts of one legacy stream as far as they could be read."""

    start: int
    pickles: list[PickleRecord] = field(default_factory=list)
    """The five pickles in order; the last one may be broken off."""
    storages: list[LegacyStorage] = field(default_factory=list)
    stopped: str | None = None
    """The part that could not be read to its end: one of LEGACY_PARTS, or storages. None where all could."""
    cut: bool = False
    """Whether it stopped because the file ends."""
    end: int = 0
    """Behind the last storage, or where reading stopped."""
    further: list[LegacyFacts] = field(default_factory=list)
    """Complete streams behind this one."""
    rest: Span | None = None
    """Other bytes behind the last stream."""
    rest_holds: str = ""
    """What the rest looks like; empty where it looks like nothing."""

    def part(self, role: str) -> PickleRecord | None:
        """The pickle of that role, if it was reached."""
        index = LEGACY_PARTS.index(role)
        return self.pickles[index] if index < len(self.pickles) else None

    def value(self, role: str) -> Any:
        """What the pickle of that role holds; None where it was not read to its end."""
        pickle = self.part(role)
        return pickle.facts.root if pickle is not None and pickle.facts.stopped else None

    @property
    def span(self) -> Span:
        """The bytes of the stream."""
        return Span(self.start, self.end - self.start)


@dataclass(slots=True)
class OlderFault:
    """Something in the members of the tar form that is not as it should be. ``code``: see the reader that states it."""

    code: str
    span: Span
    member: str
    detail: str


@dataclass(slots=True)
class TarTensor:
    """An entry of the member `tensors`. ``numbers`` are the raw integers behind its pickle."""

    key: str
    storage_key: str
    type_name: str
    span: Span
    numbers: Span
    tensor: Tensor


@dataclass(slots=True)
class TarStorage:
    """An entry of the member `storages`."""

    key: str
    span: Span
    count: int
    count_span: Span
    storage: Storage


@dataclass(slots=True)
class TarView:
    """A storage that shows a part of another one; offset and count are elements."""

    key: str
    root: str
    offset: int
    count: int
    span: Span
    storage: Storage | None
    """None where there is no such root, or the view does not lie inside it."""


@dataclass(slots=True)
class TarModelFacts:
    """What the members of the tar form hold, as far as they could be read."""

    members: dict[str, int] = field(default_factory=dict)
    """Name -> index of the member that counts: the last one of that name, as Python's tarfile takes it."""
    stated_tensors: int | None = None
    tensors: list[TarTensor] = field(default_factory=list)
    stated_storages: int | None = None
    storages: list[TarStorage] = field(default_factory=list)
    views: list[TarView] = field(default_factory=list)
    read: set[str] = field(default_factory=set)
    """The members `tensors` and `storages`, as far as their announced entries could all be read."""
    faults: list[OlderFault] = field(default_factory=list)
    unresolved: list[tuple[Span, str]] = field(default_factory=list)
    """Persistent ids of the object that are no key of a tensor or storage."""

    def has_all(self) -> bool:
        """Whether all four members are there."""
        return all(name in self.members for name in TAR_PARTS)

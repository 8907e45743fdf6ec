# SPDX-License-Identifier: Apache-2.0
"""What an identification of a foreign file states, and the piece of the file that it is told by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fdd.core.model import Basis
from fdd.core.source import ByteSource
from fdd.core.text import printable
from fdd.limits import Limits

HEAD_BYTES = 1 << 16
"""Bytes from the start that signatures and texts are told by; also what is inflated of a compressed file."""
STRUCTURE_BYTES = 8 << 20
"""Longest JSON text or header that is parsed; longer ones are told by their beginning."""


@dataclass(slots=True)
class InnerMember:
    """A member found inside. ``kind`` is a kind of the contract where its first bytes tell one, else None."""

    name: str
    size: int | None
    kind: str | None = None
    may_hold_code: bool = False
    """Whether it could not be looked at, or holds a pickle that was not followed."""


@dataclass(slots=True)
class ForeignFacts:
    """What a file of no installed format is.

    ``kind`` is one of the foreign kinds of the contract; ``name`` the human name of the format, more exact than the kind
    where the bytes allow it. ``pronom`` is a PRONOM id or None. ``note`` is one sentence or two for a curator: what this
    is and what to do. ``details`` holds plain data only.
    """

    kind: str
    name: str
    note: str
    basis: list[Basis] = field(default_factory=list)
    version: str | None = None
    mime: str | None = None
    pronom: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    inner: list[InnerMember] = field(default_factory=list)
    may_hold_code: bool = False
    """Whether something in it that loading would run may have been missed."""

    def may_hide_code(self, *, whole: bool) -> bool:
        """The same of a file inside another: one of no known kind that was not seen ``whole`` may be anything."""
        return self.may_hold_code or (self.kind == "unknown" and not whole)


Known = Callable[[ByteSource, "str | None"], "ForeignFacts | None"]
"""Asks the installed formats what a file inside is, by its bytes and its name; None where none of them knows it."""


@dataclass(slots=True)
class Subject:
    """The file under test as the recognisers see it: its source, its head, and how deep it lies in other files."""

    source: ByteSource
    head: bytes
    limits: Limits
    name: str | None = None
    depth: int = 0
    partial: bool = False
    """True where the source is only the beginning of the bytes (the inflated part of a compressed file)."""
    known: Known | None = None
    first_nonzero: int | None = None
    """Offset of the first byte that is not zero, once it was looked for beyond the head."""

    @property
    def size(self) -> int:
        """Bytes of the source."""
        return self.source.size

    @property
    def may_look_inside(self) -> bool:
        """Whether files inside this one are told too."""
        return self.depth < self.limits.nested_files

    def inside(self, source: ByteSource, name: str | None, *, partial: bool) -> Subject:
        """A file found inside this one, ``partial`` where ``source`` is only its beginning."""
        return make_subject(source, self.limits, name=name, depth=self.depth + 1, partial=partial, known=self.known)


def make_subject(
    source: ByteSource,
    limits: Limits,
    *,
    name: str | None = None,
    depth: int = 0,
    partial: bool = False,
    known: Known | None = None,
) -> Subject:
    """Read the head of ``source`` and wrap both."""
    return Subject(source, source.read_at(0, HEAD_BYTES), limits, name, depth, partial, known)


def quote(text: str, most: int = 120) -> str:
    """A text of the file between quotation marks: on one line, made visible, cut to ``most`` characters."""
    words = " ".join(text[: most * 20].split())
    return f'"{printable(words if len(words) <= most else words[: most - 3] + "...")}"'


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"

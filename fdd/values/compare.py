# SPDX-License-Identifier: Apache-2.0
"""Do two files hold the same tensors? By name, type, shape and content digest, whatever the containers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from typing import Any, BinaryIO

from fdd.core.errors import SourceError
from fdd.core.model import Document
from fdd.core.source import FileSource, open_source
from fdd.core.text import printable, valid_text
from fdd.formats.content import Content, ContentReader, TensorContent
from fdd.formats.opening import open_by_kind
from fdd.formats.plugin import Format
from fdd.formats.probe import make_probe
from fdd.limits import Limits
from fdd.tensors.content import COMPONENTS, CONTENT_ALGORITHM, NO_DATA, NoContent
from fdd.values.beside import Beside, compare_beside
from fdd.values.differences import Difference, measure

Source = str | bytes | os.PathLike[str] | BinaryIO
Key = tuple[str, int]
"""A name, and how many tensors of that name stand before."""


MOST_CANDIDATES = 20
"""Tensors of the same contents among which the likest name is looked for."""


class Outcome(StrEnum):
    """What a comparison comes to."""

    SAME = "same"
    DIFFERENT = "different"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class ComparedFile:
    """One side. ``whole`` says whether all its tensors are known; ``byte_order`` as in :mod:`fdd.formats.content`."""

    name: str
    size: int
    kind: str
    whole: bool
    content: Content

    @property
    def digest(self) -> str | None:
        """The content digest; None where a tensor has none, or not all are known."""
        return self.content.digest if self.whole else None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        digest = self.digest
        return {
            "name": self.name,
            "size": self.size,
            "kind": self.kind,
            "byte_order": self.content.byte_order,
            "tensor_count": len(self.content.tensors),
            "all_tensors_known": self.whole,
            "content_digest": {"algorithm": CONTENT_ALGORITHM, "digest": digest} if digest is not None else None,
        }


@dataclass(frozen=True, slots=True)
class TensorDifference:
    """A tensor of both files that is not the same. ``what``: dtype, shape, layout, data (only one has any), values."""

    name: str
    what: tuple[str, ...]
    first: TensorContent
    second: TensorContent
    values: Difference | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        entry: dict[str, Any] = {"name": self.name, "what": list(self.what)}
        entry |= {"a": tensor_dict(self.first), "b": tensor_dict(self.second)}
        if self.values is not None:
            entry |= {
                "values": self.values.values,
                "differing_values": self.values.differing,
                "largest_difference": self.values.largest,
                "not_finite": self.values.not_finite,
            }
        return entry


@dataclass(frozen=True, slots=True)
class LoneTensor:
    """A tensor of one file only; ``same_content`` names one of the other file's lone tensors that holds the same."""

    content: TensorContent
    same_content: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        entry = {"name": self.content.name} | tensor_dict(self.content)
        return entry | ({"same_content_as": self.same_content} if self.same_content is not None else {})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome. ``without_data`` counts those of ``same`` tensors that have no data in either file. ``open``: name and
    reason of tensors that could not be compared."""

    outcome: Outcome
    first: ComparedFile
    second: ComparedFile
    same: int
    without_data: int
    different: tuple[TensorDifference, ...]
    missing: tuple[LoneTensor, ...]
    extra: tuple[LoneTensor, ...]
    open: tuple[tuple[str, str], ...]
    beside: tuple[Beside, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "comparison_version": "1.0",
            "outcome": self.outcome.value,
            "a": self.first.to_dict(),
            "b": self.second.to_dict(),
            "same": self.same,
            "without_data": self.without_data,
            "different": [difference.to_dict() for difference in self.different],
            "missing": [lone.to_dict() for lone in self.missing],
            "extra": [lone.to_dict() for lone in self.extra],
            "not_compared": [{"name": name, "reason": reason} for name, reason in self.open],
            "not_covered": [beside.to_dict() for beside in self.beside],
        }


def tensor_dict(entry: TensorContent) -> dict[str, Any]:
    """Type, shape and digest of a tensor as plain data."""
    tensor = entry.tensor
    found: dict[str, Any] = {
        "dtype": tensor.dtype.name if tensor.dtype is not None else None,
        "shape": list(tensor.shape) if tensor.shape is not None else None,
    }
    if tensor.layout != "strided":
        found["layout"] = tensor.layout
    return found | ({"digest": entry.digest} if entry.digest is not None else {"reason": entry.reason})


@dataclass(slots=True)
class _Side:
    """An opened file."""

    name: str
    format: Format | None
    document: Document
    limits: Limits
    reader: ContentReader | None = None

    def read(self) -> ComparedFile:
        fmt, document = self.format, self.document
        whole = fmt is not None and document.identification.format is not None and fmt.has_all_tensors(document)
        content = ContentReader(fmt, document, self.limits).all() if fmt is not None else Content((), "none")
        return ComparedFile(self.name, document.size, document.kind, whole, content)

    def elements(self, entry: TensorContent) -> Iterator[bytes | memoryview]:
        """Within limits that count for all tensors together."""
        assert self.format is not None
        if self.reader is None:
            self.reader = ContentReader(self.format, self.document, self.limits)
        return self.reader.elements(entry.tensor)


def compare(first: Source, second: Source, *, limits: Limits | None = None) -> Comparison:
    """Compare two files. Raises SourceError where one cannot be read, or changes while it is read."""
    with ExitStack() as stack:
        sides = [_open(source, stack, limits or Limits()) for source in (first, second)]
        # Hashing lets other threads run, so that both files are digested at the same time.
        with ThreadPoolExecutor(2) as pool:
            a, b = pool.map(_Side.read, sides)
        comparison = _compare(sides[0], a, sides[1], b)
        for side in sides:
            if isinstance(side.document.source, FileSource):
                side.document.source.check_unchanged()
    return comparison


def _open(source: Source, stack: ExitStack, limits: Limits) -> _Side:
    path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
    try:
        opened = open_source(source)
    except SourceError as error:
        raise SourceError(f"{printable(path or '-', 4096)}: {error}", offset=error.offset) from error
    if isinstance(opened, FileSource):
        stack.callback(opened.close)
    name = os.path.basename(path) if path is not None else ""
    probe = make_probe(opened, name=name, path=path, limits=limits, depth="structure")
    _, fmt, document = open_by_kind(probe)
    return _Side(valid_text(path or "-"), fmt, document, limits)


def _compare(first: _Side, a: ComparedFile, second: _Side, b: ComparedFile) -> Comparison:
    left, right = _by_key(a.content), _by_key(b.content)
    different: list[TensorDifference] = []
    unknown: list[tuple[str, str]] = []
    measured: dict[tuple[str | None, str | None], Difference | None] = {}
    same = without_data = 0
    for key in (key for key in left if key in right):
        what, reason = _hold(left[key], right[key])
        if reason is not None:
            unknown.append((key[0], reason))
        elif what:
            values = None
            if what == ("values",):
                contents = (left[key].digest, right[key].digest)  # tied tensors are measured once
                if contents not in measured:
                    measured[contents] = _measure(first, left[key], second, right[key])
                values = measured[contents]
            different.append(TensorDifference(key[0], what, left[key], right[key], values))
        else:
            same += 1
            without_data += left[key].reason == NO_DATA
    missing, extra = _lone(left, right), _lone(right, left)
    known = a.whole and b.whole
    if different or (known and (missing or extra)):
        outcome = Outcome.DIFFERENT
    else:
        outcome = Outcome.SAME if known and not unknown else Outcome.UNDETERMINED
    pairs = {key: (left[key].tensor, right[key].tensor) for key in left if key in right and _alike(left[key], right[key])}
    sides = ({key: entry.tensor for key, entry in left.items()}, {key: entry.tensor for key, entry in right.items()})
    return Comparison(
        outcome, a, b, same, without_data,
        tuple(sorted(different, key=lambda entry: entry.name)), missing, extra, tuple(sorted(unknown)),
        compare_beside(pairs, sides, first.format, first.document, second.format, second.document),
    )  # fmt: skip


def _alike(a: TensorContent, b: TensorContent) -> bool:
    return (a.tensor.dtype, a.tensor.shape, a.tensor.layout) == (b.tensor.dtype, b.tensor.shape, b.tensor.layout)


def _by_key(content: Content) -> dict[Key, TensorContent]:
    seen: dict[str, int] = {}
    found: dict[Key, TensorContent] = {}
    for entry in content.tensors:
        number = seen.get(entry.name, 0)
        seen[entry.name] = number + 1
        found[entry.name, number] = entry
    return found


def _hold(a: TensorContent, b: TensorContent) -> tuple[tuple[str, ...], str | None]:
    """In what two tensors of one name differ, or why that cannot be told."""
    x, y = a.tensor, b.tensor
    what = tuple(
        word
        for word, left, right in (("dtype", x.dtype, y.dtype), ("shape", x.shape, y.shape), ("layout", x.layout, y.layout))
        if left != right
    )
    if what:
        return what, None
    if a.digest is not None and b.digest is not None:
        return () if a.digest == b.digest else ("values",), None
    reasons = {a.reason, b.reason}
    if reasons in ({NO_DATA}, {COMPONENTS}):
        return (), None  # components are compared themselves
    if reasons == {NO_DATA, None}:
        return ("data",), None
    return (), next((str(entry.reason) for entry in (a, b) if not entry.is_whole), "they are stored in different ways")


def _measure(first: _Side, a: TensorContent, second: _Side, b: TensorContent) -> Difference | None:
    assert a.tensor.dtype is not None
    try:
        return measure(first.elements(a), second.elements(b), a.tensor.dtype)
    except NoContent:
        return None


def _lone(mine: dict[Key, TensorContent], others: dict[Key, TensorContent]) -> tuple[LoneTensor, ...]:
    candidates: dict[str, list[tuple[str, list[str]]]] = {}
    for key, entry in others.items():
        if (
            key not in mine
            and entry.digest is not None
            and len(found := candidates.setdefault(entry.digest, [])) < MOST_CANDIDATES
        ):
            found.append((entry.name, _parts(entry.name)))
    lone = (entry for key, entry in mine.items() if key not in others)
    return tuple(LoneTensor(entry, _likest(entry.name, candidates.get(entry.digest or "", []))) for entry in lone)


def _likest(name: str, others: list[tuple[str, list[str]]]) -> str | None:
    """Of several names the one that ends most like ``name``: zeros and ones are the same in many tensors."""
    parts = _parts(name)
    best = max(others, key=lambda other: _common(parts, other[1]), default=None)
    return best[0] if best is not None else None


def _parts(name: str) -> list[str]:
    """The parts of a name, last part first; TorchScript has slashes where state dicts have dots."""
    return name.replace("/", ".").split(".")[::-1]


def _common(first: list[str], second: list[str]) -> int:
    """How many parts two lists have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))

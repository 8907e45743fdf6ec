# SPDX-License-Identifier: Apache-2.0
"""What a content digest does not cover, and whether two files differ in it as far as that is cheap to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fdd.core.model import Document
from fdd.formats.plugin import Format
from fdd.tensors.model import Quantizer, Tensor

MOST_NAMES = 20
EQUAL, DIFFERS, UNKNOWN = "equal", "differs", "unknown"
Key = tuple[str, int]
"""Name of a tensor, and its number among those of the name."""
Sides = tuple[Mapping[Key, Tensor], Mapping[Key, Tensor]]
Pairs = Mapping[Key, tuple[Tensor, Tensor]]
"""The tensors of one type and shape that both files have, by name and number."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One thing beside the values. ``state``: equal, differs, unknown. ``names`` are tensors in question, at most a few of
    the ``count`` there are."""

    what: str
    state: str
    count: int = 0
    names: tuple[str, ...] = ()
    note: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        entry: dict[str, Any] = {"what": self.what, "state": self.state}
        if self.count:
            entry |= {"count": self.count, "names": list(self.names)}
        return entry | ({"note": self.note} if self.note is not None else {})


def compare_beside(
    pairs: Pairs, all_tensors: Sides, first: Format | None, left: Document, second: Format | None, right: Document
) -> tuple[Beside, ...]:
    """Everything that the digest leaves out, in a fixed order. ``pairs`` are compared; where there is none, nothing is known.

    ``all_tensors`` of both files tell with which others those of the pairs share their storages.
    """
    found: tuple[Beside, ...] = (
        _sharing(pairs, all_tensors),
        _each("strides", pairs, _strides),
        _each("requires_grad", pairs, lambda tensor: tensor.requires_grad),
        _each("parameters", pairs, lambda tensor: tensor.parameter),
        _each("devices", pairs, lambda tensor: tensor.location),
        _each("classes", pairs, lambda tensor: tensor.wrapper or ""),
        _quantization(pairs),
    )
    if not pairs and any(all_tensors):
        found = tuple(Beside(row.what, UNKNOWN, note="no tensor of one name and type is in both files") for row in found)
    return (*found, _objects(first, left, second, right))


def _sharing(pairs: Pairs, all_tensors: Sides) -> Beside:
    """Which tensors look at the same storage: tied weights. A partner that only one file has is a difference too."""
    left, right = (_partners(tensors) for tensors in all_tensors)
    concerned = [key for key in pairs if left.get(key) != right.get(key)]
    return _result("sharing of storages", sorted(name for name, _ in concerned))


def _partners(tensors: Mapping[Key, Tensor]) -> dict[Key, frozenset[Key]]:
    """Of each tensor that shares its storage, all that do."""
    by_storage: dict[int, list[Key]] = {}
    for key, tensor in tensors.items():
        if tensor.storage is not None and tensor.element_count:
            by_storage.setdefault(id(tensor.storage), []).append(key)
    groups = (frozenset(keys) for keys in by_storage.values() if len(keys) > 1)
    return {key: group for group in groups for key in group}


def _strides(tensor: Tensor) -> object:
    """The strides that matter: of dimensions with more than one element, in tensors with any."""
    if tensor.stride is None or tensor.shape is None:
        return None
    return () if 0 in tensor.shape else tuple(step for size, step in zip(tensor.shape, tensor.stride, strict=False) if size > 1)


def _each(what: str, pairs: Pairs, value: Callable[[Tensor], object]) -> Beside:
    """Compare one property of every tensor; where a file does not state it, nothing is known."""
    other: list[str] = []
    silent = 0
    for (name, _), tensors in pairs.items():
        a, b = value(tensors[0]), value(tensors[1])
        if a is None or b is None:
            silent += a is not b
        elif a != b:
            other.append(name)
    if not other and silent:
        return Beside(what, UNKNOWN, note="only one of the files states it")
    return _result(what, sorted(other))


def _quantization(pairs: Pairs) -> Beside:
    """Schemes, scales, zero points and axes; tensors of them by their shape only."""
    other: list[str] = []
    by_tensors = False
    for (name, _), (a, b) in pairs.items():
        if _scheme(a.quantizer) != _scheme(b.quantizer):
            other.append(name)
        by_tensors |= a.quantizer is not None and isinstance(a.quantizer.scale, Tensor)
    found = _result("quantization parameters", sorted(other))
    if by_tensors and found.state == EQUAL:
        return Beside(found.what, UNKNOWN, note="scales that are tensors were not read")
    return found


def _scheme(quantizer: Quantizer | None) -> object:
    if quantizer is None:
        return None
    parts = (part.shape if isinstance(part, Tensor) else part for part in (quantizer.scale, quantizer.zero_point))
    return quantizer.scheme, *(repr(part) for part in parts), quantizer.axis


def _objects(first: Format | None, left: Document, second: Format | None, right: Document) -> Beside:
    """Values that are no tensors: those that the properties of both files list."""
    what = "objects that are no tensors"
    if first is None or first is not second:
        return Beside(what, UNKNOWN, note="the files are of different formats")
    a, b = (fmt.properties(document).get("metadata") for fmt, document in ((first, left), (second, right)))
    if a != b:
        return Beside(what, DIFFERS, note="the plain values that `fdd extract` lists differ")
    return Beside(what, UNKNOWN, note="the plain values that `fdd extract` lists are equal; others were not compared")


def _result(what: str, names: Iterable[str]) -> Beside:
    names = list(names)
    return Beside(what, DIFFERS if names else EQUAL, len(names), tuple(names[:MOST_NAMES]))

# SPDX-License-Identifier: Apache-2.0
"""Walking a tree of pickle values without recursion, without hashing and without expanding what is shared.

Values are told apart by identity, so a walk takes time in proportion to the pickle, never to the tree it describes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fdd.pickles.nodes import (
    Call,
    DictNode,
    ListNode,
    PersistentId,
    SetNode,
    Value,
)

_ATOMS = frozenset((type(None), bool, int, float, str, bytes))
CONTAINERS = frozenset((tuple, Call, ListNode, SetNode, DictNode, PersistentId))
"""Kinds that hold other values. All others are leaves."""


def children(value: Value) -> Sequence[Value]:
    """The values that ``value`` holds, in stream order: of a call the function, arguments, keywords, items, pairs, states."""
    kind = type(value)
    if kind is tuple:
        held: tuple[Value, ...] = value
        return held
    if kind is Call:
        parts = [value.function, value.args]
        if value.kwargs is not None:
            parts.append(value.kwargs)
        for added in (value.items, value.pairs, value.state):
            if added:
                parts += added
        return parts
    if kind is DictNode:
        pairs: list[Value] = value.pairs
        return pairs
    if kind is ListNode or kind is SetNode:
        items: list[Value] = value.items
        return items
    if kind is PersistentId:
        return (value.value,)
    return ()


def walk(root: Value) -> Iterator[Value]:
    """Yield every node and tuple below and including ``root`` once, parents first, in stream order; no atoms."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if type(value) in _ATOMS or id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting.extend(reversed(children(value)))


def present_size(root: Value, ceiling: int) -> int:
    """References in the tree as it lies in memory: 1 + the children of every distinct container; capped at ``ceiling``.

    What :func:`expanded_size` would say if nothing were shared; the two together show how much sharing multiplies.
    """
    size = 1
    for value in walk(root):
        size += len(children(value))
        if size >= ceiling:
            return ceiling
    return size


def expanded_size(root: Value, ceiling: int) -> int:
    """Values, atoms included, that the tree has when each shared one is counted at every place; capped at ``ceiling``.

    A value that holds itself has no finite size: ``ceiling``.
    """
    sizes: dict[int, int] = {}
    for value, below in _bottom_up((root,)):
        size = 1
        for child in below:
            # A container without a size yet is open, so it contains itself.
            size += sizes.get(id(child), ceiling) if type(child) in CONTAINERS else 1
        if size >= ceiling:
            return ceiling
        sizes[id(value)] = size
    return min(sizes.get(id(root), 1), ceiling)


def largest_expansion(roots: Iterable[Value], ceiling: int) -> int:
    """The size, as of :func:`expanded_size`, of the largest tree below any of ``roots``, in one walk over all of them.

    The reference that closes a circle counts as one value, as for a reader that does not enter what it is in already.
    """
    sizes: dict[int, int] = {}
    largest = 0
    for value, below in _bottom_up(roots):
        size = 1 + sum(sizes.get(id(child), 1) for child in below)
        if size >= ceiling:
            return ceiling
        sizes[id(value)] = size
        largest = max(largest, size)
    return largest


def nesting(roots: Iterable[Value]) -> tuple[int, Value]:
    """Deepest nesting of containers below any of ``roots``, and the outermost of them.

    0 without containers; an empty one counts 1. The reference that closes a circle adds nothing.
    """
    depths: dict[int, int] = {}
    deepest, outermost = 0, None
    for value, below in _bottom_up(roots):
        depth = 1
        for child in below:
            if type(child) in CONTAINERS:
                depth = max(depth, 1 + depths.get(id(child), 0))
        depths[id(value)] = depth
        if depth > deepest:
            deepest, outermost = depth, value
    return deepest, outermost


def _bottom_up(roots: Iterable[Value]) -> Iterator[tuple[Value, Sequence[Value]]]:
    """Yield every container once with its children, after its children (but for those that lead back to itself)."""
    seen: set[int] = set()
    for root in roots:
        if type(root) not in CONTAINERS or id(root) in seen:
            continue
        seen.add(id(root))
        below = children(root)
        path = [(root, below, iter(below))]
        while path:
            value, below, rest = path[-1]
            for child in rest:
                if type(child) in CONTAINERS and id(child) not in seen:
                    seen.add(id(child))
                    grandchildren = children(child)
                    path.append((child, grandchildren, iter(grandchildren)))
                    break
            else:
                path.pop()
                yield value, below

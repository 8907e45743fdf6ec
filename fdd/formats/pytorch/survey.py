# SPDX-License-Identifier: Apache-2.0
"""One walk over the values of a pickle, for questions that are about all of them: keys, sharing, paths of a home folder."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fdd.pickles.nodes import ByteArrayNode, Call, DictNode, Global, ListNode, PersistentId, PickleFacts, SetNode, Value
from fdd.pickles.walk import CONTAINERS, children, largest_expansion, present_size

MOST_KEPT = 1_000
"""Places of one kind that are kept; a pickle with more of them is broken all over."""
EXPANDED_CEILING = 10**15
"""Where counting an expanded tree ends."""
LEAST_SHARED = 10
"""References to values that are there already, below which a tree cannot grow a thousandfold: each at most doubles it."""
HOME = re.compile(r"(?:file://)?(?:/home/|/Users/|/root/|/private/var/|[A-Za-z]:[\\/]+Users[\\/])[^\s]")
"""Start of a path that tells of somebody's own machine."""

_PLAIN = frozenset((str, bytes, int, float, bool, type(None)))
_UNHASHABLE_CLASSES = frozenset(
    {
        ("collections", "OrderedDict"),
        ("collections", "Counter"),
        ("collections", "defaultdict"),
        ("builtins", "set"),
        ("builtins", "bytearray"),
        ("builtins", "list"),
        ("builtins", "dict"),
        ("__builtin__", "set"),
        ("__builtin__", "bytearray"),
        ("__builtin__", "list"),
        ("__builtin__", "dict"),
    }
)


@dataclass(slots=True)
class Survey:
    """What the walk showed. Offsets are those of the container concerned, as in the facts of the pickle."""

    unhashable: list[tuple[int, str]] = field(default_factory=list)
    """Containers with a key, or sets with an item, that has no hash; and what it is."""
    repeated: list[tuple[int, Value]] = field(default_factory=list)
    """Containers that give a key twice, and the key (a plain value)."""
    homes: list[tuple[int, str]] = field(default_factory=list)
    """Texts that begin with a path of somebody's home folder (those directly in a tuple are not looked at)."""
    present: int = 0
    """References in all that was made, as it lies in memory, and ..."""
    expanded: int = 0
    """... values of the largest tree when each shared one is counted at every place, capped; both 0 where little is shared."""
    hashed: dict[int, str | None] = field(default_factory=dict)
    """Used while walking: id() of a part of a key -> what in it has no hash."""


def survey(facts: PickleFacts) -> Survey:
    """Walk over the result of a pickle and over what it made besides; of a broken one over what it had made so far."""
    found = Survey()
    roots = _roots(facts)
    collecting = gc.isenabled()
    gc.disable()  # nothing here makes garbage, and the collector would go over the whole tree again and again
    try:
        shared = _walk(roots, found)
        found.hashed.clear()
    finally:
        if collecting:
            gc.enable()
    if shared >= LEAST_SHARED:
        found.present = present_size(roots, EXPANDED_CEILING)
        found.expanded = largest_expansion(roots, EXPANDED_CEILING)
    found.unhashable.sort()
    found.repeated.sort(key=lambda place: place[0])
    found.homes.sort()
    return found


def _roots(facts: PickleFacts) -> tuple[Value, ...]:
    # What was thrown away twice (from the stack and from the memo) is one value all the same.
    return tuple({id(value): value for value in (facts.root, *facts.discarded) if type(value) in CONTAINERS}.values())


def _walk(roots: tuple[Value, ...], found: Survey) -> int:
    """Visit every container once; returns how many references led to one that was visited already.

    A loop of its own and not :func:`fdd.pickles.walk`, which pushes every atom. An empty tuple counts for nothing: all
    are one object.
    """
    seen: set[int] = set()
    shared = 0
    waiting: list[Value] = list(roots)
    while waiting:
        value = waiting.pop()
        identity = id(value)
        if identity in seen:
            shared += 1
            continue
        seen.add(identity)
        kind = type(value)
        if kind is tuple:
            waiting += [child for child in value if type(child) in CONTAINERS and child]
            continue
        held = children(value)
        waiting += [child for child in held if type(child) in CONTAINERS and child]
        if kind is DictNode or (kind is Call and value.pairs):
            _look_at_keys(value, found)
        elif kind is SetNode:
            _look_at_items(value, found)
        if kind is not PersistentId:
            _look_at_texts(value.offset, held, found)
    return shared


def _look_at_texts(offset: int, held: Sequence[Value], found: Survey) -> None:
    for text in held:
        if type(text) is str and HOME.match(text) and len(found.homes) < MOST_KEPT:
            found.homes.append((offset, text))


def _look_at_keys(value: DictNode | Call, found: Survey) -> None:
    keys = (value.pairs or [])[::2]
    if not set(map(type, keys)) <= _PLAIN:
        _look_for_unhashable(value.offset, keys, found)
        keys = [key for key in keys if type(key) in _PLAIN]
    if len(set(keys)) == len(keys):
        return
    before: set[Value] = set()
    for key in keys:
        if key in before and len(found.repeated) < MOST_KEPT:
            found.repeated.append((value.offset, key))
        before.add(key)


def _look_at_items(value: SetNode, found: Survey) -> None:
    if not set(map(type, value.items)) <= _PLAIN:
        _look_for_unhashable(value.offset, value.items, found)


def _look_for_unhashable(offset: int, keys: Iterable[Value], found: Survey) -> None:
    for key in keys:
        what = without_hash(key, found.hashed)
        if what is not None and len(found.unhashable) < MOST_KEPT:
            found.unhashable.append((offset, what))


def without_hash(key: Value, known: dict[int, str | None]) -> str | None:
    """What in a key has no hash, in words; None where all of it has one, or where only its unknown class would tell.

    ``known`` keeps the answer for every part by its id(): sets within sets would else be walked again from each level.
    """
    path: list[tuple[Value, Iterator[Value]]] = []
    _enter(key, path, known)
    while path:
        _, rest = path[-1]
        for part in rest:
            if id(part) not in known:
                _enter(part, path, known)
            answer = known[id(part)]
            if answer is not None:
                known.update((id(holder), answer) for holder, _ in path)
                return answer
            if path[-1][1] is not rest:
                break
        else:
            path.pop()
    return known[id(key)]


def _enter(value: Value, path: list[tuple[Value, Iterator[Value]]], known: dict[int, str | None]) -> None:
    """Answer for ``value`` what it alone tells, and put it on the path where its parts decide."""
    held = _hashed_parts(value)
    known[id(value)] = held if isinstance(held, str) else None
    if held and not isinstance(held, str):
        path.append((value, iter(held)))


def _hashed_parts(value: Value) -> Sequence[Value] | str:
    """The parts whose hashes make up that of ``value``; a text where it has none."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, SetNode):
        return value.items if value.frozen else "a set"
    if isinstance(value, ListNode):
        return "a list"
    if isinstance(value, DictNode):
        return "a dict"
    if isinstance(value, ByteArrayNode):
        return "a bytearray"
    function = value.function if isinstance(value, Call) else None
    if isinstance(function, Global) and (function.module, function.name) in _UNHASHABLE_CLASSES:
        return f"a {function.name}"
    return ()

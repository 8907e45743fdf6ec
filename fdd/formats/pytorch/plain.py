# SPDX-License-Identifier: Apache-2.0
"""Python values of a pickle as plain data for a report, within limits: what a curator wants to read of a checkpoint."""

from __future__ import annotations

import math
from typing import Any

from fdd.core.text import decode_name, valid_text
from fdd.formats.pytorch.contents import key_text, pairs_of
from fdd.formats.pytorch.pickle_values import call_target, dtype_of, size_of
from fdd.formats.pytorch.rebuilds import REBUILD_FUNCTIONS
from fdd.pickles.nodes import Call, Global, ListNode, SetNode, Value

DEEPEST = 4
MOST_ITEMS = 50
"""Entries of one container."""
MOST_CHARACTERS = 1_000
LARGEST_BITS = 63
"""Whole numbers above are given as hexadecimal text: not every reader of JSON has wider ones."""

_SKIP = object()


def plain_values(root: Value) -> dict[str, Any]:
    """The entries of a mapping that are plain data, or hold some; tensors and foreign objects are left out."""
    pairs = pairs_of(root)
    found: dict[str, Any] = {}
    for key, item in zip((pairs or [])[::2], (pairs or [])[1::2], strict=False):
        value = plain(item, DEEPEST)
        if value is not _SKIP and value not in ({}, []):
            found[text(key_text(key))] = value
        if len(found) >= MOST_ITEMS:
            break
    return found


def plain(value: Value, depth: int) -> Any:
    """One value as plain data, ``_SKIP`` where it is none or lies too deep."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= LARGEST_BITS else hex(value)[:MOST_CHARACTERS]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (str, bytes)):
        return text(value if isinstance(value, str) else decode_name(value))
    return _container(value, depth) if depth > 0 else _SKIP


def _container(value: Value, depth: int) -> Any:
    if isinstance(value, Global):
        dtype = dtype_of(value)
        return f"torch.{dtype.name}" if dtype is not None else _SKIP
    target = call_target(value)
    if target == ("torch", "Size"):
        size = size_of(value)
        return list(size) if size is not None else _SKIP
    if target == ("torch", "device") and isinstance(value.args, tuple):
        return ":".join(str(item) for item in value.args if isinstance(item, (str, int)))
    pairs = pairs_of(value)
    if pairs is None and isinstance(value, Call) and target not in REBUILD_FUNCTIONS and value.state:
        pairs = pairs_of(value.state[-1])  # an object such as argparse.Namespace: its attributes
    if pairs is not None:
        return _mapping(pairs, depth)
    if isinstance(value, (ListNode, SetNode)):
        return _sequence(value.items, depth)
    return _sequence(list(value), depth) if isinstance(value, tuple) else _SKIP


def _mapping(pairs: list[Value], depth: int) -> Any:
    found: dict[str, Any] = {}
    for key, item in zip(pairs[::2], pairs[1::2], strict=False):
        value = plain(item, depth - 1)
        if value is not _SKIP:
            found[text(key_text(key))] = value
        if len(found) >= MOST_ITEMS:
            break
    return found


def _sequence(items: list[Value], depth: int) -> Any:
    values = [plain(item, depth - 1) for item in items[:MOST_ITEMS]]
    kept = [value for value in values if value is not _SKIP]
    return kept if kept or not items else _SKIP


def text(value: str) -> str:
    """A text as JSON and XML can carry it: see :func:`fdd.core.text.valid_text`; cut to a length."""
    safe = valid_text(value)
    return safe if len(safe) <= MOST_CHARACTERS else safe[:MOST_CHARACTERS] + "..."

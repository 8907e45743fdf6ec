# SPDX-License-Identifier: Apache-2.0
"""The installed formats: those that come with fdd by dotted name, others by entry points of the group `fdd.formats`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from fdd.core.errors import UsageError

if TYPE_CHECKING:
    from fdd.formats.plugin import Format

BUILT_IN = ("fdd.formats.pytorch.format:FORMAT", "fdd.formats.safetensors.format:FORMAT")
"""Modules and objects, in the order in which they are asked for a kind."""


def one_by_one() -> Iterator[Format]:
    """All formats, each loaded only when it is asked for: most files are known to the first one.

    Entry points are looked up only if FDD_PLUGINS is set: the look-up alone costs more than a file.
    """
    for target in BUILT_IN:
        yield _load(target)
    if os.environ.get("FDD_PLUGINS"):
        yield from _plugins()


@cache
def installed() -> tuple[Format, ...]:
    """All formats, loaded."""
    return tuple(one_by_one())


@cache
def _load(target: str) -> Format:
    module, _, name = target.partition(":")
    found: Format = getattr(import_module(module), name)
    return found


@cache
def _plugins() -> tuple[Format, ...]:
    from importlib.metadata import entry_points

    return tuple(entry.load() for entry in entry_points(group="fdd.formats"))


def by_name(name: str) -> Format:
    """The format of that name. Raises :class:`UsageError` with the names there are."""
    for candidate in one_by_one():
        if candidate.name == name:
            return candidate
    raise UsageError(f"no format {name!r}; installed: {', '.join(candidate.name for candidate in installed())}")

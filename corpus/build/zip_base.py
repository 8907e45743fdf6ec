# SPDX-License-Identifier: Apache-2.0
"""The small archive that the recipes of the ``zip`` folder break, and what they do to it most."""

from __future__ import annotations

from collections.abc import Callable

from corpus.build.kit import Archive, Member, archive, eager, eager_records, take_apart, tensor, with_serialization_id

ROOT = "archive"
PICKLE = b"archive/data.pkl"
STORAGE = b"archive/data/0"


def base() -> bytes:
    """One tensor of four numbers, as torch 2.7 and later write it into a file object."""
    return eager(tensor([0.5, -1.0, 2.0, 0.25]))


def broken(change: Callable[[Archive], object]) -> bytes:
    """The archive taken apart, changed, and put together with offsets and end records to match."""
    parts = take_apart(base())
    change(parts)
    return parts.build()


def broken_record(change: Callable[[Member], object], suffix: bytes = b"/data/0") -> bytes:
    """The archive with one changed record; the storage, where no other is named."""
    return broken(lambda parts: change(parts.member(suffix)))


def with_record(name: str, payload: bytes) -> bytes:
    """The archive with one more record behind the others, and a serialization id that counts it."""
    records = [*eager_records(tensor([0.5, -1.0, 2.0, 0.25])), (name, payload)]
    return archive(with_serialization_id(records))

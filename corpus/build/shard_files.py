# SPDX-License-Identifier: Apache-2.0
"""Data files of distributed checkpoints: one archive, or several one behind the other (format.md 3.2, row 15)."""

from __future__ import annotations

from corpus.build.kit import Call, Global, Record, archive, eager, patch, recipe, state_dict, tensor
from corpus.build.kit import with_serialization_id as with_id

FIRST = eager(tensor([1.0, 2.0, 3.0]))
SECOND = eager(tensor([4.0, 5.0]))


@recipe("shards/one-archive-pass.distcp")
def one_archive() -> bytes:
    """A file of torch.save that is a shard by its name."""
    return eager(state_dict({"w": tensor([1.0, 2.0])}))


@recipe("shards/two-archives-pass.distcp")
def two_archives() -> bytes:
    """Two tensors, each in an archive of its own."""
    return FIRST + SECOND


@recipe("shards/nested-not-well-formed.distcp")
def one_damaged() -> bytes:
    """A byte of the second tensor was flipped: its checksum is wrong."""
    place = SECOND.index(b"\0\0\x80\x40")
    return FIRST + patch(SECOND, place, b"\x01")


@recipe("shards/nested-not-valid.distcp")
def one_not_valid() -> bytes:
    """The first archive has lost its byte order mark's meaning: it says `middle`."""
    return _wrong_order() + SECOND


def _wrong_order() -> bytes:
    rows: list[Record] = [("data.pkl", b"\x80\x02}q\0."), (".format_version", b"1"), (".storage_alignment", b"64")]
    return archive(with_id([*rows, ("byteorder", b"middle"), ("version", b"3\n")]))


@recipe("shards/nested-dangerous.distcp")
def one_dangerous() -> bytes:
    """The second archive calls something when it is loaded."""
    return FIRST + eager({"x": Call(Global("posix", "getcwd"))})


@recipe("shards/bytes-between.distcp")
def bytes_between() -> bytes:
    """Four bytes lie between the archives: the file is no row of archives any more."""
    return FIRST + b"\0\0\0\0" + SECOND

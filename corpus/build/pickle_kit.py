# SPDX-License-Identifier: Apache-2.0
"""Archives around a pickle that is given opcode by opcode, or around a value with opcodes in one place."""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.kit import Raw, Record, archive, eager, records_around, tensor, with_serialization_id

HEAD = op.proto(2)
TWO = (1.0, 2.0)


def around(pickle: bytes, more: tuple[Record, ...] = ()) -> bytes:
    """An archive without storages whose data.pkl is ``pickle``; ``more`` are records in front of `version`."""
    *records, version = records_around(pickle, ())
    return archive(with_serialization_id([*records, *more, version]))


def of(body: bytes) -> bytes:
    """An archive whose data.pkl is ``body`` between PROTO 2 and STOP."""
    return around(HEAD + body + op.STOP)


def holding(raw: bytes) -> bytes:
    """A dict of one tensor and of what the opcodes ``raw`` leave on the stack."""
    return eager({"weight": tensor(TWO), "x": Raw(raw)})

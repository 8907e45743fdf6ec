# SPDX-License-Identifier: Apache-2.0
"""Pickles with a wrong memo, and pickles that grow beyond measure."""

from __future__ import annotations

import struct

from corpus.build import opcodes as op
from corpus.build.kit import recipe
from corpus.build.pickle_kit import holding, of


@recipe("pickle/memo-unwritten.pt")
def memo_unwritten() -> bytes:
    """Entry 5 is read and was never written."""
    return of(op.get(5))


@recipe("pickle/memo-rewritten.pt")
def memo_rewritten() -> bytes:
    """Entry 200 is written twice."""
    return holding(op.text("a") + op.put(200) + op.POP + op.text("b") + op.put(200))


@recipe("pickle/memo-index-bomb.pt")
def memo_index_bomb() -> bytes:
    """The first memo entry has the index 2^31 - 16."""
    return of(op.EMPTY_DICT + b"r" + struct.pack("<I", 0x7FFFFFF0))


@recipe("pickle/memo-index-bomb-text.pt")
def memo_index_bomb_text() -> bytes:
    """The same by the text opcode PUT."""
    return of(op.EMPTY_DICT + b"p50000000\n")


@recipe("pickle/memo-index-bomb-pass.pt")
def memo_index_high() -> bytes:
    """An index 1,024 above the number of writes: odd, but no bomb."""
    return of(op.EMPTY_DICT + op.put(1025))


def _doubled(levels: int) -> bytes:
    """Lists of the list before, twice."""
    body = op.EMPTY_LIST + op.put(0)
    for level in range(levels):
        body += op.EMPTY_LIST + op.MARK + op.get(level) + op.get(level) + op.APPENDS + op.put(level + 1)
    return op.MARK + body + op.TUPLE


@recipe("pickle/sharing-bomb.pt")
def sharing_bomb() -> bytes:
    """40 lists, each of which holds the one before twice."""
    return of(_doubled(40))


@recipe("pickle/sharing-bomb-key.pt")
def sharing_bomb_key() -> bytes:
    """A tuple of tuples, doubled 40 times, as a key: hashing it takes 2^40 steps."""
    body = op.EMPTY_TUPLE + op.put(0)
    for level in range(40):
        body += op.get(level) + op.get(level) + op.TUPLE2 + op.put(level + 1)
    return of(op.EMPTY_DICT + op.MARK + body + op.TUPLE + op.NONE + op.SETITEM)


@recipe("pickle/sharing-bomb-pass.pt")
def sharing_harmless() -> bytes:
    """12 levels: four thousand values from a few dozen."""
    return of(_doubled(12))


@recipe("pickle/sharing-bomb-circle-pass.pt")
def circle() -> bytes:
    """Fifteen lists that all hold the list they lie in: endless, and harmless."""
    return of(op.EMPTY_LIST + op.put(0) + op.MARK + (op.EMPTY_LIST + op.get(0) + op.APPEND) * 15 + op.APPENDS)


@recipe("pickle/nesting-bomb.pt")
def nesting_bomb() -> bytes:
    """Tuples nested 10,001 deep."""
    return of(op.NONE + op.TUPLE1 * 10_001)


@recipe("pickle/nesting-bomb-pass.pt")
def nesting_deep() -> bytes:
    """Tuples nested 1,000 deep."""
    return of(op.NONE + op.TUPLE1 * 1_000)

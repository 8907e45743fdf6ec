# SPDX-License-Identifier: Apache-2.0
"""The search for pickles among other bytes: what it finds, what it leaves, and what it costs."""

from __future__ import annotations

import pytest

from corpus.build import opcodes as op
from corpus.build.pickle_kit import HEAD
from fdd.core.model import Identification
from fdd.core.source import BytesSource
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.hidden_starts import BUDGET, next_danger, next_pickle
from fdd.limits import Limits

CALL = op.global_("posix", "getcwd") + op.EMPTY_TUPLE + op.REDUCE
PAYLOAD = HEAD + CALL + op.STOP
FRONT = [b"\0" * 5, b"\x80\x02\xff" * 1000, b"words\n", b"\x80\x02" + op.text("x" * 70_000)[:-9]]


def _document(data: bytes) -> TorchDocument:
    return TorchDocument(BytesSource(data), None, Identification("torch-zip", "torch-zip"))


@pytest.mark.parametrize("front", FRONT)
@pytest.mark.parametrize("payload", [PAYLOAD, CALL + op.STOP, op.MARK + op.inst("posix", "getcwd")])
def test_danger_is_found_behind_whatever_lies_in_front(front: bytes, payload: bytes) -> None:
    data = front + payload
    document = _document(data)
    assert next_danger(document, data, 0, Limits()) == len(front)
    assert document.followed


def test_names_that_are_no_danger_or_that_nothing_calls_are_left() -> None:
    for data in (b"--" + HEAD + op.global_("collections", "OrderedDict") + op.STOP, b"sin\ncos\ntan\nexp\n", b"text\n" * 50):
        document = _document(data)
        assert next_danger(document, data, 0, Limits()) is None
        assert document.followed


def test_behind_stop_any_pickle_with_proto_counts() -> None:
    data = b"--" + HEAD + op.NONE + op.STOP
    assert next_pickle(_document(data), data, 0, Limits()) == 2
    assert next_pickle(_document(data), data, 3, Limits()) is None


def test_where_the_budget_runs_out_the_document_says_so() -> None:
    data = (b"\x80\x02" + op.MARK * 4) * 20_000 + b"\xff" + PAYLOAD
    document = _document(data)
    assert next_danger(document, data, 0, Limits()) is None
    assert not document.followed
    assert -BUDGET < document.facts["search-budget"] <= 0

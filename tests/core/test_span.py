# SPDX-License-Identifier: Apache-2.0
"""Spans: what they hold, when two overlap, and which bytes of a file none of them covers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.core.span import Span, gaps


@pytest.mark.parametrize(
    ("offset", "inside"), [(9, False), (10, True), (13, True), (14, False)], ids=["before", "first", "last", "behind"]
)
def test_holds(offset: int, inside: bool) -> None:
    assert Span(10, 4).end == 14
    assert Span(10, 4).holds(offset) is inside


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        (Span(0, 4), Span(4, 4), False),
        (Span(0, 5), Span(4, 4), True),
        (Span(0, 9), Span(3, 2), True),
        (Span(0, 9), Span(3, 0), False),
        (Span(3, 0), Span(3, 0), False),
        (Span(8, 2), Span(0, 4), False),
    ],
)
def test_overlaps(first: Span, second: Span, overlap: bool) -> None:
    assert first.overlaps(second) is overlap
    assert second.overlaps(first) is overlap


@given(
    st.lists(st.builds(Span, st.integers(0, 40), st.integers(0, 12)), max_size=8),
    st.builds(Span, st.integers(0, 10), st.integers(0, 40)),
)
def test_gaps_and_spans_cover_everything_once(spans: list[Span], whole: Span) -> None:
    holes = list(gaps(spans, whole))
    uncovered = [byte for byte in range(whole.offset, whole.end) if not any(span.holds(byte) for span in spans)]
    assert [byte for hole in holes for byte in range(hole.offset, hole.end)] == uncovered
    assert all(hole.length > 0 for hole in holes)
    assert all(left.end < right.offset for left, right in itertools.pairwise(holes)), "neighbours are one gap"

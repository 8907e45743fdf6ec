# SPDX-License-Identifier: Apache-2.0
"""The strict reader of JSON; the standard library is the oracle for what texts say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.formats.safetensors.json_text import DEEPEST, JsonText, Stopped, Value

PLAIN = (
    st.none() | st.booleans() | st.integers(-(1 << 70), 1 << 70) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def read(text: str | bytes) -> Value:
    return JsonText(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, 10_000).value(0)


def plain(value: Value) -> Any:
    """As the standard library gives it; numbers that are no whole ones from 0 to 2^64 - 1 are told by their text alone."""
    if value.kind == "object":
        return {member.key: plain(member.value) for member in value.data}
    if value.kind == "array":
        return [plain(item) for item in value.data]
    return {"true": True, "false": False, "null": None}[value.data] if value.kind == "literal" else value.data


def expected(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: expected(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expected(item) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if isinstance(value, int) and 0 <= value < 1 << 64 else None
    return value


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_reads_what_the_standard_library_writes(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = read(text)
    assert plain(found) == expected(value)
    assert found.end == len(text.encode("utf-8", "surrogatepass"))


@given(st.text(alphabet='{}[]":,\\ntrue1-.e0u \n', max_size=40))
def test_accepts_what_the_standard_library_accepts(text: str) -> None:
    try:
        json.loads(text, parse_constant=lambda word: pytest.fail(word) if word == "never" else 1 / 0)
        good = True
    except (ValueError, ZeroDivisionError):
        good = False
    reader = JsonText(text.encode(), 1000)
    try:
        reader.value(0)
        reader.skip_whitespace()
        accepted = reader.position == len(text)
    except Stopped as stopped:
        accepted = stopped.fault.code == "number" and good
    assert accepted == good


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "end"),
        ('{"a"', "end"),
        ('{"a":', "end"),
        ('"abc', "end"),
        ('"abc\\', "end"),
        ('"abc\\u12', "end"),
        ('"\\x"', "syntax"),
        ('"\\u12x4"', "syntax"),
        ('"a\nb"', "syntax"),
        ("{a:1}", "syntax"),
        ("[1,]", "syntax"),
        ("{,}", "syntax"),
        ("+1", "syntax"),
        ("NaN", "syntax"),
        ("1e999", "number"),
        ("9" * 400, "number"),
        ("[" * (DEEPEST + 1), "nesting"),
        ("[" + "0," * 11_000 + "0]", "limit"),
    ],
)
def test_faults(text: str, code: str) -> None:
    with pytest.raises(Stopped) as caught:
        read(text)
    assert caught.value.fault.code == code
    assert 0 <= caught.value.fault.start <= caught.value.fault.end <= len(text)


def test_notices_keys_that_are_there_twice_and_halves_of_characters() -> None:
    reader = JsonText(rb'{"a":{"b":1,"\u0062":2},"a":"\ud83d\ude00","c":"\ud83d"}', 100)
    value = reader.value(0)
    assert [(place.text, place.start) for place in reader.duplicates] == [("b", 12), ("a", 24)]
    assert [place.start for place in reader.surrogates] == [47]
    assert value.data[1].value.data == "\U0001f600"


def test_nesting_up_to_the_limit() -> None:
    assert read("[" * DEEPEST + "]" * DEEPEST).kind == "array"


def test_bytes_that_are_not_utf8_stay_apart() -> None:
    assert read(b'"\xff"').data != read(b'"\xfe"').data

# SPDX-License-Identifier: Apache-2.0
"""Names from files: nothing that a terminal obeys or a reader cannot see passes, and nothing is lost on the way."""

from __future__ import annotations

import json
import math
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdd.core.paths import safe_path
from fdd.core.text import decode_name, is_text, json_text, percent_encode, printable, valid_text

DANGEROUS = [
    *(chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]),  # controls: colours, titles, line ends
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",  # bidirectional
    *"\u200b\u200c\u200d\u2060\ufeff\u180e\xad\U000e0041",  # of no width
    *"\u2028\u2029",  # line and paragraph separators
    *"\u115f\u3164\u2800",  # letters that look like nothing
    *"\ud800\udcff\ue000\U0010ffff",  # surrogates, private, unassigned
]


@pytest.mark.parametrize("character", DANGEROUS, ids=lambda character: f"U+{ord(character):04X}")
def test_dangerous_characters_become_visible(character: str) -> None:
    shown = printable(f"a{character}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown[0] + shown[-1] == "ab"
    assert f"{ord(character):x}" in shown


@pytest.mark.parametrize("name", ["layer/0.weight", "Größe", "重み", "вес", "نص", "a b", "back\\slash", "e\u0301"])
def test_names_of_all_scripts_stay_as_they_are(name: str) -> None:
    assert printable(name) == name
    assert printable(name.encode()) == name
    assert json_text(name) == json.dumps(name, ensure_ascii=False)


@given(st.text())
@settings(max_examples=40)
def test_printable_never_lets_anything_through(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(character) for character in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(st.binary(max_size=40))
@settings(max_examples=40)
def test_bytes_become_valid_text(name: bytes) -> None:
    text = decode_name(name)
    text.encode()
    assert is_text(name) is (text.encode() == name)
    printable(name).encode()


def test_long_texts_are_cut_in_the_middle() -> None:
    shown = printable("a" * 500 + "b" * 500, most=100)
    assert shown == "a" * 50 + "[... 900 characters ...]" + "b" * 50


def test_percent_encoding() -> None:
    assert percent_encode(b"a/b._-c") == "a/b._-c"
    assert percent_encode(b"a b%\xff\n/", safe=b"") == "a%20b%25%FF%0A%2F"
    assert decode_name(b"100%") == "100%"
    assert decode_name(b"100%\xff") == "100%25%FF"


@given(st.binary(max_size=20), st.binary(max_size=20))
@settings(max_examples=40)
def test_percent_encoding_keeps_names_apart(first: bytes, second: bytes) -> None:
    assert (percent_encode(first) == percent_encode(second)) is (first == second)


@given(st.text(alphabet=st.characters(), max_size=20) | st.text(alphabet="a\ud800\udcff\udfff", max_size=5))
@settings(max_examples=40)
def test_texts_that_can_be_stored(text: str) -> None:
    for stored in (valid_text(text), safe_path(text)):
        stored.encode()
    if is_utf8(text):
        assert valid_text(text) == safe_path(text) == text


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def test_paths_with_bytes_that_are_no_text() -> None:
    assert safe_path("dir/caf\udce9.pt") == "dir/caf%E9.pt"
    assert valid_text("\ud83d") == "%ED%A0%BD"


values = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.text(alphabet=DANGEROUS[:60], max_size=5)


@given(st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=5), values, max_size=4))
@settings(max_examples=50)
def test_json_is_the_same_value_in_safe_characters(value: object) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert not set(text) & set(DANGEROUS[:-4]) - set("\u115f\u3164\u2800")
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'),
        ([math.inf, -math.inf, 1.5], '["Infinity", "-Infinity", 1.5]'),
        ({"a": (10**6, 16**5000)}, '{"a": [1000000, "0x1' + "0" * 5000 + '"]}'),
    ],
    ids=["nan", "infinities", "long"],
)
def test_numbers_that_json_does_not_have(value: object, text: str) -> None:
    assert json_text(value) == text

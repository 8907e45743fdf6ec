# SPDX-License-Identifier: Apache-2.0
"""A strict reader of JSON (RFC 8259) that knows where everything stands and notices what a dict would hide.

The standard library tells neither places nor duplicate keys. What other readers stop at is a fault here too: nesting
beyond 127 levels, numbers beyond a double, escapes of half a surrogate pair.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

DEEPEST = 127
"""Levels of nesting that the reader of the safetensors library follows; at 128 it gives up (measured)."""
U64_END = 1 << 64
_WHITESPACE = re.compile(rb"[ \t\n\r]*+")
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_STRING_BEGINNING = re.compile(rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+')
_ESCAPE_BEGINNING = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_WHOLE = re.compile(rb"0|[1-9][0-9]{0,19}")
_LITERAL = re.compile(rb"true|false|null")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Value(NamedTuple):
    """A value and where it stands (offsets in the text).

    ``kind``: object, array, string, number, literal, regular. ``data``: members (list of :class:`Member`), values, the text, a
    whole number from 0 up to 2^64 - 1 or None for any other, the word itself, the match.
    """

    kind: str
    start: int
    end: int
    data: Any


class Member(NamedTuple):
    """One member of an object; ``start`` and ``end`` are those of its key, quotation marks included."""

    key: str
    start: int
    end: int
    value: Value


class TextFault(NamedTuple):
    """Why reading stopped: `end` (the text ends inside), `syntax`, `nesting`, `number` or `limit`."""

    code: str
    start: int
    end: int
    text: str


class Place(NamedTuple):
    """A key or a text, and where it stands."""

    text: str
    start: int
    end: int


class Stopped(Exception):
    """Reading cannot go on. Never leaves this folder."""

    def __init__(self, fault: TextFault) -> None:
        super().__init__(fault.text)
        self.fault = fault


class JsonText:
    """Reads values from a text, one after the other. ``most_values`` bounds their number.

    ``regular`` matches values in the outermost object that are not taken apart here: they come as they are, as values of
    the kind `regular` with the match as data. It may match only what is strict JSON without a key that is there twice.
    """

    def __init__(self, text: bytes, most_values: int, regular: re.Pattern[bytes] | None = None) -> None:
        self.text = text
        self._regular = regular
        self.position = 0
        self.duplicates: list[Place] = []
        self.surrogates: list[Place] = []
        self._before = self._token = 0
        self._values_left = most_values

    def skip_whitespace(self) -> None:
        """Go to the next byte that is not whitespace."""
        match = _WHITESPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def fault(self, code: str, text: str) -> Stopped:
        """The fault at the present place. It reaches back over two tokens: a text without its closing mark swallows what
        follows, and a bracket in place of a brace shows only behind the first key."""
        return Stopped(TextFault(code, min(self._before, self.position), min(self.position + 1, len(self.text)), text))

    def unexpected(self, wanted: str) -> Stopped:
        """The fault of a byte that is not what has to stand there."""
        if self.position >= len(self.text):
            return self.fault("end", f"the text ends where {wanted} should stand")
        return self.fault("syntax", f"byte {self.text[self.position]:#04x} stands where {wanted} should stand")

    def value(self, depth: int) -> Value:
        """Read one value that stands inside ``depth`` others. Raises :class:`Stopped`."""
        self.skip_whitespace()
        self._values_left -= 1
        if self._values_left < 0:
            raise self.fault("limit", "more values than are read")
        if depth == 1 and self._regular is not None:
            regular = self._regular.match(self.text, self.position)
            if regular is not None:
                self._take(regular.end())
                self._values_left -= regular.group().count(b",") + 3  # about as many as it would be taken apart
                return Value("regular", regular.start(), regular.end(), regular)
        start, first = self.position, self.text[self.position : self.position + 1]
        if first == b'"':
            text = self.string()
            return Value("string", start, self.position, text)
        if first in (b"{", b"["):
            data: list[Any] = list(self.members(depth)) if first == b"{" else list(self._items(depth))
            return Value("object" if first == b"{" else "array", start, self.position, data)
        literal = _LITERAL.match(self.text, start)
        if literal is not None:
            self._take(literal.end())
            return Value("literal", start, self.position, literal.group().decode())
        return self._number()

    def members(self, depth: int) -> Iterator[Member]:
        """Read an object member by member. A key that was there before is noted, and its member given all the same."""
        self._enter(depth)
        seen: set[str] = set()
        if self._closes(b"}"):
            return
        while True:
            self.skip_whitespace()
            start = self.position
            if self.text[start : start + 1] != b'"':
                raise self.unexpected("a key between quotation marks")
            key = self.string()
            end = self.position
            if key in seen:
                self.duplicates.append(Place(key, start, end))
            seen.add(key)
            self._expect(b":", "a colon")
            yield Member(key, start, end, self.value(depth + 1))
            if self._closes(b"}"):
                return
            self._expect(b",", "a comma or the closing brace")

    def _items(self, depth: int) -> Iterator[Value]:
        self._enter(depth)
        if self._closes(b"]"):
            return
        while True:
            yield self.value(depth + 1)
            if self._closes(b"]"):
                return
            self._expect(b",", "a comma or the closing bracket")

    def _enter(self, depth: int) -> None:
        if depth >= DEEPEST:
            raise self.fault("nesting", f"more than {DEEPEST} objects and lists inside one another")
        self._take(self.position + 1)

    def _take(self, end: int) -> None:
        self._before, self._token, self.position = self._token, self.position, end

    def _closes(self, mark: bytes) -> bool:
        self.skip_whitespace()
        found = self.text[self.position : self.position + 1] == mark
        if found:
            self._take(self.position + 1)
        return found

    def _expect(self, mark: bytes, words: str) -> None:
        self.skip_whitespace()
        if self.text[self.position : self.position + 1] != mark:
            raise self.unexpected(words)
        self._take(self.position + 1)

    def string(self) -> str:
        """Read a string. Bytes that are not UTF-8 become lone surrogates, as Python does with file names."""
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self._broken_string()
        start = self.position
        self._take(match.end())
        text = match.group().decode("utf-8", "surrogateescape")
        if "\\" not in text:
            return text[1:-1]
        value: str = json.loads(text, strict=False)
        if "\\u" in text and _SURROGATE.search(value):
            self.surrogates.append(Place(value, start, self.position))
        return value

    def _broken_string(self) -> Stopped:
        match = _STRING_BEGINNING.match(self.text, self.position)
        assert match is not None
        self._take(match.end())
        escape = _ESCAPE_BEGINNING.match(self.text, self.position)
        if self.position >= len(self.text) or (escape is not None and escape.end() >= len(self.text)):
            self.position = len(self.text)
            return self.fault("end", "the text ends inside a string")
        if escape is not None:
            return self.fault("syntax", "a backslash that begins no escape of JSON")
        return self.fault("syntax", f"control character {self.text[self.position]:#04x} inside a string")

    def _number(self) -> Value:
        start = self.position
        match = _NUMBER.match(self.text, start)
        if match is None:
            raise self.unexpected("a value")
        self._take(match.end())
        token = match.group()
        if not math.isfinite(float(token)):
            raise self.fault("number", "a number too large for a double")
        whole = int(token) if _WHOLE.fullmatch(token) else None
        return Value("number", start, self.position, whole if whole is not None and whole < U64_END else None)

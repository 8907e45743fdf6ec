# SPDX-License-Identifier: Apache-2.0
"""Names from files made safe to show and to keep."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidirectional and zero-width too), surrogate, private, unassigned, line and paragraph separators."""
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing: joiner, fillers of Hangul and Khmer, blank of Braille."""
_UNSHOWN = re.compile(
    "[\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters of JSON text that a terminal would obey or hide, and line ends that JSON does not count as such."""


def printable(value: str | bytes, most: int = 300) -> str:
    """Return ``value`` with every control, bidirectional, zero-width, line and unassigned character made visible.

    Such characters become Python-like escapes; a backslash stays as it is. Longer texts are cut in the middle to
    ``most`` characters, with the number of characters left out.
    """
    text = decode_name(value) if isinstance(value, bytes) else value
    if len(text) > most:
        keep = most // 2
        text = f"{text[:keep]}[... {len(text) - 2 * keep} characters ...]{text[-keep:]}"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN_CATEGORIES and character not in _BLANK_LETTERS:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def decode_name(name: bytes) -> str:
    """Decode a name of a file as UTF-8; bytes that are not UTF-8 are percent-encoded, and then `%` itself too.

    So the result is always valid text, and two different names never give the same text unless one is valid UTF-8
    that looks like the encoding of the other.
    """
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return percent_encode(name)


def percent_encode(name: bytes, safe: bytes = b"/._-") -> str:
    """Percent-encode everything outside ASCII letters, digits and ``safe``."""
    keep = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + safe)
    return "".join(chr(byte) if byte in keep else f"%{byte:02X}" for byte in name)


def valid_text(text: str) -> str:
    """A text that JSON and XML writers can encode: one with lone surrogates is percent-encoded byte by byte."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return percent_encode(text.encode("utf-8", "surrogatepass"))
    return text


def json_text(value: Any, *, indent: int | None = None) -> str:
    """``value`` as JSON for people too: letters of all scripts as they are, but control, bidirectional and zero-width
    characters as escapes, so that a terminal, or a tool that reads line by line, meets none of them.

    Numbers that JSON does not have (NaN, infinities) or that readers choke on (thousands of digits) become texts.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        text = json.dumps(_with_plain_numbers(value), ensure_ascii=False, indent=indent, allow_nan=False)
    return text if text.isascii() and "\x7f" not in text else _UNSHOWN.sub(_json_escape, text)


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match.group())[1:-1]


_NUMBER_BITS = 4096
"""Bits of the largest whole number written in decimal; Python itself refuses a few thousand digits."""


def _with_plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_plain_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_plain_numbers(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and value.bit_length() > _NUMBER_BITS:
        return hex(value)
    return value


def is_text(name: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

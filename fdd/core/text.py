# SPDX-License-Identifier: Apache-2.0
"""Names from files made safe to show and to keep."""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidirectional and zero-width too), surrogate, private, unassigned, line and paragraph separators."""


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
    if unicodedata.category(character) not in _HIDDEN_CATEGORIES:
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


def is_text(name: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

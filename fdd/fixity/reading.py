# SPDX-License-Identifier: Apache-2.0
"""Values of a manifest's JSON, taken as the schema has them or refused: what was recorded must not be guessed.

Hand-written, because loading the JSON Schema library takes longer than most verifications. All raise ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fdd.core.digests import DIGITS
from fdd.core.text import valid_text


def text(value: Any, what: str) -> str:
    """A text without lone surrogates."""
    if not isinstance(value, str) or valid_text(value) != value:
        raise ValueError(f"{what} is no text: {value!r:.80}")
    return value


def text_or_none(value: Any, what: str) -> str | None:
    """A text, or nothing."""
    return None if value is None else text(value, what)


def count(value: Any, what: str) -> int:
    """A whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{what} is no count: {value!r:.80}")
    return value


def integer(value: Any, what: str) -> int:
    """A whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} is no whole number: {value!r:.80}")
    return value


def crc32(value: Any) -> str:
    """A CRC-32 in eight hexadecimal digits."""
    if not isinstance(value, str) or not re.fullmatch("[0-9A-Fa-f]{8}", value):
        raise ValueError(f"no CRC-32: {value!r:.80}")
    return value


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object: {value!r:.80}")
    return value


def items(value: Any, what: str) -> list[Any]:
    """A JSON array."""
    if not isinstance(value, list):
        raise ValueError(f"{what} is no list: {value!r:.80}")
    return value


def digest(algorithm: str, value: Any) -> str:
    """A digest of a known algorithm in hexadecimal digits, as many as it has."""
    if algorithm not in DIGITS:
        raise ValueError(f"unknown digest {algorithm!r:.80}")
    if not isinstance(value, str) or not re.fullmatch(f"[0-9A-Fa-f]{{{DIGITS[algorithm]}}}", value):
        raise ValueError(f"no digest of {algorithm}: {value!r:.80}")
    return value.lower()


def digests(value: Any, what: str) -> dict[str, str]:
    """Digests by algorithm."""
    return {name: digest(name, one) for name, one in mapping(value, what).items()}


def flag(value: Any, what: str) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} is neither true nor false: {value!r:.80}")
    return value


def check_stays_below(path: str) -> None:
    """Refuse a path, as the file system has it, that leads out of the folder it starts from."""
    parts = re.split(r"[/\\]", path)
    if not path or path[0] in "/\\" or ".." in parts or re.match("[A-Za-z]:", path) or "\0" in path:
        raise ValueError(f"path leads out of its folder: {path!r:.200}")

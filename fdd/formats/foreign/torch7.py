# SPDX-License-Identifier: Apache-2.0
"""Files of Torch7, the Lua predecessor: `torch.save` of Lua, binary or ASCII (torch7, File.lua)."""

from __future__ import annotations

import re
from struct import unpack_from

from fdd.core.model import Basis
from fdd.formats.foreign.facts import ForeignFacts, Subject

# The type words that Lua's writer puts in front of every object.
_NIL, _NUMBER, _STRING, _TABLE, _TORCH, _BOOLEAN = range(6)
_VALUE_BYTES = {_NIL: 0, _NUMBER: 8, _BOOLEAN: 4}
_MOST_OBJECTS = 64
_CLASS = re.compile(rb"[A-Za-z_]\w{0,60}(?:\.\w{1,60}){1,6}")
_BINARY_OBJECT = re.compile(rb"V \d{1,3}(..\0\0)(?=[A-Za-z_])", re.DOTALL)
_ASCII_OBJECT = re.compile(rb"4\r?\n\d{1,9}\r?\n(?:\d{1,2}\r?\nV \d{1,3}\r?\n)?\d{1,3}\r?\n([A-Za-z_]\w*(?:\.\w+)+)\r?\n")
_ASCII_TABLE = re.compile(rb"3\r?\n\d{1,9}\r?\n\d{1,9}\r?\n[0-5]\r?\n")


def recognise_torch7(subject: Subject) -> ForeignFacts | None:
    """Tell a Torch7 file by its first object: a Torch object with its class name, or a table that leads to one."""
    head = subject.head
    if _ASCII_OBJECT.match(head) or (_ASCII_TABLE.match(head) and _ASCII_OBJECT.search(head)):
        encoding, classes = "ascii", [name.decode("ascii") for name in _ASCII_OBJECT.findall(head)]
    elif _walks_to_object(head):
        encoding, classes = "binary", _binary_classes(head)
    else:
        return None
    classes = list(dict.fromkeys(classes))
    note = (
        f"A Lua Torch7 file ({', '.join(classes[:3])}), from the predecessor of PyTorch; it needs other readers: Lua Torch,"
        " the Python package torchfile, or load_lua of PyTorch before 1.0."
    )
    details = {"encoding": encoding, "classes": classes[:50]}
    basis = [Basis("Torch7 object header", 0, min(len(head), 64))]
    return ForeignFacts("torch7", "Torch7 (Lua) serialized object", note, basis, details=details)


def _binary_classes(head: bytes) -> list[str]:
    names = []
    for match in _BINARY_OBJECT.finditer(head):
        name = head[match.end() : match.end() + int.from_bytes(match[1], "little")]
        if _CLASS.fullmatch(name):
            names.append(name.decode("ascii"))
    if not names:  # before "V 1", the class name followed the index at once
        name = head[12 : 12 + int.from_bytes(head[8:12], "little")]
        names = [name.decode("ascii")] if _CLASS.fullmatch(name) else []
    return names


def _walks_to_object(head: bytes) -> bool:
    """Whether the bytes read as Torch7 objects up to the first Torch object with a plausible class name."""
    position = 0
    for _ in range(_MOST_OBJECTS):
        if position + 4 > len(head):
            return False
        (kind,) = unpack_from("<i", head, position)
        position += 4
        if kind in _VALUE_BYTES:
            position += _VALUE_BYTES[kind]
        elif kind == _STRING:
            text, position = _counted_text(head, position)
            if text is None:
                return False
        elif kind == _TABLE and position + 8 <= len(head):
            index, count = unpack_from("<ii", head, position)
            position += 8
            if index < 1 or count < 0:
                return False
        elif kind == _TORCH and position + 4 <= len(head):
            (index,) = unpack_from("<i", head, position)
            text, position = _counted_text(head, position + 4)
            if text is not None and re.fullmatch(rb"V \d{1,3}", text):
                text, position = _counted_text(head, position)
            return index >= 1 and text is not None and _CLASS.fullmatch(text) is not None
        else:
            return False
    return False


def _counted_text(head: bytes, position: int) -> tuple[bytes | None, int]:
    if position + 4 > len(head):
        return None, position
    (length,) = unpack_from("<i", head, position)
    end = position + 4 + length
    if not 0 <= length <= 1 << 12 or end > len(head):
        return None, position
    return head[position + 4 : end], end

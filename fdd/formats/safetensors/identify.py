# SPDX-License-Identifier: Apache-2.0
"""Tells safetensors by its structure: there is no signature, and the first byte may be any character.

Damage to the length, or to one of the keys of the format, does not take the kind away; damage to both does.
"""

from __future__ import annotations

import os
import re

from fdd.core.model import Basis, Identification
from fdd.formats.probe import Probe
from fdd.formats.safetensors.header import FIELDS, LENGTH_BYTES, LONGEST_HEADER, METADATA, HeaderFacts, read_header

FORMAT = "safetensors"
NAME = "Safetensors"
EXTENSION = ".safetensors"
_KEYS = tuple(re.compile(rb'"%s"\s*:' % key.encode()) for key in FIELDS)
_METADATA = re.compile(rb'"%s"\s*:' % METADATA.encode())
_MOST_SPACES = 64
_NOTE = "safetensors.header"


def identify(probe: Probe) -> Identification | None:
    """The kind and its evidence, with a note for files under another name; None for anything else."""
    if not looks_like_safetensors(probe.head, probe.source.size):
        return None
    header = header_of(probe)
    matches = _extension_matches(probe.base_name)
    shown = header.text.object_end or probe.source.size
    return Identification(
        FORMAT,
        NAME,
        FORMAT,
        confidence="structure",
        extension_matches=matches,
        basis=[
            Basis("header length", 0, LENGTH_BYTES),
            Basis("JSON header", LENGTH_BYTES, min(shown, probe.source.size) - LENGTH_BYTES),
        ],
        note=_note(header, named=matches is True, other=matches is False),
        details=_details(header),
    )


def header_of(probe: Probe) -> HeaderFacts:
    """The header, read once for identification and opening."""
    found = probe.notes.get(_NOTE)
    if not isinstance(found, HeaderFacts):
        found = read_header(probe.source, probe.limits)
        probe.notes[_NOTE] = found
    return found


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Whether the first 64 KiB of a file of ``size`` bytes are the beginning of a safetensors file, also a damaged one.

    Of the three signs, a possible length, an opening brace, and keys of the format, one may be damaged.
    """
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    body = head[LENGTH_BYTES:]
    if len(body) < 2 or head[4:LENGTH_BYTES].count(0) < 3:  # texts have no such zeros; a damaged byte may stand among them
        return False
    possible = 2 <= length <= LONGEST_HEADER
    opened = body[:_MOST_SPACES].lstrip(b" \t\n\r").startswith(b"{")
    keys = sum(key.search(body) is not None for key in _KEYS) + 2 * (_METADATA.search(body) is not None)
    if possible and opened:
        return keys > 0 or (length == size - LENGTH_BYTES and body[:length].strip(b" \t\n\r") == b"{}")
    return keys >= 2 and (possible or opened)


def _extension_matches(base_name: str) -> bool | None:
    extension = os.path.splitext(base_name)[1].lower()
    return extension == EXTENSION if extension else None


def _details(header: HeaderFacts) -> dict[str, object]:
    found: dict[str, object] = {"header_bytes": header.stated}
    if header.text.closed:
        found |= {"tensor_count": len(header.text.entries), "data_bytes": header.text.data_end}
    present = _present(header)
    found["complete"] = False if header.cut else present >= header.text.data_end if present is not None else None
    return found


def _present(header: HeaderFacts) -> int | None:
    """Bytes of data that are there; None where it is not known where data begin or how many there should be."""
    return header.size - header.data_start if header.data_start is not None and header.text.closed else None


def _note(header: HeaderFacts, *, named: bool, other: bool) -> str | None:
    count = len(header.text.entries)
    tensors = f" ({count} tensor{'' if count == 1 else 's'})" if header.text.closed else ""
    what = f"A safetensors file{tensors}{' with another extension' if other else ''}"
    how = "name it .safetensors and open it" if other else "open it"
    present = _present(header)
    if header.cut:
        return f"{what}, cut off inside its header; get it again from its source."
    if not header.text.closed:
        return f"{what}; its header is too damaged to be read to its end. Get it again from its source."
    cut = None
    if present is not None and present < header.text.data_end:
        cut = f"It is cut off: {max(0, present)} of {header.text.data_end} bytes of values are here."
    if named:
        return f"{what}. {cut}" if cut else None
    note = f"{what}. It holds no code; {how} with the safetensors library."
    return f"{note} {cut}" if cut else note

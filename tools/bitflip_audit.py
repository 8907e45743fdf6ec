# SPDX-License-Identifier: Apache-2.0
"""Flips every bit of ZIP-based PyTorch files, one at a time, and tells which flips fdd finds, and where.

usage: python tools/bitflip_audit.py FILE... [--step N] [--tools N]

A flip outside the payloads counts as found when it raises a warning or error whose span holds the flipped byte and which
the intact file does not give. The share is counted twice: with all rules, and without the one that rebuilds the container.
A flip inside a payload must raise the checksum rule for its record. What is missed is listed by structure and field. With
``--tools``, zipfile.testzip, unzip -t and 7z t (where installed) look at a sample of the same flips.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import fdd
from fdd.container.zip import read_directory, read_local_headers
from fdd.container.zip.fields import (
    CENTRAL_FIELDS,
    DESCRIPTOR64_FIELDS,
    DESCRIPTOR_FIELDS,
    END_FIELDS,
    LOCAL_FIELDS,
    LOCATOR_FIELDS,
    ZIP64_END_FIELDS,
    Fields,
)
from fdd.container.zip.structs import ZipFacts
from fdd.core.finding import Level
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.limits import Limits

REBUILD_RULES = frozenset({"PT-ZIP-035"})
CHECKSUM_RULE = "PT-ZIP-028"


class Byte(NamedTuple):
    """Which field a byte belongs to; ``record`` is set for bytes of payloads only."""

    structure: str
    name: str
    record: str | None = None


class Key(NamedTuple):
    """What makes a finding the same one in two reports."""

    rule: str
    offset: int | None
    length: int | None
    message: str


@dataclass
class Audit:
    """What was flipped and found. The counts are of bits."""

    flips: int = 0
    found: int = 0
    found_otherwise: int = 0
    """Found by another rule than the rebuild."""
    missed: Counter[Byte] = field(default_factory=Counter)
    missed_otherwise: Counter[Byte] = field(default_factory=Counter)
    payload_flips: int = 0
    payload_missed: list[tuple[int, int]] = field(default_factory=list)


def fields_of(data: bytes) -> list[Byte]:
    """The field that each byte of an intact archive belongs to."""
    source, limits = BytesSource(data), Limits()
    facts = read_directory(source, limits)
    read_local_headers(source, facts, limits)
    owner = [Byte("no structure", "")] * len(data)
    for place, byte in _layout(facts):
        owner[place.offset : place.end] = [byte] * place.length
    return owner


def _fixed(structure: str, start: int, fields: Fields) -> Iterator[tuple[Span, Byte]]:
    for name, (offset, length) in fields.items():
        yield Span(start + offset, length), Byte(structure, name)


def _layout(facts: ZipFacts) -> Iterator[tuple[Span, Byte]]:
    for record in facts.records:
        local, entry, descriptor = record.local, record.entry, record.descriptor
        if local is not None:
            yield Span(local.span.offset + 30, len(local.name)), Byte("local header", "name")
            yield from _fixed("local header", local.span.offset, LOCAL_FIELDS)
            for item in local.extra:
                yield item.span, Byte("local header", f"extra field {item.identifier:#06x}, data")
                yield Span(item.span.offset, 4), Byte("local header", f"extra field {item.identifier:#06x}, id and length")
        if record.payload is not None:
            yield record.payload, Byte("payload", "", decode_name(record.name))
        if descriptor is not None:
            fields = DESCRIPTOR64_FIELDS if descriptor.width == 8 else DESCRIPTOR_FIELDS
            yield from _fixed("data descriptor", descriptor.span.offset, fields)
        if entry is not None:
            yield entry.span, Byte("directory entry", "name, extra field or comment")
            yield from _fixed("directory entry", entry.span.offset, CENTRAL_FIELDS)
    ends = facts.ends
    for structure, found, fields in (
        ("ZIP64 end record", ends.zip64_end, ZIP64_END_FIELDS),
        ("ZIP64 locator", ends.locator, LOCATOR_FIELDS),
        ("end record", ends.end, END_FIELDS),
    ):
        if found is not None:
            yield from _fixed(structure, found.span.offset, fields)


def _weighty(report: Report) -> Iterator[tuple[Key, str | None]]:
    """Warnings and errors, and their records."""
    for item in report.findings:
        if item.level is not Level.INFO:
            yield Key(item.rule, item.offset, item.length, item.message), item.record


def _holds(key: Key, offset: int) -> bool:
    return key.offset is not None and key.length is not None and key.offset <= offset < key.offset + key.length


def flipped(data: bytes, offset: int, bit: int) -> bytes:
    """The bytes with one bit turned round."""
    changed = bytearray(data)
    changed[offset] ^= 1 << bit
    return bytes(changed)


def audit(data: bytes, name: str, flips: Iterable[tuple[int, int]]) -> Audit:
    """Flip the given (offset, bit) pairs, each alone, and validate."""
    result = Audit()
    owner = fields_of(data)
    intact = {key for key, _ in _weighty(fdd.validate(data, name=name, digests=()))}
    for offset, bit in flips:
        report = fdd.validate(flipped(data, offset, bit), name=name, digests=())
        new = [(key, record) for key, record in _weighty(report) if key not in intact]
        byte = owner[offset]
        if byte.structure == "payload":
            result.payload_flips += 1
            if not any(key.rule == CHECKSUM_RULE and record == byte.record and _holds(key, offset) for key, record in new):
                result.payload_missed.append((offset, bit))
            continue
        result.flips += 1
        finders = {key.rule for key, _ in new if _holds(key, offset)}
        result.found += bool(finders)
        result.found_otherwise += bool(finders - REBUILD_RULES)
        if not finders:
            result.missed[byte] += 1
        if not finders - REBUILD_RULES:
            result.missed_otherwise[byte] += 1
    return result


def all_flips(data: bytes, step: int = 1) -> list[tuple[int, int]]:
    """Every bit, or every ``step``-th one. With a step prime to 8 all bits of a byte have their turn."""
    return [divmod(number, 8) for number in range(0, 8 * len(data), step)]


def other_tools(data: bytes, flips: Iterable[tuple[int, int]]) -> dict[str, str]:
    """How many of the flips each other tool complains about; and whether it has nothing to say of the intact file."""
    flips = list(flips)
    said: dict[str, str] = {}
    for tool, command in (("zipfile.testzip", None), ("unzip -t", ["unzip", "-tqq"]), ("7z t", ["7z", "t", "-bd", "-y"])):
        if command is not None and shutil.which(command[0]) is None:
            said[tool] = "not installed"
            continue
        found = sum(_complains(flipped(data, offset, bit), command) for offset, bit in flips)
        quiet = "" if not _complains(data, command) else " (complains of the intact file too)"
        said[tool] = f"{found} of {len(flips)} flips{quiet}"
    return said


def _complains(data: bytes, command: list[str] | None) -> bool:
    if command is None:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return archive.testzip() is not None
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OSError):
            return True
    with tempfile.NamedTemporaryFile(suffix=".zip") as file:
        file.write(data)
        file.flush()
        return subprocess.run([*command, file.name], capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode != 0


def _percent(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.2f} %)" if whole else "none"


def report_on(path: Path, step: int, sample: int) -> bool:
    """Print the audit of one file; whether everything was found that must be."""
    data = path.read_bytes()
    flips = all_flips(data, step)
    result = audit(data, path.name, flips)
    print(f"{path.name}: {len(data)} bytes")
    print(f"  outside payloads, all rules:            {_percent(result.found, result.flips)} flips found")
    print(f"  outside payloads, without the rebuild:  {_percent(result.found_otherwise, result.flips)} flips found")
    whole = result.payload_flips
    print(f"  inside payloads, {CHECKSUM_RULE} of the record: {_percent(whole - len(result.payload_missed), whole)} flips found")
    for title, missed in (("missed", result.missed), ("missed without the rebuild", result.missed_otherwise)):
        for byte, count in sorted(missed.items()):
            print(f"    {title}: {byte.structure}, {byte.name}: {count} bits")
    for offset, bit in result.payload_missed[:20]:
        print(f"    missed in a payload: offset {offset}, bit {bit}")
    if sample:
        owner = fields_of(data)
        outside = [flip for flip in flips if owner[flip[0]].structure != "payload"]
        chosen = outside[:: max(1, len(outside) // sample)]
        for tool, words in other_tools(data, chosen).items():
            print(f"  {tool}: complains of {words} outside payloads")
    return not result.missed and not result.payload_missed


def main(arguments: list[str] | None = None) -> int:
    """Audit the files; the exit code is 1 where a flip is not found at all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--step", type=int, default=1, help="flip every N-th bit only")
    parser.add_argument("--tools", type=int, default=0, metavar="N", help="show about N flips to other tools too")
    options = parser.parse_args(arguments)
    complete = [report_on(path, options.step, options.tools) for path in options.files]
    return 0 if all(complete) else 1


if __name__ == "__main__":
    sys.exit(main())

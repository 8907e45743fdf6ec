# SPDX-License-Identifier: Apache-2.0
"""Checksum lists of other tools, read as manifests of whole files: sha256sum and kin, BagIt manifests, hashdeep."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fdd.core.errors import UsageError
from fdd.core.payload import read_payload
from fdd.core.source import FileSource
from fdd.fixity.result import Fixity, FixityResult

_GNU_LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9A-Fa-f]{32,128}) [ *]?(?P<path>.+)")
_BSD_LINE = re.compile(r"(?P<algorithm>[A-Za-z0-9-]+) \((?P<path>.+)\) = (?P<digest>[0-9A-Fa-f]{32,128})")
_BAGIT_NAME = re.compile(r"(?:tag)?manifest-(?P<algorithm>[a-z0-9]+)\.txt")
ALGORITHM_OF_LENGTH = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}
"""Hexadecimal digits -> algorithm, where the list does not say."""
HASHDEEP_HEAD = "%%%% HASHDEEP-1.0"


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One line of a list: a path relative to the list's place, its digests, and its size where the list has it."""

    path: str
    digests: tuple[tuple[str, str], ...]
    size: int | None = None


def read_list(path: str) -> list[ListedFile]:
    """Read a list by what it looks like. Raises :class:`UsageError` with the line where it is none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    if lines and lines[0].startswith(HASHDEEP_HEAD):
        return list(_hashdeep(path, lines))
    bagit = _BAGIT_NAME.fullmatch(os.path.basename(path))
    return list(_plain(path, lines, bagit["algorithm"] if bagit is not None else None))


def _plain(path: str, lines: list[str], algorithm: str | None) -> Iterator[ListedFile]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        gnu, bsd = _GNU_LINE.fullmatch(line), _BSD_LINE.fullmatch(line)
        if bsd is not None:
            yield ListedFile(bsd["path"], ((bsd["algorithm"].lower().replace("-", ""), bsd["digest"].lower()),))
        elif gnu is not None:
            name = gnu["path"].lstrip(" ") if algorithm is not None else gnu["path"]
            if gnu["escaped"]:
                name = name.replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\")
            if algorithm is not None:  # BagIt encodes line ends, and the percent sign itself
                name = re.sub("%(0[aAdD]|25)", lambda match: chr(int(match.group(1), 16)), name)
            digest = gnu["digest"].lower()
            found = algorithm or ALGORITHM_OF_LENGTH.get(len(digest))
            if found is None:
                raise UsageError(f"{path}, line {number}: a digest of {len(digest)} digits is of no known algorithm")
            yield ListedFile(name, ((found, digest),))
        else:
            raise UsageError(f"{path}, line {number}: neither a digest and a path nor `ALGORITHM (path) = digest`")


def _hashdeep(path: str, lines: list[str]) -> Iterator[ListedFile]:
    columns: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("%%%%"):
            columns = line[4:].strip().split(",")
        elif line.strip() and not line.startswith("##"):
            values = next(csv.reader([line]))
            if not columns or len(values) < len(columns):
                raise UsageError(f"{path}, line {number}: {len(values)} values for {len(columns)} columns")
            # A file name may hold commas: it is the last column and takes the rest.
            row = dict(zip(columns[:-1], values, strict=False)) | {columns[-1]: ",".join(values[len(columns) - 1 :])}
            digests = tuple((name, row[name].lower()) for name in columns if name not in ("size", "filename"))
            yield ListedFile(row["filename"], digests, int(row["size"]) if row.get("size", "").isdigit() else None)


def verify_listed(listed: ListedFile, root: str) -> FixityResult:
    """Hold one file against its line, at the level of the whole file. Raises SourceError where it cannot be read."""
    path = os.path.join(root, listed.path)
    if not os.path.lexists(path):
        return FixityResult(Fixity.MISSING, listed.path, listed.size or 0, None, "the file is not there")
    with FileSource(path) as source:
        size = source.size
        if listed.size is not None and size != listed.size:
            return FixityResult(Fixity.DAMAGED, listed.path, listed.size, size, f"{size} bytes instead of {listed.size}")
        digests = read_payload(source, (), tuple(name for name, _ in listed.digests))
        source.check_unchanged()
    wrong = [name for name, value in listed.digests if digests[name] != value]
    if wrong:
        return FixityResult(Fixity.DAMAGED, listed.path, size, size, f"the {', '.join(wrong)} digest differs")
    return FixityResult(Fixity.INTACT, listed.path, size, size, f"all {size} bytes are as recorded")

# SPDX-License-Identifier: Apache-2.0
"""Checksum lists of other tools, read as manifests of whole files: sha256sum and kin, BagIt manifests, hashdeep."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from fdd.core.digests import ALGORITHMS, DIGITS
from fdd.core.errors import SourceError
from fdd.core.paths import safe_path
from fdd.core.payload import read_payload
from fdd.core.source import FileSource, is_there
from fdd.fixity.result import Fixity, FixityResult

_GNU_LINE = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9A-Fa-f]{32,}) [ *]?(?P<path>.+)", re.DOTALL)
_BSD_LINE = re.compile(
    r"(?P<escaped>\\?)(?P<algorithm>[A-Za-z0-9-]+) ?\((?P<path>.+)\) ?= (?P<digest>[0-9A-Fa-f]{32,})", re.DOTALL
)
"""As `sha256sum --tag`, `shasum --tag`, the tools of BSD and `openssl dgst` write it."""
_BAGIT_LINE = re.compile(r"(?P<digest>[0-9A-Fa-f]{32,})[ \t]+\*?(?P<path>.+)")
_BAGIT_NAME = re.compile(r"(?:tag)?manifest-(?P<algorithm>[a-z0-9]+)\.txt")
_ALIASES = {"b2": "blake2b", "b3": "blake3", "sha2256": "sha256", "sha2384": "sha384", "sha2512": "sha512"}
_WORD = re.compile(r"[a-z0-9]+")
_OWN_WORDS = re.compile(r"(?:(b2|b3)sums?|(md5|sha1|sha256|sha384|sha512|blake2b|blake3)(?:sums?)?)")
"""Words in the name of a list that tell its algorithm; `b2` and `b3` alone do so as its ending only: models bear them too."""
HASHDEEP_HEAD = "%%%% HASHDEEP-1.0"
_ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}
_PERCENT = re.compile("%(0[aAdD]|25)")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One line of a list: a path relative to the list's place, its digests, and its size where the list has it.

    ``literal`` is the path without decoding, where that is another: not every writer of BagIt encodes the percent sign.
    """

    path: str
    digests: tuple[tuple[str, str], ...]
    size: int | None = None
    literal: str | None = None


def read_list(path: str) -> list[ListedFile]:
    """Read a list by what it looks like. Raises :class:`SourceError` where it cannot be read, with the line where it is none."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    # Windows PowerShell writes UTF-16 where output is redirected.
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16", errors="replace") if wide else data.decode("utf-8-sig", errors="surrogateescape")
    if text.startswith(HASHDEEP_HEAD):
        return list(_hashdeep(path, _lines(text)))
    bagit = _BAGIT_NAME.fullmatch(os.path.basename(path))
    if bagit is not None:
        return list(_bagit(path, re.split(r"\r\n|\r|\n", text), bagit["algorithm"]))
    return list(_sums(path, _lines(text)))


def _lines(text: str) -> list[str]:
    """Names may hold every other character that Python takes for a line end."""
    return [line.removesuffix("\r") for line in text.split("\n")]


def _sums(path: str, lines: list[str]) -> Iterator[ListedFile]:
    """Lines of sha256sum and of BSD, which may stand in one list."""
    likely = _algorithm_in_name(os.path.basename(path).lower())
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _BSD_LINE.fullmatch(line)
        stated = _ALIASES.get(_plain(match["algorithm"]), _plain(match["algorithm"])) if match is not None else None
        match = match or _GNU_LINE.fullmatch(line)
        if match is None:
            raise SourceError(f"{path}, line {number}: neither a digest and a path nor `ALGORITHM (path) = digest`")
        name = re.sub(r"\\[\\nr]", lambda found: _ESCAPES[found.group()], match["path"]) if match["escaped"] else match["path"]
        yield ListedFile(name, (_digest(path, number, match["digest"], stated, likely),))


def _algorithm_in_name(name: str) -> str | None:
    """The algorithm that the name of a list tells: by its ending before all, else by the last word that is one."""
    if name.endswith((".b2", ".b3")):
        return _ALIASES[name[-2:]]
    found = [match for word in _WORD.findall(name) if (match := _OWN_WORDS.fullmatch(word)) is not None]
    told = (found[-1][1] or found[-1][2]) if found else None
    return _ALIASES.get(told, told) if told is not None else None


def _plain(algorithm: str) -> str:
    return algorithm.lower().replace("-", "")


def _digest(path: str, number: int, digits: str, stated: str | None, likely: str | None = None) -> tuple[str, str]:
    """The algorithm of a digest and the digest, by what the list says of it and by its length."""
    if stated is not None and stated not in DIGITS:
        raise SourceError(f"{path}, line {number}: unknown digest {stated}; known: {', '.join(ALGORITHMS)}")
    fitting = [name for name, count in DIGITS.items() if count == len(digits) and stated in (None, name)]
    if not fitting:
        raise SourceError(f"{path}, line {number}: a digest of {len(digits)} digits is of no known algorithm")
    return likely if likely in fitting else fitting[0], digits.lower()


def _bagit(path: str, lines: list[str], algorithm: str) -> Iterator[ListedFile]:
    """A manifest of BagIt (RFC 8493, 2.1.3): line ends in names are encoded, and the percent sign itself."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _BAGIT_LINE.fullmatch(line)
        if match is None:
            raise SourceError(f"{path}, line {number}: not a digest and a path")
        literal = match["path"]
        name = _PERCENT.sub(lambda found: chr(int(found.group(1), 16)), literal)
        digest = _digest(path, number, match["digest"], algorithm)
        yield ListedFile(name, (digest,), literal=literal if literal != name else None)


def _hashdeep(path: str, lines: list[str]) -> Iterator[ListedFile]:
    columns: list[str] = []
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("%%%%"):
            columns = line[4:].strip().split(",")
            if columns[-1] != "filename" or not DIGITS.keys() & set(columns):
                raise SourceError(f"{path}, line {number}: no file name, or no digest that is known, among {', '.join(columns)}")
        elif line.strip() and not line.startswith("##"):
            # A file name may hold commas and quotes, and none is escaped: it is the last column and takes the rest.
            values = line.split(",", len(columns) - 1) if columns else []
            if not columns or len(values) < len(columns):
                raise SourceError(f"{path}, line {number}: {len(values)} values for {len(columns)} columns")
            row = dict(zip(columns, values, strict=True))
            digests = tuple(_digest(path, number, row[name], name) for name in columns if name in DIGITS)
            yield ListedFile(row["filename"], digests, int(row["size"]) if row.get("size", "").isdecimal() else None)


def is_bag_manifest(path: str) -> bool:
    """Whether a list is the manifest of a bag by its name (RFC 8493, 2.1.3): its lines are of the payload."""
    match = _BAGIT_NAME.fullmatch(os.path.basename(path))
    return match is not None and not os.path.basename(path).startswith("tag")


def place_of(listed: ListedFile, root: str) -> str:
    """Where the file of a line is, below ``root``."""
    path = os.path.join(root, listed.path)
    if listed.literal is not None and not os.path.lexists(path):
        return os.path.join(root, listed.literal)
    return path


def verify_listed(listed: ListedFile, root: str) -> FixityResult:
    """Hold a file against its line, at the level of the whole file. Raises SourceError where it cannot be read."""
    path, name = place_of(listed, root), safe_path(listed.path)
    if not is_there(path):
        return FixityResult(Fixity.MISSING, name, listed.size, None, "the file is not there")
    with FileSource(path) as source:
        size = source.size
        if listed.size is not None and size != listed.size:
            return FixityResult(Fixity.DAMAGED, name, listed.size, size, f"{size} bytes instead of {listed.size}")
        digests = read_payload(source, (), tuple(algorithm for algorithm, _ in listed.digests))
        source.check_unchanged()
    wrong = [algorithm for algorithm, value in listed.digests if digests[algorithm] != value]
    if wrong:
        return FixityResult(Fixity.DAMAGED, name, listed.size, size, f"the {', '.join(wrong)} digest differs")
    return FixityResult(Fixity.INTACT, name, listed.size, size, f"all {size} bytes are as recorded")

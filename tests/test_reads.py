# SPDX-License-Identifier: Apache-2.0
"""How often and how much is read at each depth: what the directory says needs no look at the payload."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import fdd
from corpus.build.kit import Global, Storage, Tensor, eager, ordered_dict
from fdd.core.finding import Verdict
from fdd.resources import corpus_dir

LARGE = 101 << 20
STORAGES = 12
CHUNK = 1 << 20


class Read(NamedTuple):
    """One read of the system."""

    offset: int
    length: int


class Reads(list[Read]):
    """All reads of a run."""

    @property
    def bytes(self) -> int:
        return sum(read.length for read in self)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Counts what the system is asked for, below everything that fdd itself counts."""
    log = Reads()
    single, vector = os.pread, os.preadv

    def pread(descriptor: int, length: int, offset: int) -> bytes:
        data = single(descriptor, length, offset)
        log.append(Read(offset, len(data)))
        return data

    def preadv(descriptor: int, buffers: Iterable[Any], offset: int) -> int:
        got = vector(descriptor, buffers, offset)  # type: ignore[arg-type]
        log.append(Read(offset, got))
        return got

    monkeypatch.setattr(os, "pread", pread)
    monkeypatch.setattr(os, "preadv", preadv)
    return log


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid file of a hundred megabytes of zeros, which take no room on the disk."""
    size = LARGE // STORAGES // 4
    storages = [Storage(Global("torch", "FloatStorage"), bytes(4 * size), size) for _ in range(STORAGES)]
    data = memoryview(eager(ordered_dict((f"w{n}", Tensor(s, (size,), (1,))) for n, s in enumerate(storages))))
    path = tmp_path_factory.mktemp("large") / "large.pt"
    nothing = bytes(CHUNK)
    with path.open("wb") as stream:
        for position in range(0, len(data), CHUNK):
            piece = data[position : position + CHUNK]
            if piece == nothing:
                stream.seek(len(piece), os.SEEK_CUR)
            else:
                stream.write(piece)
        stream.truncate(len(data))
    return path


def payload_bytes(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(info.file_size for info in archive.infolist() if "/data/" in info.filename)


DEPTHS = ("directory", "structure", "full")


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_small_file_is_read_once(reads: Reads, depth: str) -> None:
    path = corpus_dir() / "good" / "eager-2.7-state-dict.pth"
    report = fdd.validate(str(path), depth=depth)
    assert reads == [Read(0, path.stat().st_size)]
    assert report.run["bytes_read"] >= reads.bytes


def at_depth(path: Path, depth: str) -> Verdict | None:
    return fdd.validate(str(path), depth=depth).verdict


@pytest.mark.parametrize(
    ("look", "most_reads", "most_bytes"),
    [
        (lambda path: at_depth(path, "directory"), 8, 1 << 20),
        (lambda path: fdd.identify(str(path)), 8, 1 << 20),
        (lambda path: at_depth(path, "structure"), 3 * STORAGES + 8, 1 << 20),
        (lambda path: fdd.extract(str(path)), 3 * STORAGES + 8, 1 << 20),
    ],
    ids=["directory", "identify", "structure", "extract"],
)
def test_a_large_file_is_hardly_read(
    reads: Reads, large: Path, look: Callable[[Path], object], most_reads: int, most_bytes: int
) -> None:
    found = look(large)
    assert found is Verdict.STRUCTURE_VALID or not isinstance(found, Verdict)
    assert 2 <= len(reads) <= most_reads
    assert reads.bytes <= most_bytes


def test_at_full_depth_every_byte_is_read_once(reads: Reads, large: Path) -> None:
    assert large.stat().st_size > 100_000_000
    assert at_depth(large, "full") is Verdict.VALID
    payload = payload_bytes(large)
    assert payload > 100_000_000
    whole = [read for read in reads if read.length == CHUNK]
    assert len({read.offset for read in whole}) == len(whole) == large.stat().st_size // CHUNK
    assert payload <= reads.bytes <= large.stat().st_size + (2 << 20)

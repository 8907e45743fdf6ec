# SPDX-License-Identifier: Apache-2.0
"""Sources: which bytes come, how often the disk is asked for them, and what is said where none can be had."""

from __future__ import annotations

import errno
import gzip
import io
import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdd.core.errors import SourceError
from fdd.core.source import EDGE, WHOLE_FILE, ByteSource, BytesSource, FileSource, SliceSource, open_source
from fdd.core.span import Span

LARGE = WHOLE_FILE + 3 * EDGE


def pattern(size: int) -> bytes:
    """Bytes that tell their place."""
    return b"".join(number.to_bytes(4, "big") for number in range((size + 3) // 4))[:size]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "large.bin"
    path.write_bytes(pattern(LARGE))
    return path


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 4, b"0123"),
        (8, 4, b"89"),
        (10, 1, b""),
        (11, 1, b""),
        (-1, 4, b""),
        (3, 0, b""),
        (3, -1, b""),
        (0, 1 << 70, b"0123456789"),
    ],
)
def test_reads_end_where_the_bytes_end(tmp_path: Path, offset: int, length: int, expected: bytes) -> None:
    path = tmp_path / "ten"
    path.write_bytes(b"0123456789")
    parent = BytesSource(b"--0123456789--")
    with FileSource(path) as file:
        sources: tuple[ByteSource, ...] = (BytesSource(b"0123456789"), file, SliceSource(parent, Span(2, 10)))
        for source in sources:
            assert source.size == 10
            assert source.read_at(offset, length) == expected


def test_slices_of_slices_and_behind_the_end() -> None:
    parent = BytesSource(b"0123456789")
    outer = SliceSource(parent, Span(2, 100))
    inner = SliceSource(outer, Span(3, 2))
    assert (outer.size, inner.size, inner.read_at(0, 9)) == (8, 2, b"56")
    assert SliceSource(parent, Span(50, 5)).size == 0
    assert SliceSource(parent, Span(50, 5)).read_at(0, 5) == b""
    assert b"".join(inner.stream(Span(0, 10), chunk=1)) == b"56"


@given(st.integers(0, 40), st.integers(0, 60), st.integers(1, 9))
def test_streams_give_the_span_in_pieces(offset: int, length: int, chunk: int) -> None:
    data = bytes(range(40))
    pieces = list(BytesSource(data).stream(Span(offset, length), chunk))
    assert b"".join(pieces) == data[offset : offset + length]
    assert all(0 < len(piece) <= chunk for piece in pieces)


def test_a_small_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(pattern(5000))
    with FileSource(path) as source:
        pieces = [source.read_at(offset, 100) for offset in (4900, 0, 17, 4999)]
        assert pieces == [pattern(5000)[offset : offset + 100] for offset in (4900, 0, 17, 4999)]
        assert (source.reads, source.bytes_read) == (1, 5000)


def test_of_a_large_file_head_and_tail_are_kept(large: Path) -> None:
    data = pattern(LARGE)
    with FileSource(large) as source:
        for offset, length in ((0, 30), (EDGE - 4, 4), (LARGE - 22, 22), (LARGE - EDGE, 100), (5, EDGE - 5)):
            assert source.read_at(offset, length) == data[offset : offset + length]
        assert (source.reads, source.bytes_read) == (2, 2 * EDGE)
        middle = LARGE // 2
        for _ in range(2):
            assert source.read_at(middle, 1000) == data[middle : middle + 1000]
        assert (source.reads, source.bytes_read) == (4, 2 * EDGE + 2000)
        assert source.read_at(EDGE - 10, 20) == data[EDGE - 10 : EDGE + 10], "a range over the edge"
        assert b"".join(source.stream(Span(0, LARGE))) == data


def test_files_that_shrink_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "shrinking"
    path.write_bytes(pattern(LARGE))
    with FileSource(path) as source:
        assert source.read_at(0, 4) == pattern(4)
        os.truncate(path, 1000)
        with pytest.raises(SourceError, match="became shorter") as caught:
            source.read_at(WHOLE_FILE, 10)
        assert caught.value.offset == WHOLE_FILE
        with pytest.raises(SourceError, match="became shorter"):
            list(source.stream(Span(0, LARGE)))
        with pytest.raises(SourceError, match="was changed"):
            source.check_unchanged()


@pytest.mark.parametrize("what", ["content", "time", "growth"])
def test_files_that_change_while_they_are_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "changing"
    path.write_bytes(b"a" * 100)
    os.utime(path, ns=(10**9, 10**9))
    with FileSource(path) as source:
        source.read_at(0, 10)
        source.check_unchanged()
        if what == "content":
            path.write_bytes(b"b" * 100)
        elif what == "time":
            os.utime(path, ns=(10**9, 10**9 + 1))
        else:
            with path.open("ab") as stream:
                stream.write(b"c")
            os.utime(path, ns=(10**9, 10**9))
        with pytest.raises(SourceError, match="was changed"):
            source.check_unchanged()


def test_a_file_replaced_under_its_name_is_still_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "replaced"
    path.write_bytes(b"old")
    with FileSource(path) as source:
        (tmp_path / "new").write_bytes(b"newer")
        (tmp_path / "new").replace(path)
        assert source.read_at(0, 10) == b"old"
        source.check_unchanged()


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    # A path of a socket may have 107 bytes only: it is made in a short folder and moved.
    with tempfile.TemporaryDirectory(prefix="fdd") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        os.rename(f"{folder}/s", path)


def make_nothing(path: Path) -> None:
    assert not path.exists()


def make_broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_fifo, r"not a regular file but a named pipe \(FIFO\)"),
        (make_folder, "not a regular file but a directory"),
        (make_socket, "No such device or address"),
        (make_nothing, "No such file"),
        (make_broken_link, "No such file"),
        (make_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_regular_file(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    path = tmp_path / "thing"
    make(path)
    with pytest.raises(SourceError, match=message):
        FileSource(path)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_devices(path: str) -> None:
    if not os.path.exists(path):
        pytest.skip("no such device here")
    with pytest.raises(SourceError, match="not a regular file but a character device"):
        FileSource(path)


@pytest.mark.parametrize("path", ["a\0b", "\udfff\ud800"])
def test_what_can_be_no_path(path: str) -> None:
    with pytest.raises(SourceError, match="not a path"):
        FileSource(path)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    listing = "/proc/self/fd"
    if not os.path.isdir(listing):
        pytest.skip("needs /proc")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    before = len(os.listdir(listing))
    with FileSource(path):
        pass
    with pytest.raises(SourceError):
        FileSource(tmp_path)
    assert len(os.listdir(listing)) == before


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The superuser may read everything, so the refusal of the system is played."""

    def refuse(path: object, flags: int, mode: int = 0) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SourceError, match=r"^Permission denied$"):
        FileSource(tmp_path / "file")


def test_a_fault_of_the_disk_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(pattern(100))

    def fail(descriptor: int, length: int, offset: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fail)
    with FileSource(path) as source, pytest.raises(SourceError, match="read error at offset 0: Input/output error") as caught:
        source.read_at(0, 10)
    assert caught.value.offset == 0


def test_short_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(pattern(100))
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, length, offset: whole(descriptor, min(length, 7), offset))
    with FileSource(path) as source:
        assert source.read_at(0, 100) == pattern(100)
        assert source.reads == 15


def test_file_objects_on_regular_files_are_read_in_place(large: Path) -> None:
    for stream in (large.open("rb"), large.open("rb", buffering=0)):
        with stream:
            source = open_source(stream)
            assert isinstance(source, FileSource)
            assert source.read_at(LARGE - 4, 10) == pattern(LARGE)[-4:]
            source.close()
            assert stream.tell() == 0
            assert stream.read(4) == pattern(4), "the caller's file is still open"
    with tempfile.TemporaryFile() as written:
        written.write(b"not flushed yet")
        written.seek(0)
        spooled = open_source(written)
        assert isinstance(spooled, FileSource)
        assert spooled.read_at(0, 100) == b"not flushed yet"
        spooled.close()


def test_other_file_objects_are_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(gzip.compress(b"inside"))
    with gzip.open(path) as packed:
        assert open_source(packed).read_at(0, 100) == b"inside"  # type: ignore[arg-type]
    assert open_source(io.BytesIO(b"memory")).read_at(0, 100) == b"memory"
    with path.open("rb") as stream:
        stream.seek(2)
        assert open_source(stream).read_at(0, 1) == path.read_bytes()[2:3]
    reader, writer = os.pipe()
    os.write(writer, b"piped")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert open_source(pipe).read_at(0, 100) == b"piped"


def closed_file() -> object:
    stream = io.BytesIO(b"")
    stream.close()
    return stream


class Unreadable:
    """A file object whose device fails."""

    def read(self) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (io.StringIO("text"), "a binary file is needed; this one gives str"),
        (closed_file(), "closed file"),
        (Unreadable(), "Input/output error"),
        (17, "cannot read bytes from a int"),
        (None, "cannot read bytes from a NoneType"),
    ],
    ids=["text", "closed", "failing", "number", "nothing"],
)
def test_what_gives_no_bytes(thing: object, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_source(thing)  # type: ignore[arg-type]


def test_reading_into_a_buffer(large: Path) -> None:
    buffer = memoryview(bytearray(8))
    with FileSource(large) as source:
        assert source.read_into(buffer, 4) == 8
        assert bytes(buffer) == pattern(LARGE)[4:12]
        assert source.read_into(buffer, LARGE) == 0
        assert (source.reads, source.bytes_read) == (2, 8)

# SPDX-License-Identifier: Apache-2.0
"""Where bytes come from. Parsers see only :class:`ByteSource`; a file, a buffer or a slice of another source serves."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

from fdd.core.errors import SourceError
from fdd.core.span import Span

WHOLE_FILE = 1 << 20
"""Files up to this many bytes are read once and kept: one read is cheaper than a dozen small ones."""
EDGE = 1 << 16
"""Bytes of head and tail kept from larger files: they hold the end records and the first headers."""
CHUNK = 1 << 20


class ByteSource(Protocol):
    """Random access to ``size`` bytes.

    Short reads happen only at the end. Every read may raise :class:`SourceError` with the offset that failed.
    """

    size: int
    bytes_read: int
    reads: int

    def read_at(self, offset: int, length: int) -> bytes:
        """Return the bytes of ``[offset, offset + length)`` that exist; empty when the range lies outside."""
        ...

    def stream(self, span: Span, chunk: int = CHUNK) -> Iterator[bytes]:
        """Yield the bytes of ``span`` in pieces of at most ``chunk`` bytes."""
        ...

    def will_read(self, spans: Iterable[Span]) -> None:
        """Announce reads to come, so that a remote source can fetch them in one request. Files ignore it."""
        ...


class _Source:
    """What all sources share: counters, streaming, and the hint that costs nothing."""

    size: int = 0

    def __init__(self) -> None:
        self.bytes_read = 0
        self.reads = 0

    def read_at(self, offset: int, length: int) -> bytes:
        raise NotImplementedError

    def stream(self, span: Span, chunk: int = CHUNK) -> Iterator[bytes]:
        position, end = span.offset, min(span.end, self.size)
        while position < end:
            piece = self.read_at(position, min(chunk, end - position))
            if not piece:
                raise SourceError("the file became shorter while it was read", offset=position)
            yield piece
            position += len(piece)

    def will_read(self, spans: Iterable[Span]) -> None:
        """Nothing to do: reads are local."""


class BytesSource(_Source):
    """A buffer in memory."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        super().__init__()
        self._data = bytes(data)
        self.size = len(self._data)

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length <= 0:
            return b""
        piece = self._data[offset : offset + length]
        self.reads += 1
        self.bytes_read += len(piece)
        return piece


class SliceSource(_Source):
    """A part of another source, seen as a file of its own (a torch file inside a record, one archive of several)."""

    def __init__(self, parent: ByteSource, span: Span) -> None:
        super().__init__()
        self._parent = parent
        self._start = span.offset
        self.size = max(0, min(span.length, parent.size - span.offset))

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        piece = self._parent.read_at(self._start + offset, min(length, self.size - offset))
        self.reads += 1
        self.bytes_read += len(piece)
        return piece


class FileSource(_Source):
    """A regular file, read with positioned reads; a context manager that closes it.

    A file of at most :data:`WHOLE_FILE` bytes is read once and kept; of a larger one its head and tail are kept as
    they are first asked for. :meth:`check_unchanged` tells whether the file was touched since it was opened.
    """

    def __init__(self, path: str | bytes | os.PathLike[str]) -> None:
        super().__init__()
        self.path = os.fspath(path)
        try:
            # O_NONBLOCK: opening a FIFO that nobody writes to must not hang; it has no effect on regular files.
            flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
            self._open(os.open(self.path, flags))
        except OSError as error:
            raise SourceError(error.strerror or str(error)) from error
        except ValueError as error:  # a NUL in it, or characters that no name can hold
            raise SourceError(f"not a path: {error}") from error

    @classmethod
    def of_open_file(cls, descriptor: int) -> FileSource:
        """The regular file that is open as ``descriptor``, which stays the caller's: it is neither moved nor closed."""
        source = cls.__new__(cls)
        _Source.__init__(source)
        source.path = ""
        source._open(os.dup(descriptor))
        return source

    def _open(self, descriptor: int) -> None:
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            raise SourceError(f"not a regular file but {file_type(status.st_mode)}")
        self.size = status.st_size
        self.modified = status.st_mtime
        self._stamp = _stamp(status)
        self._kept: list[tuple[int, bytes]] = []

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; reading afterwards is an error."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_at(self, offset: int, length: int) -> bytes:
        if offset < 0 or length <= 0 or offset >= self.size:
            return b""
        length = min(length, self.size - offset)
        for start, data in self._kept:
            if start <= offset and offset + length <= start + len(data):
                return data[offset - start : offset - start + length]
        if length <= EDGE:
            edge = self._edge(offset, length)
            if edge is not None:
                start, data = edge
                return data[offset - start : offset - start + length]
        return self._pread(offset, length)

    def _edge(self, offset: int, length: int) -> tuple[int, bytes] | None:
        """Read and keep the whole small file, or the head or tail of a large one, if the range lies in it."""
        if self.size <= WHOLE_FILE:
            start, size = 0, self.size
        elif offset + length <= EDGE:
            start, size = 0, EDGE
        elif offset >= self.size - EDGE:
            start, size = self.size - EDGE, EDGE
        else:
            return None
        kept = (start, self._pread(start, size))
        self._kept.append(kept)
        return kept

    def _pread(self, offset: int, length: int) -> bytes:
        pieces: list[bytes] = []
        position, end = offset, offset + length
        while position < end:
            try:
                piece = os.pread(self._descriptor, end - position, position)
            except OSError as error:
                raise SourceError(f"read error at offset {position}: {error.strerror or error}", offset=position) from error
            if not piece:
                raise SourceError("the file became shorter while it was read", offset=position)
            self.reads += 1
            self.bytes_read += len(piece)
            pieces.append(piece)
            position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_into(self, target: memoryview, offset: int) -> int:
        """Fill ``target`` from ``offset`` as far as one read gives bytes, and return their count (0 at the end)."""
        try:
            got = os.preadv(self._descriptor, [target], offset)
        except OSError as error:
            raise SourceError(f"read error at offset {offset}: {error.strerror or error}", offset=offset) from error
        self.reads += 1
        self.bytes_read += got
        return got

    def check_unchanged(self) -> None:
        """Raise :class:`SourceError` if size or time of change of the file differ from when it was opened."""
        if _stamp(os.fstat(self._descriptor)) != self._stamp:
            raise SourceError("the file was changed while it was read")


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to something. Raises :class:`SourceError` where that cannot be told: in a folder that one may not
    enter, or over a broken connection."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        raise SourceError(error.strerror or str(error)) from error
    return True


def file_type(mode: int) -> str:
    """Name a file type for a message: `a directory`, `a named pipe (FIFO)`, ..."""
    names = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe (FIFO)"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
        (stat.S_ISLNK, "a symbolic link"),
    )
    return next((name for test, name in names if test(mode)), "a special file")


def open_source(source: str | bytes | os.PathLike[str] | bytearray | memoryview | BinaryIO) -> ByteSource:
    """Make a source of a path, of bytes, or of a binary file object (read to its end from where it stands).

    ``bytes`` are taken as contents, not as a path. A file object on a regular file, standing at its beginning, is read
    in place and does not move; any other is read into memory. Raises :class:`SourceError` where nothing can be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return BytesSource(source)
    if isinstance(source, (str, os.PathLike)):
        return FileSource(source)
    if not hasattr(source, "read"):
        raise SourceError(f"cannot read bytes from a {type(source).__name__}")
    try:
        if _stands_on_regular_file(source):
            return FileSource.of_open_file(source.fileno())
        data = source.read()
    except OSError as error:
        raise SourceError(error.strerror or str(error)) from error
    except ValueError as error:  # closed, or text that is not in the encoding it was opened with
        raise SourceError(str(error)) from error
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SourceError(f"a binary file is needed; this one gives {type(data).__name__}")
    return BytesSource(data)


def _stands_on_regular_file(file: BinaryIO) -> bool:
    """Whether the bytes of a file object are those of its descriptor: decompressing objects have a descriptor too."""
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO) or not isinstance(file, (io.FileIO, io.BufferedReader, io.BufferedRandom)):
        return False
    file.flush()
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.tell() == 0

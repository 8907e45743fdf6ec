# SPDX-License-Identifier: Apache-2.0
"""Where reports go: standard output, one file, or one file each; written whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import TextIO

from fdd.core.errors import SourceError
from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report import FILE_SUFFIX, Style, Summary, new_writer


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[TextIO]:
    """Write a text file that appears under its name only when it is complete (temporary name, fsync, rename)."""
    folder = os.path.dirname(path) or "."
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".fdd-", dir=folder)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@contextlib.contextmanager
def output_stream(path: str | None) -> Iterator[TextIO]:
    """The stream for the results: the file, or standard output in UTF-8 whatever the locale."""
    if path is not None:
        with whole_file(path) as stream:
            yield stream
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    yield sys.stdout
    sys.stdout.flush()


class FilePerReport:
    """One file a report in a folder, named by the percent-encoded relative path."""

    def __init__(self, folder: str, form: str, style: Style) -> None:
        self._folder = folder
        self._form = form
        self._style = style
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise SourceError(f"{folder}: {error.strerror or error}") from error

    def write(self, report: Report, relative: str) -> str:
        """Write one report and return the path of its file."""
        path = os.path.join(self._folder, encoded_name(relative) + FILE_SUFFIX[self._form])
        with whole_file(path) as stream:
            writer = new_writer(self._form, stream, self._style)
            summary = Summary()
            writer.begin()
            writer.write(report)
            summary.add(report)
            writer.end(summary)
        return path


def encoded_name(relative: str) -> str:
    """A relative path as one file name: everything but letters, digits, dot, dash and underscore percent-encoded.

    Names that would be too long for a file system keep their beginning and get a digest of the whole.
    """
    name = percent_encode(os.fsencode(relative), safe=b"._-")
    if len(name) <= 200:
        return name
    import hashlib

    return f"{name[:150]}-{hashlib.sha256(os.fsencode(relative)).hexdigest()[:32]}"

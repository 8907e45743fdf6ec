# SPDX-License-Identifier: Apache-2.0
"""Where reports go: standard output, one file, or one file each; written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TextIO

from fdd.core.errors import SourceError, UsageError
from fdd.core.paths import Entry
from fdd.core.report import Report
from fdd.core.text import percent_encode
from fdd.report import FILE_SUFFIX, Style, Summary, new_writer

STDIN = "-"
"""The PATH that stands for standard input."""
TEMPORARY_PREFIX = ".fdd-"
TEMPORARY_SUFFIX = ".part"


@contextlib.contextmanager
def whole_file(path: str, errors: str = "strict") -> Iterator[TextIO]:
    """Write a text file in UTF-8 that appears under its name only when it is complete (temporary name, fsync, rename).
    ``errors`` as in :func:`open`.

    A file that was there stays as it is until then, and passes on its permissions. A link is kept and its target is
    replaced. A device or pipe cannot be replaced and is written to.
    """
    try:
        before = os.stat(path)
    except (OSError, ValueError):
        before = None
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise SourceError(f"{path}: cannot be written: it is a folder")
    if before is not None and not stat.S_ISREG(before.st_mode):
        with _writing(path):
            direct = open(path, "w", encoding="utf-8", errors=errors, newline="\n")  # noqa: SIM115  (closed below)
        with _filling(path), direct as stream:
            yield stream
        return
    import tempfile  # costs more than a small file, and most runs write to standard output

    with _writing(path):
        target = os.path.realpath(path)
        descriptor, temporary = tempfile.mkstemp(TEMPORARY_SUFFIX, TEMPORARY_PREFIX, os.path.dirname(target))
    try:
        # A disk may become full at any time, and tells it late.
        with _filling(path), os.fdopen(descriptor, "w", encoding="utf-8", errors=errors, newline="\n") as stream:
            yield stream
            with _writing(path):
                stream.flush()
                os.fsync(stream.fileno())
        with _writing(path):
            os.chmod(temporary, stat.S_IMODE(before.st_mode) if before is not None else 0o666 & ~_umask())
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _filling(path: str) -> Iterator[None]:
    """Name the file whose disk is full; faults that name a file are of others, which were opened meanwhile."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise SourceError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Name the file that could not be written."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: cannot be written: {getattr(error, 'strerror', None) or error}") from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


@contextlib.contextmanager
def output_stream(path: str | None, errors: str | None = None) -> Iterator[TextIO]:
    """The stream for the results: the file, or standard output in UTF-8 whatever the locale. ``errors`` as in :func:`open`."""
    if path is not None:
        with whole_file(path, errors or "strict") as stream:
            yield stream
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors=errors or "backslashreplace", newline="\n")
    yield sys.stdout
    sys.stdout.flush()


def check_not_read(path: str | None, inputs: Iterable[str]) -> None:
    """Make sure that output does not take the place of what is read, or of any model. Raises :class:`UsageError`.

    ``inputs`` are the paths as given. In folders among them, and where a model lies, only what fdd wrote is written over.
    """
    if path is None or not os.path.isfile(path):
        return
    in_folder = False
    for given in inputs:
        with contextlib.suppress(OSError, ValueError):
            if os.path.samefile(path, given):
                raise UsageError(f"{path} is read: it cannot be written over in the same run")
            in_folder = in_folder or (os.path.isdir(given) and is_below(path, given))
    if in_folder and not is_own_output(path):
        raise UsageError(f"{path} lies in a folder that is read, and is no report of fdd: it is not written over")
    from fdd import api

    with contextlib.suppress(SourceError):
        found = api.identify(path)
        if found.kind not in _NO_MODELS:
            raise UsageError(f"{path} is there and is no report but a file of kind {found.kind}: it is not written over")


_NO_MODELS = frozenset({"text", "json", "xml", "html", "empty", "zeros", "unknown", "python-path"})
_OWN_OUTPUT = re.compile(
    r'\s*\{\s*"(?:report_version|reports|sets?|summary|manifest_version|results?|result_version|comparison_version|path|fixity'
    r'|resources)"'
    r"|<\?xml[^>]*>\s*<(?:\w+:)?(?:report|reports|premis|mets|fits)\b|path,|[0-9a-f]{64}  |%%%% HASHDEEP"
    r"|(?:valid|well-formed|not-|structure-valid|undetermined|cannot be read|nothing|intact|damaged|truncated|extended|shifted"
    r"|repackaged|replaced|missing|unreadable|unrecorded|same|different|[a-z0-9-]+  )"
)
"""How everything that fdd writes begins, form by form."""


def is_own_output(path: str) -> bool:
    """Whether a file begins as those do that fdd writes; an empty one may have been made for it."""
    try:
        with open(path, encoding="utf-8") as stream:
            head = stream.read(1024)
    except (OSError, UnicodeDecodeError):
        return False
    return not head or _OWN_OUTPUT.match(head) is not None


def is_below(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, at whatever depth."""
    inner, outer = (os.path.normcase(os.path.realpath(each)) for each in (path, folder))
    return inner.startswith(os.path.join(outer, ""))


def make_folder(path: str) -> None:
    """Make a folder for output, with those above it. Raises :class:`SourceError` where that cannot be."""
    with _writing(path):
        os.makedirs(path, exist_ok=True)


class FileNames:
    """Names of the files for one report or manifest each: the percent-encoded relative path.

    A path that comes twice gets `~2`, `~3`, ... behind it, which the encoding of no other path can end in.
    """

    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def new(self, relative: str) -> str:
        """The name for a path, without ending."""
        name = encoded_name(relative)
        times = self._times[name] = self._times.get(name, 0) + 1
        return name if times == 1 else f"{name}~{times}"


class FilePerReport:
    """One file a report in a folder, named by the percent-encoded relative path."""

    def __init__(self, folder: str, form: str, style: Style) -> None:
        self._folder = folder
        self._form = form
        self._style = replace(style, single=True)
        self._names = FileNames()
        make_folder(folder)

    def write(self, report: Report, relative: str) -> str:
        """Write one report and return the path of its file."""
        path = os.path.join(self._folder, self._names.new(relative) + FILE_SUFFIX[self._form])
        if os.path.isfile(path) and not is_own_output(path):
            raise SourceError(f"{path}: is there and is no report of fdd: it is not written over")
        with whole_file(path) as stream:
            writer = new_writer(self._form, stream, self._style)
            summary = Summary()
            writer.begin()
            writer.write(report)
            summary.add(report)
            writer.end(summary)
        return path


def relative_path(entry: Entry) -> str:
    """The path of a file below the folder that relative paths start from."""
    return "stdin" if entry.path == STDIN else entry.relative


def encoded_name(relative: str) -> str:
    """A relative path as one file name: everything but letters, digits, dot, dash and underscore percent-encoded.

    Names that would be too long for a file system keep their beginning and get a digest of the whole.
    """
    name = percent_encode(os.fsencode(relative), safe=b"._-")
    if len(name) <= 200:
        return name
    return f"{name[:150]}-{hashlib.sha256(os.fsencode(relative)).hexdigest()[:32]}"

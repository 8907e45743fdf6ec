# SPDX-License-Identifier: Apache-2.0
"""The options that commands share, and the way from them to files and writers."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from fdd.api import NEIGHBOUR_SUFFIX
from fdd.cli.exits import FAIL_ON
from fdd.cli.output import STDIN, TEMPORARY_PREFIX, TEMPORARY_SUFFIX, check_not_read, is_own_output
from fdd.core.errors import SourceError, UsageError
from fdd.core.paths import Entry, common_folder, expand
from fdd.report import WRITERS

if TYPE_CHECKING:
    from fdd.policy.judging import Demand


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are usage errors like all others."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def new_parser(command: str, description: str) -> Parser:
    """The parser of a command, abbreviations of options switched off: scripts must not break when options are added."""
    return Parser(prog=f"fdd {command}", description=description, allow_abbrev=False)


def add_paths(parser: argparse.ArgumentParser) -> None:
    """PATH..., and how to come by more of them."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="file or folder; - is standard input")
    parser.add_argument("--files-from", metavar="FILE", help="read paths from FILE, one a line (- is standard input)")
    parser.add_argument("--null", action="store_true", help="paths in --files-from end with NUL instead of newline")
    parser.add_argument("--follow-links", action="store_true", help="follow symbolic links inside folders")
    parser.add_argument("--name", metavar="ORIGINAL", help="the file's own name, where the path has lost it")
    parser.add_argument("--as", dest="as_format", metavar="FORMAT", help="judge by this format only")


def add_output(parser: Parser, forms: Sequence[str] = tuple(WRITERS)) -> None:
    """Form and place of the output."""
    parser.add_argument("--format", choices=forms, default="text", help="form of the output (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--output-dir", metavar="DIR", help="write one file a report into DIR")
    parser.add_argument("--verbose", action="store_true", help="list passed rules and everything else too")
    parser.add_argument("--brief", action="store_true", help="leave out long lists (records, tensors)")
    parser.add_argument("--quiet", action="store_true", help="no progress and no log on standard error")
    parser.add_argument(
        "--jobs", type=jobs_argument, default=1, metavar="N", help="number of processes (default: 1; 0: one a core)"
    )
    parser.add_argument("--order", choices=("given", "done"), default="given", help="order of the reports (default: given)")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 instead of 1")
    add_form_options(parser)


def add_form_options(parser: argparse.ArgumentParser) -> None:
    """Options of single forms of output."""
    parser.add_argument("--csv-records", action="store_true", help="csv: a row a record instead of a row a file")
    premis = add_premis_options(parser)
    premis.add_argument(
        "--premis-bitstreams", choices=("auto", "none", "storages", "all"), default="auto", help="records as objects"
    )
    premis.add_argument("--premis-events", metavar="TYPES", help="event types to write, comma-separated (default: all four)")
    premis.add_argument("--premis-links", choices=("file", "all"), default="file", help="what events are linked to")
    premis.add_argument("--premis-puid", action="store_true", help="name the ZIP container as a format too")
    premis.add_argument("--mets-references", metavar="DIR", help="METS: PREMIS as files in DIR, referred to (E-ARK)")
    premis.add_argument("--created", metavar="DATE", help="when the file was made, if you know it")


def add_premis_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Options of every PREMIS document, also of one on fixity checks. Returns the group for more of them."""
    premis = parser.add_argument_group("PREMIS and METS")
    premis.add_argument("--premis-outcomes", choices=("loc", "archivematica"), default="loc", help="vocabulary of outcomes")
    premis.add_argument(
        "--premis-identifiers", choices=("uuid5", "uuid4"), default="uuid5", help="repeatable or fresh identifiers"
    )
    premis.add_argument("--premis-root", metavar="DIR", default="", help="original names are the paths below DIR")
    premis.add_argument("--premis-prefix", metavar="TEXT", default="", help="in front of original names, such as objects/")
    return premis


def add_judgement(parser: Parser) -> None:
    """What makes a run fail."""
    parser.add_argument(
        "--fail-on", choices=FAIL_ON, default="dangerous", help="what else makes exit code 1 (default: dangerous)"
    )


def add_demands(parser: argparse.ArgumentParser) -> None:
    """Profiles and policies to judge by."""
    parser.add_argument(
        "--profile",
        action="append",
        default=[],
        metavar="P",
        help="judge by this profile too: a name or a .toml file (repeatable)",
    )
    parser.add_argument(
        "--policy", action="append", default=[], metavar="S.sch", help="judge by this Schematron policy too (repeatable)"
    )


def demands_of(arguments: argparse.Namespace) -> tuple[Demand, ...]:
    """The profiles and policies that were named, loaded. Raises :class:`UsageError` with all their faults."""
    if not arguments.profile and not arguments.policy:
        return ()
    from fdd.api import load_demands
    from fdd.policy.judging import POLICY_SUFFIX

    for name in arguments.policy:
        if not name.endswith(POLICY_SUFFIX):
            raise UsageError(f"--policy takes a file that ends in {POLICY_SUFFIX}, not {name!r}")
    return load_demands([*arguments.profile, *arguments.policy])


def jobs_argument(text: str) -> int:
    from fdd.core.parallel import default_jobs

    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number or default_jobs()


def entries(arguments: argparse.Namespace, suffix: str) -> Iterator[Entry]:
    """The files to look at, in the order given; the list of paths is read, the folders are not yet. ``suffix`` is that of the
    files this run writes into ``--output-dir``.

    Raises :class:`UsageError` where the request cannot be meant, :class:`SourceError` where the list cannot be read.
    """
    if not arguments.paths and arguments.files_from is None:
        raise UsageError("no PATH given")
    if arguments.paths.count(STDIN) + (arguments.files_from == STDIN) > 1:
        raise UsageError("standard input can be read only once")
    if arguments.output is not None and arguments.output_dir is not None:
        raise UsageError("--output and --output-dir exclude each other")
    if arguments.name is not None and not is_single(arguments):
        raise UsageError("--name is the name of one file: give one PATH")
    listed = _paths_from(arguments.files_from, null=arguments.null) if arguments.files_from is not None else []
    paths = [*arguments.paths, *listed]
    lists = [arguments.files_from] if arguments.files_from is not None else []
    check_not_read(arguments.output, [*paths, *(path + NEIGHBOUR_SUFFIX for path in paths), *lists])
    base = common_folder([path for path in paths if path != STDIN])
    found = expand(paths, follow_links=arguments.follow_links)
    return _without_output((replace(entry, base=base) for entry in found) if base is not None else found, arguments, suffix)


def _paths_from(file: str, *, null: bool) -> list[str]:
    try:
        with open(0 if file == STDIN else file, "rb", closefd=file != STDIN) as stream:
            data = stream.read()
    except (OSError, ValueError) as error:
        raise SourceError(f"{file}: {getattr(error, 'strerror', None) or error}") from error
    lines = data.split(b"\0") if null else [line.removesuffix(b"\r") for line in data.split(b"\n")]
    paths = [os.fsdecode(line) for line in lines if line]
    # In a list `-` is a file of that name: standard input is given as PATH.
    return [os.path.join(os.curdir, path) if path == STDIN else path for path in paths]


def _without_output(found: Iterator[Entry], arguments: argparse.Namespace, suffix: str) -> Iterator[Entry]:
    """Skip in folders what this run itself writes there, so that the same run twice sees the same files."""
    is_output = _output_test(arguments, suffix)
    for entry in found:
        if entry.root is not None and entry.skipped is None and is_output(entry.path):
            yield replace(entry, skipped="output of fdd")
        else:
            yield entry


def _output_test(arguments: argparse.Namespace, suffix: str) -> Callable[[str], bool]:
    file = os.path.abspath(arguments.output) if arguments.output is not None else None
    folder = os.path.abspath(arguments.output_dir) if arguments.output_dir is not None else None

    def is_output(path: str) -> bool:
        name = os.path.basename(path)
        if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
            return True
        if file is None and folder is None:
            return False
        absolute = os.path.abspath(path)
        return absolute == file or (name.endswith(suffix) and os.path.dirname(absolute) == folder and is_own_output(path))

    return is_output


def jobs_for(arguments: argparse.Namespace) -> int:
    """The number of processes: standard input can be read in this one only."""
    jobs: int = arguments.jobs
    return 1 if STDIN in arguments.paths else jobs


def is_single(arguments: argparse.Namespace) -> bool:
    """Whether exactly one PATH that is a file was given, so that JSON is the report itself."""
    return len(arguments.paths) == 1 and arguments.files_from is None and not os.path.isdir(arguments.paths[0])


@contextlib.contextmanager
def spooled_stdin(limit: int) -> Iterator[BinaryIO]:
    """The bytes on standard input, in a temporary file that has no name. Raises :class:`SourceError` above ``limit``."""
    import tempfile

    with tempfile.TemporaryFile() as spool:
        try:
            while chunk := sys.stdin.buffer.read(1 << 20):
                spool.write(chunk)
                if spool.tell() > limit:
                    raise SourceError(f"standard input holds more than {limit} bytes")
            spool.seek(0)
        except OSError as error:
            raise SourceError(f"standard input cannot be read and kept: {error.strerror or error}") from error
        yield spool

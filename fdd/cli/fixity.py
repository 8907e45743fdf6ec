# SPDX-License-Identifier: Apache-2.0
"""`fdd fixity create`, `verify` and `export`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fdd.api import internal_error_text
from fdd.cli.exits import Exit
from fdd.cli.fixity_verify import add_verify, run_verify
from fdd.cli.manifests import MANIFEST_SUFFIX, load_manifest, now
from fdd.cli.options import (
    Parser,
    add_paths,
    entries,
    is_single,
    jobs_argument,
    jobs_for,
    new_parser,
    spooled_stdin,
)
from fdd.cli.output import STDIN, FileNames, check_not_read, make_folder, output_stream, relative_path, whole_file
from fdd.core.digests import check_algorithms
from fdd.core.errors import SourceError, UsageError
from fdd.core.parallel import LOST, in_order
from fdd.core.paths import Entry, expand
from fdd.core.text import printable
from fdd.fixity.create import create
from fdd.fixity.exports import EXPORTS
from fdd.fixity.manifest import Manifest
from fdd.limits import Limits


def run(argv: Sequence[str]) -> Exit:
    """Dispatch to the action."""
    parser = new_parser("fixity", "Record every byte of files, and say later what changed and which tensor it hurts.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|verify|export", parser_class=Parser)
    _add_create(actions.add_parser("create", allow_abbrev=False, help="make manifests"))
    add_verify(actions.add_parser("verify", allow_abbrev=False, help="hold files against manifests or checksum lists"))
    _add_export(actions.add_parser("export", allow_abbrev=False, help="write manifests in the form of another tool"))
    arguments = parser.parse_args(argv)
    action = {"create": _create, "verify": run_verify, "export": _export}[arguments.action]
    return action(arguments)


def _add_create(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--output-dir", metavar="DIR", help="write one manifest a file into DIR")
    parser.add_argument("--output", metavar="FILE", help="write the manifest of a single file to FILE")
    parser.add_argument(
        "--digest", default="sha256", metavar="NAMES", help="digests, comma-separated; the first one for the parts too"
    )
    parser.add_argument("--content", action="store_true", help="digests of what each tensor holds too, whatever the container")
    parser.add_argument("--created", metavar="TIME", help="time of making to write down (`now` or ISO 8601); none by default")
    parser.add_argument("--replace", action="store_true", help="write over manifests that say otherwise")
    parser.add_argument("--jobs", type=jobs_argument, default=1, metavar="N", help="number of processes (0: one a core)")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifests", nargs="+", metavar="MANIFEST", help="manifests, or folders of them")
    parser.add_argument("--to", choices=tuple(EXPORTS), required=True)
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")


def _create(arguments: argparse.Namespace) -> Exit:
    algorithms = check_algorithms(name.strip() for name in arguments.digest.split(",") if name.strip())
    if not algorithms:
        raise UsageError("--digest names no algorithm")
    created = _moment(arguments.created)
    if arguments.output_dir is None and not is_single(arguments):
        raise UsageError("several files need --output-dir")
    found = entries(arguments, MANIFEST_SUFFIX)
    if arguments.output_dir is not None:
        make_folder(arguments.output_dir)
    step = partial(_record, _Wanted(algorithms, created, arguments.name, arguments.content, arguments.replace))
    places = _places(found, arguments.output_dir, arguments.output)
    code, count = Exit.GOOD, 0
    for path, manifest, problem, wrong in in_order(step, places, jobs_for(arguments), lost=_lost):
        count += 1
        if problem is not None:
            print(f"fdd fixity create: {printable(path, 4096)}: {printable(problem, 2000)}", file=sys.stderr)
            code = max(code, wrong)
        elif arguments.output_dir is None and manifest:
            with output_stream(arguments.output) as stream:
                stream.write(manifest)
    if not count:
        print("fdd fixity create: nothing to do", file=sys.stderr)
        return Exit.UNDECIDED
    return code


def _moment(text: str | None) -> str | None:
    """The time to write down. Raises UsageError where it is none."""
    if text is None or text == "now":
        return now() if text is not None else None
    from datetime import datetime

    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--created is `now` or a time in ISO 8601, such as 2026-11-29T12:00:00Z, not {text!r}") from None
    return text


@dataclass(frozen=True, slots=True)
class _Place:
    """One file to record: its path in the collection, where the manifest goes (``target``; None: handed back), and where one
    may be already that must not be lost."""

    entry: Entry
    relative: str
    target: str | None
    there: str | None


def _places(found: Iterator[Entry], folder: str | None, output: str | None) -> Iterator[_Place]:
    names = FileNames()
    for entry in found:
        if entry.skipped is None:
            relative = relative_path(entry)
            target = os.path.join(folder, names.new(relative) + MANIFEST_SUFFIX) if folder is not None else None
            yield _Place(entry, relative, target, target if target is not None else output)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the manifests are to hold."""

    algorithms: tuple[str, ...]
    created: str | None
    name: str | None
    content: bool
    replace: bool


def _record(wanted: _Wanted, place: _Place) -> tuple[str, str, str | None, Exit]:
    """Make one manifest and write it, or hand its text back. Third comes what went wrong, fourth how bad that is."""
    path = place.entry.path
    if place.entry.problem is not None:
        return path, "", place.entry.problem, Exit.UNDECIDED
    try:
        manifest = _manifest(wanted, place)
        kept = _kept(place.there, manifest) if place.there is not None and not wanted.replace else None
        if kept is not None:
            return path, "", *kept
        if place.target is None:
            return path, manifest.to_json(), None, Exit.GOOD
        with whole_file(place.target) as stream:
            stream.write(manifest.to_json())
    except SourceError as error:
        return path, "", str(error), Exit.UNDECIDED
    except Exception as error:  # noqa: BLE001  (a fault of fdd: told for this file, the others go on)
        return path, "", internal_error_text(error), Exit.INTERNAL
    return path, "", None, Exit.GOOD


def _lost(place: _Place) -> tuple[str, str, str | None, Exit]:
    return place.entry.path, "", LOST, Exit.UNDECIDED


def _kept(target: str, manifest: Manifest) -> tuple[str, Exit] | None:
    """Why what is at the target stays, and how bad that is: recording again would make damage what ought to be, and must
    not forget what was recorded. None where nothing is lost."""
    if not os.path.isfile(target):
        return None
    try:
        there = load_manifest(target)
    except SourceError:
        return f"{target} is no manifest of this file: --replace writes over it", Exit.BAD
    common = there.digests.keys() & manifest.digests.keys()
    if any(there.digests[name] != manifest.digests[name] for name in common) or there.size != manifest.size:
        return f"{target} says otherwise: `fdd fixity verify` tells what changed, --replace records anew", Exit.BAD
    if there.digests.keys() - manifest.digests.keys() or (there.content_digest is not None and manifest.content_digest is None):
        return f"{target} holds more than would be recorded now: it is kept; --replace records anew", Exit.GOOD
    return None


def _manifest(wanted: _Wanted, place: _Place) -> Manifest:
    relative = place.relative.replace(os.sep, "/")
    options: dict[str, Any] = {"name": wanted.name, "digests": wanted.algorithms, "created": wanted.created}
    options["content"] = wanted.content
    if place.entry.path != STDIN:
        manifest = create(place.entry.path, path=relative, **options)
    else:
        with spooled_stdin(Limits().stdin_bytes) as source:
            manifest = create(source, **options)
    if wanted.content and manifest.content_digest is None:
        path = printable(place.entry.path, 4096)
        print(f"fdd fixity create: {path}: no content digest: some tensors, or all, cannot be read", file=sys.stderr)
    return manifest


def _export(arguments: argparse.Namespace) -> Exit:
    found = [
        entry
        for entry in expand(arguments.manifests)
        if entry.root is None or entry.path.endswith(MANIFEST_SUFFIX) or entry.problem
    ]
    problem = next((entry for entry in found if entry.problem is not None), None)
    if problem is not None:
        raise SourceError(f"{problem.path}: {problem.problem}")
    paths = [entry.path for entry in found]
    if not paths:
        raise UsageError("no manifest there")
    check_not_read(arguments.output, paths)
    text = EXPORTS[arguments.to]([load_manifest(path) for path in paths])
    # Names that are no text stand in the lists as the bytes they are.
    with output_stream(arguments.output, "surrogateescape") as stream:
        stream.write(text)
    return Exit.GOOD

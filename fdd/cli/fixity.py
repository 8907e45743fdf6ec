# SPDX-License-Identifier: Apache-2.0
"""`fdd fixity create`, `verify` and `export`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

from fdd.api import internal_error_text
from fdd.cli.exits import Exit
from fdd.cli.options import (
    Parser,
    add_paths,
    add_premis_options,
    entries,
    is_single,
    jobs_argument,
    jobs_for,
    new_parser,
    spooled_stdin,
)
from fdd.cli.output import STDIN, FileNames, make_folder, output_stream, relative_path, whole_file
from fdd.core.digests import check_algorithms
from fdd.core.errors import SourceError, UsageError
from fdd.core.parallel import in_order
from fdd.core.paths import Entry, expand, safe_path
from fdd.core.text import json_text, printable
from fdd.fixity.create import create
from fdd.fixity.exports import EXPORTS
from fdd.fixity.lists import ListedFile, read_list, verify_listed
from fdd.fixity.manifest import Manifest
from fdd.fixity.result import Fixity, FixityResult
from fdd.fixity.verify import verify
from fdd.limits import Limits

MANIFEST_SUFFIX = ".fixity.json"


def run(argv: Sequence[str]) -> Exit:
    """Dispatch to the action."""
    parser = new_parser("fixity", "Record every byte of files, and say later what changed and which tensor it hurts.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="create|verify|export", parser_class=Parser)
    _add_create(actions.add_parser("create", allow_abbrev=False, help="make manifests"))
    _add_verify(actions.add_parser("verify", allow_abbrev=False, help="hold files against manifests or checksum lists"))
    _add_export(actions.add_parser("export", allow_abbrev=False, help="write manifests in the form of another tool"))
    arguments = parser.parse_args(argv)
    action = {"create": _create, "verify": _verify, "export": _export}[arguments.action]
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
    parser.add_argument("--jobs", type=jobs_argument, default=1, metavar="N", help="number of processes (0: one a core)")


def _add_verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", metavar="MANIFEST|DIR", help="a manifest, a folder of manifests, or a checksum list")
    parser.add_argument("root", nargs="?", metavar="ROOT", help="the file, or the folder the paths start from")
    parser.add_argument("--format", choices=("text", "json", "jsonl", "premis"), default="text")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--jobs", type=jobs_argument, default=1, metavar="N", help="number of processes (0: one a core)")
    add_premis_options(parser)


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
    found = entries(arguments)
    if arguments.output_dir is not None:
        make_folder(arguments.output_dir)
    step = partial(_record, _Wanted(algorithms, created, arguments.name, arguments.content))
    code, count = Exit.GOOD, 0
    for path, manifest, problem, wrong in in_order(step, _places(found, arguments.output_dir), jobs_for(arguments)):
        count += 1
        if problem is not None:
            print(f"fdd fixity create: {printable(path, 4096)}: {printable(problem, 2000)}", file=sys.stderr)
            code = max(code, wrong)
        elif arguments.output_dir is None:
            with output_stream(arguments.output) as stream:
                stream.write(manifest)
    if not count:
        print("fdd fixity create: nothing to do", file=sys.stderr)
        return Exit.UNDECIDED
    return code


def _moment(text: str | None) -> str | None:
    return _now() if text == "now" else text


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class _Place:
    """One file to record: its path in the collection, and where the manifest goes (None: handed back)."""

    entry: Entry
    relative: str
    target: str | None


def _places(found: Iterator[Entry], folder: str | None) -> Iterator[_Place]:
    names = FileNames()
    for entry in found:
        if entry.skipped is None:
            relative = relative_path(entry)
            target = os.path.join(folder, names.new(relative) + MANIFEST_SUFFIX) if folder is not None else None
            yield _Place(entry, relative, target)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the manifests are to hold."""

    algorithms: tuple[str, ...]
    created: str | None
    name: str | None
    content: bool


def _record(wanted: _Wanted, place: _Place) -> tuple[str, str, str | None, Exit]:
    """Make one manifest and write it, or hand its text back. Third comes what went wrong, fourth how bad that is."""
    path = place.entry.path
    if place.entry.problem is not None:
        return path, "", place.entry.problem, Exit.UNDECIDED
    try:
        text = _manifest(wanted, place).to_json()
        if place.target is None:
            return path, text, None, Exit.GOOD
        with whole_file(place.target) as stream:
            stream.write(text)
    except SourceError as error:
        return path, "", str(error), Exit.UNDECIDED
    except Exception as error:  # noqa: BLE001  (a fault of fdd: told for this file, the others go on)
        return path, "", internal_error_text(error), Exit.INTERNAL
    return path, "", None, Exit.GOOD


def _manifest(wanted: _Wanted, place: _Place) -> Manifest:
    relative = safe_path(place.relative).replace(os.sep, "/")
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


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to verify: by a manifest file or by a line of a list."""

    manifest_path: str | None
    listed: ListedFile | None
    root: str | None


@dataclass(frozen=True, slots=True)
class _Checked:
    """What became of a task: ``problem`` says why the file or the manifest could not be read. ``recorded`` is what is on
    record of the file, if that could be read; ``moment`` when the check began."""

    result: FixityResult
    problem: str | None
    recorded: Manifest | ListedFile | None
    moment: str

    @property
    def code(self) -> Exit:
        """What it asks for."""
        return Exit.UNDECIDED if self.problem is not None else Exit.GOOD if self.result.intact else Exit.BAD


def _verify(arguments: argparse.Namespace) -> Exit:
    tasks = list(_tasks(arguments.manifest, arguments.root))
    if not tasks:
        print("fdd fixity verify: nothing to do: no manifest there", file=sys.stderr)
        return Exit.UNDECIDED
    checks = in_order(_verify_one, tasks, arguments.jobs)
    write = _write_premis if arguments.format == "premis" else _write_results
    with output_stream(arguments.output) as stream:
        return write(stream, checks, arguments)


def _write_premis(stream: TextIO, checks: Iterator[_Checked], arguments: argparse.Namespace) -> Exit:
    """One document with an event a file. What is not even on record can have none: it is told on standard error."""
    from fdd.report.premis_fixity import FixityCheck, FixityWriter, Recorded

    code = Exit.GOOD
    writer = FixityWriter(stream, vars(arguments))
    writer.begin()
    for check in checks:
        code = max(code, check.code)
        if check.recorded is None:
            print(f"fdd fixity verify: {printable(check.problem or '', 4096)}", file=sys.stderr)
            continue
        if isinstance(check.recorded, Manifest):
            recorded = Recorded.of_manifest(check.recorded)
        else:
            recorded = Recorded.of_listed(check.recorded, os.path.basename(arguments.manifest))
        writer.write(FixityCheck(recorded, check.result, check.moment, check.problem))
    writer.end()
    return code


def _write_results(stream: TextIO, checks: Iterator[_Checked], arguments: argparse.Namespace) -> Exit:
    counts: dict[str, int] = {}
    code = Exit.GOOD
    rows: list[dict[str, object]] = []
    for check in checks:
        word = check.result.verdict.value if check.problem is None else "cannot be read"
        counts[word] = counts.get(word, 0) + 1
        code = max(code, check.code)
        row = check.result.to_dict() | ({"error": check.problem} if check.problem is not None else {})
        if arguments.format == "jsonl":
            stream.write(json_text(row) + "\n")
        elif arguments.format == "json":
            rows.append(row)
        else:
            stream.writelines(line + "\n" for line in _text(check.result, check.problem))
    files = sum(counts.values())
    summary = {"files": files, "verdicts": dict(sorted(counts.items()))}
    if arguments.format == "json":
        document = rows[0] if len(rows) == 1 else {"results": rows, "summary": summary}
        stream.write(json_text(document, indent=2) + "\n")
    elif arguments.format == "text" and files > 1:
        stream.write(f"{files} files: {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}\n")
    return code


def _tasks(manifest: str, root: str | None) -> Iterator[_Task]:
    if os.path.isdir(manifest):
        for entry in expand([manifest]):
            if entry.path.endswith(MANIFEST_SUFFIX):
                yield _Task(entry.path, None, root)
        return
    if not os.path.exists(manifest):
        raise SourceError(f"{manifest}: No such file or directory")
    if manifest.endswith(".json"):
        yield _Task(manifest, None, root)
        return
    base = root if root is not None else os.path.dirname(manifest) or "."
    yield from (_Task(None, listed, base) for listed in read_list(manifest))


def _verify_one(task: _Task) -> _Checked:
    name = task.manifest_path or (task.listed.path if task.listed is not None else "")
    recorded: Manifest | ListedFile | None = task.listed
    moment = _now()
    try:
        if task.listed is not None:
            return _Checked(verify_listed(task.listed, task.root or ""), None, recorded, moment)
        assert task.manifest_path is not None
        recorded = manifest = _load(task.manifest_path)
        name = manifest.path or manifest.name
        return _Checked(verify(manifest, _place(manifest, task)), None, recorded, moment)
    except (SourceError, UsageError) as error:
        return _Checked(FixityResult(Fixity.MISSING, name, 0, None, str(error)), str(error), recorded, moment)


def _load(path: str) -> Manifest:
    try:
        with open(path, encoding="utf-8") as stream:
            return Manifest.from_json(stream.read())
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}") from error


def _place(manifest: Manifest, task: _Task) -> str:
    """Where the file should be: ROOT itself if that is a file, below ROOT, beside the manifest, or below this folder."""
    relative = manifest.path or manifest.name
    if task.root is not None:
        return task.root if os.path.isfile(task.root) else os.path.join(task.root, relative)
    beside = os.path.join(os.path.dirname(task.manifest_path or ""), relative)
    return beside if os.path.lexists(beside) else relative


def _text(result: FixityResult, problem: str | None) -> Iterator[str]:
    name = printable(result.name, 4096)
    if problem is not None:
        yield f"cannot be read  {name}: {printable(problem)}"
        return
    yield f"{result.verdict.value}  {name}: {printable(result.detail, 1000)}"
    for segment in result.bad[:20]:
        owner = f" of record {printable(segment.record)}" if segment.record is not None else ""
        blocks = ""
        if segment.bad_blocks is not None:
            blocks = f", bad from {segment.bad_blocks[0].offset} to {segment.bad_blocks[1].end}"
        found = f", now at {segment.found_at}" if segment.found_at is not None else ""
        yield f"  {segment.kind}{owner} at {segment.span.offset}+{segment.span.length}{blocks}{found}"
        for tensor in segment.tensors[:10]:
            yield f'    tensor "{printable(tensor)}"'
        if len(segment.tensors) > 10:
            yield f"    and {len(segment.tensors) - 10} more tensors"
    if len(result.bad) > 20:
        yield f"  and {len(result.bad) - 20} more parts"


def _export(arguments: argparse.Namespace) -> Exit:
    paths = [entry.path for entry in expand(arguments.manifests) if entry.root is None or entry.path.endswith(MANIFEST_SUFFIX)]
    if not paths:
        raise UsageError("no manifest there")
    text = EXPORTS[arguments.to]([_load(path) for path in paths])
    with output_stream(arguments.output) as stream:
        stream.write(text)
    return Exit.GOOD

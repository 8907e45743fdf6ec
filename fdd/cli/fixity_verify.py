# SPDX-License-Identifier: Apache-2.0
"""`fdd fixity verify`: files held against manifests and checksum lists, and what is there without being on record."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from fdd.api import internal_error_text
from fdd.cli.exits import Exit
from fdd.cli.manifests import MANIFEST_SUFFIX, load_manifest, now
from fdd.cli.options import add_premis_options, jobs_argument
from fdd.cli.output import check_not_read, output_stream
from fdd.core.errors import SourceError, UsageError
from fdd.core.parallel import LOST, in_order
from fdd.core.paths import expand, safe_path
from fdd.core.payload import read_payload
from fdd.core.source import FileSource
from fdd.core.text import json_text, printable
from fdd.fixity.lists import ListedFile, is_bag_manifest, place_of, read_list, verify_listed
from fdd.fixity.manifest import Manifest
from fdd.fixity.result import RESULT_VERSION, Fixity, FixityResult
from fdd.fixity.verify import verify

_BAG_PAYLOAD = "data"
"""The folder that manifests of a bag cover (RFC 8493, 2.1.2)."""


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The options of the action."""
    parser.add_argument("manifest", metavar="MANIFEST|DIR", help="a manifest, a folder of manifests, or a checksum list")
    parser.add_argument("root", nargs="?", metavar="ROOT", help="the file, or the folder the paths start from")
    parser.add_argument("--complete", action="store_true", help="files below ROOT that are not on record are a difference too")
    parser.add_argument("--format", choices=("text", "json", "jsonl", "premis"), default="text")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--jobs", type=jobs_argument, default=1, metavar="N", help="number of processes (0: one a core)")
    add_premis_options(parser)


def run_verify(arguments: argparse.Namespace) -> Exit:
    """Check everything that is on record, in the order of the records."""
    root = _folder(arguments) if arguments.complete else None
    tasks = list(_tasks(arguments.manifest, arguments.root))
    bases = {task.root for task in tasks if task.root is not None}
    check_not_read(arguments.output, [arguments.manifest, *bases])
    if not tasks and root is None:
        print("fdd fixity verify: nothing to do: no manifest there", file=sys.stderr)
        return Exit.UNDECIDED
    checks: Iterator[_Checked] = in_order(_verify_one, tasks, arguments.jobs, lost=_lost)
    if root is not None:
        checks = _with_unrecorded(checks, root, arguments.manifest)
    write = _write_premis if arguments.format == "premis" else _write_results
    with output_stream(arguments.output) as stream:
        return write(stream, checks, arguments)


@dataclass(frozen=True, slots=True)
class _Task:
    """One file to verify: by a manifest file or by a line of a list. ``problem``: why the manifest cannot be read."""

    manifest_path: str | None
    listed: ListedFile | None
    root: str | None
    problem: str | None = None

    @property
    def name(self) -> str:
        """What the file is called as long as its manifest is not read."""
        return safe_path(self.manifest_path or (self.listed.path if self.listed is not None else ""))


@dataclass(frozen=True, slots=True)
class _Checked:
    """What became of a task. ``recorded`` is what is on record of the file, if that could be read; ``place`` where the file
    was looked for; ``moment`` when the check began."""

    result: FixityResult
    code: Exit
    recorded: Manifest | ListedFile | None
    place: str | None
    moment: str


def _tasks(manifest: str, root: str | None) -> Iterator[_Task]:
    if os.path.isdir(manifest):
        for entry in expand([manifest]):
            if entry.path.endswith(MANIFEST_SUFFIX) or entry.problem is not None:
                yield _Task(entry.path, None, root, entry.problem)
        return
    if not os.path.exists(manifest):
        raise SourceError(f"{manifest}: No such file or directory")
    if manifest.endswith(".json"):
        yield _Task(manifest, None, root)
        return
    listed = read_list(manifest)
    base = root if root is not None else _folder_of_list(manifest, listed)
    yield from (_Task(None, row, base) for row in listed)


def _folder_of_list(manifest: str, listed: list[ListedFile]) -> str:
    """The folder that the paths of a list start from: its own, as in a bag, unless the first file that is found anywhere is
    found from this folder only, where `sha256sum -c` looks."""
    own = os.path.dirname(manifest) or os.curdir
    for row in listed:
        for folder in (own, os.curdir):
            if os.path.lexists(place_of(row, folder)):
                return folder
    return own


def _verify_one(task: _Task) -> _Checked:
    name = task.name
    recorded: Manifest | ListedFile | None = task.listed
    place: str | None = None
    moment = now()
    try:
        if task.problem is not None:
            raise SourceError(task.problem)
        if task.listed is not None:
            place = place_of(task.listed, task.root or "")
            result = verify_listed(task.listed, task.root or "")
        else:
            assert task.manifest_path is not None
            recorded = manifest = load_manifest(task.manifest_path)
            name = manifest.place
            place = _place(manifest, task)
            result = verify(manifest, place)
    except (SourceError, UsageError) as error:
        return _Checked(FixityResult.unreadable(name, safe_path(str(error))), Exit.UNDECIDED, recorded, place, moment)
    except Exception as error:  # noqa: BLE001  (a fault of fdd: told for this file, the others go on)
        text = internal_error_text(error)
        return _Checked(FixityResult.unreadable(name, safe_path(text)), Exit.INTERNAL, recorded, place, moment)
    return _Checked(result, Exit.GOOD if result.intact else Exit.BAD, recorded, place, moment)


def _lost(task: _Task) -> _Checked:
    """For a file at which its process was ended: where it is has to be known, so that it is not taken for another."""
    place = place_of(task.listed, task.root or "") if task.listed is not None else None
    recorded: Manifest | ListedFile | None = task.listed
    with contextlib.suppress(SourceError):
        if task.manifest_path is not None:
            recorded = manifest = load_manifest(task.manifest_path)
            place = _place(manifest, task)
    return _Checked(FixityResult.unreadable(task.name, LOST), Exit.UNDECIDED, recorded, place, now())


def _place(manifest: Manifest, task: _Task) -> str:
    """Where the file should be: ROOT itself if that is a file, below ROOT, beside the manifest, or below this folder."""
    relative = manifest.file_system_path
    if task.root is not None:
        return task.root if os.path.isfile(task.root) else os.path.join(task.root, relative)
    beside = os.path.join(os.path.dirname(task.manifest_path or ""), relative)
    return beside if os.path.lexists(beside) else relative


def _folder(arguments: argparse.Namespace) -> str:
    """The folder that has to be on record as a whole. Raises UsageError where none is given."""
    root: str | None = arguments.root
    if root is None and os.path.isfile(arguments.manifest) and not arguments.manifest.endswith(".json"):
        root = _folder_of_list(arguments.manifest, read_list(arguments.manifest))
    if root is None or not os.path.isdir(root):
        raise UsageError("--complete needs ROOT, the folder that the records are of")
    return root


def _with_unrecorded(checks: Iterator[_Checked], root: str, manifest: str) -> Iterator[_Checked]:
    """The checks, and behind them a row for every file below ``root`` that none of them was of.

    Manifests and the list itself need no record; the manifests of a bag are of its payload only. Links count where they are
    on record, as elsewhere. A file that holds what is on record of a missing one says so: it was renamed.
    """
    seen: set[str] = set()
    missing = _Missing()
    for check in checks:
        if check.place is not None:
            seen.add(_comparable(check.place))
        if check.result.verdict is Fixity.MISSING and check.recorded is not None:
            missing.add(check.result, dict(check.recorded.digests))
        yield check
    for entry in expand([os.path.join(root, _BAG_PAYLOAD) if is_bag_manifest(manifest) else root]):
        relative = safe_path(os.path.relpath(entry.path, root)).replace(os.sep, "/")
        if entry.problem is not None:
            result = FixityResult.unreadable(relative, entry.problem)
            yield _Checked(result, Exit.UNDECIDED, None, entry.path, now())
        elif entry.skipped is None and not _is_recorded(entry.path, seen, manifest):
            result = FixityResult.unrecorded(relative, missing.name_of(entry.path))
            yield _Checked(result, Exit.BAD, None, entry.path, now())


def _comparable(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))


def _is_recorded(path: str, seen: set[str], manifest: str) -> bool:
    """Whether a file was checked, or is itself the record."""
    if _comparable(path) in seen or path.endswith(MANIFEST_SUFFIX):
        return True
    return os.path.realpath(path) == os.path.realpath(manifest)


class _Missing:
    """What is on record of missing files, to be found again under other names."""

    def __init__(self) -> None:
        self._names: dict[tuple[tuple[str, str], ...], list[str]] = {}
        self._sizes: dict[tuple[str, ...], set[int | None]] = {}
        """By algorithms of the digests: the sizes of missing files, None where a list has none."""

    def add(self, result: FixityResult, digests: dict[str, str]) -> None:
        """A file that is not where it should be."""
        key = tuple(sorted(digests.items()))
        self._names.setdefault(key, []).append(result.name)
        self._sizes.setdefault(tuple(name for name, _ in key), set()).add(result.expected_size)

    def name_of(self, path: str) -> str | None:
        """The name on record of a file that holds these bytes; each is given once."""
        with contextlib.suppress(OSError, SourceError):
            size = os.path.getsize(path)
            for algorithms, sizes in self._sizes.items():
                if not sizes & {size, None}:
                    continue
                with FileSource(path) as source:
                    found = self._names.get(tuple(sorted(read_payload(source, (), algorithms).items())))
                if found:
                    return found.pop(0)
        return None


def _write_premis(stream: TextIO, checks: Iterable[_Checked], arguments: argparse.Namespace) -> Exit:
    """One document with an event a file. What is not even on record can have none: it is told on standard error."""
    from fdd.report.premis_fixity import FixityCheck, FixityWriter, Recorded

    code = Exit.GOOD
    writer = FixityWriter(stream, vars(arguments))
    writer.begin()
    for check in checks:
        code = max(code, check.code)
        if check.recorded is None:
            name, detail = printable(check.result.name, 4096), printable(check.result.detail, 4096)
            print(f"fdd fixity verify: {check.result.verdict.value}  {name}: {detail}", file=sys.stderr)
            continue
        if isinstance(check.recorded, Manifest):
            recorded = Recorded.of_manifest(check.recorded)
        else:
            recorded = Recorded.of_listed(check.recorded, os.path.basename(arguments.manifest))
        writer.write(FixityCheck(recorded, check.result, check.moment))
    writer.end()
    return code


def _write_results(stream: TextIO, checks: Iterable[_Checked], arguments: argparse.Namespace) -> Exit:
    counts: dict[str, int] = {}
    code = Exit.GOOD
    rows: list[dict[str, object]] = []
    for check in checks:
        word = check.result.verdict.value
        counts[word] = counts.get(word, 0) + 1
        code = max(code, check.code)
        if arguments.format == "jsonl":
            stream.write(json_text(check.result.to_dict()) + "\n")
        elif arguments.format == "json":
            rows.append(check.result.to_dict())
        else:
            stream.writelines(line + "\n" for line in _text(check.result))
    files = sum(counts.values())
    one = arguments.manifest.endswith(".json") and os.path.isfile(arguments.manifest) and not arguments.complete
    summary = {"files": files, "verdicts": dict(sorted(counts.items()))}
    if arguments.format == "json":
        # The form follows what was asked for, not how many files there happen to be.
        document = rows[0] if one else {"result_version": RESULT_VERSION, "results": rows, "summary": summary}
        stream.write(json_text(document, indent=2) + "\n")
    elif arguments.format == "text" and files > 1:
        stream.write(f"{files} files: {', '.join(f'{count} {word}' for word, count in sorted(counts.items()))}\n")
    if files and counts.get(Fixity.MISSING.value) == files and arguments.root is None:
        print("fdd fixity verify: none of the files is there: give ROOT, the folder that their paths start from", file=sys.stderr)
    return code


def _text(result: FixityResult) -> Iterator[str]:
    yield f"{result.verdict.value}  {printable(result.name, 4096)}: {printable(result.detail, 1000)}"
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

# SPDX-License-Identifier: Apache-2.0
"""`fdd compare`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from fdd.cli.exits import Exit
from fdd.cli.options import new_parser, spooled_stdin
from fdd.cli.output import STDIN, check_not_read, output_stream
from fdd.core.errors import UsageError
from fdd.core.text import json_text, printable
from fdd.limits import Limits
from fdd.tensors.content import CONTENT_ALGORITHM
from fdd.values.compare import ComparedFile, Comparison, LoneTensor, Outcome, TensorDifference, compare

EXITS = {Outcome.SAME: Exit.GOOD, Outcome.DIFFERENT: Exit.BAD, Outcome.UNDETERMINED: Exit.UNDECIDED}
MOST_LINES = 20
"""Tensors of one sort that are listed unless `--verbose`."""


def run(argv: Sequence[str]) -> Exit:
    """Compare two files."""
    parser = new_parser("compare", "Do two files hold the same tensors, whatever their containers and byte orders?")
    parser.add_argument("paths", nargs=2, metavar="PATH", help="a file; - is standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="form of the output (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--verbose", action="store_true", help="list every tensor that differs")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 instead of 1")
    arguments = parser.parse_args(argv)
    if arguments.paths.count(STDIN) > 1:
        raise UsageError("standard input can be read only once")
    check_not_read(arguments.output, arguments.paths)
    comparison = _compare(*arguments.paths)
    with output_stream(arguments.output) as stream:
        if arguments.format == "json":
            stream.write(json_text(comparison.to_dict(), indent=2) + "\n")
        else:
            stream.writelines(line + "\n" for line in _text(comparison, verbose=arguments.verbose))
    code = EXITS[comparison.outcome]
    return Exit.GOOD if code is Exit.BAD and arguments.exit_zero else code


def _compare(first: str, second: str) -> Comparison:
    with ExitStack() as stack:
        sources = [
            stack.enter_context(spooled_stdin(Limits().stdin_bytes)) if path == STDIN else path for path in (first, second)
        ]
        return compare(*sources)


def _text(comparison: Comparison, *, verbose: bool) -> Iterator[str]:
    first, second = comparison.first, comparison.second
    yield f"{comparison.outcome.value}  {printable(first.name, 4096)}  {printable(second.name, 4096)}"
    for side, file in (("A", first), ("B", second)):
        yield f"  {side}: {_file(file)}"
    without = f", {comparison.without_data} of them without data in either file" if comparison.without_data else ""
    yield f"  {comparison.same} tensors are the same{without}"
    yield from _listed([_difference(entry) for entry in comparison.different], verbose)
    yield from _listed([f"only in A: {_lone(entry, 'B')}" for entry in comparison.missing], verbose)
    yield from _listed([f"only in B: {_lone(entry, 'A')}" for entry in comparison.extra], verbose)
    open_lines = [f'not compared: "{printable(name)}": {printable(reason)}' for name, reason in comparison.open]
    yield from _listed(open_lines, verbose)
    yield "  not covered by this comparison:"
    for beside in comparison.beside:
        names = f" ({', '.join(printable(name) for name in beside.names[:5])}{', ...' if beside.count > 5 else ''})"
        note = f", {beside.note}" if beside.note is not None else ""
        yield f"    {beside.what}: {beside.state}{names if beside.count else ''}{note}"


def _listed(lines: list[str], verbose: bool) -> Iterator[str]:
    most = len(lines) if verbose else MOST_LINES
    yield from (f"  {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"  ... and {len(lines) - most} more (--verbose lists all)"


def _file(file: ComparedFile) -> str:
    order = file.content.byte_order
    words = [file.kind, f"{len(file.content.tensors)} tensors"]
    if order != "none":
        words.append("byte order unknown, taken for little" if order == "unknown" else f"byte order {order}")
    if not file.whole:
        words.append("not all its tensors are known, if it has any")
    digest = file.digest
    words.append(f"{CONTENT_ALGORITHM} {digest}" if digest is not None else "no content digest")
    return ", ".join(words)


def _difference(entry: TensorDifference) -> str:
    name = f'"{printable(entry.name)}"'
    if entry.what == ("data",):
        return f"differs: {name} has data in {'A' if entry.first.digest is not None else 'B'} only"
    if entry.what != ("values",):
        return f"differs: {name} is {_kind(entry, first=True)} in A and {_kind(entry, first=False)} in B"
    found = entry.values
    if found is None:
        return f"differs: {name} {_kind(entry, first=True)} in its values"
    words = [f"differs: {name} {_kind(entry, first=True)} in {found.differing} of {found.values} values"]
    if found.largest is not None:
        words.append(f"by at most {found.largest}")
    if found.not_finite:
        words.append(f"{found.not_finite} of them NaN or infinite")
    return ", ".join(words)


def _kind(entry: TensorDifference | LoneTensor, *, first: bool) -> str:
    content = entry.content if isinstance(entry, LoneTensor) else entry.first if first else entry.second
    tensor = content.tensor
    shape = "x".join(str(size) for size in tensor.shape) if tensor.shape else "scalar" if tensor.shape == () else "?"
    layout = f" {tensor.layout}" if tensor.layout != "strided" else ""
    return f"{tensor.dtype.name if tensor.dtype is not None else '?'} {shape}{layout}"


def _lone(entry: LoneTensor, other: str) -> str:
    twin = f', the same as "{printable(entry.same_content)}" in {other}' if entry.same_content is not None else ""
    return f'"{printable(entry.content.name)}" {_kind(entry, first=True)}{twin}'

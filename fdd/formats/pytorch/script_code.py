# SPDX-License-Identifier: Apache-2.0
"""TorchScript code as text: what it calls that reaches outside the program. It is never run, and never parsed as Python."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.core.span import Span
from fdd.formats.pytorch.document import CodeUse, TorchDocument

_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_PARAMETERS = re.compile(r"^  __parameters__ = \[(.*)\]", re.MULTILINE)
_LISTED = re.compile(r'"([^"\\]*)"')
_NAME = re.compile(r"(?<![\w.])\w+(?:[ \t]*\.[ \t\n]*\w+)*(?![ \t]*\.)")
"""A dotted name to its end; the reader of TorchScript takes blanks around the dots."""
_TEXT_OR_COMMENT = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*")
_BLANKS = re.compile(r"\s+")
CUSTOM_CLASSES = "__torch__.torch.classes."
"""Classes of torch and its extensions: the archive has no code for them."""

_DENIED_LIBRARIES = frozenset(
    (
        "debugprims c10d c10d_functional _c10d_functional _c10d_functional_autograd dist_c10d dist_rpc rpc symm_mem video_reader"
    ).split()
)
"""Libraries all of whose operators reach other processes or files."""
_DENIED_FUNCTIONS = frozenset("rpc_async rpc_sync rpc_remote".split())
"""Calls of other processes; some releases write them without a library in front."""
_DENIED_OPERATORS = _DENIED_FUNCTIONS | frozenset("from_file save load tofile to_here".split())
"""Operators of torch itself (`aten` and `prim`) that do."""
_DENIED_WORDS = re.compile(
    r"(?:\w*_)?(?:(?:read|write|load|save|open|from|to|effects|audio|video)_files?|from_video_file|sox_io\w*|load_library"
    r"|open|exec|execv|popen|system|shell|subprocess|socket|download|upload|url|http|https|mmap)(?:_\w*)?"
)
"""Names of operators of other libraries that tell of files, processes or the network."""
_DENIED_CLASSES = re.compile(
    re.escape(CUSTOM_CLASSES) + r"(?:dist_c10d\.\w+|dist_rpc\.\w+|torchaudio\.\w*Stream\w*|torchvision\.Video|\w+\.\w*RocksDB\w*)"
)
"""Classes of torch and its extensions that reach files or other processes."""


def is_dangerous_operator(library: str, name: str) -> bool:
    """Whether `library::name` reaches files, processes or the network."""
    if library in _DENIED_LIBRARIES:
        return True
    if library in ("aten", "prim"):
        return name in _DENIED_OPERATORS
    return _DENIED_WORDS.fullmatch(name) is not None


def is_dangerous_name(name: str) -> bool:
    """Whether a dotted name in code is an operator or a class that reaches outside.

    Operators of torch stand below `torch.`, those of libraries below `ops.`, or `torch.ops.` (format.md 3.4). A root alone,
    or a library, is handed on under another name, which torch never writes: what is reached through it cannot be told.
    """
    if name.startswith(CUSTOM_CLASSES):
        return _DENIED_CLASSES.match(name) is not None
    parts = name.split(".")
    if parts[:2] == ["torch", "ops"]:
        parts = parts[1:]
    if parts[0] == "ops":
        return len(parts) < 3 or is_dangerous_operator(parts[1], parts[2])
    if parts[0] == "torch":
        return len(parts) < 2 or is_dangerous_operator("aten", parts[-1])
    return len(parts) == 1 and name in _DENIED_FUNCTIONS


def names_in(source: str) -> Iterator[tuple[str, int, int]]:
    """The dotted names in code with offset and length in characters; texts and comments are passed over."""
    blanked = _TEXT_OR_COMMENT.sub(lambda match: " " * len(match.group()), source)
    for match in _NAME.finditer(blanked):
        yield _BLANKS.sub("", match.group()), match.start(), match.end() - match.start()


def classes_in(source: str) -> list[str]:
    """The names of the classes that a code file defines."""
    return _CLASS.findall(source)


def parameters_in(source: str) -> dict[str, frozenset[str]]:
    """Of each class that a code file defines the attributes it calls parameters (`__parameters__ = ["weight", ]`)."""
    found: dict[str, frozenset[str]] = {}
    starts = [*_CLASS.finditer(source)]
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(source)
        listed = _PARAMETERS.search(source, start.end(), end)
        found[start[1]] = frozenset(_LISTED.findall(listed[1])) if listed is not None else frozenset()
    return found


def read_source(document: TorchDocument, data: bytes, record: str, span: Span, shift: int | None) -> str:
    """The text of a code file; what in it reaches outside is entered into the document.

    ``span`` is where the file holds the code; ``shift`` what to add to an offset in ``data`` to get one in the file, None
    where there is no such sum.
    """
    source = data.decode("utf-8", "replace")
    for name, offset, length in names_in(source):
        if is_dangerous_name(name):
            place = span if shift is None else Span(shift + len(source[:offset].encode("utf-8")), length)
            document.code.append(CodeUse(name, "dangerous", record, place))
    return source

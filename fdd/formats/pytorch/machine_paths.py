# SPDX-License-Identifier: Apache-2.0
"""Paths of the machine on which a model was made: in debug records of TorchScript, in stack traces of exported programs.

They are personal data at times, and useful to a curator at others; nothing needs them to load the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fdd.core.span import Span
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.zipped import contents
from fdd.limits import Limits
from fdd.pickles import children, walk
from fdd.pickles.nodes import MISSING

ABSOLUTE = re.compile(r"(?:/|[A-Za-z]:[\\/]|\\\\)[^\n\"<>|*?]*[\\/][^\n\"<>|*?]+")
"""An absolute path with at least one folder, from its first character to its last."""
_TRACE = re.compile(rb'File \\"((?:/|[A-Za-z]:(?:\\\\|/))[^"\n]+?)\\"')
"""A line of a stack trace in JSON text: the quotes are escaped."""
MOST_KEPT = 1_000
"""Paths of one record that are counted."""
Paths = list[tuple[str | None, Span, str]]
"""Record, place, path."""


def find_machine_paths(document: TorchDocument, limits: Limits) -> None:
    """State the paths under the fact `machine-paths`, each once a record."""
    found: Paths = []
    for pickle in document.pickles:
        if pickle.role == "debug" and pickle.facts.root is not MISSING:
            found += _in_pickle(document, pickle)
    for index, record in enumerate(document.records):
        if document.kind == "pt2" and record.role == "program":
            found += _in_program(document, index, limits)
    if found:
        document.facts["machine-paths"] = found


def _in_pickle(document: TorchDocument, pickle: PickleRecord) -> Iterator[tuple[str | None, Span, str]]:
    told: set[str] = set()
    for value in walk(pickle.facts.root):
        for text in children(value):
            if type(text) is str and text not in told and len(told) < MOST_KEPT and ABSOLUTE.fullmatch(text):
                told.add(text)
                yield pickle.record, _place(document, pickle, text), text


def _place(document: TorchDocument, pickle: PickleRecord, text: str) -> Span:
    """Where the text lies: texts carry no place, so its bytes are looked for."""
    if pickle.shift is None:
        return pickle.span
    data = text.encode("utf-8", "surrogatepass")
    start = document.source.read_at(pickle.span.offset, pickle.span.length).find(data)
    return Span(pickle.span.offset + start, len(data)) if start >= 0 else pickle.span


def _in_program(document: TorchDocument, index: int, limits: Limits) -> Iterator[tuple[str | None, Span, str]]:
    record = document.records[index]
    read = contents(document, index, limits.pickle_bytes if record.method == "stored" else limits.inflated_bytes)
    if read is None or record.span is None:
        return
    data, shift = read
    told: set[bytes] = set()
    for match in _TRACE.finditer(data):
        path = match.group(1)
        if path not in told and len(told) < MOST_KEPT:
            told.add(path)
            place = record.span if shift is None else Span(shift + match.start(1), len(path))
            yield record.name, place, path.decode("utf-8", "backslashreplace").replace("\\\\", "\\")

# SPDX-License-Identifier: Apache-2.0
"""Reads what is special in torch.package archives and TorchServe archives: manifests, sources, the model inside."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.nested import judge_records
from fdd.formats.pytorch.zipped import contents

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
MODEL_HEADS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
MODEL_SUFFIXES = (".pt", ".pth", ".ptl", ".pt2", ".bin", ".ckpt")
MANIFEST = "MAR-INF/MANIFEST.json"


@dataclass(slots=True)
class PackageFacts:
    """A torch.package: modules it expects from outside, lines that are no module names, sources it brings along."""

    extern_modules: list[str] = field(default_factory=list)
    bad_lines: list[tuple[str, Span]] = field(default_factory=list)
    sources: list[tuple[str, Span | None]] = field(default_factory=list)


@dataclass(slots=True)
class ModelArchiveFacts:
    """A TorchServe archive: its manifest, or why it cannot be read, and the names it refers to that are not there."""

    manifest: dict[str, Any] | None = None
    fault: str | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)
    """(key of the manifest, name)"""
    sources: list[tuple[str, Span | None]] = field(default_factory=list)


def read_package(document: TorchDocument) -> None:
    """State what a torch.package expects and brings."""
    facts = PackageFacts()
    document.facts["package"] = facts
    index = document.find(".data/extern_modules")
    text = document.texts.get(".data/extern_modules", b"")
    span = document.records[index].span if index is not None else None
    position = 0
    for line in text.split(b"\n"):
        word = line.decode("utf-8", "backslashreplace")
        if _DOTTED.fullmatch(word):
            facts.extern_modules.append(word)
        elif word and span is not None:
            facts.bad_lines.append((word, Span(span.offset + position, len(line))))
        position += len(line) + 1
    facts.sources = [(record.name, record.span) for record in document.records if record.role == "source"]


def read_model_archive(document: TorchDocument, probe: Probe) -> None:
    """Read the manifest of a .mar and judge the torch files inside."""
    facts = ModelArchiveFacts()
    document.facts["model-archive"] = facts
    names = {record.name: index for index, record in enumerate(document.records)}
    read = contents(document, names[MANIFEST], probe.limits.text_bytes) if MANIFEST in names else None
    if read is not None:
        _read_manifest(facts, read[0], names)
    facts.sources = [(record.name, record.span) for record in document.records if record.name.endswith(".py")]
    if facts.sources:
        document.has_code = True
    judge_records(document, probe, [index for index in range(len(document.records)) if _is_model(document, index)])


def _read_manifest(facts: ModelArchiveFacts, data: bytes, names: dict[str, int]) -> None:
    try:
        manifest = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.fault = str(error)
        return
    if not isinstance(manifest, dict) or not isinstance(manifest.get("model"), dict):
        facts.fault = "no object under the key model"
        return
    facts.manifest = manifest
    for key in ("serializedFile", "modelFile", "handler"):
        name = manifest["model"].get(key)
        if not isinstance(name, str):
            continue
        # A handler is a file, perhaps with `:function` behind it, or the name of one that TorchServe brings along.
        file = name.partition(":")[0] if key == "handler" else name
        if file not in names and (key != "handler" or file.endswith(".py")):
            facts.missing.append((key, name))


def _is_model(document: TorchDocument, index: int) -> bool:
    record = document.records[index]
    if record.span is None or not record.name.lower().endswith(MODEL_SUFFIXES):
        return False
    head = contents(document, index, 4)
    return head is not None and head[0].startswith(MODEL_HEADS)

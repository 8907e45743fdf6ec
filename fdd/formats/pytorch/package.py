# SPDX-License-Identifier: Apache-2.0
"""Reads what is special in torch.package archives and TorchServe archives: manifests, sources, the model inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.names import MAR_MANIFEST
from fdd.formats.pytorch.nested import TORCH_HEADS, judge_carried, judge_records
from fdd.formats.pytorch.zipped import contents, probe_record
from fdd.pickles.nodes import Global

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
MODEL_SUFFIXES = (".pt", ".pth", ".ptl", ".pt2", ".bin", ".ckpt")
MANIFEST_FILES = ("serializedFile", "modelFile", "handler", "requirementsFile", "configFile", "specFile", "workflowHandler")
"""Keys of the manifest that name files; the last two are those of workflow archives."""
HANDLERS = frozenset({"handler", "workflowHandler"})
IMPLICIT_MODULES = frozenset({"numpy", "numpy.core", "numpy.core._multiarray_umath", "builtins"})
"""Modules that the importer takes from the host whether they are listed or not."""


@dataclass(slots=True)
class PackageFacts:
    """A torch.package: modules it expects from outside, lines that are no module names, sources it brings along."""

    extern_modules: list[str] = field(default_factory=list)
    bad_lines: list[tuple[str, Span]] = field(default_factory=list)
    sources: list[tuple[str, Span | None]] = field(default_factory=list)
    unprovided: list[tuple[str, Span, str | None]] = field(default_factory=list)
    """Modules that pickles name and that neither the package nor its list of outside modules has: (module, place, pickle)."""
    bad_ids: list[tuple[str, Span, str | None]] = field(default_factory=list)
    """Ids of reduced objects that are not as the importer takes them: (what, place, pickle)."""


@dataclass(slots=True)
class ModelArchiveFacts:
    """A TorchServe archive: its manifest, or why it cannot be read, and the names it refers to that are not there."""

    manifest: dict[str, Any] | None = None
    fault: str | None = None
    missing: list[tuple[str, str]] = field(default_factory=list)
    """(key of the manifest, name)"""
    sources: list[tuple[str, Span | None]] = field(default_factory=list)


def read_package(document: TorchDocument, probe: Probe) -> None:
    """State what a torch.package expects and brings, and look into the torch files among its resources."""
    facts = PackageFacts()
    document.facts["package"] = facts
    index = document.find(".data/extern_modules")
    span = document.records[index].span if index is not None else None
    position = 0
    for line in document.texts.get(".data/extern_modules", b"").split(b"\n"):
        word = line.decode("utf-8", "backslashreplace")
        if _DOTTED.fullmatch(word):
            facts.extern_modules.append(word)
        elif word and span is not None:
            facts.bad_lines.append((word, Span(span.offset + position, len(line))))
        position += len(line) + 1
    facts.sources = [(record.name, record.span) for record in document.records if record.role == "source"]
    document.has_code = document.has_code or bool(facts.sources)
    if index is not None and not facts.bad_lines and ".data/extern_modules" in document.texts:
        facts.unprovided = list(_unprovided(document, facts))
    facts.bad_ids = list(_bad_ids(document))
    judge_carried(document, probe)


def _unprovided(document: TorchDocument, facts: PackageFacts) -> Iterator[tuple[str, Span, str | None]]:
    """Modules that no source of the package and no line of its list provides; a listed module brings those below it."""
    provided = {*facts.extern_modules, *IMPLICIT_MODULES}
    provided.update(
        document.local_name(name).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name, _ in facts.sources
    )
    told: set[str] = set()
    for pickle in document.judged_pickles():
        if pickle.role != "packaged":
            continue
        for event in pickle.facts.events:
            node = event.value
            if event.what != "global" or not isinstance(node, Global) or node.module in told:
                continue
            parts = node.module.split(".")
            if not any(".".join(parts[:count]) in provided for count in range(1, len(parts) + 1)):
                told.add(node.module)
                yield node.module, pickle.place(event.offset), pickle.record


def _bad_ids(document: TorchDocument) -> Iterator[tuple[str, Span, str | None]]:
    """Persistent ids of objects that their class reduces by a function of its own: (word, [number,] function, arguments)."""
    for pickle, node, value in document.facts.get("other-ids", ()):
        rest = value[1:]
        function, arguments = rest[-2:] if len(rest) in (2, 3) else (None, None)
        place = pickle.place(node.offset)
        if not isinstance(function, Global) or not isinstance(arguments, tuple):
            yield f"an id of {len(value)} items, without a function and its arguments", place, pickle.record
        elif function.name == "unpackage_script_module":
            script = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], str) else None
            if script is None or document.find(f".data/ts_code/{script}/data.pkl") is None:
                yield f"the script {script} is not in the package", place, pickle.record


def read_model_archive(document: TorchDocument, probe: Probe) -> None:
    """Read the manifest of a .mar and judge the torch files inside."""
    facts = ModelArchiveFacts()
    document.facts["model-archive"] = facts
    names = {record.name: index for index, record in enumerate(document.records)}
    read = contents(document, names[MAR_MANIFEST], probe.limits.text_bytes) if MAR_MANIFEST in names else None
    if read is not None:
        _read_manifest(facts, read[0], names)
    facts.sources = [(record.name, record.span) for record in document.records if record.name.endswith(".py")]
    if facts.sources:
        document.has_code = True
    wanted: list[int] = []
    others: list[int] = []
    for index, record in enumerate(document.records):
        model = record.name.lower().endswith(MODEL_SUFFIXES)
        if model and contents(document, index, 1) is None:
            document.has_code, document.followed = True, False
        (wanted if model and _begins_like_torch(document, index) else others).append(index)
    judge_records(document, probe, wanted)
    judge_carried(document, probe, others)
    for index in others:
        probe_record(document, index, probe.limits)


def _read_manifest(facts: ModelArchiveFacts, data: bytes, names: dict[str, int]) -> None:
    try:
        manifest = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.fault = str(error)
        return
    stated = (manifest.get("model") or manifest.get("workflow")) if isinstance(manifest, dict) else None
    if not isinstance(stated, dict):
        facts.fault = "no object under the key model, or workflow"
        return
    facts.manifest = manifest
    for key in MANIFEST_FILES:
        name = stated.get(key)
        if not isinstance(name, str) or not name:
            continue
        # A handler is a file, perhaps with `:function` behind it, or the name of one that TorchServe brings along.
        file = name.partition(":")[0] if key in HANDLERS else name
        if file not in names and (key not in HANDLERS or file.endswith(".py")):
            facts.missing.append((key, name))


def _begins_like_torch(document: TorchDocument, index: int) -> bool:
    head = contents(document, index, 4)
    return head is not None and head[0].startswith(TORCH_HEADS)

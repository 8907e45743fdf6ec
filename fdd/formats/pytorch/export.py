# SPDX-License-Identifier: Apache-2.0
"""Reads .pt2 archives of torch.export (format.md 3.5): programs, configurations of weights and constants, files inside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, Evidence
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.export_facts import Program, ProgramFacts, ProgramFault
from fdd.formats.pytorch.export_payloads import read_payloads
from fdd.formats.pytorch.nested import TORCH_HEADS, judge_carried, judge_records
from fdd.formats.pytorch.zipped import contents

EMPTY_ALLOWED = ("serialized_example_inputs", "data/sample_inputs/")
"""Records that are empty where the program was exported without sample inputs."""
PLAIN_PROGRAM = "serialized_exported_program.json"
NATIVE_SUFFIXES = (".so", ".dll", ".dylib", ".cubin", ".hsaco", ".pyd")
SIGNATURE_NAMES = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}
"""Sort of an input of the graph -> key of its name."""


def read_program(document: TorchDocument, probe: Probe) -> None:
    """Fill in storages and tensors from the configurations, read the programs, and judge the torch files inside."""
    facts = ProgramFacts()
    document.facts["program"] = facts
    read_payloads(document, probe, facts)
    for index, record in enumerate(document.records):
        if record.role == "program":
            _read_program(document, probe, index, facts)
        elif record.role == "native" and record.name.lower().endswith(NATIVE_SUFFIXES):
            _note_native(document, index)
        elif document.local_name(record.name).startswith("data/executorch/"):
            document.has_code = True
            document.followed = False
    judge_records(document, probe, _nested_records(document, facts))
    _note_nested_names(document, facts)
    judge_carried(document, probe, _carried(document))
    limit = Evidence("partial", Reason.LIMIT, detail="a record is too large to be read")
    document.evidence["program"] = limit if facts.limited else COMPLETE


def _note_nested_names(document: TorchDocument, facts: ProgramFacts) -> None:
    """Names of tensors in the torch files that hold the weights of 2.1 to 2.8."""
    for program in facts.programs:
        names = facts.names.setdefault(program.model, set())
        for folder in ("weights", "constants"):
            files = _files_of(document, program.model, folder)
            if not files:
                # Without a root there were no constants at first, and what is in a configuration is known already.
                if not document.root and folder == "constants":
                    facts.unknown_names.add(program.model)
                continue
            judged = [nested for nested in document.nested if document.local_name(nested.label) in files]
            if not judged or any(nested.verdict not in ("valid", "structure-valid") for nested in judged):
                facts.unknown_names.add(program.model)
            for tensor in document.nested_tensors:
                file = next((file for file in files if tensor.name.startswith(f"{file}/")), None)
                if file is not None:
                    names.add(tensor.name.removeprefix(f"{file}/").replace("~1", "/").replace("~0", "~"))


def _files_of(document: TorchDocument, model: str, folder: str) -> list[str]:
    """The torch files that may hold weights or constants of a model, by their names below the top folder."""
    plain = {"weights": "serialized_state_dict", "constants": "serialized_constants"}[folder]
    names = [f"data/{folder}/{model}.pt"] if document.root else [f"{plain}.pt", f"{plain}.json"]
    return [name for name in names if document.find(name) is not None]


def _note_native(document: TorchDocument, index: int) -> None:
    """A library by its name, where its first bytes did not tell it."""
    record = document.records[index]
    known = document.facts.setdefault("native", [])
    if record.span is not None and record.name not in {name for name, _, _ in known}:
        document.has_code = True
        known.append((record.name, record.span, "by its name"))


def _nested_records(document: TorchDocument, facts: ProgramFacts) -> Iterator[int]:
    """Records that are files of their own; the first releases called them .json."""
    for index, record in enumerate(document.records):
        local = document.local_name(record.name)
        if record.span is None or (record.size == 0 and local.startswith(EMPTY_ALLOWED)):
            continue
        if record.role == "nested" or record.name in facts.pickled or record.name in facts.opaque:
            yield index
        elif record.role == "storage" and record.name not in facts.described and _looks_like_torch(document, index):
            yield index  # weights beside a compiled model are torch files


def _carried(document: TorchDocument) -> list[int]:
    judged = {nested.label for nested in document.nested}
    roles = ("extra-file", "unknown", "native")
    return [index for index, record in enumerate(document.records) if record.role in roles and record.name not in judged]


def _looks_like_torch(document: TorchDocument, index: int) -> bool:
    head = contents(document, index, 4)
    return head is not None and head[0].startswith(TORCH_HEADS)


def _read_program(document: TorchDocument, probe: Probe, index: int, facts: ProgramFacts) -> None:
    record = document.records[index]
    if not record.name.endswith(".json"):
        return
    most = probe.limits.pickle_bytes if record.method == "stored" else probe.limits.inflated_bytes
    read = contents(document, index, most)
    if read is None:
        return
    if len(read[0]) < record.size and record.size > most:
        facts.limited = True
        return
    try:
        stated = json.loads(read[0].decode("utf-8"))
    except (ValueError, RecursionError) as error:
        facts.program_faults.append(ProgramFault("not-json", record.name, record.span, str(error)))
        return
    graph = stated.get("graph_module") if isinstance(stated, dict) else None
    if not isinstance(graph, dict) or not isinstance(graph.get("graph"), dict):
        facts.program_faults.append(ProgramFault("not-object", record.name, record.span, "no graph in it"))
        return
    local = document.local_name(record.name)
    model = "model" if local == PLAIN_PROGRAM else local.removeprefix("models/").removesuffix(".json")
    torch_version = stated.get("torch_version")
    facts.programs.append(
        Program(
            model,
            record.name,
            record.span,
            _version(stated.get("schema_version")),
            torch_version if isinstance(torch_version, str) else None,
            list(_wanted(graph.get("signature"))),
        )
    )


def _version(value: Any) -> tuple[int, ...]:
    """The schema version: a number in 2.2, an object of major and minor since."""
    parts = [value.get("major"), value.get("minor")] if isinstance(value, dict) else [value]
    return tuple(part for part in parts if isinstance(part, int) and not isinstance(part, bool))


def _wanted(signature: Any) -> Iterator[tuple[str, str]]:
    """(sort, name) of the tensors that the graph takes from the archive."""
    specs = signature.get("input_specs") if isinstance(signature, dict) else None
    for spec in specs if isinstance(specs, list) else ():
        for sort, key in SIGNATURE_NAMES.items():
            stated = spec.get(sort) if isinstance(spec, dict) else None
            name = stated.get(key) if isinstance(stated, dict) else None
            if isinstance(name, str):
                yield sort, name

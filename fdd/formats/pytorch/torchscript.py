# SPDX-License-Identifier: Apache-2.0
"""Reads the code of TorchScript archives, and of packages that hold scripts (format.md 3.4): as text, it is never run.

Where the storages of its pickles lie is read with the pickles, see :mod:`fdd.formats.pytorch.objects`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fdd.core.span import Span
from fdd.formats.probe import Probe
from fdd.formats.pytorch.bytecode import BytecodeFacts, read_bytecode
from fdd.formats.pytorch.contents import calls_in
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.model_json import ModelJson, read_model_json
from fdd.formats.pytorch.names import SCRIPT_KINDS
from fdd.formats.pytorch.nested import judge_carried
from fdd.formats.pytorch.pickle_values import call_target
from fdd.formats.pytorch.script_code import CUSTOM_CLASSES, classes_in, names_in, parameters_in, read_source
from fdd.formats.pytorch.zipped import contents
from fdd.pickles.nodes import MISSING, Global
from fdd.tensors.names import escape_key

PACKAGED_CODE = ".data/ts_code/code/"
CODE_FOLDERS = ("code/", "libs/", PACKAGED_CODE)
"""Folders of code: of archives, of those of 1.0 to 1.2, and of scripts in a package."""
SCRIPT_MODULE = "__torch__"


@dataclass(slots=True)
class ScriptFacts:
    """Code and bytecode of a TorchScript archive.

    ``modules`` are dotted names that have a code file; ``classes`` the classes defined in them. ``missing_code`` are
    (class or function, record that should define it, place of the mention, record of the mention).
    """

    modules: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    undecodable: list[tuple[str, Span]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    missing_code: list[tuple[str, str, Span, str | None]] = field(default_factory=list)
    mentions: list[tuple[str, str, Span]] = field(default_factory=list)
    """(dotted name below `__torch__`, record, place) in the code."""
    parameters: dict[str, frozenset[str]] = field(default_factory=dict)
    """Class -> names of its attributes that are parameters."""
    bytecode: BytecodeFacts = field(default_factory=BytecodeFacts)
    model_json: ModelJson | None = None


def read_script(document: TorchDocument, probe: Probe) -> None:
    """State what code and bytecode say; of model.json also storages and tensors."""
    facts = ScriptFacts()
    document.facts["script"] = facts
    for index, record in enumerate(document.records):
        if record.role == "code":
            document.has_code = True
            _read_code(document, probe, index, facts)
    facts.bytecode = read_bytecode(document)
    if document.kind == "torchscript-json":
        facts.model_json = read_model_json(document, probe)
    else:
        _find_missing_code(document, facts)
        _mark_parameters(document, facts)
    if document.kind in SCRIPT_KINDS:
        judge_carried(document, probe)


def module_of(local: str) -> str | None:
    """Dotted module name of a code record below the top folder; None for records that are no source."""
    for folder in CODE_FOLDERS:
        if local.startswith(folder) and local.endswith(".py"):
            return local[len(folder) : -3].replace("/", ".")
    return None


def _read_code(document: TorchDocument, probe: Probe, index: int, facts: ScriptFacts) -> None:
    record = document.records[index]
    read = contents(document, index, probe.limits.inflated_bytes)
    if read is None or record.span is None:
        facts.unreadable.append(record.name)
        document.followed = False
        return
    data, shift = read
    if len(data) < record.size:
        document.followed = False  # damaged, or longer than the limit
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = Span(shift + error.start, error.end - error.start) if shift is not None else record.span
        facts.undecodable.append((record.name, place))
    source = read_source(document, data, record.name, record.span, shift)
    module = module_of(document.local_name(record.name))
    if module is not None:
        facts.modules.add(module)
        facts.classes |= {f"{module}.{name}" for name in classes_in(source)}
        facts.parameters |= {f"{module}.{name}": listed for name, listed in parameters_in(source).items() if listed}
    for name, offset, length in names_in(source):
        if name.startswith(SCRIPT_MODULE + ".") and not name.startswith(CUSTOM_CLASSES):
            place = record.span if shift is None else Span(shift + len(source[:offset].encode("utf-8")), length)
            facts.mentions.append((name, record.name, place))


def _find_missing_code(document: TorchDocument, facts: ScriptFacts) -> None:
    """Classes that pickles make need the class in a code file; what code mentions needs a file for some part of its name."""
    if facts.unreadable or facts.undecodable:
        return  # rules of their own tell of those; what they define is not known
    told: set[str] = set()
    folder = PACKAGED_CODE if document.kind == "torch-package" else CODE_FOLDERS[0]
    for name, expected, span, record in (*_made(document, facts), *_mentioned(facts)):
        if name not in told:
            told.add(name)
            facts.missing_code.append((name, f"{folder}{expected}", span, record))


def _mark_parameters(document: TorchDocument, facts: ScriptFacts) -> None:
    """Which tensors are parameters: the pickles do not say, the code of their modules does."""
    names: set[str] = set()
    for pickle in document.judged_pickles():
        if pickle.role != "object" or pickle.facts.root is MISSING or not facts.parameters:
            continue
        for path, call in calls_in(pickle.facts.root):
            listed = facts.parameters.get(".".join(call_target(call) or ()))
            names.update(f"{path}/{escape_key(name)}" if path else escape_key(name) for name in listed or ())
    for tensor in document.tensors:
        tensor.parameter = tensor.parameter or tensor.name in names


def _made(document: TorchDocument, facts: ScriptFacts) -> Iterator[tuple[str, str, Span, str | None]]:
    for pickle in document.judged_pickles():
        if document.kind == "torch-package" and pickle.role != "ts-code":
            continue
        for event in pickle.facts.events:
            node = event.value
            if event.what != "global" or not isinstance(node, Global) or node.module.partition(".")[0] != SCRIPT_MODULE:
                continue
            if not node.path.startswith(CUSTOM_CLASSES) and node.path not in facts.classes:
                yield node.path, f"{node.module.replace('.', '/')}.py", pickle.place(event.offset), pickle.record


def _mentioned(facts: ScriptFacts) -> Iterator[tuple[str, str, Span, str | None]]:
    for name, record, place in facts.mentions:
        parts = name.split(".")
        if not any(".".join(parts[:count]) in facts.modules for count in range(1, len(parts) + 1)):
            yield name, f"{'/'.join(parts[:-1])}.py", place, record

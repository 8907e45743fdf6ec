# SPDX-License-Identifier: Apache-2.0
"""Rules on what loading could run: names, calls, hidden code, native code. None of them touches validity."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import HIDING_ROLES, GlobalUse, PickleRecord, TorchDocument
from fdd.formats.pytorch.globals import RESTRICTED_OPCODES
from fdd.formats.pytorch.persistent_ids import text_of
from fdd.formats.pytorch.rules.catalogue import CODE, EAGER, SCRIPT, rule
from fdd.pickles.nodes import Call, DictNode, Extension, Global, PersistentId, Value

DO_NOT_LOAD = "Do not load the file outside a sandbox. Its tensors can be read with fdd, which runs nothing."
LOOK_INTO = "Load it only where the code it needs is trusted; a state_dict saved anew needs none."
NEEDS = ("safety",)


def _uses(document: TorchDocument, grade: str, role: str | None = None) -> Iterator[GlobalUse]:
    """Globals of that grade in the pickles a loader reads first, or in those with a certain role."""
    for use in document.globals:
        main = use.role not in HIDING_ROLES and use.role != "nested"
        if use.grade == grade and (main if role is None else use.role == role):
            yield use


def _times(use: GlobalUse) -> str:
    times = "once" if use.count == 1 else f"{use.count} times"
    return f"{times}, and called" if use.called else times


def _open_pickles(document: TorchDocument) -> Iterator[PickleRecord]:
    """The pickles that do not hide: what hides has a rule of its own, by which any call is too much."""
    return (pickle for pickle in document.pickles if pickle.role not in HIDING_ROLES)


# Names


@rule(
    "PT-SEC-001",
    "global-unlisted",
    axis="safety",
    level="warning",
    clause="safety.globals",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="Every name to import is on the list of the restricted loader.",
    message="{path} is named {times}: it is not on the weights-only list, so loading needs code from outside the file",
    remedy=LOOK_INTO,
)
def global_unlisted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.load refuses the name by default. Nothing says that it does harm; but importing a module runs
    its code, and the file cannot be read without that code in the right version.

    References: format.md 2.6; contract, section 1.
    """
    for use in _uses(document, "unlisted"):
        yield at(use.span, record=use.record, path=use.path, times=_times(use), count=use.count)


@rule(
    "PT-SEC-002",
    "global-dangerous",
    axis="safety",
    level="error",
    clause="safety.globals",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="No name is imported that can run anything.",
    message="{path} is named {times}: with it a pickle can run code, or reach files, processes or the network",
    remedy=DO_NOT_LOAD,
)
def global_dangerous(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: torch.load with weights_only=False runs it. That the result is thrown away, that nothing calls it in
    plain sight, or that the pickle breaks off behind it, changes nothing.

    References: format.md 2.1; pickle-analysis.md, section 2.
    """
    for use in _uses(document, "dangerous"):
        yield at(use.span, record=use.record, path=use.path, times=_times(use), count=use.count)


@rule(
    "PT-SEC-003",
    "callable-unnamed",
    axis="safety",
    level="warning",
    clause="safety.globals",
    kinds=CODE,
    needs=NEEDS,
    per="record",
    title="Whatever is called is named in the pickle.",
    message="{what} is called, or taken for a class: which code that is, only loading would show",
    remedy=LOOK_INTO,
)
def callable_unnamed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the result of another call, or a class from the extension registry, passes every check of names.

    References: pickle-analysis.md, section 2.
    """
    for pickle in _open_pickles(document):
        for event in pickle.facts.events:
            what = None
            if event.what == "extension" and isinstance(event.value, Extension):
                what = f"entry {event.value.code} of the extension registry"
            elif event.what == "call" and isinstance(event.value, Call):
                what = _unnamed(event.value.function)
            if what is not None:
                yield at(pickle.place(event.offset), record=pickle.record, what=what)


def _unnamed(function: Value) -> str | None:
    """What is called, where no global names it; the classes of modules in legacy streams are named in persistent ids."""
    if isinstance(function, (Global, Extension)):
        return None
    if isinstance(function, PersistentId):
        value = function.value
        if isinstance(value, tuple) and len(value) > 1 and isinstance(value[1], Global):
            return None
        return "an object from outside the pickle"
    return "the result of another call" if isinstance(function, Call) else "a value that is no function"


@rule(
    "PT-SEC-012",
    "state-names-internals",
    axis="safety",
    level="warning",
    clause="safety.globals",
    kinds=CODE,
    needs=NEEDS,
    per="record",
    title="The state of an object sets no internals of Python.",
    message="the state that BUILD gives to {target} sets {key}",
    remedy=LOOK_INTO,
)
def state_names_internals(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: attributes such as `__class__` or `__reduce__` change what an object of a listed class is or does.
    TorchScript sets attributes of its own objects only.

    References: format.md 6.6; pickle-analysis.md, section 2.
    """
    for pickle in _open_pickles(document):
        if pickle.judged and document.kind in SCRIPT:
            continue
        for event in pickle.facts.events:
            if event.what != "call" or not isinstance(event.value, Call) or not event.value.state:
                continue
            for key in _state_keys(event.value):
                if key.startswith("__") and key.endswith("__"):
                    yield at(pickle.place(event.offset), record=pickle.record, target=_called(event.value), key=key)


def _state_keys(call: Call) -> Iterator[str]:
    """Attributes a state sets: the keys of a dict, or of the two dicts of a pair."""
    for state in call.state or ():
        for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
            if isinstance(part, DictNode):
                yield from (key for key in map(text_of, part.pairs[::2]) if key is not None)


def _called(call: Call) -> str:
    return f"an object of {call.function.path}" if isinstance(call.function, Global) else "an object"


@rule(
    "PT-SEC-014",
    "import-changed",
    axis="safety",
    level="warning",
    clause="safety.globals",
    kinds=CODE,
    needs=NEEDS,
    per="record",
    title="What is imported is not changed.",
    message="BUILD sets attributes of {target} itself, not of an object of it",
    remedy=LOOK_INTO,
)
def import_changed(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the change outlives the loading and meets every later use of that class or function in the program.

    References: pickle-analysis.md, section 2.
    """
    for pickle in _open_pickles(document):
        for event in pickle.facts.events:
            if event.what == "build" and isinstance(event.value, (Global, Extension)):
                target = event.value.path if isinstance(event.value, Global) else "a class of the extension registry"
                yield at(pickle.place(event.offset), record=pickle.record, target=target)


@rule(
    "PT-SEC-007",
    "opcode-restricted",
    axis="advice",
    level="info",
    clause="safety.restricted",
    kinds=EAGER | {"torch-legacy"},
    needs=("pickle",),
    title="torch.load with weights_only knows every opcode.",
    message="the restricted loader of torch stops at {opcodes}",
    remedy="Load it with weights_only=False where its names are trusted, or with a tool that reads all opcodes.",
)
def opcode_restricted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: the default of torch.load refuses such a file even if it holds nothing but tensors.

    References: format.md 2.1.
    """
    for pickle in document.judged_pickles():
        others = {name: facts for name, facts in pickle.facts.opcodes.items() if name not in RESTRICTED_OPCODES}
        if others:
            first = min(offset for _, offset in others.values())
            yield at(pickle.place(first), record=pickle.record, opcodes=", ".join(others))


# Pickles in strings, and where none should be


@rule(
    "PT-SEC-006",
    "nested-pickle-dangerous",
    axis="safety",
    level="error",
    clause="safety.hidden",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="No pickle inside a string names anything dangerous.",
    message="a pickle inside a string that a call is given names {path} ({times})",
    remedy=DO_NOT_LOAD,
)
def nested_pickle_dangerous(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: what is packed twice escapes tools that read the outer pickle only.

    References: contract, section 1; pickle-analysis.md, section 2.
    """
    for use in _uses(document, "dangerous", "nested"):
        yield at(use.span, record=use.record, path=use.path, times=_times(use))


@rule(
    "PT-SEC-013",
    "nested-pickle-unlisted",
    axis="safety",
    level="warning",
    clause="safety.hidden",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="Pickles inside strings name listed things only.",
    message="a pickle inside a string that a call is given names {path} ({times}), which is not on the weights-only list",
    remedy=LOOK_INTO,
)
def nested_pickle_unlisted(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: what is packed twice escapes tools that read the outer pickle only.

    References: contract, section 1; pickle-analysis.md, section 2.
    """
    for use in _uses(document, "unlisted", "nested"):
        yield at(use.span, record=use.record, path=use.path, times=_times(use))


@rule(
    "PT-SEC-015",
    "hidden-code",
    axis="safety",
    level="error",
    clause="safety.hidden",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="No code hides where a file should hold none.",
    message="a pickle {where} holds {what}",
    remedy=DO_NOT_LOAD,
)
def hidden_code(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: a pickle in an unknown record, a second copy of a record, a gap or a tail is read by none of the
    checks of torch, but by a reader that is pointed at it, or that takes another copy or another start of the file.

    References: contract, section 1; pickle-analysis.md, section 2.
    """
    for use in document.globals:
        if use.role in HIDING_ROLES and use.grade != "listed":
            yield at(use.span, record=use.record, where=PLACES[use.role], what=f"{use.path} ({_times(use)})")
    for pickle in document.pickles:
        if pickle.role not in HIDING_ROLES:
            continue
        for event in pickle.facts.events:
            unnamed = _unnamed(event.value.function) if event.what == "call" and isinstance(event.value, Call) else None
            if unnamed is not None or event.what == "extension":
                what = f"a call of {unnamed}" if unnamed is not None else "a class of the extension registry"
                yield at(pickle.place(event.offset), record=pickle.record, where=PLACES[pickle.role], what=what)
                break


PLACES = {
    "copy": "in another copy of its record",
    "hidden": "where the format has no use for one",
    "trailing": "behind the end of another",
}


@rule(
    "PT-SEC-016",
    "hidden-pickle",
    axis="advice",
    level="warning",
    clause="safety.hidden",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="Pickles lie where the format has them.",
    message="a pickle lies where the format has no use for one; it names nothing beyond the weights-only list",
    remedy="Look at what it holds: torch never reads it.",
)
def hidden_pickle(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: it may be data that somebody counts on, and no reader shows it.

    References: contract, section 1.
    """
    told = {use.path for use in document.globals if use.role == "hidden" and use.grade != "listed"}
    for pickle in document.pickles:
        named = (event.value for event in pickle.facts.events if event.what == "global")
        if pickle.role == "hidden" and pickle.facts.stopped and not any(getattr(node, "path", None) in told for node in named):
            length = pickle.facts.end - pickle.facts.start
            yield at(pickle.place(pickle.facts.start, length), record=pickle.record)


# Other code


@rule(
    "PT-SEC-008",
    "native-code",
    axis="safety",
    level="error",
    clause="safety.code",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="No record is machine code.",
    message="the record is machine code ({form})",
    remedy="Load the file only where whoever built this code is trusted; no tool can tell what it does.",
)
def native_code(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: exported programs with compiled kernels are loaded as libraries, which run as they are opened. It also
    ties the file to one processor and one version of torch.

    References: format.md 3.2; contract, section 1.
    """
    for name, span, form in document.facts.get("native", ()):
        yield at(Span(span.offset, span.length), record=name, form=form)


@rule(
    "PT-SEC-017",
    "code-operator-dangerous",
    axis="safety",
    level="error",
    clause="safety.code",
    kinds=CODE,
    needs=NEEDS,
    per="place",
    title="TorchScript code reaches no files, processes or networks.",
    message="the code calls {name}, which reaches outside the program",
    remedy=DO_NOT_LOAD,
)
def code_operator_dangerous(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: TorchScript imports no Python, but some of its operators open files or other processes.

    References: contract, section 1; pickle-analysis.md, section 2.
    """
    for use in document.code:
        if use.grade == "dangerous":
            yield at(use.span, record=use.record, name=use.name)


@rule(
    "PT-SEC-009",
    "path-of-author",
    axis="advice",
    level="info",
    clause="safety.privacy",
    kinds=CODE,
    needs=NEEDS,
    title="The file holds no paths of the machine it was made on.",
    message="the file holds the path {path}",
    remedy="Consider before publishing: such paths tell names of people and machines.",
)
def path_of_author(document: TorchDocument) -> Iterator[Violation]:
    """Why it matters: paths of home folders are personal data. Debug records of TorchScript, stack traces of exported
    programs and modules of legacy files also tell where the training code lay, and in which versions of its libraries.

    References: format.md 3.4, 6.6.
    """
    for record, place, path in document.facts.get("machine-paths", ()):
        yield at(place, record=record, path=path)
    for pickle in document.pickles:
        for offset, path in pickle.survey.homes:
            yield at(pickle.place(offset), record=pickle.record, path=path)
    for pickle, module in document.facts.get("module-sources", ()):
        if module.source_file.startswith(("/", "\\")) or module.source_file[1:3] in (":\\", ":/"):
            yield at(pickle.place(module.offset), record=pickle.record, path=module.source_file)

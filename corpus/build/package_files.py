# SPDX-License-Identifier: Apache-2.0
"""torch.package archives of 1.9 and of 2.x, and TorchServe archives (format.md 3.2, row 12, and 3.5)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence

from corpus.build import opcodes as op
from corpus.build.kit import (
    Call,
    Global,
    Lowering,
    New,
    Persistent,
    Record,
    Tensor,
    address_keys,
    archive,
    dump,
    eager,
    legacy_stream,
    recipe,
    state_dict,
    tensor,
    with_serialization_id,
)
from corpus.build.pickle_kit import HEAD
from corpus.build.script_kit import CODE, debug_record, net

ROOT = "archive"
SOURCE = b"import torch\nclass Net(torch.nn.Module):\n    pass\n"
EXTERN = b"torch\ncollections\ntorch.nn"
CALL = HEAD + op.global_("posix", "getcwd") + op.EMPTY_TUPLE + op.REDUCE + op.STOP


def module() -> New:
    """An object of a class that the package brings along."""
    return New(Global("net", "Net"), (), {"training": True, "weight": tensor([1.0, 2.0])})


def package(
    value: object, *, sources: Sequence[Record] = (("net.py", SOURCE),), more: Sequence[Record] = (),
    extern: bytes | None = EXTERN, old: bool = False, protocol: int = 3,
) -> bytes:  # fmt: skip
    """A package with one pickle. ``old``: as 1.9 wrote it, with addresses as texts and without a Python version."""
    lowering = _Lowering(address_keys if old else str)
    pickle = dump(lowering.lower(value), protocol)
    records: list[Record] = [(f".data/{key}.storage", storage.data) for key, storage in lowering.keyed]
    records += [("model/model.pkl", pickle), *more, *sources]
    records += [(".data/extern_modules", extern)] if extern is not None else []
    records += [] if old else [(".data/python_version", b"3.11.7")]
    records.append((".data/version", b"6\n"))
    return archive(records if old else with_serialization_id([*records, ("byteorder", b"little")]), ROOT)


class _Lowering(Lowering):
    """Keys of storages are whole numbers since 1.10."""

    def _persistent(self, value: object) -> Persistent:
        found = super()._persistent(value)  # type: ignore[arg-type]
        identifier = found.identifier
        assert isinstance(identifier, tuple)
        key = identifier[2]
        return Persistent((*identifier[:2], int(key) if len(str(key)) < 10 else key, *identifier[3:]))


@recipe("package/package-2.1-pass.pt")
def package_2_1() -> bytes:
    """As written since 2.1: an object with its class, a text."""
    return package(module(), more=(("notes/readme.txt", b"hello\n"),))


@recipe("package/package-1.9-pass.pt")
def package_1_9() -> bytes:
    """1.9: storages named by addresses, which stand as texts in the pickle."""
    return package(module(), old=True)


@recipe("package/package-of-tensors-pass.pt")
def package_of_tensors() -> bytes:
    """Tensors only: no source."""
    return package(state_dict({"w": tensor([1.0, 2.0, 3.0]), "n": Tensor(tensor([7.0]).storage, (), ())}), sources=())


def scripts() -> list[Record]:
    """A script in a package: its pickles name their storages with the ending, the code stands once for all."""
    lowering = Lowering(key_of=lambda number: f"{number + 1}.storage")
    pickle = dump(lowering.lower(net()))
    records: list[Record] = [(f".data/{key}", storage.data) for key, storage in lowering.keyed]
    records += [(".data/ts_code/0/data.pkl", pickle), (".data/ts_code/0/constants.pkl", dump((2,)))]
    code = ".data/ts_code/code/__torch__/net.py"
    return [*records, (code, CODE.encode()), (f"{code}.debug_pkl", debug_record())]


def reduced(number: str = "0") -> Persistent:
    """The id of a script in the pickle of a package."""
    unpack = Global("torch.jit._script", "unpackage_script_module")
    return Persistent(("reduce_package", 140000000000000, unpack, (number,)))


@recipe("package/package-with-script-pass.pt")
def package_with_script() -> bytes:
    """A TorchScript module in a package, beside a tensor."""
    return package({"script": reduced(), "w": tensor([1.0])}, sources=(), more=scripts())


@recipe("package/code-operator-dangerous.pt")
def script_dangerous() -> bytes:
    """The code of the script writes a file."""
    rows = [(name, data.replace(b"torch.mul(_0, CONSTANTS.c0)", b'torch.save(_0, "x")')) for name, data in scripts()]
    return package({"script": reduced(), "w": tensor([1.0])}, sources=(), more=rows)


@recipe("package/class-without-code.pt")
def script_without_code() -> bytes:
    """The code of the script is not in the package."""
    rows = [row for row in scripts() if not row[0].startswith(".data/ts_code/code/")]
    return package({"script": reduced(), "w": tensor([1.0])}, sources=(), more=rows)


@recipe("package/extern-modules-missing.pt")
def no_extern() -> bytes:
    """No list of outside modules."""
    return package(module(), extern=None)


@recipe("package/extern-module-malformed.pt")
def bad_extern() -> bytes:
    """A line of the list is a command."""
    return package(module(), extern=b"torch\nimport os\ncollections")


@recipe("package/module-unprovided.pt")
def unprovided() -> bytes:
    """The class of the object is in a module that nobody has."""
    return package({"a": New(Global("lost.models", "Net"), (), {"training": True}), "w": tensor([1.0])})


@recipe("package/id-malformed.pt")
def bad_id() -> bytes:
    """A script that is not in the package, and an id without a function."""
    rows = scripts()
    return package(
        {"a": reduced("7"), "b": Persistent(("reduce_package", 1, "x", "y")), "w": tensor([1.0])}, sources=(), more=rows
    )


@recipe("package/storage-missing.pt")
def storage_missing() -> bytes:
    """A second tensor whose storage is not in the package."""
    storage = Persistent(("storage", Global("torch", "FloatStorage"), 9, "cpu", 2))
    lost = Call(
        Global("torch._utils", "_rebuild_tensor_v2"), (storage, 0, (2,), (1,), False, Call(Global("collections", "OrderedDict")))
    )
    return package({"w": tensor([1.0]), "lost": lost}, sources=())


@recipe("package/resource-pickle.pt")
def resource_pickle() -> bytes:
    """A resource of the user is a pickle with a call."""
    return package(module(), more=(("data/table.bin", CALL),))


@recipe("package/resource-torch.pt")
def resource_torch() -> bytes:
    """A resource of the user is a torch file that needs a class of another package."""
    other = eager({"x": New(Global("argparse", "Namespace"), (), {"lr": 0.1})})
    return package(module(), more=(("data/weights.pt", other),))


# TorchServe


def manifest(**model: object) -> bytes:
    """MAR-INF/MANIFEST.json."""
    stated = {"modelName": "net", "serializedFile": "net.pt", "handler": "handler.py:run", "modelVersion": "1.0", **model}
    return json.dumps({"createdOn": "2026", "runtime": "python", "model": stated, "archiverVersion": "0.12"}).encode()


def model_archive(records: Sequence[Record], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A .mar as its archiver writes it: a plain ZIP by Python, deflated."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, data in records:
            row = zipfile.ZipInfo(name)
            row.compress_type = method
            row.create_system = 3
            made.writestr(row, data)
    return buffer.getvalue()


HANDLER = b"def run(data, context):\n    return data\n"
WEIGHTS = eager(state_dict({"w": tensor([1.0, 2.0])}))


def served(*, model: bytes = WEIGHTS, stated: bytes | None = None, handler: bool = True, more: Sequence[Record] = ()) -> bytes:
    """A model archive with a model, a handler and a manifest."""
    rows: list[Record] = [("net.pt", model), *more]
    rows += [("handler.py", HANDLER)] if handler else []
    return model_archive([*rows, ("MAR-INF/MANIFEST.json", manifest() if stated is None else stated)])


@recipe("package/model-archive-pass.mar")
def mar() -> bytes:
    """A model and one of the handlers that TorchServe brings along."""
    return served(stated=manifest(handler="image_classifier"), handler=False, more=(("index_to_name.json", b"{}"),))


@recipe("package/handler-code.mar")
def mar_handler() -> bytes:
    """A handler of its own."""
    return served()


@recipe("package/manifest-unusable.mar")
def mar_manifest() -> bytes:
    """The manifest breaks off."""
    return served(stated=manifest()[:40], handler=False)


@recipe("package/manifest-names-missing-file.mar")
def mar_missing() -> bytes:
    """Neither the model file nor the handler that the manifest names are there."""
    return served(stated=manifest(modelFile="model.py"), handler=False)


@recipe("package/nested-not-valid.mar")
def mar_broken() -> bytes:
    """The model inside ends in the middle of its directory."""
    return served(model=WEIGHTS[:-30], stated=manifest(handler="image_classifier"), handler=False)


@recipe("package/nested-dangerous.mar")
def mar_dangerous() -> bytes:
    """The model inside calls something when it is loaded."""
    model = legacy_stream({"x": Call(Global("posix", "getcwd"))})
    return served(model=model, stated=manifest(handler="image_classifier"), handler=False)


@recipe("package/nested-unlisted.mar")
def mar_unlisted() -> bytes:
    """The model inside needs a class of another package; a table beside it is a pickle of its own."""
    model = eager({"x": New(Global("argparse", "Namespace"), (), {"lr": 0.1})})
    table = dump(New(Global("fractions", "Fraction"), (), {"n": 1}), 4)
    return served(model=model, stated=manifest(handler="image_classifier"), handler=False, more=(("table.pkl", table),))


@recipe("package/model-of-other-kind-pass.mar")
def mar_onnx() -> bytes:
    """The model is no torch file at all, but a pickle; a ZIP that is none of torch's lies beside it."""
    other = model_archive([("a.txt", b"hello")], zipfile.ZIP_STORED)
    rows: list[Record] = [("net.bin", dump([1, 2, 3], 4)), ("extra.zip", other)]
    stated = manifest(serializedFile="net.bin", handler="custom")
    return model_archive([*rows, ("MAR-INF/MANIFEST.json", stated)])


@recipe("package/workflow-pass.mar")
def workflow() -> bytes:
    """A workflow archive: its manifest names a specification."""
    stated = {"createdOn": "2026", "workflow": {"workflowName": "flow", "specFile": "flow.yaml"}, "archiverVersion": "0.12"}
    return model_archive([("flow.yaml", b"models: {}\n"), ("MAR-INF/MANIFEST.json", json.dumps(stated).encode())])

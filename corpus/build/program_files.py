# SPDX-License-Identifier: Apache-2.0
"""Exported programs (.pt2): the plain ZIP of 2.1 to 2.7, and the native archives of 2.8 and since 2.9 (format.md 3.5)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence

from corpus.build.kit import (
    Call,
    Global,
    New,
    Record,
    Tensor,
    archive,
    cut,
    dump,
    eager,
    ordered_dict,
    recipe,
    state_dict,
    tensor,
    with_serialization_id,
)
from corpus.build.pickle_kit import HEAD
from corpus.build.script_kit import PATH

FLOAT, STRIDED = 7, 7
"""Numbers of the export schema."""
PAIR = tensor([0.5, -1.0])
WEIGHTS = state_dict({"fc.weight": tensor([0.5, -1.0, 2.0, 0.25], (2, 2)), "fc.bias": PAIR})
INPUTS = eager(((tensor([1.0, 2.0]),), {}))
NO_CONSTANTS = eager({})
UNLISTED = New(Global("argparse", "Namespace"), (), {"lr": 0.1})
TRACE = '  File "{path}", line 12, in forward\n    return self.fc(x)\n'


def program(
    *, path: str = "net.py", parameters: Sequence[str] = ("fc.weight", "fc.bias"), constants: Sequence[str] = ()
) -> bytes:
    """A program with one operator."""
    specs: list[object] = [{"parameter": {"arg": {"name": f"p{n}"}, "parameter_name": name}} for n, name in enumerate(parameters)]
    specs += [{"tensor_constant": {"arg": {"name": f"c{n}"}, "tensor_constant_name": name}} for n, name in enumerate(constants)]
    specs.append({"user_input": {"arg": {"as_tensor": {"name": "x"}}}})
    node = {"target": "torch.ops.aten.linear.default", "metadata": {"stack_trace": TRACE.format(path=path)}}
    graph = {"nodes": [node], "inputs": [], "outputs": []}
    module = {"graph": graph, "signature": {"input_specs": specs, "output_specs": []}}
    stated = {
        "graph_module": module,
        "opset_version": {"aten": 10},
        "schema_version": {"major": 8, "minor": 20},
        "torch_version": "2.13.0",
    }
    return json.dumps(stated).encode()


def plain(records: Sequence[Record], method: int = zipfile.ZIP_STORED) -> bytes:
    """As 2.1 to 2.7 wrote it: by Python's zipfile, without a folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, data in records:
            row = zipfile.ZipInfo(name, (2026, 11, 29, 12, 0, 0))
            row.create_system = 3
            row.external_attr = 0o600 << 16
            row.compress_type = method
            made.writestr(row, data)
    return buffer.getvalue()


def plain_records(
    *, weights: bytes | None = None, model: bytes | None = None, ending: str = "pt", version: bytes = b"8.7"
) -> list[Record]:
    """The records of such a file."""
    return [
        ("serialized_exported_program.json", program() if model is None else model),
        (f"serialized_state_dict.{ending}", eager(WEIGHTS) if weights is None else weights),
        (f"serialized_constants.{ending}", NO_CONSTANTS),
        *([("serialized_example_inputs.pt", INPUTS)] if ending == "pt" else []),
        ("version", version),
    ]


def entry(path: str, sizes: Sequence[int], strides: Sequence[int], /, **changes: object) -> dict[str, object]:
    """What a configuration says of one tensor."""
    meta = {
        "dtype": FLOAT, "sizes": [{"as_int": size} for size in sizes], "requires_grad": True,
        "device": {"type": "cpu", "index": None}, "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": 0}, "layout": STRIDED, **changes,
    }  # fmt: skip
    return {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": meta}


def pickled(path: str) -> dict[str, object]:
    """What a configuration says of something pickled."""
    return {"path_name": path, "is_param": False, "use_pickle": True, "tensor_meta": None}


def config(entries: dict[str, dict[str, object]]) -> bytes:
    """A configuration."""
    return json.dumps({"config": entries}).encode()


def weight_entries() -> dict[str, dict[str, object]]:
    """The two weights."""
    return {"fc.weight": entry("weight_0", (2, 2), (2, 1)), "fc.bias": entry("weight_1", (2,), (1,))}


def native_records(
    *, weights: dict[str, dict[str, object]] | None = None, constants: dict[str, dict[str, object]] | None = None,
    payloads: Sequence[Record] | None = None, model: bytes | None = None, more: Sequence[Record] = (), inputs: bytes = INPUTS,
) -> list[Record]:  # fmt: skip
    """The records of 2.9 and later, all but the marks at the end."""
    rows: list[Record] = [
        ("data/weights/weight_0", tensor([0.5, -1.0, 2.0, 0.25]).storage.data),
        ("data/weights/weight_1", PAIR.storage.data),
    ]
    return [
        *(rows if payloads is None else payloads),
        ("data/weights/model_weights_config.json", config(weight_entries() if weights is None else weights)),
        ("data/constants/model_constants_config.json", config(constants or {})),
        ("models/model.json", program() if model is None else model),
        ("data/sample_inputs/model.pt", inputs),
        *more,
    ]


def native(records: Sequence[Record], *, form: bytes | None = b"pt2", version: bytes | None = b"0") -> bytes:
    """Write the records with the marks of the format behind them."""
    rows = list(records)
    rows += [("archive_format", form)] if form is not None else []
    rows += [("archive_version", version)] if version is not None else []
    return archive(with_serialization_id([*rows, (".data/version", b"6\n"), ("byteorder", b"little")]))


def without(records: Sequence[Record], *names: str) -> list[Record]:
    """All records but some."""
    return [row for row in records if row[0] not in names]


def replaced(records: Sequence[Record], name: str, data: bytes) -> list[Record]:
    """All records, one of them with other contents."""
    assert any(row[0] == name for row in records)
    return [(row, data if row == name else old) for row, old in records]


@recipe("program/plain-2.2-pass.pt2")
def plain_2_2() -> bytes:
    """2.1 and 2.2: the torch files inside are named .json."""
    return plain(plain_records(ending="json", version=b"1"))


@recipe("program/plain-2.7-pass.pt2")
def plain_2_7() -> bytes:
    """2.3 to 2.7."""
    return plain(plain_records())


@recipe("program/plain-deflated-pass.pt2")
def plain_deflated() -> bytes:
    """The same, deflated: the files inside are looked into all the same."""
    return plain(plain_records(), zipfile.ZIP_DEFLATED)


@recipe("program/native-2.8-pass.pt2")
def native_2_8() -> bytes:
    """2.8: weights and constants are torch files."""
    rows: list[Record] = [
        ("models/model.json", program()),
        ("data/weights/model.pt", eager(WEIGHTS)),
        ("data/constants/model.pt", NO_CONSTANTS),
        ("data/sample_inputs/model.pt", INPUTS),
    ]
    return native(rows)


@recipe("program/native-2.9-pass.pt2")
def native_2_9() -> bytes:
    """Since 2.9: raw weights with a configuration."""
    return native(native_records(more=(("extra/note.txt", b"hello"),)))


@recipe("program/native-objects-pass.pt2")
def native_objects() -> bytes:
    """A weight of a subclass, saved by torch.save; two views of one constant; objects of the user; no inputs."""
    weights = {**weight_entries(), "fc.scale": pickled("weight_2")}
    constants = {
        "a": entry("tensor_0", (2,), (1,)), "b": entry("tensor_0", (1,), (1,), storage_offset={"as_int": 1}),
        "obj": pickled("custom_obj_0"), "plain": pickled("opaque_obj_0"),
    }  # fmt: skip
    rows: list[Record] = [
        ("data/weights/weight_2", eager(tensor([3.0]))),
        ("data/constants/tensor_0", PAIR.storage.data),
        ("data/constants/custom_obj_0", eager(ordered_dict([("a", 1)]))),
        ("data/constants/opaque_obj_0", dump({"a": 1})),
    ]
    model = program(parameters=("fc.weight", "fc.bias", "fc.scale"), constants=("a", "b"))
    return native([*rows, *native_records(weights=weights, constants=constants, model=model, inputs=b"")])


@recipe("program/native-two-models-pass.pt2")
def native_two() -> bytes:
    """Two models in one archive, whose weights have the same names."""
    second = {"fc.weight": entry("weight_2", (2,), (1,)), "fc.bias": entry("weight_2", (2,), (1,))}
    rows: list[Record] = [
        ("data/weights/weight_2", PAIR.storage.data),
        ("data/weights/other_weights_config.json", config(second)),
        ("data/constants/other_constants_config.json", config({})),
        ("models/other.json", program()),
        ("data/sample_inputs/other.pt", INPUTS),
    ]
    return native(native_records(more=rows))


@recipe("program/archive-format-unknown.pt2")
def format_unknown() -> bytes:
    """Another name and another number."""
    return native(native_records(), form=b"pt3", version=b"7")


@recipe("program/archive-format-missing.pt2")
def format_missing() -> bytes:
    """No archive_format, and no inputs."""
    return native(without(native_records(), "data/sample_inputs/model.pt"), form=None)


@recipe("program/archive-format-missing-model.pt2")
def model_missing() -> bytes:
    """Weights without a program."""
    return native(without(native_records(), "models/model.json"))


@recipe("program/archive-format-missing-plain.pt2")
def plain_missing() -> bytes:
    """A plain one without its version."""
    return plain(without(plain_records(), "version"))


@recipe("program/archive-version-missing.pt2")
def version_missing() -> bytes:
    """No archive_version."""
    return native(native_records(), version=None)


@recipe("program/weights-config-wrong.pt2")
def config_wrong() -> bytes:
    """A weight too large for its record, one without a record, one of an unknown type, one of negative size."""
    weights: dict[str, dict[str, object]] = {
        "fc.weight": entry("weight_0", (8, 2), (2, 1)), "fc.bias": entry("weight_9", (2,), (1,)),
        "a": entry("weight_1", (2,), (1,), dtype=99), "b": entry("weight_1", (-2,), (1,)),
        "c": entry("weight_1", (1,), (1,), dtype=11), "d": {"path_name": 3},
    }  # fmt: skip
    return native(native_records(weights=weights))


@recipe("program/weights-config-wrong-json.pt2")
def config_not_json() -> bytes:
    """The configuration breaks off, so its weights are unknown."""
    rows = native_records(model=program(parameters=()))
    return native(replaced(rows, "data/weights/model_weights_config.json", b'{"config": {'))


@recipe("program/weight-without-values.pt2")
def weight_empty() -> bytes:
    """Exported with fake tensors: the record of the bias is empty."""
    rows: list[Record] = [("data/weights/weight_0", tensor([0.5, -1.0, 2.0, 0.25]).storage.data), ("data/weights/weight_1", b"")]
    return native(native_records(payloads=rows))


@recipe("program/program-unreadable.pt2")
def program_unreadable() -> bytes:
    """The program breaks off."""
    return native(native_records(model=cut(program(), 100)))


@recipe("program/program-unreadable-plain.pt2")
def plain_unreadable() -> bytes:
    """JSON, but no program."""
    return plain(plain_records(model=b"[]"))


@recipe("program/program-tensor-missing.pt2")
def tensor_missing() -> bytes:
    """The program takes a parameter and a constant that nobody has."""
    return native(native_records(model=program(parameters=("fc.weight", "fc.lost"), constants=("gone",))))


@recipe("program/program-tensor-missing-plain.pt2")
def plain_tensor_missing() -> bytes:
    """The same where the weights are a torch file."""
    return plain(plain_records(model=program(parameters=("fc.weight", "fc.lost"))))


@recipe("program/nested-not-valid.pt2")
def nested_not_valid() -> bytes:
    """The inputs are a torch file that has lost its end, the constants are none at all."""
    return plain(
        replaced(plain_records(weights=cut(eager(WEIGHTS), -40)), "serialized_constants.pt", b"hello world, no torch file")
    )


@recipe("program/nested-dangerous.pt2")
def nested_dangerous() -> bytes:
    """The sample inputs call something when they are loaded; an extra file does so, too."""
    call = eager({"x": Call(Global("posix", "getcwd"))})
    return native(native_records(inputs=call, more=(("extra/more.pt", call),)))


@recipe("program/nested-unlisted.pt2")
def nested_unlisted() -> bytes:
    """The sample inputs need a class of another package."""
    return native(native_records(inputs=eager({"x": UNLISTED})))


@recipe("program/object-dangerous.pt2")
def object_dangerous() -> bytes:
    """An object of the user is a bare pickle with a call."""
    rows: list[Record] = [("data/constants/opaque_obj_0", HEAD + b"cposix\ngetcwd\n)R.")]
    return native([*rows, *native_records(constants={"obj": pickled("opaque_obj_0")})])


@recipe("program/native-code.pt2")
def native_code() -> bytes:
    """A compiled model: its library, and one that is known by its name only; its weights are a torch file."""
    rows: list[Record] = [
        ("data/aotinductor/model/c0ffee.wrapper.cpp", b"// source\n"),
        ("data/aotinductor/model/c0ffee.wrapper.so", b"\x7fELF\x02\x01\x01" + bytes(57)),
        ("data/aotinductor/model/kernel.cubin", b"\0" * 16),
        ("data/aotinductor/model/c0ffee_metadata.json", b"{}"),
        ("data/weights/weight_0", eager(Tensor(PAIR.storage, (2,), (1,)))),
    ]
    return native(rows)


@recipe("program/path-of-author.pt2")
def path_of_author() -> bytes:
    """The stack trace of an operator names a file on the machine of the author."""
    return native(native_records(model=program(path=PATH)))


@recipe("program/executorch-inside.pt2")
def executorch_inside() -> bytes:
    """An ExecuTorch program travels in the archive: what it runs cannot be told."""
    return native([("data/executorch/model.pte", b"\x20\0\0\0ET12" + bytes(56))])

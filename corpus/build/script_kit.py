# SPDX-License-Identifier: Apache-2.0
"""TorchScript archives of every era, record by record (format.md 3.4, history.md table 2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from corpus.build.kit import (
    Global,
    Lowering,
    New,
    Record,
    Storage,
    Tensor,
    archive,
    dump,
    tensor,
    with_serialization_id,
)

ROOT = "archive"
"""As where a script is saved to a file object."""
CODE = (
    "class Net(Module):\n"
    '  __parameters__ = ["weight", "bias", ]\n'
    "  __buffers__ = []\n"
    "  weight : Tensor\n"
    "  bias : Tensor\n"
    "  training : bool\n"
    "  def forward(self: __torch__.net.Net,\n"
    "    x: Tensor) -> Tensor:\n"
    "    _0 = torch.linear(x, self.weight, self.bias)\n"
    "    return torch.mul(_0, CONSTANTS.c0)\n"
)
DANGEROUS_CODE = CODE.replace("torch.mul(_0, CONSTANTS.c0)", 'torch.from_file("/etc/hostname", False, 4)')
TIME, DATE = 0x6000, 0x4E82
"""DOS time and date of an archive of 1.0 to 1.3; later ones have none."""
PATH = "/srv/models/train/net.py"


@dataclass(frozen=True)
class ScriptEra:
    """What the writers of some releases put into an archive. ``last_item``: ids of storages end with None."""

    version: bytes
    version_first: bool
    byteorder: bool
    dated: bool
    last_item: bool


ERAS = {
    "1.3": ScriptEra(b"1\n", True, False, True, True),
    "1.4": ScriptEra(b"1\n", True, False, False, True),
    "1.5": ScriptEra(b"2\n", True, False, False, False),
    "1.6": ScriptEra(b"3\n", False, False, False, False),
    "2.1": ScriptEra(b"3\n", False, True, False, False),
}
"""By the first release: 1.6 stands for 1.6 to 2.0, 2.1 for all later ones."""


def net(**more: object) -> New:
    """The object of one linear layer."""
    weight, bias = tensor([0.5, -1.0, 2.0, 0.25, 3.5, -4.0], (2, 3)), tensor([0.125, -0.125])
    state = {"weight": replace(weight, requires_grad=True), "bias": replace(bias, requires_grad=True), "training": True, **more}
    return New(Global("__torch__.net", "Net"), (), state)


def debug_record(path: str = "net.py") -> bytes:
    """Source ranges of the code with a table of texts, as written since 1.12, but for one of each."""
    texts = ("", "  return F.linear(x, self.weight, self.bias)\n", path)
    ranges = ((0, (0, 0, 0), (0, 0)), (212, (1, 2, 7), (9, 40)))
    return dump(("FORMAT_WITH_STRING_TABLE", texts, ranges))


Table = tuple[str, object]


def function_tables(**changes: object) -> tuple[Table, ...]:
    """The tables of the method in bytecode.pkl."""
    tables: dict[str, object] = {
        "instructions": (
            ("STOREN", 1, 2), ("MOVE", 2, 0), ("LOAD", 1, 0), ("GET_ATTR", 0, 0), ("MOVE", 1, 0), ("GET_ATTR", 1, 0),
            ("OP", 0, 0), ("LOADC", 0, 0), ("OP", 1, 0), ("RET", 0, 0),
        ),
        "operators": (("aten::linear", "", 3), ("aten::mul", "Scalar", 2)),
        "constants": (2,),
        "types": (),
        "register_size": 2,
    }  # fmt: skip
    return tuple({**tables, **changes}.items())


def bytecode(version: int | None = 8, **changes: object) -> object:
    """The root of bytecode.pkl."""
    schema = (
        ("arguments", ((("name", "x"), ("type", "Tensor"), ("default_value", None)),)),
        ("returns", ((("name", ""), ("type", "Tensor"), ("default_value", None)),)),
    )
    method = ("__torch__.net.Net.forward", function_tables(**changes), schema)
    return (method[:2],) if version is None else (version, method)


@dataclass(frozen=True)
class Script:
    """An archive from its parts; each of them can be left away or made wrong."""

    value: object = None
    constants: object = (2,)
    code: tuple[tuple[str, str | bytes], ...] = (("code/__torch__/net.py", CODE),)
    debug: bool = True
    bytecode: object = None
    debug_path: str = "net.py"
    traced_inputs: object = None
    extra: tuple[Record, ...] = ()
    era: str = "2.1"
    constants_key: Callable[[str], str] = str
    """Key of a storage of constants.pkl in the pickle, from its number; the record is `constants/` and the number."""
    constants_record: Callable[[str], str] = str
    bytecode_key: Callable[[str], str] | None = None
    """The same for bytecode.pkl, where it differs."""

    def but(self, **changes: object) -> Script:
        """This archive with some things changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def records(self) -> list[Record]:
        """The records in the order of writing, all but the serialization id."""
        era = ERAS[self.era]
        pickle, storages = self._pickle(net() if self.value is None else self.value)
        objects = [*((f"data/{key}", storage.data) for key, storage in storages), ("data.pkl", pickle)]
        code: list[Record] = []
        for name, text in self.code:
            code.append((name, text.encode() if isinstance(text, str) else text))
            code += [(f"{name}.debug_pkl", debug_record(self.debug_path))] if self.debug else []
        pickle, storages = self._pickle(self.constants, self.constants_key)
        constants: list[Record] = [
            *((f"constants/{self.constants_record(str(number))}", storage.data) for number, (_, storage) in enumerate(storages)),
            ("constants.pkl", pickle),
        ]
        records = [*self.extra, *(code + constants + objects if self.era == "1.3" else objects + code + constants)]
        if self.bytecode is not None:
            records.append(("bytecode.pkl", self._pickle(self.bytecode, self.bytecode_key or self.constants_key)[0]))
        if self.traced_inputs is not None:
            pickle, storages = self._pickle(self.traced_inputs)
            records += [*((f"traced_inputs/{key}", b"") for key, _ in storages), ("traced_inputs.pkl", pickle)]
        version: Record = ("version", era.version)
        records = [version, *records] if era.version_first else [*records, version]
        return [*records, ("byteorder", b"little")] if era.byteorder else records

    def build(self, root: str = ROOT) -> bytes:
        """The file."""
        return pack(self.records(), root, self.era)

    def _pickle(self, value: object, key_of: Callable[[str], str] = str) -> tuple[bytes, list[tuple[str, Storage]]]:
        lowering = Lowering(key_of=lambda number: key_of(str(number)), view_metadata=ERAS[self.era].last_item)
        return dump(lowering.lower(value)), lowering.keyed


def pack(records: Sequence[Record], root: str = ROOT, era: str = "2.1") -> bytes:
    """Write records as the writer of an era does: code and debug records deflated where that makes sense."""
    rules = ERAS[era]
    deflate = [name for name, data in records if name.startswith("code/") and len(data) > 3]
    rows = with_serialization_id(records) if rules.byteorder else list(records)
    return archive(rows, root, deflate=deflate, time=TIME if rules.dated else 0, date=DATE if rules.dated else 0)


def json_records(
    *, debug: bool = False, attributes: bool = False, model: object = None, code: str = CODE, path: str = "net.py"
) -> list[Record]:
    """The records of an archive of 1.0 (1.2 with ``debug``), model.json last."""
    weight, bias = tensor([0.5, -1.0, 2.0, 0.25, 3.5, -4.0], (2, 3)), tensor([0.125, -0.125])
    records: list[Record] = [("version", b"1\n"), ("code/net.py", code.encode())]
    records += [("debug/net.pkl", dump(((0, (("", "", 0), 0, 0)), (63, (("x = 1\n", path, 11), 0, 4)))))] if debug else []
    records += [("attributes.pkl", dump([True]))] if attributes else []
    records += [("tensors/0", weight.storage.data), ("tensors/1", bias.storage.data)]
    stated = model_json(debug=debug, attributes=attributes) if model is None else model
    return [*records, ("model.json", stated if isinstance(stated, bytes) else json.dumps(stated).encode())]


def model_json(*, debug: bool = False, attributes: bool = False) -> dict[str, object]:
    """What model.json says of the linear layer."""
    module: dict[str, object] = {
        "torchscriptArena": {"key": "code/net.py"},
        "parameters": [
            {"isBuffer": False, "tensorId": "0", "name": "weight"},
            {"isBuffer": False, "tensorId": "1", "name": "bias"},
        ],
        "name": "net",
        "optimize": True,
    }
    if debug:
        module["torchscriptDebugArena"] = {"key": "debug/net.pkl"}
    if attributes:
        module["attributes"] = [{"type": "bool", "name": "training", "id": "0"}]
    tensors = [
        {"dims": dims, "offset": "0", "strides": strides, "requiresGrad": True, "dataType": "FLOAT",
         "data": {"key": f"tensors/{number}"}, "device": "cpu"}
        for number, (dims, strides) in enumerate(((["2", "3"], ["3", "1"]), (["2"], ["1"])))
    ]  # fmt: skip
    return {"protoVersion": "1", "mainModule": module, "producerName": "pytorch", "producerVersion": "1.0", "tensors": tensors}


def json_archive(records: Sequence[Record], root: str = ROOT) -> bytes:
    """An archive of 1.0 to 1.2: nothing deflated, dated."""
    return archive(records, root, time=TIME, date=DATE)


def one_number() -> Tensor:
    """A tensor with one number."""
    return tensor([7.0])

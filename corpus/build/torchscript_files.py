# SPDX-License-Identifier: Apache-2.0
"""TorchScript archives: good ones of each era, and one for each thing that can be wrong in them."""

from __future__ import annotations

import zipfile

from corpus.build import opcodes as op
from corpus.build.kit import eager, patch, recipe, rezip, take_apart, tensor
from corpus.build.pickle_kit import HEAD
from corpus.build.pickles import Call, Global, New
from corpus.build.script_kit import (
    CODE,
    DANGEROUS_CODE,
    PATH,
    Script,
    bytecode,
    function_tables,
    json_archive,
    json_records,
    model_json,
    net,
    one_number,
    pack,
)

GOOD = Script()
MOBILE = Script(bytecode=bytecode())
CALL = HEAD + op.global_("posix", "getcwd") + op.EMPTY_TUPLE + op.REDUCE + op.STOP


@recipe("torchscript/script-2.1-pass.pt")
def script_2_1() -> bytes:
    """As written since 2.1, with a file of the user in front."""
    return GOOD.but(extra=(("extra/labels.txt", b"cat,dog\n"),)).build()


@recipe("torchscript/traced-2.1-pass.pt")
def traced_2_1() -> bytes:
    """A trace: a tensor among the constants, and inputs whose storage was left empty by the writer."""
    return GOOD.but(constants=(one_number(),), traced_inputs=({"forward": (tensor([1.0, 2.0, 3.0]),)},)).build()


@recipe("torchscript/script-1.6-pass.pt")
def script_1_6() -> bytes:
    """1.6 to 2.0: no byte order."""
    return GOOD.but(era="1.6").build()


@recipe("torchscript/script-1.4-pass.pt")
def script_1_4() -> bytes:
    """1.4: the version first, ids of storages with six items."""
    return GOOD.but(era="1.4").build()


@recipe("torchscript/script-1.3-pass.pt")
def script_1_3() -> bytes:
    """1.3: code in front of the data, records with a date."""
    return GOOD.but(era="1.3").build()


@recipe("torchscript/model-json-1.0-pass.pt")
def json_1_0() -> bytes:
    """1.0: no pickle at all."""
    return json_archive(json_records())


@recipe("torchscript/model-json-1.2-pass.pt")
def json_1_2() -> bytes:
    """1.2: attributes and debug records."""
    return json_archive(json_records(debug=True, attributes=True))


@recipe("torchscript/mobile-2.1-pass.ptl")
def mobile_2_1() -> bytes:
    """For the mobile interpreter; the constant tensor is named as such archives do."""
    constants = (one_number(),)
    code = bytecode(constants=(2, one_number()))
    mobile = MOBILE.but(constants=constants, bytecode=code, constants_key=lambda number: f"{number}.storage")
    return mobile.but(constants_record=lambda number: f"{number}.storage").build()


@recipe("torchscript/mobile-1.9-pass.ptl")
def mobile_1_9() -> bytes:
    """Bytecode of version 5; it names the constant with its folder."""
    code = bytecode(5, constants=(2, one_number()), operators=(("aten::linear", ""), ("aten::mul", "Scalar")))
    return MOBILE.but(
        era="1.6", constants=(one_number(),), bytecode=code, constants_key=lambda number: f"constants/{number}"
    ).build()


@recipe("torchscript/class-with-code-elsewhere-pass.pt")
def class_elsewhere() -> bytes:
    """A module that was handed to a backend has its code below torch.jit."""
    value = New(Global("torch.jit", "netLoweredModule"), (), {"net": net(), "processed": 1})
    code = CODE.replace("class Net", "class netLoweredModule")
    return GOOD.but(value=value, code=(*GOOD.code, ("code/torch/jit.py", code))).build()


@recipe("torchscript/record-missing-constants.pt")
def no_constants() -> bytes:
    """No constants.pkl: torch.load would take it for a file of torch.save."""
    return pack([row for row in GOOD.records() if row[0] != "constants.pkl"])


@recipe("torchscript/record-missing-code.pt")
def no_code() -> bytes:
    """No code at all; a mobile archive is known by its bytecode."""
    value = {"weight": tensor([1.0]), "bias": tensor([1.0])}
    return MOBILE.but(value=value, code=()).build()


@recipe("torchscript/class-without-code.pt")
def class_without_code() -> bytes:
    """The object has a class of another module, and the code asks for a function that is nowhere."""
    code = CODE.replace("torch.mul(_0, ", "__torch__.torch.nn.functional.scale(_0, ")
    value = net(inner=New(Global("__torch__.other", "Inner"), (), {"training": False}))
    return GOOD.but(value=value, code=(("code/__torch__/net.py", code),)).build()


@recipe("torchscript/class-without-code-in-file.pt")
def class_not_in_file() -> bytes:
    """The code file is there, and defines another class."""
    return GOOD.but(code=(("code/__torch__/net.py", CODE.replace("class Net(", "class Met(")),)).build()


@recipe("torchscript/code-not-text.pt")
def code_not_text() -> bytes:
    """A byte of the code that is no UTF-8; the record is stored, so that its place is told."""
    code = CODE.encode().replace(b"torch.linear", b"torch.\xffinear")
    return pack_stored(GOOD.but(code=(("code/__torch__/net.py", code),)))


def pack_stored(script: Script) -> bytes:
    """An archive of 1.2's time would store code; torch reads it all the same."""
    archive = take_apart(script.build())
    member, records = archive.member(b"net.py"), dict(script.records())
    member.payload = records["code/__torch__/net.py"]
    assert member.local is not None and member.central is not None
    member.local.method = member.central.method = 0
    member.local.version_needed = member.central.version_needed = 0
    size = len(member.payload)
    member.central.compressed_size = size
    member.descriptor = member.descriptor[:8] + size.to_bytes(4, "little") * 2
    return archive.build()


@recipe("torchscript/record-deflated.pt")
def record_deflated() -> bytes:
    """Packed again by a tool that deflates everything."""
    return rezip(GOOD.build(), zipfile.ZIP_DEFLATED)


@recipe("torchscript/record-deflated-1.0.pt")
def record_deflated_json() -> bytes:
    """An archive of 1.0 with deflated code: torch deflates it since 1.3 only."""
    return rezip(json_archive(json_records()), zipfile.ZIP_DEFLATED)


@recipe("torchscript/bytecode-version-unknown.ptl")
def bytecode_version() -> bytes:
    """Bytecode of version 99."""
    return MOBILE.but(bytecode=bytecode(99)).build()


@recipe("torchscript/bytecode-version-of-flatbuffers.ptl")
def bytecode_nine() -> bytes:
    """Bytecode of version 9, which torch writes in FlatBuffers only."""
    return MOBILE.but(bytecode=bytecode(9)).build()


@recipe("torchscript/bytecode-without-version.ptl")
def bytecode_without() -> bytes:
    """1.5: the bytecode begins with a function."""
    operators = (("aten::linear", ""), ("aten::mul", "Scalar"))
    return MOBILE.but(era="1.5", bytecode=bytecode(None, operators=operators)).build()


@recipe("torchscript/bytecode-malformed-instruction.ptl")
def bytecode_instruction() -> bytes:
    """An operator of number 7, a register of number 5, and an opcode that does not exist."""
    rows = (("STOREN", 1, 2), ("OP", 7, 0), ("MOVE", 5, 0), ("SYSCALL", 0, 0), ("RET", 0, 0))
    return MOBILE.but(bytecode=bytecode(instructions=rows)).build()


@recipe("torchscript/bytecode-malformed-tables.ptl")
def bytecode_tables() -> bytes:
    """The function has no operators and no number of registers; a second one is only a name."""
    tables = tuple(row for row in function_tables() if row[0] not in ("operators", "register_size"))
    return MOBILE.but(bytecode=(8, ("__torch__.net.Net.forward", tables), ("__torch__.net.Net.other",))).build()


@recipe("torchscript/global-foreign.pt")
def global_foreign() -> bytes:
    """A call in the constants that torch.jit.load cannot resolve and torch.load would run."""
    return GOOD.but(constants=(Call(Global("posix", "getcwd")),)).build()


@recipe("torchscript/model-json-unreadable.pt")
def json_unreadable() -> bytes:
    """model.json breaks off."""
    return json_archive(json_records(model=b'{"mainModule": {"name": "net", '))


@recipe("torchscript/model-json-unreadable-numbers.pt")
def json_numbers() -> bytes:
    """A parameter is tensor 5 of two."""
    model = model_json()
    module = model["mainModule"]
    assert isinstance(module, dict)
    module["parameters"].append({"isBuffer": False, "tensorId": "5", "name": "scale"})
    return json_archive(json_records(model=model))


@recipe("torchscript/model-json-tensor-missing.pt")
def json_tensor_missing() -> bytes:
    """The second tensor has no record, the first is said to have ten rows."""
    model = model_json()
    tensors = model["tensors"]
    assert isinstance(tensors, list)
    tensors[0]["dims"] = ["10", "3"]
    return json_archive([row for row in json_records(model=model) if row[0] != "tensors/1"])


@recipe("torchscript/model-json-record-missing.pt")
def json_record_missing() -> bytes:
    """The debug record and the attributes that model.json names are not there."""
    model = model_json(debug=True, attributes=True)
    return json_archive(json_records(model=model))


@recipe("torchscript/storage-in-other-folder.pt")
def storage_elsewhere() -> bytes:
    """The storage of a constant lies among those of the object."""
    records = GOOD.but(constants=(one_number(),)).records()
    return pack([("data/9" if name == "constants/0" else name, data) for name, data in records])


@recipe("torchscript/code-operator-dangerous.pt")
def code_dangerous() -> bytes:
    """The code maps a file of the reader's machine."""
    return GOOD.but(code=(("code/__torch__/net.py", DANGEROUS_CODE),)).build()


@recipe("torchscript/code-operator-dangerous-renamed.pt")
def code_renamed() -> bytes:
    """The same by another name, with blanks around the dots, and through a library; the comment and the text are harmless."""
    lines = (
        "# torch.save(x)",
        't = "torch.save"',
        "f = torch . from_file",
        'g = ops.image.read_file("a")',
        'return f("b", False, 4)',
    )
    body = "".join(f"    {line}\n" for line in lines)
    code = CODE.replace("    return torch.mul(_0, CONSTANTS.c0)\n", body)
    return GOOD.but(code=(("code/__torch__/net.py", code),)).build()


@recipe("torchscript/code-operator-dangerous-1.0.pt")
def code_dangerous_json() -> bytes:
    """The same in an archive of 1.0."""
    return json_archive(json_records(code=DANGEROUS_CODE))


@recipe("torchscript/code-operator-dangerous-bytecode.ptl")
def bytecode_dangerous() -> bytes:
    """The bytecode writes a file; the code beside it does not."""
    return MOBILE.but(bytecode=bytecode(operators=(("aten::linear", "", 3), ("aten::save", "", 2)))).build()


@recipe("torchscript/path-of-author.pt")
def path_of_author() -> bytes:
    """The debug record names a file on the machine of the author."""
    return GOOD.but(debug_path=PATH).build()


@recipe("torchscript/path-of-author-1.2.pt")
def path_of_author_json() -> bytes:
    """The same in an archive of 1.2: nothing is deflated, so the place is told exactly."""
    return json_archive(json_records(debug=True, attributes=True, path=PATH))


@recipe("torchscript/extra-file-pickle.pt")
def extra_pickle() -> bytes:
    """A file of the user that travels along is a pickle with a call."""
    return GOOD.but(extra=(("extra/notes.bin", CALL),)).build()


@recipe("torchscript/extra-file-torch.pt")
def extra_torch() -> bytes:
    """A file of the user that travels along is a torch file with a call in it."""
    return GOOD.but(extra=(("extra/more.pt", eager({"x": Call(Global("posix", "getcwd"))})),)).build()


@recipe("torchscript/extra-file-native.pt")
def extra_native() -> bytes:
    """A file of the user that travels along is a library."""
    return GOOD.but(extra=(("extra/plugin", b"\x7fELF\x02\x01\x01" + bytes(57)),)).build()


@recipe("torchscript/extra-file-torch-pass.pt")
def extra_torch_good() -> bytes:
    """A torch file travels along; that it is broken touches nothing but itself."""
    return GOOD.but(extra=(("extra/more.pt", patch(eager({"x": tensor([1.0])}), -22, b"XX")),)).build()


@recipe("torchscript/big-endian-lengths.pt")
def big_endian_lengths() -> bytes:
    """As 1.13 wrote on s390x: the lengths in data.pkl are the wrong way round."""
    records = GOOD.but(era="1.6").records()
    turned = dict(records)["data.pkl"].replace(b"X\x06\0\0\0weight", b"X\0\0\0\x06weight", 1)
    return pack([(name, turned if name == "data.pkl" else data) for name, data in records], era="1.6")


@recipe("torchscript/enumeration-without-tuple.pt")
def enumeration() -> bytes:
    """A value of an enumeration as torch's own pickler writes it: REDUCE gets the number itself, not a tuple."""
    code = CODE + "class Color(Enum):\n  RED = 1\n"
    pickle = HEAD + op.integer(2) + op.global_("__torch__.net", "Color") + op.integer(1) + op.REDUCE + op.TUPLE2 + op.STOP
    records = GOOD.but(code=(("code/__torch__/net.py", code),)).records()
    return pack([(name, pickle if name == "constants.pkl" else data) for name, data in records])

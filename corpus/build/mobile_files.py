# SPDX-License-Identifier: Apache-2.0
"""Mobile modules in FlatBuffers form, and ExecuTorch programs as far as their header goes."""

from __future__ import annotations

import struct
from dataclasses import replace

from corpus.build import opcodes as op
from corpus.build.flatbuffer_kit import INSTRUCTIONS, SOURCE, TENSORS, Mobile, MobileTensor
from corpus.build.kit import cut, patch, recipe, replace_once
from corpus.build.pickle_kit import HEAD

GOOD = Mobile()
WEIGHT, BIAS = TENSORS
CALL = HEAD + op.global_("posix", "getcwd") + op.EMPTY_TUPLE + op.REDUCE + op.STOP


@recipe("mobile/module-pass.ptl")
def module_pass() -> bytes:
    """A linear layer whose result is doubled; torch 2.13 loads and runs it."""
    return GOOD.build()


@recipe("mobile/module-of-old-pass.ff")
def module_of_old() -> bytes:
    """As the first converters wrote it: bytecode version 4, no debug handles, a file of the user inside."""
    return GOOD.but(bytecode_version=4, operator_version=2, handles=(), extra_files=(("note.txt", b"hello"),)).build()


@recipe("mobile/layout-broken-cut.ptl")
def layout_cut() -> bytes:
    """The last 16 bytes are gone."""
    return cut(GOOD.build(), -16)


@recipe("mobile/layout-broken-offset.ptl")
def layout_offset() -> bytes:
    """The root offset leads behind the end."""
    return patch(GOOD.build(), 0, struct.pack("<I", 0x10000))


@recipe("mobile/layout-broken-overlap.ptl")
def layout_overlap() -> bytes:
    """The strides of the weight begin within its sizes."""
    data = GOOD.build()
    strides = data.index(struct.pack("<6I", 2, 3, 1, 2, 2, 3))
    pointer = max(place for place in range(0, strides, 4) if place + struct.unpack_from("<I", data, place)[0] == strides)
    return patch(data, pointer, struct.pack("<I", strides + 16 - pointer))


@recipe("mobile/layout-broken-text.ptl")
def layout_text() -> bytes:
    """A byte of the source is no UTF-8."""
    return replace_once(GOOD.build(), b"torch.mul(_0", b"torch.m\xffl(_0")


@recipe("mobile/layout-broken-union.ptl")
def layout_union() -> bytes:
    """The constant has lost its type: a value is there, and nothing says what it is."""
    data = GOOD.build()
    return patch(data, data.rindex(struct.pack("<q", 2)) - 5, b"\x00")


@recipe("mobile/stray-bytes.ptl")
def stray_bytes() -> bytes:
    """A pickle that calls something lies between the parts."""
    return GOOD.but(hidden=CALL).build()


@recipe("mobile/index-wrong-value.ptl")
def index_value() -> bytes:
    """The method takes value 99 for its constant."""
    return GOOD.but(constant_index=99).build()


@recipe("mobile/index-wrong-kind.ptl")
def index_kind() -> bytes:
    """The method of the module is its weight."""
    return GOOD.but(methods=(3,)).build()


@recipe("mobile/index-wrong-type.ptl")
def index_type() -> bytes:
    """The object is of type 4, and there is one type."""
    return GOOD.but(type_index=4).build()


@recipe("mobile/index-wrong-storages.ptl")
def index_storages() -> bytes:
    """The module states three storages and holds one; its bias lies in storage 5."""
    return GOOD.but(stated_storages=3, tensors=(WEIGHT, replace(BIAS, storage=5))).build()


@recipe("mobile/index-wrong-attributes.ptl")
def index_attributes() -> bytes:
    """The type has three attributes, its object two."""
    names = ("weight", "bias", "forward")
    return GOOD.but(attribute_names=names).build()


@recipe("mobile/tensor-outside-storage.ptl")
def tensor_outside() -> bytes:
    """A weight of four rows in a storage of two."""
    return GOOD.but(tensors=(replace(WEIGHT, sizes=(4, 3)), BIAS)).build()


@recipe("mobile/bytecode-version.ptl")
def bytecode_version() -> bytes:
    """Bytecode of version 12."""
    return GOOD.but(bytecode_version=12).build()


@recipe("mobile/instruction-wrong-opcode.ptl")
def instruction_opcode() -> bytes:
    """An opcode of full TorchScript: FORK."""
    return GOOD.but(instructions=(*INSTRUCTIONS[:6], (46, 0, 0), *INSTRUCTIONS[6:])).build()


@recipe("mobile/instruction-wrong-register.ptl")
def instruction_register() -> bytes:
    """A register beyond those that the method asks for."""
    return GOOD.but(instructions=(INSTRUCTIONS[0], ("MOVE", 3, 0), *INSTRUCTIONS[2:])).build()


@recipe("mobile/instruction-wrong-jump.ptl")
def instruction_jump() -> bytes:
    """A jump behind the last instruction; the last one is no RET."""
    return GOOD.but(instructions=(*INSTRUCTIONS[:-1], ("JMP", 5, 0))).build()


@recipe("mobile/layout-unusual.ptl")
def layout_unusual() -> bytes:
    """Operators of version 77, and a hole of 64 zero bytes."""
    return GOOD.but(operator_version=77, hidden=bytes(64)).build()


@recipe("mobile/name-unusual.ptl")
def name_unusual() -> bytes:
    """The class is called Met in the module, Net in the source; and an operator has a blank in its name."""
    operators = (("aten::lin ear", "", 3), ("aten::mul", "Scalar", 2))
    return GOOD.but(class_name="__torch__.net.Met", operators=operators).build()


@recipe("mobile/name-unusual-control.ptl")
def name_control() -> bytes:
    """A control character in the source."""
    return GOOD.but(source=SOURCE.replace("return torch", "return\x01torch")).build()


@recipe("mobile/part-unused.ptl")
def part_unused() -> bytes:
    """A number that nothing refers to, a register too many, and a debug handle out of line."""
    return GOOD.but(spare_value=True, registers=3, handles=(*range(40, 49), 70)).build()


@recipe("mobile/code-operator-dangerous.ptl")
def code_operator() -> bytes:
    """The bytecode writes a file; its source says so, too."""
    source = SOURCE.replace("torch.mul(_0, 2)", "torch.save(_0, 2)")
    return GOOD.but(operators=(("aten::linear", "", 3), ("aten::save", "", 2)), source=source).build()


@recipe("mobile/hidden-pickle-in-extra-file.ptl")
def extra_file() -> bytes:
    """A file of the user that travels along is a pickle, with a call."""
    return GOOD.but(extra_files=(("note.bin", CALL),)).build()


@recipe("mobile/many-tensors-pass.ptl")
def many_tensors() -> bytes:
    """Two tensors share a storage, one of them from an offset on; a third is a single number."""
    shared = MobileTensor("weight", (1.0, 2.0, 3.0, 4.0), (2,), (2,), offset=1)
    same = MobileTensor("view", (), (2,), (1,), storage=0)
    single = MobileTensor("bias", (7.0,), (), ())
    source = SOURCE.replace("  bias : Tensor\n", "  bias : Tensor\n  view : Tensor\n")
    names = ("weight", "view", "bias")
    return GOOD.but(tensors=(shared, same, single), attribute_names=names, source=source).build()


def program(size: int, segments: int = 0, *, root: int = 32, header: int = 24, length: int = 96) -> bytes:
    """An ExecuTorch program: root offset, identifier, extended header, and bytes that stand for the rest."""
    head = struct.pack("<I4s4sIQQ", root, b"ET12", b"eh00", header, size, segments)
    return head.ljust(length, b"\x01")


@recipe("mobile/executorch-header.pte")
def executorch_header() -> bytes:
    """The header states more bytes than the file has."""
    return program(4096)


@recipe("mobile/executorch-header-good.pte")
def executorch_good() -> bytes:
    """A header that fits; the layout behind it is not read, so the verdict stays open."""
    return program(64, 64)

# SPDX-License-Identifier: Apache-2.0
"""Mobile modules in FlatBuffers form, laid out as torch's builder does it (format.md 3.6), from plain descriptions.

A FlatBuffer is written from its end to its front: what is written later lies lower. Places are counted from the end, so
that they hold while more is put in front.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

SIZES = {"<b": 1, "<B": 1, "<?": 1, "<I": 4, "<i": 4, "<d": 8}
"""struct code of a scalar: its size."""
IDENTIFIER = b"PTMF"
FLOAT = 6
"""torch's ScalarType number of float32."""
NONE, INT, BOOL, DOUBLE, TENSOR, STRING, LIST, OBJECT, FUNCTION = 0, 1, 2, 3, 5, 6, 7, 10, 16
"""Values of IValue.type."""
STORAGE_ALIGNMENT = 16


@dataclass(frozen=True)
class Scalar:
    """A field of a table that is left out where it has its default."""

    code: str
    value: float
    default: float = 0


@dataclass(frozen=True)
class Offset:
    """A field that refers to another part; ``target`` 0 leaves it out."""

    target: int


Slot = Scalar | Offset | None


class Builder:
    """Writes the parts of one buffer; every method returns the place of the part, counted from the end."""

    def __init__(self) -> None:
        self._data = bytearray()  # in reverse: the last byte of the file first
        self._alignment = 4
        self._vtables: dict[bytes, int] = {}
        self._texts: dict[bytes, int] = {}

    def _align(self, size: int, ahead: int = 0) -> None:
        """Fill up so that after ``ahead`` more bytes the place is a multiple of ``size``."""
        self._alignment = max(self._alignment, size)
        self._data += bytes(-(len(self._data) + ahead) % size)

    def _push(self, data: bytes) -> None:
        self._data += data[::-1]

    def _refer(self, target: int) -> None:
        self._align(4)
        self._push(struct.pack("<I", len(self._data) + 4 - target))

    def text(self, value: str | bytes, *, shared: bool = True) -> int:
        """A text with its length and a closing zero; equal ones are shared."""
        data = value.encode() if isinstance(value, str) else value
        if shared and data in self._texts:
            return self._texts[data]
        self._align(4, len(data) + 1)
        self._push(data + b"\0")
        self._push(struct.pack("<I", len(data)))
        place = len(self._data)
        if shared:
            self._texts[data] = place
        return place

    def vector(self, code: str, values: Sequence[float], alignment: int | None = None) -> int:
        """A vector of scalars."""
        data = b"".join(struct.pack(f"<{code}", value) for value in values)
        return self.raw_vector(data, len(values), alignment or struct.calcsize(f"<{code}"))

    def raw_vector(self, data: bytes, count: int, alignment: int) -> int:
        """A vector of ``count`` items with these bytes."""
        self._align(4, len(data))
        self._align(alignment, len(data))
        self._push(data)
        self._align(4)
        self._push(struct.pack("<I", count))
        return len(self._data)

    def force_alignment(self, length: int, alignment: int) -> None:
        """Fill up for a vector of ``length`` bytes that has to begin at a multiple of ``alignment``."""
        self._align(alignment, length)

    def offsets(self, targets: Sequence[int]) -> int:
        """A vector of parts."""
        self._align(4, 4 * len(targets))
        for target in reversed(targets):
            self._refer(target)
        self._push(struct.pack("<I", len(targets)))
        return len(self._data)

    def structure(self, data: bytes, alignment: int) -> int:
        """A struct that stands on its own, as the value of a union."""
        self._align(alignment)
        self._push(data)
        return len(self._data)

    def table(self, *slots: Slot) -> int:
        """A table; slots in the order of the schema. Large fields are written first, and of equal ones the last."""
        start, places = len(self._data), [0] * len(slots)
        order = sorted(range(len(slots)), key=lambda index: (-_size_of(slots[index]), -index))
        for index in order:
            slot = slots[index]
            if isinstance(slot, Scalar) and slot.value != slot.default:
                self._align(SIZES[slot.code])
                self._push(struct.pack(slot.code, slot.value))
                places[index] = len(self._data)
            elif isinstance(slot, Offset) and slot.target:
                self._refer(slot.target)
                places[index] = len(self._data)
        self._align(4)
        self._push(bytes(4))
        place = len(self._data)
        while places and not places[-1]:
            places.pop()
        rows = [place - row if row else 0 for row in places]
        vtable = struct.pack(f"<HH{len(rows)}H", 4 + 2 * len(rows), place - start, *rows)
        known = self._vtables.get(vtable)
        if known is None:
            self._push(vtable)
            known = self._vtables[vtable] = len(self._data)
        self._data[place - 4 : place] = struct.pack("<i", known - place)[::-1]
        return place

    def finish(self, root: int) -> bytes:
        """Put root offset and identifier in front and return the file."""
        self._align(self._alignment, 8)
        self._push(IDENTIFIER)
        self._refer(root)
        return bytes(self._data[::-1])


def _size_of(slot: Slot) -> int:
    return SIZES[slot.code] if isinstance(slot, Scalar) else 4 if isinstance(slot, Offset) else 0


@dataclass(frozen=True)
class MobileTensor:
    """An attribute of the module."""

    name: str
    values: tuple[float, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    storage: int | None = None
    """The number of its storage where it has none of its own."""
    scalar_type: int = FLOAT
    offset: int = 0
    requires_grad: bool = False


SOURCE = (
    "class Net(Module):\n"
    '  __parameters__ = ["weight", "bias", ]\n'
    "  __buffers__ = []\n"
    "  weight : Tensor\n"
    "  bias : Tensor\n"
    "  def forward(self: __torch__.net.Net,\n"
    "    x: Tensor) -> Tensor:\n"
    "    _0 = torch.linear(x, self.weight, self.bias)\n"
    "    return torch.mul(_0, 2)\n"
)
OPCODES = {"OP": 0, "LOAD": 2, "MOVE": 3, "STOREN": 4, "STORE": 5, "LOADC": 8, "JF": 9, "JMP": 10, "RET": 12, "GET_ATTR": 21}
Instruction = tuple[str | int, int, int]
"""Opcode, X, N."""
INSTRUCTIONS: tuple[Instruction, ...] = (
    ("STOREN", 1, 2), ("MOVE", 2, 0), ("LOAD", 1, 0), ("GET_ATTR", 0, 0), ("MOVE", 1, 0), ("GET_ATTR", 1, 0), ("OP", 0, 0),
    ("LOADC", 0, 0), ("OP", 1, 0), ("RET", 0, 0),
)  # fmt: skip
TENSORS = (
    MobileTensor("weight", (0.5, -1.0, 2.0, 0.25, 3.5, -4.0), (2, 3), (3, 1), requires_grad=True),
    MobileTensor("bias", (0.125, -0.125), (2,), (1,)),
)


@dataclass(frozen=True)
class Mobile:
    """A module with one class, some tensors and one method; every number in it can be made wrong."""

    tensors: tuple[MobileTensor, ...] = TENSORS
    instructions: tuple[Instruction, ...] = INSTRUCTIONS
    operators: tuple[tuple[str, str, int], ...] = (("aten::linear", "", 3), ("aten::mul", "Scalar", 2))
    source: str | bytes = SOURCE
    source_name: str = "__torch__.net"
    class_name: str = "__torch__.net.Net"
    method: str = "forward"
    attribute_names: tuple[str, ...] | None = None
    registers: int = 2
    handles: tuple[int, ...] | None = None
    bytecode_version: int = 9
    operator_version: int = 1
    stated_storages: int | None = None
    state: int | None = None
    methods: tuple[int, ...] | None = None
    constant_index: int | None = None
    type_index: int = 0
    extra_files: tuple[tuple[str, bytes], ...] = ()
    spare_value: bool = False
    """Whether a value stands there that nothing refers to."""
    hidden: bytes = b""
    """Bytes that no part owns."""

    def but(self, **changes: object) -> Mobile:
        """This module with some things changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def build(self) -> bytes:
        """The file."""
        return _Writer(self, Builder()).write()


@dataclass
class _Writer:
    module: Mobile
    b: Builder
    values: list[int] = field(default_factory=list)
    types: list[int] = field(default_factory=list)

    def value(self, kind: int, target: int) -> int:
        """Enter a value and return its number."""
        self.values.append(self.b.table(Scalar("<B", kind), Offset(target)))
        return len(self.values) - 1

    def write(self) -> bytes:
        """All parts in the order in which torch writes them."""
        module, b = self.module, self.b
        self.value(NONE, 0)
        function = self.value(FUNCTION, self._function())
        methods = b.vector("I", module.methods if module.methods is not None else (function,))
        state = self.value(OBJECT, self._object())
        if module.spare_value:
            self.value(INT, b.structure(struct.pack("<q", 7), 8))
        extra = self._files(module.extra_files)
        sources = self._files(((module.source_name, module.source),) if module.source else ())
        if module.hidden:
            b.structure(module.hidden, 4)
        storages = self._storages()
        constants = b.vector("I", ())
        types = b.offsets(self.types)
        data = b.offsets(storages)
        stated = len(storages) if module.stated_storages is None else module.stated_storages
        values = b.offsets(self.values)
        root = b.table(
            Scalar("<I", module.bytecode_version), Offset(extra), Offset(methods),
            Scalar("<I", state if module.state is None else module.state), Offset(values), Scalar("<i", stated), Offset(data),
            Offset(types), Offset(sources), Offset(constants), Scalar("<I", module.operator_version),
            Scalar("<I", len(self.values)),
        )  # fmt: skip
        return b.finish(root)

    def _function(self) -> int:
        module, b = self.module, self.b
        operators = [
            b.table(Offset(b.text(name)), Offset(b.text(overload)), Scalar("<i", count, -1))
            for name, overload, count in module.operators
        ]
        constant = self.value(INT, b.structure(struct.pack("<q", 2), 8))
        schema = self._schema()
        self._class()
        rows = module.instructions
        handles = module.handles if module.handles is not None else tuple(range(40, 40 + len(rows)))
        debug = b.table(Offset(b.vector("q", handles)))
        name = b.text(f"{module.class_name}.{module.method}", shared=False)
        code = b"".join(struct.pack("<BBHi", _number(opcode), 0, number, operand) for opcode, operand, number in rows)
        instructions = b.raw_vector(code, len(rows), 4)
        listed = b.offsets(operators)
        constants = b.vector("I", (constant if module.constant_index is None else module.constant_index,))
        types = b.offsets(())
        return b.table(
            Offset(name), Offset(instructions), Offset(listed), Offset(constants), Offset(types),
            Scalar("<i", module.registers), Offset(schema), Offset(debug), Scalar("<I", 0),
        )  # fmt: skip

    def _schema(self) -> int:
        b = self.b
        rows = ((("self", self.module.class_name), ("x", "Tensor")), (("", "Tensor"),))
        made = [[b.table(Offset(b.text(name)), Offset(b.text(kind)), Scalar("<I", 0)) for name, kind in row] for row in rows]
        return b.table(*(Offset(b.offsets(row)) for row in made))

    def _class(self) -> None:
        module, b = self.module, self.b
        names = module.attribute_names or tuple(tensor.name for tensor in module.tensors)
        attributes = b.offsets([b.text(name) for name in names])
        name = b.text(module.class_name, shared=False)
        self.types.append(b.table(Offset(name), Scalar("<B", 1), Offset(attributes)))

    def _object(self) -> int:
        numbers, own = [], 0
        for tensor in self.module.tensors:
            numbers.append(self.value(TENSOR, self._tensor(own, tensor)))
            own += tensor.storage is None
        attributes = self.b.vector("I", numbers)
        return self.b.table(Scalar("<I", self.module.type_index), Scalar("<I", 0), Offset(attributes), Scalar("<I", 0))

    def _tensor(self, number: int, tensor: MobileTensor) -> int:
        b = self.b
        sizes, strides = b.vector("i", tensor.sizes), b.vector("i", tensor.strides)
        return b.table(
            Scalar("<I", number if tensor.storage is None else tensor.storage), Scalar("<b", tensor.scalar_type),
            Scalar("<i", tensor.offset), Offset(sizes), Offset(strides), Scalar("<?", tensor.requires_grad), None,
        )  # fmt: skip

    def _files(self, files: Sequence[tuple[str, str | bytes]]) -> int:
        b = self.b
        made = [(b.text(name), b.text(content, shared=False)) for name, content in files]
        return b.offsets([b.table(Offset(name), Offset(content)) for name, content in made])

    def _storages(self) -> list[int]:
        made = []
        for tensor in self.module.tensors:
            if tensor.storage is not None:
                continue
            data = struct.pack(f"<{len(tensor.values)}f", *tensor.values)
            self.b.force_alignment(len(data), STORAGE_ALIGNMENT)
            made.append(self.b.table(Offset(self.b.raw_vector(data, len(data), 1))))
        return made


def _number(opcode: str | int) -> int:
    return OPCODES[opcode] if isinstance(opcode, str) else opcode

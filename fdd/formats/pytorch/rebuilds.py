# SPDX-License-Identifier: Apache-2.0
"""Reads the calls that rebuild tensors (format.md 2.4) and states every argument that is not what its place takes."""

from __future__ import annotations

from collections.abc import Callable

from fdd.formats.pytorch.document import Mismatch, PickleRecord
from fdd.formats.pytorch.persistent_ids import PersistentIdReader, int64_of, text_of
from fdd.formats.pytorch.pickle_values import (
    array_shape,
    attribute_names,
    call_target,
    device_name,
    dtype_of,
    int_of,
    is_empty_dict,
    kind_of,
    layout_name,
    size_of,
)
from fdd.pickles.nodes import ByteArrayNode, Call, DictNode, Global, ListNode, PersistentId, SetNode, Value
from fdd.tensors.dtypes import DType
from fdd.tensors.model import Quantizer, Storage, Tensor
from fdd.tensors.nested import nested_faults

TENSOR_METADATA_KEYS = frozenset({"conj", "neg"})
DEEPEST_WRAPPING = 100
"""Tensors rebuilt from arguments for the rebuilding of others: real files wrap two or three times; torch itself calls
one function from the other and ends at some hundreds."""
SPARSE_PARTS: dict[str, tuple[str, ...]] = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
"""Layout -> the tensors it is made of, in the order of the arguments."""


class TensorReader:
    """Turns the rebuild calls of one pickle into tensors. Each call is read once, whatever refers to it."""

    def __init__(self, pickle: PickleRecord, ids: PersistentIdReader) -> None:
        self.mismatches: list[Mismatch] = []
        self.tensors: list[Tensor] = []
        """All tensors made, in the order of reading; those too that never reach the object."""
        self.names: dict[int, str] = {}
        """id() of a call that should make a tensor and makes none -> the name of its place."""
        self._pickle = pickle
        self._ids = ids
        self._known: dict[int, Tensor | None] = {}
        self._calls: list[Call] = []
        """The call of each mismatch."""
        self._unwrapped: list[Call] = []
        """Calls made here, kept so that none of their identities is given to another one."""
        self._level = 0

    def read(self, value: Value) -> Tensor | None:
        """The tensor that ``value`` makes, None where it makes none."""
        if isinstance(value, PersistentId) or not isinstance(value, Call):
            return None
        if id(value) not in self._known:
            self._known[id(value)] = None  # a call that holds itself is no tensor
            target = call_target(value)
            reader = _READERS.get(target) if target is not None else None
            if reader is not None and self._level >= DEEPEST_WRAPPING:
                self._state(value, "argument-type", f"a tensor wrapped more than {DEEPEST_WRAPPING} times")
            elif reader is not None and isinstance(value.args, tuple):
                self._level += 1
                tensor = reader(self, value, value.args)
                self._level -= 1
                if tensor is not None and tensor.offset is None:
                    tensor.offset = self._pickle.place(value.offset).offset
                    self.tensors.append(tensor)
                self._known[id(value)] = tensor
        return self._known[id(value)]

    def name_mismatches(self, owners: dict[int, str]) -> None:
        """Tell each mismatch its tensor. ``owners``: id() of every named tensor and of its parts -> the name."""
        for call, mismatch in zip(self._calls, self.mismatches, strict=True):
            tensor = self._known.get(id(call))
            mismatch.tensor = self.names.get(id(call)) if tensor is None else owners.get(id(tensor))

    # What follows reads one family of calls each.

    def _state(self, call: Call, code: str, detail: str) -> None:
        target = call_target(call)
        function = ".".join(target) if target else "?"
        self._calls.append(call)
        self.mismatches.append(Mismatch(code, self._pickle.place(call.offset), self._pickle.record, function, detail))

    def _count(self, call: Call, least: int, most: int) -> bool:
        if least <= len(call.args) <= most:
            return True
        self._state(
            call, "argument-count", f"{len(call.args)} arguments instead of {least}" + (f" to {most}" if most > least else "")
        )
        return False

    def _storage(self, call: Call, value: Value) -> Storage | None:
        if isinstance(value, PersistentId):
            return self._ids.read(value)
        self._state(call, "argument-type", f"{kind_of(value)} where a storage belongs")
        return None

    def _numbers(self, call: Call, value: Value, what: str) -> tuple[int, ...] | None:
        numbers = size_of(value)
        if numbers is None:
            self._state(call, "argument-type", f"{kind_of(value)} where the {what} belongs")
        elif any(int64_of(number) is None for number in numbers):
            self._state(call, "overflow", f"a number beyond 64 bits in the {what}")
            return None
        return numbers

    def _number(self, call: Call, value: Value, what: str) -> int | None:
        if int_of(value) is None:
            self._state(call, "argument-type", f"{kind_of(value)} where the {what} belongs")
        elif int64_of(value) is None:
            self._state(call, "overflow", f"a number beyond 64 bits as {what}")
        return int64_of(value)

    def _flag(self, call: Call, value: Value) -> bool | None:
        if isinstance(value, bool):
            return value
        self._state(call, "requires-grad", f"{kind_of(value)} as requires_grad")
        return None

    def _hooks(self, call: Call, value: Value) -> None:
        if value is None:
            self._state(call, "hooks", "None as backward hooks")
        elif type(value) in _NO_HOOKS:
            self._state(call, "argument-type", f"{kind_of(value)} where the backward hooks belong")
        elif not is_empty_dict(value):
            self._state(call, "hooks", "filled backward hooks")

    def _metadata(self, call: Call, value: Value, tensor: Tensor) -> None:
        if not isinstance(value, DictNode):
            self._state(call, "metadata-type", f"{kind_of(value)} as metadata")
            return
        pairs = list(zip(value.pairs[::2], value.pairs[1::2], strict=False))
        for key, flag in pairs:
            if text_of(key) not in TENSOR_METADATA_KEYS or not isinstance(flag, bool):
                self._state(call, "metadata-key", f"{key!r}" if isinstance(key, (str, bytes)) else kind_of(key))
        tensor.conjugate = any(text_of(key) == "conj" and flag is True for key, flag in pairs)
        tensor.negative = any(text_of(key) == "neg" and flag is True for key, flag in pairs)

    def _view(self, call: Call, args: tuple[Value, ...]) -> Tensor:
        storage = self._storage(call, args[0])
        tensor = Tensor(
            name="",
            dtype=storage.dtype if storage is not None else None,
            storage=storage,
            storage_offset=self._number(call, args[1], "storage offset"),
            shape=self._numbers(call, args[2], "size"),
            stride=self._numbers(call, args[3], "stride"),
            location=storage.location if storage is not None else None,
            function=call_target(call)[1] if call_target(call) else "",  # type: ignore[index]
        )
        window = self._ids.window(args[0])
        if window is not None and storage is not None and min(window) >= 0 and sum(window) <= (storage.element_count or 0):
            self._count_from(call, tensor, *window)
        return tensor

    def _count_from(self, call: Call, tensor: Tensor, start: int, size: int) -> None:
        """Early legacy streams can refer to a part of a storage; the offset of the tensor counts from where it starts."""
        reach = tensor.view_byte_count
        if reach is not None and tensor.dtype is not None and reach > size * tensor.dtype.size:
            self._state(call, "outside-window", f"{reach} bytes of a part of {size * tensor.dtype.size}")
        if tensor.storage_offset is not None:
            tensor.storage_offset += start

    def rebuild_tensor(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        return self._view(call, args) if self._count(call, 4, 4) else None

    def rebuild_tensor_v2(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 6, 7):
            return None
        tensor = self._view(call, args)
        tensor.requires_grad = self._flag(call, args[4])
        self._hooks(call, args[5])
        if len(args) == 7:
            self._metadata(call, args[6], tensor)
        if tensor.storage is not None and tensor.storage.type_name.endswith(".UntypedStorage"):
            self._state(call, "untyped-in-v2", "an UntypedStorage without a dtype")
        return tensor

    def rebuild_tensor_v3(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 7, 8):
            return None
        tensor = self._view(call, args)
        tensor.requires_grad = self._flag(call, args[4])
        self._hooks(call, args[5])
        tensor.dtype = self._dtype(call, args[6])
        if len(args) == 8:
            self._metadata(call, args[7], tensor)
        if tensor.dtype is not None and not tensor.dtype.untyped:
            self._state(call, "typed-in-v3", f"dtype {tensor.dtype.name}, which has a storage class of its own")
        return tensor

    def _dtype(self, call: Call, value: Value) -> DType | None:
        dtype = dtype_of(value)
        if dtype is None:
            self._state(call, "argument-type", f"{kind_of(value)} where a dtype belongs")
        return dtype

    def rebuild_qtensor(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 6, 7):
            return None
        tensor = self._view(call, args)
        tensor.quantizer = self._quantizer(call, args[4])
        tensor.requires_grad = self._flag(call, args[5])
        if len(args) == 7:
            self._hooks(call, args[6])
        return tensor

    def _quantizer(self, call: Call, value: Value) -> Quantizer | None:
        if not isinstance(value, tuple) or not value:
            self._state(call, "quantizer", f"{kind_of(value)} as parameters of the quantiser")
            return None
        scheme = value[0].name if isinstance(value[0], Global) else None
        if scheme == "per_tensor_affine" and len(value) == 3:
            return Quantizer(scheme, value[1], value[2])
        if scheme in ("per_channel_affine", "per_channel_affine_float_qparams") and len(value) == 4:
            scale, zero_point = (self._parameters(item) for item in value[1:3])
            return Quantizer(scheme, scale, zero_point, int_of(value[3]))
        self._state(call, "quantizer", f"scheme {scheme or kind_of(value[0])} with {len(value) - 1} parameters")
        return None

    def _parameters(self, value: Value) -> Value:
        if isinstance(value, (ListNode, tuple)):
            return tuple(value.items if isinstance(value, ListNode) else value)
        return self.read(value)

    def rebuild_parameter(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        count = 4 if call_target(call) == ("torch._utils", "_rebuild_parameter_with_state") else 3
        if not self._count(call, count, count):
            return None
        tensor = self.read(args[0])
        if tensor is None:
            self._state(call, "argument-type", f"{kind_of(args[0])} where a tensor belongs")
            return None
        tensor.parameter = True
        tensor.requires_grad = self._flag(call, args[1])
        self._hooks(call, args[2])
        if len(args) == 4:
            self._attributes(call, args[3], tensor)
        return tensor

    def _attributes(self, call: Call, value: Value, tensor: Tensor) -> None:
        """Attributes that are set on a tensor: a dict, or one of the object and one of its slots."""
        parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
        if any(type(part) in _NO_STATE for part in parts):
            self._state(call, "argument-type", f"{kind_of(value)} where the attributes of the tensor belong")
        tensor.attributes = attribute_names(value)

    def parameter_class(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        tensor = self.read(args[0]) if args else None
        if tensor is not None:
            tensor.parameter = True
        return tensor

    def rebuild_from_type(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 4, 4):
            return None
        function, kind, inner = args[:3]
        if not isinstance(function, Global) or not isinstance(inner, tuple):
            self._state(call, "argument-type", "the inner function or its arguments")
            return None
        unwrapped = Call(function, inner, None, call.opcode, call.offset)
        self._unwrapped.append(unwrapped)
        tensor = self.read(unwrapped)
        if tensor is None:
            return None
        if type(kind) in _NO_CLASS:
            self._state(call, "argument-type", f"{kind_of(kind)} where the class of the tensor belongs")
        if isinstance(kind, Global) and kind.path not in ("torch.Tensor", "torch._tensor.Tensor", "torch.tensor.Tensor"):
            tensor.parameter = tensor.parameter or kind.path == "torch.nn.parameter.Parameter"
            tensor.wrapper = None if tensor.parameter else kind.path
        tensor.attributes = attribute_names(args[3])
        return tensor

    def rebuild_sparse(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 2, 2):
            return None
        layout = layout_name(args[0])
        data = args[1]
        names = SPARSE_PARTS.get(layout or "")
        if names is None or not isinstance(data, tuple) or not len(names) + 1 <= len(data) <= len(names) + 2:
            self._state(call, "sparse-layout", f"layout {layout or kind_of(args[0])} with {kind_of(data)} as data")
            return None
        parts = {name: self.read(part) for name, part in zip(names, data, strict=False)}
        shape = self._numbers(call, data[len(names)], "size")
        found = {name: part for name, part in parts.items() if part is not None}
        if len(found) < len(names):
            self._state(call, "argument-type", "something else where a tensor of a sparse layout belongs")
            return None
        values = found["values"]
        for name, part in found.items():
            part.name = name
        assert layout is not None
        return Tensor("", values.dtype, shape, layout=layout, components=found, location=values.location, function=_name(call))

    def rebuild_nested(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 4, 4):
            return None
        names = ("buffer", "sizes", "strides", "offsets")
        parts = {name: self.read(part) for name, part in zip(names, args, strict=True)}
        found = {name: part for name, part in parts.items() if part is not None}
        missing = {name for name in names if name not in found} - ({"offsets"} if _is_list(args[3]) else set())
        if missing:
            self._state(call, "argument-type", "something else where a tensor of a nested tensor belongs")
            return None
        for fault in nested_faults(found, len(_items(args[3])) if "offsets" not in found else None):
            self._state(call, "argument-type", fault)
        for name, part in found.items():
            part.name = name
        return Tensor("", found["buffer"].dtype, None, layout="nested", components=found, function=_name(call))

    def rebuild_jagged(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        pairs = args[0].pairs if args and isinstance(args[0], DictNode) else ()
        found = {}
        for key, part in zip(pairs[::2], pairs[1::2], strict=False):
            tensor = self.read(part)
            if tensor is not None and isinstance(key, str):
                tensor.name = key.strip("_")
                found[tensor.name] = tensor
        values = found.get("values")
        return Tensor("", values.dtype if values else None, None, layout="jagged", components=found, function=_name(call))

    def rebuild_meta(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 4, 4):
            return None
        return Tensor(
            "",
            self._dtype(call, args[0]),
            self._numbers(call, args[1], "size"),
            self._numbers(call, args[2], "stride"),
            requires_grad=self._flag(call, args[3]),
            location="meta",
            function=_name(call),
        )

    def rebuild_wrapper_subclass(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 8, 8):
            return None
        return Tensor(
            "",
            self._dtype(call, args[1]),
            self._numbers(call, args[2], "size"),
            self._numbers(call, args[3], "stride"),
            self._number(call, args[4], "storage offset"),
            layout="opaque",
            requires_grad=self._flag(call, args[7]),
            wrapper=args[0].path if isinstance(args[0], Global) else None,
            location=device_name(args[6]),
            function=_name(call),
        )

    def rebuild_device(self, call: Call, args: tuple[Value, ...]) -> Tensor | None:
        if not self._count(call, 4, 4):
            return None
        inner = self.read(args[0])
        shape = inner.shape if inner is not None else array_shape(args[0])
        return Tensor(
            "",
            dtype_of(args[1]),
            shape,
            layout="opaque",
            components={"data": inner} if inner is not None else {},
            location=device_name(args[2]),
            requires_grad=self._flag(call, args[3]),
            function=_name(call),
        )


_ATOMS = (bool, int, float, str, bytes)
_NO_HOOKS = frozenset((*_ATOMS, tuple, ListNode, SetNode, ByteArrayNode))
_NO_STATE = frozenset((*_ATOMS, ListNode, SetNode, ByteArrayNode, tuple))
_NO_CLASS = frozenset((*_ATOMS, type(None), tuple, ListNode, SetNode, DictNode, ByteArrayNode))
"""Kinds of values that cannot stand for hooks, for attributes, for a class, whatever the classes in the pickle are."""


def _is_list(value: Value) -> bool:
    """1.13 wrote the offsets of a nested tensor as plain numbers."""
    numbers = [int64_of(item) for item in _items(value)]
    return isinstance(value, (tuple, ListNode)) and all(number is not None and number >= 0 for number in numbers)


def _items(value: Value) -> tuple[Value, ...]:
    return tuple(value.items) if isinstance(value, ListNode) else value if isinstance(value, tuple) else ()


Reader = Callable[[TensorReader, Call, tuple[Value, ...]], Tensor | None]
_READERS: dict[tuple[str, str], Reader] = {
    ("torch._utils", "_rebuild_tensor"): TensorReader.rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v2"): TensorReader.rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): TensorReader.rebuild_tensor_v3,
    ("torch._utils", "_rebuild_parameter"): TensorReader.rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): TensorReader.rebuild_parameter,
    ("torch._utils", "_rebuild_qtensor"): TensorReader.rebuild_qtensor,
    ("torch._utils", "_rebuild_sparse_tensor"): TensorReader.rebuild_sparse,
    ("torch._utils", "_rebuild_sparse_csr_tensor"): TensorReader.rebuild_sparse,
    ("torch._utils", "_rebuild_nested_tensor"): TensorReader.rebuild_nested,
    ("torch._utils", "_rebuild_meta_tensor_no_storage"): TensorReader.rebuild_meta,
    ("torch._utils", "_rebuild_wrapper_subclass"): TensorReader.rebuild_wrapper_subclass,
    ("torch._utils", "_rebuild_device_tensor_from_cpu_tensor"): TensorReader.rebuild_device,
    ("torch._utils", "_rebuild_device_tensor_from_numpy"): TensorReader.rebuild_device,
    ("torch._utils", "_rebuild_xla_tensor"): TensorReader.rebuild_device,
    ("torch._tensor", "_rebuild_from_type_v2"): TensorReader.rebuild_from_type,
    ("torch._tensor", "_rebuild_from_type"): TensorReader.rebuild_from_type,
    ("torch.nested._internal.nested_tensor", "_rebuild_njt"): TensorReader.rebuild_jagged,
    ("torch.nn.parameter", "Parameter"): TensorReader.parameter_class,
}
REBUILD_FUNCTIONS = frozenset(_READERS)
"""(module, name) of every function that makes a tensor."""


def _name(call: Call) -> str:
    target = call_target(call)
    return target[1] if target else ""

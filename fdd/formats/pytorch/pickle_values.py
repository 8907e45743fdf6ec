# SPDX-License-Identifier: Apache-2.0
"""Turns values of a symbolic pickle run into plain ones: sizes, dtypes, devices, and words for what stands in a place."""

from __future__ import annotations

from fdd.formats.pytorch.globals import modern_name
from fdd.formats.pytorch.persistent_ids import int64_of, text_of
from fdd.pickles.containers import kind_of as node_kind
from fdd.pickles.nodes import Call, DictNode, Global, ListNode, Value
from fdd.tensors.dtypes import DType, torch_dtype


def call_target(value: Value) -> tuple[str, str] | None:
    """(module, name) that a call calls, in today's names; None for other values."""
    if isinstance(value, Call) and isinstance(value.function, Global):
        return modern_name(value.function.module, value.function.name)
    return None


def call_args(value: Value) -> tuple[Value, ...]:
    """The arguments of a call; none where there is no call, or where a broken pickle has something else there."""
    return value.args if isinstance(value, Call) and isinstance(value.args, tuple) else ()


def int_of(value: Value) -> int | None:
    """A whole number; booleans are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def size_of(value: Value) -> tuple[int, ...] | None:
    """A tuple of whole numbers, plain, a list, or wrapped in torch.Size; None for anything else."""
    if call_target(value) == ("torch", "Size") and len(call_args(value)) == 1:
        value = call_args(value)[0]
    if isinstance(value, ListNode):
        value = tuple(value.items)
    if not isinstance(value, tuple) or any(int_of(item) is None for item in value):
        return None
    return value


def dtype_of(value: Value) -> DType | None:
    """The element type a global such as `torch.float32` names."""
    return torch_dtype(value.name) if isinstance(value, Global) and value.module == "torch" else None


def kind_of(value: Value) -> str:
    """A word for what stands in a place, for messages."""
    if isinstance(value, Global):
        return value.path
    if isinstance(value, Call):
        target = call_target(value)
        return f"a call of {'.'.join(target)}" if target else "a call"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"the number {value}" if value.bit_length() < 64 else "a huge number"
    return str(value) if isinstance(value, bool) or value is None else node_kind(value)


def is_empty_dict(value: Value) -> bool:
    """An OrderedDict without entries; Python 2 hands its constructor an empty list."""
    if call_target(value) != ("collections", "OrderedDict") or value.pairs:
        return False
    return all(
        (isinstance(arg, ListNode) and not arg.items) or (isinstance(arg, DictNode) and not arg.pairs)
        for arg in call_args(value)
    )  # fmt: skip


def layout_name(value: Value) -> str | None:
    """The layout that `_get_layout` is asked for, or that a global names, such as `sparse_coo`."""
    if call_target(value) == ("torch.serialization", "_get_layout") and len(call_args(value)) == 1:
        text = text_of(call_args(value)[0])
        return text.removeprefix("torch.") if text is not None else None
    if isinstance(value, Global) and value.module == "torch":
        return value.name
    return None


def device_name(value: Value) -> str | None:
    """A device, as text or as a call of torch.device."""
    text = text_of(value)
    if text is not None:
        return text
    args = call_args(value)
    if call_target(value) == ("torch", "device") and args:
        name = text_of(args[0]) or "?"
        return f"{name}:{args[1]}" if len(args) > 1 and int64_of(args[1]) is not None else name
    return None


def array_shape(value: Value) -> tuple[int, ...] | None:
    """Shape of a NumPy array kept in the pickle: the second item of its state."""
    state = value.state[-1] if isinstance(value, Call) and value.state else None
    return size_of(state[1]) if isinstance(state, tuple) and len(state) > 1 else None


def attribute_names(value: Value) -> tuple[str, ...]:
    """Names in a state: a dict, or a pair of a dict and the slots."""
    pairs: list[Value] = []
    for part in value if isinstance(value, tuple) else (value,):
        pairs.extend(part.pairs[::2] if isinstance(part, DictNode) else ())
    return tuple(text for text in (text_of(key) for key in pairs) if text is not None)

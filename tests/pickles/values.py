# SPDX-License-Identifier: Apache-2.0
"""Random values that pickle can write, and the way back from a symbolic tree to such a value."""

from __future__ import annotations

import codecs
from collections import OrderedDict
from typing import Any

from hypothesis import strategies as st

from fdd.pickles.nodes import ByteArrayNode, Call, DictNode, Global, ListNode, SetNode, Value

_texts = st.text(st.characters(codec="utf-8") | st.sampled_from("\ud800\udfff\\\n\r'\"\x00"), max_size=12)
_hashable_atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-300, 70000)
    | st.floats(allow_nan=False)
    | _texts
    | st.binary(max_size=300)
)
hashables = st.recursive(
    _hashable_atoms,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
values = st.recursive(
    hashables | st.binary(max_size=20).map(bytearray) | st.sets(hashables, max_size=4),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=3).map(OrderedDict)
        | inner.map(lambda value: [value, value])  # shared: written once, then fetched from the memo
    ),
    max_leaves=15,
)

_CALLABLES: dict[str, Any] = {
    "collections.OrderedDict": OrderedDict,
    "_codecs.encode": codecs.encode,
    **{
        f"{module}.{kind.__name__}": kind for module in ("builtins", "__builtin__") for kind in (set, frozenset, bytearray, bytes)
    },
}


def rebuilt(value: Value) -> Any:
    """The Python value a tree stands for; only for what `values` makes. Recursive: the values are small."""
    match value:
        case tuple():
            return tuple(map(rebuilt, value))
        case ListNode():
            return list(map(rebuilt, value.items))
        case SetNode():
            return (frozenset if value.frozen else set)(map(rebuilt, value.items))
        case DictNode():
            return _pairs(value.pairs)
        case ByteArrayNode():
            return bytearray(value.data)
        case Call():
            return _called(value)
        case _:
            return value


def _pairs(pairs: list[Value]) -> dict[Any, Any]:
    return dict(zip(map(rebuilt, pairs[::2]), map(rebuilt, pairs[1::2]), strict=True))


def _called(call: Call) -> Any:
    assert isinstance(call.function, Global) and call.kwargs is None
    result = _CALLABLES[call.function.path](*map(rebuilt, call.args))
    if call.pairs:
        result.update(_pairs(call.pairs))
    return result

# SPDX-License-Identifier: Apache-2.0
"""Finds the tensors in a pickled object, gives them their names, and tells what kind of object it is.

Names (contract, section 4): keys joined by `/`, with the JSON-Pointer escapes `~0` and `~1` inside a key; positions
and whole-number keys in decimal; the state of modules by its plain names; the root itself the empty text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from fdd.formats.pytorch.persistent_ids import PersistentIdReader, text_of
from fdd.formats.pytorch.pickle_values import call_target, int_of
from fdd.formats.pytorch.rebuilds import REBUILD_FUNCTIONS, TensorReader
from fdd.pickles.nodes import Call, DictNode, Global, ListNode, PersistentId, SetNode, Value
from fdd.tensors.model import Tensor
from fdd.tensors.names import escape_key

Path: TypeAlias = "tuple[Path | None, str]"
"""A name as a chain of its parts, last part first: at 50,000 levels of nesting, texts would take gigabytes."""
MOST_PARTS = 200
"""Longer names are cut to their last parts."""
MAPPINGS = frozenset(
    {("collections", "OrderedDict"), ("collections", "Counter"), ("collections", "defaultdict"), ("builtins", "dict")}
)
MODULE_STATE = ("_parameters", "_buffers", "_modules")
CHECKPOINT_KEYS = frozenset(
    "model state_dict model_state_dict net network module generator discriminator ema ema_state_dict encoder decoder".split()
)
TRAINING_KEYS = frozenset({"epoch", "global_step", "pytorch-lightning_version"})


def key_text(key: Value) -> str:
    """A dict key as part of a name; keys that are neither text nor number are told by their type."""
    number = int_of(key)
    if number is not None:
        return str(number) if number.bit_length() <= 64 else hex(number)
    text = text_of(key)
    if text is not None:
        return escape_key(text)
    if isinstance(key, Global):
        return escape_key(key.path)
    return f"<{type(key).__name__}>"


def pairs_of(value: Value) -> list[Value] | None:
    """The alternating keys and values of a dict or of an object that is one; None for other values."""
    if isinstance(value, DictNode):
        return value.pairs
    if isinstance(value, Call) and call_target(value) in MAPPINGS:
        return _mapping_pairs(value)
    return None


def _mapping_pairs(call: Call) -> list[Value]:
    """Pairs set one by one, and those handed to the constructor as a list of pairs (Python 2) or a dict."""
    pairs: list[Value] = []
    for argument in call.args if isinstance(call.args, tuple) else ():
        if isinstance(argument, DictNode):
            pairs.extend(argument.pairs)
        elif isinstance(argument, ListNode):
            for item in argument.items:
                pair = item.items if isinstance(item, ListNode) else item
                if isinstance(pair, (tuple, list)) and len(pair) == 2:
                    pairs.extend(pair)
    return pairs + (call.pairs or [])


def dict_of(value: Value) -> dict[str, Value] | None:
    """The text keys of a mapping with their values (the last one wins, as in Python); None for other values."""
    pairs = pairs_of(value)
    if pairs is None:
        return None
    keys = (text_of(key) for key in pairs[::2])
    return {key: item for key, item in zip(keys, pairs[1::2], strict=False) if key is not None}


def module_state(value: Value) -> dict[str, Value] | None:
    """The state of a module object: the last BUILD operand, if it has the three dicts every module has."""
    if not isinstance(value, Call) or not value.state:
        return None
    state = value.state[-1]
    if isinstance(state, tuple) and state:
        state = state[0]
    found = dict_of(state)
    return found if found is not None and all(name in found for name in MODULE_STATE) else None


def find_tensors(root: Value, reader: TensorReader, ids: PersistentIdReader) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, tensor) for every place of the object that holds a tensor, in stream order.

    A container is entered once, by the first way to it; a tensor is named for each of its places. Bare storages are
    read too, so that they enter the list of storages.
    """
    seen: set[int] = set()
    stack: list[tuple[Path | None, Value]] = [(None, root)]
    while stack:
        path, value = stack.pop()
        if value is None or isinstance(value, (str, bytes, int, float, Global)):
            continue
        tensor = reader.read(value)
        if tensor is not None:
            yield path_text(path), tensor
            continue
        if isinstance(value, PersistentId):
            storage = ids.read(value)
            if storage is not None:
                storage.bare = True
            continue
        if call_target(value) in REBUILD_FUNCTIONS:
            reader.names.setdefault(id(value), path_text(path))
        if id(value) in seen:
            continue
        seen.add(id(value))
        stack.extend(reversed(list(_children(path, value))))


def calls_in(root: Value) -> Iterator[tuple[str, Call]]:
    """Yield (name, object) for every object that a call makes, named as tensors in it are; a container is entered once."""
    seen: set[int] = set()
    stack: list[tuple[Path | None, Value]] = [(None, root)]
    while stack:
        path, value = stack.pop()
        if value is None or isinstance(value, (str, bytes, int, float, Global)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Call):
            yield path_text(path), value
        stack.extend(reversed(list(_children(path, value))))


def path_text(path: Path | None) -> str:
    """The name that a chain of parts stands for."""
    parts: list[str] = []
    while path is not None and len(parts) < MOST_PARTS:
        path, part = path
        parts.append(part)
    if path is not None:
        parts.append("...")
    return "/".join(reversed(parts))


def _children(path: Path | None, value: Value) -> Iterator[tuple[Path | None, Value]]:
    if isinstance(value, tuple):
        yield from _numbered(path, value)
    elif isinstance(value, (ListNode, SetNode)):
        yield from _numbered(path, value.items)
    elif isinstance(value, DictNode):
        yield from _paired(path, value.pairs)
    elif isinstance(value, Call):
        yield from _call_children(path, value)


def _numbered(path: Path | None, items: Iterable[Value]) -> Iterator[tuple[Path | None, Value]]:
    yield from (((path, str(index)), item) for index, item in enumerate(items))


def _paired(path: Path | None, pairs: list[Value]) -> Iterator[tuple[Path | None, Value]]:
    for key, item in zip(pairs[::2], pairs[1::2], strict=False):
        name = key_text(key)
        yield (path, name), item
        if isinstance(key, (tuple, Call)):
            yield (path, f"{name}(key)"), key


def _call_children(path: Path | None, call: Call) -> Iterator[tuple[Path | None, Value]]:
    """What an object holds: for modules their parameters, buffers and modules by name, then every other attribute."""
    pairs = pairs_of(call)
    if pairs is not None:
        yield from _paired(path, pairs)
    else:
        if call.args:
            yield from _numbered(path, call.args if isinstance(call.args, tuple) else (call.args,))
        if call.kwargs is not None:
            yield from _children(path, call.kwargs)
        yield from _paired(path, call.pairs or [])
    yield from _numbered(path, call.items or [])
    for state in call.state or ():
        yield from _state_children(path, state)


def _state_children(path: Path | None, state: Value) -> Iterator[tuple[Path | None, Value]]:
    """The attributes of an object: a dict, or a pair of a dict and the slots. Other states are what __getstate__ made."""
    parts = state if _is_dict_and_slots(state) else (state,)
    for part in parts:
        pairs = pairs_of(part)
        if pairs is None:
            yield from _children(path, part) if isinstance(part, tuple) else ((path, part),)
            continue
        for key, item in zip(pairs[::2], pairs[1::2], strict=False):
            inner = pairs_of(item)
            if text_of(key) in MODULE_STATE and inner is not None:
                yield from _paired(path, inner)
            else:
                yield (path, key_text(key)), item


def _is_dict_and_slots(state: Value) -> bool:
    return isinstance(state, tuple) and len(state) == 2 and all(part is None or pairs_of(part) is not None for part in state)


def content_of(root: Value, reader: TensorReader) -> str:
    """What kind of object it is, in the words of the contract (format.md 3.3)."""
    if reader.read(root) is not None:
        return "tensor"
    if module_state(root) is not None:
        return "module"
    pairs = pairs_of(root)
    if pairs is not None:
        return _mapping_content(pairs, reader)
    if isinstance(root, (ListNode, SetNode, tuple)):
        return "collection"
    return "object"


def _mapping_content(pairs: list[Value], reader: TensorReader) -> str:
    keys = [text_of(key) for key in pairs[::2]]
    values = pairs[1::2]
    if set(keys) == {"state", "param_groups"}:
        return "optimizer"
    if _is_state_dict(pairs, reader):
        return "state_dict"
    named = {key: value for key, value in zip(keys, values, strict=False) if key is not None}
    if TRAINING_KEYS & named.keys():
        return "checkpoint"
    for key, value in named.items():
        inner = pairs_of(value)
        if inner is None:
            continue
        if {text_of(name) for name in inner[::2]} == {"state", "param_groups"}:
            return "checkpoint"
        if key in CHECKPOINT_KEYS and _is_state_dict(inner, reader):
            return "checkpoint"
    return "collection"


def _is_state_dict(pairs: list[Value], reader: TensorReader) -> bool:
    """All keys text, all values tensors, but for `_extra_state` entries; and at least one tensor."""
    tensors = 0
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        text = text_of(key)
        if text is None:
            return False
        if reader.read(value) is not None:
            tensors += 1
        elif not text.endswith("_extra_state"):
            return False
    return tensors > 0


def odd_state_keys(root: Value, reader: TensorReader) -> Iterator[tuple[int, str]]:
    """(offset of the mapping, key) for every key that is no text in the state dicts of an object.

    Looked at are the root and what a checkpoint holds under its usual keys. A mapping of tensors counts as a state dict if
    it carries the metadata of one, or if some of its keys are texts: a dict of numbered tensors is something else.
    """
    named = dict_of(root) or {}
    for value in (root, *(value for key, value in named.items() if key in CHECKPOINT_KEYS)):
        pairs = pairs_of(value)
        if pairs is None or not isinstance(value, (DictNode, Call)):
            continue
        odd = [key for key in pairs[::2] if text_of(key) is None]
        state_like = len(odd) < len(pairs) // 2 or any("_metadata" in (dict_of(state) or ()) for state in _states(value))
        if odd and state_like and all(reader.read(item) is not None for item in pairs[1::2]):
            yield from ((value.offset, key_text(key)) for key in odd)


def _states(value: Value) -> list[Value]:
    return value.state or [] if isinstance(value, Call) else []

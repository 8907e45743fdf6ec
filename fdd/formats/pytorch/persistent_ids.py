# SPDX-License-Identifier: Apache-2.0
"""Reads persistent ids (format.md 2.2): what a pickle refers to outside itself, mostly storages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fdd.core.text import decode_name
from fdd.formats.pytorch.document import Mismatch, PickleRecord
from fdd.pickles.containers import kind_of
from fdd.pickles.nodes import Global, PersistentId, Value
from fdd.tensors.dtypes import STORAGE_CLASSES, DType
from fdd.tensors.model import INT64_MAX, Storage, StorageUse

_TEXT_ID = re.compile(r"\('storage', <class '([\w.]+)\.(\w+)'>, '(\w{1,40})', '([\w:]{1,40})', (\d{1,18})L?, None\)")
"""An id of the legacy stream as protocol 0 writes it: the text of the tuple."""
SHAPE_CODES = frozenset({"id-length", "module-id"})
"""Mismatches on how many items an id has; legacy streams have rules of their own for it."""
UNREAD_IDS = frozenset({"text-id", "id-not-tuple", "id-word", "id-length", "id-key"})
"""Mismatches that leave open which storage is meant."""
STORAGE_MODULES = frozenset({"torch", "torch.cuda", "torch.storage", "torch.sparse"})


def text_of(value: Value) -> str | None:
    """A text of a pickle; byte strings of Python 2 count as text."""
    if isinstance(value, str):
        return value
    return decode_name(value) if isinstance(value, bytes) else None


def int64_of(value: Value) -> int | None:
    """A whole number that a reader can hold in 64 bits; booleans are none."""
    if isinstance(value, int) and not isinstance(value, bool) and -INT64_MAX <= value <= INT64_MAX:
        return value
    return None


def storage_dtype(node: Value) -> DType | None:
    """Element type of a storage class named by a global; None where torch has no such class.

    TypedStorage and UntypedStorage live in torch.storage, the typed classes in torch or torch.cuda; the name decides,
    as it does in torch. A bare dtype stands for its storage in some files.
    """
    if not isinstance(node, Global):
        return None
    return STORAGE_CLASSES.get(node.name)


@dataclass(slots=True)
class ModuleSource:
    """The persistent id of a module class in a legacy stream: its class, and its source text at the time of saving."""

    class_name: str
    source_file: str
    source: bytes
    """As stored by Python 2, else the text in UTF-8."""
    offset: int


class PersistentIdReader:
    """Collects the storages that one pickle refers to.

    ``lengths``: how many items the id of a storage may have there; ``module_ids``: whether module classes have ids too;
    ``number_keys``: whether a key may be a number instead of its text.
    """

    def __init__(
        self, pickle: PickleRecord, lengths: tuple[int, ...] = (5, 6), *, module_ids: bool = False, number_keys: bool = False
    ) -> None:
        self.pickle = pickle
        self.lengths = lengths
        self.module_ids = module_ids
        self.number_keys = number_keys
        self.storages: dict[str, Storage] = {}
        self.modules: list[ModuleSource] = []
        self.other: list[tuple[PersistentId, tuple[Value, ...]]] = []
        self.mismatches: list[Mismatch] = []
        self.views: list[tuple[PersistentId, Value]] = []
        self._known: dict[int, Storage | None] = {}

    def read(self, node: PersistentId) -> Storage | None:
        """The storage an id refers to; None for ids of other things and for malformed ones (stated as mismatches)."""
        if id(node) not in self._known:
            self._known[id(node)] = self._read(node)
        return self._known[id(node)]

    def _state(self, node: PersistentId, code: str, detail: str) -> None:
        self.mismatches.append(Mismatch(code, self.pickle.place(node.offset), self.pickle.record, "persistent id", detail))

    def _read(self, node: PersistentId) -> Storage | None:
        value = node.value
        if node.text:
            self._state(node, "text-id", "a text instead of a tuple")
            written = _tuple_in_text(value) if 6 in self.lengths else None
            return self._storage(node, written) if written is not None else None
        if not isinstance(value, tuple) or not value:
            self._state(node, "id-not-tuple", f"{kind_of(value)} instead of a tuple")
            return None
        word = text_of(value[0])
        if word == "module" and self.module_ids:
            self._module(node, value)
            return None
        if word == "reduce_package":
            self.other.append((node, value))
            return None
        if word != "storage":
            self._state(node, "id-word", f"{value[0]!r} instead of 'storage'" if word is not None else "no word in front")
            return None
        if len(value) not in self.lengths:
            self._state(node, "id-length", f"{len(value)} items")
            return None
        return self._storage(node, value)

    def _module(self, node: PersistentId, value: tuple[Value, ...]) -> None:
        # A writer that could not read the source of the class left None in its place (1.3).
        texts = [text_of(item) if item is not None else "" for item in value[2:]]
        if len(value) != 4 or not isinstance(value[1], Global) or any(text is None for text in texts):
            self._state(node, "module-id", f"{len(value)} items for a module class")
            return
        source = value[3] if isinstance(value[3], bytes) else (value[3] or "").encode("utf-8", "surrogatepass")
        self.modules.append(ModuleSource(value[1].path, texts[0] or "", source, node.offset))

    def _storage(self, node: PersistentId, value: tuple[Value, ...]) -> Storage | None:
        kind, key, location, count = value[1:5]
        key_text = str(key) if int64_of(key) is not None else text_of(key)
        if key_text is None:
            self._state(node, "id-key", f"a {type(key).__name__} as key")
            return None
        if not isinstance(key, (str, bytes)) and not self.number_keys:
            self._state(node, "id-key-number", f"the number {key_text} as key")
        place = self.pickle.place(node.offset)
        type_name = kind.path if isinstance(kind, Global) else type(kind).__name__
        if len(value) == 6 and value[5] is not None:
            self.views.append((node, value[5]))
        place_name = text_of(location)
        if place_name is None:
            self._state(node, "id-location", f"a {type(location).__name__} as location")
        use = StorageUse(type_name, storage_dtype(kind), location if place_name is None else place_name, count, place)
        storage = self.storages.get(key_text)
        if storage is None:
            storage = Storage(
                key=key_text,
                dtype=use.dtype,
                type_name=type_name,
                location=place_name,
                element_count=int64_of(count),
                source=self.pickle.record or self.pickle.role,
            )
            self.storages[key_text] = storage
        storage.uses.append(use)
        return storage

    def window(self, node: Value) -> tuple[int, int] | None:
        """(offset, size) in elements of the part of its storage that an id of an early legacy stream shows; mostly None."""
        value = node.value if isinstance(node, PersistentId) and not node.text else None
        view = value[5] if isinstance(value, tuple) and len(value) == 6 else None
        if not isinstance(view, tuple) or len(view) != 3:
            return None
        offset, size = int64_of(view[1]), int64_of(view[2])
        return (offset, size) if offset is not None and size is not None else None


def _tuple_in_text(text: str) -> tuple[Value, ...] | None:
    """The items of an id that protocol 0 turned into the text of a tuple; readers cannot take it back, people can."""
    found = _TEXT_ID.fullmatch(text)
    if found is None:
        return None
    module, name, key, location, count = found.groups()
    return "storage", Global(module, name, 0), key, location, int(count), None

# SPDX-License-Identifier: Apache-2.0
"""Reads persistent ids (format.md 2.2): what a pickle refers to outside itself, mostly storages."""

from __future__ import annotations

from dataclasses import dataclass

from fdd.core.text import decode_name
from fdd.formats.pytorch.document import Mismatch, PickleRecord
from fdd.pickles.nodes import Global, PersistentId, Value
from fdd.tensors.dtypes import STORAGE_CLASSES, DType, torch_dtype
from fdd.tensors.model import Storage, StorageUse

STORAGE_MODULES = frozenset({"torch", "torch.cuda", "torch.storage", "torch.sparse"})


def text_of(value: Value) -> str | None:
    """A text of a pickle; byte strings of Python 2 count as text."""
    if isinstance(value, str):
        return value
    return decode_name(value) if isinstance(value, bytes) else None


def storage_dtype(node: Value) -> DType | None:
    """Element type of a storage class named by a global; None where torch has no such class.

    TypedStorage and UntypedStorage live in torch.storage, the typed classes in torch or torch.cuda; the name decides,
    as it does in torch. A bare dtype stands for its storage in some files.
    """
    if not isinstance(node, Global):
        return None
    return STORAGE_CLASSES.get(node.name) or (torch_dtype(node.name) if node.module == "torch" else None)


@dataclass(slots=True)
class ModuleSource:
    """The persistent id of a module class in a legacy stream: its class, and its source text at the time of saving."""

    class_name: str
    source_file: str
    source: str
    offset: int


class PersistentIdReader:
    """Collects the storages that one pickle refers to.

    ``lengths``: how many items the id of a storage may have there; ``module_ids``: whether module classes have ids too.
    """

    def __init__(self, pickle: PickleRecord, lengths: tuple[int, ...] = (5, 6), *, module_ids: bool = False) -> None:
        self.pickle = pickle
        self.lengths = lengths
        self.module_ids = module_ids
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
        self.mismatches.append(
            Mismatch(code, self.pickle.place(node.offset), self.pickle.record, "persistent id", detail)
        )

    def _read(self, node: PersistentId) -> Storage | None:
        value = node.value
        if node.text:
            self._state(node, "text-id", "a text instead of a tuple")
            return None
        if not isinstance(value, tuple) or not value:
            self._state(node, "id-not-tuple", f"a {type(value).__name__} instead of a tuple")
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
        texts = [text_of(item) for item in value[2:]]
        if len(value) != 4 or not isinstance(value[1], Global) or any(text is None for text in texts):
            self._state(node, "module-id", f"{len(value)} items for a module class")
            return
        self.modules.append(ModuleSource(value[1].path, texts[0] or "", texts[1] or "", node.offset))

    def _storage(self, node: PersistentId, value: tuple[Value, ...]) -> Storage | None:
        kind, key, location, count = value[1:5]
        key_text = str(key) if isinstance(key, int) and not isinstance(key, bool) else text_of(key)
        if key_text is None:
            self._state(node, "id-key", f"a {type(key).__name__} as key")
            return None
        place = self.pickle.place(node.offset)
        type_name = kind.path if isinstance(kind, Global) else type(kind).__name__
        if len(value) == 6 and value[5] is not None:
            self.views.append((node, value[5]))
        use = StorageUse(type_name, text_of(location) if text_of(location) is not None else location, count, place.offset)
        storage = self.storages.get(key_text)
        if storage is None:
            whole = count if isinstance(count, int) and not isinstance(count, bool) else None
            storage = Storage(
                key=key_text,
                dtype=storage_dtype(kind),
                type_name=type_name,
                location=text_of(location),
                element_count=whole,
                source=self.pickle.record or self.pickle.role,
            )
            self.storages[key_text] = storage
        storage.uses.append(use)
        return storage

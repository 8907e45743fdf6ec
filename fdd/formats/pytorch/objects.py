# SPDX-License-Identifier: Apache-2.0
"""From pickles to objects: storages, tensors under their names, content, and where each storage lies in the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from fdd.core.model import ABSENT, NOT_REQUESTED
from fdd.formats.pytorch.contents import content_of, find_tensors, odd_state_keys
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.names import EAGER_KINDS, MARKERS, SCRIPT_KINDS, VERSION_NAMES
from fdd.formats.pytorch.persistent_ids import PersistentIdReader
from fdd.formats.pytorch.pickle_values import call_target
from fdd.formats.pytorch.rebuilds import REBUILD_FUNCTIONS, TensorReader
from fdd.pickles.nodes import MISSING, Call, PersistentId
from fdd.tensors.model import Storage, Tensor
from fdd.tensors.nested import NESTED
from fdd.tensors.sparse import COMPRESSED, COO

SCRIPT_FOLDERS = {
    "object": ("data", "tensors"),
    "attributes": ("tensors",),
    "constants": ("constants",),
    "bytecode": ("bytecode", "constants"),  # a folder of its own up to 1.6
    "traced-inputs": ("traced_inputs",),
}
"""Role of a TorchScript pickle -> folders that hold its storages."""


DEEP = 50
"""Nesting above which a pickle may hold tensors wrapped very often."""
INDEXED = frozenset({COO, NESTED, *COMPRESSED})
"""Layouts of tensors that are made of values and of index tensors."""
Readers = Callable[[TorchDocument, PickleRecord], tuple[PersistentIdReader, TensorReader]]
"""Makes what reads the persistent ids and the tensors of one pickle."""
FIRST_VERSION = b"1"
LATER_RECORDS = tuple(name for name in MARKERS if name not in VERSION_NAMES)
"""Small records that torch 1.4 did not write. It alone put storages into `tensors/`, where no other torch looks."""
NO_OBJECTS = frozenset("debug metadata magic protocol sys-info keys tensors storages".split())
"""Roles of pickles that are asked for but hold no object of the user."""


def usual_readers(document: TorchDocument, pickle: PickleRecord) -> tuple[PersistentIdReader, TensorReader]:
    """Readers of ids that are tuples, as in all forms but the tar."""
    legacy = document.kind == "torch-legacy"
    lengths = (6,) if legacy else (5, 6) if document.kind in SCRIPT_KINDS else (5,)
    # Packages number their storages; the C++ writer of scripts has texts, but its readers take both.
    numbers = document.kind == "torch-package" or document.kind in SCRIPT_KINDS
    ids = PersistentIdReader(pickle, lengths, module_ids=legacy, number_keys=numbers)
    return ids, TensorReader(pickle, ids)


def read_objects(document: TorchDocument, readers: Readers = usual_readers) -> None:
    """Fill storages, tensors, mismatches and content from the pickles that the format itself asks for."""
    for pickle in document.judged_pickles():
        if pickle.role not in NO_OBJECTS:
            _read_pickle(document, pickle, readers)
    document.storages.sort(key=_first_use)
    indexed = any(tensor.layout in INDEXED for _, tensor in _every_tensor(document))
    document.evidence["index-values"] = NOT_REQUESTED if indexed else ABSENT


def _first_use(storage: Storage) -> int:
    return storage.place.offset if storage.place is not None else 0


def _read_pickle(document: TorchDocument, pickle: PickleRecord, readers: Readers) -> None:
    ids, reader = readers(document, pickle)
    named: list[Tensor] = []
    if pickle.facts.deepest > DEEP:
        _read_calls(pickle, reader)
    if pickle.facts.root is not MISSING:
        named += _named(find_tensors(pickle.facts.root, reader, ids), _prefix(document, pickle))
        if pickle.role in ("object", "packaged"):
            document.content = content_of(pickle.facts.root, reader)
            document.facts.setdefault("odd-keys", []).extend(
                (pickle.place(offset), pickle.record, key) for offset, key in odd_state_keys(pickle.facts.root, reader)
            )
    # What never reaches the result (popped, or the run stopped) is read from the event log.
    for event in pickle.facts.events:
        if event.what == "persistent-id" and isinstance(event.value, PersistentId):
            ids.read(event.value)
        elif event.what == "call" and isinstance(event.value, Call) and call_target(event.value) in REBUILD_FUNCTIONS:
            reader.read(event.value)
    owners = owners_of(named)
    reader.name_mismatches(owners)
    document.tensors += named
    document.facts.setdefault("loose-tensors", []).extend(tensor for tensor in reader.tensors if id(tensor) not in owners)
    document.mismatches += ids.mismatches + reader.mismatches
    document.storages += ids.storages.values()
    if ids.modules:
        document.facts.setdefault("module-sources", []).extend((pickle, module) for module in ids.modules)
    if ids.views:
        document.facts.setdefault("views", []).extend((pickle, ids, node, view) for node, view in ids.views)
    if ids.other:
        document.facts.setdefault("other-ids", []).extend((pickle, node, value) for node, value in ids.other)
    locate_storages(document, ids.storages.values(), pickle)


def _read_calls(pickle: PickleRecord, reader: TensorReader) -> None:
    """Read all tensors in stream order: each call after those whose results it is given, so that nothing is read in depth."""
    for event in pickle.facts.events:
        if event.what == "call" and isinstance(event.value, Call) and call_target(event.value) in REBUILD_FUNCTIONS:
            reader.read(event.value)


def owners_of(tensors: Iterable[Tensor]) -> dict[int, str]:
    """id() of every tensor and of every tensor it is made of -> the name of the whole."""
    owners: dict[int, str] = {}
    for whole in tensors:
        waiting = [whole]
        while waiting:
            tensor = waiting.pop()
            if id(tensor) not in owners:
                owners[id(tensor)] = whole.name
                waiting.extend(tensor.parts)
    return owners


def _prefix(document: TorchDocument, pickle: PickleRecord) -> str:
    """Only where several pickles hold tensors does the name of the pickle come in front."""
    if document.kind in EAGER_KINDS or document.kind in ("torch-legacy", "torch-tar") or pickle.role == "object":
        return ""
    return document.local_name(pickle.record or pickle.role)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix and name else prefix or name


def _named(found: Iterable[tuple[str, Tensor]], prefix: str) -> Iterator[Tensor]:
    """Give each tensor its name; one that stands in several places of the object appears under each of them."""
    named: set[int] = set()
    for name, tensor in found:
        if id(tensor) in named:
            yield replace(tensor, name=_join(prefix, name), alias=True)
            continue
        named.add(id(tensor))
        tensor.name = _join(prefix, name)
        yield tensor


def every_tensor(document: TorchDocument) -> list[tuple[str | None, Tensor]]:
    """Every tensor once, those too that others are made of or that never reach the object, with the name of the whole.

    Made when first asked for: a dozen rules look at this list.
    """
    if document.every is None:
        document.every = list(_every_tensor(document))
    return document.every


def _every_tensor(document: TorchDocument) -> Iterator[tuple[str | None, Tensor]]:
    seen: set[int] = set()
    named = ((tensor.name, tensor) for tensor in document.tensors if not tensor.alias)
    for name, whole in (*named, *((None, tensor) for tensor in document.facts.get("loose-tensors", ()))):
        waiting = [whole]
        while waiting:
            tensor = waiting.pop()
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor
                if tensor.components or tensor.quantizer is not None:
                    waiting.extend(tensor.parts)


def tensor_users(document: TorchDocument) -> dict[int, list[tuple[str | None, Tensor]]]:
    """id() of a storage -> the tensors that look at it, with their names. Made when first asked for."""
    if document.users is None:
        document.users = {}
        for name, tensor in every_tensor(document):
            if tensor.storage is not None:
                document.users.setdefault(id(tensor.storage), []).append((name, tensor))
    return document.users


def locate_storages(document: TorchDocument, storages: Iterable[Storage], pickle: PickleRecord) -> None:
    """Find the record that holds each storage, or name the one that should."""
    storages = list(storages)
    by_name: dict[str, int] = {}
    folders: set[str] = set()
    for index, record in enumerate(document.records if storages else ()):
        by_name.setdefault(record.name, index)
        folders.add(record.name.rpartition("/")[0])
    prefix = f"{document.root}/" if document.root else ""
    later = any(prefix + name in by_name for name in LATER_RECORDS)
    early = not later and document.texts.get("version", FIRST_VERSION).strip() == FIRST_VERSION
    for storage in storages:
        candidates = [prefix + name for name in candidate_names(document, storage, pickle, early)]
        index_found = next((by_name[name] for name in candidates if name in by_name), None)
        storage.payload_expected = pickle.role != "traced-inputs" and storage.location != "meta"
        if index_found is None:
            usual = candidates[-1] if pickle.role == "bytecode" else candidates[0]
            storage.record = next((name for name in candidates if name.rpartition("/")[0] in folders), usual)
            continue
        record = document.records[index_found]
        storage.record = record.name
        storage.stored_size = record.size
        storage.complete = record.complete
        storage.span = record.span if record.method == "stored" else None


def candidate_names(document: TorchDocument, storage: Storage, pickle: PickleRecord, early: bool) -> list[str]:
    """Names below the top folder that the record of a storage may have; ``early``: torch 1.4 may have written the file."""
    key = storage.key
    if document.kind in ("torch-legacy", "torch-tar"):
        return [f"storages/{key}"]
    if document.kind == "torch-package":
        # Scripts in a package name the whole record (format.md 3.5).
        return [f".data/{key}.storage"] if not key.endswith(".storage") else [f".data/{key}"]
    if document.kind in SCRIPT_KINDS:
        folders = SCRIPT_FOLDERS.get(pickle.role, ("data",))
        return [f"{folder}/{key}" for folder in folders] + ([key] if key.startswith(folders) else [])
    return [f"data/{key}", f"tensors/{key}"] if early else [f"data/{key}"]

# SPDX-License-Identifier: Apache-2.0
"""Opens the tar form of torch 0.1 (format.md 4.2): `sys_info`, `pickle`, `tensors` and `storages`. Nothing is unpacked.

The object refers to tensors and storages by keys, mostly texts of decimal addresses. Of the three generations the first
writes the items of an entry in another order, without locations, and no list of views; each entry tells by what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from fdd.container.tar import TarFacts, TarMember
from fdd.core.finding import Reason
from fdd.core.model import COMPLETE, NOT_REQUESTED, Evidence, Identification, Record
from fdd.core.span import Span
from fdd.core.text import decode_name
from fdd.formats.probe import Probe
from fdd.formats.pytorch.contents import dict_of
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.evidence import GRAMMAR_RULES, blocked, pickle_evidence
from fdd.formats.pytorch.objects import read_objects
from fdd.formats.pytorch.older_facts import TAR_PARTS, OlderFault, TarModelFacts, TarStorage, TarTensor, TarView
from fdd.formats.pytorch.persistent_ids import ModuleSource, PersistentIdReader, int64_of, storage_dtype, text_of
from fdd.formats.pytorch.pickled import probe_unowned, run_part
from fdd.formats.pytorch.rebuilds import TensorReader
from fdd.limits import Limits
from fdd.pickles import run
from fdd.pickles.nodes import Global, ListNode, PersistentId, Value
from fdd.tensors.model import Storage, StorageUse, Tensor

ENTRY_BYTES = 4096
"""Read to see whether another entry follows the last one that is announced; its pickle takes about fifty."""
NUMBER = 8
"""Bytes of a count, a size, a stride, an offset; the number of dimensions takes four, and four more are not used."""
PART_RULES = ("PT-TAR-009", "PT-TAR-004", "PT-TAR-001", "PT-TAR-008", "PT-TAR-010", "PT-TAR-002", "PT-TEN-001", *GRAMMAR_RULES)
"""What can keep members and their entries from being read to the end."""
CONTAINER_RULES = ("PT-TAR-010", "PT-TAR-002", "PT-TAR-008")
UNUSED_REGIONS = frozenset({"gap", "trailing", "padding", "end"})
"""Parts of a tar that hold no content."""
CONTAINER_FAULTS = frozenset(
    "header-cut header-missing size-field payload-cut pax-record extension-cut extension-orphan sparse-map-cut".split()
)
"""Faults of the tar that leave members unread or their places in doubt."""


def open_tarred(probe: Probe, identification: Identification) -> TorchDocument:
    """Read a torch tar. Never raises on bad bytes."""
    assert probe.tar is not None
    document = TorchDocument(probe.source, probe.name, identification, tar=probe.tar)
    model = document.tar_model = TarModelFacts()
    _enter_members(document, probe.tar, model)
    reader = _Parts(document, probe.tar, model, probe.limits)
    system = reader.single("sys_info")
    version = (dict_of(system.facts.root) or {}).get("protocol_version") if system is not None else None
    identification.version = str(version) if int64_of(version) is not None else None
    reader.single("pickle")
    reader.storages()
    reader.tensors()
    document.pickles.sort(key=lambda pickle: (pickle.span, pickle.level))
    document.storages = [entry.storage for entry in model.storages]
    read_objects(document, lambda _, pickle: _readers(pickle, model))
    _look_elsewhere(document, probe.tar, probe.limits)
    _state_evidence(document, probe.tar, model)
    return document


def _enter_members(document: TorchDocument, tar: TarFacts, model: TarModelFacts) -> None:
    """Enter all members as records. Of members with one name the last counts, as it does in Python's tarfile."""
    for member in tar.members:
        name = decode_name(member.name)
        role = "unknown"
        if name in TAR_PARTS and member.type == "file":
            role = TAR_PARTS[name]
            if name in model.members:
                document.records[model.members[name]].role = "copy"
            model.members[name] = member.index
        document.records.append(Record(name, role, member.payload, member.payload.length))


@dataclass(slots=True)
class _Cursor:
    """Where in a member reading stands."""

    name: str
    position: int
    end: int

    @property
    def left(self) -> int:
        return self.end - self.position

    @property
    def rest(self) -> Span:
        return Span(self.position, self.left)


class _Parts:
    """Reads the four members."""

    def __init__(self, document: TorchDocument, tar: TarFacts, model: TarModelFacts, limits: Limits) -> None:
        self._document = document
        self._tar = tar
        self._model = model
        self._limits = limits
        self._storages: dict[str, Storage] = {}
        self._windows: dict[str, TarView] = {}
        self._tensor_keys: set[str] = set()
        self._counts: dict[str, Span] = {}
        """Where each member announces its entries."""

    def single(self, name: str) -> PickleRecord | None:
        """Run the one pickle of a member; None where there is no such member."""
        cursor = self._open(name)
        if cursor is None:
            return None
        pickle = self._run(cursor)
        if pickle.facts.stopped:
            self._close(cursor)
        return pickle

    def storages(self) -> None:
        """Read the member `storages`: how many, each with its data, and views of them."""
        cursor = self._open("storages")
        if cursor is None:
            return
        self._model.stated_storages = self._count(cursor)
        for _ in range(self._model.stated_storages or 0):
            if not self._storage(cursor):
                return
        if self._model.stated_storages is not None and (not cursor.left or self._views(cursor)):
            self._close(cursor)

    def tensors(self) -> None:
        """Read the member `tensors`: how many, each with its shape."""
        cursor = self._open("tensors")
        if cursor is None:
            return
        self._model.stated_tensors = self._count(cursor)
        for _ in range(self._model.stated_tensors or 0):
            if not self._tensor(cursor):
                return
        if self._model.stated_tensors is not None:
            self._close(cursor)

    def _open(self, name: str) -> _Cursor | None:
        index = self._model.members.get(name)
        if index is None:
            return None
        member: TarMember = self._tar.members[index]
        return _Cursor(name, member.payload.offset, member.payload.end)

    def _close(self, cursor: _Cursor) -> None:
        """State what is left in a member; where it goes on with another entry, it is the announced number that is wrong."""
        if not cursor.left:
            self._model.read.add(cursor.name)
            return
        more = run(self._document.source.read_at(cursor.position, min(cursor.left, ENTRY_BYTES)), limits=self._limits)
        if cursor.name in self._counts and _is_entry(more.root):
            self._state("rest", self._counts[cursor.name], cursor, f"{cursor.name} holds more entries than it announces")
        else:
            self._state("rest", cursor.rest, cursor, f"{cursor.left} bytes are left behind the last entry")
        probe_unowned(self._document, cursor.rest, self._limits, cursor.name, role="trailing")

    def _state(self, code: str, span: Span, cursor: _Cursor, detail: str) -> None:
        self._model.faults.append(OlderFault(code, span, cursor.name, detail))

    def _run(self, cursor: _Cursor) -> PickleRecord:
        role = TAR_PARTS[cursor.name]
        pickle = run_part(self._document, cursor.position, cursor.end, role=role, record=cursor.name, limits=self._limits)
        cursor.position = pickle.span.end
        return pickle

    def _count(self, cursor: _Cursor) -> int | None:
        """The pickled number of entries; None where it cannot be read."""
        pickle = self._run(cursor)
        self._counts[cursor.name] = pickle.span
        if not pickle.facts.stopped:
            return None
        count = int64_of(pickle.facts.root)
        if count is None or count < 0:
            self._state("count", pickle.span, cursor, "the number of entries is no whole number from 0 on")
            return None
        return count

    def _entry(self, cursor: _Cursor, found: int, stated: int | None) -> PickleRecord | None:
        """Run the pickle in front of an entry; None where it cannot be read."""
        pickle = self._run(cursor) if cursor.left else None
        # Behind the last storage the list of views may stand.
        if pickle is None or isinstance(pickle.facts.root, ListNode):
            self._state("fewer", self._counts[cursor.name], cursor, f"{stated} entries are announced, {found} are there")
            return None
        return pickle if pickle.facts.stopped else None

    def _storage(self, cursor: _Cursor) -> bool:
        model = self._model
        pickle = self._entry(cursor, len(model.storages), model.stated_storages)
        if pickle is None:
            return False
        row = pickle.facts.root
        kind = next((item for item in row if isinstance(item, Global)), None) if isinstance(row, tuple) else None
        key = _key_of(row[0]) if isinstance(row, tuple) and row else None
        if kind is None or key is None or not 2 <= len(row) <= 3:
            self._state("entry", pickle.span, cursor, "an entry that is not (key, location, storage type)")
            return False
        place = next((text_of(item) for item in row[1:] if text_of(item) is not None), "cpu")
        count_span = Span(cursor.position, min(NUMBER, cursor.left))
        count = self._number(cursor)
        if count is None or count < 0:
            self._state(
                "cut",
                count_span,
                cursor,
                f"the storage {key} has no readable count" if count is None else f"the storage {key} has {count} elements",
            )
            return False
        dtype = storage_dtype(kind)
        use = StorageUse(kind.path, dtype, place, count, pickle.span)
        storage = Storage(key, dtype, kind.path, place, count, [use], f"storages/{key}", source="storages")
        if key in self._storages:
            self._state("key-twice", pickle.span, cursor, f"two storages have the key {key}")
        self._storages.setdefault(key, storage)
        needed = count * dtype.size if dtype is not None else None
        payload = Span(cursor.position, min(needed, cursor.left) if needed is not None else cursor.left)
        cursor.position = payload.end
        model.storages.append(
            TarStorage(key, Span(pickle.span.offset, payload.end - pickle.span.offset), count, count_span, storage)
        )
        self._document.records.append(Record(f"storages/{key}", "storage", payload, payload.length))
        storage.span = payload
        storage.stored_size = payload.length
        if payload.length == needed:
            return True
        if needed is not None:
            self._state(
                "cut", count_span, cursor, f"the storage {key} takes {needed} bytes, {payload.length} are left in the member"
            )
        return False

    def _number(self, cursor: _Cursor) -> int | None:
        data = self._document.source.read_at(cursor.position, min(NUMBER, cursor.left))
        cursor.position += len(data)
        return int.from_bytes(data, "little", signed=True) if len(data) == NUMBER else None

    def _views(self, cursor: _Cursor) -> bool:
        """Read the list of storages that show parts of others."""
        pickle = self._run(cursor)
        if not pickle.facts.stopped:
            return False
        if _is_entry(pickle.facts.root):
            self._state("rest", self._counts[cursor.name], cursor, "storages holds more entries than it announces")
            return False
        rows = pickle.facts.root.items if isinstance(pickle.facts.root, ListNode) else None
        if rows is None or any(not _is_view(row) for row in rows):
            self._state("views", pickle.span, cursor, "something else where the list of views belongs")
            return False
        for target, root_key, offset, count in rows:
            root = self._storages.get(str(root_key))
            inside = root is not None and offset >= 0 and count >= 0 and offset + count <= (root.element_count or 0)
            if not inside:
                what = (
                    f"elements {offset} to {offset + count} of {root.element_count}"
                    if root
                    else f"the unknown storage {root_key}"
                )
                self._state("view-outside", pickle.span, cursor, f"the storage {target} shows {what}")
            view = TarView(str(target), str(root_key), offset, count, pickle.span, root if inside else None)
            self._model.views.append(view)
            self._windows.setdefault(view.key, view)
        return True

    def _tensor(self, cursor: _Cursor) -> bool:
        model = self._model
        pickle = self._entry(cursor, len(model.tensors), model.stated_tensors)
        if pickle is None:
            return False
        row = pickle.facts.root
        kind = next((item for item in row if isinstance(item, Global)), None) if isinstance(row, tuple) else None
        keys = [_key_of(item) for item in row if not isinstance(item, Global)] if isinstance(row, tuple) else []
        if kind is None or len(keys) != 2 or keys[0] is None or keys[1] is None:
            self._state("entry", pickle.span, cursor, "an entry that is not (key, storage key, tensor type)")
            return False
        start = cursor.position
        numbers = self._numbers(cursor)
        if numbers is None:
            self._state(
                "cut", Span(start, cursor.end - start), cursor, f"the sizes of the tensor {keys[0]} do not fit into the member"
            )
            return False
        key, storage_key = keys[0], keys[1]
        tensor = self._view(cursor, pickle, storage_key, *numbers)
        tensor.function = kind.path
        if key in self._tensor_keys:
            self._state("key-twice", pickle.span, cursor, f"two tensors have the key {key}")
        self._tensor_keys.add(key)
        span = Span(pickle.span.offset, cursor.position - pickle.span.offset)
        model.tensors.append(TarTensor(key, storage_key, kind.path, span, Span(start, cursor.position - start), tensor))
        return True

    def _numbers(self, cursor: _Cursor) -> tuple[tuple[int, ...], tuple[int, ...], int] | None:
        """Sizes, strides and offset behind the pickle of a tensor."""
        head = self._document.source.read_at(cursor.position, min(NUMBER, cursor.left))
        dimensions = int.from_bytes(head[:4], "little", signed=True)
        length = (2 * dimensions + 1) * NUMBER
        if len(head) < NUMBER or dimensions < 0 or length > cursor.left - NUMBER:
            return None
        if any(head[4:]):
            self._state(
                "unused", Span(cursor.position + 4, 4), cursor, "the unused bytes behind a number of dimensions are not zero"
            )
        data = self._document.source.read_at(cursor.position + NUMBER, length)
        cursor.position += NUMBER + length
        values = [int.from_bytes(data[at : at + NUMBER], "little", signed=True) for at in range(0, length, NUMBER)]
        return tuple(values[:dimensions]), tuple(values[dimensions:-1]), values[-1]

    def _view(
        self,
        cursor: _Cursor,
        pickle: PickleRecord,
        storage_key: str,
        shape: tuple[int, ...],
        stride: tuple[int, ...],
        offset: int,
    ) -> Tensor:
        storage = self._storages.get(storage_key)
        window = self._windows.get(storage_key) if storage is None else None
        if storage is None and window is None:
            self._state("storage-unknown", pickle.span, cursor, f"a tensor refers to the unknown storage {storage_key}")
        if window is not None:
            storage = window.storage
        tensor = Tensor(
            "", storage.dtype if storage is not None else None, shape, stride, offset, storage,
            location=storage.location if storage is not None else None, offset=pickle.span.offset,
        )  # fmt: skip
        if window is not None and storage is not None:
            reach = tensor.view_byte_count
            if reach is not None and tensor.dtype is not None and reach > window.count * tensor.dtype.size:
                self._state("outside-view", pickle.span, cursor, f"a tensor needs {reach} bytes of the view {storage_key}")
            tensor.storage_offset = offset + window.offset
        return tensor


def _key_of(value: Value) -> str | None:
    """A key: a whole number, or its text."""
    number = int64_of(value)
    return str(number) if number is not None else text_of(value)


def _is_entry(row: Value) -> bool:
    """Whether a value is what stands in front of a tensor or storage."""
    return isinstance(row, tuple) and 2 <= len(row) <= 3 and any(isinstance(item, Global) for item in row)


def _is_view(row: Value) -> bool:
    return isinstance(row, tuple) and len(row) == 4 and all(int64_of(item) is not None for item in row)


class _KeyReader(PersistentIdReader):
    """Persistent ids of the tar form: keys of tensors and storages, and module classes with their source."""

    def __init__(self, pickle: PickleRecord, model: TarModelFacts) -> None:
        super().__init__(pickle, (), module_ids=True)
        self._model = model
        self._tensors = {entry.key: entry.tensor for entry in model.tensors}
        self._by_key = {entry.key: entry.storage for entry in model.storages}
        self._by_key |= {view.key: view.storage for view in model.views if view.storage is not None}

    def tensor(self, node: PersistentId) -> Tensor | None:
        """The tensor of that key."""
        key = _key_of(node.value)
        return self._tensors.get(key) if key is not None else None

    def _read(self, node: PersistentId) -> Storage | None:
        if isinstance(node.value, tuple):
            self._class(node, node.value)
            return None
        key = _key_of(node.value)
        if key is None or (key not in self._tensors and key not in self._by_key):
            self._model.unresolved.append((self.pickle.place(node.offset), key if key is not None else type(node.value).__name__))
            return None
        return self._by_key.get(key)

    def _class(self, node: PersistentId, value: tuple[Value, ...]) -> None:
        # A class whose source could not be had has None for both.
        texts = [text_of(item) if item is not None else "" for item in value[1:]]
        if len(value) != 3 or not isinstance(value[0], Global) or any(text is None for text in texts):
            self._state(node, "module-id", f"{len(value)} items for a module class")
        elif value[2] is not None:
            source = value[2] if isinstance(value[2], bytes) else value[2].encode("utf-8", "surrogatepass")
            self.modules.append(ModuleSource(value[0].path, texts[0] or "", source, node.offset))


class _TensorReader(TensorReader):
    """Tensors of the tar form stand in a member of their own; the object refers to them by persistent ids."""

    def __init__(self, pickle: PickleRecord, ids: _KeyReader, model: TarModelFacts) -> None:
        super().__init__(pickle, ids)
        self._keys = ids
        self.tensors = [entry.tensor for entry in model.tensors]

    def read(self, value: Value) -> Tensor | None:
        """The tensor that ``value`` makes or refers to, None where it does neither."""
        return self._keys.tensor(value) if isinstance(value, PersistentId) else super().read(value)


def _readers(pickle: PickleRecord, model: TarModelFacts) -> tuple[PersistentIdReader, TensorReader]:
    ids = _KeyReader(pickle, model)
    return ids, _TensorReader(pickle, ids, model)


def _look_elsewhere(document: TorchDocument, tar: TarFacts, limits: Limits) -> None:
    """Look for pickles in members of other names, in second copies, in gaps and behind the end."""
    for record in list(document.records):
        if record.role in ("unknown", "copy") and record.span is not None and record.span.length:
            probe_unowned(document, record.span, limits, record.name, role="copy" if record.role == "copy" else "hidden")
    for region in tar.regions:
        if region.what in UNUSED_REGIONS and region.span.length:
            probe_unowned(document, region.span, limits)


def _state_evidence(document: TorchDocument, tar: TarFacts, model: TarModelFacts) -> None:
    """Inputs: `tar` (headers), `inventory` (all members), `keys` (all entries), `pickle`, `objects`, `storages` as ever."""
    evidence = document.evidence
    pickle_evidence(document)
    codes = {fault.code for fault in tar.faults}
    limited = Evidence("partial", Reason.LIMIT, detail="directory_entries")
    torn = codes & CONTAINER_FAULTS or not (tar.end.length or model.has_all())
    evidence["tar"] = limited if "entry-limit" in codes else COMPLETE
    evidence["inventory"] = evidence["tar"]
    if torn and "entry-limit" not in codes:
        evidence["inventory"] = blocked("withheld", CONTAINER_RULES)
    whole = COMPLETE if {"tensors", "storages"} <= model.read else blocked("partial", PART_RULES)
    evidence["keys"] = whole if whole is COMPLETE else whole._replace(state="withheld")
    if "pickle" not in model.members:
        evidence["objects"] = blocked("withheld", PART_RULES)
    objects = evidence["objects"]
    evidence["storages"] = objects if objects.state != "complete" else whole
    evidence["payload"] = NOT_REQUESTED

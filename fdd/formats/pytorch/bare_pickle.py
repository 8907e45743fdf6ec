# SPDX-License-Identifier: Apache-2.0
"""Opens a bare pickle: no PyTorch file, but its neighbour. What is it, what does it name, and what does it lack?"""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.model import Identification
from fdd.core.span import Span
from fdd.core.text import printable, valid_text
from fdd.formats.probe import Probe
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.persistent_ids import PersistentIdReader
from fdd.formats.pytorch.pickled import run_pickle
from fdd.pickles import children, walk
from fdd.pickles.nodes import MISSING, Global, PersistentId
from fdd.tensors.model import Storage

SHARD_SUFFIX = ".distcp"
MOST_NAMED = 5
MOST_LISTED = 10_000
TENSOR_LOADER = ("torch.storage", "_load_from_bytes")
"""What `pickle.dump` calls to make a tensor again."""
CHECKPOINT_INDEX = ("torch.distributed.checkpoint.metadata", "Metadata")


def open_pickle(probe: Probe, identification: Identification) -> TorchDocument:
    """Run the pickle for its safety, and say in a note what a curator needs to know of it."""
    document = TorchDocument(probe.source, probe.name, identification)
    data = probe.source.read_at(0, probe.limits.pickle_bytes)
    pickle = run_pickle(
        document, data, role="foreign", record=None, span=Span(0, probe.source.size), shift=0, limits=probe.limits
    )
    names = _globals(pickle)
    storages = _storages(pickle)
    identification.details = {"protocol": pickle.facts.protocol, "globals": [valid_text(".".join(name)) for name in names[:200]]}
    if CHECKPOINT_INDEX in names:
        identification.name = "index of a distributed checkpoint (Python pickle)"
        files = sorted(set(_shard_files(pickle)))
        identification.details["shard_files"] = files
        identification.note = (
            f"The index (.metadata) of a distributed checkpoint of torch: it names {len(files)} data file"
            f"{'s' if len(files) != 1 else ''}, which belong beside it and hold the weights. Keep the folder together."
        )
    elif storages:
        size = sum(storage.byte_count or 0 for storage in storages)
        identification.name = "object index of a PyTorch archive (data.pkl)"
        identification.details["storages"] = {"count": len(storages), "bytes": size}
        identification.note = (
            f"This is the object index (data.pkl) of a PyTorch archive, outside its archive: it names {len(storages)} storages"
            f" ({size} bytes) that are not in this file. The weights are missing; get the whole archive."
        )
    else:
        identification.note = _plain_note(pickle, names)
    return document


def _plain_note(pickle: PickleRecord, names: list[tuple[str, str]]) -> str:
    told = ", ".join(printable(".".join(name), 80) for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    what = f"it names {told}{more}" if names else "it names no class or function"
    inside = " It holds tensors, as pickle.dump writes them: save it anew with torch.save." if TENSOR_LOADER in names else ""
    return (
        f"A plain Python pickle (protocol {pickle.facts.protocol}), not in PyTorch's container: {what}."
        f" Loading a pickle runs what it names; torch.load does not read it as a model.{inside}"
    )


def _globals(pickle: PickleRecord) -> list[tuple[str, str]]:
    found = (event.value for event in pickle.facts.events if event.what == "global")
    return list(dict.fromkeys((node.module, node.name) for node in found if isinstance(node, Global)))


def _storages(pickle: PickleRecord) -> list[Storage]:
    ids = PersistentIdReader(pickle, (5, 6), number_keys=True)
    for event in pickle.facts.events:
        if event.what == "persistent-id" and isinstance(event.value, PersistentId):
            ids.read(event.value)
    return list(ids.storages.values())


def _shard_files(pickle: PickleRecord) -> Iterator[str]:
    """Texts of the index that name data files; the reader of the checkpoint joins them to the folder."""
    if pickle.facts.root is MISSING:
        return
    count = 0
    for value in walk(pickle.facts.root):
        for text in children(value):  # texts carry no place, a walk passes them by
            if isinstance(text, str) and text.endswith(SHARD_SUFFIX) and count < MOST_LISTED:
                count += 1
                yield valid_text(text)

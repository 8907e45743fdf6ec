# SPDX-License-Identifier: Apache-2.0
"""What the rules on storages and tensors share: places, users of a storage, mismatches by code; no rules in here."""

from __future__ import annotations

from collections.abc import Iterator

from fdd.core.rule import Violation, at
from fdd.core.span import Span
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.objects import tensor_users
from fdd.tensors.model import Storage, Tensor


def tensor_span(tensor: Tensor) -> Span | None:
    """The opcode of the pickle that asks for the tensor."""
    return Span(tensor.offset, 1) if tensor.offset is not None else None


def pickle_of(tensor: Tensor) -> str | None:
    """The pickle that asks for the tensor, by its storage or by those of its parts."""
    if tensor.storage is not None:
        return tensor.storage.source
    return next((part.storage.source for part in tensor.parts if part.storage is not None), None)


def user_at(tensors: list[tuple[str | None, Tensor]], place: Span | None) -> str | None:
    """Of the tensors that look at one storage, the name of the one that mentions it at ``place``: the next call behind."""
    behind = [
        (tensor.offset, name) for name, tensor in tensors if tensor.offset is not None and place and tensor.offset >= place.offset
    ]
    return min(behind, key=lambda pair: pair[0])[1] if behind else None


def mismatches(document: TorchDocument, *codes: str) -> Iterator[Violation]:
    """The arguments that the readers of pickles found wrong, by the code they gave."""
    for found in document.mismatches:
        if found.code in codes:
            yield at(found.span, record=found.record, tensor=found.tensor, function=found.function, detail=found.detail)


def stored_storages(document: TorchDocument) -> Iterator[tuple[Storage, str | None]]:
    """Storages with the name of a tensor that looks at them, None where there is none."""
    users = tensor_users(document)
    for storage in document.storages:
        looking = users.get(id(storage))
        yield storage, looking[0][0] if looking else None


def shape_text(shape: tuple[int, ...] | None) -> str:
    """A shape for a message; only the first dimensions of a very long one."""
    shown = ", ".join(str(size) for size in (shape or ())[:8])
    return f"({shown}, ...)" if len(shape or ()) > 8 else f"({shown})"

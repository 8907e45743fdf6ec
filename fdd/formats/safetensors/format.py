# SPDX-License-Identifier: Apache-2.0
"""The plug-in object of safetensors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from fdd.core.model import Document, EmbeddedSource, Identification, Record
from fdd.core.payload import Part
from fdd.core.rule import Catalogue
from fdd.core.source import ByteSource, SliceSource
from fdd.formats.probe import Probe
from fdd.formats.safetensors import identify as identification_step
from fdd.formats.safetensors.document import SafetensorsDocument
from fdd.formats.segments import Segment
from fdd.limits import Limits
from fdd.tensors.model import Storage, Tensor


class Safetensors:
    """safetensors: loading one runs nothing, so there is no list that safety could refer to."""

    name = identification_step.FORMAT
    title = "safetensors"
    safety_basis: str | None = None

    @cached_property
    def catalogue(self) -> Catalogue:
        """All rules. The modules that hold them are imported here, when rules are first asked for."""
        from fdd.formats.safetensors.rules import CATALOGUE

        return CATALOGUE

    def description(self) -> Mapping[str, Any]:
        """The format description, from ``safetensors.toml`` beside this module."""
        import tomllib

        with open(os.path.join(os.path.dirname(__file__), "safetensors.toml"), "rb") as stream:
            return tomllib.load(stream)

    def identify(self, probe: Probe) -> Identification | None:
        """See :func:`fdd.formats.safetensors.identify.identify`."""
        return identification_step.identify(probe)

    def open(self, probe: Probe, identification: Identification) -> Document:
        """Read the header and lay out the tensors."""
        from fdd.formats.safetensors.document import open_document

        return open_document(probe, identification)

    def read_payload(self, document: Document, algorithms: tuple[str, ...], watched: Iterable[Part] = ()) -> None:
        """Digests of the file and of every record, in one read."""
        from fdd.formats.safetensors.document import read_payloads

        read_payloads(cast(SafetensorsDocument, document), algorithms, watched)

    def properties(self, document: Document) -> dict[str, Any]:
        """Technical metadata, see :mod:`fdd.formats.safetensors.properties`."""
        from fdd.formats.safetensors.properties import properties_of

        return properties_of(cast(SafetensorsDocument, document))

    def segments(self, document: Document) -> list[Segment]:
        """Header, padding, and the data of each tensor."""
        from fdd.formats.safetensors.parts import segments_of

        return segments_of(cast(SafetensorsDocument, document))

    def stored_parts(self, document: Document) -> Iterable[Record]:
        """The header and the data of each tensor; there is nothing else."""
        return document.records

    def is_orderly(self, document: Document) -> bool:
        """See :func:`fdd.formats.safetensors.parts.is_orderly`."""
        from fdd.formats.safetensors.parts import is_orderly

        return is_orderly(cast(SafetensorsDocument, document))

    def sources(self, document: Document, limits: Limits) -> Iterable[EmbeddedSource]:
        """None: the format carries no code."""
        return ()

    def tensors(self, document: Document) -> Iterable[Tensor]:
        """The tensors, in the order of the header."""
        return cast(SafetensorsDocument, document).tensors

    def has_all_tensors(self, document: Document) -> bool:
        """Whether the header was read to its end, and every tensor has a type, a shape and offsets."""
        from fdd.formats.safetensors.parts import has_all_tensors

        return has_all_tensors(cast(SafetensorsDocument, document))

    def payload(self, document: Document, storage: Storage, limits: Limits) -> ByteSource | None:
        """The part of the data that the tensor owns, as far as it is in the file."""
        return SliceSource(document.source, storage.span) if storage.span is not None else None

    def byte_order(self, document: Document, storage: Storage) -> str | None:
        """Little-endian, whichever machine wrote the file."""
        return "little"


FORMAT = Safetensors()

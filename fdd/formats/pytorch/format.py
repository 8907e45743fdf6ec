# SPDX-License-Identifier: Apache-2.0
"""The plug-in object of fdd000644, the PyTorch Serialized File Format and its family."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from fdd.core.model import Document, EmbeddedSource, Identification, Record
from fdd.core.payload import Part
from fdd.core.rule import Catalogue
from fdd.core.source import ByteSource
from fdd.formats.probe import Probe
from fdd.formats.pytorch import identify as identification_step
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.globals import BASIS
from fdd.formats.segments import Segment
from fdd.limits import Limits
from fdd.tensors.model import Storage, Tensor


class PyTorch:
    """fdd000644: every kind of file that a released PyTorch wrote, and bare pickles for their safety."""

    name = identification_step.FORMAT
    title = identification_step.NAMES["torch-zip"]
    safety_basis: str | None = BASIS

    @cached_property
    def catalogue(self) -> Catalogue:
        """All rules. The modules that hold them are imported here, when rules are first asked for."""
        from fdd.formats.pytorch.rules import load

        return load()

    def description(self) -> Mapping[str, Any]:
        """The format description, from ``fdd000644.toml`` beside this module."""
        import tomllib

        with open(os.path.join(os.path.dirname(__file__), "fdd000644.toml"), "rb") as stream:
            return tomllib.load(stream)

    def identify(self, probe: Probe) -> Identification | None:
        """See :func:`fdd.formats.pytorch.identify.identify`."""
        return identification_step.identify(probe)

    def open(self, probe: Probe, identification: Identification) -> Document:
        """Read the structure by the reader of the kind."""
        from fdd.formats.pytorch.opening import open_document

        return open_document(probe, identification)

    def read_payload(self, document: Document, algorithms: tuple[str, ...], watched: Iterable[Part] = ()) -> None:
        """Checksums of the file and of every record, in one read."""
        from fdd.formats.pytorch.payloads import read_payloads

        read_payloads(cast(TorchDocument, document), algorithms, watched)

    def properties(self, document: Document) -> dict[str, Any]:
        """Technical metadata, see :mod:`fdd.formats.pytorch.properties`."""
        from fdd.formats.pytorch.properties import properties_of

        return properties_of(cast(TorchDocument, document))

    def segments(self, document: Document) -> list[Segment]:
        """By container: headers, payloads, descriptors, directory and end records of a ZIP; parts of the others."""
        from fdd.formats.pytorch.parts import segments_of

        return segments_of(cast(TorchDocument, document))

    def stored_parts(self, document: Document) -> Iterable[Record]:
        """The records, and those that only local headers tell of."""
        from fdd.formats.pytorch.parts import stored_parts_of

        return stored_parts_of(cast(TorchDocument, document))

    def is_orderly(self, document: Document) -> bool:
        """See :func:`fdd.formats.pytorch.parts.is_orderly`."""
        from fdd.formats.pytorch.parts import is_orderly

        return is_orderly(cast(TorchDocument, document))

    def sources(self, document: Document, limits: Limits) -> Iterable[EmbeddedSource]:
        """Code of TorchScript and packages, classes of legacy modules."""
        from fdd.formats.pytorch.sources import sources_of

        return sources_of(cast(TorchDocument, document), limits)

    def tensors(self, document: Document) -> Iterable[Tensor]:
        """The tensors, in stream order."""
        return cast(TorchDocument, document).all_tensors()

    def has_all_tensors(self, document: Document) -> bool:
        """Whether every pickle that holds tensors was followed to its end."""
        from fdd.formats.pytorch.stored_numbers import has_all_tensors

        return has_all_tensors(cast(TorchDocument, document))

    def payload(self, document: Document, storage: Storage, limits: Limits) -> ByteSource | None:
        """The record of the storage, inflated where it is deflated."""
        from fdd.formats.pytorch.stored_numbers import payload_of

        return payload_of(cast(TorchDocument, document), storage, limits)

    def byte_order(self, document: Document, storage: Storage) -> str | None:
        """As the record `byteorder` says; always little in the forms before the ZIP."""
        from fdd.formats.pytorch.stored_numbers import byte_order_of

        return byte_order_of(cast(TorchDocument, document), storage)


FORMAT = PyTorch()

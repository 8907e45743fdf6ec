# SPDX-License-Identifier: Apache-2.0
"""The order in which a foreign file is told: signatures, structures, texts, shapes, and last resorts."""

from __future__ import annotations

from fdd.core.source import ByteSource
from fdd.formats.foreign.archives import recognise_archive
from fdd.formats.foreign.compressed import recognise_compressed
from fdd.formats.foreign.containers import recognise_container
from fdd.formats.foreign.facts import ForeignFacts, Known, Subject, make_subject
from fdd.formats.foreign.markup import recognise_markup
from fdd.formats.foreign.opaque import Mangling, describe_unknown, find_mangling, recognise_zeros
from fdd.formats.foreign.pointers import recognise_pointer
from fdd.formats.foreign.protobuf import recognise_onnx, recognise_tensorflow
from fdd.formats.foreign.signatures import recognise_gguf, recognise_hdf5, recognise_numpy, recognise_other
from fdd.formats.foreign.text import decode, recognise_plain_text
from fdd.formats.foreign.torch7 import recognise_torch7
from fdd.limits import Limits


def identify_foreign(source: ByteSource, *, name: str | None, limits: Limits, known: Known | None = None) -> ForeignFacts:
    """Say what ``source`` is, by its bytes; ``name`` (the file's own name) counts only for Python path files.

    ``known`` is asked first about files inside this one: what an installed format reads is its business to name.

    Always answers: the last resorts are `text`, `zeros`, `empty` and `unknown`. Meant for files that no installed format
    and no reader of ZIP, tar or pickle has claimed; asked about those, it names them as well. Reads the head, a sample
    and the places that headers point to; a file of zeros is read to its end. Inflates at most the first 64 KiB, in memory.
    Raises :class:`~fdd.core.errors.SourceError` where bytes cannot be had, never for what they are.
    """
    return _identify(make_subject(source, limits, name=name, known=known))


def mangling_of(source: ByteSource, *, limits: Limits, known: Known | None = None) -> list[Mangling]:
    """Signs that a binary file of whatever kind went through a text channel, was wrapped, split or not fully written."""
    return find_mangling(make_subject(source, limits, known=known), _identify)


def _identify(subject: Subject) -> ForeignFacts:
    if not subject.head:
        return ForeignFacts("empty", "empty file", "The file is empty (0 bytes). Get it again from its source.")
    inside = subject.known(subject.source, subject.name) if subject.known is not None and subject.depth else None
    if inside is not None:
        return inside
    found = (
        recognise_compressed(subject, _identify)
        or recognise_archive(subject, _identify)
        or recognise_gguf(subject)
        or recognise_numpy(subject)
        or recognise_container(subject, _identify)
        or recognise_hdf5(subject)
        or recognise_torch7(subject)
        or recognise_onnx(subject)
        or recognise_tensorflow(subject)
        or recognise_other(subject)
    )
    return found or _text(subject) or recognise_zeros(subject) or describe_unknown(subject, _identify)


def _text(subject: Subject) -> ForeignFacts | None:
    decoded = decode(subject)
    if decoded is None:
        return None
    return recognise_pointer(subject, decoded) or recognise_markup(subject, decoded) or recognise_plain_text(subject, decoded)

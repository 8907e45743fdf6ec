# SPDX-License-Identifier: Apache-2.0
"""Opens a PyTorch file by its kind, and states how far each input of the rules is there."""

from __future__ import annotations

from fdd.core.model import Identification
from fdd.formats.probe import Probe
from fdd.formats.pytorch.canonical import compare
from fdd.formats.pytorch.damage import diagnose
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.evidence import zip_evidence
from fdd.formats.pytorch.identify import ZIP_KINDS
from fdd.formats.pytorch.legacy import open_legacy
from fdd.formats.pytorch.machine_paths import find_machine_paths
from fdd.formats.pytorch.names import EAGER_KINDS, SCRIPT_KINDS, VERSION_NAMES
from fdd.formats.pytorch.nested import judge_archives, judge_unclaimed
from fdd.formats.pytorch.objects import read_objects
from fdd.formats.pytorch.pickled import collect_globals
from fdd.formats.pytorch.readings import find_other_readings
from fdd.formats.pytorch.serialization_id import check_archive
from fdd.formats.pytorch.shards import split_archives
from fdd.formats.pytorch.zipped import open_zip, probe_orphans

CONTENT_OF_KIND = {
    "torchscript": "script",
    "torchscript-mobile": "script",
    "torchscript-json": "script",
    "mobile-flatbuffer": "script",
    "pt2": "program",
    "executorch": "program",
    "torch-package": "package",
    "mar": "package",
}
"""Kinds that hold one sort of content, whatever object is inside."""


def open_document(probe: Probe, identification: Identification) -> TorchDocument:
    """Read the structure of a file whose kind is known. Raises SourceError where reading fails."""
    # Readers of single kinds are imported when one comes: together they cost more than most files.
    archives = split_archives(probe.source, probe.limits) if identification.kind == "distcp" else []
    if len(archives) > 1:
        document = TorchDocument(probe.source, probe.name, identification)
        judge_archives(document, probe, archives)
    elif identification.kind in ZIP_KINDS and probe.zip is not None:
        document = _open_archive(probe, identification)
    elif identification.kind == "torch-legacy":
        document = open_legacy(probe, identification)
    elif identification.kind == "torch-tar":
        from fdd.formats.pytorch.tarred import open_tarred

        document = open_tarred(probe, identification)
    elif identification.kind == "pickle":
        from fdd.formats.pytorch.bare_pickle import open_pickle

        document = open_pickle(probe, identification)
    elif identification.kind == "mobile-flatbuffer":
        from fdd.formats.pytorch.mobile import open_mobile

        document = TorchDocument(probe.source, probe.name, identification)
        open_mobile(probe, document)
    elif identification.kind == "executorch":
        from fdd.formats.pytorch.executorch import open_executorch

        document = TorchDocument(probe.source, probe.name, identification)
        open_executorch(probe, document)
    else:
        document = TorchDocument(probe.source, probe.name, identification)
    document.content = CONTENT_OF_KIND.get(identification.kind, document.content)
    find_other_readings(document, probe)
    collect_globals(document)
    find_machine_paths(document, probe.limits)
    diagnose(document, probe, by_python=python_made(document))
    return document


def _open_archive(probe: Probe, identification: Identification) -> TorchDocument:
    assert probe.zip is not None
    document = open_zip(probe.source, probe.name, identification, probe.zip, probe.limits)
    read_objects(document)
    probe_orphans(document, probe.limits)
    _read_special(document, probe)
    if probe.zip.local_headers_read and not python_made(document):
        document.canonical = compare(probe.source, probe.zip)
    document.id_facts = check_archive(probe.source, probe.zip)
    version = next((document.texts[name] for name in VERSION_NAMES if name in document.texts), None)
    identification.version = version.decode("ascii", "replace").strip() if version else None
    zip_evidence(document, probe.depth)
    return document


def _read_special(document: TorchDocument, probe: Probe) -> None:
    """What only one kind of archive has."""
    if document.kind in SCRIPT_KINDS | {"torch-package"}:
        from fdd.formats.pytorch.torchscript import read_script

        read_script(document, probe)
    if document.kind == "torch-package":
        from fdd.formats.pytorch.package import read_package

        read_package(document, probe)
    elif document.kind == "pt2":
        from fdd.formats.pytorch.export import read_program

        read_program(document, probe)
    elif document.kind == "mar":
        from fdd.formats.pytorch.package import read_model_archive

        read_model_archive(document, probe)
    elif document.kind in EAGER_KINDS:
        judge_unclaimed(document, probe)


def python_made(document: TorchDocument) -> bool:
    """Whether Python's zipfile made it by design: .pt2 of torch 2.1 to 2.7, and TorchServe archives."""
    return document.kind == "mar" or (document.kind == "pt2" and not document.root)

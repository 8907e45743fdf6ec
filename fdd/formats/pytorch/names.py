# SPDX-License-Identifier: Apache-2.0
"""Tells the kind of a ZIP by the names of its records, and which role each record plays (format.md 3.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

VERSION_NAMES = ("version", ".data/version")
MARKERS = (*VERSION_NAMES, "byteorder", ".data/serialization_id", ".format_version", ".storage_alignment")
"""Small records of torch's own writer. Two of them in one folder tell a torch file even without `data.pkl`."""
SMALL_RECORDS = (*MARKERS, "archive_format", "archive_version", ".data/extern_modules", ".data/python_version")
"""Records whose text is read whole."""

STORAGE_NAME = re.compile(r"(?:data|tensors)/\d+")
SCRIPT_STORAGE_NAME = re.compile(r"(?:data|tensors|constants|bytecode|traced_inputs)/\d+(?:\.storage)?")
PACKAGE_STORAGE_NAME = re.compile(r"\.data/\d+\.storage")

SCRIPT_PICKLES = {
    "data.pkl": "object",
    "constants.pkl": "constants",
    "attributes.pkl": "attributes",
    "bytecode.pkl": "bytecode",
    "traced_inputs.pkl": "traced-inputs",
    "mobile_debug_handles.pkl": "debug",
    "callstack_debug_map.pkl": "debug",
    "metadata.pkl": "metadata",
}
"""Pickles of the TorchScript family and their roles."""
SCRIPT_KINDS = frozenset({"torchscript", "torchscript-mobile", "torchscript-json"})
EAGER_KINDS = frozenset({"torch-zip", "distcp"})
BYTECODE_VERSIONS = range(4, 10)
"""Versions of the mobile bytecode that readers take."""
MAR_MANIFEST = "MAR-INF/MANIFEST.json"
"""The record that makes a ZIP a model archive of TorchServe."""


@dataclass(frozen=True, slots=True)
class ZipKind:
    """A kind, the folder that holds its records (without the slash), and the record names that decided."""

    kind: str
    root: str
    deciding: tuple[str, ...]
    confidence: str = "structure"


class _Folder:
    """The records below one folder, by their names below it."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: set[str] = set()

    def full(self, *names: str) -> tuple[str, ...]:
        return tuple(f"{self.root}/{name}" if self.root else name for name in names)

    def has(self, *names: str) -> bool:
        return all(name in self.names for name in names)

    def below(self, prefix: str) -> str | None:
        return next((name for name in sorted(self.names) if name.startswith(prefix)), None)

    def matching(self, pattern: re.Pattern[str]) -> str | None:
        return next((name for name in sorted(self.names) if pattern.fullmatch(name)), None)


def zip_kind(names: Iterable[str], *, unfinished: bool) -> ZipKind | None:
    """The kind of a ZIP with these record names, in the order of the directory; None where it is not a torch file.

    The folder of the first record comes first, as torch takes it; other folders follow, then the archive's own top level
    and folders one level deeper (archives packed again by hand). ``unfinished``: nothing in the whole ZIP is more than
    the small records that a save writes beside the object.
    """
    names = list(dict.fromkeys(names))
    for folder in _folders(names):
        found = _script_family(folder) or _package_family(folder) or _eager(folder, unfinished)
        if found is not None:
            return found
    return _archive_level(names)


def _folders(names: list[str]) -> list[_Folder]:
    folders: dict[str, _Folder] = {}
    for name in names:
        parts = name.split("/")
        for depth in (1, 0, 2):
            if len(parts) > depth:
                root = "/".join(parts[:depth])
                folders.setdefault(root, _Folder(root)).names.add("/".join(parts[depth:]))
    return sorted(folders.values(), key=lambda folder: (1, 0, 2).index(_depth(folder.root)))


def _depth(root: str) -> int:
    return root.count("/") + 1 if root else 0


def _script_family(folder: _Folder) -> ZipKind | None:
    code = folder.below("code/")
    old = folder.has("version") or code or folder.below("tensors/")
    # Writers of model.json wrote no data.pkl: beside one, it is a file that somebody added.
    if folder.has("model.json") and old and (code is not None or not folder.has("data.pkl")):
        return ZipKind("torchscript-json", folder.root, folder.full("model.json"))
    if folder.has("bytecode.pkl") and (folder.has("constants.pkl") or folder.has("data.pkl")):
        return ZipKind("torchscript-mobile", folder.root, folder.full("bytecode.pkl"))
    script_code = folder.below("code/__torch__")
    if code is not None and (folder.has("constants.pkl") or (script_code and folder.has("data.pkl"))):
        return ZipKind(
            "torchscript", folder.root, folder.full(*(("constants.pkl",) if folder.has("constants.pkl") else ()), code)
        )
    # What is left of a file that was cut: 1.3 wrote its code first, and before it the main module was named after the folder.
    if script_code is not None:
        return ZipKind("torchscript", folder.root, folder.full(script_code), "container")
    main = f"code/{folder.root}.py"
    if folder.has("version", main):
        return ZipKind("torchscript-json", folder.root, folder.full("version", main), "container")
    return None


def _package_family(folder: _Folder) -> ZipKind | None:
    if folder.has("archive_format"):
        return ZipKind("pt2", folder.root, folder.full("archive_format"))
    model = folder.below("models/")
    if model is not None and (folder.below("data/weights/") or folder.below("data/constants/") or folder.has("archive_version")):
        return ZipKind("pt2", folder.root, folder.full(model))
    if not folder.root and folder.has("serialized_exported_program.json"):
        return ZipKind("pt2", "", ("serialized_exported_program.json",))
    for name in (".data/extern_modules", ".data/python_version"):
        if folder.has(name):
            return ZipKind("torch-package", folder.root, folder.full(name))
    storage = folder.matching(PACKAGE_STORAGE_NAME)
    if storage is not None:
        confidence = "structure" if folder.has(".data/version") else "container"
        return ZipKind("torch-package", folder.root, folder.full(storage), confidence)
    return None


def _eager(folder: _Folder, unfinished: bool) -> ZipKind | None:
    # torch looks names up without regard to case: DATA.PKL serves as data.pkl.
    pickle_name = next((name for name in sorted(folder.names, reverse=True) if name.lower() == "data.pkl"), None)
    markers = [name for name in MARKERS if folder.has(name)]
    storage = folder.matching(STORAGE_NAME)
    if pickle_name is not None and (_depth(folder.root) == 1 or markers or storage):
        return ZipKind("torch-zip", folder.root, folder.full(pickle_name))
    versions = [name for name in markers if name in VERSION_NAMES]
    distinct = len(markers) - max(0, len(versions) - 1) + (storage is not None)
    if _depth(folder.root) == 1 and unfinished and (distinct >= 2 or versions == ["version"]):
        return ZipKind("incomplete-save", folder.root, folder.full(*markers))
    if distinct >= 2:
        return ZipKind("torch-zip", folder.root, folder.full(*markers, *((storage,) if storage else ())), "container")
    return None


def _archive_level(names: list[str]) -> ZipKind | None:
    manifest = next((name for name in names if name == MAR_MANIFEST), None)
    return ZipKind("mar", "", (manifest,)) if manifest is not None else None


def record_role(kind: str, local: str) -> str:
    """What a record is for, by its name below the top folder. `unknown` where the format knows no such record."""
    if local in VERSION_NAMES:
        return "version"
    if local in MARKERS:
        return local.rpartition("/")[2].lstrip(".").replace("_", "-")
    if local.endswith("/"):
        return "directory-entry"
    if kind in EAGER_KINDS or kind == "incomplete-save":
        return _eager_role(local)
    if kind in SCRIPT_KINDS:
        return _script_role(kind, local)
    if kind == "torch-package":
        return _package_role(local)
    if kind == "pt2":
        return _program_role(local)
    return "member"


def _eager_role(local: str) -> str:
    if local.lower() == "data.pkl":
        return "object"
    return "storage" if local.startswith(("data/", "tensors/")) else "unknown"


def _script_role(kind: str, local: str) -> str:
    if local in SCRIPT_PICKLES:
        return SCRIPT_PICKLES[local]
    if local == "model.json" and kind == "torchscript-json":
        return "model-json"
    if local.startswith(("data/", "tensors/", "constants/", "bytecode/", "traced_inputs/")):
        return "storage"
    if local.startswith(("code/", "libs/", "ts_code/")):
        return "debug" if local.endswith(".debug_pkl") else "code"
    if local.startswith("debug/") or local.endswith(".debug_pkl"):
        return "debug"
    return "extra-file" if local.startswith("extra/") else "unknown"


def _package_role(local: str) -> str:
    if PACKAGE_STORAGE_NAME.fullmatch(local):
        return "storage"
    if local in (".data/extern_modules", ".data/python_version"):
        return local.removeprefix(".data/").replace("_", "-")
    if local.startswith(".data/ts_code/"):
        if local.endswith(".pkl"):
            return "ts-code"
        return "debug" if local.endswith(".debug_pkl") else "code"
    if local.startswith(".data/"):
        return "unknown"
    if local.endswith(".py"):
        return "source"
    return "packaged" if local.endswith(".pkl") else "resource"


def _program_role(local: str) -> str:
    if local in ("archive_format", "archive_version"):
        return local.replace("_", "-")
    if local.startswith("serialized_") or local.endswith((".pt", ".pt2")):
        return "program" if local.endswith("program.json") else "nested"
    if local.startswith("models/"):
        return "program"
    if local.startswith(("data/weights/", "data/constants/")):
        return "config" if local.endswith(".json") else "storage"
    if local.startswith("data/aotinductor/"):
        return "native"
    return "extra-file" if local.startswith(("extra/", "data/executorch/", "data/sample_inputs/")) else "unknown"

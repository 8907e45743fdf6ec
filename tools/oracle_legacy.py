# SPDX-License-Identifier: Apache-2.0
"""As tools/oracle.py, for the forms before the ZIP: whole modules, Python 2 pickles and tars, which only
``weights_only=False`` loads.

usage: python tools/oracle_legacy.py FOLDER...      (under a Python that has torch)

The unrestricted loader RUNS what a file names: only legacy streams and tars are loaded that fdd finds nothing dangerous
in, and only from folders given by hand. Classes that are not installed are made up. The exit code is 1 where anything
differs.
"""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import fdd
from fdd.core.finding import Safety
from fdd.formats.pytorch.contents import MODULE_STATE
from tools import oracle

KINDS = frozenset({"torch-legacy", "torch-tar"})


class _Unpickler(pickle.Unpickler):
    """Makes up a module class for every name that cannot be imported."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            import torch

            return type(name, (torch.nn.Module,), {"__module__": module})


def _module() -> types.ModuleType:
    """What torch.load takes for ``pickle_module``."""
    made = types.ModuleType("pickle_with_made_up_classes")
    made.__dict__.update(vars(pickle))
    made.Unpickler = _Unpickler  # type: ignore[attr-defined]
    made.load = lambda file, **options: _Unpickler(file, **options).load()  # type: ignore[attr-defined]
    return made


def load(path: Path, encoding: str = "utf-8") -> Any:
    """What the unrestricted loader of torch gives. Raises whatever torch raises."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=_module(), encoding=encoding)


def loaded_tensors(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """(name, tensor) of a loaded object and of the modules in it."""
    import torch

    if isinstance(value, torch.nn.Module):
        for key, item in vars(value).items():
            inner = item.items() if key in MODULE_STATE else ((key, item),)
            for name, part in inner:
                yield from loaded_tensors(part, (*path, name))
    elif isinstance(value, torch.Tensor):
        yield "/".join(path), value
    elif isinstance(value, dict):
        for key, item in value.items():
            text = key.decode("latin-1") if isinstance(key, bytes) else key
            text = text.replace("~", "~0").replace("/", "~1") if isinstance(text, str) else str(text)
            yield from loaded_tensors(item, (*path, text))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from loaded_tensors(item, (*path, str(index)))


def compare(path: Path) -> tuple[int, list[str]] | None:
    """Number of tensors compared and every difference; None where the file is no older form, or torch does not load it."""
    report = fdd.validate(str(path))
    if report.identification is None or report.identification.kind not in KINDS or report.safety is Safety.DANGEROUS:
        return None
    value = None
    for encoding in ("utf-8", "latin-1"):
        try:
            value = load(path, encoding)
            break
        except Exception as error:  # noqa: BLE001  (torch raises what it likes; such files are not compared)
            sys.stderr.write(f"{path}: {type(error).__name__}: {str(error)[:100]}\n")
    else:
        return None
    document = oracle.document_of(path)
    assert document is not None
    return oracle.differences(document, dict(loaded_tensors(value)))


if __name__ == "__main__":
    sys.exit(oracle.run(compare, sys.argv[1:]))

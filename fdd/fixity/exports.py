# SPDX-License-Identifier: Apache-2.0
"""Manifests in the forms of other tools. Only whole-file digests fit most of them; model-signing takes parts too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from fdd.core.errors import UsageError
from fdd.fixity.manifest import Manifest

HASHDEEP_ALGORITHMS = ("md5", "sha1", "sha256")
"""What hashdeep knows of our algorithms, in its order of columns."""


def sha256sum(manifests: Sequence[Manifest]) -> str:
    """Lines for `sha256sum -c` (coreutils): names with a backslash or line end are escaped and the line says so."""
    return "".join(_gnu_line(_digest(manifest, "sha256"), _path(manifest)) for manifest in manifests)


def _gnu_line(digest: str, path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{chr(92) if escaped != path else ''}{digest}  {escaped}\n"


def bagit(manifests: Sequence[Manifest]) -> str:
    """Lines of a BagIt `manifest-sha256.txt` (RFC 8493, 2.1.3) for the files of a bag's `data` folder: line ends and `%`
    in paths are encoded."""
    rows = []
    for manifest in manifests:
        path = _text_path(manifest, "BagIt").replace("%", "%25").replace("\n", "%0A").replace("\r", "%0D")
        rows.append(f"{_digest(manifest, 'sha256')}  data/{path}\n")
    return "".join(rows)


def hashdeep(manifests: Sequence[Manifest]) -> str:
    """A hashdeep file. All manifests must have the same algorithms."""
    algorithms = [name for name in HASHDEEP_ALGORITHMS if all(name in manifest.digests for manifest in manifests)]
    if not algorithms:
        raise UsageError("hashdeep needs md5, sha1 or sha256: create the manifests with --digest md5,sha256")
    lines = ["%%%% HASHDEEP-1.0", f"%%%% size,{','.join(algorithms)},filename", "## Written by fdd", "##"]
    for manifest in manifests:
        if re.search(r"[\r\n]", _path(manifest)):
            raise UsageError("hashdeep cannot hold a name with a line end")
        lines.append(",".join([str(manifest.size), *(manifest.digests[name] for name in algorithms), _path(manifest)]))
    return "\n".join(lines) + "\n"


def ocfl(manifests: Sequence[Manifest]) -> str:
    """A `fixity` block of an OCFL inventory (1.1, section 3.5.4): algorithm -> digest -> content paths.

    Manifests made from the root of the object have such paths.
    """
    block: dict[str, dict[str, list[str]]] = {}
    for manifest in manifests:
        for name, digest in manifest.digests.items():
            block.setdefault(_ocfl_name(name), {}).setdefault(digest, []).append(_text_path(manifest, "OCFL"))
    return json.dumps({"fixity": block}, ensure_ascii=False, indent=2) + "\n"


def _ocfl_name(algorithm: str) -> str:
    return {"blake2b": "blake2b-512"}.get(algorithm, algorithm)


def model_signing(manifests: Sequence[Manifest]) -> str:
    """Resources of an OpenSSF model-signing statement: the file, and each part as `name:start:end`, end exclusive.

    Readers of such names cut them at each colon, so a path must hold none.
    """
    resources = []
    for manifest in manifests:
        path = _text_path(manifest, "model-signing")
        if ":" in path:
            raise UsageError(f"model-signing cannot name parts of a file with a colon in its path: {path}")
        resources.append({"name": path, "algorithm": "sha256", "digest": _digest(manifest, "sha256")})
        for segment in manifest.segments:
            if "sha256" in segment.digests and segment.span.length:
                name = f"{path}:{segment.span.offset}:{segment.span.end}"
                resources.append({"name": name, "algorithm": "sha256", "digest": segment.digests["sha256"]})
    return json.dumps({"resources": resources}, ensure_ascii=False, indent=2) + "\n"


EXPORTS: dict[str, Callable[[Sequence[Manifest]], str]] = {
    "sha256sum": sha256sum,
    "bagit": bagit,
    "hashdeep": hashdeep,
    "ocfl": ocfl,
    "model-signing": model_signing,
}
"""Form -> what writes it."""


def _path(manifest: Manifest) -> str:
    return manifest.file_system_path


def _text_path(manifest: Manifest, form: str) -> str:
    if manifest.percent_encoded:
        raise UsageError(f"{form} cannot hold a name that is not UTF-8: {manifest.place}")
    return manifest.place


def _digest(manifest: Manifest, algorithm: str) -> str:
    if algorithm not in manifest.digests:
        raise UsageError(f"the manifest of {manifest.place} has no {algorithm}: create it with --digest {algorithm}")
    return manifest.digests[algorithm]

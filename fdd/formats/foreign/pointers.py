# SPDX-License-Identifier: Apache-2.0
"""Small texts that stand for a file kept elsewhere: Git LFS pointers, and the like of git-annex, DVC and Xet."""

from __future__ import annotations

import re

from fdd.core.model import Basis
from fdd.core.text import printable
from fdd.formats.foreign.facts import ForeignFacts, Subject
from fdd.formats.foreign.text import DecodedText

_MOST_CHARACTERS = 4096
"""The specification allows 1024 bytes; mangled pointers grow a little."""
_LFS_VERSION = re.compile(r"https?://(?:git-lfs\.github\.com/spec/|hawser\.github\.com/spec/|git-media\.io/v/)(\S+)")
_ANNEX_KEY = re.compile(r"([A-Z0-9_]{2,20})-(?:s(\d{1,20}))?[^/]{0,100}?--(.+)")
_LFS_LINE = re.compile(r"\s*(version|oid|size|ext-\d-\w+)[ \t:]+(\S.*?)\s*$")


def recognise_pointer(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    """A pointer text; key order, line ends and blank lines do not matter."""
    if not decoded.whole or len(decoded.text) > _MOST_CHARACTERS:
        return None
    return _git_lfs(subject, decoded) or _other(subject, decoded)


def _git_lfs(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    found: dict[str, list[str]] = {}
    for line in decoded.lines:
        if match := _LFS_LINE.match(line):
            found.setdefault(match[1], []).append(match[2])
    version = _LFS_VERSION.match(found.get("version", [""])[0])
    oid = re.match(r"(?:sha256:)?([0-9a-fA-F]{64})$", found.get("oid", [""])[0])
    size = re.match(r"\d{1,20}$", found.get("size", [""])[0])
    if version is None and not (oid and size):
        return None
    details = {
        "oid": f"sha256:{oid[1].lower()}" if oid else None,
        "sha256": oid[1].lower() if oid else None,
        "size": int(size[0]) if size else None,
        "line_ends": "CR LF" if "\r\n" in decoded.text else "LF",
        "encoding": decoded.encoding,
    }
    facts = ForeignFacts("git-lfs-pointer", "Git LFS pointer", "", mime="text/plain", details=details)
    facts.version = version[1].removeprefix("v") if version else None
    facts.basis = [Basis("Git LFS pointer", 0, len(subject.head))]
    real = [f"SHA-256 {oid[1].lower()}"] if oid else []
    real += [f"{int(size[0])} bytes"] if size else []
    facts.note = "Not the model but a Git LFS pointer" + (" with CR LF line ends" if details["line_ends"] == "CR LF" else "")
    facts.note += f": the real file has {' and '.join(real)}; " if real else " that is damaged; "
    facts.note += "get it with `git lfs pull` or from the hosting site."
    if "<<<<<<<" in decoded.text or len(found.get("oid", ())) > 1:
        details["conflict"] = True
        facts.note += " The pointer holds an unresolved merge conflict: which of its versions is meant must be decided first."
    return facts


_DVC_PATH = re.compile(r"^\s*-?\s*path: *(\S.*)$", re.MULTILINE)
_DVC_SUM = re.compile(r"""^\s*-?\s*(?:md5|etag|checksum): *["']?([0-9a-f]{32}[^\s"']*)["']?\s*$""", re.MULTILINE)


def _other(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    text = decoded.text.strip()
    first = text.split("\n", 1)[0].strip().replace("\\", "/")
    annex = _ANNEX_KEY.match(first.rsplit("/", 1)[-1]) if "annex/objects/" in first else None
    # What a .dvc file says in front of its outputs is of itself, or of what was imported.
    outputs = re.search(r"^outs:[ \t]*$", text, re.MULTILINE)
    where = outputs.end() if outputs is not None else len(text)
    dvc_path = _DVC_PATH.search(text, where)
    dvc = _DVC_SUM.search(text, where)
    if annex:
        size = f" of {annex[2]} bytes" if annex[2] else ""
        name = "git-annex pointer"
        note = f"the real file{size} has the key {annex[1]} {printable(annex[3])}; get it with `git annex get`"
        details = {"key": printable(annex[3]), "backend": annex[1], "size": int(annex[2]) if annex[2] else None}
    elif text.startswith("# xet version"):
        name, note = "Xet pointer", "get the real file from the hosting site"
        details = {"text": printable(text)}
    elif dvc and dvc_path:
        details = {"md5": dvc[1], "path": printable(dvc_path[1].strip().strip("\"'"))}
        name, note = "DVC pointer", f"the real file {details['path']} has MD5 {dvc[1]}; get it with `dvc pull`"
    else:
        return None
    facts = ForeignFacts("text", name, f"Not the model but a {name}: {note}.", mime="text/plain", pronom="x-fmt/111")
    facts.details, facts.basis = details, [Basis(name, 0, len(subject.head))]
    return facts

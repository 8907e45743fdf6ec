# SPDX-License-Identifier: Apache-2.0
"""Texts in the place of a model: decoding, pointers to other files, Python path files, error messages."""

from __future__ import annotations

import codecs
import contextlib
import re
from dataclasses import dataclass

from fdd.core.model import Basis
from fdd.core.text import printable
from fdd.formats.foreign.facts import ForeignFacts, Subject, counted, quote

_TAIL_BYTES = 1 << 12
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Control characters other than tab, line and page breaks, backspace, escape (coloured logs) and Ctrl-Z (end mark of DOS).
# The second block of them (from 80 on) is what binary bytes turn into when they are taken for characters.
_CONTROL = re.compile("[\x00-\x07\x0e-\x19\x1c-\x1f\x7f\x80-\x84\x86-\x9f]")
_CONTROL_BYTES = re.compile(rb"[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")
_MODEL_SUFFIXES = tuple(
    ".pt .pth .bin .ckpt .pkl .safetensors .pt2 .ptl .pte .tar .zip .onnx .h5 .gguf .model .distcp .mar".split()
)
_ERROR_WORDS = re.compile(
    r"\b(?:not found|denied|forbidden|unauthori[sz]ed|error|gateway|expired|restricted|rate.?limit|too many requests|timed? ?out"
    r"|unavailable|no ?such|quota|must be authenticated|log ?in|invalid|failed|does not exist|moved permanently|bad request"
    r"|no healthy upstream|too large|virus|missing|exceeded|no longer|temporarily|4\d\d|5\d\d)\b",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9._-]{2,30})""", re.IGNORECASE)
_DECLARED_WITHIN = 2048
"""Bytes in which a page states its encoding; browsers look at 1024."""
_LONGEST_PATH = 4096
_LONG_TEXT = 2048
"""Characters above which a text is no single error message."""


@dataclass(slots=True)
class DecodedText:
    """The head as text: without byte order mark, line ends as they are. ``whole`` is False where the file goes on."""

    text: str
    encoding: str
    whole: bool

    @property
    def lines(self) -> list[str]:
        """The lines without their ends (LF, CR LF, CR); blank lines at the end dropped."""
        lines = re.split(r"\r\n|\n|\r", self.text)
        while lines and not lines[-1].strip("\x1a \t"):
            lines.pop()
        return lines


def decode(subject: Subject) -> DecodedText | None:
    """Decode the head where it is text: UTF-8, UTF-16 or UTF-32 (marked, or plain to see), else an 8-bit encoding.

    Control characters make it no text, NUL above all; so does a binary tail.
    """
    head, whole = subject.head, subject.size <= len(subject.head) and not subject.partial
    if whole and b"\0" not in (text_alone := head.rstrip(b"\0")) and len(text_alone) > 1:
        head = text_alone  # programs in C write the end mark of their texts, too
    marked = next(((mark, encoding) for mark, encoding in _BOMS if head.startswith(mark)), (b"", ""))
    encoding = marked[1] or _unmarked_utf16(head) or "utf-8"
    text = _decode(head[len(marked[0]) :], encoding, whole)
    if text is None and encoding == "utf-8":
        encoding, text = _declared(head, whole)
    if text is None and encoding == "utf-8":
        encoding, text = "windows-1252", _decode_8bit(head)
    if text is None or _CONTROL.search(text):
        return None
    bytewise = not encoding.startswith(("utf-16", "utf-32"))
    later = (subject.size // 2, subject.size - _TAIL_BYTES) if bytewise and not whole and not subject.partial else ()
    if any(_CONTROL_BYTES.search(subject.source.read_at(place, _TAIL_BYTES)) for place in later):
        return None
    return DecodedText(text, encoding, whole)


def _decode(data: bytes, encoding: str, final: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(data, final)
    except UnicodeDecodeError:
        return None


def _declared(head: bytes, whole: bool) -> tuple[str, str | None]:
    """Text in the encoding that a page says it has."""
    match = _CHARSET.search(head[:_DECLARED_WITHIN])
    if match is not None:
        name = match[1].decode("ascii").lower()
        with contextlib.suppress(LookupError, ValueError):
            b"".decode(name)  # refuses what is no encoding of text
            text = _decode(head, name, whole)
            if text is not None:
                return name, text
    return "utf-8", None


def _unmarked_utf16(head: bytes) -> str | None:
    """UTF-16 without a mark: in text of Latin letters one byte of each pair is nearly always zero, the other never."""
    pairs = len(head) // 2
    even, odd = head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0)
    if pairs >= 4 and not even and odd >= 0.9 * pairs:
        return "utf-16-le"
    return "utf-16-be" if pairs >= 4 and not odd and even >= 0.9 * pairs else None


def _decode_8bit(head: bytes) -> str | None:
    """Text in an 8-bit encoding: mostly ASCII, no control characters, at least one word."""
    high = len(head) - len(head.translate(None, bytes(range(128, 256))))
    if high > 0.3 * len(head) or _CONTROL_BYTES.search(head) or not re.search(rb"[A-Za-z]{4}", head):
        return None
    return head.decode("windows-1252", "replace")


def recognise_plain_text(subject: Subject, decoded: DecodedText) -> ForeignFacts:
    """The last resort for a text: say what it says. Path files and pointers to other files are looked for first."""
    # A file in Base64 on one line would pass for a path with many folders.
    found = _path_file(subject, decoded) or (None if _packed(decoded.text) is not None else _names_file(decoded))
    if found is None:
        found = _facts("text", "plain text", "", decoded)
        _describe(found, decoded)
    found.basis = [Basis(f"{decoded.encoding} text", 0, len(subject.head))]
    return found


def _facts(kind: str, name: str, note: str, decoded: DecodedText) -> ForeignFacts:
    facts = ForeignFacts(kind, name, note, mime="text/plain", pronom="x-fmt/111" if kind == "text" else None)
    facts.details["encoding"] = decoded.encoding
    return facts


def _describe(facts: ForeignFacts, decoded: DecodedText) -> None:
    lines = decoded.lines
    first = next((line for line in lines if line.strip()), "")
    facts.details |= {"first_line": printable(first.strip()), "line_count": len(lines) if decoded.whole else None}
    packed = _packed(decoded.text)
    if not first:
        facts.note = "A text of blanks and line ends only, not a model."
    elif packed is not None:
        facts.details["packed"] = packed
        facts.note = f"A text, not a model as it stands: {packed}; decode it and validate what comes out."
    elif len(decoded.text) <= _LONG_TEXT and decoded.whole:
        facts.note = f"A short text, not a model: {quote(' '.join(lines).rstrip(' .'))}."
        if _ERROR_WORDS.search(decoded.text):
            facts.details["error_message"] = True
            facts.note += " It is an error message, saved in the place of the file; get the file again from its source."
    else:
        extent = f" of {counted(len(lines), 'line')}" if decoded.whole else ""
        facts.note = f"A text{extent}, not a model; it begins {quote(first)}."


def _packed(text: str) -> str | None:
    """Whether the text is a binary file written in letters."""
    start = text.lstrip()[:80].removeprefix("data:application/octet-stream;base64,")
    if re.match(r"UEsDB[AB]|gAKKCmz8nEb5IGqoUBk|H4sI", start):
        return "a binary file encoded in Base64"
    if re.match(r"(?:0x)?(?:50 ?4b ?03 ?04|80 ?02 ?8a ?0a ?6c ?fc)", start, re.IGNORECASE):
        return "a binary file written in hexadecimal"
    if re.match(r"begin(?:-base64)? [0-7]{3} \S", start):
        return "a binary file encoded by uuencode"
    return None


def _is_path(line: str) -> bool:
    """Whether a line reads as a path: absolute, or relative with a slash; blanks only in absolute ones."""
    if len(line) >= _LONGEST_PATH:
        return False
    if re.match(r"/|\\\\|[A-Za-z]:[\\/]|~/", line):
        return "//" not in line[1:]
    return line in (".", "..") or (("/" in line or "\\" in line) and not re.search(r'[\s:<>"|?*]', line))


def _path_file(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    """A path configuration file of Python's `site` module, by name (.pth) and by every line being plausible in one.

    Lines are directories to add to the module path, comments, or statements that begin with `import` and are executed.
    """
    if not (subject.name or "").lower().endswith(".pth") or not decoded.whole:
        return None
    lines = [(number, line.strip()) for number, line in enumerate(decoded.lines, 1) if line.strip()]
    imports = [(number, line) for number, line in lines if re.match(r"import[ \t]", line)]
    paths = [line for _, line in lines if _is_path(line)]
    comments = [line for _, line in lines if line.startswith("#")]
    if len(imports) + len(paths) + len(comments) < len(lines) or not (imports or paths):
        return None
    if paths and not imports and all(path.lower().endswith(_MODEL_SUFFIXES) for path in paths):
        return None
    facts = _facts("python-path", "Python path configuration file", "", decoded)
    facts.details |= {
        "paths": [printable(path) for path in paths[:50]],
        "import_lines": [{"line": number, "text": printable(line)} for number, line in imports[:50]],
    }
    facts.note = "A Python path file (site-packages/*.pth), not a model"
    if imports:
        places = ", ".join(str(number) for number, _ in imports[:5])
        which = f"line {places} is" if len(imports) == 1 else f"lines {places} are"
        facts.note += f"; {which} executed at interpreter start."
    elif len(paths) == 1:
        facts.note += f", or a text that points to a folder: its one line is {quote(paths[0])}."
    else:
        facts.note += f"; it adds {counted(len(paths), 'folder')} to the module path."
    return facts


def _names_file(decoded: DecodedText) -> ForeignFacts | None:
    """A text that holds nothing but the path of another file: a symbolic link or pointer flattened to text."""
    lines = [line.strip() for line in decoded.lines if line.strip()]
    if not decoded.whole or not 1 <= len(lines) <= 100:
        return None
    if not all(_is_path(line) or (re.fullmatch(r"[\w.+-]+", line) and line.lower().endswith(_MODEL_SUFFIXES)) for line in lines):
        return None
    facts = _facts("text", "text that names another file", "", decoded)
    names = [re.split(r"[\\/]", line)[-1] or line for line in lines]
    facts.details["names"] = [printable(line) for line in lines[:50]]
    if len(lines) == 1:
        where = f" ({quote(lines[0])})" if names[0] != lines[0] else ""
        facts.note = f"The file only names another file: {printable(names[0])}{where}; get that one."
    else:
        facts.note = f"The file only names {counted(len(lines), 'other file')}, first {printable(names[0])}; get those."
    return facts

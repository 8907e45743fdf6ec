# SPDX-License-Identifier: Apache-2.0
"""HTML, XML and JSON in the place of a model: pages and error answers of servers, shard indexes."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from fdd.core.model import Basis
from fdd.core.text import printable
from fdd.formats.foreign.facts import STRUCTURE_BYTES, ForeignFacts, Subject, counted, quote
from fdd.formats.foreign.text import DecodedText

_HTML_TAG = re.compile(
    r"<(?:html|head|body|title|script|style|meta|link|base|table|div|span|center|iframe|form|img|h[1-6]|p|br|hr|a|b|i|pre|font|ul|ol"
    r"|main|header|nav|section|noscript)(?=[\s>/])",
    re.IGNORECASE,
)
# Words of a page -> what the page is. Looked for in the first kilobytes, in this order.
_PAGE_HINTS = tuple(
    (re.compile(words, re.IGNORECASE), hint)
    for words, hint in (
        (
            r"virus scan|too large to be scanned|can't scan this file",
            "the warning of a file-sharing site before a large download; confirm the download there",
        ),
        (r"sign in|log ?in\b|password|single sign-on|authenticat", "a login page; log in and download again"),
        (r"captcha|checking your browser|just a moment|javascript and cookies", "a browser check; download with a browser"),
        (
            r"\bat (?:master|main)\b|/blob/(?:master|main)\b|data-color-mode|github|gitlab|bitbucket|gitee|hugging ?face",
            "the web view of a repository, not the file itself; use the raw or download link",
        ),
        (r"not found|\b404\b|does not exist|no longer available", "a page that says the file was not found"),
        (r"forbidden|access denied|\b403\b|unauthori[sz]ed|\b401\b|permission", "a page that refuses access"),
        (
            r"bad gateway|service unavailable|internal server error|timed? ?out|\b50[0-9]\b|quota|too many",
            "an error page of the server; try again later",
        ),
        (r"index of /", "the listing of a folder on a server"),
    )
)
_HINT_CHARACTERS = 1 << 14
_LATE_CHARACTERS = 1 << 12
_MOST_ANSWER_KEYS = 8
_MESSAGE_KEYS = (
    "error_description",
    "error_summary",
    "message",
    "error",
    "detail",
    "title",
    "msg",
    "reason",
    "error_message",
    "errors",
)


def recognise_markup(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    """HTML, XML or JSON, told by how the text begins: blanks, comments and declarations in front do not matter."""
    text, prolog = _without_prolog(decoded.text)
    if text.startswith("<") or prolog:
        found = _html(text) or _xml(decoded.text, text, prolog)
    elif late := re.search("<!doctype html|<html", decoded.text[:_LATE_CHARACTERS], re.IGNORECASE):
        # Other words stand in front of the page, such as a warning of the server's own script.
        found = _html(decoded.text[late.start() :])
    else:
        found = _json(subject, decoded)
    if found is not None:
        found.details["encoding"] = decoded.encoding
        found.basis = [Basis(f"{found.kind} text", 0, min(len(subject.head), 256))]
    return found


def _without_prolog(text: str) -> tuple[str, bool]:
    """The text behind blanks, comments and an XML declaration; and whether there was such a declaration."""
    declared = False
    text = text.lstrip("\ufeff \t\r\n\x0b\x0c")
    while True:
        if text.startswith("<!--"):
            end = text.find("-->")
        elif text[:5].lower() == "<?xml":
            end, declared = text.find("?>") - 1, True
        else:
            return text, declared
        if end < 0:
            return "", declared
        text = text[end + 3 :].lstrip()


def _between(text: str, start: str, end: str) -> str | None:
    """The text between the first ``start`` tag, its attributes skipped, and the next ``end``; any case."""
    found = re.search(re.escape(start), text, re.IGNORECASE)
    opened = text.find(">", found.end() - 1) + 1 if found else 0
    closed = re.compile(re.escape(end), re.IGNORECASE).search(text, opened) if opened else None
    return text[opened : closed.start()] if closed else None


def _visible_text(text: str) -> str:
    """What a reader of the page would see, roughly: no scripts, styles or tags."""
    text = re.sub(r"<(script|style)\b", "\0", text, flags=re.IGNORECASE)
    first, *rest = text.split("\0")
    shown = first + "".join(part[part.find("</") :] for part in rest if "</" in part)
    return " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", shown)).split())


def _html(text: str) -> ForeignFacts | None:
    doctype = re.match(r"<!doctype\s+html\b", text, re.IGNORECASE)
    if not doctype and not _HTML_TAG.match(text):
        return None
    title = _between(text, "<title", "</title") or _between(text, "<h1", "</h1")
    shown = " ".join(html.unescape(re.sub(r"<[^<>]*>", " ", title or "")).split())
    words = _visible_text(text[:_HINT_CHARACTERS])
    searched = f"{words} {text[:_HINT_CHARACTERS]}"
    hint = next((hint for pattern, hint in _PAGE_HINTS if pattern.search(searched)), None)
    facts = ForeignFacts("html", "HTML page", "", mime="text/html", pronom="fmt/96")
    facts.details = {"title": printable(shown) or None, "text": printable(words, 200), "hint": hint}
    titled = f" titled {quote(shown)}" if shown else f" that says {quote(words)}" if words else ""
    advice = f": it looks like {hint}." if hint else "; get the file again from its source."
    facts.note = f"An HTML page{titled}, not a model{advice}"
    return facts


def _xml(whole: str, text: str, declared: bool) -> ForeignFacts | None:
    """XML, read by plain search: no parser, so no entity is ever expanded. Storage servers answer errors this way."""
    # The first tag with a letter behind `<`: declarations, comments and instructions begin with `!` or `?`.
    root = re.search(r"<([A-Za-z_][\w.:-]*)(?=[\s>/])", text)
    if root is None and not declared:
        return None
    if root is not None and not declared and f"</{root[1]}" not in text and "/>" not in text:
        return None
    code, message = (_between(whole, f"<{tag}>", f"</{tag}>") for tag in ("code", "message"))
    facts = ForeignFacts("xml", "XML document", "", mime="application/xml", pronom="fmt/101")
    facts.details = {"root": root[1] if root else None}
    facts.details |= {key: printable(part) if part else None for key, part in (("code", code), ("message", message))}
    if code or message:
        said = ": ".join(printable(" ".join(html.unescape(part).split())) for part in (code, message) if part)
        facts.note = f"An XML error message: {said}. Not a model; get the file again from its source."
    else:
        facts.note = f"An XML document (root element {root[1] if root else 'unknown'}), not a model."
    return facts


def _json(subject: Subject, decoded: DecodedText) -> ForeignFacts | None:
    """JSON: an object, a list or a quoted text. What does not parse still counts where it begins like an object."""
    start = decoded.text.lstrip()
    if start[:1] not in ("{", "[", '"'):
        return None
    facts = ForeignFacts("json", "JSON document", "", mime="application/json", pronom="fmt/817")
    try:
        value = json.loads(_all_text(subject, decoded))
    except (ValueError, RecursionError) as error:
        return _broken_json(facts, decoded, start, error)
    if start[0] == '"' and not isinstance(value, str):
        return None
    _describe_json(facts, value)
    return facts


def _all_text(subject: Subject, decoded: DecodedText) -> str:
    if decoded.whole or subject.partial or subject.size > min(STRUCTURE_BYTES, subject.limits.inflated_bytes):
        return decoded.text.strip("\ufeff \t\r\n\x1a")
    data = subject.source.read_at(0, subject.size)
    return data.decode(decoded.encoding, "replace").strip("\ufeff \t\r\n\x1a")


def _broken_json(facts: ForeignFacts, decoded: DecodedText, start: str, error: Exception) -> ForeignFacts | None:
    line = next((line for line in decoded.lines if line.strip()), "")
    try:
        first = json.loads(line) if len(decoded.lines) > 1 else None
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, (dict, list)):
        facts.name, facts.note = "JSON lines", f"JSON, one value a line, not a model; it begins {quote(line)}."
        return facts
    if not re.match(r'\{\s*(?:"(?:[^"\\]|\\.){0,200}"\s*:|\})|\[\s*(?:[\[{"\]]|-?\d)', start):
        return None
    facts.details["complete"] = None if not decoded.whole else False
    cut = " that does not parse (cut off or damaged)" if decoded.whole else ""
    facts.note = f"A JSON text{cut}, not a model; it begins {quote(start)}."
    facts.details["fault"] = printable(str(error))
    return facts


def _describe_json(facts: ForeignFacts, value: Any) -> None:
    if isinstance(value, list) and value and isinstance(value[0], dict) and _message(value[0]) is not None:
        value = value[0]  # some servers answer with a list of errors
    if not isinstance(value, dict):
        what = f"a list of {counted(len(value), 'item')}" if isinstance(value, list) else f"a text: {quote(str(value))}"
        facts.note = f"A JSON document, {what}; not a model."
        return
    facts.details["keys"] = [printable(key, 100) for key in list(value)[:50]]
    index = value.get("weight_map")
    if isinstance(index, dict):
        files = sorted({name for name in index.values() if isinstance(name, str)})
        facts.name = "shard index"
        metadata = value.get("metadata")
        total = metadata.get("total_size") if isinstance(metadata, dict) else None
        facts.details |= {"files": [printable(name) for name in files[:1000]], "file_count": len(files)}
        facts.details |= {"tensor_count": len(index), "total_size": total if isinstance(total, (int, float)) else None}
        facts.note = (
            f"Shard index: names {counted(len(files), 'file')} with {counted(len(index), 'tensor')}; the weights are in those"
            " files, keep them together."
        )
        return
    message = _message(value)
    if message is not None:
        facts.details["message"] = printable(message)
        facts.note = f"A JSON error message: {printable(message, 200)}. Not a model; get the file again from its source."
    elif {"architectures", "model_type"} & set(value):
        facts.name, facts.note = "model configuration", "The configuration of a model in JSON, without its weights."
    else:
        facts.note = f"A JSON document, not a model; its keys: {', '.join(facts.details['keys'][:8]) or 'none'}."


def _message(value: Any, depth: int = 0) -> str | None:
    """The error text of a server's answer: the usual keys, through nested objects and lists."""
    if depth > 4:
        return None
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, list):
        return _message(value[0], depth + 1) if value else None
    if isinstance(value, dict):
        named = {str(key).lower(): item for key, item in value.items()}
        answers = {"message", "detail", "errors", "error_message", "msg"} & set(named) and len(named) <= _MOST_ANSWER_KEYS
        if depth == 0 and "error" not in named and not answers:
            return None
        return next((text for key in _MESSAGE_KEYS if key in named and (text := _message(named[key], depth + 1))), None)
    return None

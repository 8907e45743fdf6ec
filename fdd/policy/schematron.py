# SPDX-License-Identifier: Apache-2.0
"""Schematron policies (ISO/IEC 19757-3, query binding xslt): read, and refused where they could reach beyond the report.

A policy is data of somebody else. It may hold the elements, attributes and functions listed here; nothing else gets as far
as the compiler. It is compiled and run by a process of its own (:mod:`fdd.policy.running`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lxml import etree

from fdd.core.errors import UsageError
from fdd.core.finding import Level
from fdd.core.text import valid_text
from fdd.policy.expressions import pattern_problems, problems_of
from fdd.policy.faults import DemandError, Fault, read_bytes

SUFFIX = ".sch"
NAMESPACE = "http://purl.oclc.org/dsdl/schematron"
XML = "http://www.w3.org/XML/1998/namespace"
BINDINGS = ("xslt", "xslt1")
ELEMENTS = frozenset(
    "schema title p ns phase active let pattern rule assert report name value-of emph dir span diagnostics diagnostic".split()
)
REFUSED = {
    "include": "include is refused: a policy is one file",
    "extends": "extends is refused: write the rule out",
    "param": "abstract patterns are refused: write the pattern out",
}
EXPRESSIONS = {"context": "rule", "test": "assert report", "select": "value-of", "path": "name", "value": "let", "subject": ""}
"""Attribute -> elements in which it holds an expression. `subject` is refused: it may stand in too many places."""
ATTRIBUTES = frozenset(
    "id role flag see icon fpi schemaVersion queryBinding defaultPhase pattern diagnostics prefix uri name class value".split()
)
ROLES = {
    Level.ERROR: ("error", "fatal", "critical", "fail"),
    Level.WARNING: ("warning", "warn", "caution"),
    Level.INFO: ("info", "information", "informational", "hint", "note"),
}
"""Level -> words of `role` that mean it. Without a role an assertion or report is an error."""
LISTS = ("records", "tensors")
"""Parts of a report that a stored one may lack because it was written with `--brief`."""
_PROLOG = re.compile(r"\ufeff?(?:\s+|<\?.*?\?>|<!--.*?-->)*<!DOCTYPE", re.DOTALL)
_ENCODING = re.compile(r"\ufeff?<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)")


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that passed all checks. ``schema`` is what is compiled, ``reads`` the lists of a report it looks at."""

    name: str
    version: str
    title: str
    sha256: str
    schema: bytes
    reads: frozenset[str] = frozenset()


def level_of(role: str | None) -> Level | None:
    """The level that a role means; None for a word that means none."""
    if not role:
        return Level.ERROR
    return next((level for level, words in ROLES.items() if role.lower() in words), None)


def read_policy(path: str) -> Policy:
    """Read and check a policy. Raises :class:`UsageError`, a :class:`DemandError` with all faults where it can."""
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"no policy {path!r}")
    data = read_bytes(file)
    root = _parse(path, data)
    faults = [Fault(path, line, message) for line, message in _problems(root)]
    if faults:
        raise DemandError(faults)
    root.set("queryBinding", BINDINGS[0])  # as the compiler spells it
    return Policy(
        name=valid_text(file.name.removesuffix(SUFFIX)),
        version=root.get("schemaVersion", ""),
        title=" ".join((root.findtext(_tag("title")) or "").split()),
        sha256=hashlib.sha256(data).hexdigest(),
        schema=etree.tostring(root, encoding="utf-8"),
        reads=_reads(root),
    )


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"


def _parse(path: str, data: bytes) -> Any:
    """The root element. A DTD is refused before the XML reader sees it, and with it entities of any kind."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DemandError([Fault(path, data[: error.start].count(b"\n") + 1, "not UTF-8")]) from error
    encoding = _ENCODING.match(text)
    if encoding is not None and encoding[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise DemandError([Fault(path, 1, f"the encoding {encoding[1]!r} is refused: write UTF-8")])
    prolog = _PROLOG.match(text)
    if prolog is not None:
        line = text[: prolog.end()].count("\n") + 1
        raise DemandError([Fault(path, line, "a DTD is refused, and with it entities: they could fetch or multiply anything")])
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise DemandError([Fault(path, error.lineno or 1, f"not XML: {error.msg}")]) from error


def _problems(root: Any) -> Iterator[tuple[int, str]]:
    """Line and message of everything that is refused."""
    if root.tag != _tag("schema"):
        yield root.sourceline or 1, f"not a Schematron schema: the root element is {root.tag}"
        return
    binding = root.get("queryBinding", "xslt")
    if binding.lower() not in BINDINGS:
        yield root.sourceline, f"the query binding {binding!r} is refused: {' or '.join(BINDINGS)}"
    declared = {element.get("prefix", ""): element.get("uri", "") for element in root.iter(_tag("ns"))}
    sound = {prefix: uri for prefix, uri in declared.items() if _NAME.fullmatch(prefix) and _URI.fullmatch(uri)}
    namespaces = {"xml": XML} | sound
    variables = {element.get("name", "") for element in root.iter(_tag("let"))}
    if not any(True for _ in root.iter(_tag("assert"), _tag("report"))):
        yield root.sourceline, "no assert and no report: nothing is demanded"
    for element in root.iter():
        for message in _element_problems(element, namespaces, variables):
            yield element.sourceline, message


def _element_problems(element: Any, namespaces: Mapping[str, str], variables: set[str]) -> Iterator[str]:
    if not isinstance(element.tag, str):
        yield f"an entity is refused: {element.text}"
        return
    name = etree.QName(element)
    if name.namespace != NAMESPACE:
        yield f"the element {element.tag} is refused: a policy holds elements of Schematron only"
        return
    if name.localname not in ELEMENTS:
        yield REFUSED.get(name.localname, f"the element {name.localname} is refused")
        return
    # What the compiler copies into attributes of the stylesheet would be run there if it stood in braces.
    if name.localname == "title" and any("{" in text or "}" in text for text in element.itertext()):
        yield "braces in a title are refused"
    yield from _attribute_problems(element, name.localname, namespaces, variables)
    for attribute in _NEEDED.get(name.localname, ()):
        if not element.get(attribute):
            yield f"{name.localname} has no {attribute}"


_NEEDED = {
    "rule": ("context",),
    "assert": ("test",),
    "report": ("test",),
    "value-of": ("select",),
    "let": ("name", "value"),
    "ns": ("prefix", "uri"),
}


def _attribute_problems(element: Any, name: str, namespaces: Mapping[str, str], variables: set[str]) -> Iterator[str]:
    for attribute, value in element.attrib.items():
        if attribute.startswith(f"{{{XML}}}"):
            continue
        if "{" in value or "}" in value:
            yield f"braces in {attribute} are refused"
        elif attribute in EXPRESSIONS and name in EXPRESSIONS[attribute].split():
            # In patterns of XSLT 1.0 there are no variables.
            found = list(problems_of(value, prefixes=namespaces.keys(), variables=variables if name != "rule" else ()))
            if name == "rule" and not found:
                found = list(pattern_problems(value, namespaces))
            yield from (f"{name}/@{attribute}: {message}" for message in found)
        elif attribute in ("abstract", "is-a"):
            yield "abstract patterns and rules are refused: write them out"
        elif attribute not in ATTRIBUTES:
            yield f"the attribute {attribute} of {name} is refused"
        elif attribute == "role" and name in ("assert", "report", "rule") and level_of(value) is None:
            words = ", ".join(word for words in ROLES.values() for word in words)
            yield f"the role {value!r} means no level: {words}"
        elif (attribute, name) in _NAMES and not _NAME.fullmatch(value):
            yield f"{value!r} cannot be a name here: letters, digits, dot, dash and underscore make one"
        elif attribute == "uri" and not _URI.fullmatch(value):
            yield f"{value!r} is no URI"


_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_URI = re.compile(r"[\x21-\x7e]+")
_NAMES = {("name", "let"), ("prefix", "ns")}


def _reads(root: Any) -> frozenset[str]:
    text = " ".join(value for element in root.iter() for name, value in element.attrib.items() if name in EXPRESSIONS)
    return frozenset(part for part in LISTS if re.search(rf"\b{part[:-1]}s?\b", text))


def parse_output(data: bytes) -> Iterator[dict[str, Any]]:
    """Failed assertions and fired reports of an SVRL document: id, level, message, location of each, in its order."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    rule: Any = None
    for element in etree.fromstring(data, parser):
        if not isinstance(element.tag, str):
            continue
        kind = etree.QName(element).localname
        if kind == "fired-rule":
            rule = element
        elif kind in ("failed-assert", "successful-report"):
            yield _found(element, rule, kind)


def _found(element: Any, rule: Any, kind: str) -> dict[str, Any]:
    role = element.get("role") or (rule.get("role") if rule is not None else None)
    texts = [" ".join("".join(cast(Any, child).itertext()).split()) for child in element]
    fallback = "assert" if kind == "failed-assert" else "report"
    return {
        "id": element.get("id") or (rule.get("id") if rule is not None else None) or fallback,
        "message": " ".join(text for text in texts if text) or f"{fallback} {element.get('test')}",
        "level": (level_of(role) or Level.ERROR).value,
        "location": _LOCATION.sub(r"\1", element.get("location", "")),
    }


_LOCATION = re.compile(r"\*\[local-name\(\)='([^']*)'(?: and namespace-uri\(\)='[^']*')?\]")
"""Steps of the compiler's paths -> plain names."""

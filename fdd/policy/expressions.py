# SPDX-License-Identifier: Apache-2.0
"""Which XPath expressions a policy may hold: those that only look at the report.

What is allowed is listed, and everything else is refused: XPath 1.0 with its own functions and three of XSLT. Extension
functions have a prefix, and `document()` is on no list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

FUNCTIONS = frozenset(
    "boolean ceiling concat contains count false floor id lang last local-name name namespace-uri normalize-space not number "
    "position round starts-with string string-length substring substring-after substring-before sum translate true "
    "current format-number generate-id".split()
)
"""Functions of XPath 1.0 (section 4), and harmless ones of XSLT 1.0 (section 12)."""
_NODE_TESTS = frozenset("node text comment processing-instruction".split())
_OPERATORS = frozenset("and or div mod".split())
MOST_CHARACTERS = 4_096
"""Longest expression."""
_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>"[^"]*"|'[^']*')|(?P<variable>\$\s*[^\W\d][\w.-]*(?::(?!:)[^\W\d][\w.-]*)?)
    |(?P<name>[^\W\d][\w.-]*(?::(?!:)(?:[^\W\d][\w.-]*|\*))?)|(?P<number>[\d.]+)|(?P<sign>[][()/@*|+=<>!,:-])""",
    re.VERBOSE,
)


def problems_of(expression: str, *, prefixes: Collection[str], variables: Collection[str]) -> Iterator[str]:
    """What is wrong in an expression, where ``prefixes`` and ``variables`` are those that the policy declares."""
    if len(expression) > MOST_CHARACTERS:
        yield f"an expression of more than {MOST_CHARACTERS} characters"
        return
    if not expression.strip():
        yield "an empty expression"
        return
    place = 0
    while place < len(expression):
        token = _TOKEN.match(expression, place)
        if token is None:
            yield f"{expression[place]!r} in an expression"
            return
        place = token.end()
        if token["variable"] is not None:
            name = token["variable"][1:].strip()
            if name not in variables:
                yield f"the variable ${name} is nowhere declared by let"
        elif token["name"] is not None:
            yield from _name_problems(token["name"], expression[place:].lstrip().startswith("("), prefixes)
    yield from _syntax_problems(expression)


def pattern_problems(pattern: str, namespaces: Mapping[str, str]) -> Iterator[str]:
    """What is wrong in the context of a rule, which is a pattern of XSLT: less than an expression. It passed the other check."""
    from lxml import etree

    xsl = "{http://www.w3.org/1999/XSL/Transform}"
    root = etree.Element(f"{xsl}stylesheet", {"version": "1.0"}, nsmap=dict(namespaces))
    etree.SubElement(root, f"{xsl}template", match=pattern)
    try:
        etree.XSLT(root)
    except etree.XSLTError:
        yield f"no pattern of XSLT: {pattern!r:.200}"


def _name_problems(name: str, called: bool, prefixes: Collection[str]) -> Iterator[str]:
    if called and name == "document":
        yield "document() is refused: a policy sees the report and nothing else"
    elif called and name not in FUNCTIONS | _NODE_TESTS | _OPERATORS:
        yield f"the function {name}() is refused: a policy may call {', '.join(sorted(FUNCTIONS))}"
    elif ":" in name and name.partition(":")[0] not in prefixes:
        yield f"the prefix {name.partition(':')[0]!r} is nowhere declared by ns"


def _syntax_problems(expression: str) -> Iterator[str]:
    from lxml import etree

    try:
        etree.XPath(expression)
    except etree.XPathError as error:
        yield f"not XPath: {expression!r:.200}: {error}"

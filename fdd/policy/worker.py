# SPDX-License-Identifier: Apache-2.0
"""The process in which one policy is compiled and run, and from which nothing but its answers come out.

It takes messages from standard input, first the policy, then reports, and answers each on standard output: eight bytes of
length, then the message, which in answers begins with `+` or `-`. Access to files and networks is denied three times: to
the stylesheet by libxslt, to what is compiled by the checks before, and to the process by a limit of no open files.
"""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any, BinaryIO

from lxml import etree

from fdd.limits import Limits

LENGTH = struct.Struct(">Q")
SKELETON = "isoschematron/resources/xsl/iso-schematron-xslt1/iso_svrl_for_xslt1.xsl"
"""The stylesheet of ISO Schematron that makes a stylesheet of a policy, as lxml brings it."""
XSLT_NAMESPACE = "http://www.w3.org/1999/XSL/Transform"


def receive(stream: BinaryIO, most: int | None = None) -> bytes | None:
    """The next message; None where the stream ends, or one is longer than ``most`` bytes."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    if most is not None and length > most:
        return None
    data = stream.read(length)
    return data if len(data) == length else None


def send(stream: BinaryIO, data: bytes) -> None:
    """Send one message."""
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def compile_policy(schema: bytes) -> Any:
    """The transform of a policy that passed the checks. Raises lxml's errors."""
    denied: Any = etree.XSLTAccessControl.DENY_ALL  # type: ignore[attr-defined]  # not in the stubs
    skeleton = etree.XSLT(etree.parse(str(Path(etree.__file__).parent / SKELETON)), access_control=denied)
    stylesheet = skeleton(etree.fromstring(schema, _parser()))
    _check(stylesheet.getroot())
    return etree.XSLT(stylesheet, access_control=denied)


def _check(root: Any) -> None:
    """No literal element of the stylesheet has an attribute that is run. The checks of the policy see to that; a skeleton
    of another release of lxml might write more of the policy into attributes."""
    for element in root.iter(etree.Element):
        computed = element.tag.startswith(f"{{{XSLT_NAMESPACE}}}")
        if not computed and any("{" in value for value in element.attrib.values()):
            raise ValueError(f"the compiled policy would run an attribute of {element.tag}")


def _parser() -> Any:
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)


def _lock() -> None:
    """From here on no file and no connection can be opened. Where the system knows no such limits, the others hold."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = Limits().policy_memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def main() -> None:
    """Serve until standard input ends."""
    with open(0, "rb", closefd=False) as given, open(1, "wb", closefd=False) as answers:
        send(answers, b"+")
        transform: Any = None
        while (message := receive(given)) is not None:
            try:
                if transform is None:
                    transform = compile_policy(message)
                    # What the first run loads is loaded before the door is shut.
                    bytes(transform(etree.fromstring(b"<report/>", _parser())))
                    _lock()
                    answer = b"+"
                else:
                    answer = b"+" + bytes(transform(etree.fromstring(message, _parser())))
            except (etree.LxmlError, ValueError, MemoryError, RecursionError) as error:
                answer = b"-" + f"{type(error).__name__}: {error}".encode("utf-8", "replace")
            send(answers, answer)


if __name__ == "__main__":
    main()

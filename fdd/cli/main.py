# SPDX-License-Identifier: Apache-2.0
"""Dispatches to the commands. Only the module of the command that is called is loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from fdd._version import __version__

COMMANDS = {
    "identify": "which kind of file each path is, and by which evidence",
    "validate": "judge each path: verdict, safety, findings",
    "extract": "technical metadata of each path, without judgement",
    "fixity": "record every byte of files, and verify them later",
    "sources": "write the source texts inside a file out for reading",
    "rules": "list the rules, or show one",
    "formats": "list the formats, or show one",
    "doctor": "test this installation",
}
"""Command -> one line of help. The module is ``fdd.cli.<command>``."""
USAGE = "usage: fdd COMMAND ... | fdd --version | fdd COMMAND --help"


def main(argv: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    if argv and argv[0] in ("--version", "-V"):
        print(f"fdd {__version__}")
        return 0
    if not argv or argv[0] in ("--help", "-h"):
        print(USAGE, "", *(f"  {name:14} {text}" for name, text in COMMANDS.items()), sep="\n")
        return 0 if argv else 2
    if argv[0] not in COMMANDS:
        print(f"fdd: no command {argv[0]!r}\n{USAGE}", file=sys.stderr)
        return 2
    return _run(argv[0], argv[1:])


def _run(command: str, arguments: Sequence[str]) -> int:
    from fdd.cli.exits import Exit
    from fdd.core.errors import FddError, SourceError, UsageError

    try:
        return int(import_module(f"fdd.cli.{command.replace('-', '_')}").run(arguments))
    except UsageError as error:
        print(f"fdd {command}: {error}", file=sys.stderr)
        return Exit.USAGE
    except SourceError as error:
        print(f"fdd {command}: {error}", file=sys.stderr)
        return Exit.UNDECIDED
    except BrokenPipeError:
        # The reader of our output went away (`fdd ... | head`): nobody is left to tell.
        _silence_stdout()
        return Exit.UNDECIDED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except FddError as error:
        print(f"fdd {command}: internal error: {error}", file=sys.stderr)
        return Exit.INTERNAL
    except Exception as error:  # noqa: BLE001  (the last net: no traceback reaches a user)
        place = _place_of(error)
        print(f"fdd {command}: internal error: {type(error).__name__}: {error} ({place}); please report it", file=sys.stderr)
        return Exit.INTERNAL


def _place_of(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    module = trace.tb_frame.f_globals.get("__name__", "?")
    return f"{module}:{trace.tb_lineno}"


def _silence_stdout() -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """The entry point of the `fdd` script."""
    raise SystemExit(main(sys.argv[1:]))

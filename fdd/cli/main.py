# SPDX-License-Identifier: Apache-2.0
"""Dispatches to the commands. Only the module of the command that is called is loaded."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from fdd._version import __version__

COMMANDS = {
    "identify": "which kind of file each path is, and by which evidence",
    "validate": "judge each path: verdict, safety, findings",
    "extract": "technical metadata of each path, without judgement",
    "convert": "write stored reports in another form",
    "recheck": "judge stored reports by profiles and policies",
    "profiles": "list profiles, show one, check some, or compare two",
    "archivematica": "answer in the form that Archivematica's commands expect",
    "fixity": "record every byte of files, and verify them later",
    "compare": "do two files hold the same tensors?",
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
    # Modules and reports are large trees without cycles: looking for garbage in them costs a fifth of the time and finds none.
    gc.set_threshold(100_000, 50, 50)
    from fdd.cli.exits import Exit
    from fdd.core.errors import SourceError, UsageError

    try:
        code = int(import_module(f"fdd.cli.{command.replace('-', '_')}").run(arguments))
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse has printed its help
        return end.code if isinstance(end.code, int) else Exit.GOOD
    except UsageError as error:
        _complain(command, str(error))
        return Exit.USAGE
    except SourceError as error:
        _complain(command, str(error))
        return Exit.UNDECIDED
    except BrokenPipeError:
        # The reader of our output went away (`fdd ... | head`): nobody is left to tell.
        _silence_stdout()
        return Exit.UNDECIDED
    except OSError as error:
        # Files under test are read behind SourceError: this is our own output, or the machine (disk full, no processes).
        _complain(command, f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
        _silence_stdout()
        return Exit.UNDECIDED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001  (the last net: no traceback reaches a user)
        from fdd.api import internal_error_text

        _complain(command, internal_error_text(error))
        return Exit.INTERNAL


def _complain(command: str, message: str) -> None:
    """Say on standard error what is wrong. Messages quote names of files and options: they are made visible."""
    from fdd.core.text import printable

    lines = [printable(line, most=4096) for line in message.splitlines()] or [""]
    print(f"fdd {command}: " + "\n".join(lines), file=sys.stderr)


def _silence_stdout() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not fail over it when it ends."""
    import contextlib

    with contextlib.suppress(OSError, ValueError):  # no descriptor: standard output was replaced by a caller
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """The entry point of the `fdd` script."""
    # Nothing here uses numpy's linear algebra; making its threads would be a sixth of the time of loading numpy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Asked to end, it tidies up as it does at Ctrl-C: no temporary file stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = main(sys.argv[1:])
    # The process ends: what is left need not be searched for garbage, which takes a sixth of the time of a small file.
    gc.freeze()
    raise SystemExit(code)

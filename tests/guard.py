# SPDX-License-Identifier: Apache-2.0
"""An audit hook that ends the process at once when anything executes, unpickles, connects or writes.

It ends the process because an exception could be caught on the way. Run as a program, it looks at files as fdd does:
``python -m tests.guard FILE-WITH-PATHS``; or, to show that it works, does one forbidden thing: ``--act NAME``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

FORBIDDEN_MODULES = frozenset({"torch", "pickle", "_pickle", "marshal", "pickletools", "shelve", "dill", "cloudpickle", "runpy"})
FORBIDDEN_EVENTS = frozenset(
    {
        "pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.startfile",
        "subprocess.Popen", "pty.spawn", "code.__new__", "function.__new__", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
        "os.link", "os.symlink", "os.truncate", "os.chmod", "shutil.rmtree", "os.putenv", "webbrowser.open",
    }
)  # fmt: skip
FORBIDDEN_PREFIXES = ("socket.", "ctypes.", "urllib.", "http.", "ftplib.", "smtplib.", "winreg.")
LOADING = frozenset({"exec", "compile", "marshal.loads"})
"""What the import system does with modules; anybody else must not."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CAUGHT = 99


def install() -> None:
    """From now on nothing forbidden happens in this process."""
    sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in FORBIDDEN_EVENTS or event.startswith(FORBIDDEN_PREFIXES):
        _end(event, arguments)
    if event == "import" and str(arguments[0]).split(".")[0] in FORBIDDEN_MODULES:
        _end(event, arguments)
    if event in LOADING and not _imports(sys._getframe(1)):
        _end(event, arguments)
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING:
        _end(event, arguments)


def _imports(frame: FrameType | None) -> bool:
    """Whether the import system is at work: its own frames cannot be made by a file under test."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib._bootstrap"):
            return True
        frame = frame.f_back
    return False


def _end(event: str, arguments: tuple[Any, ...]) -> NoReturn:
    os.write(2, f"forbidden: {event} {str(arguments)[:300]}\n".encode("utf-8", "backslashreplace"))
    os._exit(CAUGHT)


def _load_everything() -> None:
    """Load all modules of fdd first, so that what is made while loading (data classes) is not taken for execution."""
    import fdd

    for module in pkgutil.walk_packages(fdd.__path__, "fdd."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _look_at(rows: list[list[str | None]]) -> int:
    from fdd import api

    for number, (path, name) in enumerate(rows):
        assert path is not None
        api.validate(path, name=name)
        if number % 8 == 0:
            api.identify(path, name=name)
            api.extract(path, name=name).to_json()
            api.sources(path, name=name)
    return len(rows)


def _unpickle() -> None:
    import pickle  # noqa: F401


def _evaluate() -> None:
    eval("1")  # noqa: S307


def _execute() -> None:
    exec("x = 1")  # noqa: S102


def _shell() -> None:
    os.system("true")  # noqa: S605


def _spawn() -> None:
    import subprocess

    subprocess.run(["true"], check=False)


def _connect() -> None:
    import socket

    socket.socket()


def _write() -> None:
    open(os.devnull, "w", encoding="utf-8").close()


def _catch() -> None:
    """The exception of a hook could be caught; the end of the process cannot."""
    with contextlib.suppress(BaseException):
        _unpickle()


ACTS: dict[str, Callable[[], None]] = {
    act.__name__.strip("_"): act for act in (_unpickle, _evaluate, _execute, _shell, _spawn, _connect, _write, _catch)
}


def _main(arguments: list[str]) -> None:
    if arguments[0] == "--act":
        install()
        ACTS[arguments[1]]()
        return
    with open(arguments[0], encoding="utf-8") as stream:
        rows = json.load(stream)
    _load_everything()
    install()
    print(_look_at(rows))


if __name__ == "__main__":
    _main(sys.argv[1:])

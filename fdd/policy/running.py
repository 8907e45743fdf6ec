# SPDX-License-Identifier: Apache-2.0
"""Runs policies in processes of their own, which are ended when their time is up, and judges reports by them."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fdd
from fdd.core.errors import InternalError
from fdd.core.finding import Level
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.limits import Limits
from fdd.policy.faults import DemandError, Fault
from fdd.policy.schematron import Policy, parse_output
from fdd.policy.worker import receive, send

START_SECONDS = 120
"""What an overloaded machine may take to start a process."""
MOST_PROCESSES = 8
"""Policies whose processes are kept waiting for the next report."""


class RunError(Exception):
    """A policy gave no answer. ``reason`` is `timeout` or `error`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Runner:
    """One policy and the process that runs it; started when first asked, and again after it was ended."""

    def __init__(self, policy: Policy) -> None:
        self.owner = os.getpid()
        self._policy = policy
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def prepare(self, seconds: float) -> None:
        """Compile the policy. Raises :class:`RunError`."""
        with self._lock:
            self._started(seconds)

    def run(self, xml: bytes, seconds: float) -> bytes:
        """The SVRL document for an XML report. Raises :class:`RunError`."""
        with self._lock:
            return self._ask(self._started(seconds), xml, seconds)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _started(self, seconds: float) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = _start()
            self._answer(self._process, None, START_SECONDS)
            self._ask(self._process, self._policy.schema, seconds)
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], data: bytes, seconds: float) -> bytes:
        answer = self._answer(process, data, seconds)
        if answer[:1] != b"+":
            raise RunError("error", printable(answer[1:].decode("utf-8", "replace"), most=1_000))
        return answer[1:]

    def _answer(self, process: subprocess.Popen[bytes], data: bytes | None, seconds: float) -> bytes:
        """Send a message, if there is one, and wait for the answer. Whatever goes wrong, the process is ended."""
        assert process.stdin is not None and process.stdout is not None
        late = threading.Event()
        timer = threading.Timer(seconds, _end_late, (process, late))
        timer.start()
        answer = None
        try:
            if data is not None:
                send(process.stdin, data)  # type: ignore[arg-type]
            answer = receive(process.stdout, Limits().policy_answer_bytes)  # type: ignore[arg-type]
        except OSError:
            pass
        finally:
            timer.cancel()
            if answer is None:
                self.close()
        if answer is None:
            if late.is_set():
                raise RunError("timeout", f"no answer within {seconds:g} seconds")
            raise RunError("error", "the process that ran the policy ended, or its answer was too long")
        return answer


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _start() -> subprocess.Popen[bytes]:
    """A process of the worker. `-P`: the working folder is no place to import from."""
    if not sys.executable:
        raise InternalError("policies need a Python to run in, and this process does not know its own")
    paths = [str(Path(fdd.__file__).resolve().parent.parent), *(path for path in sys.path if path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "fdd.policy.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


_RUNNERS: dict[str, _Runner] = {}


def _runner(policy: Policy) -> _Runner:
    """The runner of a policy in this process: one that was made before a fork belongs to the parent."""
    runner = _RUNNERS.get(policy.sha256)
    if runner is None or runner.owner != os.getpid():
        while len(_RUNNERS) >= MOST_PROCESSES:
            oldest = _RUNNERS.pop(next(iter(_RUNNERS)))
            if oldest.owner == os.getpid():
                oldest.close()
        runner = _RUNNERS[policy.sha256] = _Runner(policy)
    return runner


@atexit.register
def _close_all() -> None:
    for runner in _RUNNERS.values():
        if runner.owner == os.getpid():
            runner.close()
    _RUNNERS.clear()


def prepare(policy: Policy, path: str, limits: Limits) -> None:
    """Compile a policy. Raises :class:`DemandError` where it does not compile, or not in time."""
    try:
        _runner(policy).prepare(limits.policy_seconds)
    except RunError as error:
        raise DemandError([Fault(path, 1, f"does not compile: {error}")]) from error


def judge(report: Report, xml: bytes, policy: Policy, limits: Limits) -> dict[str, Any]:
    """The entry of one policy for `status.profiles`. ``xml`` is the report as XML.

    ``conforms`` is None where the policy gave no answer: it is then neither met nor broken. Findings below error are
    remarks.
    """
    conforms: bool | None = True
    found: list[dict[str, Any]] = []
    try:
        _check_lists(report, policy)
        found = list(_found(_runner(policy).run(xml, limits.policy_seconds), limits.findings_per_rule))
        conforms = not any(entry["level"] == Level.ERROR for entry in found)
    except RunError as error:
        conforms = None
        found = [{"id": error.reason, "message": str(error), "level": Level.ERROR.value}]
    entry: dict[str, Any] = {"name": policy.name, "version": policy.version, "sha256": policy.sha256, "conforms": conforms}
    entry["failed"] = [item for item in found if item["level"] == Level.ERROR]
    remarks = [item for item in found if item["level"] != Level.ERROR]
    return entry | ({"remarks": remarks} if remarks else {}) | {"changed": []}


def _check_lists(report: Report, policy: Policy) -> None:
    """A stored report may lack the lists that a policy looks at; then nothing is proven by finding nothing in them."""
    for name, held, count in (("records", report.records, "record_count"), ("tensors", report.tensors, "tensor_count")):
        if name in policy.reads and not held and report.properties.get(count):
            raise RunError("error", f"the policy looks at the {name}, and the report has no list of them (--brief)")


def _found(svrl: bytes, most: int) -> Iterator[dict[str, Any]]:
    entries = list(parse_output(svrl))
    for entry in entries[:most]:
        yield {key: value for key, value in entry.items() if value}
    if len(entries) > most:
        level = Level.ERROR if any(entry["level"] == Level.ERROR for entry in entries[most:]) else Level.WARNING
        yield {"id": "more", "message": f"{len(entries) - most} more findings", "level": level.value}

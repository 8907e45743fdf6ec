# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and a parent that is killed: what was finished is kept, and no process stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from fdd import api
from fdd.cli.interrupts import Interrupts
from fdd.core.report import Report
from fdd.report import json_writer
from tests.cli.running import Runner, ended, fill, good, started

FILES = 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More files than can be judged before a test ends."""
    root = tmp_path_factory.mktemp("many")
    first = root / "0000.pt"
    first.write_bytes(good())
    for number in range(1, FILES):
        os.link(first, root / f"{number:04}.pt")
    return root


def processes_of_group(group: int) -> list[int]:
    """The processes of a group that run, by /proc."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state, _, process_group = Path("/proc", name, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if int(process_group) == group and state != "Z":
                found.append(int(name))
    return found


def gone_soon(group: int) -> bool:
    for _ in range(200):
        if not processes_of_group(group):
            return True
        time.sleep(0.05)
    return False


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt(folder: Path, jobs: str) -> None:
    process = started("validate", folder, "--format", "jsonl", "--brief", "--jobs", jobs, start_new_session=True, bufsize=0)
    head = first_line(process)
    # A terminal sends it to every process of the group.
    os.killpg(process.pid, signal.SIGINT)
    ran = ended(process)
    lines = (head.decode() + ran.out).splitlines()
    assert (ran.code, ran.err) == (130, "interrupted\n")
    assert 1 <= len(lines) < FILES
    assert [json.loads(line)["file"]["name"] for line in lines] == [f"{number:04}.pt" for number in range(len(lines))]
    assert gone_soon(process.pid)


def test_an_interrupt_waits_for_the_end_of_a_report(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes in the midst of writing: the report is whole, and the next is not begun."""
    fill(tmp_path, **{f"{number}__pt": good() for number in range(5)})
    whole = json_writer.JsonLinesWriter.write

    def write(self: json_writer.JsonLinesWriter, report: Report) -> None:
        if report.file["name"] == "2.pt":
            signal.raise_signal(signal.SIGINT)
        whole(self, report)

    monkeypatch.setattr(json_writer.JsonLinesWriter, "write", write)
    ran = fdd("validate", tmp_path, "--format", "jsonl")
    assert ran.code == 130
    assert [report["file"]["name"] for report in ran.reports] == ["0.pt", "1.pt", "2.pt"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_wait() -> None:
    reached = []
    try:
        with Interrupts() as interrupts, interrupts.held():
            for number in range(3):
                reached.append(number)
                signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        reached.append(-1)
    assert reached == [0, 1, -1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@needs_proc
def test_a_parent_that_is_killed_takes_its_processes_with_it(folder: Path) -> None:
    process = started("validate", folder, "--format", "jsonl", "--brief", "--jobs", "2", start_new_session=True, bufsize=0)
    first_line(process)
    assert len(processes_of_group(process.pid)) == 3
    process.kill()
    ended(process)
    assert gone_soon(process.pid)


@pytest.mark.parametrize("form", ["json", "jsonl", "text", "xml"])
def test_what_was_finished_can_be_read(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    fill(tmp_path, **{f"{number}__pt": good() for number in range(5)})
    judge = api.report_or_error
    monkeypatch.setattr(api, "report_or_error", lambda path, step: interrupted() if path.endswith("3.pt") else judge(path, step))
    code, out, err = fdd("validate", tmp_path, "--format", form)
    assert (code, err) == (130, "interrupted\n")
    assert [f"{number}.pt" in out for number in range(5)] == [True, True, True, False, False]
    if form == "json":
        assert json.loads(out)["summary"]["files"] == 3
    if form == "xml":
        assert out.rstrip().endswith("</reports>")
    fdd("validate", tmp_path, "--format", form, "--output-dir", tmp_path / "out")
    assert len(os.listdir(tmp_path / "out")) == 3


def interrupted() -> None:
    raise KeyboardInterrupt

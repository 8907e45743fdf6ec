# SPDX-License-Identifier: Apache-2.0
"""The public API, and the one place that strings the steps together (contract, section 5).

Bad bytes never raise. :class:`fdd.core.errors.SourceError` means that bytes could not be read,
:class:`fdd.core.errors.UsageError` that the request was wrong.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from fdd._version import __version__
from fdd.core.digests import check_algorithms
from fdd.core.engine import not_applicable, run_rules
from fdd.core.errors import SourceError, UsageError
from fdd.core.finding import Outcome, Status, decide
from fdd.core.model import Document, EmbeddedSource, Identification
from fdd.core.paths import safe_path
from fdd.core.report import Report
from fdd.core.source import FileSource, open_source
from fdd.core.text import valid_text
from fdd.formats import by_name, one_by_one
from fdd.formats.plugin import Format
from fdd.formats.probe import DEPTHS, Probe, make_probe
from fdd.limits import Limits
from fdd.report.run import file_dict, run_dict

if TYPE_CHECKING:
    from fdd.core.payload import Part
    from fdd.fixity.expected import Expected
    from fdd.policy.judging import Demand, Named
    from fdd.values.collect import StatisticsCollector

Source = str | bytes | bytearray | memoryview | os.PathLike[str] | BinaryIO
"""A path (text or PathLike), the bytes of a file, or a binary file object."""
DEFAULT_DIGESTS = ("sha256",)
NEIGHBOUR_SUFFIX = ".sha256"
"""A file of this name beside a file may say which digest it should have."""
DEFAULT_FORMAT = "fdd000644"
"""Whose catalogue a report names when the file is of a foreign kind."""


@dataclass(frozen=True, slots=True)
class _Request:
    """One call, checked."""

    name: str | None
    depth: str
    digests: tuple[str, ...]
    as_format: str | None
    limits: Limits
    stats: bool = False
    demands: tuple[Demand, ...] = ()
    expected: Expected | None = None

    def options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"depth": self.depth, "digests": list(self.digests)}
        if self.as_format is not None:
            options["as"] = self.as_format
        if self.stats:
            options["stats"] = True
        if self.expected is not None and self.expected.digests:
            options["expect"] = dict(self.expected.digests)
        return options


@dataclass(slots=True)
class _Opened:
    """A file of known kind: the plug-in that opened it, and whether it judges the kind."""

    probe: Probe
    identification: Identification
    format: Format | None
    document: Document

    @property
    def judged(self) -> bool:
        return self.identification.format is not None


def validate(
    source: Source,
    *,
    name: str | None = None,
    depth: str = "full",
    digests: Iterable[str] = DEFAULT_DIGESTS,
    profiles: Iterable[Named] = (),
    as_format: str | None = None,
    limits: Limits | None = None,
    stats: bool = False,
    expect: Mapping[str, str] | None = None,
    neighbours: bool = False,
) -> Report:
    """Judge one file: kind, verdict, safety, findings, and its technical metadata.

    ``name`` is the file's own name where the source has lost it. ``depth`` is `directory`, `structure` or `full`;
    digests are computed at `full`. ``as_format`` judges by that format only. ``stats`` adds statistics of the stored
    numbers, at `full` only; they take part in no judgement. ``profiles`` are names or files of profiles, files of policies
    (`.sch`), or what :func:`load_demands` made of them; each adds an entry to ``report.profiles`` and changes nothing else.
    ``expect`` are digests by algorithm that the file should have, at `full` only; with ``neighbours`` those that a file
    `PATH.sha256` beside it gives, if nothing was given. ``report.fixity`` says whether it has them.
    """
    _check_stats(stats, depth)
    request = _request(name, depth, digests, as_format, limits, stats=stats, profiles=profiles)
    return _on_source(source, _expecting(source, request, expect, neighbours=neighbours), _validate)


def extract(
    source: Source,
    *,
    name: str | None = None,
    as_format: str | None = None,
    limits: Limits | None = None,
    stats: bool = False,
) -> Report:
    """Technical metadata without judgement: a report without status. Payloads are not read, unless ``stats`` asks for
    statistics of the stored numbers."""
    return _on_source(source, _request(name, "structure", (), as_format, limits, stats=stats), _extract)


def identify(source: Source, *, name: str | None = None, limits: Limits | None = None) -> Identification:
    """Which kind of file it is, by which evidence."""
    report = identify_report(source, name=name, limits=limits)
    assert report.identification is not None
    return report.identification


def identify_report(source: Source, *, name: str | None = None, limits: Limits | None = None) -> Report:
    """Identification as a report, with tool, run and file."""
    return _on_source(source, _request(name, "directory", (), None, limits), _identify)


def sources(source: Source, *, name: str | None = None, limits: Limits | None = None) -> list[EmbeddedSource]:
    """The source texts that a file carries: code of TorchScript and packages, classes of legacy modules."""
    request = _request(name, "structure", (), None, limits)
    with _open_probe(source, request) as probe:
        opened = _open(probe, request)
        return list(opened.format.sources(opened.document, request.limits)) if opened.format is not None else []


def validate_many(
    paths: Iterable[str],
    *,
    jobs: int = 1,
    depth: str = "full",
    digests: Iterable[str] = DEFAULT_DIGESTS,
    profiles: Iterable[Named] = (),
    as_format: str | None = None,
    limits: Limits | None = None,
    stats: bool = False,
) -> Iterator[Report]:
    """Validate files in the order given. A path that cannot be read gives a report with ``error`` set.

    ``jobs`` is the number of processes; the other options are those of :func:`validate`.
    """
    from functools import partial

    from fdd.core.parallel import LOST, in_order

    def lost(path: str | os.PathLike[str]) -> Report:
        return error_report(os.fspath(path), LOST)

    _check_stats(stats, depth)
    request = _request(None, depth, digests, as_format, limits, stats=stats, profiles=profiles)
    return in_order(partial(_validate_path, request), paths, jobs, lost=lost)


def load_demands(names: Iterable[Named], *, limits: Limits | None = None) -> tuple[Demand, ...]:
    """Profiles and policies, read and checked once for many calls.

    Raises :class:`UsageError` where there is none of that name; with a line for each fault where some are faulty.
    """
    from fdd.policy.judging import load_demands as load

    return load(names, limits)


def rejudged(report: Report, profiles: Iterable[Named], *, limits: Limits | None = None) -> Report:
    """A report, also one that was stored, with entries for these profiles and policies in place of those it has."""
    from fdd.policy.judging import judged

    return judged(report, load_demands(profiles, limits=limits), _as_xml, limits)


def _as_xml(report: Report) -> bytes:
    from lxml import etree

    from fdd.report.xml_writer import report_element

    return etree.tostring(report_element(report), encoding="utf-8")


def _validate_path(request: _Request, path: str) -> Report:
    return report_or_error(path, lambda: _on_source(path, request, _validate))


def report_or_error(path: str, step: Callable[[], Report]) -> Report:
    """What ``step`` reports of a path, or a report with ``error``: one file never ends a run over many.

    Raises :class:`UsageError` only: a wrong request is wrong for all of them.
    """
    try:
        return step()
    except UsageError:
        raise
    except SourceError as error:
        return error_report(path, str(error))
    except Exception as error:  # noqa: BLE001  (a fault of fdd: told in the report on this file, the others go on)
        return error_report(path, internal_error_text(error), internal=True)


def error_report(path: str, message: str, *, internal: bool = False) -> Report:
    """The report on a path that could not be read; ``internal``: on which fdd itself failed."""
    file = {"path": safe_path(path), "name": safe_path(os.path.basename(path))}
    run = run_dict(datetime.now(UTC), 0.0, 0)
    return Report(tool=tool_dict(), options={}, file=file, run=run, error=valid_text(message), internal=internal)


def internal_error_text(error: BaseException) -> str:
    """A fault of fdd in one line: what, and in which part."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno})" if trace is not None else ""
    return f"internal error: {type(error).__name__}: {error}{place}; please report it"


def tool_dict(fmt: Format | None = None) -> dict[str, Any]:
    """Name and version of this tool, and the catalogue of rules it judged by."""
    fmt = fmt if fmt is not None else by_name(DEFAULT_FORMAT)
    return {
        "name": "fdd",
        "version": __version__,
        "catalogue": fmt.catalogue.name,
        "catalogue_sha256": fmt.catalogue.sha256(),
    }


def _request(
    name: str | None,
    depth: str,
    digests: Iterable[str],
    as_format: str | None,
    limits: Limits | None,
    *,
    stats: bool = False,
    profiles: Iterable[Named] = (),
) -> _Request:
    if depth not in DEPTHS:
        raise UsageError(f"unknown depth {depth!r}; known: {', '.join(DEPTHS)}")
    if as_format is not None:
        by_name(as_format)
    if isinstance(profiles, str):
        raise UsageError("profiles is a list of names, not one name")
    profiles = tuple(profiles)
    demands = load_demands(profiles, limits=limits) if profiles else ()
    return _Request(name, depth, check_algorithms(digests), as_format, limits or Limits(), stats, demands)


def _expecting(source: Source, request: _Request, expect: Mapping[str, str] | None, *, neighbours: bool) -> _Request:
    """The request with the digests that are expected, which have to be computed then."""
    if expect and request.depth != "full":
        raise UsageError(f"expected digests need depth full: at depth {request.depth} no digests are computed")
    path = os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else None
    beside = path + NEIGHBOUR_SUFFIX if neighbours and request.depth == "full" and path is not None else ""
    if not expect and not os.path.isfile(beside):
        return request
    from fdd.fixity.expected import from_neighbour, given

    expected = given(expect) if expect else from_neighbour(beside, os.path.basename(path or ""))
    return replace(request, expected=expected, digests=check_algorithms([*request.digests, *expected.digests]))


def _check_stats(stats: bool, depth: str) -> None:
    if stats and depth != "full":
        raise UsageError(f"statistics of values need depth full: at depth {depth} no values are read")


def _on_source(source: Source, request: _Request, step: Any) -> Report:
    """Open the source, run the step, and add what concerns the run and the file."""
    started, clock = datetime.now(UTC), time.perf_counter()
    with _open_probe(source, request) as probe:
        report: Report = step(probe, request)
    opened = probe.source
    run = run_dict(started, time.perf_counter() - clock, opened.bytes_read)
    report = replace(report, run=run, file=file_dict(opened, probe.path, probe.name))
    return rejudged(report, request.demands, limits=request.limits) if request.demands else report


@contextmanager
def _open_probe(source: Source, request: _Request) -> Iterator[Probe]:
    """Open a source and take the first look; afterwards make sure that the file did not change, and close it."""
    opened = open_source(source)
    try:
        path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        name = request.name or (os.path.basename(path) if path is not None else None)
        yield make_probe(opened, name=name, path=path, limits=request.limits, depth=request.depth)
        if isinstance(opened, FileSource):
            opened.check_unchanged()
    finally:
        if isinstance(opened, FileSource):
            opened.close()


def _open(probe: Probe, request: _Request) -> _Opened:
    for fmt in one_by_one():
        identification = fmt.identify(probe)
        if identification is None:
            continue
        document = fmt.open(probe, identification)
        if request.as_format not in (None, fmt.name):
            identification.format = None
        return _Opened(probe, identification, fmt, document)
    from fdd.formats.neighbours import open_neighbour

    document = open_neighbour(probe)
    return _Opened(probe, document.identification, None, document)


def _identify(probe: Probe, request: _Request) -> Report:
    opened = _open(probe, request)
    return Report(tool=tool_dict(opened.format), options={}, file={}, identification=opened.identification)


def _extract(probe: Probe, request: _Request) -> Report:
    opened = _open(probe, request)
    watcher = _watcher(opened, request)
    if watcher is not None:
        watcher.read()
    return Report(
        tool=tool_dict(opened.format),
        options=request.options(),
        file={},
        identification=opened.identification,
        statistics=watcher.finish() if watcher is not None else (),
        **_contents(opened),
    )


def _validate(probe: Probe, request: _Request) -> Report:
    opened = _open(probe, request)
    document = opened.document
    watcher = _watcher(opened, request)
    if request.depth == "full":
        _read_payload(opened, request, watcher.parts if watcher is not None else ())
    outcomes, status = _judge(opened, request)
    findings = tuple(finding for outcome in outcomes for finding in outcome.findings)
    return Report(
        tool=tool_dict(opened.format),
        options=request.options(),
        file={},
        identification=opened.identification,
        status=status,
        findings=findings,
        outcomes=tuple(outcomes),
        digests=document.digests,
        fixity=request.expected.held_against(document.digests) if request.expected is not None else {},
        statistics=watcher.finish() if watcher is not None else (),
        **_contents(opened),
    )


def _watcher(opened: _Opened, request: _Request) -> StatisticsCollector | None:
    """What collects statistics of values; None where they are not wanted, or there are none to be had."""
    if not request.stats or opened.format is None:
        return None
    from fdd.values.collect import StatisticsCollector

    return StatisticsCollector(opened.format, opened.document, request.limits)


def _read_payload(opened: _Opened, request: _Request, watched: Iterable[Part]) -> None:
    if opened.format is not None:
        opened.format.read_payload(opened.document, request.digests, watched)
    elif request.digests:
        from fdd.core.payload import read_payload

        opened.document.digests = read_payload(opened.document.source, (), request.digests)


def _judge(opened: _Opened, request: _Request) -> tuple[list[Outcome], Status]:
    fmt = opened.format or by_name(request.as_format or DEFAULT_FORMAT)
    most = request.limits.findings_per_rule
    outcomes = (
        run_rules(fmt.catalogue, opened.document, findings_per_rule=most) if opened.format else not_applicable(fmt.catalogue)
    )
    status = decide(
        outcomes,
        depth=request.depth,
        judged=opened.judged,
        has_code=opened.document.has_code,
        followed=opened.document.followed,
        safety_basis=fmt.safety_basis,
    )
    return outcomes, status


def _contents(opened: _Opened) -> dict[str, Any]:
    """Properties, records and tensors as a report holds them."""
    from fdd.report.contents import record_dict, tensor_dict

    if opened.format is None:
        return {}
    return {
        "properties": opened.format.properties(opened.document),
        "records": tuple(record_dict(record) for record in opened.document.records),
        "tensors": tuple(tensor_dict(tensor) for tensor in opened.format.tensors(opened.document)),
    }

# SPDX-License-Identifier: Apache-2.0
"""Exported programs: configurations, programs, the torch files inside, compiled code."""

from __future__ import annotations

import json

import pytest

import fdd
from corpus.build.kit import Call, Global, dump, eager, tensor
from corpus.build.program_files import (
    INPUTS,
    PAIR,
    UNLISTED,
    WEIGHTS,
    config,
    entry,
    native,
    native_records,
    pickled,
    plain,
    plain_records,
    program,
    replaced,
    weight_entries,
    without,
)
from corpus.build.script_kit import PATH
from fdd.core.finding import Reason, State
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.export_payloads import SCHEMA_DTYPES
from fdd.limits import Limits
from fdd.tensors.dtypes import DTYPES

CALL = Call(Global("posix", "getcwd"))


def _document(data: bytes, limits: Limits = Limits()) -> TorchDocument:
    fmt = by_name("fdd000644")
    probe = make_probe(BytesSource(data), name=None, path=None, limits=limits, depth="full")
    identification = fmt.identify(probe)
    assert identification is not None
    document = fmt.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def _report(data: bytes, limits: Limits = Limits()) -> Report:
    report = fdd.validate(data, limits=limits)
    assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]
    return report


def _failed(data: bytes) -> set[str]:
    return {outcome.rule for outcome in _report(data).outcomes if outcome.state is State.FAILED}


def _safety(data: bytes) -> str | None:
    safety = _report(data).safety
    return safety.value if safety is not None else None


# Configurations


def test_weights_are_read_as_the_configuration_says() -> None:
    document = _document(native(native_records()))
    seen = [
        (t.name, t.shape, t.stride, t.dtype and t.dtype.name, t.parameter, t.storage and t.storage.record)
        for t in document.tensors
    ]
    assert seen == [
        ("fc.weight", (2, 2), (2, 1), "float32", True, "archive/data/weights/weight_0"),
        ("fc.bias", (2,), (1,), "float32", True, "archive/data/weights/weight_1"),
    ]
    storage = document.storages[1]
    assert storage.span is not None and document.source.read_at(*storage.span) == PAIR.storage.data


def test_every_number_of_the_schema_is_a_type_that_is_known() -> None:
    for number, name in SCHEMA_DTYPES.items():
        assert name in DTYPES
        size = DTYPES[name].size
        weights = {**weight_entries(), "a": entry("weight_9", (3,), (1,), dtype=number)}
        rows = [("data/weights/weight_9", bytes(3 * size)), *native_records(weights=weights)]
        assert not _failed(native(rows)), (number, name)
        short = [("data/weights/weight_9", bytes(3 * size - 1)), *native_records(weights=weights)]
        assert "PT-PT2-002" in _failed(native(short))


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": 0}, {"dtype": 14}, {"dtype": True}, {"dtype": "7"}, {"layout": 1}, {"layout": None}, {"sizes": 3},
        {"sizes": [2, {}]}, {"sizes": [{"as_int": 1 << 70}]}, {"strides": [{"as_expr": {}}]}, {"strides": []},
        {"storage_offset": {"as_int": -1}}, {"storage_offset": {"as_int": 9}},
    ],
)  # fmt: skip
def test_descriptions_that_do_not_fit(change: dict[str, object]) -> None:
    weights = {"fc.weight": entry("weight_0", (2, 2), (2, 1)), "fc.bias": entry("weight_1", (2,), (1,), **change)}
    assert "PT-PT2-002" in _failed(native(native_records(weights=weights)))


@pytest.mark.parametrize("stated", [b"", b"[]", b"{}", b'{"config": 3}', b"\xff", b"[" * 50_000, b'{"config": {"a": 3}}',
                                    b'{"config": {"a": {"path_name": "weight_0"}}}'])  # fmt: skip
def test_configurations_that_cannot_be_used(stated: bytes) -> None:
    rows = replaced(native_records(), "data/weights/model_weights_config.json", stated)
    assert "PT-PT2-002" in _failed(native(rows))


def test_views_of_one_payload_share_a_storage() -> None:
    weights = {"fc.weight": entry("weight_1", (1,), (1,)), "fc.bias": entry("weight_1", (2,), (1,))}
    document = _document(native(native_records(weights=weights)))
    assert len(document.storages) == 1 and document.tensors[0].storage is document.tensors[1].storage


def test_an_empty_payload_is_a_warning_and_none_where_the_tensor_is_empty() -> None:
    rows = (("data/weights/weight_0", tensor([1.0] * 4).storage.data), ("data/weights/weight_1", b""))
    assert _failed(native(native_records(payloads=rows))) == {"PT-PT2-008"}
    weights = {**weight_entries(), "fc.bias": entry("weight_1", (0,), (1,))}
    assert not _failed(native(native_records(payloads=rows, weights=weights)))


def test_names_of_several_models_are_told_apart() -> None:
    rows = native_records(
        more=(
            ("data/weights/other_weights_config.json", config(weight_entries())),
            ("data/constants/other_constants_config.json", config({})),
            ("models/other.json", program()),
            ("data/sample_inputs/other.pt", INPUTS),
        )
    )
    names = [tensor.name for tensor in _document(native(rows)).tensors]
    assert names == ["model/fc.weight", "model/fc.bias", "other/fc.weight", "other/fc.bias"]
    assert not _failed(native(rows))


def test_names_with_slashes_are_escaped() -> None:
    weights = {**weight_entries(), "a/b~c": entry("weight_1", (2,), (1,))}
    assert _document(native(native_records(weights=weights))).tensors[2].name == "a~1b~0c"


# Programs


@pytest.mark.parametrize(
    "stated", [b"", b"[]", b"{}", b'{"graph_module": {}}', b"\xff", b"[" * 50_000, b'{"graph_module": {"graph": 1}}']
)
def test_programs_that_cannot_be_used(stated: bytes) -> None:
    assert "PT-PT2-006" in _failed(native(native_records(model=stated)))
    assert "PT-PT2-006" in _failed(plain(plain_records(model=stated)))


@pytest.mark.parametrize("signature", [b"3", b'{"input_specs": 3}', b'{"input_specs": [3, {"parameter": 3}, {"parameter": {}}]}'])
def test_odd_signatures_ask_for_nothing(signature: bytes) -> None:
    model = b'{"graph_module": {"graph": {}, "signature": ' + signature + b"}}"
    assert not _failed(native(native_records(model=model)))


def test_programs_state_their_versions() -> None:
    facts = _document(native(native_records())).facts["program"]
    assert [(found.model, found.schema_version, found.torch_version) for found in facts.programs] == [
        ("model", (8, 20), "2.13.0")
    ]
    old = json.dumps({"graph_module": {"graph": {}}, "schema_version": 2}).encode()
    assert _document(plain(plain_records(model=old))).facts["program"].programs[0].schema_version == (2,)


@pytest.mark.parametrize("lost", ["fc.gone", "fc.weigh", ""])
def test_every_form_of_the_weights_is_asked_for_what_the_program_takes(lost: str) -> None:
    model = program(parameters=("fc.weight", "fc.bias", lost))
    eight = [
        ("models/model.json", model), ("data/weights/model.pt", eager(WEIGHTS)), ("data/constants/model.pt", eager({})),
        ("data/sample_inputs/model.pt", INPUTS),
    ]  # fmt: skip
    for data in (plain(plain_records(model=model)), native(eight), native(native_records(model=model))):
        assert _failed(data) == {"PT-PT2-007"}


def test_what_is_not_known_is_not_said_to_be_missing() -> None:
    """The weights cannot be read, or there were no constants yet."""
    model = program(parameters=("fc.gone",))
    assert "PT-PT2-007" not in _failed(plain(plain_records(model=model, weights=eager(WEIGHTS)[:-50])))
    rows = without(plain_records(model=program(constants=("c",)), ending="json"), "serialized_constants.json")
    assert "PT-PT2-007" not in _failed(plain(rows))


@pytest.mark.parametrize(
    "name", ["models/model.json", "data/weights/model_weights_config.json", "data/constants/model_constants_config.json",
             "data/sample_inputs/model.pt"],
)  # fmt: skip
def test_every_part_of_a_native_archive_is_asked_for(name: str) -> None:
    assert "PT-PT2-004" in _failed(native(without(native_records(), name)))


@pytest.mark.parametrize("name", ["data/aotinductor/model/a.cpp", "data/executorch/a.pte", "extra/note.txt"])
def test_archives_without_a_program_hold_something_else(name: str) -> None:
    assert "PT-PT2-004" not in _failed(native([(name, b"text")]))


# Files inside


@pytest.mark.parametrize("ending", ["json", "pt"])
def test_torch_files_inside_are_judged_whatever_their_ending(ending: str) -> None:
    data = plain(plain_records(weights=eager({"x": UNLISTED}), ending=ending, model=program(parameters=())))
    assert _safety(data) == "unlisted" and _failed(data) == {"PT-SEC-031"}
    broken = plain(plain_records(weights=b"no torch file", ending=ending))
    assert "PT-NST-002" in _failed(broken)


def test_pickled_payloads_are_torch_files_and_opaque_ones_pickles() -> None:
    def made(path: str, data: bytes) -> bytes:
        return native([(f"data/constants/{path}", data), *native_records(constants={"c": pickled(path)})])

    assert not _failed(made("tensor_0", eager(tensor([1.0]))))
    assert not _failed(made("opaque_obj_0", dump({"a": 1})))
    assert "PT-NST-002" in _failed(made("tensor_0", dump({"a": 1})))
    assert "PT-NST-002" in _failed(made("custom_obj_0", b"hello"))
    assert _safety(made("opaque_obj_0", dump(CALL))) == "dangerous"
    assert _safety(made("custom_obj_0", eager(CALL))) == "dangerous"


def test_inputs_may_be_empty_and_extra_files_broken() -> None:
    assert not _failed(native(native_records(inputs=b"")))
    assert not _failed(native(native_records(more=(("extra/a.zip", eager({})[:-9]),))))
    assert _safety(native(native_records(more=(("extra/a.pt", eager(CALL)),)))) == "dangerous"


def test_a_program_larger_than_what_is_inflated_leaves_the_verdict_open() -> None:
    import zipfile

    data = plain(plain_records(), zipfile.ZIP_DEFLATED)
    report = _report(data, Limits(inflated_bytes=300))
    assert report.verdict is not None and report.verdict.value == "undetermined"


# Compiled code and paths


@pytest.mark.parametrize(
    ("name", "content", "native_code"),
    [
        ("a.so", b"\x7fELF" + bytes(9), True), ("a.so", b"text", True), ("a.cubin", b"", True),
        ("a.txt", b"\x7fELF" + bytes(9), True),
        ("a.dll", b"MZ" + bytes(9), True), ("a.cpp", b"int main", False), ("a_metadata.json", b"{}", False),
    ],
)  # fmt: skip
def test_machine_code_is_told_by_its_bytes_or_its_name(name: str, content: bytes, native_code: bool) -> None:
    data = native(native_records(more=((f"data/aotinductor/model/{name}", content),)))
    assert ("PT-SEC-008" in _failed(data)) == native_code
    assert _safety(data) == ("dangerous" if native_code else "listed")


@pytest.mark.parametrize("form", ["native", "plain"])
def test_paths_in_stack_traces_have_their_place(form: str) -> None:
    model = program(path=PATH)
    data = native(native_records(model=model)) if form == "native" else plain(plain_records(model=model))
    (found,) = [finding for finding in _report(data).findings if finding.rule == "PT-SEC-009"]
    assert found.offset is not None and found.length is not None
    assert data[found.offset : found.offset + found.length] == PATH.encode() and found.count == 1

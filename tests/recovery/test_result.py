from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import unweave
from unweave import Certificate, Check, InvalidInput, Recovery, Stage, Status
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.search import Evidence

CERTIFICATE = Certificate(
    (
        Check("spectral gap", 1e7, 10.0, True, "the width is the one stated"),
        Check("incoherence", 0.9, 0.5, False, "directions may be missed"),
        Check("condition", np.inf, None, None, "how errors are magnified"),
    )
)


def recovery(network: unweave.Network | None = None, **changes: object) -> Recovery:
    values = {
        "network": network,
        "status": Status.APPROXIMATE,
        "error": 0.1 + 0.2,  # not a short decimal: the digits have to survive
        "message": 'no gap: "quoted", ünïcode',
        "queries": 1234,
        "probing_queries": 300,
        "verification_queries": 100,
        "seconds": 1 / 3,
        "stages": (
            Stage("look", 0.1, 300, {"noise": "float64", "sigma": 1e-16, "outputs": 1, "kinks": False}),
            Stage("Hessians", 0.2, 800, {"gap": np.inf, "spectrum": [3.0, 1e-9]}),
        ),
        "certificate": CERTIFICATE,
        "notes": ("a note", "another"),
        "evidence": EVIDENCE,
    }
    return Recovery(**{**values, **changes})


def network() -> unweave.Network:
    base = unweave.random_network([3, 4, 2], "gelu", seed=1000, outer="normal")
    return unweave.Network(base.weights, base.biases, base.activations, skip=np.eye(3)[:, :2] / 3)


EVIDENCE = SmoothEvidence(
    spectrum=np.array([3.0, 1 / 3, 1e-17]),
    width=2,
    gap=np.inf,
    hessians=24,
    found=2,
    restarts=5,
    misalignment=np.array([1e-16, 2e-16]),
    rejected=np.empty(0),
    rates=np.array([0.5]),
    active_dimension=3,
    activation_residuals={"tanh": 1e-12, "erf": np.nan},
    fit_history=(1.0, 1 / 3),
    fit_floor=1e-14,
    prediction_floor=2e-14,
    condition=1e3,
    parameter_error_bar=1e-12,
)


def assert_same_evidence(one: Evidence, other: Evidence) -> None:
    assert type(one) is type(other)
    for field in fields(one):
        np.testing.assert_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)
        assert type(getattr(one, field.name)) is type(getattr(other, field.name)), field.name


def strict_json(text: str) -> object:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_result_comes_back_from_its_file(tmp_path: Path) -> None:
    result = recovery(network())
    result.save(tmp_path / "run.npz")
    again = Recovery.load(tmp_path / "run.npz")
    for field in fields(Recovery):
        if field.name not in ("network", "evidence"):  # arrays, compared below
            assert getattr(again, field.name) == getattr(result, field.name), field.name
    assert again.network is not None
    assert result.network is not None
    assert again.network.activations == result.network.activations
    for name in ("weights", "biases"):
        for one, other in zip(getattr(again.network, name), getattr(result.network, name), strict=True):
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.network.skip, result.network.skip)
    assert_same_evidence(again.evidence, result.evidence)
    assert repr(again) == repr(result)
    assert again.queries_per_parameter == result.queries_per_parameter


def test_a_result_without_network_and_error_comes_back(tmp_path: Path) -> None:
    recovery(error=np.nan, status=Status.FAILED, stages=(), notes=(), evidence=Evidence()).save(
        str(tmp_path / "run.npz")
    )
    again = Recovery.load(str(tmp_path / "run.npz"))
    assert again.network is None
    assert np.isnan(again.error)
    assert (again.status, again.stages, again.notes) == (Status.FAILED, (), ())
    assert_same_evidence(again.evidence, Evidence())


def test_numpy_numbers_in_figures_can_be_saved(tmp_path: Path) -> None:
    stage = Stage("look", 0.1, 3, {"gap": np.float64(2.5), "sites": np.int64(7), "clear": np.bool_(True)})
    result = recovery(stages=(stage,))
    result.save(tmp_path / "run.npz")
    assert Recovery.load(tmp_path / "run.npz").stages[0].figures == {"gap": 2.5, "sites": 7, "clear": True}
    strict_json(json.dumps(result.to_dict(), allow_nan=False))


@pytest.mark.parametrize("activation", ["tanh", None])
def test_a_real_result_comes_back(tmp_path: Path, activation: str | None) -> None:
    target = unweave.random_network([4, 6, 2], seed=1001, outer="signed")
    result = unweave.recover(target, activation=activation)
    result.save(tmp_path / "run.npz")
    again = Recovery.load(tmp_path / "run.npz")
    assert again.to_dict() == result.to_dict()
    assert_same_evidence(again.evidence, result.evidence)
    assert unweave.compare(result.network, again.network).parameter_error == 0.0


def test_saving_goes_to_npz_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"path must end in \.npz"):
        recovery().save(tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


def test_loading_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="existing file"):
        Recovery.load(tmp_path / "none.npz")
    network().save(tmp_path / "net.npz")
    with pytest.raises(InvalidInput, match="saved recovery"):
        Recovery.load(tmp_path / "net.npz")
    for header in ({"format": "other", "version": 2}, {"format": "unweave-recovery", "version": 1}):
        np.savez(tmp_path / "other.npz", recovery=np.array(json.dumps(header)))
        with pytest.raises(InvalidInput, match="version 2"):
            Recovery.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(InvalidInput):
        Recovery.load(tmp_path / "text.npz")


@pytest.mark.parametrize(
    "change",
    [
        {"status": "PERFECT"},
        {"status": ["RECOVERED"]},
        {"error": "small"},
        {"queries": True},
        {"queries": 10**400},
        {"stages": [{"name": "look"}]},
        {"stages": 3},
        {"checks": [{"name": "gap", "value": "x", "threshold": None, "holds": None, "implies": ""}]},
        {"evidence_kind": "NoSuchEvidence"},
        {"evidence": {"nonsense": 1}},
        {"evidence": {"layers": [{"layer": 1}]}},
        {"settings": []},
        {"notes": None},
    ],
)
def test_a_damaged_result_is_refused_with_its_name(change: dict[str, object], tmp_path: Path) -> None:
    recovery(network()).save(tmp_path / "run.npz")
    content = dict(np.load(tmp_path / "run.npz"))
    header = json.loads(str(content["recovery"])) | change
    np.savez(tmp_path / "run.npz", **{**content, "recovery": np.array(json.dumps(header))})
    with pytest.raises(InvalidInput, match=r"run\.npz"):
        Recovery.load(tmp_path / "run.npz")


def test_the_dictionary_is_strict_json() -> None:
    result = recovery(network(), error=np.nan)
    content = strict_json(json.dumps(result.to_dict(), allow_nan=False))
    assert content["status"] == "APPROXIMATE"
    assert content["error"] is None
    assert content["hidden"] == [4]
    assert content["activations"] == ["gelu", "identity"]
    assert content["n_parameters"] == result.network.n_parameters
    assert content["stages"][1]["figures"] == {"gap": None, "spectrum": [3.0, 1e-9]}
    assert content["certificate"][2]["value"] is None
    assert content["queries_per_parameter"] == (1234 - 300 - 100) / result.network.n_parameters


def test_the_dictionary_of_a_result_without_network_is_strict_json() -> None:
    content = strict_json(json.dumps(recovery(status=Status.FAILED).to_dict(), allow_nan=False))
    assert [content[name] for name in ("network", "hidden", "n_parameters", "queries_per_parameter")] == [
        None
    ] * 4


def test_repr_says_status_network_error_and_cost() -> None:
    text = repr(recovery(network(), error=1.25e-13))
    assert text == f"Recovery(APPROXIMATE, {network()!r}, error 1.2e-13, 1234 queries, 0.3 s)"


@pytest.mark.parametrize("status", list(Status))
def test_every_status_explains_itself(status: Status) -> None:
    assert str(status) == status.value
    assert status.name.lower().replace("_", " ") == str(status).split(":")[0]


def test_checks_are_found_by_name() -> None:
    assert CERTIFICATE["spectral gap"].value == 1e7
    assert "incoherence" in CERTIFICATE
    assert "no such check" not in CERTIFICATE
    assert [check.name for check in CERTIFICATE] == ["spectral gap", "incoherence", "condition"]
    assert len(CERTIFICATE) == 3
    with pytest.raises(KeyError, match="no such check"):
        CERTIFICATE["no such check"]


def test_a_certificate_holds_if_every_check_that_decides_does() -> None:
    deciding = tuple(replace(check, decides=True) for check in CERTIFICATE.checks[:2])
    assert Certificate(deciding[:1]).holds
    assert not Certificate(deciding).holds
    assert Certificate((*deciding[:1], *CERTIFICATE.checks)).holds  # what decides nothing cannot fail
    assert not Certificate(CERTIFICATE.checks).holds
    assert not Certificate().holds  # nothing was checked


def test_a_certificate_is_one_line_per_check() -> None:
    lines = str(CERTIFICATE).splitlines()
    assert lines[0] == "yes spectral gap: 1e+07 (against 10) - the width is the one stated"
    assert lines[1].startswith("no  incoherence: 0.9 (against 0.5)")
    assert lines[2] == "    condition: inf - how errors are magnified"


def test_what_the_verdict_rests_on_comes_first_and_is_told_aloud() -> None:
    deciding = replace(CERTIFICATE.checks[1], decides=True)
    certificate = Certificate((CERTIFICATE.checks[0], deciding, CERTIFICATE.checks[2]))
    assert str(certificate).startswith("NO  incoherence")
    assert certificate.grounds == (deciding,)
    assert certificate.further == (CERTIFICATE.checks[0], CERTIFICATE.checks[2])
    assert not certificate.holds

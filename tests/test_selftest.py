"""`armdyn selftest`: passes here, and fails where something is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from armdyn.cli import app
from armdyn.studies import selftest


def test_the_command_passes_for_a_small_arm():
    done = CliRunner().invoke(app, ["selftest", "planar3", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["passed"]
    assert [check["name"] for check in said["checks"]] == [name for name, _ in selftest.checks(["planar3"])]


def test_an_unknown_arm_is_an_error():
    done = CliRunner().invoke(app, ["selftest", "puma561"])
    assert done.exit_code != 0
    assert "puma560" in str(done.exception)


@pytest.mark.parametrize("wrong", [1 + 1e-6, np.nan])
def test_a_reference_that_differs_is_a_failure(monkeypatch, wrong):
    plain = selftest._plain
    monkeypatch.setattr(selftest, "_plain", lambda *given: plain(*given) * wrong)
    monkeypatch.setattr(selftest, "_cache", lambda: "")
    failed = [outcome.name for outcome in selftest.run(["planar3"]) if not outcome.passed]
    assert failed == ["compiled kernels, planar3", "without the compiler"]


def test_lost_energy_and_other_bits_are_failures(monkeypatch):
    monkeypatch.setattr(selftest, "ENERGY", 1e-20)
    with pytest.raises(AssertionError, match="energy changes"):
        selftest._energy()

    class Arm:
        n = 6

        def inertia_matrix(self, q):
            return q if q.ndim == 2 else q * (1 + 1e-15)

    with pytest.raises(AssertionError, match="other bits alone"):
        selftest._bits(Arm())

"""The benchmark measures the same numbers on both sides, and says on what machine."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
import peers
from armdyn.errors import ComputationError
from armdyn.studies import speed

ARM = armdyn.generic_arm("RRP", seed=2)


def test_a_short_run():
    rows = speed.run([ARM], ("inertia_matrix", "forward_dynamics"), batch=64, seconds=0.0, beside=peers.PEERS)
    assert [(row.quantity, row.way) for row in rows] == [
        (quantity, way) for quantity in ("inertia_matrix", "forward_dynamics") for way in ("batch", "call")
    ]
    for row in rows:
        assert {"armdyn", "Pinocchio", "MuJoCo"} <= set(row.times)
        assert ("copy" in row.times) == (row.way == "batch")
        assert all(time > 0 for time in row.times.values())
        assert row.ratio("Pinocchio") == row.times["Pinocchio"] / row.times["armdyn"]
        assert np.isnan(row.ratio("nobody"))
    alone = speed.run([ARM], ("inertia_matrix",), batch=64, seconds=0.0)
    assert [set(row.times) for row in alone] == [{"armdyn", "copy"}, {"armdyn"}]
    lines = speed.table(rows).splitlines()
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("name", list(peers.PEERS))
@pytest.mark.parametrize("quantity", speed.COMPARED)
def test_the_peers_compute_the_same(name, quantity, rng):
    if name == "Robotics Toolbox":
        pytest.importorskip("roboticstoolbox")
    arm = armdyn.generic_arm("RPRR", seed=4).with_gravity((1, 2, -9))
    row = rng.uniform(-1, 1, (len(arm.kernel(quantity).assembly.inputs), arm.n))
    theirs, ours = np.array(peers.PEERS[name](arm)[quantity](*row)), getattr(arm, quantity)(*row)
    np.testing.assert_allclose(np.triu(theirs), np.triu(ours), rtol=1e-8, atol=1e-8)


def test_different_results_are_not_compared_for_speed():
    with pytest.raises(ComputationError, match="results differ"):
        speed._must_agree("this", np.ones(3), np.zeros(3))


def test_the_machine_is_named():
    assert "one thread" in speed.machine()
    assert f"numpy {np.__version__}" in speed.machine()

"""The regressor: linear in the parameters, equal to inverse dynamics, equal to Pinocchio's."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.linalg import qr

import armdyn
from armdyn.algebra import Tally, counting
from armdyn.chain.chain import generic_chain
from armdyn.errors import InputError
from armdyn.formulations import reference
from armdyn.formulations.inverse_dynamics import newton_euler
from armdyn.formulations.regressor import natural_regressor, regressor
from armdyn.parameters import ParameterSet, equivalence, minimal_parameters, with_columns
from parameter_cases import GRAVITIES, motions, natural, over, structured_chain


@pytest.mark.parametrize("part", range(4))
def test_regressor_times_values_is_inverse_dynamics(part):
    for seed in range(25 * part, 25 * part + 25):
        chain = structured_chain(seed)
        q, qd, qdd = motions(chain.n, 6, seed)
        tau = over(newton_euler.inverse_dynamics, chain, q, qd, qdd)[..., 0]
        minimal = over(regressor, chain, q, qd, qdd) @ minimal_parameters(chain).values
        every = over(natural_regressor, chain, q, qd, qdd) @ natural(chain)
        assert np.abs(minimal - tau).max() <= 1e-10 * max(1.0, np.abs(tau).max()), seed
        assert np.abs(every - tau).max() <= 1e-10 * max(1.0, np.abs(tau).max()), seed


def test_against_the_energies():
    rng = random.Random(3)
    for kinds in ("R", "P", "RPR", "PRRP", "RRRR"):
        chain = generic_chain(kinds, 7)
        q, qd, qdd = ([rng.uniform(-2, 2) for _ in kinds] for _ in range(3))
        H = np.array(reference.inertia_matrix(chain.floats, q), dtype=float)
        tau = H @ qdd + np.array(reference.bias(chain.floats, q, qd), dtype=float)
        Y = np.array(regressor(chain.floats, q, qd, qdd), dtype=float)
        assert np.allclose(Y @ minimal_parameters(chain).values, tau, rtol=0, atol=1e-11)


def test_columns_are_those_of_the_names():
    """The column of a parameter is what the forces change by when it changes by one."""
    arm = armdyn.load("stanford")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, arm.n))
    Y = arm.regressor(q, qd, qdd)
    assert Y.shape == (arm.n, len(arm.minimal_parameters.names))
    values = np.array(arm.minimal_parameters.values)
    for k in (0, 5, len(values) - 1):
        step = np.eye(len(values))[k]
        tau = [arm.with_minimal_parameters(values + h * step).inverse_dynamics(q, qd, qdd) for h in (0.0, 1.0)]
        assert np.allclose(tau[1] - tau[0], Y[:, k], rtol=0, atol=1e-10)


def test_the_compiled_regressor_broadcasts():
    arm = armdyn.load("puma560")
    q, qd, qdd = motions(6, 12)
    Y = arm.regressor(q, qd, qdd)
    assert Y.shape == (12, 6, 36)
    assert np.allclose(Y, over(regressor, arm.chain, q, qd, qdd), rtol=0, atol=1e-12)
    rotors = np.array([float(joint.rotor_inertia) for joint in arm.joints])
    assert np.allclose(Y @ arm.minimal_parameters.values + rotors * qdd, arm.inverse_dynamics(q, qd, qdd), atol=1e-10)
    assert arm.regressor(q[0], qd, qdd).shape == (12, 6, 36)
    assert arm.natural_regressor(q, qd, qdd).shape == (12, 6, 60)


def test_the_regressor_does_not_depend_on_the_links():
    chain = structured_chain(11, GRAVITIES)
    other = chain.with_links(tuple(reversed(chain.links)))
    q, qd, qdd = motions(chain.n, 3)
    assert np.array_equal(over(regressor, chain, q, qd, qdd), over(regressor, other, q, qd, qdd))


def pinocchio_regressor(arm, tmp_path, count):
    """Pinocchio's torque regressor of the same arm, at random motions, and those motions."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio, which this compares with, is not installed")

    arm.to_urdf(tmp_path / "arm.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "arm.urdf"))
    data = model.createData()
    q, qd, qdd = motions(arm.n, count)
    rows = [pin.computeJointTorqueRegressor(model, data, a, b, c).copy() for a, b, c in zip(q, qd, qdd, strict=True)]
    return np.array(rows), (q, qd, qdd)


@pytest.mark.parametrize(("name", "count"), [("puma560", 36), ("panda", 43)])
def test_pinocchios_regressor_has_our_rank_and_our_set(name, count, tmp_path):
    arm = armdyn.load(name)
    theirs, (q, qd, qdd) = pinocchio_regressor(arm, tmp_path, 60)
    assert np.allclose(arm.natural_regressor(q, qd, qdd), theirs, rtol=0, atol=1e-10)
    Y = theirs.reshape(-1, 10 * arm.n)
    _, R, order = qr(Y, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    assert size[count - 1] > 1e8 * size[count]  # the gap of the pivoted QR stands where structure says
    assert len(arm.minimal_parameters) == count
    # The QR-based set: the first columns and the multiples of the others that go into them.
    into = np.linalg.solve(R[:count, :count], R[:count, count:])
    matrix = np.zeros((count, 10 * arm.n))
    matrix[:, order[:count]], matrix[:, order[count:]] = np.eye(count), into
    ours = with_columns(arm.minimal_parameters, [int(k) for k in order[:count]])
    assert np.allclose(matrix, np.array(ours.matrix, dtype=float), rtol=0, atol=1e-9)
    theirs_as_set = ParameterSet(ours.names, tuple(tuple(map(float, row)) for row in matrix))
    assert equivalence(arm.minimal_parameters, theirs_as_set, tolerance=1e-8)


def test_a_regressor_costs_less_on_minimal_than_on_natural_parameters():
    def cost(function, chain) -> int:
        with counting() as counter:
            function(chain, *([Tally(0.3 + i) for i in range(chain.n)] for _ in range(3)))
        return counter.operations().total

    arm = armdyn.load("puma560")
    program = arm.kernel("regressor").program.operations
    assert program.total < arm.kernel("natural_regressor").program.operations.total
    assert program.total < cost(natural_regressor, arm.chain)


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="unit_motions"):
        armdyn.load("planar3").kernel("regressor", method="guess")

"""The linear solvers behind `composite`: same answers, counted costs, error of each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.errors import ComputationError, InputError
from armdyn.formulations.forward_dynamics.composite import forward_dynamics
from armdyn.formulations.forward_dynamics.solvers import SOLVERS
from armdyn.graph.program import trace
from armdyn.programs.assemble import assemble
from armdyn.studies.linear_solvers import compare


@pytest.mark.parametrize("n", [1, 3, 6, 7])
@pytest.mark.parametrize("name", SOLVERS)
def test_costs_are_those_claimed(name, n):
    chain = armdyn.generic_arm("R" * n).chain
    run = SOLVERS[name]
    program = trace(name, lambda H, r: run(chain, H, r), {"H": (n, n), "r": (n,)}, [("x", (n,))])
    expected = n * n * (n - 1) // 2 + n * n if name == "gauss_jordan" else n * (n - 1) * (n + 4) // 6 + n * n
    assert (program.operations.mul, program.operations.div) == (expected, n)


@pytest.mark.parametrize("name", SOLVERS)
def test_exact_on_fractions(name):
    chain = armdyn.generic_arm("RPRR").chain
    H = [[Fraction(10 if i == j else 1, i + j + 1) for j in range(4)] for i in range(4)]
    right = [Fraction(k, 7) for k in (3, -1, 4, 1)]
    x = SOLVERS[name](chain, H, right)
    assert [sum(h * v for h, v in zip(row, x, strict=True)) for row in H] == right


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("arm", ["puma560", "panda", "stanford"])
def test_accelerations_are_right_to_rounding(name, arm, rng):
    chain = armdyn.load(arm).chain
    n = chain.n
    q, qd, tau = (rng.uniform(-1, 1, n).tolist() for _ in range(3))
    run = assemble(chain, "forward_dynamics", "composite", parts={"solver": SOLVERS[name]}).function
    back = assemble(chain, "inverse_dynamics", "newton_euler").function
    accelerations = run(q, qd, tau)
    assert np.abs(np.array(back(q, qd, accelerations)) - tau).max() < 1e-11
    assert accelerations == pytest.approx(forward_dynamics(chain, q, qd, tau), rel=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_singular_matrix_is_refused(name):
    chain = armdyn.generic_arm("RR").chain
    with pytest.raises(ComputationError, match="singular"):
        SOLVERS[name](chain, [[1.0, 1.0], [1.0, 1.0]], [0.0, 1.0])


def test_the_comparison():
    rows = compare([armdyn.load("puma560")], states=200)
    assert [row.solver for row in rows] == list(SOLVERS)
    assert all(0 < row.typical <= row.largest < 1e-12 for row in rows)
    udu, _, jordan = (row.operations.total for row in rows)
    assert udu < jordan


def test_the_solver_is_an_option_of_forward_dynamics(rng):
    arm = armdyn.load("planar3")
    q, qd, tau = rng.uniform(-1, 1, (3, 5, 3))
    wanted = arm.kernel("forward_dynamics", method="composite")(q, qd, tau)
    for name in SOLVERS:
        kernel = arm.kernel("forward_dynamics", method="composite", solver=name)
        np.testing.assert_allclose(kernel(q, qd, tau), wanted, rtol=1e-9)
        np.testing.assert_allclose(arm.forward_dynamics(q, qd, tau, solver=name, friction=True), wanted, rtol=1e-9)
        assert kernel.program.operations == armdyn.cost(arm, "forward_dynamics", kernel.method).compiled
    general = armdyn.generic_arm("RRRRRR")
    udu, gauss = (
        armdyn.cost(general, "forward_dynamics", m).published for m in ("composite", "composite_gauss_jordan")
    )
    assert gauss.mul - udu.mul == 6 * 5 * 6 // 2 - 6 * 5 * 10 // 6  # what not using the symmetry costs
    assert arm.forward_dynamics.method not in ("composite_ldl", "composite_gauss_jordan")
    with pytest.raises(InputError, match=r"solver 'cholesky'.*available: udu, ldl, gauss_jordan"):
        arm.kernel("forward_dynamics", solver="cholesky")
    with pytest.raises(InputError, match=r"bias takes no solver; forward_dynamics by composite does"):
        arm.kernel("bias", solver="ldl")
    with pytest.raises(InputError, match=r"forward_dynamics by denoc takes no solver"):
        arm.kernel("forward_dynamics", method="denoc", solver="ldl")

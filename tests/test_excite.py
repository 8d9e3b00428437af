"""Excitation: within limits, at rest at both ends, exact gradients, much better than chance."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.identification.estimate.threads import one_thread
from armdyn.identification.excitation.design import Design
from armdyn.identification.excitation.fourier import Basis
from armdyn.identification.excitation.limits import Limits


def design(arm, criterion="condition", plane=None, acceleration=None, trajectories=1, duration=20.0):
    return Design(arm, Basis(duration, 5), Limits.of(arm, acceleration, plane, 0.95), trajectories, criterion)


@pytest.mark.parametrize("name", ["panda", "ur10"])
def test_half_the_condition_number_of_the_best_of_200_random_ones(name):
    arm = armdyn.load(name)
    found = armdyn.excite(arm, 20.0, starts=2)
    search, rng = design(arm), np.random.default_rng(11)
    with one_thread():
        chance = min(search.judged(search.random(rng)) for _ in range(200))
    assert found.condition <= 0.5 * chance
    within(arm, found)


def within(arm, found):
    """Every limit, at the samples of the result."""
    q, qd, qdd = (x.reshape(-1, arm.n) for x in (found.q, found.qd, found.qdd))
    assert (q >= arm.limits[:, 0]).all()
    assert (q <= arm.limits[:, 1]).all()
    assert (np.abs(qd) <= arm.velocity_limits).all()
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    assert (np.abs(tau) <= arm.effort_limits).all()
    for rest in (found.qd[:, [0, -1]], found.qdd[:, [0, -1]]):
        np.testing.assert_allclose(rest, 0, atol=1e-9)
    np.testing.assert_allclose(found.q[:, 0], found.q[:, -1], atol=1e-9)
    step = found.t[1] - found.t[0]
    middle = (found.q[:, 2:] - found.q[:, :-2]) / (2 * step)
    np.testing.assert_allclose(middle, found.qd[:, 1:-1], atol=1e-3)


@pytest.mark.parametrize("criterion", ["condition", "determinant"])
def test_gradients_are_exact(criterion):
    arm = armdyn.load("panda")
    search = design(arm, criterion, plane=((0, 0, 1), 0.3), acceleration=2.0, trajectories=2)
    rng = np.random.default_rng(0)
    x = 1.5 * np.concatenate([design(arm).random(rng) for _ in range(2)])  # beyond the limits
    value, gradient = search.cost(x, 10.0)
    way = rng.normal(size=x.shape)
    h = 1e-6
    numeric = (search.cost(x + h * way, 10.0)[0] - search.cost(x - h * way, 10.0)[0]) / (2 * h)
    assert np.isfinite(value)
    assert gradient @ way == pytest.approx(numeric, rel=1e-5)


def test_a_plane_accelerations_and_several_trajectories(tmp_path):
    arm = armdyn.load("puma560")
    done = []
    found = armdyn.excite(
        arm, 8.0, trajectories=2, acceleration=4.0, plane=((0, 0, 1), 0.1), starts=1, harmonics=3, rate=50,
        progress=lambda a, b: done.append(a / b),
    )  # fmt: skip
    assert done[-1] == 1
    assert (np.abs(found.qdd) <= 4.0).all()
    assert (np.asarray(arm.pose(found.q))[..., 2, 3] >= 0.1 - 1e-6).all()
    assert found.q.shape == (2, 401, 6)
    found.save(tmp_path / "a.csv")
    head, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert head.startswith("trajectory,t,q1")
    assert len(rows) == 2 * 401


def test_impossible_requests():
    arm = armdyn.load("puma560")
    with pytest.raises(InputError, match="available: condition, determinant"):
        armdyn.excite(arm, criterion="magic")
    with pytest.raises(InputError, match="harmonics"):
        armdyn.excite(arm, harmonics=1)
    with pytest.raises(InputError, match="normal"):
        armdyn.excite(arm, plane=((0, 0), 1.0))
    with pytest.raises(armdyn.ArmdynError, match="no random trajectory"):
        armdyn.excite(arm, plane=((0, 0, 1), 5.0))

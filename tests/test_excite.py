"""Excitation: within limits, at rest at both ends, exact gradients, much better than chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn.errors import InputError
from armdyn.identification import linear
from armdyn.identification.excitation import Basis, ExcitationDesign, best_of_chance, designed
from armdyn.identification.limits import Limits, Skeleton, segment_distance
from armdyn.identification.threads import _libraries, one_thread


def design(arm, criterion="information", plane=None, acceleration=None, trajectories=1, clearance=None, harmonics=5):
    limits = Limits.of(arm, acceleration, plane, 0.95, clearance)
    return designed(arm, Basis(20.0, harmonics), limits, trajectories, criterion, None, np.random.default_rng(11))


def test_blas_has_one_thread_for_a_while():
    counts = [get for get, _ in _libraries()]
    assert counts, "NumPy's own OpenBLAS is found"
    assert {get() for get in counts} == {1}, "tests/conftest.py"
    for _, put in _libraries():
        put(2)
    try:
        with one_thread():
            assert {get() for get in counts} == {1}
        assert {get() for get in counts} == {2}
    finally:
        for _, put in _libraries():
            put(1)


def test_many_joints_find_random_motions_too():
    """Of seventeen joints some have no room where chance puts them; their motions are scaled one by one."""
    arm = armdyn.load("baxter")
    search = ExcitationDesign(arm, Basis(20.0, 5), Limits.of(arm, None, None, 0.95), 1, information=None)
    for seed in range(5):
        q, qd, qdd = search.on_grid(search.random(np.random.default_rng(seed)), 500)
        assert search.limits.hold(q, qd, qdd)
        assert np.ptp(q[0], axis=0).min() > 1e-4  # also of the fingers, which have 20 mm


def test_a_designed_motion_tells_more_than_the_best_of_random_ones():
    """Of all parameters, friction and rotors with them, in physical units: no joint stands still."""
    arm = armdyn.load("ur5")
    found = armdyn.excite(arm, 20.0, starts=1)
    search, rng = design(arm, harmonics=20), np.random.default_rng(12)
    with one_thread():
        _, best, _ = best_of_chance(search, 100, rng)  # other ones than the design knows
        states = [x[0, :-1].copy() for x in (found.q, found.qd, found.qdd)]
        own = search.information.deviations(*states)
    best *= np.sqrt(search.fine / len(states[0]))
    assert np.median(best / own) > 1.7  # with one start; benchmarks/bench_excite.py has three
    assert (best / own).min() > 0.95
    assert np.median(found.gain) > 1.7
    assert found.gain.min() > 0.95
    assert f"median {np.median(found.gain):.2f} times smaller" in str(found)
    assert np.ptp(found.q[0], axis=0).min() > 0.3
    assert found.names == search.information.names
    np.testing.assert_allclose(found.deviations, own, rtol=0.01)
    within(arm, found)
    assert any("below the base" in text for text in found.warnings)


def test_predicted_deviations_are_those_of_many_fits():
    arm = armdyn.load("puma560")
    search, rng = design(arm), np.random.default_rng(3)
    states = search.flat(search.random(rng), 240)
    information = search.information
    Y, truth = information.model.regressor(*states), rng.normal(size=len(information.names))
    weights = np.broadcast_to(1 / information.noise, Y.shape[:2])
    fits = []
    for _ in range(60):
        tau = Y @ truth + information.noise * rng.normal(size=Y.shape[:2])
        fits.append(linear.solve(*linear.compress(Y, tau, weights)))
    ratio = np.std(fits, axis=0, ddof=1) / information.deviations(*states)
    assert np.median(ratio) == pytest.approx(1, abs=0.1)
    assert ((ratio > 0.6) & (ratio < 1.5)).all()


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
    near, far = found.q[:, 3:-1] - found.q[:, 1:-3], found.q[:, 4:] - found.q[:, :-4]
    np.testing.assert_allclose((8 * near - far) / (12 * step), found.qd[:, 2:-2], atol=1e-4)


@pytest.mark.parametrize("criterion", ["information", "determinant"])
def test_gradients_are_exact(criterion):
    arm = armdyn.load("panda")
    free = design(arm, criterion)
    limits = Limits.of(arm, 2.0, ((0, 0, 1), 0.3), 0.95, 0.15)
    search = replace(free, limits=limits, trajectories=2)
    rng = np.random.default_rng(0)
    x = 1.5 * np.concatenate([free.random(rng) for _ in range(2)])  # beyond the limits
    assert limits.intrusion(search.flat(x, 100)[0]).any()
    value, gradient = search.cost(x, 10.0)
    way = rng.normal(size=x.shape)
    h = 1e-6
    numeric = (search.cost(x + h * way, 10.0)[0] - search.cost(x - h * way, 10.0)[0]) / (2 * h)
    assert np.isfinite(value)
    assert gradient @ way == pytest.approx(numeric, rel=1e-4)


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


def test_links_stay_apart():
    arm = armdyn.load("panda")
    limits = Limits.of(arm, None, None, 0.95, 0.15)
    folded = np.array([[0, 1.7, 0, -2.9, 0, 1.0, 0]])  # the hand at the base
    assert limits.intrusion(folded)[0] > 0
    assert limits.intrusion(np.array([[0, 0, 0, -1.2, 0, 1.8, 0]]))[0] == 0
    search = replace(design(arm), limits=limits)
    q, _, _ = search.flat(search.random(np.random.default_rng(0)), 500)
    assert not (limits.intrusion(q) > 1e-9).any()
    with pytest.raises(InputError, match="clearance"):
        armdyn.excite(arm, clearance=-1.0)


def test_a_motion_of_fewer_harmonics_is_one_of_more():
    few, many, rng = Basis(7.0, 3), Basis(7.0, 6), np.random.default_rng(0)
    t, c = np.linspace(0, 7, 50), rng.normal(size=few.size)
    for slow, own in zip(few.at(t), many.at(t), strict=True):
        np.testing.assert_allclose(own @ (many.lower(3) @ c), slow @ c, atol=1e-12)


def test_distance_between_segments():
    rng = np.random.default_rng(0)
    a, b, c, d = rng.normal(size=(4, 50, 3))
    b[:5], d[5:10] = a[:5], c[5:10]  # points
    d[10:15] = c[10:15] + 2 * (b - a)[10:15]  # parallel
    s = np.linspace(0, 1, 201)
    first = a[:, None] + s[:, None] * (b - a)[:, None]
    second = c[:, None] + s[:, None] * (d - c)[:, None]
    brute = np.linalg.norm(first[:, :, None] - second[:, None], axis=-1).min(axis=(1, 2))
    own = segment_distance(a, b, c, d)
    np.testing.assert_allclose(own, brute, atol=2e-2)
    assert (own <= brute + 1e-12).all()


def test_impossible_requests():
    arm = armdyn.load("puma560")
    with pytest.raises(InputError, match="available: information, determinant"):
        armdyn.excite(arm, criterion="magic")
    with pytest.raises(InputError, match="harmonics"):
        armdyn.excite(arm, harmonics=1)
    with pytest.raises(InputError, match="normal"):
        armdyn.excite(arm, plane=((0, 0), 1.0))
    with pytest.raises(armdyn.ArmdynError, match="no random trajectory"):
        armdyn.excite(arm, plane=((0, 0, 1), 5.0))


def test_what_is_known_already_need_not_be_shown():
    arm = armdyn.load("planar3")
    plain = armdyn.excite(arm, 6.0, harmonics=3, starts=1)
    known = np.full(len(plain.names), np.inf)
    known[0] = 0.01 * plain.deviations[0]
    told = armdyn.excite(arm, 6.0, harmonics=3, starts=1, prior=known)
    assert told.deviations[0] < 1.01 * known[0]
    with pytest.raises(InputError, match="positive standard deviation"):
        armdyn.excite(arm, 6.0, harmonics=3, starts=1, prior=[1.0])


def test_a_missing_floor_is_said():
    found = armdyn.excite(armdyn.load("scara"), 6.0, harmonics=2, starts=1)
    assert any("no floor was given" in text for text in found.warnings)


def test_the_skeleton_of_a_tree_ends_at_every_tip():
    arm = armdyn.load("panda_hand")
    skeleton = Skeleton(arm)
    assert skeleton.parents == [-1, 0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 9]
    q = arm.rest + 0.1
    points = skeleton.points(q[None])[0]
    for k, tip in enumerate(arm.tips):
        np.testing.assert_allclose(points[10 + k], arm.pose(q, frame=tip)[:3, 3])
    assert skeleton.moving == list(range(3, 12))
    upper_arm, forearm = 0.316, 0.0825
    assert skeleton.separations[2, 3] == skeleton.separations[8, 9] == 0  # neighbours, and the two fingers
    assert skeleton.separations[2, 5] == pytest.approx(upper_arm + forearm)

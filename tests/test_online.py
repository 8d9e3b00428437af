"""Identification while the arm moves: the same answers as from the whole log, changes noticed, bodies possible."""

from __future__ import annotations

import numpy as np
import pytest

import armdyn
from armdyn import OnlineEstimator
from armdyn.errors import ComputationError, InputError
from armdyn.identification import linear
from armdyn.identification.model import pseudo_inertia
from armdyn.identification.online import SquareRootInformation
from test_identify import log_of, motion, with_drives


@pytest.fixture(scope="module")
def arm():
    return with_drives(armdyn.generic_arm("RRR", seed=3))


def samples(arm, noise=0.3, seed=0, **options):
    _, q, qd, qdd = motion(arm.n, seed=seed, **options)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    return q, qd, qdd, tau + noise * np.random.default_rng(seed).normal(size=tau.shape)


def fed(estimator, signals, block):
    for k in range(0, len(signals[0]), block):
        estimator = estimator.update(*(x[k : k + block] for x in signals))
    return estimator


def batch(model, signals, weights):
    Y = model.regressor(*signals[:3])
    return linear.solve(*linear.compress(Y, signals[3], np.broadcast_to(weights, signals[3].shape)))


@pytest.mark.parametrize("block", [1, 37, 1200])
def test_without_forgetting_it_is_weighted_least_squares(arm, block):
    signals, deviation = samples(arm), np.array([0.3, 0.2, 0.5])
    few = [x[:400] for x in signals] if block == 1 else signals
    found = fed(OnlineEstimator.of(arm, deviation=deviation), few, block)
    expected = batch(found.model, few, 1 / deviation)
    np.testing.assert_allclose(found.values, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert found.samples == len(few[0])
    assert found.changes == ()


def test_the_deviations_are_those_of_the_normal_equations_and_cover_the_truth(arm):
    inside = []
    for seed in range(10):
        signals = samples(arm, seed=seed)
        found = fed(OnlineEstimator.of(arm, deviation=0.3, width=0.0), signals, 300)
        Y = found.model.regressor(*signals[:3]).reshape(-1, len(found.names)) / 0.3
        np.testing.assert_allclose(found.deviations, np.sqrt(np.diag(np.linalg.inv(Y.T @ Y))), rtol=1e-6)
        truth = found.model.natural @ found.model.prior(arm)
        inside.append(np.abs(found.values - truth) < 2 * found.deviations)
    assert np.mean(inside) > 0.9


def test_forgetting_weighs_samples_by_their_age(arm):
    signals = samples(arm)
    found = fed(OnlineEstimator.of(arm, deviation=0.3, forgetting=0.995), signals, 50)
    age = np.arange(len(signals[0]))[::-1]
    expected = batch(found.model, signals, 0.995 ** (age[:, None] / 2) / 0.3)
    np.testing.assert_allclose(found.values, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


def test_friction_that_changes_is_followed_with_forgetting(arm):
    warm = with_drives(armdyn.generic_arm("RRR", seed=3), viscous=0.4)
    first, second = samples(arm, noise=0.05), samples(warm, noise=0.05, seed=1)
    both = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    apart = {}
    for forgetting in (1.0, 0.99):
        found = fed(OnlineEstimator.of(arm, deviation=0.05, forgetting=forgetting, change=1e9, width=0.0), both, 60)
        k = found.names.index("fv1")
        apart[forgetting] = abs(found.values[k] - 0.4) / found.deviations[k]
    assert apart[0.99] < 4
    assert apart[1.0] > 20


def test_every_link_is_a_possible_body(arm):
    signals = [x[:150] for x in samples(arm, noise=3.0)]
    found = fed(OnlineEstimator.of(arm, deviation=3.0), signals, 50)
    natural = found.natural()
    P = pseudo_inertia(natural[: 10 * arm.n].reshape(-1, 10))
    assert np.linalg.eigvalsh(P).min() > 0
    assert (natural[10 * arm.n :][found.model.extra_positive] >= 0).all()
    known = found.arm()
    assert known.check() == []
    assert known.joints[0].viscous == pytest.approx(natural[10 * arm.n + found.model.extra_names.index("fv1")])
    plenty = fed(OnlineEstimator.of(arm, deviation=0.3), samples(arm), 100)
    close = plenty.arm().inverse_dynamics(*samples(arm, seed=5)[:3], friction=True)
    assert np.abs(close - samples(arm, noise=0.0, seed=5)[3]).max() < 1.0


def test_a_prior_is_what_is_believed_until_samples_say_more(arm):
    start = OnlineEstimator.of(arm, deviation=0.3, known=0.2)
    truth = start.model.natural @ start.model.prior(arm)
    np.testing.assert_allclose(start.values, truth, atol=1e-9 * np.abs(truth).max())
    assert np.isfinite(start.deviations).all()
    nearer = fed(start, samples(arm), 200)
    assert (nearer.deviations < start.deviations).all()
    assert np.isinf(OnlineEstimator.of(arm).deviations).all()


@pytest.fixture(scope="module")
def six():
    return with_drives(armdyn.load("ur5"), rotor=0.05, viscous=0.5, coulomb=0.3)


def test_a_payload_is_noticed_and_known(six):
    com = np.array([0.03, -0.02, 0.08])
    loaded = six.with_payload(1.5, com, [0.004, 0.005, 0.003, 0, 0, 0])
    start = fed(OnlineEstimator.of(six, deviation=0.3, width=0.0), samples(six, seed=2), 50)
    assert start.changes == ()
    assert start.payload is None
    then = fed(start, [x[:500] for x in samples(loaded, seed=3)], 50)
    assert then.changes == (1200,)
    held = then.payload
    assert held.mass == pytest.approx(1.5, rel=0.02)
    np.testing.assert_allclose(held.com, com, atol=5e-3)
    assert abs(held.mass - 1.5) < 4 * held.mass_deviation
    truth = then.model.natural @ then.model.prior(six)
    assert (np.abs(then.values - truth) < 5 * then.deviations).all()  # the arm is not taken for the payload
    assert (then.deviations <= 1.0001 * start.deviations).all()
    q, qd, qdd, tau = samples(loaded, noise=0.0, seed=7)
    assert np.abs(then.predict(q, qd, qdd) - tau).max() < 0.5
    again = fed(then, [x[:500] for x in samples(six, seed=4)], 50)
    assert again.changes == (1200, 1700)
    assert again.payload.mass < 0.05


def test_it_continues_what_was_identified(arm):
    estimate = armdyn.identify(arm, log_of(arm, noise=0.3), friction="coulomb", estimator="weighted")
    start = OnlineEstimator.continuing(estimate, deviation=0.3)
    np.testing.assert_allclose(start.values, estimate.values, rtol=1e-6, atol=1e-6 * np.abs(estimate.values).max())
    np.testing.assert_allclose(start.deviations, estimate.deviations, rtol=1e-5)
    more = fed(start, samples(arm, seed=8), 100)
    assert (more.deviations < 1.001 * start.deviations).all()
    truth = more.model.natural @ more.model.prior(arm)
    assert np.linalg.norm((more.values - truth) / more.deviations) < np.linalg.norm(
        (start.values - truth) / more.deviations
    )


def test_information_of_a_covariance_is_its_inverse(rng):
    A = rng.normal(size=(9, 5))
    known = SquareRootInformation.of(np.arange(5.0), np.linalg.inv(A.T @ A))
    np.testing.assert_allclose(known.R.T @ known.R, A.T @ A, rtol=1e-9)
    np.testing.assert_allclose(known.values, np.arange(5.0), atol=1e-10)
    np.testing.assert_allclose(known.covariance, np.linalg.inv(A.T @ A), rtol=1e-8)


def test_what_cannot_be(arm):
    start = OnlineEstimator.of(arm)
    with pytest.raises(ComputationError, match="there is no estimate yet"):
        _ = start.values
    with pytest.raises(ComputationError, match="the parameters of the arm are not yet determined"):
        start.expecting_a_payload()
    with pytest.raises(InputError, match=r"qd must be finite and \(n,\) or \(N, n\) with n = 3, got shape \(4,\)"):
        start.update(np.zeros(3), np.zeros(4), np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match="must have the same number of samples, got 2, 1, 1, 1"):
        start.update(np.zeros((2, 3)), np.zeros(3), np.zeros(3), np.zeros(3))
    with pytest.raises(InputError, match=r"above 0 and at most 1, got 1\.5"):
        OnlineEstimator.of(arm, forgetting=1.5)
    with pytest.raises(InputError, match="deviation must be one positive number or 3, got 0"):
        OnlineEstimator.of(arm, deviation=0)
    with pytest.raises(InputError, match="unknown friction 'stiction'"):
        OnlineEstimator.of(arm, "stiction")
    with pytest.raises(InputError, match="takes an Arm, got 'ur5'"):
        OnlineEstimator.of("ur5")
    with pytest.raises(InputError, match="known must be a positive fraction"):
        OnlineEstimator.of(arm, known=-1)

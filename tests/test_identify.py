"""Identification of simulated logs: exact without noise, honest with it, possible bodies always."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.algebra import exact
from armdyn.chain import Link
from armdyn.errors import InputError
from armdyn.identification import Gains
from armdyn.identification.consistent import Problem
from armdyn.identification.excitation import Basis
from armdyn.identification.fit import autocorrelation_factors, correlation_time
from armdyn.identification.model import Model, natural_of, pseudo_inertia, reference_bodies, repeats_after, rows
from armdyn.identification.processing import Processing, choose_processing, motions
from armdyn.identification.report import page
from armdyn.identification.selection import candidates

RATE, SECONDS = 100.0, 12.0


def with_drives(arm, rotor=0.2, viscous=0.8, coulomb=0.5):
    joints = tuple(
        replace(
            j, rotor_inertia=exact(rotor * (k + 1)), viscous=exact(viscous / (k + 1)), coulomb=exact(coulomb / (k + 1))
        )
        for k, j in enumerate(arm.given.joints)
    )
    return replace(arm, given=replace(arm.given, joints=joints))


def motion(n, seed=0, amplitude=0.6, seconds=SECONDS):
    rng = np.random.default_rng(seed)
    basis = Basis(seconds, 5)
    t = np.arange(round(seconds * RATE)) / RATE
    c = rng.normal(size=(basis.size, n)) * amplitude / np.sqrt(basis.size)
    q, qd, qdd = (b @ c for b in basis.at(t))
    return t, q + rng.uniform(-1, 1, n), qd, qdd


def log_of(arm, noise=0.0, seed=0, **options):
    t, q, qd, qdd = motion(arm.n, seed=seed, **options)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    rng = np.random.default_rng(1000 + seed)
    return Log.of(t, q, tau + noise * rng.normal(size=tau.shape), qd, qdd)


@pytest.fixture(scope="module")
def arm():
    return with_drives(armdyn.generic_arm("RRR", seed=3))


@pytest.fixture(scope="module")
def prior(arm):
    """The same arm with every mass a fifth too large."""
    links = tuple(type(link).from_natural(tuple(x * exact(1.2) for x in link.natural)) for link in arm.links)
    return replace(arm, given=replace(arm.given, links=links))


def truth(estimate, arm):
    return estimate.model.natural @ estimate.model.prior(arm)


@pytest.mark.parametrize("estimator", ["ordinary", "weighted", "huber"])
@pytest.mark.parametrize("parallel", [None, False])
def test_noise_free_logs_give_the_parameters_back(arm, prior, estimator, parallel):
    found = armdyn.identify(prior, log_of(arm), estimator=estimator, friction="coulomb", width=0, parallel=parallel)
    expected = truth(found, arm)
    np.testing.assert_allclose(found.values, expected, atol=1e-8 * np.abs(expected).max())
    assert found.error < 1e-9


@pytest.mark.parametrize(("kinds", "seed"), [("R", 2), ("RP", 2), ("RRR", 2), ("RRR", 5), ("RRRR", 2)])
def test_the_default_explains_a_noise_free_log(kinds, seed):
    arm = with_drives(armdyn.generic_arm(kinds, seed=seed))
    heavier = tuple(type(link).from_natural(tuple(x * exact(1.2) for x in link.natural)) for link in arm.links)
    found = armdyn.identify(replace(arm, given=replace(arm.given, links=heavier)), log_of(arm), width=0)
    assert found.error < 1e-5
    assert len(found.steps) == 1
    assert (found.smallest_eigenvalues > 0).all()


def test_a_puma_written_with_1_5708_has_36_rigid_body_parameters(tmp_path):
    arm = armdyn.load("puma560")
    model = Model.of(arm, "none", rotor=False, offset=False)
    assert model.rigid == len(model.names) == 36
    arm.save(tmp_path / "puma.toml")
    text = (tmp_path / "puma.toml").read_text()
    assert "1.570796" in text
    import re

    (tmp_path / "puma.toml").write_text(re.sub(r"1\.570796\d*", "1.5708", text))
    again = armdyn.load(tmp_path / "puma.toml")
    assert Model.of(again, "none", rotor=False, offset=False).rigid == 36


def test_errors_match_the_predicted_deviations_over_many_seeds(arm):
    scores, factors = [], []
    for seed in range(24):
        found = armdyn.identify(
            arm, log_of(arm, noise=0.3, seed=seed), estimator="weighted", friction="coulomb", width=0, folds=2
        )
        scores.append((found.values - truth(found, arm)) / found.deviations)
        factors.append(found.autocorrelation_factors.mean())
    scores = np.array(scores)
    assert 0.85 < np.sqrt(np.mean(scores**2)) < 1.2
    assert np.mean(np.abs(scores) < 2) > 0.9
    assert abs(scores.mean()) < 0.15
    assert 1 <= np.mean(factors) < 1.5


def test_autocorrelation_is_counted():
    rng = np.random.default_rng(0)
    white = rng.normal(size=20000)
    slow = np.convolve(white, np.ones(8) / 8, mode="valid")
    assert correlation_time(white) == pytest.approx(1, abs=0.2)
    assert correlation_time(slow) == pytest.approx(8, rel=0.2)  # a mean over 8 repeats itself 8 times
    both = np.stack([white[: len(slow)], slow], 1)
    factors = autocorrelation_factors(both, np.zeros(len(slow), dtype=int))
    np.testing.assert_allclose(factors, [1, np.sqrt(8)], rtol=0.15)


class TestConsistent:
    @pytest.mark.parametrize("seed", range(3))
    def test_the_inertia_matrix_is_positive_definite_everywhere(self, arm, prior, seed):
        log = log_of(arm, noise=3.0, seed=seed, amplitude=0.15, seconds=4.0)  # short, slow and noisy
        found = armdyn.identify(prior, log, friction="coulomb", width=0)
        assert (found.smallest_eigenvalues > 0).all()
        q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (200, arm.n))
        assert np.linalg.eigvalsh(np.asarray(found.arm.inertia_matrix(q))).min() > 0
        assert all(j.viscous >= 0 and j.coulomb >= 0 and j.rotor_inertia >= 0 for j in found.arm.joints)

    def test_least_squares_on_the_same_log_is_not_possible(self, arm, prior):
        log = log_of(arm, noise=3.0, seed=0, amplitude=0.15, seconds=4.0)
        found = armdyn.identify(prior, log, friction="coulomb", width=0, estimator="weighted")
        assert (found.smallest_eigenvalues < 0).any()
        assert any("not physically consistent" in w for w in found.warnings)

    def test_a_good_log_overrules_a_wrong_prior(self, arm, prior):
        found = armdyn.identify(
            prior, log_of(arm, noise=0.05), friction="coulomb", width=0, validate=log_of(arm, seed=7)
        )
        wrong = found.model.natural @ found.model.prior(prior)
        expected = truth(found, arm)
        assert np.linalg.norm(found.values - expected) < 0.1 * np.linalg.norm(wrong - expected)
        assert found.validation.error < 0.01

    def test_strong_regularization_gives_the_prior(self, arm, prior):
        found = armdyn.identify(prior, log_of(arm, noise=2.0), friction="coulomb", width=0, regularization=1e8, folds=2)
        masses = [float(link.mass) for link in prior.links]
        np.testing.assert_allclose(found.natural[:, 0], masses, rtol=1e-3)
        share = dict(zip(found.names, found.uncertainty.share, strict=True))
        assert share["kx_2"] < 0.01  # the links rest on the prior,
        assert share["fv2"] > 0.9  # friction, which is weakly held, on the log

    def test_friction_is_weakly_held_to_the_prior(self, arm, prior):
        """A joint that the log says nothing of keeps the prior's friction; a wrong one yields to a log that tells."""
        joints = tuple(replace(j, viscous=exact(3.0), coulomb=exact(1e-6)) for j in prior.given.joints)
        rough = replace(prior, given=replace(prior.given, joints=joints))
        t, q, tau = (log_of(arm, noise=0.05).array(name) for name in ("t", "q", "tau"))
        told = armdyn.identify(rough, Log.of(t, q, tau), friction="coulomb")
        right = armdyn.identify(prior, Log.of(t, q, tau), friction="coulomb")
        last = q.shape[1]
        for name in ("fv1", "fc1", f"fv{last}", f"fc{last}"):
            at = told.names.index(name)
            assert abs(told.values[at] - right.values[at]) < 0.5 * told.deviations[at] + 1e-3
        q[:, -1], tau[:, -1] = 0.2, 0.0
        still = armdyn.identify(rough, Log.of(t, q, tau), friction="coulomb")
        assert still.extras[f"fv{last}"] == pytest.approx(3.0)
        assert still.deviations[still.names.index(f"fv{last}")] == pytest.approx(3.0, rel=0.01)

    def test_the_solution_is_stationary(self):
        """Against the gradient of ½‖A x - z‖² + λ Σ (tr P₀⁻¹P - log det P), written out here."""
        rng = np.random.default_rng(0)
        roots = rng.normal(size=(2, 4, 6)) * np.array([0.1, 0.1, 0.1, 1])[:, None]
        P0 = roots @ np.swapaxes(roots, 1, 2)
        A = rng.normal(size=(30, 20))
        z = A @ natural_of(P0).ravel() * 1.5 + rng.normal(size=30)
        regularization = 3.0
        x = Problem(P0, np.zeros(0, dtype=bool)).solve(A, z, regularization)
        P = pseudo_inertia(x.reshape(2, 10))
        slopes = np.linalg.inv(P0) - np.linalg.inv(P)
        units = pseudo_inertia(np.eye(10))
        slope = regularization * np.einsum("kij,lij->kl", slopes, units).ravel()
        np.testing.assert_allclose(A.T @ (A @ x - z), -slope, atol=1e-7 * np.abs(slope).max())

    @pytest.mark.parametrize("weight", [0.1, 3.0, 100.0])
    def test_the_solution_is_that_of_a_conic_solver(self, weight):
        oracle = pytest.importorskip("oracle_consistent", reason="Clarabel is not installed")
        rng = np.random.default_rng(1)
        roots = rng.normal(size=(3, 4, 6)) * np.array([0.1, 0.1, 0.1, 1])[:, None]
        P0 = roots @ np.swapaxes(roots, 1, 2)
        A = rng.normal(size=(15, 30)) * 10  # half of the parameters are not seen
        z = A @ natural_of(P0).ravel() * 1.5 + 5 * rng.normal(size=15)
        own = Problem(P0, np.zeros(0, dtype=bool)).solve(A, z, weight)
        expected = oracle.solve(P0, A, z, weight)
        np.testing.assert_allclose(own, expected, atol=1e-4 * np.abs(expected).max())

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("weight", [0.0, 0.01, 1.0])
    def test_no_data_leads_out_of_the_cone(self, seed, weight):
        """Rows that ask for bodies that cannot be, exact to eight digits: the answer is inside all the same."""
        rng = np.random.default_rng(seed)
        roots = rng.normal(size=(4, 4, 4)) * np.array([0.05, 0.05, 0.05, 1])[:, None]
        P0 = roots @ np.swapaxes(roots, 1, 2) * 10.0 ** rng.uniform(-4, 1, (4, 1, 1))
        A = rng.normal(size=(30, 42)) * 1e4
        z = A @ np.r_[-natural_of(P0).ravel(), -1.0, 2.0]
        x = Problem(P0, np.array([True, False])).solve(A, z, weight)
        assert np.isfinite(x).all()
        assert (np.linalg.eigvalsh(pseudo_inertia(x[:40].reshape(4, 10))) > 0).all()
        assert x[40] >= 0

    def test_implausible_links_are_said(self, arm):
        t, q, qd, qdd = motion(arm.n)
        heavy = replace(
            arm,
            given=replace(
                arm.given,
                links=tuple(type(k).from_natural(tuple(x * exact(9) for x in k.natural)) for k in arm.links),
            ),
        )
        log = Log.of(t, q, np.asarray(heavy.inverse_dynamics(q, qd, qdd, friction=True)), qd, qdd)
        said = armdyn.identify(arm, log, friction="coulomb", width=0, folds=2).warnings
        assert any("hardly plausible" in text and "has a mass of" in text for text in said)

    def test_pseudo_inertias(self):
        rng = np.random.default_rng(0)
        ten = rng.normal(size=(5, 10))
        np.testing.assert_allclose(natural_of(pseudo_inertia(ten)), ten, atol=1e-12)
        bodies, bad = reference_bodies(np.r_[np.zeros(10), [2, 0.2, 0, 0, 0, 0, 0, 0, 0, 0]])
        assert bad == [0, 1]
        assert (np.linalg.eigvalsh(bodies) > 0).all()
        assert bodies[1][3, 3] == 2


def test_merged_drives_are_named_and_counted(arm):
    model = Model.of(arm)
    assert "U33_1 + Ia1" in model.names
    Y = model.regressor(*motion(arm.n)[1:])
    assert np.linalg.matrix_rank(Y.reshape(-1, Y.shape[-1])) == len(model.names) == Y.shape[-1]


def test_coupled_drives(arm):
    """A motor that turns joints 2 and 3: its inertia and friction come back."""
    K = np.diag([10.0, 20.0, -30.0])
    K[2, 1] = -15.0
    t, q, qd, qdd = motion(arm.n, seed=5)
    row = K[2] / K[2, 2]
    mixed = np.outer(row, row) - np.diag(row**2)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    tau = tau + 0.03 * qdd @ mixed + 0.4 * qd @ mixed + 0.25 * np.sign(qd @ row)[:, None] * row
    motor = Log.of(t, q @ K.T, tau @ np.linalg.inv(K), qd @ K.T, qdd @ K.T)
    found = armdyn.identify(arm, motor, estimator="ordinary", friction="coulomb", width=0, transmission=K)
    got = dict(zip(found.names, found.values, strict=True))
    assert (got["Iam3"], got["fvm3"], got["fcm3"]) == pytest.approx((0.03, 0.4, 0.25), abs=1e-7)


def test_outliers_do_not_disturb_huber(arm):
    log = log_of(arm, noise=0.05)
    piece = log.pieces[0]
    piece.tau[::40] += 60.0
    options = {"friction": "coulomb", "width": 0, "parallel": False, "folds": 2}
    off = {
        name: np.linalg.norm((e := armdyn.identify(arm, log, estimator=name, **options)).values - truth(e, arm))
        for name in ("ordinary", "huber")
    }
    assert off["huber"] < 0.1 * off["ordinary"]


def test_stribeck_velocities_are_found(arm):
    t, q, qd, qdd = motion(arm.n, seed=2)
    bump = np.array([0.15, 0.3, 0.2])
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True)) + np.sign(qd) / (1 + (qd / bump) ** 4)
    found = armdyn.identify(
        arm, Log.of(t, q, tau, qd, qdd), estimator="weighted", friction="stribeck", width=0, parallel=False, folds=2
    )
    np.testing.assert_allclose(found.model.stribeck, bump, rtol=0.05)
    excess = [found.extras[f"fs{k}"] - found.extras[f"fc{k}"] for k in (1, 2, 3)]
    np.testing.assert_allclose(excess, 1.0, rtol=0.05)
    at_rest = [float(j.static) - float(j.coulomb) for j in found.arm.joints]
    np.testing.assert_allclose(at_rest, 1.0, rtol=0.05)
    own = np.asarray(found.arm.inverse_dynamics(q, qd, qdd, friction=True))
    np.testing.assert_allclose(found.predict(q, qd, qdd), own, atol=1e-8 * np.abs(own).max())
    assert not found.left_behind


def test_a_leaning_base_is_found(arm):
    from armdyn.identification.nonlinear import tilted

    log = log_of(tilted(arm, 0.03, -0.02), noise=0.02)
    found = armdyn.identify(arm, log, friction="coulomb", width=0, tilt=True, regularization=1.0, folds=2)
    np.testing.assert_allclose(found.base_tilt, (0.03, -0.02), atol=2e-3)
    assert found.error < 0.01


def test_instrumental_variables_remove_the_bias_of_noisy_positions():
    arm = with_drives(armdyn.generic_arm("RR", seed=1), coulomb=0.0)
    t, q, qd, qdd = motion(2, seed=4, seconds=8.0)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    off = {"weighted": [], "instrumental": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        log = Log.of(t, q + 2e-3 * rng.normal(size=q.shape), tau + 0.05 * rng.normal(size=tau.shape))
        for name, errors in off.items():
            options = {"friction": "viscous", "offset": False, "cutoff": 30.0, "parallel": False, "folds": 2}
            found = armdyn.identify(arm, log, estimator=name, **options)
            errors.append(found.values - truth(found, arm))
    bias = {name: np.linalg.norm(np.mean(errors, axis=0)) for name, errors in off.items()}
    assert bias["instrumental"] < 0.2 * bias["weighted"]


def test_payload(arm):
    load = (1.5, (0.05, -0.02, 0.1), np.diag([0.01, 0.012, 0.008]))
    log = log_of(arm.with_payload(*load), noise=0.02)
    found = armdyn.identify_payload(arm, log)
    assert found.mass == pytest.approx(1.5, abs=4 * found.mass_deviation)
    assert found.mass_deviation < 0.05
    np.testing.assert_allclose(found.com, load[1], atol=0.02)
    assert np.linalg.eigvalsh(found.inertia).min() > 0
    carried = found.held_by(arm)
    assert carried.mass == pytest.approx(arm.mass + 1.5, abs=0.2)


def test_drive_gains_from_a_weighed_payload(arm):
    gains = np.array([20.0, 35.0, -8.0])
    load = (3.0, (0.1, 0.0, 0.2), None)
    bare, loaded = log_of(arm, seed=1), log_of(arm.with_payload(*load), seed=2)
    currents = [
        replace(log, drive="current", pieces=tuple(replace(p, tau=p.tau / gains) for p in log.pieces))
        for log in (bare, loaded)
    ]
    found = armdyn.identify_gains(arm, currents[0], loaded=currents[1], payload=load)
    np.testing.assert_allclose(found.values, gains, rtol=0.03)
    with pytest.raises(InputError, match="currents"):
        armdyn.identify(arm, currents[0])
    with pytest.raises(InputError, match="go together"):
        armdyn.identify_gains(arm, currents[0], loaded=currents[1])


@pytest.mark.parametrize("seed", [1, 4])
def test_gains_of_joints_that_mostly_rub(seed):
    """Friction larger than the wrist's own load, inertias of the file a third off: no gain is lost or turns round."""
    arm = armdyn.load("ur5")
    gains, rng = np.array([10.0, 11.0, 9.0, 6.0, -6.0, 5.0]), np.random.default_rng(seed)
    logs = []
    for k, held in enumerate((arm, arm.with_payload(2.5, [0.02, 0.03, 0.08], np.diag([4e-3, 4e-3, 3e-3])))):
        t, q, qd, qdd = motion(6, seed=10 * seed + k, amplitude=1.2)
        rubbing = np.array([8, 8, 5, 2, 2, 1.5]) * np.sign(qd) + np.array([9, 9, 6, 2, 2, 2]) * qd
        current = (np.asarray(held.inverse_dynamics(q, qd, qdd)) + rubbing) / gains
        current += 0.02 * current.std(axis=0) * rng.normal(size=q.shape)
        logs.append(replace(Log.of(t, q, current), drive="current"))
    links = tuple(Link.from_natural(tuple(exact(1.3) * x for x in link.natural)) for link in arm.given.links)
    heavier = replace(arm, given=replace(arm.given, links=links))
    found = armdyn.identify_gains(heavier, logs[0], loaded=logs[1], payload=2.5)
    np.testing.assert_allclose(found.values[:5], gains[:5], rtol=0.15)
    assert (np.sign(found.values) == np.sign(gains)).all()
    assert (np.abs(found.values - gains) < 4 * found.deviations).all()


def test_a_load_is_weighed_with_a_wrist_that_weighs_nothing():
    """The last joint's own inertia says nothing of its gain: the others' are its start, and the payload decides."""
    arm = armdyn.load("ur5")
    light = Link.from_natural(tuple(exact(0.02) * x for x in arm.given.links[5].natural))
    arm = replace(arm, given=replace(arm.given, links=(*arm.given.links[:5], light)))
    gains, rng, logs = np.array([10.0, 11.0, 9.0, 6.0, -6.0, 5.0]), np.random.default_rng(1), []
    for k, held in enumerate((arm, arm.with_payload(2.8, [0.03, 0.02, 0.08], np.diag([6e-3, 5e-3, 4e-3])))):
        t, q, qd, qdd = motion(6, seed=10 + k, amplitude=1.2, seconds=24.0)
        rubbing = np.array([8, 8, 5, 2, 2, 1.5]) * np.tanh(qd / 0.01) + np.array([9, 9, 6, 2, 2, 2]) * qd
        current = (np.asarray(held.inverse_dynamics(q, qd, qdd)) + rubbing) / gains
        current += 0.02 * current.std(axis=0) * rng.normal(size=q.shape)
        logs.append(replace(Log.of(t, q, current), drive="current"))
    found = armdyn.identify_gains(arm, logs[0], loaded=logs[1], payload=2.8)
    np.testing.assert_allclose(found.values, gains, rtol=0.04)
    assert (np.abs(found.values - gains) < 3 * found.deviations).all()
    bare = armdyn.identify(arm, logs[0], gains=found, friction="coulomb", folds=2)
    load = armdyn.identify_payload(bare, logs[1], gains=found)
    assert load.mass == pytest.approx(2.8, rel=0.02)


def test_what_is_not_known_of_the_gains_is_not_known_of_the_load(arm):
    """Gains that are 4 % off, and are known to 4 %: the load's mass is off by as much, and its deviation says so."""
    gains, load = np.array([20.0, 35.0, 8.0]), 3.0
    log = log_of(arm.with_payload(load, (0.05, 0.02, 0.1), np.eye(3) * 0.01), noise=0.02)
    currents = replace(log, drive="current", pieces=tuple(replace(p, tau=p.tau / gains) for p in log.pieces))
    off = Gains(1.04 * gains, 0.04 * gains)
    found = armdyn.identify_payload(arm, currents, gains=off)
    blind = armdyn.identify_payload(arm, currents, gains=off.values)
    assert found.mass == pytest.approx(blind.mass)
    assert abs(found.mass - load) > 3 * blind.mass_deviation
    assert abs(found.mass - load) < 2 * found.mass_deviation
    right = armdyn.identify_payload(arm, currents, gains=Gains(gains, 0 * gains))
    assert right.mass == pytest.approx(load, rel=0.01)


@pytest.mark.parametrize("known", ["mass", "all"])
def test_gains_from_noisy_currents_and_their_uncertainty(arm, known):
    """The mass of the payload alone is enough; deviations cover what is off."""
    gains = np.array([20.0, 35.0, 8.0])
    load = (4.0, (0.1, 0.0, 0.2), np.diag([0.02, 0.03, 0.02]))
    scores = []
    for seed in range(4):
        logs = [log_of(arm, seed=2 * seed), log_of(arm.with_payload(*load), seed=2 * seed + 1)]
        rng = np.random.default_rng(seed)
        currents = []
        for log in logs:
            noisy = [
                replace(p, tau=p.tau / gains + 0.02 * p.tau.std(axis=0) / gains * rng.normal(size=p.tau.shape))
                for p in log.pieces
            ]
            currents.append(replace(log, drive="current", pieces=tuple(noisy)))
        found = armdyn.identify_gains(
            arm, currents[0], loaded=currents[1], payload=load[0] if known == "mass" else load
        )
        scores.append((found.values - gains) / found.deviations)
        np.testing.assert_allclose(found.values, gains, rtol=0.15)
    assert np.mean(np.abs(scores) < 3) > 0.8


def test_deviations_cover_what_a_wrong_prior_does(arm):
    """Masses off by up to 25 %, centres of mass by 10 mm, held so strongly that the log decides little."""
    scores, widths = [], []
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        links = []
        for link in arm.links:
            moved = np.eye(4)
            moved[:3, 3] = rng.uniform(-0.01, 0.01, 3)
            body = rng.uniform(0.8, 1.25) * moved @ pseudo_inertia(np.array(link.natural, dtype=float)) @ moved.T
            links.append(Link.from_natural(tuple(exact(float(x)) for x in natural_of(body))))
        off = replace(arm, given=replace(arm.given, links=tuple(links)))
        for number in (1, 2):
            log = log_of(arm, noise=0.3, seed=10 * seed + number, seconds=6.0)
            found = armdyn.identify(off, log, friction="coulomb", width=0, folds=3, regularization=1000.0)
            scores.append((found.values - truth(found, arm)) / found.deviations)
            widths.append(found.uncertainty.prior_width)
    assert np.mean(np.abs(scores) < 2) > 0.94
    assert np.sqrt(np.mean(np.square(scores))) > 0.3  # and are not large for nothing
    assert max(widths) < 0.4
    far = replace(arm, given=replace(arm.given, links=tuple(
        Link.from_natural(tuple(2 * x for x in link.natural)) for link in arm.links)))  # fmt: skip
    assert armdyn.identify(far, log, friction="coulomb", width=0, folds=3).uncertainty.prior_width > 0.3


class TestWords:
    def test_a_joint_that_hardly_moves(self, arm, prior):
        t, q, qd, qdd = motion(arm.n)
        q[:, 2], qd[:, 2], qdd[:, 2] = 0.3, 0.0, 0.0
        tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
        log = Log.of(t, q, tau + 0.05 * np.random.default_rng(0).normal(size=tau.shape), qd, qdd)
        found = armdyn.identify(prior, log, friction="coulomb", width=0)
        assert any("joint 3 hardly moves" in w and "rest on the prior" in w for w in found.warnings)

    def test_a_log_that_ends_at_rest(self, arm, prior):
        t, q, qd, qdd = (np.concatenate([x, np.repeat(x[-1:], 200, axis=0)]) for x in motion(arm.n))
        t, qd[-200:], qdd[-200:] = np.arange(len(q)) / RATE, 0.0, 0.0
        tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
        log = Log.of(t, q, tau + 0.1 * np.random.default_rng(0).normal(size=tau.shape), qd, qdd)
        options = {"friction": "coulomb", "width": 0, "folds": 2}
        assert any("stands still for 16 %" in w for w in armdyn.identify(prior, log, **options).warnings)
        assert not any("still" in w for w in armdyn.identify(prior, log, dead_zone=0.01, **options).warnings)

    def test_degrees_are_refused(self, arm):
        t, q, qd, qdd = motion(arm.n)
        tau = np.asarray(arm.inverse_dynamics(q, qd, qdd))
        with pytest.raises(InputError, match="degrees=True"):
            armdyn.identify(arm, Log.of(t, np.rad2deg(q), tau))

    def test_wrong_requests(self, arm):
        log = log_of(arm)
        still = replace(log, pieces=tuple(replace(p, q=np.zeros_like(p.q)) for p in log.pieces))
        with pytest.raises(InputError, match="nothing moves"):
            armdyn.identify(arm, still)
        with pytest.raises(InputError, match="available: ordinary"):
            armdyn.identify(arm, log, estimator="magic")
        with pytest.raises(InputError, match="available: auto, none"):
            armdyn.identify(arm, log, friction="magic")
        with pytest.raises(InputError, match="has 2"):
            armdyn.identify(armdyn.generic_arm("RR"), log)
        with pytest.raises(InputError, match="transmission must be"):
            armdyn.identify(arm, log, transmission=[1.0, 2.0])
        with pytest.raises(InputError, match="cutoff must lie"):
            armdyn.identify(arm, log, cutoff=1e4)

    def test_report_and_files(self, arm, prior, tmp_path):
        found = armdyn.identify(
            prior, log_of(arm, noise=0.1), friction="coulomb", width=0, validate=log_of(arm, seed=3)
        )
        found.report(tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        for said in ("Measured and predicted torque", "Identifiability", "<script>", "Links"):
            assert said in text
        for regularization, said in ((None, False), (2.5, True)):
            again = page(replace(found, fit=replace(found.fit, regularization=regularization)))
            assert ("Regularization towards the prior arm: 2.5 noise variances." in again) == said
            assert ("Regularization towards the prior arm" in again) == said
        assert "https://cdn" not in text.split("</script>")[-1]
        found.save(tmp_path / "arm.toml")
        again = armdyn.load(tmp_path / "arm.toml")
        np.testing.assert_allclose([float(x.mass) for x in again.links], found.natural[:, 0])
        found.to_urdf(tmp_path / "arm.urdf")
        q = np.zeros(arm.n)
        np.testing.assert_allclose(
            armdyn.load(tmp_path / "arm.urdf").gravity_load(q), found.arm.gravity_load(q), atol=1e-6
        )
        assert "parameters" in repr(found)

    def test_the_estimate_predicts_what_its_arm_does(self, arm, prior):
        found = armdyn.identify(prior, log_of(arm, noise=0.1), friction="coulomb", width=0, offset=False, folds=2)
        _, q, qd, qdd = motion(arm.n, seed=9)
        own = np.asarray(found.arm.inverse_dynamics(q, qd, qdd, friction=True))
        np.testing.assert_allclose(found.predict(q, qd, qdd), own, atol=1e-8 * np.abs(own).max())
        assert found.correlation.shape == (len(found.names),) * 2
        np.testing.assert_allclose(np.diag(found.correlation), 1)


def test_auto_takes_what_the_log_bears_out_and_no_more(arm, prior):
    plain = armdyn.identify(prior, log_of(arm, noise=0.3), width=0)
    assert len(plain.steps) == 1
    assert set(plain.model.terms) == {"rotor", "viscous", "coulomb", "offset"}
    assert plain.base_tilt == (0.0, 0.0)


def test_a_joint_that_only_moves_backwards_has_the_same_candidates(arm):
    """Speeds, not velocities, say what could be told of a joint: the reversed motion has the same candidates."""
    log = log_of(arm, seconds=4.0)
    model, how = Model.of(arm), Processing(5.0, None)
    part = motions(log, how)[0]
    forward = replace(part, qd=np.abs(part.qd) + 0.1)
    both = (forward, replace(forward, qd=-forward.qd))
    names = [[(c.name, c.velocity) for c in candidates(model, [one], how)] for one in both]
    assert names[0] == names[1]
    assert {f"Stribeck friction of joint {k}" for k in (1, 2, 3)} <= {name for name, _ in names[0]}


def test_auto_finds_each_term_at_its_joint(arm, prior):
    log = log_of(arm, noise=0.1, seconds=24.0, amplitude=1.5)
    p = log.pieces[0]
    extra = np.zeros_like(p.tau)
    extra[:, 0] = 3 * np.sign(p.qd[:, 0]) / (1 + (p.qd[:, 0] / 0.2) ** 4)
    extra[:, 1] = 0.1 * np.sign(p.qd[:, 1]) * np.abs(np.asarray(arm.inverse_dynamics(p.q, p.qd, p.qdd))[:, 1])
    extra[:, 2] = 2 * p.q[:, 2] + 1.5 * np.cos(4 * p.q[:, 2] - 0.5)
    found = armdyn.identify(prior, replace(log, pieces=(replace(p, tau=p.tau + extra),)), width=0)
    got = {term: joints for term, joints in found.model.terms.items() if len(joints) < arm.n}
    assert got == {"stribeck": (0,), "load": (1,), "spring": (2,), "sin4": (2,), "cos4": (2,)}
    assert found.extras["fs1"] - found.extras["fc1"] == pytest.approx(3, rel=0.1)
    assert found.extras["fl2"] == pytest.approx(0.1, rel=0.15)
    assert found.extras["k3"] == pytest.approx(2, rel=0.1)
    assert np.hypot(found.extras["sin4q3"], found.extras["cos4q3"]) == pytest.approx(1.5, rel=0.1)
    errors = list(found.steps.values())
    assert errors[0] == 1
    assert errors == sorted(errors, reverse=True)
    expected = np.asarray(arm.inverse_dynamics(p.q, p.qd, p.qdd, friction=True)) + extra
    got = found.predict(p.q, p.qd, p.qdd)  # with everything that was found
    assert np.linalg.norm(got - expected) < 0.02 * np.linalg.norm(expected)
    assert not found.left_behind
    carried = np.asarray(found.arm.inverse_dynamics(p.q, p.qd, p.qdd, friction=True))
    assert np.linalg.norm(carried - got) < 1e-4 * np.linalg.norm(got)  # the load is that of the links of the last fit


def test_slow_noise_is_not_taken_for_a_spring(arm, prior):
    """A drifting sensor looks like anything slow; counted by its correlation time it is no evidence."""
    for seed in range(4):
        log = log_of(arm, seed=seed, seconds=24.0)
        drift = np.cumsum(np.random.default_rng(seed).normal(size=(len(log), arm.n)), axis=0)
        p = log.pieces[0]
        drifting = replace(p, tau=p.tau + 2 * drift / drift.std(axis=0))
        found = armdyn.identify(prior, replace(log, pieces=(drifting,)), width=0)
        assert len(found.steps) == 1


def test_logged_accelerations_must_predict_better(arm, prior):
    """Exact ones are taken; where the velocities beside them are late, they are not. The output says which."""
    t, q, qd, qdd = motion(arm.n)
    log = log_of(arm, noise=0.05)
    tau = log.array("tau")
    exact_ones = armdyn.identify(prior, Log.of(t, q, tau, qd, qdd), friction="coulomb", width=0)
    assert exact_ones.processing.logged_acceleration
    assert any(note.startswith("the logged accelerations are taken") for note in exact_ones.notes)
    late = np.roll(qd, 3, axis=0)  # velocities of another clock: accelerations alone do not show it
    late_ones = armdyn.identify(prior, Log.of(t, q, tau, late, qdd), friction="coulomb", width=0)
    assert not late_ones.processing.logged_acceleration
    assert any(note.startswith("the logged accelerations are not taken") for note in late_ones.notes)


def test_a_log_without_velocities_is_predicted_by_a_fit_that_had_accelerations(arm, prior):
    t, q, qd, qdd = motion(arm.n, seed=8)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    found = armdyn.identify(prior, log_of(arm), friction="coulomb", width=0, folds=2, validate=Log.of(t, q, tau))
    assert found.processing.logged_acceleration
    assert found.validation.error < 0.02


def test_logged_derivatives_are_not_trusted_blindly(arm, prior):
    t, q, qd, qdd = motion(arm.n, seed=8)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    late = 5  # samples: what a filter in the controller does
    options = {"friction": "coulomb", "width": 0, "folds": 2, "estimator": "weighted"}
    delayed = Log.of(t[late:], q[late:], tau[late:], qd[:-late], qdd[:-late])
    how = armdyn.identify(prior, delayed, **options).processing
    assert not how.logged_velocity
    assert not how.logged_acceleration
    rng = np.random.default_rng(0)
    noisy = Log.of(t, q + 1e-4 * rng.normal(size=q.shape), tau, qd + 1e-4 * rng.normal(size=q.shape))
    assert armdyn.identify(prior, noisy, **options).processing.logged_velocity
    worse = Log.of(t, q, tau, qd + 0.02 * rng.normal(size=q.shape))
    assert not armdyn.identify(prior, worse, **options).processing.logged_velocity


def test_raw_errors_are_of_every_sample(arm, prior):
    log = log_of(arm)
    piece = log.pieces[0]
    piece.tau[::2] += 1.0
    piece.tau[1::2] -= 1.0  # at half the sampling rate: no filter passes it
    found = armdyn.identify(prior, log, friction="coulomb", width=0, folds=2)
    size = np.sqrt(np.mean(piece.tau**2))
    assert found.training.raw_error == pytest.approx(1 / size, rel=0.02)
    assert found.error < 0.2 / size


def test_former_names(arm, prior):
    with pytest.warns(DeprecationWarning, match="regularization"):
        found = armdyn.identify(prior, log_of(arm), friction="coulomb", width=0, pull=1.0, folds=2)
    assert found.regularization == 1.0
    with pytest.warns(DeprecationWarning, match=r"Estimate\.base_tilt"):
        assert found.lean == found.base_tilt
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = found.nothing


def test_instrumental_variables_are_validated_as_such():
    """Left-out segments are predicted by the instruments' own solutions, not by least squares."""
    arm = with_drives(armdyn.generic_arm("RR", seed=1), coulomb=0.0)
    t, q, qd, qdd = motion(2, seed=4, seconds=8.0)
    tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
    rng = np.random.default_rng(0)
    log = Log.of(t, q + 2e-3 * rng.normal(size=q.shape), tau + 0.05 * rng.normal(size=tau.shape))
    options = {"friction": "viscous", "offset": False, "cutoff": 30.0, "parallel": False, "folds": 2}
    errors = [armdyn.identify(arm, log, estimator=name, **options).folds for name in ("weighted", "instrumental")]
    assert np.abs(errors[0] - errors[1]).max() > 1e-6


def test_a_base_tilt_reaches_the_files_and_the_given_arm_stays(arm, tmp_path):
    from armdyn.identification.nonlinear import tilted

    log = log_of(tilted(arm, 0.03, -0.02), noise=0.02)
    found = armdyn.identify(arm, log, friction="coulomb", width=0, tilt=True, regularization=1.0, folds=2)
    assert found.given is arm
    assert tuple(found.arm.gravity) != tuple(arm.gravity)
    found.to_urdf(tmp_path / "arm.urdf")  # readers take gravity as downwards: the base is turned
    found.save(tmp_path / "arm.toml")
    q = np.random.default_rng(0).uniform(-2, 2, (20, arm.n))
    expected = np.asarray(found.arm.gravity_load(q))
    upright = np.asarray(found.arm.with_gravity(arm.gravity).gravity_load(q))
    assert np.abs(upright - expected).max() > 1e-3 * np.abs(expected).max()
    for name in ("arm.urdf", "arm.toml"):
        again = armdyn.load(tmp_path / name)
        np.testing.assert_allclose(again.gravity_load(q), expected, atol=1e-5 * np.abs(expected).max())


class TestRepeatedMotions:
    """Folds never part a stretch of motion from its own repetition."""

    def twice(self, arm, noise):
        _, q, qd, qdd = motion(arm.n, seed=3)
        tau = np.asarray(arm.inverse_dynamics(q, qd, qdd, friction=True))
        rng = np.random.default_rng(5)
        run = [np.concatenate([x, x]) for x in (q, qd, qdd, tau)]
        run[3] = run[3] + noise * rng.normal(size=run[3].shape)
        return Log.of(np.arange(len(run[0])) / RATE, run[0], run[3], run[1], run[2])

    def test_a_period_is_found(self, arm):
        once = np.random.default_rng(0).normal(size=(50, 4))
        smooth = np.fft.irfft(np.fft.rfft(once, axis=0)[:12], 500, axis=0)  # 500 rows, periodic
        assert repeats_after(np.tile(smooth, (4, 1))) == 500
        noise = 0.002 * np.random.default_rng(1).normal(size=(1000, 4))
        assert repeats_after(np.concatenate([smooth, smooth]) + noise) == pytest.approx(500, abs=2)
        assert repeats_after(smooth) == 0
        assert repeats_after(np.concatenate([smooth, smooth[::-1]])) == 0

    def test_segments_go_by_the_phase(self, arm, prior):
        log = self.twice(arm, 0.1)
        how = choose_processing(log, 30, None, None)
        found = rows(Model.of(arm), motions(log, how), how)
        assert found.repeat == pytest.approx(len(found) / 2, rel=0.05)
        segment = found.segments(5)
        again = segment[found.repeat :]
        assert np.mean(segment[: len(again)] == again) > 0.95
        assert set(segment) == set(range(5))
        single = log.part(0, 0.5)
        assert rows(Model.of(arm), motions(single, how), how).repeat == 0

    def test_the_regularization_of_two_runs_is_that_of_one(self, arm, prior):
        log = self.twice(arm, 2.0)
        options = {"friction": "coulomb", "width": 0}
        one, two = (armdyn.identify(prior, part, **options) for part in (log.part(0, 0.5), log))
        assert two.regularization >= 0.1 * one.regularization


def sticking(arm, noise=0.0):
    """A log in which joints slower than 0.05 rad/s are held by whatever torque."""
    log = log_of(arm, noise=noise)
    p = log.pieces[0]
    stuck = np.random.default_rng(0).uniform(-3, 3, p.tau.shape) * (np.abs(p.qd) < 0.05)
    return replace(log, pieces=(replace(p, tau=p.tau + stuck),))


class TestDeadZone:
    """Near standstill friction is whatever holds: those rows are dropped, joint by joint."""

    @pytest.mark.parametrize("estimator", ["ordinary", "weighted", "huber"])
    def test_what_is_left_gives_the_parameters_back(self, arm, prior, estimator):
        options = {"estimator": estimator, "friction": "coulomb", "width": 0, "parallel": False, "folds": 2}
        found = armdyn.identify(prior, sticking(arm), dead_zone=0.05, **options)
        expected = truth(found, arm)
        np.testing.assert_allclose(found.values, expected, atol=1e-8 * np.abs(expected).max())
        assert found.error > 1e-3  # of every row, those at rest too
        without = armdyn.identify(prior, sticking(arm), **options)
        assert np.abs(without.values - expected).max() > 1e-7 * np.abs(expected).max()

    def test_consistent(self, arm, prior):
        options = {"friction": "coulomb", "width": 0, "parallel": False, "regularization": 0.01, "folds": 2}
        off = {}
        for zone in (0.0, 0.05):
            found = armdyn.identify(prior, sticking(arm, noise=0.02), dead_zone=zone, **options)
            off[zone] = np.linalg.norm(found.values - truth(found, arm))
        assert off[0.05] < 0.5 * off[0.0]

    def test_wrong_zones(self, arm, prior):
        with pytest.raises(InputError, match="no joint ever moves faster"):
            armdyn.identify(prior, log_of(arm), dead_zone=100.0)
        with pytest.raises(InputError, match="at least 0"):
            armdyn.identify(prior, log_of(arm), dead_zone=-1.0)


def test_the_benchmark_runs():
    path = Path(__file__).parent.parent / "benchmarks" / "bench_identify.py"
    spec = importlib.util.spec_from_file_location("bench_identify", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert all(value > 0 for value in module.main(quick=True).values())


def test_a_sign_is_not_taken_for_stribeck_friction(arm, prior):
    """With the default width of the smooth sign; too wide a one leaves what Stribeck friction would explain."""
    log = log_of(arm, noise=0.02, seconds=12.0)
    found = armdyn.identify(prior, log)
    assert "stribeck" not in found.model.terms
    top = np.abs(log.pieces[0].qd).max(axis=0)
    assert (found.model.width < 0.006 * top).all()
    kept = armdyn.identify(prior, log, width=0.02 * top)
    assert found.error < 0.9 * kept.error


class TestSeveralLogs:
    """Logs fitted together, with inertias shared and friction of their own."""

    def warm(self, arm, factor, seed):
        joints = tuple(replace(j, viscous=j.viscous * factor, coulomb=j.coulomb * factor) for j in arm.given.joints)
        return log_of(replace(arm, given=replace(arm.given, joints=joints)), noise=0.05, seed=seed)

    def test_friction_of_each_log_is_found(self, arm, prior):
        logs = [self.warm(arm, Fraction(2), 1), self.warm(arm, Fraction(1), 2)]
        options = {"friction": "coulomb", "width": 0, "folds": 2}
        found = armdyn.identify(prior, logs, friction_per_log=True, validate=self.warm(arm, Fraction(1), 3), **options)
        for number, factor in ((1, 2.0), (2, 1.0)):
            own = found.arm_of_log(number)
            for got, true in zip(own.joints, arm.joints, strict=True):
                assert float(got.coulomb) == pytest.approx(factor * float(true.coulomb), rel=0.05, abs=0.02)
        assert found.arm.joints == found.arm_of_log(2).joints
        together = armdyn.identify(prior, logs, validate=self.warm(arm, Fraction(1), 3), **options)
        assert found.validation.error < 0.5 * together.validation.error
        assert not found.left_behind
        assert {"fc1_2", "fv1_2", "off1_2"} <= set(found.names)
        with pytest.raises(InputError, match="for 2 logs, got number 3"):
            found.arm_of_log(3)

    def test_what_drifts_is_told_from_what_does_not(self, arm, prior):
        first = arm.given.joints[0]
        warm = replace(first, coulomb=first.coulomb * Fraction(1, 2))
        logs = [
            self.warm(arm, Fraction(1), 1),
            self.warm(replace(arm, given=replace(arm.given, joints=(warm, *arm.given.joints[1:]))), Fraction(1), 2),
        ]
        found = armdyn.identify(prior, logs, friction_per_log=True, friction="coulomb", width=0, folds=2)
        (note,) = [text for text in found.notes if "differ from log 1" in text]
        assert "fc1_2 -0.2" in note
        assert note.count("±") == 1
        assert "the other 8 do not" in note

    def test_adapting_to_another_day_takes_seconds_and_keeps_the_inertias(self, arm, prior):
        estimate = armdyn.identify(prior, self.warm(arm, Fraction(1), 1), friction="coulomb", width=0, folds=2)
        warm, other = self.warm(arm, Fraction(3, 5), 2).part(0.2, 0.45), self.warm(arm, Fraction(3, 5), 3)
        adapted = estimate.adapt(warm)
        assert adapted.validate(other).error < 0.5 * estimate.validate(other).error
        assert np.array_equal(adapted.natural, estimate.natural)
        assert adapted.validation is None
        assert "friction and offsets are those of another log (3 s)" in adapted.notes[-1]
        for name, (change, deviation) in adapted.changes_of_friction.items():
            own = {"fv": "viscous", "fc": "coulomb"}.get(name[:2])
            true = 0.6 * float(getattr(arm.joints[int(name[-1]) - 1], own)) if own else 0.0
            assert adapted.extras[name] - estimate.extras[name] == pytest.approx(change)
            assert abs(adapted.extras[name] - true) < 3.5 * adapted.deviations[adapted.names.index(name)] + 1e-9, name
            assert deviation > 0
        assert float(adapted.arm.joints[0].coulomb) == pytest.approx(0.3, rel=0.15)
        same = estimate.adapt(self.warm(arm, Fraction(1), 4))  # nothing has changed: nothing is spoilt
        day = self.warm(arm, Fraction(1), 5)
        assert same.validate(day).error < 1.02 * estimate.validate(day).error

    def test_adapting_the_last_of_several_logs(self, arm, prior):
        logs = [self.warm(arm, Fraction(2), 1), self.warm(arm, Fraction(1), 2)]
        both = armdyn.identify(prior, logs, friction_per_log=True, friction="coulomb", width=0, folds=2)
        adapted = both.adapt(self.warm(arm, Fraction(1, 2), 3))
        assert adapted.model.logs == 1
        assert len(adapted.names) == len(adapted.values) == len(adapted.deviations) == len(both.names) - 9
        for own, true in zip(adapted.arm.joints, arm.joints, strict=True):
            assert float(own.coulomb) == pytest.approx(0.5 * float(true.coulomb), rel=0.1, abs=0.02)
        with pytest.raises(InputError, match="no torques or currents"):
            both.adapt(Log.of(*motion(arm.n)[:2], command=motion(arm.n)[1]))
        frictionless = armdyn.identify(prior, logs[1], friction="none", offset=False, folds=2)
        with pytest.raises(InputError, match="neither friction nor offsets"):
            frictionless.adapt(logs[0])

    def test_logs_that_are_not_alike_are_refused(self, arm):
        t, q, qd, _ = motion(arm.n)
        other = Log.of(2 * t, q, qd)
        with pytest.raises(InputError, match="must have the same joints, sampling rate and kind of effort"):
            armdyn.identify(arm, [log_of(arm), other])

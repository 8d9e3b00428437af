"""Which terms a model gets: judged by other postures too, at all joints at once, with signs held or free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.algebra import exact
from armdyn.chain import Link
from armdyn.identification.left_out import better, posture_clusters
from noisy_logs import recorded


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("planar3")


def log_of(arm, drive=None, seed=0, seconds=20.0):
    t, q, qd, tau = recorded(arm, seconds, seed)
    return Log.of(t, q, tau if drive is None else tau + drive(q, qd), qd)


def test_postures_are_clustered_and_none_is_empty():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [3, 0], [0, 50], [3, 50]])
    q = np.repeat(centres, 50, axis=0) + rng.normal(size=(200, 2)) * [0.1, 2]
    own = posture_clusters(q, 4)
    assert all(len(set(own[50 * k : 50 * k + 50])) == 1 for k in range(4))
    assert len(set(own)) == 4
    assert set(posture_clusters(np.column_stack([q, np.full(200, 7.0)]), 4)) == {0, 1, 2, 3}


def test_better_asks_for_size_and_for_evidence():
    before = np.zeros(5)
    assert better(before, np.full(5, -0.03), 0.02, 2.0)
    assert not better(before, np.full(5, -0.01), 0.02)
    uneven = np.array([-0.5, 0.1, 0.1, 0.1, 0.05])
    assert better(before, uneven, 0.02)
    assert not better(before, uneven, 0.02, 2.0)
    assert not better(before[:1], uneven[:1], 0.02)


def test_a_plain_log_gets_no_groups_and_no_free_signs(arm):
    found = armdyn.identify(arm, log_of(arm))
    assert not any("all joints" in step for step in found.steps)
    assert not any("less error so" in text or "least squares without" in text for text in found.warnings)
    assert found.trusted


def test_asymmetric_friction_at_all_joints_is_found(arm):
    found = armdyn.identify(arm, log_of(arm, lambda q, qd: 0.2 * np.abs(qd)))
    assert "asymmetric viscous friction at all joints" in found.steps
    got = [found.extras[f"fva{k}"] for k in (1, 2, 3)]
    np.testing.assert_allclose(got, 0.2, atol=0.03)


def test_what_drives_a_joint_along_its_velocity_is_said_and_predicted(arm):
    """A torque along the velocity: no friction, but better than a model that cannot have it."""
    drive = lambda q, qd: np.array([0.0, -1.0, 0.0]) * qd  # noqa: E731
    found = armdyn.identify(arm, log_of(arm, drive))
    assert found.extras["fv2"] < -0.4
    assert any("fv2 -0." in text and "less error so" in text for text in found.warnings)
    assert "fv2" in found.left_behind
    fixed = armdyn.identify(arm, log_of(arm, drive), friction="coulomb")  # a model that was asked for keeps its signs
    assert fixed.extras["fv2"] == 0
    assert found.error < 0.8 * fixed.error


def test_least_squares_that_predicts_better_is_told(arm):
    links = tuple(Link.from_natural(tuple(x * exact(2) for x in link.natural)) for link in arm.links)
    wrong = replace(arm, given=replace(arm.given, links=links))
    log = log_of(arm)
    found = armdyn.identify(wrong, log, friction="coulomb", regularization=1e5)
    assert any("least squares without prior" in text for text in found.warnings)
    assert not any("least squares" in text for text in armdyn.identify(arm, log, friction="coulomb").warnings)


def test_narrow_signs_are_judged(arm):
    """Friction that changes over a wide range of speeds keeps the wide sign; where it jumps the sign is narrow."""
    t, q, qd, tau = recorded(arm, 20.0)
    top = np.abs(qd).max(axis=0)
    wide = tau - 0.8 * np.sign(qd) + 0.8 * np.tanh(qd / (0.02 * top))
    models = [armdyn.identify(arm, Log.of(t, q, torques, qd)).model for torques in (wide, tau)]
    np.testing.assert_allclose(models[0].width, 0.02 * top, rtol=0.05)
    assert (models[1].width < 0.7 * models[0].width).any()


def doubled(arm):
    links = tuple(Link.from_natural(tuple(x * exact(2) for x in link.natural)) for link in arm.links)
    return replace(arm, given=replace(arm.given, links=links))


def test_less_of_a_wrong_prior_where_least_squares_predicts_better(arm, monkeypatch):
    """A weight of the prior that was chosen too large is lowered; one that was given is kept, with a warning."""
    from armdyn.identification import fit

    log, ones = log_of(arm), np.ones(len(fit.REGULARIZATIONS))
    monkeypatch.setattr(fit, "choose_regularization", lambda *_: (1e5, ones, ones))
    found = armdyn.identify(doubled(arm), log, friction="coulomb")
    assert found.regularization < 1e4
    assert found.left_out[0] < 1.02 * found.left_out[1]
    kept = armdyn.identify(doubled(arm), log, friction="coulomb", regularization=1e5)
    assert kept.regularization == 1e5
    assert kept.left_out[0] > 1.05 * kept.left_out[1]
    assert kept.left_out[1] == pytest.approx(found.left_out[1])
    assert "by plain least squares" in str(kept)


def test_columns_of_the_candidates_are_those_of_the_model(arm):
    from armdyn.identification.model import Model, filtered
    from armdyn.identification.processing import Processing, motions
    from armdyn.identification.selection import candidates

    how, model = Processing(8.0, 4.0), Model.of(arm)
    model = model.loaded(model.prior(arm))
    part = motions(log_of(arm, seconds=6.0), how)[0]
    every = [c for c in candidates(model, [part], how) if c.terms]
    assert {c.terms[0] for c in every} >= {"stribeck", "load", "spring"}
    for candidate in every:
        added = candidate.added_to(replace(model, terms={}))
        columns = filtered(added.extras(part.q, part.qd, part.qdd), part, how)
        np.testing.assert_allclose(candidate.columns, columns, atol=1e-12)

"""Logs that are bad in the ways of real ones: mended and said in `notes`, or said in words with a remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armdyn
from armdyn import Log
from armdyn.errors import InputError
from armdyn.identification.cleaning import held, jumps, repeated, unwrapped
from armdyn.identification.fit import one_sided
from armdyn.identification.model import Model, rows
from armdyn.identification.preflight import LogView, Reading, preflight
from armdyn.identification.processing import choose_processing, folded, motions, sampling_doubts
from armdyn.identification.threads import one_thread
from noisy_logs import RATE, recorded

SECOND = np.arange(6) == 1
LOG = Path(__file__).parent / "data" / "ur5_log.csv"


@pytest.fixture(scope="module")
def arm():
    return armdyn.load("ur5")


@pytest.fixture(scope="module")
def log():
    return Log.read(LOG)


class TestRows:
    """Rows and stamps: mended, and said."""

    def test_wrapped_positions(self):
        t, q, _, tau = recorded(armdyn.load("planar3"))
        q = 2.5 * q
        around = (q + np.pi) % (2 * np.pi) - np.pi
        mended = Log.of(t, around, tau)
        assert np.abs(np.diff(around, axis=0)).max() > 6
        np.testing.assert_allclose(np.diff(mended.array("q"), axis=0), np.diff(q, axis=0), atol=1e-9)
        assert "jump by 2 π: unwrapped" in mended.notes[0]
        np.testing.assert_array_equal(unwrapped(q, []), q)
        notes: list[str] = []
        np.testing.assert_allclose(
            np.diff(unwrapped(np.rad2deg(around), notes), axis=0), np.rad2deg(np.diff(q, axis=0))
        )
        assert "360 degrees" in notes[0]

    def test_one_encoder_held(self):
        t, q, _, tau = recorded(armdyn.load("planar3"))
        assert not held(q).any()
        q[800:860, 1] = q[800, 1]
        log = Log.of(t, q, tau)
        assert log.notes[0] == "59 rows with a frozen position while the arm moves: dropped, which leaves a gap"
        assert len(log.pieces) == 2

    def test_rows_lost_while_the_stamps_count_on(self):
        t, q, _, tau = recorded(armdyn.load("planar3"))
        assert not len(jumps(t, q, 1 / RATE))
        kept = np.delete(np.arange(len(t)), np.r_[500:560, 1200:1290])
        log = Log.of(t[: len(kept)], q[kept], tau[kept])
        assert "the positions jump at 2 rows (first: row 501)" in log.notes[0]
        assert [len(p) for p in log.pieces] == [500, 640, len(t) - 1290]

    @pytest.mark.parametrize("stale", [True, False])
    def test_rows_repeated_with_stamps_of_their_own(self, stale):
        """Values that came late (the stamps are right), or rows written twice (the stamps count on), as qd tells."""
        t, q, qd, tau = recorded(armdyn.load("planar3"))
        assert not repeated({"q": q, "tau": tau}).any()
        twice = np.arange(7, len(t), 13)
        order = np.arange(len(t))
        if stale:
            order[twice] -= 1
        else:
            order = np.sort(np.concatenate([order, twice]))
        log = Log.of(np.arange(len(order)) / RATE, q[order], tau[order], qd[order])
        assert "rows with all values of the previous row: dropped" in log.notes[0]
        assert not log.doubts
        own = log.pieces[0]
        right = np.stack([np.interp(own.t, t, x) for x in q.T], axis=1)
        assert np.abs(own.q - right)[5:-5].max() < 2e-3

    def test_positions_cannot_tell_a_clock_from_a_slower_one(self):
        t, q, _, tau = recorded(armdyn.load("planar3"))
        order = np.sort(np.concatenate([np.arange(len(t)), np.arange(7, len(t), 13)]))
        log = Log.of(np.arange(len(order)) / RATE, q[order], tau[order])
        assert log.duration == pytest.approx(len(order) / RATE, rel=1e-3)
        assert "7.7 % shorter" in log.doubts[0]

    def test_a_torque_that_was_never_logged(self):
        t, q, qd, tau = recorded(armdyn.load("planar3"))
        tau[:, 1] = np.nan
        log = Log.of(t, q, tau, np.full_like(qd, np.nan))
        assert "tau2 has no values: taken as not measured" in log.notes
        assert log.pieces[0].qd is None
        assert len(log) == len(t)
        with pytest.raises(InputError, match=r"tau1, tau2, tau3 in all"):
            Log.of(t, q, np.full_like(q, np.nan))

    def test_an_arm_at_rest(self, arm):
        rng = np.random.default_rng(0)
        q = np.ones((500, 6)) + 1e-5 * rng.normal(size=(500, 6))
        with pytest.raises(InputError, match="no position changes by more than"):
            armdyn.identify(arm, Log.of(np.arange(500) / 100, q, rng.normal(size=q.shape)))


class TestUnits:
    """Velocities and units of single columns."""

    def test_velocities_of_other_joints(self):
        t, q, qd, tau = recorded(armdyn.load("planar3"))
        assert Log.of(t, q, tau, qd).doubts == ()
        mixed = Log.of(t, q, tau, qd[:, [1, 0, 2]]).doubts[0]
        assert "the derivative of the position of joint 1 matches the velocity of joint 2" in mixed
        assert "The velocities are not used" in mixed
        assert "the velocity of joint 2 has the opposite sign" in Log.of(t, q, tau, qd * [1, -1, 1]).doubts[0]
        assert "or the time stamps" in Log.of(t / 2, q, tau, qd).doubts[0]
        assert "change 1.1 times as fast as the logged velocities" in Log.of(t / 1.1, q, tau, qd).doubts[0]
        assert "whose clock would run slow" in Log.of(t * 1.1, q, tau, qd).doubts[0]
        noisy = qd + 0.02 * qd.std(axis=0) * np.random.default_rng(0).normal(size=qd.shape)
        late = np.stack([np.interp(t - 0.03, t, x) for x in noisy.T], axis=1)  # a filter of the drive
        assert Log.of(t, q, tau, late).doubts == ()
        assert Log.of(t, q, tau, 0 * qd).doubts == ()

    def test_one_joint_in_degrees(self):
        arm = armdyn.load("planar3")
        t, q, _, tau = recorded(arm)
        with pytest.raises(InputError, match=r"joint 2 ranges over .* only one in degrees\? Convert that column"):
            armdyn.identify(arm, Log.of(t, q * [1, 57.3, 1] / 2, tau))


WRONG = {
    "the zero of joint 2 is off by -90 degrees": {"zero": np.where(SECOND, -np.pi / 2, 0.0)},
    "the torque of joint 2 is": {"torque_factor": np.where(SECOND, 1000.0, 1.0)},
    "the torques have different scales per joint": {"torque_factor": 1 / np.array([50.0, 160, 100, 50, 300, 80])},
    "positions are in turns": {"factor": np.full(6, 0.5 / np.pi)},
    "the positions of joints 2 and 3 are exchanged": {"order": np.array([0, 2, 1, 3, 4, 5])},
    "in another order (tau1, tau3, tau2, tau4, tau5, tau6)": {"torque_order": np.array([0, 2, 1, 3, 4, 5])},
}


class TestPreflight:
    """The arm as given says what is wrong, and fixes it on request."""

    def found(self, arm, log):
        with one_thread():
            return preflight(arm, motions(log, choose_processing(log, 60, None, None)))

    @pytest.mark.parametrize("words", WRONG)
    def test_a_wrong_reading_is_noticed(self, arm, log, words):
        wrong = Reading.of(6, "made wrong", "", **WRONG[words]).apply(log)
        findings = self.found(arm, wrong)
        assert len(findings) == 1
        assert words in str(findings[0])
        assert self.found(arm, findings[0].reading.apply(wrong)) == []

    @pytest.mark.parametrize("gravity", [(0.0, 0.0, 9.81), (0.0, 6.937, -6.937)])
    def test_an_arm_mounted_otherwise(self, arm, log, gravity):
        other = arm.with_gravity(gravity)
        finding = self.found(other, log)[0]
        assert "the arm is mounted in another orientation" in str(finding)
        np.testing.assert_allclose(finding.reading.gravity, (0, 0, -9.81), atol=1e-9)

    def test_torques_without_gravity(self, arm, log):
        pieces = [replace(p, tau=p.tau - np.asarray(arm.gravity_load(p.q))) for p in log.pieces]
        without = replace(log, pieces=tuple(pieces))
        assert "do not include the gravity load" in str(self.found(arm, without)[0])

    def test_gravity_is_fixed_on_request(self):
        arm = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
        t, q, qd, tau = recorded(arm)
        without = Log.of(t, q, tau - np.asarray(arm.gravity_load(q)), qd)
        fixed = armdyn.identify(arm, without, friction="coulomb", folds=2, fix=True)
        assert any("changed: the torques do not include the gravity load" in note for note in fixed.notes)
        assert fixed.arm.gravity == (0, 0, 0)
        assert fixed.error < 0.05

    def test_weight_by_differences_is_the_gravity_load(self, arm):
        q = np.random.default_rng(0).normal(size=(20, 6))
        view = LogView(arm, q, 0 * q, 0 * q, q, 0.01, np.array([0.0, 0.0, -9.81]))
        load = np.asarray(arm.gravity_load(q))
        np.testing.assert_allclose(view.weight @ [0, 0, -9.81], load, atol=1e-6)
        np.testing.assert_allclose(view.own, load, atol=1e-9)

    @pytest.mark.parametrize("late", [20, -20])
    def test_one_torque_late(self, late):
        arm = armdyn.load("planar3").with_gravity((0.0, -9.81, 0.0))
        t, q, qd, tau = recorded(arm, 20.0)
        assert self.found(arm, Log.of(t, q, tau, qd)) == []
        tau[:, 1] = np.roll(tau[:, 1], late)
        inner = slice(50, -50)
        findings = self.found(arm, Log.of(t[inner], q[inner], tau[inner], qd[inner]))
        assert f"the torque of joint 2 is about 100 ms {'late' if late > 0 else 'early'}" in str(findings[0])
        assert findings[0].reading.late_joint == 1


def test_a_motor_of_two_joints_is_found():
    arm = armdyn.load("planar3")
    row = np.array([0.0, 1.0, 1.0])

    def motor(qd, qdd):
        return np.sign(qd @ row)[:, None] * row * 1.5 + (qd @ row)[:, None] * row * 0.5

    log, test = (Log.of(t, q, tau, qd) for t, q, qd, tau in (recorded(arm, seed=s, drive=motor) for s in (0, 1)))
    found = armdyn.identify(arm, log, validate=test)
    assert "a motor that turns joints 2 and 3" in found.steps
    assert found.left_behind["fcm3"] == pytest.approx(1.5, abs=0.1)
    assert found.left_behind["fvm3"] == pytest.approx(0.5, abs=0.1)
    assert "a coupled wrist" in found.warnings[0]
    assert "not in the arm or its files: Iam3" in str(found)
    plain = armdyn.identify(arm, log, validate=test, friction="coulomb")
    assert found.validation.error < 0.3 * plain.validation.error


def test_clipped_torques_count_where_the_model_predicts_less():
    """Friction at speed lies beyond the range: what is left alone tells less of it than the end of the range does."""
    arm = armdyn.load("planar3")
    t, q, qd, tau = recorded(arm, 12.0, drive=lambda qd, _: np.where([0, 0, 1], 3 * np.sign(qd) * np.abs(qd) ** 0.2, 0))
    cut = tau.copy()
    cut[:, 2] = np.clip(tau[:, 2], -2.5, 2.5)
    log = Log.of(t, q, cut, qd)
    how = choose_processing(log, 30, None, None)
    parts = motions(log, how)
    model = Model.of(arm).tuned(qd, None)
    left_out = rows(model, parts, how)
    settled = one_sided(model, arm, parts, how, left_out)
    counted = rows(model, settled, how).kept
    assert (counted >= left_out.kept).all()
    assert (counted[:, :2] == left_out.kept[:, :2]).all()
    fit = armdyn.identify(arm, log, friction="coulomb")
    assert any("is saturated" in text for text in fit.warnings)
    fast = np.abs(qd[:, 2]) > 1
    predicted = fit.predict(q, qd, np.gradient(qd, t, axis=0))[fast, 2]
    assert np.mean(np.abs(predicted) > 2.3) > 0.9


def test_torques_folded_down_by_sampling(arm):
    t, q, qd, tau = recorded(arm, 20.0)
    how = choose_processing(Log.of(t, q, tau, qd), 60, None, None)
    assert sampling_doubts(Log.of(t, q, tau, qd), how) == []
    vibrating = tau + 0.2 * tau.std(axis=0) * np.sin(2 * np.pi * np.cumsum(60 + 25 * np.sin(1.7 * t)) / RATE)[:, None]
    assert sampling_doubts(Log.of(t, q, vibrating, qd), how) == []
    thinned = Log.of(t[::8], q[::8], vibrating[::8], qd[::8])
    assert folded(thinned, how) > 0.05
    assert "without an anti-aliasing filter" in sampling_doubts(thinned, how)[0]
    coarse = replace(how, bandwidth=5.0)
    assert "5 samples per period" in sampling_doubts(thinned, coarse)[0]


def test_something_touches_the_arm():
    arm = armdyn.load("planar3")
    t, q, qd, tau = recorded(arm)
    assert not any("touch" in text for text in armdyn.identify(arm, Log.of(t, q, tau, qd)).warnings)
    tau[1000:1120] += 3 * np.hanning(120)[:, None]
    said = [text for text in armdyn.identify(arm, Log.of(t, q, tau, qd)).warnings if "touch" in text]
    assert len(said) == 1
    assert said[0].startswith("from 5")


def test_smallest_residuals_are_no_contact():
    """Where friction reverses, a fit to 0.15 % leaves nine times its typical residual: 0.7 % of a joint's torque."""
    t, q, _, tau = recorded(armdyn.load("planar3"))
    assert not any("touch" in text for text in armdyn.identify("planar3", Log.of(t, q, tau)).warnings)


@pytest.mark.parametrize(("first", "last"), [(1780, 1900), (100, 300)])
def test_a_short_piece_beside_a_gap_is_no_contact(first, last):
    """Half a second between a gap and an end of the log is mostly filter transients: left out, and said."""
    arm, options = armdyn.load("puma560"), {"friction": "coulomb", "folds": 2}
    t, q, qd, tau = recorded(arm)
    kept = np.r_[:first, last : len(t)]
    whole = armdyn.identify(arm, Log.of(t, q, tau, qd), **options)
    torn = armdyn.identify(arm, Log.of(t[kept], q[kept], tau[kept], qd[kept]), **options)
    assert not any("touch" in text for text in torn.warnings)
    assert torn.error < 1.1 * whole.error  # with the transients: 2.3 and 1.7 times
    assert any("1 piece between gaps (0.5 s, at " in note for note in torn.notes)
    assert not any("between gaps" in note for note in whole.notes)


def test_a_log_of_short_pieces_alone_is_kept(arm):
    t, q, qd, tau = recorded(arm)
    kept = np.arange(len(t)) % 120 < 100
    found = armdyn.identify(arm, Log.of(t[kept], q[kept], tau[kept], qd[kept]), friction="coulomb", folds=2)
    assert not any("between gaps" in note for note in found.notes)
    assert found.training.t[-1] > 9

"""The clock of a log: the times at which its rows were taken, told by the smoothness of its positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import armdyn
from armdyn import Log
from armdyn.errors import InputError
from armdyn.identification.clock import choose_clock, roughness
from bench_stamps import error, recorded
from noisy_logs import recorded as clean_log

# fault, and the clock that is right
RIGHT = {"uneven": "stamps", "buffered": "stamps", "jittering": "even clock", "late": "even clock"}


@pytest.mark.parametrize("fault", RIGHT)
@pytest.mark.parametrize("seed", [3001, 3002, 3003])
def test_the_positions_tell_which_clock_is_right(fault, seed):
    case = recorded(seed, fault, 4.0, "scara")
    log = case.log()
    assert log.clock == RIGHT[fault]
    if fault in ("uneven", "buffered"):
        assert len(log.pieces) == 1  # a step of nine periods is no lost time
        assert not any("dropped" in note for note in log.notes)
    else:
        assert any("times smoother" in note for note in log.notes)


def test_an_uneven_log_with_buffers_is_fitted_by_its_stamps():
    """Rows at true but uneven times, as a published log of a Panda has them: an even clock loses by far."""
    case = recorded(3001, "buffered", 8.0, "scara")
    right, wrong = (error(case, case.log(clock), parallel=4.0, cutoff=8.0) for clock in ("stamps", "even"))
    assert right < 0.6 * wrong
    assert error(case, case.log(), parallel=4.0, cutoff=8.0) == right


def test_a_buffer_written_late_is_no_gap():
    t = np.arange(4000) / 1000
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    stamps = t.copy()
    for first in (1000, 2500):
        stamps[first : first + 12] = np.linspace(stamps[first] + 0.0095, stamps[first + 12] - 1e-5, 12)
    log = Log.of(stamps + 2e-4 * np.random.default_rng(0).uniform(size=len(t)), q, q)
    assert log.clock == "even clock"
    assert len(log.pieces) == 1
    np.testing.assert_allclose(log.array("q"), q, atol=1e-3)


def test_rows_written_twice_are_spread_or_moved_up_as_the_velocities_say():
    t = np.arange(3000) / 500
    q, qd = np.sin(t)[:, None], np.cos(t)[:, None]
    rows = np.sort(np.concatenate([np.arange(3000), np.arange(11, 3000, 20)]))
    stamps = np.arange(len(rows)) / 500
    up = Log.of(stamps, q[rows], q[rows], qd[rows])
    assert "moved up" in up.clock
    assert up.duration == pytest.approx(6.0, rel=1e-3)
    spread = Log.of(stamps * len(t) / len(rows), q[rows], q[rows], qd[rows])
    assert "spread" in spread.clock
    assert spread.duration == pytest.approx(6.0, rel=1e-3)
    assert not up.doubts


def test_a_clock_can_be_demanded():
    case = recorded(3001, "jittering", 4.0, "scara")
    assert case.log("stamps").clock == "stamps"
    assert case.log("even").clock == "even clock"
    with pytest.raises(InputError, match="clock"):
        case.log("wrong")


def test_time_that_was_lost_stays_lost():
    t = np.arange(5000) / 1000
    kept = np.delete(np.arange(5000), np.r_[2000:2300])
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    stamps = t + np.random.default_rng(1).normal(size=len(t)) * 4e-4
    log = Log.of(np.sort(stamps)[kept], q[kept], q[kept])
    assert [len(piece) for piece in log.pieces] == [2000, 2700]
    assert log.pieces[1].t[0] - log.pieces[0].t[-1] == pytest.approx(0.301, abs=2e-4)


def test_roughness_is_that_of_the_right_times():
    rng = np.random.default_rng(2)
    t = np.cumsum(rng.uniform(0.5, 1.5, 2000)) / 1000
    q = np.sin(5 * t)[:, None] + 1e-5 * rng.normal(size=(2000, 1))
    assert roughness(t, q) == pytest.approx(np.log(1e-5), abs=0.15)
    assert roughness(np.arange(2000) / 1000, q) > np.log(1e-5) + 2
    number = np.arange(2000)
    assert choose_clock(t, number, q, None, np.zeros(2000, dtype=bool)).name == "stamps"


@pytest.mark.parametrize("seed", [3010, 3012])
def test_by_default_about_as_good_as_the_best_in_hindsight(seed):
    case = recorded(seed, "", 5.0, "scara")
    best = min(error(case, case.log(k), parallel=c, cutoff=2 * c) for k in ("stamps", "even") for c in (2.0, 5.0, 12.0))
    assert error(case, case.log()) < 1.3 * best


def test_rows_stamped_in_a_burst_are_no_piece():
    """Twenty rows within a millisecond become one sample of an even grid, which has no derivatives."""
    t = np.arange(600) / 200
    q, tau = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1), np.ones((600, 2))
    stamps = t.copy()
    stamps[300:320] = t[300] + 0.2 + np.arange(20) * 2e-5
    stamps[320:] += 0.5
    log = Log.of(stamps, q, tau, clock="stamps")
    assert len(log.pieces) == 2
    assert min(len(piece) for piece in log.pieces) >= 16
    assert any("20 rows in pieces shorter" in note for note in log.notes)


def wandering(seconds=20.0, noise=0.0, wrong=False):
    """A log whose stamps wander by 6 ms as slowly as the arm moves; `wrong`: the sampling did so, not the stamps."""
    arm = armdyn.load("planar3")
    t, q, _, tau = clean_log(arm, seconds)
    wander = 6e-3 * np.sin(2 * np.pi * 0.7 * t)
    if wrong:
        q, tau = (CubicSpline(t, signal)(t + wander) for signal in (q, tau))
    q = q + 3e-4 * np.random.default_rng(8).normal(size=q.shape)
    tau = tau + noise * tau.std(axis=0) * np.random.default_rng(7).normal(size=tau.shape)
    return arm, Log.of(t + wander, q, tau), Log.of(t + wander, q, tau, clock="stamps" if wrong else "even")


@pytest.mark.parametrize("wrong", [False, True])
def test_torques_tell_the_clock_where_positions_cannot(wrong):
    arm, log, right = wandering(wrong=wrong)
    assert {log.clock, log.rival.clock} == {"stamps", "even clock"}
    options = {"friction": "coulomb", "folds": 2}
    found, best = armdyn.identify(arm, log, **options), armdyn.identify(arm, right, **options)
    np.testing.assert_allclose(found.values, best.values)
    wrong_one = log if log.clock != right.clock else log.rival
    assert found.error < 0.9 * armdyn.identify(arm, replace(wrong_one, rival=None), **options).error
    assert any("the positions do not tell which is right, the torques do" in note for note in found.notes)
    assert found.trusted
    assert found.validate(log).error == pytest.approx(best.error, rel=1e-6)
    assert log.part(0, 0.5).rival.duration == pytest.approx(10, abs=0.1)
    assert armdyn.identify(arm, log.part(0, 0.8), **options).error == pytest.approx(best.error, rel=0.2)


def test_a_clock_that_nothing_tells_is_a_doubt():
    """Torques of noise alone: the accelerations over the two clocks differ, and nothing says which are right."""
    arm, log, _ = wandering(noise=20.0)
    found = armdyn.identify(arm, log, friction="coulomb", folds=2)
    assert any("nor do the torques" in text for text in found.warnings)


def test_a_regular_log_has_no_rival():
    _, log, _ = wandering()
    assert Log.of(log.array("t"), log.array("q"), log.array("tau")).rival is None


def test_a_wander_that_short_windows_cannot_see_is_seen_in_longer_ones():
    t = np.arange(20000) / 2000
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1) + 1e-6 * np.random.default_rng(3).normal(size=(20000, 2))
    stamps = t + 5e-4 * np.sin(2 * np.pi * 12 * t)
    assert roughness(stamps, q, window=41) == pytest.approx(roughness(t, q, window=41), abs=0.1)
    assert Log.of(stamps, q, q).clock == "even clock"


def test_coarsely_rounded_stamps_are_of_even_rows():
    t = np.arange(2000) / 156
    q = np.stack([np.sin(3 * t), np.cos(2 * t)], axis=1)
    log = Log.of(np.round(t / 0.021) * 0.021, q, q)
    assert log.clock == "even clock"
    assert log.rate == pytest.approx(156, rel=1e-3)
    np.testing.assert_allclose(log.array("q"), q[: len(log)], atol=2e-2)

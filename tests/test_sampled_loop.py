"""Sampled control loops: when they are unstable, gains that hold an arm, and steps that divide the control period."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.linalg import expm
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import InputError
from armdyn.simulation import PD, Actuators, Digital, PDGravity, holding, simulate
from armdyn.simulation.sampled_loop import SampledLoop, Timing, _exponential

MASS = """
name = "cart"
convention = "modified"
gravity = [0.0, 0.0, 0.0]
[[joint]]
name = "slide"
kind = "prismatic"
b = 0.0
beta = 0.0
d = 0.0
theta = 0.0
link = { mass = 2.0, com = [0, 0, 0], inertia = [0, 0, 0, 0, 0, 0] }
"""
PERIODS = (1e-3, 2e-3, 4e-3, 5e-3, 1e-2)
IDEAL = {"friction": False, "limits": False, "saturate": False}


@pytest.fixture(scope="module")
def cart(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "cart.toml"
    path.write_text(MASS)
    return armdyn.load(path)


def damped(gain: float) -> SampledLoop:
    """A mass of 1 kg with a velocity feedback."""
    K = np.array([[0.0, -gain]])
    return SampledLoop(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]]), K, K)


@pytest.mark.parametrize(("delay", "edge"), [(0.0, 2.0), (0.5, 2.0), (1.0, 1.0), (2.0, (np.sqrt(5) - 1) / 2)])
def test_the_edges_of_sampled_damping_are_those_of_the_difference_equation(delay, edge):
    """V⁺ = v - g (1 - f) v - g f v⁻, with a delay of f periods; the roots are on the unit circle at these gains."""
    timing = Timing(0.01, 0.01 * delay)
    assert damped(0.98 * edge / 0.01).growth(timing) == 0
    assert damped(1.1 * edge / 0.01).growth(timing) > 0


def test_a_loop_that_is_unstable_with_continuous_control_too_is_no_fault_of_the_period():
    assert damped(-50.0).growth(Timing(1e-4)) == 0


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.013])
def test_the_matrix_maps_what_the_simulation_does(cart, differences, delay):
    """The same numbers as a simulated run, period by period, with measured or differenced velocities."""
    T, kp, kd = 0.01, 300.0, 20.0
    K = np.array([[-kp, -kd]])
    loop = SampledLoop(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [0.5]]), K, K)
    matrix = loop.matrix(Timing(T, delay, differences))
    actuators = Actuators(period=T, delay=delay, encoder=1e-13 if differences else None)
    run = simulate(cart, [0.1], torque=PD([0.0], kp, kd), times=T * np.arange(12), actuators=actuators, **IDEAL)
    periods = int(np.ceil(delay / T)) + 1
    first = run.tau[:, 0]  # at the beginning of a period; with a broken delay the torque changes within it
    asked = -kp * run.q[:, 0] - kd * (np.diff(run.q[:, 0], prepend=run.q[0, 0]) / T if differences else run.qd[:, 0])
    for k in range(periods, 11):
        earlier = [asked[k - 1 - j] for j in range(len(matrix) - 3)]
        z = np.concatenate([[run.q[k, 0], run.qd[k, 0], run.q[k - 1, 0]], earlier])
        np.testing.assert_allclose((matrix @ z)[:2], [run.q[k + 1, 0], run.qd[k + 1, 0]], rtol=0, atol=1e-11)
    assert np.ptp(first) > 0


@pytest.mark.parametrize(
    ("name", "period"), [*(("planar3", period) for period in PERIODS), ("panda_hand", 1e-3), ("panda_hand", 1e-2)]
)
def test_holding_holds(name, period):
    arm = armdyn.load(name)
    away = np.clip(arm.rest + 0.01, *np.array(arm.limits, float).T)
    run = simulate(arm, away, torque=holding(arm, period=period), duration=0.4, step="auto",
                   actuators=Actuators(period=period), friction=False)  # fmt: skip
    assert run.status == "finished"
    decay = np.exp(-20 * 0.4) * (1 + 20 * 0.4)  # critically damped at 20 rad/s
    assert np.abs(run.q[-1] - arm.rest).max() < 1.6 * decay * 0.01


def spectral_radius(arm, law, period):
    """Of one control period about the posture at rest: H δq̈ + ∂g/∂q δq = δτ, with held torques of inverse dynamics."""
    q, n = arm.rest, arm.n
    H = arm.kernel("inertia_matrix", backend="numpy")(q)
    load, h = arm.kernel("gravity_load", backend="numpy"), 1e-6
    G = np.stack([(load(q + h * e) - load(q - h * e)) / (2 * h) for e in np.eye(n)], axis=1)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(H, G), np.zeros((n, n))]])
    B = np.vstack([np.zeros((n, n)), np.linalg.inv(H)])
    K = np.hstack([G - law.kp * H, -law.kd * H])
    held = expm(period * np.block([[A, B], [np.zeros((n, 3 * n))]]))
    return np.abs(np.linalg.eigvals(held[: 2 * n, : 2 * n] + held[: 2 * n, 2 * n :] @ K)).max()


@pytest.mark.parametrize("name", armdyn.catalogue())
def test_every_arm_of_the_catalogue_is_held_at_every_period_or_refused_with_the_reason(name):
    arm = armdyn.load(name)
    for period in PERIODS:
        if name == "baxter":  # its arms, stretched out at rest, are too heavy for its shoulders
            with pytest.raises(InputError, match=r"motor of right_s1 cannot hold baxter there: gravity needs 5\d"):
                holding(arm, period=period)
            continue
        law = holding(arm, period=period)
        assert spectral_radius(arm, law, period) < np.exp(-5 * period)  # errors fall by e in 0.2 s, or sooner


def test_holding_slows_down_for_delays_and_refuses_what_it_cannot(cart):
    arm = armdyn.load("planar3")
    quick, slow = holding(arm, period=1e-3), holding(arm, period=5e-3, delay=0.03, encoder=True)
    assert quick.kd == 40
    assert slow.kd < 30
    run = simulate(arm, arm.rest + 0.01, torque=slow, duration=0.8,
                   actuators=Actuators(period=5e-3, delay=0.03, encoder=1e-6), friction=False)  # fmt: skip
    assert run.status == "finished"
    assert np.abs(run.q[-1] - arm.rest).max() < 1e-3
    with pytest.raises(InputError, match=r"no gains hold planar3 with a control period of 0\.5 s and a delay of 2 s"):
        holding(arm, [0.5, 0.2, 0.1], period=0.5, delay=2.0)
    with pytest.raises(InputError, match="motor of right_s1 cannot hold baxter there: gravity needs 56"):
        holding(armdyn.load("baxter"))
    with pytest.raises(InputError, match="one posture of 3 finite numbers"):
        holding(arm, [0.0, np.nan, 0.0])


def test_gains_that_are_too_high_for_the_period_are_called_that():
    """Users' gains; the period and the gain that the message gives do."""
    arm = armdyn.load("planar3")
    H = np.diag(arm.inertia_matrix(arm.rest))

    def run(period, factor=1.0, **options):
        torque = PDGravity(arm.rest, factor * 400 * H, factor * 40 * H)
        return simulate(arm, arm.rest + 0.01, torque=torque, duration=0.5, step="auto",
                        actuators=Actuators(period=period, **options), **IDEAL)  # fmt: skip

    wrong = run(4e-3)
    assert wrong.status == "unstable loop"
    assert "from t = 0 s on: with a control period of 0.004 s it multiplies deviations by 2.8" in wrong.message
    period = float(re.search(r"period of ([\d.e-]+) s would do", wrong.message)[1])
    factor = float(re.search(r"gains multiplied by ([\d.e-]+) would do", wrong.message)[1])
    for cured in (run(period), run(4e-3, factor)):
        assert cured.status == "finished"
        assert np.abs(cured.q - arm.rest).max() < 0.03
    assert run(period, delay=period).status == "unstable loop"
    batch = simulate(arm, np.tile(arm.rest + 0.01, (3, 1)), torque=PDGravity(arm.rest, 400 * H, 40 * H), duration=0.2,
                     actuators=Actuators(period=4e-3), **IDEAL)  # fmt: skip
    assert batch.statuses.tolist() == ["unstable loop"] * 3


def test_control_laws_in_the_loop_are_judged_too():
    arm = armdyn.load("planar3")
    for gain, status in ((40.0, "finished"), (900.0, "unstable loop")):
        law = armdyn.controller(arm, "computed_torque", kp=400.0, kd=gain)
        run = simulate(arm, arm.rest + 0.01, torque=Digital(law, arm.rest), duration=0.2, step="auto",
                       actuators=Actuators(period=4e-3), **IDEAL)  # fmt: skip
        assert run.status == status


def test_a_rate_limit_that_keeps_a_joint_swinging_is_called_that(cart):
    torque = PD([0.0], 400.0, 10.0)
    for rate, status in ((1000.0, "unstable loop"), (3000.0, "finished"), (None, "finished")):
        motors = Actuators(period=5e-3, rate=rate)
        run = simulate(cart, [0.3], torque=torque, duration=2.0, step=5e-3, actuators=motors, **IDEAL)
        assert run.status == status
        assert ("its torque rate limit of 1000 per second is met in" in run.message) == (status == "unstable loop")


@pytest.mark.parametrize(
    ("period", "delay", "step"),
    [(5e-4, 0.0, 5e-4), (2e-3, 0.0, 1e-3), (1.5e-3, 0.0, 7.5e-4), (4e-3, 2.5e-3, 5e-4), (1 / 300, 0.0, 1 / 1200)],
)
def test_the_automatic_step_divides_the_control_period(period, delay, step):
    assert Actuators(period=period, delay=delay).longest_step(1e-3) == pytest.approx(step, rel=1e-12)


def test_runs_with_the_automatic_step_call_the_controller_on_time(cart):
    calls = []

    def controller(t, q, qd):
        calls.append(t)
        return [1.0]

    run = simulate(cart, [0.0], torque=controller, duration=0.0101, step="auto", actuators=Actuators(period=5e-4))
    assert run.status == "finished"
    assert calls == pytest.approx(5e-4 * np.arange(21), abs=1e-12)
    assert run.t[-1] == 0.0101
    with pytest.raises(InputError, match="whole numbers of no step above"):
        simulate(cart, [0.0], duration=0.1, step="auto", actuators=Actuators(period=1e-3, delay=1e-3 / 7))


def test_the_tutorials_command_holds_a_panda():
    words = ["simulate", "panda", "--hold", "--step", "auto", "--control-period"]
    for period in ("0.002", "0.0005"):
        done = CliRunner().invoke(app, [*words, period, "--duration", "0.1", "--json"])
        assert done.exit_code == 0, done.output
        assert '"status": "finished"' in done.stdout
    assert CliRunner().invoke(app, ["simulate", "baxter", "--hold"]).exit_code != 0


@pytest.mark.parametrize("size", [1e-6, 0.3, 20.0, 3e3])
def test_the_matrix_exponential_is_that_of_scipy(rng, size):
    A = rng.normal(size=(9, 9))
    A = size * (A - 6 * np.eye(9))  # stable: nothing overflows
    wanted = expm(A)
    np.testing.assert_allclose(_exponential(A), wanted, rtol=0, atol=1e-13 * max(np.abs(wanted).max(), 1e-200))
    assert np.isnan(_exponential(np.array([[np.inf]]))).all()

"""Steps that are too long are called that; gains, motors, sensors and stops as they are; defaults that run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.chain.joint import Limit
from armdyn.cli import app
from armdyn.errors import InputError
from armdyn.options import FIXED
from armdyn.programs.stepping import ARK4, RK4, RK5, SCHEMES
from armdyn.simulation import PD, Actuators, ComputedTorque, Drive, PDGravity, TorqueLaw, quintic, simulate
from armdyn.simulation.judge import Linear, growth

Q0 = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 2.0, 0.8])

DROP = """
name = "drop"
convention = "modified"
gravity = [0.0, 0.0, -9.81]
[[joint]]
name = "lift"
kind = "prismatic"
b = 0.0
beta = 0.0
d = 0.0
theta = 0.0
{friction}
limit = {{ lower = 0.0, upper = 1.0, effort = 40.0 }}
link = {{ mass = 1.5, com = [0, 0, 0], inertia = [0, 0, 0, 0, 0, 0] }}
"""


@pytest.fixture(scope="module")
def panda():
    return armdyn.load("panda")


@pytest.fixture(scope="module")
def drop(tmp_path_factory):
    def make(friction=""):
        path = tmp_path_factory.mktemp("arm") / "drop.toml"
        path.write_text(DROP.format(friction=friction))
        return armdyn.load(path)

    return make


# --- steps that are too long ---------------------------------------------------------------------


@pytest.mark.parametrize("tableau", [RK4, RK5, ARK4], ids=lambda tableau: tableau.name)
def test_coefficients_meet_the_order_conditions_in_fractions(tableau):
    """Butcher's conditions up to order four; both halves of ARK4 have the same nodes, weights and conditions."""
    implicit = [tableau.implicit] if tableau.implicit else []
    b = tableau.b
    for rows in (tableau.a, *implicit):
        a = [[*row, *[Fraction(0)] * (len(b) - len(row))] for row in rows]
        c = [sum(row) for row in a]
        assert max(abs(x - y) for x, y in zip(c, tableau.nodes, strict=True)) < 1e-20
        inner = [sum(x * y for x, y in zip(row, c, strict=True)) for row in a]
        weighted = {
            Fraction(1): [1] * len(b),
            Fraction(1, 2): c,
            Fraction(1, 3): [x**2 for x in c],
            Fraction(1, 6): inner,
            Fraction(1, 4): [x**3 for x in c],
            Fraction(1, 8): [x * y for x, y in zip(c, inner, strict=True)],
            Fraction(1, 12): [sum(x * y**2 for x, y in zip(row, c, strict=True)) for row in a],
            Fraction(1, 24): [sum(x * y for x, y in zip(row, inner, strict=True)) for row in a],
        }
        for value, terms in weighted.items():
            assert abs(sum(x * y for x, y in zip(b, terms, strict=True)) - value) < 1e-20, value
    if tableau is ARK4:
        assert [round(x, 18) for x in tableau.nodes] == [
            0,
            Fraction(1, 2),
            Fraction(83, 250),
            Fraction(31, 50),
            Fraction(17, 20),
            1,
        ]


@pytest.mark.parametrize(
    ("method", "edge"), [("RK4", 2.785), ("RK5", 3.307), ("AB4", 0.3), ("semi_implicit_euler", 2.0)]
)
def test_stability_limits_are_the_textbook_ones(method, edge):
    """y'' = -λ y' decays; a method is stable for h λ up to its interval on the negative real axis."""
    linear = Linear(np.array([[0.0, 1.0], [0.0, -1.0]]), np.zeros((2, 2)))
    assert growth(SCHEMES[method], linear, 0.98 * edge) == 0
    assert growth(SCHEMES[method], linear, 1.1 * edge) > 0


def test_motions_that_grow_by_themselves_are_no_fault_of_the_step():
    upright = Linear(np.array([[0.0, 1.0], [30.0, 0.0]]), np.zeros((2, 2)))
    for method in FIXED:
        assert growth(SCHEMES[method], upright, 1e-2) == 0


def test_the_implicit_method_damps_any_damping():
    stiff = np.array([[0.0, 1.0], [-1e8, -1e6]])
    assert growth(SCHEMES["ARK4"], Linear(stiff, stiff), 1e-2) == 0
    assert growth(SCHEMES["RK4"], Linear(stiff, stiff), 1e-2) > 0


def test_a_step_that_is_too_long_is_called_that(panda):
    torque = PDGravity(Q0 + 0.2, 100, 20)
    for saturate in (False, True):
        out = simulate(panda, Q0, torque=torque, duration=0.5, method="RK4", saturate=saturate)
        assert out.status == "unstable step"
        assert "0.0005 s would do" in out.message
        assert "ARK4" in out.message
    fine = simulate(panda, Q0, torque=torque, duration=0.5, method="RK4", step=5e-4)
    assert fine.status == "finished"
    auto = simulate(panda, Q0, torque=torque, duration=0.5)
    assert (auto.status, auto.method) == ("finished", "ARK4")
    assert np.abs(auto.q - fine.q[::2]).max() < 2e-4  # motors at their limits in the beginning: kinks
    step = simulate(panda, Q0, torque=torque, duration=0.5, method="RK4", step="auto")
    assert step.status == "finished"
    assert np.diff(step.t).max() <= 5.0001e-4


def test_a_function_that_is_too_stiff_is_found_out_when_it_ends_early(panda):
    out = simulate(
        panda, Q0, torque=lambda t, q, qd: panda.gravity_load(q) + 100 * (Q0 + 0.2 - q) - 20 * qd, duration=1
    )
    assert out.status == "unstable step"


def test_lanes_are_judged_apart(panda):
    torque = PDGravity(Q0 + 0.2, 100, 20)
    out = simulate(panda, np.tile(Q0, (3, 1)), torque=torque, duration=0.2, method="RK4")
    assert out.statuses.tolist() == ["unstable step"] * 3


def test_ark4_keeps_its_order_with_gains(panda):
    torque = PDGravity(Q0 + 0.1, 40.0, 4.0)

    def end(step, method="ARK4"):
        return simulate(panda, Q0, torque=torque, times=[0, 0.1], step=step, method=method, saturate=False).q[-1]

    truth = end(5e-5, "RK5")
    errors = [np.abs(end(step) - truth).max() for step in (2e-3, 1e-3, 5e-4)]
    assert np.log2(errors[1] / errors[2]) > 3.5
    assert errors[2] < 1e-9


# --- energy, and functions that give no numbers --------------------------------------------------


def test_steps_that_lose_energy_are_called_that():
    """A free arm keeps its energy; the check is sampled, and its estimate is compared with the true loss."""
    arm = armdyn.load("planar3")
    start, free = [0.3, 0.2, 0.1], {"friction": False, "limits": False}
    for speed, status in ((30.0, "finished"), (1000.0, "unstable step")):
        for torque in (None, lambda t, q, qd: [0.0, 0.0, 0.0]):
            out = simulate(arm, start, [speed, 0, -speed], torque=torque, duration=0.3, method="RK4", **free)
            lost = abs(out.energy[-1] / out.energy[0] - 1)
            assert (out.status, lost > 0.02) == (status, status == "unstable step")
    assert "is too long for RK4: its steps change the energy by" in out.message
    euler = simulate(arm, start, [10.0, 0, -10.0], duration=1.0, method="semi_implicit_euler", **free)
    said = float(re.search(r"semi_implicit_euler is of first order: .* by about ([\d.e+-]+) J", euler.message)[1])
    assert euler.status == "finished"
    assert 0.2 < said / abs(euler.energy[-1] - euler.energy[0]) < 5
    step = float(re.search(r"try ([\d.e-]+) s", out.message)[1])
    cured = simulate(arm, start, [1000.0, 0, -1000.0], times=[0, 0.3], step=step, method="RK4", **free)
    assert abs(cured.energy[-1] / cured.energy[0] - 1) < 0.02


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["a", "b", "c"], "what the torque function gave at t = 0 s must be numbers, got"),
        ([1j, 0, 0], "must be real numbers, got complex128"),
        (np.zeros((2, 3)), r"gave shape \(2, 3\), expected \(..., 3\), at t = 0 s"),
        (np.zeros(2), r"gave shape \(2,\), expected"),
        (1.0, r"gave shape \(\), expected"),
        (None, "gave None at t = 0 s"),
    ],
)
@pytest.mark.parametrize("actuators", [None, Actuators(period=1e-3)])
def test_torque_functions_that_give_something_else_are_refused(given, words, actuators):
    with pytest.raises(InputError, match=words):
        simulate(armdyn.load("planar3"), torque=lambda t, q, qd: given, duration=0.01, actuators=actuators)


@pytest.mark.parametrize("method", ["RK4", "AB4", "LSODA", "motors"])
def test_a_function_that_gives_no_number_is_named(method):
    arm = armdyn.load("planar3")

    def torque(t, q, qd):
        return [0.0, np.nan if t > 0.0204 else 0.1, 0.0]

    options = {"actuators": Actuators()} if method == "motors" else {"method": method}
    out = simulate(arm, torque=torque, duration=0.1, **options)
    assert out.status == "diverged"
    assert "the torque function gave nan for joint2 at t = 0.02" in out.message
    assert np.isfinite(out.tau).all()
    assert 0.015 < out.t[-1] < 0.0215
    if method != "LSODA":
        batch = simulate(arm, np.tile(arm.rest, (2, 1)), torque=lambda t, q, qd: np.array([[0] * 3, torque(t, q, qd)]),
                         duration=0.05, **options)  # fmt: skip
        assert batch.statuses.tolist() == ["finished", "diverged"]
        assert np.isfinite(batch.tau[0]).all()


def test_a_function_is_asked_no_more_than_its_steps_need():
    """The energy of a fast motion is examined with the torques that it gave; it may have a state of its own."""
    asked = []

    def torque(t, q, qd):
        asked.append(t)
        return 0 * qd

    out = simulate(armdyn.load("planar3"), [0.3, 0.2, 0.1], [100.0, 0, -100.0], torque=torque, times=[0, 0.02],
                   method="RK4", limits=False)  # fmt: skip
    assert out.status == "finished"
    assert len(asked) == 4 * 20 + 1  # the torque at the end is reported


def test_a_delayed_controller_that_gives_no_number_is_named():
    """Not the sampled loop is said to be at fault, though it cannot be told from numbers that are not there."""
    torque, late = (lambda t, q, qd: np.where(t > 0.0204, np.nan, 0.1) * np.ones(3)), Actuators(period=4e-3, delay=2e-3)
    out = simulate(armdyn.load("planar3"), torque=torque, duration=0.1, actuators=late)
    assert out.status == "diverged"
    assert "the torque function gave nan for joint1 at t = 0.024 s" in out.message
    assert np.isfinite(out.tau).all()


def test_the_fastest_lanes_are_those_whose_energy_is_examined():
    arm, speeds = armdyn.load("planar3"), np.ones(30)
    speeds[21] = 1000.0
    out = simulate(arm, np.tile([0.3, 0.2, 0.1], (30, 1)), np.outer(speeds, [1, 0, -1]), duration=0.05, method="RK4",
                   friction=False, limits=False)  # fmt: skip
    assert np.flatnonzero(out.statuses == "unstable step").tolist() == [21]


def test_a_function_is_not_blamed_for_states_that_have_diverged():
    """A step that is too long is called that, though the function gives NaN for NaN in the end."""
    out = simulate(armdyn.load("planar3"), qd0=[1.0, 0, 0], torque=lambda t, q, qd: -3e5 * qd, duration=0.5)
    assert out.status == "unstable step"
    assert "the torque function" not in out.message


def test_a_slow_first_order_run_has_no_unstable_step(panda):
    """From rest a first-order method is off by h / t, which is no fault of the step."""
    out = simulate(panda, duration=0.03, method="semi_implicit_euler", friction=False)
    assert out.status == "finished"
    assert "semi_implicit_euler is of first order: its steps change the energy by" in out.message


@pytest.mark.parametrize(
    "given",
    [{"duration": 10**5000}, {"duration": 1.0, "step": 10**400}, {"times": [0, 10**400]}, {"times": [0, 1e308]},
     {"times": [-1.5e308, 1.5e308]}],
)  # fmt: skip
def test_times_beyond_all_numbers_are_refused(given):
    with pytest.raises(InputError, match=r"finite|cannot be divided"):
        simulate(armdyn.load("planar3"), **given)


# --- motors and sensors --------------------------------------------------------------------------


def test_controllers_keep_to_the_motors_limits(panda):
    efforts = np.array([joint.limit.effort for joint in panda.joints])
    for method in ("ARK4", "RK4", "DOP853"):
        torque = PD(Q0 + 0.5, 300.0, 4.0)
        out = simulate(panda, Q0, torque=torque, duration=0.05, method=method, step=1e-4, limits=False)
        assert np.all(np.abs(out.tau) <= efforts)
        assert (np.abs(out.tau) == efforts).any()
        free = simulate(panda, Q0, torque=torque, duration=0.05, method=method, step=1e-4, saturate=False, limits=False)
        assert np.abs(free.tau).max() > efforts.max()
    given = simulate(panda, Q0, torque=200.0 * np.ones(7), duration=0.01)
    assert np.all(given.tau == 200)
    cut = simulate(panda, Q0, torque=200.0 * np.ones(7), duration=0.01, saturate=True)
    assert np.array_equal(cut.tau[0], np.minimum(200.0, efforts))
    function = simulate(panda, Q0, torque=lambda t, q, qd: 200.0 * np.ones(7), duration=0.01, saturate=True)
    assert np.array_equal(function.tau, cut.tau)


def test_saturation_is_the_same_in_every_method(panda):
    torque = PDGravity(Q0 + 0.5, 60.0, 6.0)
    times = [0.0, 0.05, 0.1]
    fine = simulate(panda, Q0, torque=torque, times=times, step=2e-5, method="RK5")
    for method, step in (("ARK4", 2e-4), ("RK4", 1e-4), ("LSODA", 1e-3)):
        out = simulate(panda, Q0, torque=torque, times=times, step=step, method=method)
        assert np.abs(out.q - fine.q).max() < 1e-5


def test_a_held_torque_is_held(drop):
    arm, seen = drop(), []

    def controller(t, q, qd):
        seen.append((t, float(q[0])))
        return [20.0 + 5 * np.sin(40 * t)]

    out = simulate(arm, [0.2], torque=controller, duration=0.1, actuators=Actuators(period=0.01, delay=0.005))
    assert [t for t, _ in seen] == pytest.approx(np.arange(0, 0.1, 0.01))
    jumps = np.flatnonzero(np.diff(out.tau[:, 0])) + 1
    assert out.t[jumps] == pytest.approx(np.arange(0.015, 0.1, 0.01))
    # between two jumps the motion is a parabola
    h, a = 1e-3, out.tau[:-1, 0] / 1.5 - 9.81
    assert np.abs(out.q[:-1, 0] + h * out.qd[:-1, 0] + h * h / 2 * a - out.q[1:, 0]).max() < 1e-14
    assert np.abs(out.qdd[:-1, 0] - a).max() < 1e-12


def test_encoders_count_and_motors_take_their_time(drop):
    arm, seen = drop(), []

    def controller(t, q, qd):
        seen.append((float(q[0]), float(qd[0])))
        return [200.0]

    out = simulate(arm, [0.21], torque=controller, duration=0.05, saturate=True, limits=False,
                   actuators=Actuators(encoder=0.02, rate=1000.0))  # fmt: skip
    counts = np.array(seen)[:, 0] / 0.02
    assert np.abs(counts - np.round(counts)).max() < 1e-9
    assert np.all(np.array(seen)[1:, 1] == pytest.approx(np.diff(np.array(seen)[:, 0]) / 1e-3))
    assert out.tau[0, 0] == 40.0  # the motor's limit
    slow = simulate(arm, [0.21], torque=lambda t, q, qd: [40.0 if t > 0 else 0.0], duration=0.05,
                    actuators=Actuators(rate=1000.0), limits=False)  # fmt: skip
    assert np.diff(slow.tau[:, 0]).max() == pytest.approx(1.0)


def test_held_controllers_serve_batches_and_compiled_laws(panda):
    torque = PDGravity(Q0 + 0.1, 60.0, [6, 6, 6, 6, 1, 1, 0.5])
    starts = np.array([Q0, Q0 + 0.05])
    batch = simulate(panda, starts, torque=torque, duration=0.05, actuators=Actuators(period=2e-3))
    one = simulate(panda, starts[1], torque=torque, duration=0.05, actuators=Actuators(period=2e-3))
    assert np.abs(batch.q[1] - one.q).max() < 1e-12
    plain = simulate(panda, starts[1], torque=torque, duration=0.05)
    assert 1e-9 < np.abs(plain.q - one.q).max() < 1e-2
    with pytest.raises(InputError, match="whole number of steps"):
        simulate(panda, Q0, torque=torque, duration=0.05, actuators=Actuators(period=1.5e-3))
    with pytest.raises(InputError, match="actuators= need one of RK4"):
        simulate(panda, Q0, torque=torque, duration=0.05, method="DOP853", actuators=Actuators(period=2e-3))


class Damper:
    """A controller of one's own: a law over scalars and its damping."""

    def __init__(self, gain):
        self.gain = gain

    def drive(self, chain):
        return Drive(0, lambda t: np.zeros((*t.shape, 0)), DamperLaw((self.gain,) * chain.n), controller=True)


@dataclass(frozen=True)
class DamperLaw:
    damping: tuple[float, ...]

    def __call__(self, chain, q, qd, u):
        return [-d * v for d, v in zip(self.damping, qd, strict=True)]


def test_a_controller_of_ones_own_plugs_in(drop):
    assert isinstance(Damper(30.0), TorqueLaw)
    out = simulate(drop(), [0.9], torque=Damper(30.0), duration=0.2, step=1e-4)
    w = 30.0 / 1.5
    expected = 0.9 - 9.81 / w * (out.t - (1 - np.exp(-w * out.t)) / w)
    assert np.abs(out.q[:, 0] - expected).max() < 1e-10


def test_computed_torque_is_clamped_too(panda):
    motion = quintic(Q0, Q0 + np.array([2, 0.5, 0, 0, 0, 0, 0]), 0.2)
    out = simulate(panda, Q0, torque=ComputedTorque(motion), duration=0.2, limits=False)
    assert np.all(np.abs(out.tau) <= [joint.limit.effort for joint in panda.joints])


# --- stops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("restitution", ["stop", 0.5])
@pytest.mark.parametrize("drive", [None, "function"])
def test_a_falling_joint_rebounds_and_rests_on_its_stop(drop, method, restitution, drive):
    if drive and SCHEMES[method].implicit:
        pytest.skip("implicit methods take no functions")
    torque = (lambda t, q, qd: [0.0]) if drive else None
    out = simulate(drop(), [0.8], torque=torque, duration=2.0, limits=restitution, method=method)
    assert out.status == "finished"
    assert out.q.min() >= 0
    peak = out.q[out.t > np.sqrt(2 * 0.8 / 9.81) + 1e-3].max()
    assert peak == pytest.approx(0.8 * (0 if restitution == "stop" else 0.25), abs=2e-3 if "euler" in method else 1e-6)
    assert np.all(out.q[-100:] == 0)
    assert np.all(out.qd[-100:] == 0)
    assert np.all(out.qdd[-100:] == 0)


def test_a_stop_lets_go_of_what_is_pulled_away(drop):
    out = simulate(drop("coulomb = 2.0"), [0.0], torque=[1.5 * 9.81 + 2.0 - 1e-9], duration=0.1, limits="stop")
    assert np.all(out.q == 0)
    out = simulate(drop("coulomb = 2.0"), [0.0], torque=[1.5 * 9.81 + 3.5], duration=0.1, limits="stop")
    assert out.q[-1, 0] == pytest.approx(1.0 * 0.1**2 / 2, rel=1e-9)


def test_impacts_go_through_the_whole_arm():
    """An impact takes no momentum from the joints that are not at their stops, and energy by its restitution."""
    arm = armdyn.load("puma560")
    start = np.array([0, 0.5, 0, 0, 0, 0])
    out = simulate(arm, start, duration=1.0, limits=0.7, friction=False, step=2e-4)
    hits = np.flatnonzero(np.abs(np.diff(out.qd[:, 1])) > 0.5)
    assert len(hits) >= 1
    before, after = hits[0], hits[0] + 1
    change = arm.momentum(out.q[after], out.qd[after]) - arm.momentum(out.q[before], out.qd[before])
    assert abs(change[1]) > 1
    assert np.abs(np.delete(change, 1)).max() < 0.05  # what gravity does in a step
    assert np.all(np.diff(out.energy) < 1e-6)
    lossless = simulate(arm, start, duration=0.4, limits=1.0, friction=False, step=2e-4)
    assert np.ptp(lossless.energy) < 1e-5


def test_stops_never_give_energy(panda, rng):
    """Light wrists between their stops rebound many times, several joints at once, also within one step."""
    lower, upper = np.array(panda.limits).T
    q = rng.uniform(0.95 * lower + 0.05 * upper, 0.05 * lower + 0.95 * upper, (8, 7))
    speed = 2 * rng.normal(size=(8, 7))
    out = simulate(panda, q, speed, duration=0.4, limits=0.5)
    assert out.status == "finished"
    assert np.all((out.q >= lower) & (out.q <= upper))
    assert np.diff(out.energy, axis=1).max() < 1e-9
    one = simulate(panda, q[5], speed[5], duration=0.4, limits=0.5)
    assert np.array_equal(one.q, out.q[5])


def test_stops_are_refused_where_they_cannot_be(drop):
    with pytest.raises(InputError, match="limits as stops need one of RK4"):
        simulate(drop(), [0.5], duration=0.1, limits="stop", method="DOP853")
    for bad in ("bounce", 1.5, -0.1):
        with pytest.raises(InputError, match="coefficient of restitution from 0 to 1"):
            simulate(drop(), [0.5], duration=0.1, limits=bad)


def test_every_lane_of_a_batch_has_its_own_end(drop):
    starts = np.linspace(0.1, 0.9, 40)[:, None]
    out = simulate(drop(), starts, times=[0, 0.2, 0.5])
    assert np.all(out.statuses == "limit")
    assert np.abs(out.ends - np.sqrt(2 * starts[:, 0] / 9.81)).max() < 1e-9
    assert all("lift met its limit at t = " in message for message in out.messages)
    few = simulate(drop(), starts[:3], times=[0, 0.2, 0.5])
    assert np.abs(few.ends - out.ends[:3]).max() < 1e-9


# --- defaults ------------------------------------------------------------------------------------

RUN = CliRunner()


@pytest.mark.parametrize("name", armdyn.catalogue())
def test_simulate_runs_for_every_arm_of_the_catalogue(name):
    result = RUN.invoke(app, ["simulate", name, "--duration", "0.05", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["status"] == "finished"


def test_the_start_is_the_rest_posture(panda, drop):
    assert np.array_equal(simulate(panda, duration=0.01).q[0], panda.rest)
    lift = drop()
    high = replace(lift.chain.joints[0], limit=Limit(lower=0.5))
    assert armdyn.Arm("high", replace(lift.chain, joints=(high,))).rest.tolist() == [0.5]  # no upper limit


def test_the_command_line_speaks_its_own_language(tmp_path):
    result = RUN.invoke(app, ["simulate", "panda", "--q", "0,0,0,0,0,0,0"])
    assert result.exit_code != 0
    said = str(result.exception) + result.output
    assert "--q lies outside the limits of panda_joint4; --no-limits ignores them" in said
    result = RUN.invoke(app, ["simulate", "panda", "--method", "RK4", "--hold", "--qd", "1,0,0,0,0,0,2", "--quiet"])
    assert result.exit_code in (0, 4)
    page = tmp_path / "page.html"
    words = ["simulate", "panda", "--hold", "--step", "auto", "--duration", "0.1", "--animate", str(page)]
    result = RUN.invoke(app, [*words, "--control-period", "0.002", "--restitution", "0.1"])
    assert result.exit_code == 0, result.output
    assert "</html>" in page.read_text(encoding="utf-8")

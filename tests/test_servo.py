"""Servos from commands and positions: sensitivities, the stepping against `simulate`, recovery, what is confounded."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import InputError
from armdyn.identification.servo_model import FIELDS, SensitivityColumns, ServoModel, Shots, Values, sensitivities
from servo_logs import COUNT, commands, record, with_servos

PLANAR = armdyn.load("planar3")
TYPICAL = {
    "kp": 20.0, "kd": 0.8, "delay": 0.0123, "dead_band": 0.004, "lag": 0.004, "limit": 3.0, "armature": 0.02,
    "viscous": 0.1, "coulomb": 0.15, "static": 0.05, "stribeck": 0.1, "load": 0.05,
}  # fmt: skip


def pendulum(**options):
    """A point mass of 1 kg at 0.3 m, turning in a vertical plane."""
    row = {"a": 0.3, "mass": 1.0, "com": (0, 0, 0), "inertia": (0, 0, 0, 0, 0, 0), "name": "swing", **options}
    return armdyn.from_dh([row], gravity=(0, -9.81, 0))


def shots(n, p, lanes=3, samples=26, hold=5e-4):
    rng = np.random.default_rng(0)
    t = np.arange(samples + 20)[:, None, None] * 0.01
    phase, rate = rng.uniform(0, 6, (lanes, n)), rng.uniform(2, 9, (lanes, n))
    command = 0.5 * np.sin(rate * t + phase)
    zero = np.zeros((samples, lanes, n))
    made = Shots(zero, zero + 1, command, 20, 0.01, 4, np.zeros((lanes, p)), hold)
    return made, command[19].copy(), 0.1 * rng.standard_normal((lanes, n))


def test_sensitivities_are_derivatives():
    """Of every parameter and initial state, with joints that stick and saturate on the way."""
    model = ServoModel(PLANAR)
    n, inertial = 3, np.array([float(x) for x in model.arm.minimal_parameters.values])
    values = Values({name: np.full(n, TYPICAL[name]) for name in FIELDS}, inertial)
    given, q, v = shots(n, len(inertial))
    run = model.run(values, given, q, v)
    assert 0.005 < (run.slide == 0).mean() < 0.5
    assert 0.02 < (run.saturated != 0).mean() < 0.8
    pairs = [(name, i) for name in FIELDS for i in range(n)]
    columns = SensitivityColumns(
        tuple(name for name, _ in pairs), np.array([i for _, i in pairs]), np.eye(len(pairs)), np.eye(len(inertial))
    )
    found = []
    sensitivities(model, values, given, run, columns, lambda sample, S: found.append(S.copy()))
    slopes = np.array(found)

    def moved(column, eps):
        joints, p = {name: x.copy() for name, x in values.joints.items()}, inertial.copy()
        start = [q.copy(), v.copy()]
        if column < 2 * n:
            start[column // n][:, column % n] += eps
        elif column < 2 * n + len(pairs):
            name, i = pairs[column - 2 * n]
            joints[name][i] += eps
        else:
            p[column - 2 * n - len(pairs)] += eps
        return model.run(Values(joints, p), given, *start).q[:: given.steps]

    for column in range(slopes.shape[-1]):
        difference = (moved(column, 1e-7) - moved(column, -1e-7)) / 2e-7
        size = np.abs(slopes[..., column]).max()
        worst = np.abs(difference - slopes[..., column]).max(axis=(0, 2))
        assert np.median(worst) <= 2e-4 * size + 1e-6, (column, worst / size)


def driven(limit=None, seconds=2.0, rate=100.0, seed=0, size=0.6):
    """A planar arm under servos, and a command."""
    arm = with_servos(
        PLANAR, kp=[300, 60, 12], kd=[18, 4, 0.8], delay=0.01, armature=[0.1, 0.03, 0.01], viscous=[2.0, 0.3, 0.1],
        coulomb=[3.0, 0.8, 0.15], limit=limit,
    )  # fmt: skip
    return arm, *commands(3, seconds, rate, np.random.default_rng(seed), size)


def true_values(arm, model):
    joints = {name: np.zeros(arm.n) for name in FIELDS}
    for i, joint in enumerate(arm.joints):
        servo, effort = joint.servo, joint.limit.effort
        numbers = {
            "kp": servo.kp, "kd": servo.kd, "delay": servo.delay, "armature": joint.rotor_inertia,
            "viscous": joint.viscous, "coulomb": joint.coulomb, "stribeck": 0.05,
            "limit": np.inf if effort is None else effort,
        }  # fmt: skip
        for name, x in numbers.items():
            joints[name][i] = float(x)
    return Values(joints, np.array([float(x) for x in model.arm.minimal_parameters.values]))


def test_the_steps_are_those_of_simulate():
    """Against Runge-Kutta steps with exact events and a sampled controller; smaller steps come closer."""
    arm, t, command = driven(limit=[40.0, 9.0, 2.0])
    fine = record(arm, t, command, firmware=1e-3, resolution=1e-9).array("q")
    model = ServoModel(arm)
    values = true_values(arm, model)
    given = Shots(fine[:, None], fine[:, None] * 0 + 1, command[:, None], 0, 0.01, 10, np.zeros((1, 9)), 5e-4)
    run = model.run(values, given, command[:1], np.zeros((1, 3)))
    assert (run.saturated != 0).any()
    assert (run.slide == 0).any()
    error = np.abs(run.q[::10, 0] - fine).max()
    assert error < 2e-4  # rad, of motions of one rad: an eighth of an encoder's count
    coarse = model.run(values, replace(given, steps=2), command[:1], np.zeros((1, 3)))
    assert np.abs(coarse.q[::2, 0] - fine).max() > 2 * error


@pytest.fixture(scope="module")
def fitted():
    arm, t, command = driven(limit=[200.0, 9.0, 200.0], seconds=3.0)
    return arm, armdyn.identify_servo(PLANAR, record(arm, t, command), prior=0)


def test_what_the_log_determines_is_recovered(fitted):
    arm, found = fitted
    assert found.trusted, found.doubts
    true = true_values(arm, found.model)
    names = {combination.words: combination for combination in found.identifiable}
    for i, joint in enumerate(PLANAR.joint_names):
        assert found.parameters.kp[i] == pytest.approx(true.kp[i], rel=0.03)
        assert found.parameters.delay[i] == pytest.approx(0.01, abs=1e-3)
        kd, viscous = found.parameters.kd[i], found.parameters.viscous[i]
        assert kd + viscous == pytest.approx(true.kd[i] + true.viscous[i], rel=0.03)
        alike = joint != "joint2"  # kd and viscous friction differ only where the torque is limited
        assert (f"kd {joint} + viscous {joint}" in names) == alike
        assert (f"viscous {joint}" in found.undetermined) == alike
    assert found.parameters.limit[1] == pytest.approx(9.0, rel=0.03)
    assert {f"limit {joint}" in found.names for joint in PLANAR.joint_names} == {True, False}
    assert any("torque limit of joint1, joint3 is not reached" in note for note in found.notes)
    np.testing.assert_allclose(found.noise, COUNT / np.sqrt(12), rtol=0.15)
    np.testing.assert_allclose(found.resolution, COUNT, rtol=1e-6)


def test_other_motions_are_predicted_and_files_carry_it(fitted, tmp_path):
    arm, found = fitted
    _, t, command = driven(seconds=1.5, seed=5)
    other = record(arm, t, command)
    assert (found.errors(other) < 1.5 * COUNT / np.sqrt(12)).all()
    assert sorted(path.name for path in found.save(tmp_path)) == ["arm.toml", "arm.urdf", "arm.xml", "parameters.json"]
    assert armdyn.load(tmp_path / "arm.toml") == found.arm
    servo = armdyn.load(tmp_path / "arm.urdf").joints[1].servo
    assert float(servo.kp) == pytest.approx(found.parameters.kp[1])
    assert '<position name="joint2"' in (tmp_path / "arm.xml").read_text()
    assert found.arm.joints[1].limit.effort == pytest.approx(found.parameters.limit[1])
    assert found.arm.joints[0].limit.effort == PLANAR.joints[0].limit.effort


def test_predictions_begin_where_the_log_begins():
    """An arm that sags from rest in its first tenth of a second: its first state is not that of a cubic."""
    laws = {"kp": [20.0], "kd": [1.2], "delay": 0.008, "armature": [0.02], "viscous": [0.1], "coulomb": [0.3]}
    t, command = commands(1, 3.0, 100.0, np.random.default_rng(3), 1.0)
    found = armdyn.identify_servo(pendulum(), record(with_servos(pendulum(), **laws), t, command), prior=0)
    noise, errors = np.hypot(2e-4, COUNT / np.sqrt(12)), []
    for seed in range(4):
        t, command = commands(1, 1.5, 100.0, np.random.default_rng(seed), 0.1)
        errors.append(found.errors(record(with_servos(pendulum(), **laws), t, command, noise=2e-4, seed=seed)) / noise)
    assert np.max(errors) < 1.15, errors


def test_one_load_leaves_the_scale_open_and_a_second_closes_it():
    rng = np.random.default_rng(3)
    guess = pendulum()
    heavy = armdyn.from_dh(  # the true arm is 15 % heavier than its file says
        [{"a": 0.3, "mass": 1.15, "com": (0, 0, 0), "inertia": (0,) * 6, "name": "swing"}], gravity=(0, -9.81, 0)
    )
    laws = {"kp": [30.0], "kd": [1.2], "delay": 0.008, "armature": [0.02], "viscous": [0.1], "coulomb": [0.3]}
    t, command = commands(1, 4.0, 100.0, rng, 1.5)
    first = record(with_servos(heavy, **laws), t, command)
    second = record(with_servos(heavy.with_payload(0.8), **laws), t, command, seed=1)
    alone = armdyn.identify_servo(guess, first, friction="coulomb")
    assert not alone.scale_known
    assert "known load" in alone.advice
    ratio = next(c for c in alone.identifiable if c.words == "coulomb / kp swing")
    assert ratio.value == pytest.approx(0.01, rel=0.03)
    assert abs(alone.parameters.kp[0] / 30 - 1) < 2.5 * alone.deviations[0] / 30  # σ covers it: the mass is uncertain
    both = armdyn.identify_servo(guess, [first, second], loads=[None, 0.8], friction="coulomb")
    assert both.scale_known
    best = alone.experiments[0]
    assert best.load is not None  # the most telling experiment has one, and tells about as much as it turns out to
    told = next(e for e in alone.experiments if e.load is not None and e.motion == "the same motion" and e.load > 0.1)
    assert told.load == 0.2
    assert told.deviations["kp swing"] < 0.5 * alone.deviations[0]
    assert both.parameters.kp[0] == pytest.approx(30, rel=0.02)
    weight = both.values[both.names.index("kx_1")]
    assert weight == pytest.approx(1.15 * 0.3, rel=0.03)
    assert both.arm.gravity_load([0.0])[0] == pytest.approx(9.81 * weight, rel=1e-6)


def test_stribeck_friction_is_found_where_it_is():
    laws = {"kp": [30.0], "kd": [1.2], "delay": 0.008, "armature": [0.02], "viscous": [0.1], "coulomb": [0.2]}
    arm = with_servos(pendulum(), **laws)
    joint = replace(arm.given.joints[0], static=joint_number(0.5), stribeck=joint_number(0.1))
    sticky = replace(arm, given=replace(arm.given, joints=(joint,)))
    t, command = commands(1, 5.0, 100.0, np.random.default_rng(4), 1.2, fastest=0.6)
    found = armdyn.identify_servo(pendulum(), record(sticky, t, command), prior=0)
    assert found.parameters.static[0] == pytest.approx(0.3, rel=0.15)
    assert found.parameters.coulomb[0] == pytest.approx(0.2, rel=0.1)
    assert float(found.arm.joints[0].static) == pytest.approx(0.5, rel=0.1)
    plain = armdyn.identify_servo(pendulum(), record(arm, t, command), prior=0)
    assert plain.parameters.static[0] == 0
    assert plain.parameters.load[0] == 0


def joint_number(x):
    from servo_logs import exact

    return exact(x)


def test_the_command(tmp_path):
    laws = {"kp": [30.0], "kd": [1.2], "delay": 0.008, "armature": [0.02], "viscous": [0.1], "coulomb": [0.3]}
    pendulum().save(tmp_path / "swing.toml")
    t, command = commands(1, 2.0, 100.0, np.random.default_rng(3), 1.0)
    record(with_servos(pendulum(), **laws), t, command).save(tmp_path / "log.csv")
    words = ["servo", str(tmp_path / "swing.toml"), str(tmp_path / "log.csv"), "--prior", "0", "--friction", "coulomb"]
    run = CliRunner().invoke(app, [*words, "--json", "-o", str(tmp_path / "out")])
    assert run.exit_code == 0, run.output
    data = json.loads(run.output)
    assert data["values"][data["names"].index("kp swing")] == pytest.approx(30, rel=0.03)
    assert armdyn.load(tmp_path / "out" / "arm.toml").joints[0].servo is not None
    shown = CliRunner().invoke(app, [*words, "--validate", str(tmp_path / "log.csv")])
    assert "kp swing = " in shown.output
    assert "predicted positions of" in shown.output


def log_of(q, command=None, rate=100.0):
    t = np.arange(len(q)) / rate
    return armdyn.Log.of(t, q, tau=None if command is not None else q, command=command)


def test_bad_input():
    rng = np.random.default_rng(0)
    q = np.cumsum(rng.standard_normal((200, 3)), axis=0) * 0.01
    with pytest.raises(InputError, match="no commanded positions"):
        armdyn.identify_servo(PLANAR, log_of(q))
    with pytest.raises(InputError, match="joint2 does not move"):
        armdyn.identify_servo(PLANAR, log_of(np.round(q * [1, 0, 1], 3), q))
    with pytest.raises(InputError, match="one entry per log"):
        armdyn.identify_servo(PLANAR, log_of(q, q), loads=[None, 1.0])
    with pytest.raises(InputError, match="the log has 2 joints, planar3 has 3"):
        armdyn.identify_servo(PLANAR, log_of(q[:, :2], q[:, :2]))
    with pytest.raises(InputError, match="one sampling period"):
        armdyn.identify_servo(PLANAR, [log_of(q, q), log_of(q, q, 50.0)])
    with pytest.raises(InputError, match="longer than"):
        armdyn.identify_servo(PLANAR, log_of(q[:20], q[:20]))
    for options, message in (
        ({"friction": "m6"}, "unknown friction"),
        ({"prior": -1}, "prior is a relative deviation"),
        ({"firmware": 1}, "period of the servos"),
    ):
        with pytest.raises(InputError, match=message):
            armdyn.identify_servo(PLANAR, log_of(q, q), **options)


LAWS = {"kp": [30.0], "kd": [1.2], "delay": 0.008, "armature": [0.02], "viscous": [0.1], "coulomb": [0.3]}


@pytest.fixture(scope="module")
def columns():
    """t, command and position of a pendulum under a servo, one row per sample."""
    t, command = commands(1, 4.0, 100.0, np.random.default_rng(3), 1.0)
    log = record(with_servos(pendulum(), **LAWS), t, command, noise=1e-4)
    return np.column_stack([t, command, log.array("q")])


def written(path, header, rows):
    np.savetxt(path, rows, delimiter=",", fmt="%.7f", header=header, comments="")
    return path


@pytest.mark.parametrize(
    "header",
    ["timestamp,action.swing.pos,observation.state.swing.pos", "time,goal_position_1,present_position_1", "t,cmd_1,q1"],
)
def test_logs_as_servo_arms_write_them(columns, tmp_path, header):
    log = armdyn.Log.read(written(tmp_path / "log.csv", header, columns), joints=["swing"])
    np.testing.assert_allclose(log.array("command"), columns[:, 1:2], atol=1e-6)
    np.testing.assert_allclose(log.array("q"), columns[:, 2:], atol=1e-6)


def test_missing_rows_stay_missing(columns, tmp_path):
    """Their times are simulated, not compared, and the period is that of the rows that are there."""
    rng = np.random.default_rng(0)
    rows = columns[(rng.random(len(columns)) > 0.02) | (columns[:, 0] == 0)]
    path = written(tmp_path / "log.csv", "t,command1,q1", rows)
    log = armdyn.Log.read(path)
    assert log.period == pytest.approx(0.01, rel=1e-6)
    (piece,) = log.pieces
    assert piece.measured.sum() == len(rows)
    np.testing.assert_allclose(piece.q[piece.measured > 0], rows[:, 2:], atol=1e-6)
    found = armdyn.identify_servo(pendulum(), log, prior=0, friction="coulomb")
    assert found.trusted, found.doubts
    assert found.parameters.kp[0] == pytest.approx(30, rel=0.02)
    text = path.read_text().splitlines()
    text[50] = ",".join([text[50].split(",")[0], "", text[50].split(",")[2]])
    path.write_text("\n".join(text))
    assert "1 commands are missing: the ones before hold on" in armdyn.Log.read(path).notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, c, q: (t, np.rad2deg(c), np.rad2deg(q)), "in degrees.*degrees=True or degrees=False"),
        (lambda t, c, q: (t, np.rad2deg(c), q), "commands move .* times as far .* commands in degrees"),
        (lambda t, c, q: (t, np.round(700 * c), np.round(700 * q)), "whole numbers: are these encoder counts"),
        (lambda t, c, q: (t, c + np.pi / 2, q), "1.67 rad or m apart throughout"),
        (lambda t, c, q: (t, c, 0 * q), "no joint moves"),
    ],
)
def test_logs_that_cannot_be_meant(columns, tmp_path, change, message):
    rows = np.column_stack(change(*columns.T))
    with pytest.raises(InputError, match=message):
        armdyn.identify_servo(pendulum(), written(tmp_path / "log.csv", "t,command1,q1", rows))


def test_a_log_of_commands_is_not_for_identify(columns, tmp_path):
    path = written(tmp_path / "log.csv", "t,command1,q1", columns)
    with pytest.raises(InputError, match=r"no torques.*identify_servo"):
        armdyn.identify(pendulum(), path)
    with pytest.raises(InputError, match=r"no torques.*no commanded positions"):
        armdyn.Log.read(written(tmp_path / "q.csv", "t,q1", columns[:, [0, 2]]))


def test_a_torque_limit_that_acts_rarely():
    """Steps of a command saturate the servo for some milliseconds, which a fit without a limit takes for damping."""
    t, command = commands(1, 4.0, 100.0, np.random.default_rng(5), 0.6)
    for start in (90, 180, 270):
        command[start : start + 40] += 0.4
    laws = LAWS | {"kp": [40.0], "kd": [0.8], "viscous": [0.9]}
    arm = with_servos(pendulum(), **laws, limit=[12.0])
    found = armdyn.identify_servo(pendulum(), record(arm, t, command, noise=1e-4), prior=0, friction="coulomb")
    assert found.trusted, found.doubts
    assert 0.001 < (found.fit.run.saturated != 0).mean() < 0.1
    assert found.parameters.limit[0] == pytest.approx(12.0, rel=0.03)
    assert found.parameters.kp[0] == pytest.approx(40.0, rel=0.02)


def test_a_joint_that_gravity_does_not_turn_gets_its_scale_from_the_others():
    """A light second joint, geared like the first: reaction torques on the first one tell its size."""
    rows = [
        {"a": 0.3, "mass": 1.0, "com": (0, 0, 0), "inertia": (0,) * 6, "name": "swing"},
        {"a": 0.1, "mass": 0.05, "com": (0.0, 0, 0), "inertia": (0, 0, 1e-5, 0, 0, 0), "name": "tip"},
    ]
    arm = armdyn.from_dh(rows, gravity=(0, -9.81, 0))
    true = with_servos(arm, [30.0, 30.0], [1.2, 1.2], 0.008, [0.02, 0.02], [0.1, 0.1], [0.3, 0.3])
    t, command = commands(2, 6.0, 100.0, np.random.default_rng(6), 1.0)
    found = armdyn.identify_servo(arm, record(true, t, command, noise=1e-4), prior=0, friction="coulomb")
    assert found.trusted, found.doubts
    np.testing.assert_allclose(found.parameters.kp, 30, rtol=0.1)
    np.testing.assert_allclose(found.parameters.armature, 0.02, rtol=0.1)

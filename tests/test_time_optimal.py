"""Time-optimal motion along a path: closed forms, feasibility and optimality by inverse dynamics, bad input."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.interpolate import CubicHermiteSpline, CubicSpline
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import armdyn
from armdyn.cli import app
from armdyn.errors import InputError
from armdyn.identification.limits import Skeleton, segment_distance
from armdyn.motion import Grip, MotionLimits, Path, constraints, fastest_path
from armdyn.motion.via import ANGLES, QUATERNION, read_via
from armdyn.simulation import ComputedTorque
from armdyn.uncertainty import Normal, Uncertain, Uniform

MODULE = importlib.import_module("armdyn.motion.time_optimal")  # the package's name is that of the function
UR5 = armdyn.load("ur5")
WAY = np.array([[0, -1.5, 1.5, 0, 0.5, 0], [0.6, -1.0, 1.0, -0.4, 0.8, 0.5], [1.2, -1.4, 1.6, 0.3, 0.2, -0.4]])

PLANAR = armdyn.load("planar3")
BEND = np.array([[0.0, 0.5, 0.5], [0.8, -0.4, 1.0], [1.2, 0.6, -0.5]])


def slide(mass=2.0, **options):
    return armdyn.from_dh([{"kind": "prismatic", "mass": mass, "name": "slide", **options}], gravity=(0, 0, 0))


def pendulum(**options):
    """A point mass of 1 kg at 1 m, turning in a vertical plane."""
    row = {"a": 1.0, "mass": 1.0, "com": (0, 0, 0), "inertia": (0, 0, 0, 0, 0, 0), "name": "swing", **options}
    return armdyn.from_dh([row], gravity=(0, -9.81, 0))


def torques_inside(arm, motion, path, count=10, **options):
    """Torques and joint speeds at places between the grid's points, where u is linear, and z by its integral."""
    piece = Path.of(path, arm).pieces[0]
    share, step = np.arange(count) / count, np.diff(motion.s)[:, None]
    s, z = motion.s[:-1, None] + share * step, motion.speed[:-1, None] ** 2
    first, both = motion.acceleration[:-1, None], np.diff(motion.speed**2)[:, None] / step
    last = both - first
    z, u = z + step * (2 * first * share + (last - first) * share**2), first + (last - first) * share
    q, dq, ddq = (piece.at(s, order) for order in range(3))
    qd, qdd = dq * np.sqrt(z)[..., None], dq * u[..., None] + ddq * z[..., None]
    return arm.inverse_dynamics(q, qd, qdd, **options), qd


@pytest.mark.parametrize(("mass", "force", "way"), [(2.0, 3.0, 1.0), (0.5, 10.0, 0.3)])
def test_a_free_mass_accelerates_and_brakes(mass, force, way):
    motion = armdyn.time_optimal(slide(mass), [[0.0], [way]], limits=MotionLimits(torque=force))
    assert motion.duration == pytest.approx(2 * np.sqrt(way * mass / force), rel=1e-6)
    assert set(motion.binding) == {"torque of slide"}
    np.testing.assert_allclose(np.abs(motion.tau), force, rtol=1e-3)


def test_a_speed_limit_is_a_plateau():
    limits = MotionLimits(torque=2.0, velocity=0.5)
    motion = armdyn.time_optimal(slide(), [[0.0], [1.0]], limits=limits, grid=400)
    assert motion.duration == pytest.approx(1.0 / 0.5 + 0.5 / 1.0, rel=1e-3)  # way / v + v / a
    assert "velocity of slide" in motion.binding
    limits = MotionLimits(acceleration=1.0, velocity=0.5)
    assert armdyn.time_optimal(slide(), [[0.0], [1.0]], limits=limits, grid=400).duration == pytest.approx(
        2.5, rel=1e-3
    )


def test_a_pendulum_under_gravity():
    """u = (τ - g cos q) does not depend on the speed, so both phases are integrals of it."""
    arm, most = pendulum(), 15.0
    begin, end = -0.8, 1.9
    forward = lambda q: 2 * (most * (q - begin) - 9.81 * (np.sin(q) - np.sin(begin)))  # noqa: E731
    backward = lambda q: 2 * (most * (end - q) + 9.81 * (np.sin(end) - np.sin(q)))  # noqa: E731
    expected = quad(lambda q: min(forward(q), backward(q)) ** -0.5, begin, end, limit=500, points=[begin, end])[0]
    motion = armdyn.time_optimal(arm, [[begin], [end]], limits=MotionLimits(torque=most), grid=400)
    assert motion.duration == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("friction", [{"viscous": 4.0}, {"coulomb": 3.0}, {"viscous": 2.0, "coulomb": 1.0}])
def test_friction_of_any_kind_is_overcome(friction):
    """Against the phases integrated over the way: forwards with friction against, backwards with its help."""
    arm, most, way = pendulum(**friction), 20.0, 1.5
    v, c = friction.get("viscous", 0.0), friction.get("coulomb", 0.0)

    def phase(side):
        def rate(s, z):
            q = s if side > 0 else way - s
            return 2 * (most - side * (9.81 * np.cos(q) + v * np.sqrt(max(z[0], 0)) + c))

        return solve_ivp(rate, (0, way), [1e-14], rtol=1e-9, atol=1e-12, dense_output=True).sol

    ahead, back = phase(1), phase(-1)
    z = lambda s: min(ahead(s)[0], back(way - s)[0])  # noqa: E731
    expected = quad(lambda r: 2 * r * z(r * r) ** -0.5, 0, np.sqrt(way / 2), limit=300)[0]
    expected += quad(lambda r: 2 * r * z(way - r * r) ** -0.5, 0, np.sqrt(way / 2), limit=300)[0]
    limits = MotionLimits(torque=most)
    coarse, fine = (armdyn.time_optimal(arm, [[0.0], [way]], limits=limits, grid=grid) for grid in (50, 400))
    errors = [motion.duration / expected - 1 for motion in (coarse, fine)]
    assert 0 <= errors[1] < 2e-3  # it takes its time from rest, where viscous friction changes as the root of the way
    assert errors[1] < errors[0] / 4 or errors[0] < 1e-4
    without = armdyn.time_optimal(arm, [[0.0], [way]], limits=MotionLimits(torque=most), friction=False)
    assert without.duration != pytest.approx(fine.duration, rel=1e-3)


def test_load_dependent_friction():
    arm = pendulum()
    joint = arm.given.joints[0]
    lossy = replace(joint, forces=replace(joint.forces, load_friction=armdyn.files.arrays.number(0.3, "loss")))
    arm = replace(arm, given=replace(arm.given, joints=(lossy,)))
    motion = armdyn.time_optimal(arm, [[0.0], [1.5]], limits=MotionLimits(torque=20.0))
    tau, _ = torques_inside(arm, motion, [[0.0], [1.5]], friction=True)
    inside = tau[1:-1, :, 0]
    assert np.abs(inside).max() <= 20.0 * 1.002
    assert np.mean(np.abs(inside) > 19.9) > 0.98  # but where the motion turns to braking


@pytest.mark.parametrize("payload", [None, 3.0])
@pytest.mark.parametrize("seed", range(2))
def test_no_limit_is_exceeded_and_one_always_binds(seed, payload):
    path = np.random.default_rng(seed).uniform(-1.5, 1.5, (4, 6))
    limits = MotionLimits(torque=[110, 110, 80, 12, 12, 12])
    motion = armdyn.time_optimal(UR5, path, payload=payload, limits=limits)
    arm = UR5 if payload is None else UR5.with_payload(payload)
    tau, qd = torques_inside(arm, motion, path, friction=True)
    most = np.array(limits.torque, float)
    assert (np.abs(tau) / most).max() <= 1.002
    assert (np.abs(qd) / UR5.velocity_limits).max() <= 1.001
    assert motion.overrun <= 1e-3
    used = np.maximum((np.abs(tau) / most).max((1, 2)), (np.abs(qd) / UR5.velocity_limits).max((1, 2)))
    assert np.median(used) > 0.99
    assert np.mean(used > 0.95) > 0.9
    assert motion.binding.count("none") <= 4  # the steps on which the motion changes from one limit to another
    assert np.all(np.diff(motion.t) > 0)
    np.testing.assert_allclose(motion.qd[[0, -1]], 0, atol=1e-12)
    # the velocities lead along the path in the times given
    steps = np.diff(motion.t)[:, None] * (motion.qd[1:] + motion.qd[:-1]) / 2
    np.testing.assert_allclose(motion.q[0] + steps.cumsum(0), motion.q[1:], atol=0.01 * np.ptp(motion.q))


def test_a_little_more_speed_anywhere_exceeds_a_limit():
    limits = MotionLimits(torque=[110, 110, 80, 12, 12, 12])
    motion = armdyn.time_optimal(UR5, WAY, limits=limits)
    faster = replace(motion, speed=motion.speed * 1.005, acceleration=motion.acceleration * 1.005**2)
    tau, qd = torques_inside(UR5, faster, WAY, friction=True)
    used = np.maximum(np.abs(tau) / limits.torque, np.abs(qd) / UR5.velocity_limits).max((1, 2))
    assert np.mean(used > 1.0) > 0.9


def test_more_load_or_less_torque_takes_longer():
    limits = MotionLimits(torque=[110, 110, 80, 12, 12, 12])
    free, loaded = (armdyn.time_optimal(UR5, WAY, limits=limits, payload=x).duration for x in (None, 3.0))
    both = armdyn.time_optimal(UR5, WAY, limits=limits, payload=[0.5, 3.0]).duration
    assert free < loaded <= both * (1 + 1e-9)
    weak = MotionLimits(torque=[90, 90, 60, 12, 12, 12])
    assert armdyn.time_optimal(UR5, WAY, limits=weak).duration > free


def test_the_same_way_given_otherwise_takes_the_same_time():
    along = np.r_[0, np.cumsum(np.linalg.norm(np.diff(WAY, axis=0), axis=1))]
    spline = CubicSpline(along, WAY, bc_type="natural")
    times = [
        armdyn.time_optimal(UR5, path).duration
        for path in (WAY, spline, lambda s: spline(along[-1] * s), lambda s: spline(along[-1] * s**1.0 / 1.0))
    ]
    np.testing.assert_allclose(times, times[0], rtol=2e-4)
    several = armdyn.time_optimal(UR5, [WAY, WAY[::-1]])
    assert several[0].duration == pytest.approx(times[0], rel=1e-9)
    again = armdyn.time_optimal(UR5, several[0])  # a trajectory, timed anew
    assert again.duration == pytest.approx(times[0], rel=0.01)


def test_corners_stop_the_motion_and_blends_do_not():
    corner = np.array([[0.0, 0], [1, 0], [1, 1]])
    link = {"a": 1.0, "mass": 1.0, "com": (-0.5, 0, 0), "inertia": (0.01, 0.1, 0.1, 0, 0, 0)}
    arm = armdyn.from_dh([link, link], gravity=(0, 0, 0))
    limits = MotionLimits(acceleration=2.0, velocity=1.0)
    stops = armdyn.time_optimal(arm, corner, limits=limits, blend=0)
    assert stops.duration == pytest.approx(2 * (1 / 1.0 + 1.0 / 2.0), rel=5e-3)
    at_corner = np.argmin(np.linalg.norm(stops.q - corner[1], axis=1))
    np.testing.assert_allclose(stops.qd[at_corner], 0, atol=1e-9)
    rounded = armdyn.time_optimal(arm, corner, limits=limits, blend=0.05)
    assert rounded.duration < stops.duration
    distance = np.linalg.norm(rounded.q - corner[1], axis=1).min()
    assert 0.02 < distance <= 0.05 + 1e-9


def test_tool_speed_tool_acceleration_power_and_grip():
    speed = armdyn.time_optimal(UR5, WAY, limits=MotionLimits(tool_speed=0.3))
    v = np.einsum("kij,kj->ki", UR5.jacobian(speed.q), speed.qd)[:, :3]
    assert np.linalg.norm(v, axis=1).max() == pytest.approx(0.3, rel=1e-2)
    assert "tool speed" in speed.binding
    soft = armdyn.time_optimal(UR5, WAY, limits=MotionLimits(tool_acceleration=1.0))
    J, dJ = UR5.jacobian(soft.q), UR5.jacobian_rate(soft.q, soft.qd)
    a = (np.einsum("kij,kj->ki", J, soft.qdd) + np.einsum("kij,kj->ki", dJ, soft.qd))[:, :3]
    assert np.linalg.norm(a, axis=1).max() == pytest.approx(1.0, rel=1e-2)
    power = armdyn.time_optimal(UR5, WAY, limits=MotionLimits(power=40.0))
    assert (power.tau * power.qd).sum(-1).max() <= 40.0 * 1.01
    assert "power" in power.binding
    grip = Grip(mass=1.0, force=40.0, friction=0.3)
    held = armdyn.time_optimal(UR5, WAY, limits=MotionLimits(grip=grip), payload=1.0)
    free = armdyn.time_optimal(UR5, WAY, payload=1.0)
    assert held.duration > free.duration
    assert "slip in the grip" in held.binding


def test_a_motor_curve_and_speeds_at_the_ends():
    curve = lambda qd: np.stack([-(3 - np.abs(qd)), 3 - np.abs(qd)], axis=-1)  # noqa: E731
    motion = armdyn.time_optimal(slide(), [[0.0], [4.0]], limits=MotionLimits(torque=curve), grid=400)
    assert (np.abs(motion.tau) <= 3 - np.abs(motion.qd) + 0.02).all()
    # v' = (3 - v) / 2 to the middle, v' = -(3 - v) / 2 from there: v and s of t are exponentials
    t = np.linspace(0, 10, 200_001)
    half = np.interp(2.0, 3 * (t - 2 * (1 - np.exp(-t / 2))), t)
    assert motion.duration == pytest.approx(2 * half, rel=2e-3)
    started = armdyn.time_optimal(slide(), [[0.0], [1.0]], limits=MotionLimits(torque=3.0), speeds=(0.5, 0.0))
    assert started.qd[0, 0] == pytest.approx(0.5)
    with pytest.raises(InputError, match="speed asked for at 100 % of the path"):
        armdyn.time_optimal(slide(), [[0.0], [1.0]], limits=MotionLimits(torque=3.0, velocity=0.2), speeds=(0, 0.5))


def test_the_tool_moves_on_straight_lines_between_poses():
    first = UR5.pose(WAY[0])
    second = first.copy()
    second[:3, 3] += [0.05, 0.1, -0.05]
    motion = armdyn.time_optimal(UR5, np.stack([first, second]))
    points = UR5.pose(motion.q)[:, :3, 3]
    way = second[:3, 3] - first[:3, 3]
    off = np.linalg.norm(np.cross(points - points[0], way / np.linalg.norm(way)), axis=1)
    assert off.max() < 1e-4
    np.testing.assert_allclose(points[-1] - points[0], way, atol=1e-6)


def test_torques_of_the_motion_track_it_without_saturation():
    limits = MotionLimits(torque=[30.0, 20.0, 10.0])
    motion = armdyn.time_optimal(PLANAR, BEND, limits=limits)
    way = CubicHermiteSpline(motion.t, motion.q, motion.qd)

    def reference(t):
        t = np.clip(t, motion.t[0], motion.t[-1])
        return way(t), way(t, 1), way(t, 2)

    law = ComputedTorque(reference, 400.0, 40.0)
    out = armdyn.simulate(PLANAR, motion.q[0], torque=law, duration=motion.duration, step=2e-3)
    assert out.status == "finished"
    assert np.abs(out.q - reference(out.t)[0]).max() < 2e-3
    assert (np.abs(out.tau).max(axis=0) < 1.05 * np.array(limits.torque)).all()


def test_the_phase_plane_has_the_limits_above_the_motion():
    """For a pendulum without friction the torque limit is no limit of the speed; a motor's curve is one."""
    arm = pendulum()
    curve = lambda qd: np.stack([-(20 - 2 * np.abs(qd)), 20 - 2 * np.abs(qd)], axis=-1)  # noqa: E731
    motion = armdyn.time_optimal(arm, [[-1.0], [2.0]], limits=MotionLimits(torque=curve), grid=100)
    assert (motion.speed <= motion.fastest * (1 + 1e-9)).all()
    assert (motion.fastest <= motion.ceiling * (1 + 1e-6)).all()
    # all torque goes into gravity or motion until none is left: 20 - 2 |qd| = 0 at 10 rad/s, dq/ds = 3
    np.testing.assert_allclose(motion.ceiling, 10 / 3, rtol=1e-3)
    page = motion.animate().html
    assert "Phase plane" in page
    assert "limits allow" in page


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_a_controller_can_read_the_table_in_c(tmp_path):
    motion = armdyn.time_optimal(UR5, WAY, grid=50)
    motion.save(tmp_path / "pick-up.h")
    main = """#include <stdio.h>
#include "pick-up.h"
int main(void) { double t, q[6], qd[6], tau[6]; int i;
  while (scanf("%lf", &t) == 1) { pick_up_at(t, q, qd, tau);
    for (i = 0; i < 6; i++) { printf("%.17g %.17g %.17g ", q[i], qd[i], tau[i]); }
    printf("\\n"); }
  return 0; }
"""
    (tmp_path / "main.c").write_text(main)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(["gcc", *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    middle = (motion.t[:-1] + motion.t[1:]) / 2
    asked = [*motion.t, *middle, -1.0, 99.0]
    text = "\n".join(map(repr, map(float, asked)))
    done = subprocess.run([tmp_path / "main"], input=text, capture_output=True, text=True, check=True)
    rows = np.array([line.split() for line in done.stdout.splitlines()], float).reshape(len(asked), 6, 3)
    k = len(motion.t)
    for column, wanted in enumerate((motion.q, motion.qd, motion.tau)):
        np.testing.assert_allclose(rows[:k, :, column], wanted, rtol=0, atol=1e-9 * np.abs(wanted).max())
    spline = CubicHermiteSpline(motion.t, motion.q, motion.qd)
    np.testing.assert_allclose(rows[k:-2, :, 0], spline(middle), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows[k:-2, :, 1], spline(middle, 1), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(rows[-2:, :, 0], motion.q[[0, -1]])


VIA = {
    "": WAY,
    "q1,q2,q3,q4,q5,q6": WAY,
    "# a comment\n" + ",".join(UR5.joint_names[::-1]): WAY[:, ::-1],
}


@pytest.mark.parametrize("head", VIA)
def test_via_points_from_a_file(tmp_path, head):
    path = tmp_path / "way.csv"
    rows = "\n".join(", ".join(map(repr, row)) for row in VIA[head].tolist())
    path.write_text(f"{head}\n{rows}\n")
    np.testing.assert_array_equal(read_via(path, UR5), WAY)


def test_poses_from_a_file(tmp_path):
    poses = UR5.pose(WAY[:2])
    turned = Rotation.from_matrix(poses[:, :3, :3])
    for names, columns in ((QUATERNION, turned.as_quat()), (ANGLES, turned.as_euler("xyz"))):
        table = np.hstack([poses[:, :3, 3], columns])
        path = tmp_path / "poses.csv"
        path.write_text(
            "\n".join([",".join(("x", "y", "z", *names)), *(",".join(map(repr, r)) for r in table.tolist())])
        )
        np.testing.assert_allclose(read_via(path, UR5), poses, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no via points"),
        ("1,2\n3", "via point 2 of .* has to be 2 numbers"),
        ("q1,q1\n1,2", "columns of the same name"),
        ("a,b\n1,2", "expected q1 … q6, the joints shoulder_pan"),
        ("a,b\n1,2,3", "names 2 columns, but its rows have 3"),
        ("x,y,z,qx,qy,qz,qw\n0,0,0,1,1,0,0", "quaternions of .* must have length 1"),
    ],
)
def test_bad_files_of_via_points(tmp_path, text, message):
    path = tmp_path / "way.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        armdyn.time_optimal(UR5, path)


def test_the_command(tmp_path):
    way, out, page = tmp_path / "way.csv", tmp_path / "motion.csv", tmp_path / "motion.html"
    np.savetxt(way, BEND, delimiter=",")
    words = ["motion", "planar3", "--via", way, "--torque", "30,20,10", "--acceleration", "20", "--grid", "60"]
    done = CliRunner().invoke(app, [*map(str, words), "-o", str(out), "--animate", str(page)])
    assert done.exit_code == 0, done.output
    limits = MotionLimits(torque=[30.0, 20.0, 10.0], acceleration=20.0)
    motion = armdyn.time_optimal(PLANAR, BEND, limits=limits, grid=60)
    assert f"{motion.duration:.4g} s" in done.output
    assert "acceleration of joint" in done.output
    np.testing.assert_allclose(np.genfromtxt(out, delimiter=",", names=True)["t"], motion.t, rtol=1e-9)
    assert "Phase plane" in page.read_text()
    np.savetxt(way, BEND[:2], delimiter=",")
    words = ["motion", "planar3", "--via", way, "--torque", "30,20,10", "--velocity", "8", "--free", "1"]
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    straight = armdyn.time_optimal(PLANAR, BEND[:2], limits=MotionLimits(torque=[30.0, 20.0, 10.0], velocity=8.0))
    assert json.loads(done.output)["duration"] < straight.duration
    words = [
        "motion",
        "planar3",
        "--via",
        way,
        "--jerk",
        "200",
        "--torque-rate",
        "900",
        "--torque",
        "90",
        "--grid",
        "40",
    ]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert "jerk of joint" in done.output or "torque rate of joint" in done.output, done.output
    wrong = CliRunner().invoke(app, ["motion", "planar3", "--via", str(way), "--grip", "1,2"])
    assert wrong.exit_code == 1
    assert "--grip takes three numbers" in str(wrong.exception)


def test_it_can_be_saved(tmp_path):
    motion = armdyn.time_optimal(UR5, WAY, grid=50)
    motion.save(tmp_path / "motion.csv")
    table = np.genfromtxt(tmp_path / "motion.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["q1"], motion.q[:, 0])
    assert len(motion.animate()._repr_html_()) > 1000


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        (WAY[:1], {}, "at least two"),
        (WAY[[0, 0]], {}, "at least two different"),
        (WAY[:, :5], {}, r"\(k, 6\)"),
        (WAY * np.nan, {}, "waypoint 1 of the path is not finite"),
        (WAY + 100, {}, "outside the limits of shoulder_pan_joint"),
        (WAY, {"limits": MotionLimits(torque=[1, 2])}, r"\(6,\) or \(6, 2\)"),
        (WAY, {"limits": MotionLimits(velocity=0)}, "above 0"),
        (WAY, {"limits": MotionLimits(velocity=[1.0, 2.0])}, r"velocity limits are one number or \(6,\)"),
        (WAY, {"limits": MotionLimits(torque=np.inf)}, "nothing limits the acceleration"),
        (WAY, {"limits": MotionLimits(tool_speed=-1.0)}, "tool_speed"),
        (WAY, {"limits": {"torque": 3}}, "MotionLimits"),
        (WAY, {"limits": MotionLimits(jerk="fast")}, "jerk limits are one number or .6,., above 0; got 'fast'"),
        (WAY, {"limits": MotionLimits(jerk=9.0), "grid": 4}, "need a grid of at least 8 steps"),
        (WAY, {"limits": MotionLimits(torque=[110, 110, 0, 12, 12, 12])}, "torque limits of elbow_joint are both 0"),
        (WAY, {"limits": MotionLimits(jerk=0.0)}, "jerk limits are one number or .6,., above 0"),
        (WAY, {"limits": MotionLimits(torque_rate=[1.0, 2.0])}, "torque_rate limits are one number"),
        (WAY, {"payload": 60.0}, "cannot hold still.*torque of"),
        (WAY, {"grid": 1}, "grid"),
        (WAY, {"speeds": (-1, 0)}, "speeds"),
        (WAY, {"blend": -0.1}, "blend"),
        (lambda s, order=0: np.zeros((*np.shape(s), 6)), {}, "stands still"),
        (lambda s, order=0: np.zeros((*np.shape(s), 5)), {}, r"\(..., 6\)"),
        (np.stack([np.eye(4), np.eye(4)]), {}, "reach|different"),
    ],
)
def test_bad_input(path, options, message):
    with pytest.raises(InputError, match=message):
        armdyn.time_optimal(UR5, path, **options)


def test_a_floating_base_is_refused():
    with pytest.raises(InputError, match="fixed base"):
        armdyn.time_optimal(armdyn.load("ur5", floating=True), WAY)


def test_jerk_limits_of_a_free_mass():
    """Rest to rest: by jerk alone T = (32 L / J)^1/3; with an acceleration that is reached, a/J + √((a/J)² + 4 L/a)."""
    way = [[0.0], [1.0]]
    motion = armdyn.time_optimal(slide(), way, limits=MotionLimits(torque=100.0, jerk=5.0), grid=60)
    assert motion.duration == pytest.approx((32 / 5) ** (1 / 3), rel=3e-4)
    assert set(motion.binding) <= {"jerk of slide", "none"}
    jerk = np.diff(motion.qdd[:, 0]) / np.diff(motion.t)
    np.testing.assert_allclose(np.abs(jerk).max(), 5.0, rtol=1e-4)
    assert motion.qdd[0, 0] == motion.qdd[-1, 0] == 0
    both = armdyn.time_optimal(slide(), way, limits=MotionLimits(acceleration=1.0, jerk=5.0), grid=60)
    assert both.duration == pytest.approx(0.2 + np.sqrt(0.04 + 4), rel=2e-3)
    assert {"jerk of slide", "acceleration of slide"} <= set(both.binding)


def test_torques_change_as_slowly_as_asked():
    limits = MotionLimits(torque=[60.0, 40.0, 20.0], torque_rate=[400.0, 250.0, 100.0])
    motion = armdyn.time_optimal(PLANAR, BEND, limits=limits, payload=1.0, grid=80)
    arm, free = PLANAR.with_payload(1.0), armdyn.time_optimal(PLANAR, BEND, limits=replace(limits, torque_rate=None))
    tau = arm.inverse_dynamics(motion.q, motion.qd, motion.qdd, friction=True)
    rate = np.abs(np.diff(tau, axis=0)) / np.diff(motion.t)[:, None] / limits.torque_rate
    assert 0.999 < rate.max() < 1.001
    assert (np.abs(tau) / limits.torque).max() < 1.001
    assert motion.duration > free.duration * 1.05
    np.testing.assert_allclose(tau[0], arm.gravity_load(motion.q[0]), atol=1e-9)  # it begins at the weight
    used = np.maximum(rate.max(1), (np.abs(tau) / limits.torque).max(1)[:-1])
    assert np.mean(used > 0.98) > 0.9  # a limit is always reached
    loose = armdyn.time_optimal(PLANAR, BEND, limits=replace(limits, torque_rate=1e5), payload=1.0, grid=80)
    same = armdyn.time_optimal(PLANAR, BEND, limits=replace(limits, torque_rate=None), payload=1.0, grid=80)
    assert loose.duration == pytest.approx(same.duration, rel=0.04)  # u is continuous: every change takes a step


DOUBT = Uncertain(
    UR5, payload_mass=Uniform(0.0, 3.0), link_masses=[1.0, Uniform(0.95, 1.05), Uniform(0.9, 1.1), 1.0, 1.0, 1.0],
    coulomb=[Uniform(0.0, 5.0), *[2.0] * 5], viscous=[Uniform(0.0, 9.0), *[1.0] * 5],
)  # fmt: skip


def test_no_arm_in_the_box_exceeds_a_limit():
    """At the corners of the box it is proven; some samples let others exceed their limits."""
    limits = MotionLimits(torque=[110, 110, 80, 12, 12, 12])
    corners = DOUBT.corners()
    assert len(corners) == 32
    sure, nominal = (armdyn.time_optimal(arm, WAY, limits=limits) for arm in (corners, UR5))
    assert sure.arm is UR5
    assert sure.overrun <= 1e-3

    def used(motion, samples):
        tau = samples.evaluate("inverse_dynamics", motion.q, motion.qd, motion.qdd, friction=True).values
        return np.abs(tau / limits.torque)[:, 1:-1].max()  # at standstill dry friction has no side

    assert 0.98 < used(sure, corners) <= 1.001
    assert used(sure, DOUBT.sample(200)) <= 1.001
    assert used(nominal, DOUBT.sample(200)) > 1.05
    assert sure.duration > nominal.duration * 1.05  # what the doubt costs
    few = armdyn.time_optimal(DOUBT.sample(3), WAY, limits=limits)
    assert nominal.duration < few.duration < sure.duration
    by_arms = [UR5, *(DOUBT.sample(3).arm(k) for k in range(3))]
    assert armdyn.time_optimal(by_arms, WAY, limits=limits).duration == pytest.approx(few.duration, rel=3e-4)
    loaded = armdyn.time_optimal(corners, WAY, limits=limits, payload=1.0)
    assert loaded.duration > sure.duration


def test_boxes_whose_corners_prove_nothing():
    for given, message in (
        ({"link_coms": Uniform(-0.01, 0.01)}, "not linear in link_coms"),
        ({"link_masses": Normal(1.0, 0.1)}, "has no ends"),
        ({"link_masses": Uniform(0.9, 1.1), "friction": Uniform(0.9, 1.1)}, r"2\^12 corners, at most 2\^10"),
    ):
        with pytest.raises(InputError, match=message):
            Uncertain(UR5, **given).corners()


def test_power_and_torque_rate_together():
    """A limit of power is infinitely far at standstill, and infinitely steep."""
    limits = MotionLimits(torque=[30.0, 20.0, 10.0], power=20.0)
    free = armdyn.time_optimal(PLANAR, BEND, limits=limits, grid=30)
    slow = armdyn.time_optimal(PLANAR, BEND, limits=replace(limits, torque_rate=500.0), grid=30)
    assert free.duration < slow.duration < 1.15 * free.duration
    assert (slow.tau * slow.qd).sum(-1).max() == pytest.approx(20.0, rel=1e-3)


def test_a_free_path_is_faster_and_keeps_all_limits():
    limits = MotionLimits(torque=[30.0, 20.0, 10.0], velocity=8.0)
    start, end = np.array([-1.2, 0.3, 0.2]), np.array([1.6, -0.2, -0.3])
    straight = armdyn.time_optimal(PLANAR, [start, end], limits=limits)
    found = fastest_path(PLANAR, start, end, limits=limits, starts=1)
    assert found.duration < 0.95 * straight.duration
    np.testing.assert_allclose(found.q[[0, -1]], [start, end], atol=1e-12)
    tau = PLANAR.inverse_dynamics(found.q, found.qd, found.qdd, friction=True)
    assert (np.abs(tau) / limits.torque).max() <= 1.001
    # no neighbour of the path is faster: inner points moved at random, timed apart from the search
    knots = np.linspace(0, 1, 4)
    way = np.stack([np.interp(knots, found.s, q) for q in found.q.T], axis=1)
    around = np.random.default_rng(0).normal(size=(8, 2, 3)) * 0.03
    moved = [CubicSpline(knots, np.vstack([way[:1], way[1:3] + x, way[3:]]), bc_type="natural") for x in around]
    assert min(m.duration for m in armdyn.time_optimal(PLANAR, moved, limits=limits)) > found.duration * 0.998


def test_the_straight_line_of_two_slides_cannot_be_beaten():
    """Both accelerate alone, so that the slower one sets the time: 2 √(L / a)."""
    arm = armdyn.from_dh([{"kind": "prismatic", "mass": 1.0, "lower": -2, "upper": 2}] * 2, gravity=(0, 0, 0))
    limits = MotionLimits(acceleration=[1.0, 3.0])
    found = fastest_path(arm, [0.0, 0.0], [1.0, 1.0], limits=limits, starts=1, points=1)
    assert found.duration == pytest.approx(2.0, rel=2e-3)


def test_a_free_path_keeps_the_segments_apart():
    start, end = np.array([-1.0, 2.2, 1.9]), np.array([1.0, 2.0, 2.0])
    limits = MotionLimits(torque=[30.0, 20.0, 10.0], velocity=8.0)
    skeleton = Skeleton(PLANAR)
    near = fastest_path(PLANAR, start, end, limits=limits, starts=1)
    distance = 0.9 * closest(skeleton, np.stack([start, end]))
    apart = fastest_path(PLANAR, start, end, limits=limits, starts=1, clearance=distance)
    assert closest(skeleton, apart.q) >= distance * (1 - 1e-6) > closest(skeleton, near.q)
    with pytest.raises(InputError, match="are closer than"):
        fastest_path(PLANAR, start, end, limits=limits, clearance=2 * distance)
    for options, message in (
        ({"points": 0}, "inner points"), ({"starts": 0}, "searches"), ({"clearance": -1.0}, "clearance"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            fastest_path(PLANAR, start, end, limits=limits, **options)


def closest(skeleton, q):
    """The least distance between segments that are not neighbours."""
    points, start = skeleton.points(q), skeleton.parents
    pairs = [pair for pair, length in skeleton.separations.items() if length > 0]
    ends = ((points[:, start[a]], points[:, a], points[:, start[b]], points[:, b]) for a, b in pairs)
    return min(float(segment_distance(*each).min()) for each in ends)


KINDS = {
    "friction": {"limits": MotionLimits(torque=[110, 110, 80, 12, 12, 12])},
    "accelerations": {"limits": MotionLimits(acceleration=[9, 8, 7, 20, 20, 20]), "friction": False},
    "one-sided": {"limits": MotionLimits(torque=np.array([[-90, 60], [-140, 10], [-80, 30], *[[-12, 9]] * 3]))},
    "tool": {"limits": MotionLimits(tool_speed=0.7, tool_acceleration=4.0)},
    "grip, two payloads": {"limits": MotionLimits(grip=Grip(1.0, 40.0, 0.3, com=(0, 0, 0.1))), "payload": [0.5, 2.0]},
    "moving ends": {"speeds": (0.2, 0.1)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_machine_code_and_numpy_find_the_same_motion(kind, monkeypatch):
    """Before repairs, which differ: machine code looks at eight places inside a step, NumPy at ten."""
    path = np.random.default_rng(3).uniform(-1.2, 1.2, (4, 6))
    for name in ("REPAIRS", "REFINEMENTS"):
        monkeypatch.setattr(MODULE, name, 0)
    fast = armdyn.time_optimal(UR5, path, grid=60, **KINDS[kind])
    monkeypatch.setattr(MODULE, "_can_be_compiled", lambda problem: False)
    plain = armdyn.time_optimal(UR5, path, grid=60, **KINDS[kind])
    assert fast.duration == pytest.approx(plain.duration, rel=3e-4)
    np.testing.assert_allclose(fast.fastest, plain.fastest, rtol=0.02)
    assert np.median(np.abs(fast.speed - plain.speed) / (1 + plain.speed)) < 1e-4
    assert fast.overrun == pytest.approx(plain.overrun, rel=0.5)


@pytest.mark.parametrize("stribeck", [False, True])
@pytest.mark.parametrize("way", [BEND, BEND[::-1]])  # inertias along the path above and below 0
def test_friction_in_the_rows_and_from_the_kernel_are_the_same_motion(stribeck, way, monkeypatch):
    """Viscous and Coulomb friction are part of the rows; Stribeck's needs the arm's kernel at every speed."""
    rubbing = {"viscous": 4.0, "coulomb": 6.0} | ({"static": 9.0, "stribeck": 0.3} if stribeck else {})
    link = {"a": 0.5, "mass": 3.0, "com": (-0.2, 0, 0), "inertia": (0.01, 0.05, 0.05, 0, 0, 0), **rubbing}
    rows = [{"name": name, **link} for name in ("one", "two", "three")]
    arm, limits = armdyn.from_dh(rows, gravity=(0, -9.81, 0)), MotionLimits(torque=[90.0, 60.0, 40.0])
    seen = []
    original = constraints._affine
    monkeypatch.setattr(constraints, "_affine", lambda *given: seen.append(original(*given)) or seen[-1])
    found = armdyn.time_optimal(arm, way, limits=limits)
    assert set(seen) == {not stribeck}
    monkeypatch.setattr(constraints, "_affine", lambda *_: False)
    called = armdyn.time_optimal(arm, way, limits=limits)
    assert found.duration == pytest.approx(called.duration, rel=1e-6)
    tau, _ = torques_inside(arm, found, way, friction=True)
    assert (np.abs(tau) / limits.torque).max() <= 1.002
    free = armdyn.time_optimal(arm, way, limits=limits, friction=False)
    assert abs(found.duration / free.duration - 1) > 0.01  # downwards it helps to brake

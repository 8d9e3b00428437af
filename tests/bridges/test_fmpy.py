"""FMUs in FMPy: valid, and both interfaces move as armdyn's simulator and its kernels say."""

from __future__ import annotations

import dataclasses
import shutil
from fractions import Fraction

import numpy as np
import pytest

import armdyn
from armdyn.arm import Arm
from armdyn.chain import JointForces
from armdyn.deployment import fmu_vectors
from armdyn.deployment.fmu_model import FmuModel
from armdyn.simulation import Sampled
from random_trees import TreeKind, random_tree

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")
validate_fmu = pytest.importorskip("fmpy.validation").validate_fmu

DURATION, INTERVAL = 0.4, 0.01


def tree() -> Arm:
    chain = random_tree(TreeKind(joints=6, fork=0.6, mimic=0.5), seed=3)
    assert chain.has_mimics
    assert not chain.serial
    return Arm("tree", chain)


ARMS = {"panda": lambda: armdyn.load("panda"), "prismatic": lambda: armdyn.load("stanford"), "tree": tree}


def without_dry_friction(arm: Arm) -> Arm:
    joints = tuple(dataclasses.replace(joint, coulomb=0, static=0) for joint in arm.given.joints)
    return Arm(arm.name, dataclasses.replace(arm.given, joints=joints))


def run(where, arm, model, kind, start, torque, **options):
    """(times, 3, n) positions, velocities and accelerations under constant torques, without stops, by FMPy."""
    values = {"stops.active": 0.0, **start} if model.stops else dict(start)
    for name, tau in zip(model.names, torque, strict=True):
        values[f"{name}.tau"] = float(tau)
    outputs = [f"{name}.{key}" for key in ("q", "qd", "qdd") for name in model.names]
    out = fmpy.simulate_fmu(
        str(where / f"{arm.name}.fmu"),
        fmi_type=kind,
        start_values=values,
        stop_time=DURATION,
        output_interval=INTERVAL,
        output=outputs,
        **options,
    )
    columns = np.array([out[name] for name in outputs]).T
    return out["time"], columns.reshape(len(columns), 3, arm.n)


def deployed(arm, tmp_path, **options):
    armdyn.deploy(arm, tmp_path, "fmu", **options)
    assert validate_fmu(str(tmp_path / f"{arm.name}.fmu")) == []
    return FmuModel(arm, payload=len(arm.chain.tips) == 1, friction=True)


def beginning(model, rng):
    q = model.arm.rest + rng.uniform(-0.5, 0.5, model.n)
    qd = rng.uniform(-0.5, 0.5, model.n)
    start = {f"{name}.q": float(x) for name, x in zip(model.names, q, strict=True)}
    start |= {f"{name}.qd": float(x) for name, x in zip(model.names, qd, strict=True)}
    return q, qd, start


@pytest.mark.parametrize("name", list(ARMS))
def test_both_interfaces_move_as_the_simulator_does(name, tmp_path):
    """Without dry friction, whose events have tests of their own."""
    arm, rng = without_dry_friction(ARMS[name]()), np.random.default_rng(4)
    model = deployed(arm, tmp_path)
    q, qd, start = beginning(model, rng)
    tau = rng.uniform(-2, 2, arm.n)
    held = arm
    if model.payload:
        held = arm.with_payload(1.2, (0.01, 0.0, 0.08), (0.004, 0.005, 0.002, 0.0001, 0.0, 0.0))
        start |= {"payload.mass": 1.2, "payload.com.x": 0.01, "payload.com.z": 0.08}
        start |= {"payload.inertia.xx": 0.004, "payload.inertia.yy": 0.005, "payload.inertia.zz": 0.002}
        start |= {"payload.inertia.xy": 0.0001}
    times = np.arange(round(DURATION / INTERVAL) + 1) * INTERVAL
    options = {"torque": tau, "times": times, "limits": False}
    same = armdyn.simulate(held, q, qd, method="RK4", step=model.step, **options)
    found, stepped = run(tmp_path, arm, model, "CoSimulation", start, tau)
    assert np.abs(found - times).max() < 1e-12
    scale = max(1, np.abs(same.q).max(), np.abs(same.qd).max())
    assert np.abs(stepped[:, 0] - same.q).max() < 1e-9 * scale
    assert np.abs(stepped[:, 1] - same.qd).max() < 1e-8 * scale
    exact = armdyn.simulate(held, q, qd, method="DOP853", rtol=1e-11, atol=1e-12, **options)
    _, integrated = run(tmp_path, arm, model, "ModelExchange", start, tau, relative_tolerance=1e-10)
    assert np.abs(integrated[:, 0] - exact.q).max() < 1e-6 * scale
    assert np.abs(integrated[:, 1] - exact.qd).max() < 1e-5 * scale
    asked = held.forward_dynamics(integrated[:, 0], integrated[:, 1], tau - held.friction(integrated[:, 1]))
    assert np.abs(integrated[:, 2] - asked).max() < 1e-9 * np.abs(asked).max()


def changed(name, **fields) -> Arm:
    """An arm with other friction: numbers, or functions of the joint."""
    arm = armdyn.load(name)
    joints = [
        dataclasses.replace(joint, **{key: x(joint) if callable(x) else x for key, x in fields.items()})
        for joint in arm.given.joints
    ]
    return Arm(name, dataclasses.replace(arm.given, joints=tuple(joints)))


LOSING = JointForces(load_friction=Fraction(1, 9))
DRY = {
    "coulomb": lambda: armdyn.load("puma560"),
    "stribeck": lambda: changed("puma560", static=lambda j: 1.5 * float(j.coulomb) + 0.1, stribeck=0.05),
    "static": lambda: changed("puma560", static=lambda j: 1.5 * float(j.coulomb) + 0.1),
    "with the load": lambda: changed("puma560", forces=LOSING),
    "with the load alone": lambda: changed("puma560", forces=LOSING, coulomb=0),
}


@pytest.mark.parametrize("kind", list(DRY))
def test_joints_stick_and_slide_as_in_the_simulator(kind, tmp_path):
    """Torques to and fro that hold joints, break them away and turn them round: events in both interfaces."""
    arm = DRY[kind]()
    model = deployed(arm, tmp_path)
    times = np.arange(round(1 / INTERVAL) + 1) * INTERVAL
    most = np.array([float(joint.breakaway) + 0.3 for joint in arm.joints])
    tau = arm.gravity_load(arm.rest) + 2.2 * most * np.sin(np.outer(times, np.linspace(8, 25, arm.n)))
    torque = Sampled(times, tau, between="held")
    same = armdyn.simulate(arm, torque=torque, times=times, method="RK4", step=model.step, limits=False)
    exact = armdyn.simulate(arm, torque=torque, times=times, method="DOP853", limits=False)
    assert same.status == exact.status == "finished"
    at_rest = same.qd == 0
    assert at_rest[1:].any(axis=0).sum() > 2, "joints stick for a while"
    assert (np.diff(np.sign(same.qd), axis=0) != 0).sum() > 20, "they come to rest, turn round and break away"
    stepped = driven(tmp_path, arm, model, "CoSimulation", times, tau)
    assert np.abs(stepped[:, 0] - same.q).max() < 1e-12
    assert np.abs(stepped[:, 1] - same.qd).max() < 1e-11
    assert np.array_equal(stepped[1:, 2] == 0, at_rest[1:])
    # Two rows at one time are an event: FMPy does not hold its inputs otherwise.
    jumps = np.repeat(times, 2)[1:], np.repeat(tau, 2, axis=0)[:-1]
    integrated = driven(tmp_path, arm, model, "ModelExchange", *jumps, relative_tolerance=1e-9)
    assert np.abs(integrated[:, 0] - exact.q).max() < 1e-6
    assert np.abs(integrated[:, 1] - exact.qd).max() < 1e-6
    assert np.array_equal(integrated[:, 1] == 0, exact.qd == 0)


def driven(where, arm, model, kind, times, tau, **options):
    """(times, 3, n): positions, velocities and modes under torques from a table, by FMPy."""
    table = np.zeros(len(times), dtype=[("time", float), *((f"{name}.tau", float) for name in model.names)])
    table["time"] = times
    for k, name in enumerate(model.names):
        table[f"{name}.tau"] = tau[:, k]
    outputs = [f"{name}.{key}" for key in ("q", "qd", "mode") for name in model.names]
    out = fmpy.simulate_fmu(
        str(where / f"{arm.name}.fmu"), fmi_type=kind, start_values={"stops.active": 0.0}, stop_time=float(times[-1]),
        output_interval=INTERVAL, output=outputs, input=table, record_events=False, **options,
    )  # fmt: skip
    return np.array([out[name] for name in outputs]).T.reshape(len(out), 3, arm.n)


def test_friction_is_a_parameter(tmp_path):
    """A Stribeck curve given when the simulation begins, on an arm that has none."""
    arm, curved = armdyn.load("puma560"), DRY["stribeck"]()
    model = deployed(arm, tmp_path)
    q, qd, start = beginning(model, np.random.default_rng(1))
    start |= {f"{name}.static": float(joint.static) for name, joint in zip(model.names, curved.joints, strict=True)}
    start |= {f"{name}.stribeck": 0.05 for name in model.names}
    start |= {"solver.step": model.step / 2}
    tau = np.array([10.0, -40.0, 5.0, 1.0, -1.0, 0.5])
    times, stepped = run(tmp_path, arm, model, "CoSimulation", start, tau)
    options = {"torque": tau, "times": times, "step": model.step / 2, "limits": False, "method": "RK4"}
    assert np.abs(stepped[:, 0] - armdyn.simulate(curved, q, qd, **options).q).max() < 1e-12
    assert np.abs(stepped[:, 0] - armdyn.simulate(arm, q, qd, **options).q).max() > 1e-3


@pytest.mark.parametrize("restitution", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["dry", "smooth", "tree"])
def test_joints_meet_their_stops_as_in_the_simulator(kind, restitution, tmp_path):
    """Several joints at their stops at once, rebounds that end, impacts that go through the arm."""
    arm = tree() if kind == "tree" else changed("puma560", **({} if kind == "dry" else {"coulomb": 0}))
    joints = [
        joint
        if joint.mimic
        else dataclasses.replace(joint, limit=dataclasses.replace(joint.limit, lower=-0.3, upper=0.3))
        for joint in arm.given.joints
    ]
    arm = Arm(arm.name, dataclasses.replace(arm.given, joints=tuple(joints)))
    model, rng = deployed(arm, tmp_path), np.random.default_rng(0)
    q, qd, tau = rng.uniform(-0.25, 0.25, arm.n), rng.uniform(-3, 3, arm.n), rng.uniform(-5, 5, arm.n)
    start = {f"{name}.q": float(x) for name, x in zip(model.names, q, strict=True)}
    start |= {f"{name}.qd": float(x) for name, x in zip(model.names, qd, strict=True)}
    start |= {"stops.active": 1.0, "stops.restitution": restitution}
    times, stepped = run(tmp_path, arm, model, "CoSimulation", start, tau)
    options = {"torque": tau, "times": times, "limits": restitution, "method": "RK4"}
    same = armdyn.simulate(arm, q, qd, step=model.step, **options)
    assert (np.abs(same.q) >= 0.3).any() or restitution
    assert np.abs(stepped[:, 0] - same.q).max() < 1e-9
    assert np.abs(stepped[:, 0]).max() <= 0.3
    _, integrated = run(
        tmp_path, arm, model, "ModelExchange", start, tau, relative_tolerance=1e-9, record_events=False, timeout=20
    )
    exact = armdyn.simulate(arm, q, qd, step=1e-5, **options)
    assert np.abs(integrated[:, 0] - exact.q).max() < 1e-4
    assert np.abs(integrated[:, 0]).max() <= 0.3 + 1e-6


def test_a_start_beyond_a_stop_is_refused(tmp_path):
    arm = armdyn.load("puma560")
    model = deployed(arm, tmp_path)
    start = {"stops.active": 1.0, f"{model.names[0]}.q": 10.0}
    with pytest.raises(fmpy.fmi1.FMICallException):
        run(tmp_path, arm, model, "CoSimulation", start, np.zeros(arm.n))


def test_a_payload_is_taken_up_while_the_simulation_runs(tmp_path):
    """Two instances side by side; one of them takes up a body after half of the time, the other stays as it is."""
    from fmpy.fmi3 import FMU3Slave

    arm = without_dry_friction(armdyn.load("ur5"))
    model = deployed(arm, tmp_path)
    description = fmpy.read_model_description(str(tmp_path / "ur5.fmu"))
    where = fmpy.extract(str(tmp_path / "ur5.fmu"), str(tmp_path / "extracted"))
    at = {v.name: v.valueReference for v in description.modelVariables}
    states = [at[f"{name}.{key}"] for key in ("q", "qd") for name in model.names]
    q, qd, start = beginning(model, np.random.default_rng(2))
    ends = []
    for mass in (0.0, 2.0):
        one = FMU3Slave(
            guid=description.guid,
            unzipDirectory=where,
            modelIdentifier="ur5",
            instanceName=f"with {mass} kg",
        )
        one.instantiate()
        one.setFloat64([at[name] for name in start], list(start.values()))
        one.enterInitializationMode()
        one.exitInitializationMode()
        one.doStep(0.0, 0.1)
        one.setFloat64([at["payload.mass"], at["payload.com.z"]], [mass, 0.1])
        one.doStep(0.1, 0.1)
        ends.append(np.array(one.getFloat64(states)).reshape(2, arm.n))
        one.terminate()
        one.freeInstance()
    half = fmu_vectors.motion(model, arm, q, qd, np.zeros(arm.n), 0.1, 1)
    for end, held in zip(ends, (arm, arm.with_payload(2.0, (0, 0, 0.1))), strict=True):
        assert np.abs(end - fmu_vectors.motion(model, held, *half, np.zeros(arm.n), 0.1, 1)).max() < 1e-9
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_fmpy_builds_and_runs_the_sources(tmp_path):
    """The sources alone are an FMU too. (FMPy leaves its temporary folder to the garbage collector, which warns.)"""
    if shutil.which("cmake") is None:
        pytest.skip("no CMake on this machine")
    arm = armdyn.load("planar3")
    armdyn.deploy(arm, tmp_path, "fmu")
    folder = tmp_path / "extracted"
    fmpy.extract(str(tmp_path / "planar3.fmu"), str(folder))
    shutil.rmtree(folder / "binaries")
    from fmpy.build import build_platform_binary

    build_platform_binary(str(folder))
    out = fmpy.simulate_fmu(str(folder), stop_time=0.1)
    assert len(out) > 1

"""FMUs in FMPy: valid, and both interfaces move as armdyn's simulator and its kernels say."""

from __future__ import annotations

import dataclasses
import shutil

import numpy as np
import pytest

import armdyn
from armdyn.arm import Arm
from armdyn.deployment import fmu_vectors
from armdyn.deployment.fmu_model import Model
from armdyn.simulation.programs import frictions
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
    """(times, n) positions and velocities under constant torques, by FMPy."""
    values = dict(start)
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
    return Model(arm, payload=len(arm.chain.tips) == 1, friction=True)


def beginning(model, rng):
    q = model.arm.rest + rng.uniform(-0.5, 0.5, model.n)
    qd = rng.uniform(-0.5, 0.5, model.n)
    start = {f"{name}.q": float(x) for name, x in zip(model.names, q, strict=True)}
    start |= {f"{name}.qd": float(x) for name, x in zip(model.names, qd, strict=True)}
    return q, qd, start


@pytest.mark.parametrize("name", list(ARMS))
def test_both_interfaces_move_as_the_simulator_does(name, tmp_path):
    """Without dry friction, where the simulator lets joints stick and the FMU does not."""
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


def test_dry_friction_changes_its_sign_smoothly(tmp_path):
    """The Puma's Coulomb friction, and a Stribeck curve given as parameters: against RK4 over the kernels."""
    arm = armdyn.load("puma560")
    joints = [dataclasses.replace(j, static=1.5 * float(j.coulomb), stribeck=0.05) for j in arm.given.joints]
    curved = Arm(arm.name, dataclasses.replace(arm.given, joints=tuple(joints)))
    model = deployed(arm, tmp_path)
    assert any(joint.coulomb > 0 for joint in arm.joints)
    q, qd, start = beginning(model, np.random.default_rng(1))
    tau = np.array([10.0, -40.0, 5.0, 1.0, -1.0, 0.5])
    start |= {f"{name}.static": float(joint.static) for name, joint in zip(model.names, joints, strict=True)}
    start |= {f"{name}.stribeck": 0.05 for name in model.names}
    smoothing, step = 2 * model.smoothing, model.step / 2
    start |= {"friction.velocity": smoothing, "solver.step": step}
    _, stepped = run(tmp_path, arm, model, "CoSimulation", start, tau)
    judge = _Judge(curved, smoothing, step)
    end = fmu_vectors.motion(judge, curved, q, qd, tau, INTERVAL, round(DURATION / INTERVAL))
    assert np.abs(stepped[-1, 0] - end[0]).max() < 1e-8
    assert np.abs(stepped[-1, 1] - end[1]).max() < 1e-7
    assert np.abs(stepped[-1, 1]).min() < 0.05  # something was slowed down, so the sign mattered


class _Judge:
    """What `fmu_vectors.motion` asks of a model, with other settings than the arm's own."""

    def __init__(self, arm, smoothing, step):
        self.n, self.smoothing, self.step = arm.n, smoothing, step
        self.along = frictions(arm.chain)


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


def test_a_sticking_joint_creeps_slowly(tmp_path):
    """What the smooth sign costs: a force within dry friction moves the joint, slower than the smoothing speed."""
    arm = armdyn.load("puma560")
    model = deployed(arm, tmp_path)
    load = arm.gravity_load(arm.rest)
    tau = load + 0.2 * np.array([float(joint.coulomb) for joint in arm.joints])
    _, stepped = run(tmp_path, arm, model, "CoSimulation", {}, tau)
    assert np.abs(stepped[:, 1]).max() < model.smoothing
    stuck = armdyn.simulate(arm, arm.rest, torque=tau, duration=DURATION)
    assert np.abs(stepped[-1, 0] - stuck.q[-1]).max() < model.smoothing * DURATION


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

"""Servos from commands and positions: `identify_servo` beside MuJoCo's system identification toolbox, on the same logs.

A planar arm of three joints under position servos is simulated by `armdyn.simulate` (10 s at 100 Hz, an encoder of 12
bits, noise of 0.2 mrad, a delay of 10 ms). Both get the arm's links as they are. MuJoCo gets the true delay, which its
model does not have, and starts from half to twice the true gains, dampings, rotor inertias and friction; armdyn gets
neither. Printed: the predicted positions of another motion over their noise, and the processor time of each.
Needs `mujoco[sysid]`. Run: python benchmarks/bench_servo_mujoco.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import armdyn

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from servo_logs import COUNT, commands, record, with_servos

NOISE, STEP, DELAY = 2e-4, 2e-3, 0.01
TRUE = {
    "kp": [300.0, 60.0, 12.0],
    "kd": [18.0, 4.0, 0.8],
    "armature": [0.1, 0.03, 0.01],
    "viscous": [2.0, 0.3, 0.1],
    "coulomb": [3.0, 0.8, 0.15],
}
JOINT = {"armature": "armature", "coulomb": "frictionloss"}


def by_mujoco(true: armdyn.Arm, log: armdyn.Log, other: armdyn.Log) -> tuple[np.ndarray, float]:
    """Errors of the predicted positions (n,), and the seconds of the fit."""
    import mujoco
    from mujoco import sysid

    with tempfile.TemporaryDirectory() as folder:
        true.to_mjcf(Path(folder) / "arm.xml")
        spec = mujoco.MjSpec.from_file(str(Path(folder) / "arm.xml"))
    spec.option.timestep, spec.option.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for joint in true.joints:
        sensor = spec.add_sensor()
        sensor.name, sensor.type = f"{joint.name}_pos", mujoco.mjtSensor.mjSENS_JOINTPOS
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_JOINT, joint.name
    model = spec.compile()

    def sequence(given: armdyn.Log) -> tuple:
        q, command = given.array("q"), given.array("command")
        times = np.arange(0, (len(q) - 1) * given.period, STEP)
        held = command[np.clip(((times - DELAY) / given.period + 1e-6).astype(int), 0, None)]
        state = sysid.create_initial_state(model, command[0], np.zeros(true.n), np.zeros(0))
        at = np.arange(len(q)) * given.period
        return state, sysid.TimeSeries(times, held), sysid.TimeSeries.from_names(at, q, model)

    def setter(name: str, i: int):
        def set_it(spec, parameter) -> None:
            value = float(np.exp(parameter.value[0]))
            if name == "viscous":
                spec.joint(true.joints[i].name).damping[0] = value
            elif name in JOINT:
                setattr(spec.joint(true.joints[i].name), JOINT[name], value)
            elif name == "kp":
                spec.actuators[i].gainprm[0], spec.actuators[i].biasprm[1] = value, -value
            else:
                spec.actuators[i].biasprm[2] = -value

        return set_it

    rng, parameters = np.random.default_rng(0), sysid.ParameterDict()
    for name, values in TRUE.items():
        for i, value in enumerate(values):
            start, far = np.log(value) + rng.uniform(-0.7, 0.7), 3.0
            made = sysid.Parameter(f"{name}{i}", start, start - far, start + far, modifier=setter(name, i))
            parameters.add(made)
    fitted = sysid.build_residual_fn(models_sequences=[sysid.ModelSequences("arm", spec, "log", *sequence(log))])
    begun = time.process_time()
    found, _ = sysid.optimize(initial_params=parameters, residual_fn=fitted, optimizer="mujoco", verbose=False)
    spent = time.process_time() - begun
    judged = spec.copy()
    for one in found.values():
        one.apply_modifier(judged)
    model = judged.compile()
    state, control, _ = sequence(other)
    (run,) = sysid.sysid_rollout(model, mujoco.MjData(model), control, state)
    q = other.array("q")
    at = np.arange(len(q) - 1) * other.period
    ahead = np.stack([np.interp(at, run.sensordata.times, column) for column in run.sensordata.data.T], 1)
    return np.sqrt(((ahead[: len(at)] - q[: len(at)]) ** 2).mean(0)), spent


def main() -> None:
    arm = armdyn.load("planar3")
    true = with_servos(arm, TRUE["kp"], TRUE["kd"], DELAY, TRUE["armature"], TRUE["viscous"], TRUE["coulomb"])
    logs = []
    for seed, seconds in ((1, 10.0), (2, 5.0)):
        t, wanted = commands(arm.n, seconds, 100.0, np.random.default_rng(seed))
        logs.append(record(true, t, wanted, noise=NOISE, seed=seed))
    noise = float(np.hypot(NOISE, COUNT / np.sqrt(12)))
    armdyn.identify_servo(arm, logs[0])  # compiles
    begun = time.process_time()
    estimate = armdyn.identify_servo(arm, logs[0])
    spent = time.process_time() - begun
    print(f"armdyn: other motions {np.max(estimate.errors(logs[1])) / noise:.2f} times the noise, {spent:.1f} s")
    errors, spent = by_mujoco(true, *logs)
    print(f"mujoco.sysid: other motions {np.max(errors) / noise:.2f} times the noise, {spent:.1f} s")


if __name__ == "__main__":
    main()

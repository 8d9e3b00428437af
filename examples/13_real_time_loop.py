"""Hardware in the loop: the simulated arm keeps to the wall clock, like a robot behind a fieldbus."""

import time

import numpy as np

import armdyn
from armdyn.simulation import Actuators

arm = armdyn.load("ur5")
posture = np.array([0.0, -1.6, 1.2, -1.0, -1.5, 0.0])
robot = armdyn.Simulator(arm, actuators=Actuators(period=2e-3, delay=2e-3, encoder=1e-5))
robot.reset(posture + 0.1)

began, late = time.perf_counter(), 0
while robot.t < 0.5:
    q, qd = robot.measured  # what your controller would read
    tau = arm.gravity_load(q) + arm.inertia_matrix(q) @ (100.0 * (posture - q) - 20.0 * qd)
    robot.step(tau)  # one control period
    ahead = robot.t - (time.perf_counter() - began)
    late += ahead < 0
    time.sleep(max(ahead, 0.0))

print(f"{robot.t:.3f} s in {time.perf_counter() - began:.3f} s of wall-clock time, {late} of 250 periods late")
assert robot.status == "running"
assert np.abs(robot.q - posture).max() < 0.05

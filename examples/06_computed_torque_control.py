"""Computed-torque control along a motion, with the right model and with a wrong one."""

import numpy as np

import armdyn
from armdyn.simulation import ComputedTorque, quintic

arm = armdyn.load("ur5")
home, goal = np.array([0.0, -1.6, 1.2, -1.0, -1.5, 0.0]), np.array([1.0, -0.8, 0.6, -1.8, -1.0, 0.5])
motion = quintic(home, goal, duration=2.0)

# The controller has the exact model: from an initial error of 0.05 rad every error decays as its gains prescribe.
control = ComputedTorque(motion, kp=100.0, kd=20.0)
start = home + 0.05
run = armdyn.simulate(arm, start, torque=control, duration=2.0)
error = run.q - motion(run.t)[0]
expected = 0.05 * (1 + 10 * run.t) * np.exp(-10 * run.t)  # critically damped, 10 rad/s
print(f"right model: error after 1 s {np.abs(error[1000]).max():.1e} rad, {abs(expected[1000]):.1e} expected")
assert np.allclose(error, expected[:, None], atol=1e-6)

# The same controller, written as a plain function, on an arm with a payload of 2 kg that is not in its model.
loaded = arm.with_payload(2.0, com=(0, 0, 0.05))


def law(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    wanted, speed, acceleration = motion(t)
    return arm.inverse_dynamics(q, qd, acceleration + 100 * (wanted - q) + 20 * (speed - qd))


run = armdyn.simulate(loaded, home, torque=law, duration=2.0, step=4e-3)
lag = np.abs(run.q - motion(run.t)[0]).max(axis=0)
print("2 kg unknown: largest error of each joint [rad]", np.round(lag, 4))
assert lag.max() > 1e-3

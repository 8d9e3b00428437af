"""Estimate the mass and centre of mass of an unknown payload while the arm moves, and use them in the controller."""

import numpy as np

import armdyn
from armdyn.simulation import Actuators, Digital, fourier

arm = armdyn.load("ur5")
posture = np.array([0.0, -1.6, 1.2, -1.0, -1.5, 0.0])
size = np.array([0.2, 0.2, 0.2, 0.4, 0.4, 0.4]) * np.random.default_rng(1).normal(size=(2, 6))
motion = fourier(posture, size, 0 * size, frequency=0.3)
robot = Actuators(period=2e-3, delay=2e-3, position_noise=1e-5, velocity_noise=1e-3, torque_noise=0.1)

# The robot holds 1.5 kg; the controller and the estimator use the model without a payload.
mass, com = 1.5, np.array([0.03, -0.02, 0.05])
loaded = arm.with_payload(mass, com)
control = armdyn.controller(arm, "computed_torque")
weigh = armdyn.controller(arm, "payload_estimator", deviation=[1, 1, 1, 0.3, 0.3, 0.3])
q, qd, _ = motion(0.0)
blind = armdyn.simulate(
    loaded, q, qd, torque=Digital(control, motion, observers=[weigh]), duration=2.0, step=2e-3, actuators=robot
)
found = blind.signals["payload_estimator"]
for seconds in (0.2, 0.5, 1.0, 1.9):
    k = np.searchsorted(found["t"], seconds)
    m, sigma, c = found["payload_mass"][k], found["deviations"][k, 0], 1000 * found["payload_com"][k]
    print(f"after {seconds} s: {m:.3f} ± {sigma:.3f} kg at ({c[0]:.0f}, {c[1]:.0f}, {c[2]:.0f}) mm")
assert abs(found["payload_mass"][-1] - mass) < 0.03
assert np.abs(found["payload_com"][-1] - com).max() < 0.01

# With the estimated payload the same controller follows the motion.
held = {name: found[name][-1] for name in ("payload_mass", "payload_com", "payload_inertia")}
told = armdyn.controller(arm, "computed_torque", **held)
seeing = armdyn.simulate(loaded, q, qd, torque=Digital(told, motion), duration=1.0, step=2e-3, actuators=robot)
errors = [np.abs(run.q - motion(run.t)[0])[:500].max() for run in (blind, seeing)]
print(f"largest error of a joint: {errors[0]:.4f} rad before, {errors[1]:.4f} rad after")
assert errors[1] < 0.3 * errors[0]

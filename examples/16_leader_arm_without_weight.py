"""A leader arm that weighs nothing: gravity compensation over a servo bus, as for teleoperation with LeRobot arms.

The bus counts steps and takes currents in mA: replace `Bus` by your motors' SDK. Here the motors are simulated.
"""

import numpy as np

import armdyn
from armdyn.simulation import Actuators

STEPS = 4096  # of an encoder per turn
TORQUE = 1.8e-3  # N m per mA at the joint, from the motors' data sheet
SIGN = np.array([1, -1, 1])  # how the motors are mounted: positive steps against positive angles
MOST = 1500.0  # mA


class Bus:
    """Motors on a serial bus: an arm with little friction, a control period of 10 ms and a delay of 5 ms."""

    def __init__(self, arm: armdyn.Arm, start: list[float]) -> None:
        self.robot = armdyn.Simulator(arm, actuators=Actuators(period=10e-3, delay=5e-3, encoder=2 * np.pi / STEPS))
        self.robot.reset(start)

    def read_positions(self) -> np.ndarray:
        """Steps."""
        return np.round(SIGN * self.robot.measured[0] * STEPS / (2 * np.pi))

    def write_currents(self, milliamperes: np.ndarray) -> None:
        """Held for one period."""
        self.robot.step(SIGN * milliamperes * TORQUE)


# Your arm: armdyn.load("so101.urdf"). Here: a turning base and two links of 120 mm, half a kilogram.
friction = {"viscous": 0.01, "coulomb": 0.02, "rotor_inertia": 0.002}
link = {"mass": 0.25, "com": (0.06, 0, 0), "inertia": (2e-5, 3e-4, 3e-4, 0, 0, 0), **friction}
arm = armdyn.from_dh(
    [
        {"mass": 0.1, "inertia": (1e-4, 1e-4, 1e-4, 0, 0, 0), **friction},
        {"alpha": np.pi / 2, **link},
        {"a": 0.12, **link},
    ],
    convention="modified",
    name="leader",
)
start = [0.3, 0.4, -0.6]
moved = {}
for compensated in (True, False):
    bus = Bus(arm, start)
    for _ in range(100):  # one second
        q = SIGN * bus.read_positions() * 2 * np.pi / STEPS
        current = SIGN * arm.gravity_load(q) / TORQUE * compensated
        bus.write_currents(np.clip(current, -MOST, MOST))
    moved[compensated] = np.degrees(np.abs(bus.robot.q - start).max())

print(f"after one second: {moved[True]:.2f}° away with gravity compensation, {moved[False]:.0f}° without")
assert moved[True] < 0.5
assert moved[False] > 30

"""Pick and place of a UR5 with 3 kg: as fast as the motors allow, beside slowing down until the torques fit.

The usual way sets limits of speed and acceleration, which know nothing of loads, and then stretches the whole motion
until no torque is exceeded anywhere. The time-optimal motion uses the torques themselves, at every place of its own.

Run: python examples/18_pick_and_place.py
"""

import numpy as np

import armdyn
from armdyn.motion import Grip, MotionLimits, TimeOptimal

arm = armdyn.load("ur5")
mass = 3.0
loaded = arm.with_payload(mass)
# Up from the table, over, and down again: rad
way = np.array(
    [
        [-0.6, -1.00, 1.75, -2.32, -1.57, 0.0],
        [-0.4, -1.35, 1.70, -1.92, -1.57, 0.2],
        [0.8, -1.40, 1.65, -1.82, -1.57, 1.0],
        [1.0, -1.00, 1.75, -2.32, -1.57, 1.2],
    ]
)

fastest = armdyn.time_optimal(arm, way, payload=mass)

print(f"as fast as the motors allow           {fastest.duration:.2f} s, limited by")
for name in sorted(set(fastest.binding) - {"none"}):
    print(f"    {name}")


def slowed(planned: TimeOptimal) -> float:
    """By how much the whole motion has to be stretched in time, by bisection."""

    def fits(factor: float) -> bool:
        qd, qdd = planned.qd / factor, planned.qdd / factor**2
        tau = loaded.inverse_dynamics(planned.q, qd, qdd, friction=True)
        return bool((np.abs(tau) <= arm.effort_limits).all())

    low, high = (1.0, 1.0) if fits(1.0) else (1.0, 20.0)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


for acceleration in (5.0, 10.0, 20.0, 40.0):
    limits = MotionLimits(torque=np.full(6, 1e6), acceleration=acceleration)  # no limits of torque
    planned = armdyn.time_optimal(arm, way, limits=limits)
    factor = slowed(planned)
    print(f"{acceleration:4.0f} rad/s², slowed to {1 / factor:4.0%} of its speed: {planned.duration * factor:.2f} s")

# What it carries must not slip either, and torques that change slowly are gentle to the gears.
held = armdyn.time_optimal(arm, way, payload=mass, limits=MotionLimits(grip=Grip(mass, force=60.0, friction=0.4)))
gentle = armdyn.time_optimal(arm, way, payload=mass, limits=MotionLimits(torque_rate=2000.0), grid=80)
print(f"held by a grip of 60 N                {held.duration:.2f} s")
print(f"torques change by at most 2000 N m/s  {gentle.duration:.2f} s")

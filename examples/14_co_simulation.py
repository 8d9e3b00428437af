"""Co-simulation: another solver (a motor with electrical dynamics) and the arm exchange values at fixed times."""

import numpy as np

import armdyn

arm = armdyn.load("planar3")
resistance, inductance, constant = 0.5, 2e-3, 1.2  # ohm, henry, N m/A
target = np.array([0.4, -0.3, 0.2])


def motors(current, qd, voltage, seconds):
    """The currents later, with the speeds as they were at the last exchange: exact for this linear circuit."""
    final = (voltage - constant * qd) / resistance
    return final + (current - final) * np.exp(-resistance / inductance * seconds)


def run(exchange):
    """The posture after 1 s, with an exchange so often; a step that does not converge is taken back and halved."""
    sim, current = armdyn.Simulator(arm, step=exchange / 4), np.zeros(3)
    while sim.t < 1.0 - 1e-9:
        saved = sim.save()
        voltage = 8.0 * (target - sim.q) - 0.2 * sim.qd + resistance / constant * np.asarray(arm.gravity_load(sim.q))
        speeds = sim.qd
        for _ in range(3):  # repeat the exchange with the speed in its middle, as a master with rollback does
            later = motors(current, speeds, voltage, exchange)
            sim.restore(saved)
            before = sim.qd
            sim.step(constant * (current + later) / 2, 4)
            speeds = (before + sim.qd) / 2
        current = later
    return sim.q


coarse, fine = run(2e-3), run(2.5e-4)
print(f"after 1 s {np.round(fine, 4)}; with exchanges every 2 ms {np.abs(coarse - fine).max():.1e} rad off")
assert np.abs(coarse - fine).max() < 2e-3

"""Load an arm and evaluate its dynamics at one configuration."""

import numpy as np

import armdyn

np.set_printoptions(precision=4, suppress=True)

arm = armdyn.load("puma560")  # or a .urdf, .toml or MJCF file of yours
print(arm, "from a catalogue of", ", ".join(armdyn.catalogue()))

q = np.array([0.1, -0.8, 0.3, 0.0, 0.6, 0.2])
qd = np.array([0.5, -0.4, 0.3, 1.0, -0.2, 0.7])

H = arm.inertia_matrix(q)
b = arm.bias(q, qd)
g = arm.gravity_load(q)
print("\ninertia matrix\n", H)
print("\ngravity load", g)
print("Coriolis and centrifugal forces", b - g)

# Inverse and forward dynamics are inverses of each other.
qdd = np.array([1.0, 0.5, -0.5, 2.0, 1.0, -1.0])
tau = arm.inverse_dynamics(q, qd, qdd)
print("\ntorques", tau)
print("back to accelerations", arm.forward_dynamics(q, qd, tau))
assert np.allclose(arm.forward_dynamics(q, qd, tau), qdd)
assert np.isclose(arm.kinetic_energy(q, qd), 0.5 * qd @ H @ qd)

print("\ntool at", arm.pose(q)[:3, 3], "m, moving at", arm.jacobian(q)[:3] @ qd, "m/s")

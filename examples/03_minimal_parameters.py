"""The minimal inertial parameters of an arm: names, formulas, and a check that they determine the dynamics."""

import numpy as np

import armdyn

arm = armdyn.load("puma560")
minimal = arm.minimal_parameters
print(f"{arm.name}: {len(minimal)} minimal parameters instead of {10 * arm.n}\n")
for name, value, formula in zip(minimal.names[:8], minimal.values, minimal.expressions, strict=False):
    print(f"{name:8} = {value:10.6f}   {formula.symbolic}")
print("...\n")

# The torques are linear in them.
rng = np.random.default_rng(1)
q, qd, qdd = rng.uniform(-2, 2, (3, 200, arm.n))
Y = arm.regressor(q, qd, qdd)
rotors = arm.rotor_inertias * qdd  # rotor inertias are not part of the minimal parameters
difference = np.max(np.abs(Y @ np.array(minimal.values) + rotors - arm.inverse_dynamics(q, qd, qdd)))
print(f"regressor {Y.shape}; Y @ parameters differs from inverse dynamics by at most {difference:.1e} N m")
assert difference < 1e-11

# No smaller set would do: the stacked regressor has full column rank.
rank = np.linalg.matrix_rank(Y.reshape(-1, len(minimal)))
print(f"rank of 200 stacked regressors: {rank}")
assert rank == len(minimal)

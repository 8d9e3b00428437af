"""Every published formulation of the inertia matrix: what it costs, and that all agree."""

import numpy as np

import armdyn

arm = armdyn.load("puma560")
q = np.random.default_rng(0).uniform(-2, 2, (1000, arm.n))
judge = arm.kernel("inertia_matrix", method="reference")(q)

print(f"{arm.name}: M multiplications, A additions; as the paper executes it, and as armdyn compiles it\n")
print(f"{'formulation':15} {'executed':>12} {'compiled':>12}   largest difference from JᵀMJ")
for method in armdyn.methods("inertia_matrix")[:-1]:  # the last is the reference itself
    cost = armdyn.cost(arm, "inertia_matrix", method=method)
    H = arm.kernel("inertia_matrix", method=method)(q)
    difference = np.max(np.abs(H - judge))
    assert difference < 1e-12
    print(f"{method:15} {cost.published!s:>12} {cost.compiled!s:>12}   {difference:.1e}")

print(f"\narm.inertia_matrix takes the cheapest: {arm.inertia_matrix.method}")

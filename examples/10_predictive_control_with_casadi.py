"""Nonlinear model predictive control of a Panda within its torque limits: armdyn's inverse dynamics in CasADi.

Every 50 ms a new plan of eight steps is computed from the current state towards a target, with a heavy payload.
"""

from time import perf_counter

import casadi as ca
import numpy as np

import armdyn

arm = armdyn.load("panda").with_payload(2.5, com=(0, 0, 0.1))
n, horizon, step = arm.n, 8, 0.05
limit = np.minimum(arm.effort_limits, [87, 87, 87, 87, 12, 12, 12]) * 0.6
start, target = np.array([0, -0.4, 0, -2.2, 0, 1.8, 0.8]), np.array([0.9, 0.3, -0.5, -1.2, 0.3, 1.4, 0.2])

problem = ca.Opti()
q, qd = (problem.variable(n, horizon + 1) for _ in range(2))
qdd = problem.variable(n, horizon)
now_q, now_qd = problem.parameter(n), problem.parameter(n)
problem.subject_to(q[:, 0] == now_q)
problem.subject_to(qd[:, 0] == now_qd)
problem.subject_to(q[:, 1:] == q[:, :-1] + step * qd[:, :-1] + step**2 / 2 * qdd)
problem.subject_to(qd[:, 1:] == qd[:, :-1] + step * qdd)
torque = arm.inverse_dynamics.casadi().map(horizon)(q[:, :-1], qd[:, :-1], qdd)
problem.subject_to(problem.bounded(np.tile(-limit[:, None], horizon), torque, np.tile(limit[:, None], horizon)))
cost = 20 * ca.sumsqr(q[:, 1:] - target) + 0.5 * ca.sumsqr(qd[:, 1:]) + 1e-3 * ca.sumsqr(qdd)
problem.minimize(cost + 200 * ca.sumsqr(q[:, horizon] - target))
options = {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory", "tol": 1e-4}
problem.solver("ipopt", {"print_time": False}, options)

position, velocity = start, np.zeros(n)
torques, times = [], []
for _ in range(25):
    problem.set_value(now_q, position)
    problem.set_value(now_qd, velocity)
    began = perf_counter()
    plan = problem.solve()
    times.append(perf_counter() - began)
    problem.set_initial(plan.value_variables())
    tau = arm.inverse_dynamics(position, velocity, plan.value(qdd)[:, 0])
    torques.append(tau)
    for _ in range(10):  # the arm itself, simulated finely under this torque
        acceleration = arm.forward_dynamics(position, velocity, tau)
        velocity = velocity + step / 10 * acceleration
        position = position + step / 10 * velocity

use = np.abs(torques).max(axis=0) / limit
print(f"{1000 * np.median(times):.0f} ms per plan; largest torques {(100 * use).round()} % of the limits")
print(f"farthest joint {np.abs(position - target).max():.3f} rad from the target after {25 * step:.2f} s")
assert use.max() <= 1 + 1e-3
assert use.max() > 0.95, "the limits were never felt"
assert np.abs(position - target).max() < 0.1

"""A swing-up by direct collocation: armdyn's dynamics and exact derivatives in CasADi, solved by IPOPT.

The three-link arm hangs down and must swing up, with a shoulder motor far too weak to lift it directly.
"""

import casadi as ca
import numpy as np

import armdyn

arm = armdyn.load("planar3")
n, intervals, duration = arm.n, 40, 2.0
step = duration / intervals
hanging, upright = np.array([-np.pi / 2, 0, 0]), np.array([np.pi / 2, 0, 0])
limit = np.array([7.0, 6.0, 4.0])
needed = np.abs(arm.gravity_load(np.zeros(n)))  # to hold it stretched out
print(f"holding it level takes {needed.round(1)} N m, the motors give {limit} N m")

# A casadi.Function like any other; its Jacobian is armdyn's derivative program.
dynamics = arm.forward_dynamics.casadi().map(intervals + 1)

problem = ca.Opti()
q, qd, tau = (problem.variable(n, intervals + 1) for _ in range(3))
qdd = dynamics(q, qd, tau)
now, then = slice(0, intervals), slice(1, intervals + 1)
problem.subject_to(q[:, then] == q[:, now] + step / 2 * (qd[:, now] + qd[:, then]))
problem.subject_to(qd[:, then] == qd[:, now] + step / 2 * (qdd[:, now] + qdd[:, then]))
problem.subject_to(ca.vec(q[:, 0]) == hanging)
problem.subject_to(ca.vec(q[:, intervals]) == upright)
for end in (0, intervals):
    problem.subject_to(qd[:, end] == 0)
for joint in range(n):
    problem.subject_to(problem.bounded(-limit[joint], tau[joint, :], limit[joint]))
problem.minimize(step * ca.sumsqr(tau))
problem.set_initial(q, np.linspace(hanging, upright, intervals + 1).T)
problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes", "max_iter": 500})
solution = problem.solve()

# The same trajectory through NumPy's kernel, all points in one call: the collocation equations hold.
positions, speeds, torques = (np.ascontiguousarray(solution.value(x).T) for x in (q, qd, tau))
accelerations = arm.forward_dynamics(positions, speeds, torques)
defects = np.diff(speeds, axis=0) - step / 2 * (accelerations[1:] + accelerations[:-1])
print(f"{solution.stats()['iter_count']} iterations, largest torque {np.abs(torques).max(axis=0).round(2)} N m")
print(f"largest defect {np.abs(defects).max():.1e} rad/s")
assert np.abs(defects).max() < 1e-6
assert (np.abs(torques) <= limit + 1e-6).all()
assert (limit < needed)[0]

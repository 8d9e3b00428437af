"""Predictive control with acados: armdyn's forward dynamics as its model, and the same problem in CasADi.

The arm swings its tool upwards. What acados needs is an expression of the state's rate; `kernel.casadi()` gives it.
"""

import casadi as ca
import numpy as np

import armdyn

arm = armdyn.load("planar3")
n, horizon, seconds, limit = arm.n, 20, 0.6, 60.0
start, goal = np.array([-np.pi / 2, 0, 0]), np.array([0.4, -0.3, 0.2])
x, u = ca.SX.sym("x", 2 * n), ca.SX.sym("u", n)
rate = ca.vertcat(x[n:], arm.forward_dynamics.casadi()(x[:n], x[n:], u))
weights = np.diag([10.0] * n + [0.1] * n + [1e-4] * n)
reference = np.concatenate([goal, np.zeros(n), arm.gravity_load(goal)])


def by_acados() -> np.ndarray:
    """The first torques of the plan, by the real-time solver that acados writes in C."""
    from acados_template import AcadosModel, AcadosOcp, AcadosOcpSolver

    ocp, model = AcadosOcp(), AcadosModel()
    model.name, model.x, model.u, model.f_expl_expr = "arm", x, u, rate
    ocp.model, ocp.solver_options.N_horizon, ocp.solver_options.tf = model, horizon, seconds
    ocp.cost.cost_type = ocp.cost.cost_type_e = "NONLINEAR_LS"
    ocp.model.cost_y_expr, ocp.model.cost_y_expr_e = ca.vertcat(x, u), x
    ocp.cost.W, ocp.cost.W_e, ocp.cost.yref, ocp.cost.yref_e = weights, 50 * weights[:6, :6], reference, reference[:6]
    ocp.constraints.x0 = np.concatenate([start, np.zeros(n)])
    bounds = limit * np.ones(n)
    ocp.constraints.lbu, ocp.constraints.ubu, ocp.constraints.idxbu = -bounds, bounds, np.arange(n)
    return np.array(AcadosOcpSolver(ocp).solve_for_x0(ocp.constraints.x0))


def by_casadi() -> tuple[np.ndarray, np.ndarray]:
    """The first torques, and the plan's last state, by multiple shooting with the same step of RK4."""
    one, f = seconds / horizon, ca.Function("f", [x, u], [rate])
    k3 = f(x + one / 2 * (k2 := f(x + one / 2 * rate, u)), u)
    stepped = ca.Function("step", [x, u], [x + one / 6 * (rate + 2 * k2 + 2 * k3 + f(x + one * k3, u))])
    problem = ca.Opti()
    states, torques = problem.variable(2 * n, horizon + 1), problem.variable(n, horizon)
    problem.subject_to(states[:, 0] == np.concatenate([start, np.zeros(n)]))
    problem.subject_to(states[:, 1:] == stepped.map(horizon)(states[:, :-1], torques))
    problem.subject_to(problem.bounded(-limit, ca.vec(torques), limit))
    missed, last = ca.vertcat(states[:, :-1], torques) - reference, states[:, -1] - reference[: 2 * n]
    problem.minimize(one * ca.sumsqr(np.sqrt(weights) @ missed) + 50 * ca.sumsqr(np.sqrt(weights[:6, :6]) @ last))
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    plan = problem.solve()
    return plan.value(torques)[:, 0], plan.value(states)[:, -1]


first, end = by_casadi()
print(f"CasADi: first torques {first.round(1)} N m, {np.abs(end[:n] - goal).max():.3f} rad left after {seconds} s")
assert np.abs(first).max() <= limit + 1e-6
assert np.abs(end[:n] - goal).max() < 0.05
try:
    print(f"acados: first torques {by_acados().round(1)} N m")
except ImportError:
    print("acados is not installed: its part was skipped")

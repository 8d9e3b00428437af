"""Which form of a CasADi function to use: prints docs/tables/casadi-forms.txt (`python docs/scripts/casadi_forms.py`).

For the Panda's inverse and forward dynamics: the value, the Jacobian and the exact Hessian of a weighted sum of the
results, in an MX graph that calls armdyn's function, and expanded into SX. All agree before they are timed; the rounds
alternate, and the best counts. Then a reaching problem of 20 steps by IPOPT, exact Hessians or not, and by SQP.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import armdyn

ROUNDS, CALLS = 7, 200
STEPS, H = 20, 0.02  # of the reaching problem
MOST = 200  # iterations
OPTIONS = {"print_time": False, "expand": False}
SOLVERS = {
    "IPOPT, exact Hessian": ("ipopt", {"ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.max_iter": MOST}),
    "IPOPT, limited memory": (
        "ipopt",
        {
            "ipopt.print_level": 0,
            "ipopt.sb": "yes",
            "ipopt.hessian_approximation": "limited-memory",
            "ipopt.max_iter": MOST,
        },
    ),
    "SQP, exact Hessian": ("sqpmethod", {"hessian_approximation": "exact", "convexify_strategy": "regularize"}),
}
QUIET_QP = {"print_header": False, "print_iteration": False, "print_status": False, "qpsol": "qrqp", "max_iter": MOST}
QUIET_QP |= {"qpsol_options": {"print_iter": False, "print_header": False, "print_info": False, "error_on_fail": False}}


def forms(quantity: str) -> dict[str, dict[str, Any]]:
    """Value, Jacobian and Hessian of a quantity in both forms."""
    arm = armdyn.load("panda")
    own = getattr(arm, quantity).casadi()
    found = {}
    for form in ("MX", "SX"):
        symbols = [ca.MX.sym(own.name_in(k), *own.size_in(k)) for k in range(own.n_in())]
        weights, x = ca.MX.sym("weights", arm.n), ca.vertcat(*symbols)
        made = own(*symbols)
        functions = {
            "value": ca.Function("value", symbols, [made]),
            "Jacobian": ca.Function("jacobian", symbols, [ca.jacobian(made, x)]),
        }
        if form == "SX":
            functions = {name: one.expand() for name, one in functions.items()}
            symbols = [ca.SX.sym(own.name_in(k), *own.size_in(k)) for k in range(own.n_in())]
            weights, x = ca.SX.sym("weights", arm.n), ca.vertcat(*symbols)
            made = own.expand()(*symbols)
        hessian = ca.hessian(ca.dot(weights, made), x)[0]
        functions["Hessian"] = ca.Function("hessian", [*symbols, weights], [hessian])
        found[form] = functions
    return found


def best(functions: list[Callable[[], Any]]) -> list[float]:
    """The least microseconds per call of each, in alternating rounds."""
    least = [np.inf] * len(functions)
    for _ in range(ROUNDS):
        for k, function in enumerate(functions):
            start = time.process_time()
            for _ in range(CALLS):
                function()
            least[k] = min(least[k], 1e6 * (time.process_time() - start) / CALLS)
    return least


def derivatives() -> list[str]:
    """The rows of the first table."""
    rng, rows = np.random.default_rng(0), []
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        made = forms(quantity)
        for name in ("value", "Jacobian", "Hessian"):
            pair = [made["MX"][name], made["SX"][name]]
            given = [rng.uniform(-1, 1, pair[0].size_in(k)) for k in range(pair[0].n_in())]
            one, other = (f(*given).full() for f in pair)
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(one).max()), (quantity, name)
            mx, sx = best([partial(f, *given) for f in pair])
            rows.append(f"| {quantity.replace('_', ' ')} | {name} | {mx:.1f} | {sx:.1f} | {mx / sx:.1f} |")
    return rows


def reaching(expand: bool) -> dict[str, Any]:
    """From rest to a posture in 20 steps of 20 ms, with little torque: variables, cost, constraints."""
    arm = armdyn.load("panda")
    dynamics = arm.forward_dynamics.casadi()
    n, rest = arm.n, np.asarray(arm.rest)
    u, x = ca.MX.sym("u", n, STEPS), ca.MX.sym("x", 2 * n, STEPS)
    before, gaps, cost = ca.DM(np.concatenate([rest, np.zeros(n)])), [], 0
    for k in range(STEPS):
        q, qd = before[:n], before[n:]
        speed = qd + H * dynamics(q, qd, u[:, k])
        gaps.append(x[:, k] - ca.vertcat(q + H * speed, speed))
        cost += 1e-4 * ca.sumsqr(u[:, k])
        before = x[:, k]
    goal = rest + 0.2
    cost += 50 * ca.sumsqr(before[:n] - goal) + ca.sumsqr(before[n:])
    return {"x": ca.veccat(u, x), "f": cost, "g": ca.vertcat(*gaps)}


def solved() -> list[str]:
    """The rows of the second table."""
    rows, problem = [], reaching(False)
    size = problem["x"].shape[0]
    arm = armdyn.load("panda")
    held = np.asarray(arm.gravity_load(np.asarray(arm.rest)))
    rest = np.concatenate([np.asarray(arm.rest), np.zeros(arm.n)])
    first = np.concatenate([np.tile(held, STEPS), np.tile(rest, STEPS)])
    assert len(first) == size
    costs = []
    for name, (solver, options) in SOLVERS.items():
        quiet = QUIET_QP if solver == "sqpmethod" else {}
        for expand in (False, True):
            given = {**OPTIONS, **quiet, **options, "expand": expand}
            solve = ca.nlpsol("solve", solver, problem, given)
            start = time.process_time()
            found = solve(x0=first, lbg=0, ubg=0)
            seconds = time.process_time() - start
            stats = solve.stats()
            if stats["success"]:
                costs.append(float(found["f"]))
            form = "SX (`expand=True`)" if expand else "MX"
            steps = str(stats["iter_count"]) if stats["success"] else f"no solution in {MOST}"
            rows.append(f"| {name} | {form} | {steps} | {1e3 * seconds:.0f} |")
    assert np.ptp(costs) < 1e-3 * abs(costs[0]), costs
    return rows


def main() -> None:
    """Measure, and write the tables."""
    lines = [
        "| quantity of a Panda | | MX [µs] | SX [µs] | MX / SX |",
        "|---|---|---:|---:|---:|",
        *derivatives(),
        "",
        "| a reaching motion, 420 variables | form | iterations | processor time [ms] |",
        "|---|---|---:|---:|",
        *solved(),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    (Path(__file__).parents[1] / "tables" / "casadi-forms.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

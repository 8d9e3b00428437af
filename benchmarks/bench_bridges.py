"""The bridges beside adam and frax (CasADi, JAX) and Pinocchio: one arm, one thread, one run, processor time.

With --write it writes docs/tables/bridges-speed-table.txt and docs/images/bridges.svg. Peers that are not installed are
left out (pip install adam-robotics liecasadi frax pin). Every peer's numbers must agree with armdyn's before they
count.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if hasattr(os, "sched_setaffinity"):  # before the libraries start threads of their own
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np

import armdyn
from armdyn.studies import speed

QUANTITIES = ("inertia_matrix", "inverse_dynamics", "forward_dynamics")
NOTHING = '<inertial><mass value="0"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
DOCS = Path(__file__).parent.parent / "docs"
Table = dict[str, dict[tuple[str, str], float]]  # who -> (quantity, what) -> number
Functions = dict[str, Callable[..., Any]]


def best(function: Callable[[], Any], seconds: float) -> float:
    """The shortest processor time of a call: calls of a second on a busy machine would lose by the wall clock."""
    function()
    began = time.process_time()
    function()
    inner = max(1, int(1e-4 / max(time.process_time() - began, 1e-7)))  # the clock itself takes most of a microsecond
    shortest, end = np.inf, time.perf_counter() + seconds
    while shortest == np.inf or time.perf_counter() < end:
        began = time.process_time()
        for _ in range(inner):
            function()
        shortest = min(shortest, (time.process_time() - began) / inner)
    return float(shortest)


def agrees(who: str, found: Any, expected: Any) -> None:
    error = np.abs(np.asarray(found) - expected).max() / np.abs(expected).max()
    if error > 1e-8:
        raise SystemExit(f"{who} computes something else: {error:.1e} of the largest entry apart")


def arguments(arm: armdyn.Arm, quantity: str, *batch: int) -> list[np.ndarray]:
    count = len(arm.kernel(quantity).assembly.inputs)
    return list(np.random.default_rng(0).uniform(-1, 1, (count, *batch, arm.n)))


# What each library calls the same thing: functions of (q), (q, qd, qdd) and (q, qd, tau).


def adam_functions(kind: str, urdf: str, names: list[str]) -> Functions:
    """Adam's base floats; with the base held still H is the lower right block, and forward dynamics solves with it."""
    if kind == "casadi":
        import casadi as xp
        from adam.casadi import KinDynComputations
        from casadi import solve
    else:
        import jax.numpy as xp
        from adam.jax import KinDynComputations

        solve = xp.linalg.solve
    model = KinDynComputations(urdf, names, gravity=np.array([0, 0, -9.81, 0, 0, 0]))
    if kind == "jax":
        model.rbdalgos.math.factory._device = None  # adam 0.5 names a device, which JAX 0.10 refuses inside vmap
    base, still = np.eye(4), np.zeros(6)

    def inertia(q: Any) -> Any:
        return model.mass_matrix(base, q)[6:, 6:]

    def bias(q: Any, qd: Any) -> Any:
        return model.bias_force(base, q, still, qd)[6:]

    return {
        "inertia_matrix": inertia,
        "inverse_dynamics": lambda q, qd, qdd: inertia(q) @ qdd + bias(q, qd),
        "forward_dynamics": lambda q, qd, tau: solve(inertia(q), tau - bias(q, qd)),
    }


def frax_functions(urdf: str, names: list[str]) -> Functions:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import frax

    text = Path(urdf).read_text(encoding="utf-8")  # frax wants an inertia on every link
    filled = Path(urdf).with_name("frax.urdf")
    filled.write_text(re.sub(r'<link name="(\w+)"/>', rf'<link name="\1">{NOTHING}</link>', text), encoding="utf-8")
    robot = frax.Robot(str(filled), joint_ordering=names)
    return {
        "inertia_matrix": robot.mass_matrix,
        "inverse_dynamics": lambda q, qd, qdd: robot.mass_matrix(q) @ qdd + robot.nonlinear_bias(q, qd),
        "forward_dynamics": lambda q, qd, tau: robot.forward_dynamics(q, qd, tau, None),
    }


def measure_casadi(who: str, functions: Functions, arm: armdyn.Arm, seconds: float) -> dict[tuple[str, str], float]:
    import casadi as ca

    found = {}
    for quantity in QUANTITIES:
        values = arguments(arm, quantity)
        if who == "armdyn":
            function = functions[quantity]
        else:
            symbols = [ca.SX.sym(f"x{k}", arm.n) for k in range(len(values))]
            function = ca.Function("f", symbols, [functions[quantity](*symbols)], {"cse": True})
        expected = arm.kernel(quantity)(*values)
        agrees(who, function(*values).full().reshape(expected.shape), expected)
        jacobian = function.jacobian()
        for what, one, more in (("value", function, []), ("derivatives", jacobian, [0])):
            found[quantity, f"{what}, instructions"] = one.n_instructions()
            buffer, evaluate = one.buffer()
            held = [np.array(v, float) for v in (*values, *([np.zeros(expected.size)] if more else []))]
            results = [np.zeros(one.nnz_out(k)) for k in range(one.n_out())]
            for k, array in enumerate(held):
                buffer.set_arg(k, memoryview(array))
            for k, array in enumerate(results):
                buffer.set_res(k, memoryview(array))
            found[quantity, f"{what}, ns"] = 1e9 * best(evaluate, seconds)
    return found


def measure_jax(who: str, functions: Functions, arm: armdyn.Arm, batch: int, seconds: float) -> dict[Any, float]:
    import jax
    import jax.numpy as jnp

    found = {}
    for quantity in QUANTITIES:
        values = [jnp.asarray(x) for x in arguments(arm, quantity, batch)]
        one = functions[quantity]

        def gradient(*x: Any, one: Any = one) -> Any:
            return jax.grad(lambda *y: jnp.sum(one(*y)), tuple(range(len(x))))(*x)

        for what, function in (("value", one), ("gradient", gradient)):
            began = time.process_time()
            many = jax.jit(jax.vmap(function)).lower(*values).compile()
            found[quantity, f"{what}, compile s"] = time.process_time() - began
            if what == "value":
                agrees(who, many(*values), arm.kernel(quantity)(*map(np.asarray, values)))
            found[quantity, f"{what}, ns"] = 1e9 / batch * best(lambda: jax.block_until_ready(many(*values)), seconds)  # noqa: B023
            single = jax.jit(function)
            first = [x[0] for x in values]
            found[quantity, f"{what}, one call ns"] = 1e9 * best(lambda: jax.block_until_ready(single(*first)), seconds)  # noqa: B023
    return found


def measure_torch(arm: armdyn.Arm, batch: int, seconds: float) -> dict[tuple[str, str], float]:
    import torch

    torch.set_num_threads(1)
    found = {}
    for quantity in QUANTITIES:
        one = arm.kernel(quantity).torch()
        values = [torch.tensor(x) for x in arguments(arm, quantity, batch)]
        leaves = [x.clone().requires_grad_() for x in values]
        found[quantity, "value, ns"] = 1e9 / batch * best(lambda: one(*values), seconds)  # noqa: B023
        found[quantity, "gradient, ns"] = (
            1e9 / batch * best(lambda: torch.autograd.grad(one(*leaves).sum(), leaves), seconds)  # noqa: B023
        )
        first = [x[0] for x in values]
        found[quantity, "value, one call ns"] = 1e9 * best(lambda: one(*first), seconds)  # noqa: B023
    return found


def measure_pinocchio(arm: armdyn.Arm, urdf: str, seconds: float) -> dict[tuple[str, str], float]:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(urdf)
    data = model.createData()
    values = {"inertia_matrix": pin.crba, "inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba}
    slopes = {"inverse_dynamics": pin.computeRNEADerivatives, "forward_dynamics": pin.computeABADerivatives}
    found = {}
    for quantity, function in values.items():
        x = arguments(arm, quantity)
        agrees("Pinocchio", np.array(function(model, data, *x)), arm.kernel(quantity)(*x))
        found[quantity, "value, one call ns"] = 1e9 * best(lambda: function(model, data, *x), seconds)  # noqa: B023
        if quantity in slopes:
            call = slopes[quantity]
            found[quantity, "gradient, one call ns"] = 1e9 * best(lambda: call(model, data, *x), seconds)  # noqa: B023
    return found


def planned(arm: armdyn.Arm, torque: Callable[..., Any]) -> dict[str, float]:
    """One plan of eight steps within torque limits, as in examples/10: iterations, seconds, seconds in functions."""
    import casadi as ca

    n, horizon, step = arm.n, 8, 0.05
    limit = np.tile(np.array([52, 52, 52, 52, 7.2, 7.2, 7.2])[:, None], horizon)
    start, target = np.array([0, -0.4, 0, -2.2, 0, 1.8, 0.8]), np.array([0.9, 0.3, -0.5, -1.2, 0.3, 1.4, 0.2])
    problem = ca.Opti()
    q, qd, qdd = (problem.variable(n, horizon + extra) for extra in (1, 1, 0))
    problem.subject_to(q[:, 0] == start)
    problem.subject_to(qd[:, 0] == 0)
    problem.subject_to(q[:, 1:] == q[:, :-1] + step * qd[:, :-1] + step**2 / 2 * qdd)
    problem.subject_to(qd[:, 1:] == qd[:, :-1] + step * qdd)
    needed = ca.horzcat(*(torque(q[:, k], qd[:, k], qdd[:, k]) for k in range(horizon)))
    problem.subject_to(problem.bounded(-limit, needed, limit))
    problem.minimize(20 * ca.sumsqr(q[:, 1:] - target) + 0.5 * ca.sumsqr(qd[:, 1:]) + 1e-3 * ca.sumsqr(qdd))
    problem.set_initial(q, np.tile(start[:, None], horizon + 1))
    problem.solver("ipopt", {"print_time": False}, {"print_level": 0, "sb": "yes"})
    began = time.process_time()
    stats = problem.solve().stats()
    whole = time.process_time() - began
    inside = sum(v for k, v in stats.items() if k.startswith("t_proc_nlp"))
    return {"iterations": stats["iter_count"], "ms": 1e3 * whole, "ms in functions": 1e3 * inside}


def main(arguments_: Sequence[str] | None = None) -> dict[str, Table]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", default="panda")
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=0.3, help="for one number")
    parser.add_argument("--only", action="append", choices=("casadi", "jax", "torch", "pinocchio", "plan"))
    parser.add_argument("--alone", action="store_true", help="leave the peers out")
    parser.add_argument("--write", action="store_true", help="write the documentation's table and picture")
    given = parser.parse_args(arguments_)
    arm = armdyn.load(given.arm)
    wanted = given.only or ("casadi", "jax", "torch", "pinocchio", "plan")
    names = [joint.name for joint in arm.joints]
    tables: dict[str, Table] = {}
    with tempfile.TemporaryDirectory() as folder:
        urdf = str(Path(folder) / "arm.urdf")
        arm.to_urdf(urdf)
        if "casadi" in wanted and find_spec("casadi"):
            tables["casadi"] = {}
            for who in ("armdyn", "adam"):
                if who == "adam" and (given.alone or not find_spec("adam")):
                    continue
                ours = {name: arm.kernel(name).casadi() for name in QUANTITIES}
                functions = ours if who == "armdyn" else adam_functions("casadi", urdf, names)
                tables["casadi"][who] = measure_casadi(who, functions, arm, given.seconds)
        if "plan" in wanted and find_spec("casadi"):
            torques = {"armdyn": arm.inverse_dynamics.casadi()}
            if find_spec("adam") and not given.alone:
                torques["adam"] = adam_plan(urdf, names, arm.n)
            tables["plan"] = {who: {("plan", k): v for k, v in planned(arm, t).items()} for who, t in torques.items()}
        if "jax" in wanted and find_spec("jax"):
            peers: dict[str, Callable[[], Functions]] = {
                "armdyn": lambda: {name: arm.kernel(name).jax() for name in QUANTITIES},
                "adam": lambda: adam_functions("jax", urdf, names),
                "frax": lambda: frax_functions(urdf, names),
            }
            tables["jax"] = {}
            for who in (name for name in peers if name == "armdyn" or (find_spec(name) and not given.alone)):
                try:
                    tables["jax"][who] = measure_jax(who, peers[who](), arm, given.batch, given.seconds)
                except (AttributeError, TypeError, ValueError) as error:  # a peer that this JAX has outgrown
                    if who == "armdyn":
                        raise
                    print(f"{who} left out: {error}", file=sys.stderr)
        if "torch" in wanted and find_spec("torch"):
            tables["torch"] = {"armdyn": measure_torch(arm, given.batch, given.seconds)}
        if "pinocchio" in wanted and find_spec("pinocchio") and not given.alone:
            tables["pinocchio"] = {"Pinocchio": measure_pinocchio(arm, urdf, given.seconds)}
    text = f"{speed.machine()}. {arm.name}, batches of {given.batch}.\n\n" + "\n".join(map(markdown, tables.items()))
    print(text)
    if given.write:
        (DOCS / "tables" / "bridges-speed-table.txt").write_text(text, encoding="utf-8")
        (DOCS / "images" / "bridges.svg").write_text(picture(tables), encoding="utf-8")
    return tables


def adam_plan(urdf: str, names: list[str], n: int) -> Any:
    """Adam's inverse dynamics as a function that an MX problem can call."""
    import casadi as ca

    symbols = [ca.SX.sym(f"x{k}", n) for k in range(3)]
    made = adam_functions("casadi", urdf, names)["inverse_dynamics"](*symbols)
    return ca.Function("adam", symbols, [made], {"cse": True})


def markdown(item: tuple[str, Table]) -> str:
    """One table per library: a row per quantity and number, a column per program."""
    title, table = item
    whos = list(table)
    rows = [f"**{title}**\n", "| | | " + " | ".join(whos) + " |", "|---|---|" + "---:|" * len(whos)]
    for key in table[whos[0]]:
        numbers = [table[w].get(key, np.nan) for w in whos]
        cells = ["–" if np.isnan(x) else f"{x:,.1f}" if x < 100 else f"{x:,.0f}" for x in numbers]
        rows.append(f"| {key[0].replace('_', ' ')} | {key[1]} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def picture(tables: dict[str, Table]) -> str:
    """Bars on a logarithmic scale: nanoseconds per configuration in a batch, in JAX."""
    colours = {"armdyn": "#3b76d1", "adam": "#d9822b", "frax": "#3d9a6b"}
    left, wide, bar, y = 215, 720, 15, 64
    parts = []
    for quantity in QUANTITIES:
        for what in ("value", "gradient"):
            parts.append(
                f'<text x="{left - 12}" y="{y + 20}" text-anchor="end">{quantity.replace("_", " ")}, {what}</text>'
            )
            for who, found in tables["jax"].items():
                ns = found[quantity, f"{what}, ns"]
                end = np.log10(max(ns, 1.0)) / 6 * (wide - left - 80)
                parts.append(
                    f'<rect x="{left}" y="{y}" width="{end:.1f}" height="{bar - 3}" fill="{colours[who]}" rx="2"/>'
                    f'<text x="{left + end + 5:.1f}" y="{y + 10}" font-size="11">{ns:,.0f} ns</text>'
                )
                y += bar
            y += 12
    legend = "".join(
        f'<rect x="{left + 90 * k}" y="32" width="12" height="12" fill="{colours[who]}" rx="2"/>'
        f'<text x="{left + 18 + 90 * k}" y="43">{who}</text>'
        for k, who in enumerate(tables["jax"])
    )
    head = f'<text x="{left}" y="20" font-size="15" font-weight="600">JAX on one thread: time per configuration</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {y + 10}" font-family="system-ui, sans-serif" '
        f'font-size="13" role="img"><title>Nanoseconds per configuration in a batch, logarithmic scale</title>'
        f'<rect width="100%" height="100%" fill="white" rx="6"/>{head}{legend}{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    sys.exit(0 if main() else 1)

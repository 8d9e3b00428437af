"""Compute and measure everything that a report shows about an arm, as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import armdyn
from armdyn.arm import Arm
from armdyn.formulations import QUANTITIES as REGISTRY
from armdyn.pages.live import robot
from armdyn.programs.cost import cost
from armdyn.report.card import card
from armdyn.report.falls import falls
from armdyn.report.graphs import graphs
from armdyn.studies.speed import BATCH, best, single_call

Progress = Callable[[float, float, str], None]
QUANTITIES = ("inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics")
MEASURING_TIME = 0.05  # seconds per measured speed


def collect(
    arm: Arm,
    progress: Progress | None = None,
    meshes: Sequence[dict[str, Any]] = (),
    spec: str = "",
    *,
    gpu: bool = False,
) -> dict[str, Any]:
    """The report's data. `progress(done, total, text)` is called at each step; `meshes` are drawn as the links.

    `spec` is what `armdyn.load` was given, by default the arm's name. With `gpu` the page can let a thousand arms fall.

    The first calls are timed before anything else, because the other steps would already compile part of the code.
    """
    steps: tuple[tuple[str, str, Callable[[Arm], Any]], ...] = (
        ("first_calls", "compiling", first_calls),
        ("card", "reading the arm", card),
        ("parameters", "finding the minimal parameters", parameters),
        ("costs", "counting operations", costs),
        ("accuracy", "comparing with the reference", accuracy),
        ("speed", "measuring speed", speed),
        ("graphs", "drawing the programs", graphs),
        ("fall", "simulating free fall", fall),
        ("robot", "writing WebAssembly", partial(robot, meshes=meshes, spec=spec)),
        *([("falls", "writing shaders", falls)] if gpu else []),
    )
    data: dict[str, Any] = {"version": armdyn.__version__}
    for k, (key, text, step) in enumerate(steps):
        if progress is not None:
            progress(k, len(steps), text)
        data[key] = step(arm)
    for row in data["speed"]:
        row["first_call_ms"] = data["first_calls"][row["quantity"]]
    if progress is not None:
        progress(len(steps), len(steps), "done")
    return data


def _states(arm: Arm, quantity: str, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Random inputs of a quantity: positions uniform within the limits, rates and forces normally distributed."""
    made = []
    for name, shape in REGISTRY[quantity].input_shapes(arm.chain):
        made.append(arm.postures(rng, count) if name == "q" else rng.normal(size=(count, *shape)))
    return made


def first_calls(arm: Arm) -> dict[str, float]:
    """Milliseconds of the first call of each quantity: choice of formulation, program search and compilation."""
    milliseconds = {}
    for quantity in QUANTITIES:
        state = [x[0] for x in _states(arm, quantity, np.random.default_rng(0), 1)]
        start = time.perf_counter()
        getattr(arm, quantity)(*state)
        milliseconds[quantity] = (time.perf_counter() - start) * 1e3
    return milliseconds


def parameters(arm: Arm) -> dict[str, Any]:
    """The minimal parameters: names, formulas, values, and the links (from 0) that contribute to each.

    `kinds` tells of the ten natural parameters of each link whether they determine the motion not at all (0), alone (1)
    or only in combination with others (2); `rows` lists the minimal parameters that each of them is part of.
    """
    minimal = arm.minimal_parameters
    used = np.asarray(minimal.matrix, dtype=float) != 0
    made_of = used.reshape(len(used), -1, 10).any(axis=2)
    return {
        "kind": minimal.kind,
        "names": list(minimal.names),
        "expressions": [str(e) for e in minimal.expressions],
        "values": [float(v) for v in minimal.values],
        "bodies": made_of.shape[1],
        "links": [np.flatnonzero(row).tolist() for row in made_of],
        "kinds": minimal.influence,
        "rows": [np.flatnonzero(column).tolist() for column in used.T],
    }


def _contenders(arm: Arm, quantity: str) -> list[str]:
    """The formulations that apply to this arm, without those that serve only as a reference."""
    methods = REGISTRY[quantity].methods
    return [m.key for m in methods if m.serves(arm.chain) and not m.reference_only]


def costs(arm: Arm) -> list[dict[str, Any]]:
    """Operation counts of every formulation, as published and as compiled; the cheapest per quantity is marked."""
    rows: list[dict[str, Any]] = []
    for quantity in QUANTITIES:
        group: list[dict[str, Any]] = []
        for method in _contenders(arm, quantity):
            counts = cost(arm, quantity, method)
            group.append(
                {
                    "quantity": quantity,
                    "method": method,
                    "published": [counts.published.mul, counts.published.add, counts.published.div],
                    "compiled": [counts.compiled.mul, counts.compiled.add, counts.compiled.div],
                    "total": counts.compiled.total,
                }
            )
        least = min(int(row["total"]) for row in group)
        for row in group:
            row["best"] = row["total"] == least
        rows += group
    return rows


def accuracy(arm: Arm, samples: int = 200) -> list[dict[str, Any]]:
    """The largest difference of every formulation from the reference, relative to the largest entry."""
    rows: list[dict[str, Any]] = []
    if arm.chain.floating:  # the reference covers only joints with one coordinate
        return rows
    for quantity in ("inertia_matrix", "bias"):
        inputs = _states(arm, quantity, np.random.default_rng(1), samples)
        truth = arm.kernel(quantity, method="reference", backend="python")(*inputs)
        for method in _contenders(arm, quantity):
            value = arm.kernel(quantity, method=method, backend="python")(*inputs)
            rows.append({"quantity": quantity, "method": method, "error": _relative(value, truth)})
        compiled = arm.kernel(quantity)
        value = compiled(*inputs)
        rows.append({"quantity": quantity, "method": f"compiled ({compiled.method})", "error": _relative(value, truth)})
    return rows


def _relative(value: Any, truth: Any) -> float:
    return float(np.max(np.abs(value - truth)) / max(float(np.max(np.abs(truth))), 1e-300))


def speed(arm: Arm) -> list[dict[str, Any]]:
    """Measured nanoseconds per configuration, in a batch and in single calls: best of several, on one thread."""
    rows = []
    for quantity in QUANTITIES:
        kernel, batch = getattr(arm, quantity), _states(arm, quantity, np.random.default_rng(2), BATCH)
        out = kernel(*batch)
        single = tuple(x[0].copy() for x in batch)
        rows.append(
            {
                "quantity": quantity,
                "method": kernel.method,
                "batch_ns": best(partial(kernel, *batch, out=out), MEASURING_TIME) / BATCH * 1e9,
                "single_ns": single_call(kernel, single, MEASURING_TIME) * 1e9,
                "copy_ns": best(partial(np.copyto, np.empty_like(out), out), MEASURING_TIME) / BATCH * 1e9,
            }
        )
    return rows


def fall(arm: Arm, duration: float = 2.0) -> dict[str, Any]:
    """Simulate the arm falling without friction, and report the energy drift as a number and in words."""
    result = armdyn.simulate(
        arm, arm.rest, np.zeros(arm.chain.nv), duration=duration, method="RK5", step=1e-3, friction=False, limits=False
    )
    energy = np.asarray(result.energy)
    error = float(np.max(np.abs(energy - energy[0]))) if result.status == "finished" else None
    text = f"Free fall for {duration:g} s without friction (RK5, 1 ms): {result.message}"
    if error is not None:
        text = f"Free fall for {duration:g} s without friction (RK5, 1 ms): energy is conserved within {error:.1e} J."
    return {"text": text, "energy_error": error}

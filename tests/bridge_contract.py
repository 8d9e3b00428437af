"""What every bridge is held to: the same quantities of the same arms as NumPy's kernels give."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import armdyn
from armdyn.formulations import QUANTITIES
from armdyn.graph.derive import jacobian
from armdyn.graph.program import evaluate
from armdyn.kernels.kernel import Kernel
from possible import possible
from random_trees import TreeKind, random_tree

TOLERANCE = 1e-12  # of a result's largest entry
ARMS = ("panda", "stanford", "puma560", "scara", "generic")  # a prismatic joint in three, friction in two
FOUR = ("scara", "generic")  # these have four joints


def enough(arm: str, quantity: str) -> bool:
    """Whether the arm has the degrees of freedom that a quantity needs; to hold them all is ill-conditioned."""
    return quantity != "held_dynamics" and (arm not in FOUR or QUANTITIES[quantity].dof <= 4)


OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("puma560", "inverse_dynamics", {"friction": True}),
    ("puma560", "forward_dynamics", {"friction": True, "tool_wrench": True}),
    ("stanford", "forward_dynamics", {"parameters": "runtime"}),
    ("stanford", "inverse_dynamics", {"parameters": "runtime", "tool_wrench": True}),
    ("generic", "inertia_matrix", {"parameters": "runtime"}),
    ("puma560", "held_dynamics", {"rows": (0, 1, 2), "friction": True}),
    ("scara", "held_dynamics", {"rows": (0, 1)}),
    ("panda", "pose", {"frame": "panda_link8"}),
    ("panda", "inverse_dynamics", {"frame": "panda_link8", "tool_wrench": True}),
    ("scara", "inverse_dynamics", {"derivatives": ("q", "qd", "qdd")}),
    ("scara", "forward_dynamics", {"derivatives": ("q", "tau")}),
    ("scara", "inertia_matrix", {"derivatives": ("q",)}),
)
TREES = {
    "tree": TreeKind(joints=4, fork=0.6),
    "tree with a mimic joint": TreeKind(joints=4, fork=0.6, mimic=0.5),
    "floating tree": TreeKind(joints=3, fork=0.6, floating=True),
}
OF_TREES = ("inertia_matrix", "bias", "inverse_dynamics", "forward_dynamics", "kinetic_energy", "link_poses")
CASES = (
    [
        pytest.param(arm, quantity, {}, id=f"{arm} {quantity}")
        for arm in ARMS
        for quantity in QUANTITIES
        if enough(arm, quantity)
    ]
    + [pytest.param(arm, quantity, {}, id=f"{arm} {quantity}") for arm in TREES for quantity in OF_TREES]
    + [
        pytest.param(arm, quantity, options, id=f"{arm} {quantity} with {', '.join(options)}")
        for arm, quantity, options in OPTIONS
    ]
)


@lru_cache
def arm_called(name: str) -> armdyn.Arm:
    if name in TREES:
        return armdyn.Arm(name, random_tree(TREES[name], seed=3), snap=0.0)
    return armdyn.generic_arm("RRPR", seed=3) if name == "generic" else armdyn.load(name)


def kernel(arm: str, quantity: str, options: dict[str, Any]) -> Kernel:
    return _kernel(arm, quantity, tuple(sorted(options.items())))


@lru_cache
def _kernel(arm: str, quantity: str, options: tuple[tuple[str, Any], ...]) -> Kernel:
    return arm_called(arm).kernel(quantity, **dict(options))


def arrays(kernel: Kernel, *batch: int, seed: int = 0) -> list[np.ndarray]:
    """Configurations, velocities, ...; run-time parameters near those of the arm, which keep H positive definite."""
    rng = np.random.default_rng(seed)
    found = []
    for name, shape in kernel.assembly.inputs:
        if name == "parameters":
            values = np.array([float(v) for v in _parameters(kernel)])
            found.append(values * rng.uniform(0.999, 1.001, (*batch, *shape)))
        else:
            found.append(possible(name, rng.uniform(-1.5, 1.5, (*batch, *shape))))
    return found


def _parameters(kernel: Kernel) -> Sequence[Any]:
    from armdyn.parameters import minimal_parameters

    return minimal_parameters(kernel.chain).values


def interpreted(kernel: Kernel, values: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The kernel's program at one configuration, node by node; that kernels agree with it is theirs to test."""
    flat = iter(evaluate(kernel.program, *(np.ravel(x) for x in values)))
    return tuple(np.reshape(next(flat), shape) for _, shape in kernel.assembly.outputs)


def slopes(kernel: Kernel, values: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """The derivative of every output in every input at one configuration, by armdyn's derivative programs."""
    names = tuple(name for name, _ in kernel.assembly.inputs)
    if kernel.options.derivatives or kernel.chain.floating:  # whose kernels are in velocities, not in coordinates
        program = jacobian(kernel.program, names)
    else:
        program = kernel.variant(derivatives=names).program
    flat = iter(evaluate(program, *(np.ravel(x) for x in values)))
    shapes = [[(*out, *shape) for _, shape in kernel.assembly.inputs] for _, out in kernel.assembly.outputs]
    return [[np.reshape(next(flat), shape) for shape in row] for row in shapes]


def along(kernel: Kernel, values: Sequence[np.ndarray], tangents: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The derivative of every output along a direction."""
    return tuple(
        sum(np.tensordot(slope, t, t.ndim) for slope, t in zip(row, tangents, strict=True))
        for row in slopes(kernel, values)
    )


def gradients(kernel: Kernel, values: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The gradients of the weighted sum of all outputs."""
    columns = zip(*slopes(kernel, values), strict=True)
    return tuple(
        sum(np.tensordot(w, slope, w.ndim) for slope, w in zip(column, weights, strict=True)) for column in columns
    )


def results(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def close(got: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    """Within a tolerance of the largest entry, shapes included, result by result."""
    for a, b in zip(results(got), results(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        assert np.isfinite(b).all()
        error = np.abs(a - b).max(initial=0.0)
        assert error <= tolerance * max(np.abs(b).max(initial=0.0), 1e-300) or error == 0.0

"""H and b of H q̈ + b = τ in one program, for control laws and solvers that need both at one state.

`composed` evaluates the cheapest formulation of each; what they share (sines, cosines, transforms, products of
constants) is computed once. `lin_1991` is the paper's own joint algorithm: every point is measured from the base
origin, and the composite bodies of H are those of b (printed: (23n²+44n-82)M (15n²+40n-70)A for n revolute joints).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from armdyn.algebra import Scalar
from armdyn.chain import Chain
from armdyn.formulations import reference
from armdyn.formulations.bias import lin_1991
from armdyn.formulations.inertia_matrix import meeting_frame
from armdyn.formulations.inverse_dynamics import point_masses
from armdyn.formulations.registry import Formulation

Both = tuple[list[list[Scalar]], list[Scalar]]


def composed(
    chain: Chain,
    q: list[Scalar],
    qd: list[Scalar],
    *,
    inertia_matrix: Callable[..., list[list[Scalar]]] = meeting_frame.inertia_matrix,
    bias: Callable[..., list[Scalar]] = point_masses.bias,
    qdd: list[Scalar] | None = None,
) -> Both:
    """(H, b) by a formulation of each; b at `qdd` for the rotating axes of a floating base."""
    at: dict[str, Any] = {} if qdd is None else {"qdd": qdd}
    return inertia_matrix(chain, q), bias(chain, q, qd, **at)


def by_reference(chain: Chain, q: list[Scalar], qd: list[Scalar], *, qdd: list[Scalar] | None = None) -> Both:
    """(H, b) by their definitions."""
    return composed(chain, q, qd, inertia_matrix=reference.inertia_matrix, bias=reference.bias, qdd=qdd)


def variants(chain: Chain) -> Sequence[Mapping[str, Any]]:
    """The inertia matrix by the formulation that is cheapest alone, and by every variant of `meeting_frame`."""
    run: Callable[..., Any] = meeting_frame.inertia_matrix
    return {}, *({"inertia_matrix": partial(run, **one)} for one in meeting_frame.variants(chain) if one)


METHODS = (
    Formulation(
        "composed",
        composed,
        "",
        "the cheapest formulation of each, sharing work",
        made_of=("inertia_matrix", "bias"),
        variants=variants,
    ),
    Formulation(
        "lin_1991",
        lin_1991.equations_of_motion,
        "lin_1991",
        "composite bodies about the base origin",
        serial_only=True,
    ),
    Formulation("reference", by_reference, "", "sum of JᵀMJ, derivatives of the energies", reference_only=True),
)
